"""Sample files of lm-evaluation-harness, and tasks of it that have no reader of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..records import Record
from .reader import ArchiveReader, first_text, mapping_at, only_label, yes_or_no

__all__ = ["READERS"]

# What a filter by a regular expression writes where the expression does not match.
_NOT_FOUND = "[invalid]"


def _convert(records: Iterator[Record]) -> Iterator[Record]:
    """Yield the samples of the first filter: each filter repeats all samples."""
    wanted: object = None
    for position, record in enumerate(records):
        values = record.values
        if position == 0:
            wanted = values.get("filter")
        if values.get("filter") == wanted:
            yield record._replace(values={**values, "response": None, **_common(values)})


def _common(values: Mapping[str, object]) -> dict[str, object]:
    doc = mapping_at(values, "doc")
    first = mapping_at(mapping_at(values, "arguments"), "gen_args_0")
    common = {
        **{key: value for key, value in doc.items() if key not in ("answer", "label")},
        "id": values.get("doc_id"),
        "response": _response(values),
        "label": only_label(values.get("target")),
        "question": doc.get("question", first.get("arg_0")),
    }
    return {key: value for key, value in common.items() if value is not None}


def _response(values: Mapping[str, object]) -> object:
    """Return the filter's response, or the model's own one where the filter found nothing."""
    found = first_text(values.get("filtered_resps"))
    return first_text(values.get("resps")) if found in (None, _NOT_FOUND) else found


_KEYS = ("doc_id", "target", "filtered_resps", "filter")

READERS = (
    ArchiveReader(
        name="an lm-evaluation-harness sample file with yes/no labels",
        keys=_KEYS,
        matches=lambda values: yes_or_no(only_label(values.get("target"))),
        metrics=("pope",),
        any_metric=True,
        only_labels=True,
        convert=_convert,
    ),
    ArchiveReader(
        name="an lm-evaluation-harness sample file",
        keys=_KEYS,
        any_metric=True,
        convert=_convert,
        remedy="name a metric that scores its answers, and give its references with references=…",
    ),
)
