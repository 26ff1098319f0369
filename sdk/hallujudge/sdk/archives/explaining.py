"""Errors of a metric's reader, extended with what the files are."""

from __future__ import annotations

from ..errors import ArchiveError
from .archive_files import first_values
from .layouts import ArchiveReader, recognised
from .opening import Opened
from .records import Records, read_records

__all__ = ["explained"]


def explained(
    err: ArchiveError, metric: str, responses: Opened, references: Opened
) -> ArchiveError:
    """Return the error, extended with the file's layout if it is known and does not fit.

    Args:
        err: The error of the metric's archive reader.
        metric: Name of the metric.
        responses: The archive of responses.
        references: The archive of references.
    """
    sentences = [
        sentence
        for role, opened in (("responses", responses), ("references", references))
        if (sentence := _sentence(opened, role, metric))
    ]
    if not sentences:
        return err
    # Then what the metric's reader looked for is beside the point.
    if _holds_no_responses(responses):
        return ArchiveError(sentences[0], metadata=dict(err.metadata))
    if _are_swapped(metric, responses, references):
        return ArchiveError(". ".join(sentences), metadata=dict(err.metadata))
    return ArchiveError(
        f"{str(err).rstrip('.')}. {'. '.join(sentences)}", metadata=dict(err.metadata)
    )


def _sentence(opened: Opened, role: str, metric: str) -> str:
    reader = _reader_of(opened)
    if reader is None or (metric in reader.metrics and role == reader.role):
        return ""
    if role == "references" and metric in reader.metrics and reader.also_references:
        return ""
    what = opened.name or f"The archive of {role}"
    if metric in reader.metrics and reader.role in ("responses", "references"):
        return f"{what} is {reader.name}: give it as {reader.role}"
    if not reader.metrics:
        return f"{what} is {reader.name}: {reader.remedy}"
    return f"{what} is {reader.name}; use `hallujudge score {reader.metrics[0]}`"


def _holds_no_responses(opened: Opened) -> bool:
    reader = _reader_of(opened)
    return reader is not None and reader.role == "companion" and not reader.metrics


def _are_swapped(metric: str, responses: Opened, references: Opened) -> bool:
    first, second = _reader_of(responses), _reader_of(references)
    return (
        first is not None
        and second is not None
        and metric in first.metrics
        and metric in second.metrics
        and (first.role, second.role) == ("references", "responses")
    )


def _reader_of(opened: Opened) -> ArchiveReader | None:
    """Return the reader of an archive; None if it is unknown or can't be read at all."""
    source = opened.source
    if opened.reader is not None or source is None:
        return opened.reader
    try:
        if isinstance(source, (str, list, Records)) or not hasattr(source, "open"):
            first = next(iter(read_records(source)), None)
            return None if first is None else recognised(first.values)
        found = (recognised(values) for values in first_values(source))  # type: ignore[arg-type]  # a path
        return next((reader for reader in found if reader is not None), None)
    except ArchiveError:
        return None
