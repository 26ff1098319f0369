"""CHAIR: ways of counting object mentions, from a script's to ours."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from hallujudge.metrics.chair import ChairMetric
from hallujudge.sdk.archives.layouts.archive_reader import mapping_at
from hallujudge.sdk.archives.records import Record
from hallujudge.sdk.errors import ArchiveError

from .waterfall import AuditOptions, Counts, Ratio, Row, Scored, ScoredRow, Stage, stages_of

RATIOS: Mapping[str, Ratio] = {
    "chair_i": Ratio(numerator=("hallucinated",), denominator=("mentioned",)),
    "chair_s": Ratio(numerator=("captions_with_hallucination",), denominator=("rows",)),
    "recall": Ratio(numerator=("recalled_objects",), denominator=("reference_objects",)),
}
"""Score -> its definition in our metric. The scripts' lengths need their tokenizer."""

# Word counts are left out: the scripts' tokenizer is not ours.
_COLUMNS = {
    column.name: place for place, column in enumerate(ChairMetric.columns) if column.name != "words"
}
# lmms-eval repeats a sample's own data under the name of each score.
_LMMS_SCORES = ("coco_cap_chair_i", "coco_cap_chair_s", "coco_cap_chair_recall", "coco_cap_recall")


class _Caption(NamedTuple):
    """A caption with the script's numbers."""

    scored: ScoredRow
    found: Counts
    """By the archive's words and references."""
    copied: Counts
    """By the archive's own verdicts."""


_COPIED, _REPEATED, _FAILED, _OTHERS = (
    "copied verdicts",
    "repeated rows",
    "failure texts",
    "unscored captions",
)
_RULES = {
    _COPIED: "the archive's own verdicts are replaced by comparing its words with its references",
    _REPEATED: "a caption whose image was counted before is left out",
    _FAILED: "a tool's failure text is unscored, not a caption",
    _OTHERS: "a caption that is empty, not English or without reference is unscored",
}
"""Rule that the script has and we do not -> what leaving it out means."""


def counted(
    scored: Scored, _harness: str, _options: AuditOptions
) -> tuple[tuple[Row, ...], tuple[Stage, ...]]:
    """Return the captions, and the ways of counting their mentions."""
    captions = [_Caption(each, *_theirs(each.record)) for each in scored.rows]
    last = Stage(
        "object words",
        "objects are found by our synonym graph and references, not taken from the archive",
        [{} if each.is_repeated else each.counts(_COLUMNS) for each in scored.rows],
    )
    stages = stages_of("script", _RULES, captions, _count)
    rows = tuple(Row(id=each.result.id, response=each.response) for each in scored.rows)
    return rows, (*stages, last)


def _count(caption: _Caption, rules: Collection[str]) -> Counts:
    """Return how rules count one caption; empty if they leave it out."""
    reason = caption.scored.result.reason
    failed = reason == "RESPONSE_FAILED"
    if (
        (caption.scored.is_repeated and _REPEATED not in rules)
        or (failed and _FAILED not in rules)
        or (reason and not failed and _OTHERS not in rules)
    ):
        return {}
    return caption.copied if _COPIED in rules else caption.found


def _theirs(record: Record) -> tuple[Counts, Counts]:
    """Return a caption's numbers by the archive's words and references, and by its verdicts.

    Raises:
        ArchiveError: The archive does not hold the words that the script found.
    """
    values = record.values
    sample = next((own for name in _LMMS_SCORES if (own := mapping_at(values, name))), None)
    if sample is not None:
        found = _compared(_words(sample.get("pred")), _words(sample.get("answer")))
        # A sample of lmms-eval holds no verdict apart from its words.
        return found, found
    if "mscoco_generated_words" not in values or "mscoco_gt_words" not in values:
        raise ArchiveError(
            f"{record.place}: no mscoco_generated_words and mscoco_gt_words, which an audit "
            "counts; give an output of a CHAIR script that holds them"
        )
    found = _compared(_words(values["mscoco_generated_words"]), _words(values["mscoco_gt_words"]))
    return found, {**found, **_verdicts(values)}


def _words(value: object) -> list[str]:
    """Return object names; scripts write a name, or a pair of a word and its name."""
    entries = value if isinstance(value, list) else []
    return [str(entry[-1] if isinstance(entry, list) and entry else entry) for entry in entries]


def _compared(words: Sequence[str], references: Sequence[str]) -> dict[str, int]:
    # CHAIR counts a mention each time, and an object of the references once.
    there = set(references)
    wrong = sum(word not in there for word in words)
    return {
        "rows": 1,
        "mentioned": len(words),
        "hallucinated": wrong,
        "captions_with_hallucination": int(wrong > 0),
        "recalled_objects": len(there.intersection(words)),
        "reference_objects": len(there),
    }


def _verdicts(values: Mapping[str, object]) -> dict[str, int]:
    """Return the verdicts that a script's output has for its words."""
    copied: dict[str, int] = {}
    if isinstance(wrong := values.get("mscoco_hallucinated_words"), list):
        copied["hallucinated"] = len(wrong)
        copied["captions_with_hallucination"] = int(bool(wrong))
    if isinstance(verdict := mapping_at(values, "metrics").get("CHAIRs"), (int, float)):
        copied["captions_with_hallucination"] = int(bool(verdict))
    return copied
