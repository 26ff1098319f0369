"""Known file layouts, so that an error can identify a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ..errors import ArchiveError
from .inputs import References, Responses
from .json_files import read_values
from .records import Record, read_records

__all__ = ["Layout", "explained", "recognised"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A layout, recognised by the keys of its first record."""

    name: str
    """Name of the layout for messages."""
    keys: frozenset[str]
    """Keys that its records have."""
    metrics: tuple[str, ...] = ()
    """Metrics that read the layout."""
    role: str = "responses"
    """Role of the file for these metrics: ``responses`` or ``references``."""
    remedy: str = ""
    """Next step for a file that no metric reads."""


def _layout(
    name: str, keys: str, *metrics: str, role: str = "responses", remedy: str = ""
) -> Layout:
    return Layout(
        name=name, keys=frozenset(keys.split()), metrics=metrics, role=role, remedy=remedy
    )


# The most specific layouts come first. The keys are those that each tool writes.
_LAYOUTS = (
    _layout("an lmms-eval sample file of task pope", "filtered_resps pope_accuracy", "pope"),
    _layout("an lmms-eval sample file of task CHAIR", "filtered_resps coco_cap_chair_i", "chair"),
    _layout(
        "an lmms-eval sample file of task AMBER",
        "filtered_resps amber_chair",
        remedy="save the answers as records with 'id' and 'response' for the metric amber",
    ),
    _layout(
        "an lmms-eval sample file of task HallusionBench",
        "filtered_resps aAcc",
        "hallusion-bench",
    ),
    _layout(
        "an lmms-eval log of the older layout (one object with 'logs')",
        "args logs model_configs",
        remedy="save its list 'logs' as a file of its own",
    ),
    _layout(
        "an lmms-eval or lm-evaluation-harness sample file",
        "doc_id filtered_resps",
        remedy="name the key of the id and the key of the text",
    ),
    _layout(
        "an items.jsonl that hallujudge score wrote",
        "outcome scores evidence group_id",
        remedy="give the responses that it was made from",
    ),
    _layout(
        "a report.json that hallujudge score wrote",
        "metric variant signature scores",
        remedy="give the responses that it was made from",
    ),
    _layout(
        "an output of a CHAIR script, which holds captions and their scores",
        "mscoco_hallucinated_words caption",
        "chair",
    ),
    _layout("a COCO annotation file", "images annotations", "chair", role="references"),
    _layout("VidHal's annotations", "video captions", "vidhal-mcqa", role="references"),
    _layout("a POPE question file", "question_id image text label", "pope", role="references"),
    _layout("Tri-HE's own file", "instance triplets", "tri-he"),
    _layout(
        "a HallusionBench file",
        "model_prediction set_id figure_id",
        "hallusion-bench",
    ),
    _layout("AMBER's annotation file", "id type truth hallu", "amber", role="references"),
    _layout("a THRONE response file", "responses", remedy="no metric reads THRONE yet"),
    _layout("VLMEvalKit's table of predictions", "index question answer prediction", "pope"),
    _layout("a LLaVA answer file", "question_id prompt text answer_id model_id", "pope", "chair"),
    _layout("a file of VideoHallucer's answers", "basic hallucination", "video-hallucer"),
    _layout("a file of INFACT's answers", "question_id operator", "infact"),
    _layout("EventHallusion's predictions", "qa desc event_info", "event-hallusion"),
    _layout("a file of Mementos descriptions", "image_name", "mementos"),
)


def recognised(values: Mapping[str, object]) -> Layout | None:
    """Return the layout of a record; None if its keys match no known layout."""
    keys = values.keys()
    return next((layout for layout in _LAYOUTS if layout.keys <= keys), None)


def explained(
    err: ArchiveError, metric: str, responses: Responses, references: References | None
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
        for role, source in (("responses", responses), ("references", references))
        if (sentence := _sentence(source, role, metric))
    ]
    if not sentences:
        return err
    return ArchiveError(
        f"{str(err).rstrip('.')}. {' '.join(sentences)}", metadata=dict(err.metadata)
    )


def _sentence(source: Responses | References | None, role: str, metric: str) -> str:
    layout = _layout_of(source)
    if layout is None or (metric in layout.metrics and role == layout.role):
        return ""
    what = str(source) if isinstance(source, (str, Path)) else f"The archive of {role}"
    if metric in layout.metrics:
        return f"{what} is {layout.name}: give it as {layout.role}"
    if not layout.metrics:
        return f"{what} is {layout.name}: {layout.remedy}"
    return f"{what} is {layout.name}; use `hallujudge score {layout.metrics[0]}`"


def _layout_of(source: Responses | References | None) -> Layout | None:
    """Return the layout of an archive; None if it is unknown or can't be read at all."""
    if source is None:
        return None
    try:
        if isinstance(source, (str, Path)):
            whole = next(islice(read_values(Path(source)), 1), None)
            if whole and isinstance(whole.value, Mapping) and (found := recognised(whole.value)):
                return found
        first: Record | None = next(iter(read_records(source)), None)
    except ArchiveError:
        return None
    return None if first is None else recognised(first.values)
