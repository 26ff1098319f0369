"""ARGUS: hallucinated and omitted lines of video captions, in the order of the video.

Rawal et al., 2025; released ``compute_metrics.py``. A judge compares each line of a *target*
caption with a *source* caption. For hallucinations the target is the model's caption and the source
a person's; for omissions it is the other way round. Each of the two is an item.

A line that the source does not entail costs 1. So does an entailed dynamic action that is not
placed at its evidence in the source, and each earlier action that is placed after it costs 0.1. An
item's cost is the lowest sum over placements, divided by the largest sum.

* ``cost_h`` = mean cost of the model's captions (hallucinations)
* ``cost_o`` = mean cost of the people's captions (omissions)

``published`` follows the script to the last digit:

* Its dynamic programme keeps one path for each cell, so that the cost may be above the lowest one
  (:func:`.line_costs.released_matching`).
* Lines of fewer than three words, and headings, count as entailed summaries. If they are 40 % of
  the lines or more, the script refuses the clip, and so it does without lines or without a file.
* The evidence's line is the most similar one; one common letter is similar enough.
* The largest sum is none: a misplaced action adds 1 to the cost, but nothing to the sum. A cost may
  be above 1, or infinite. If both are 0, the script leaves the clip out of the mean.

``corrected``: headings are left out. Evidence needs a substring of some length, and the line
"- Reasoning: …", which the script reads where evidence is empty, is none. The cost is the lowest
one, and never above 1 (:func:`.line_costs.corrected_matching`).

In both variants a refused or undefined clip is unscored, with the reason. Difference from the
script: where its mean would be infinite, the clip is unscored too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple

from msgspec import Struct, structs

from ..framework.arrays import FloatArray
from ..framework.columns_and_scores import Column, ScoreDefinition, share
from ..framework.metric import (
    PUBLISHED,
    Metric,
    OptionDefinition,
    Paper,
    VariantDefinition,
    verdicts_option,
)
from ..framework.papers import paper
from ..framework.results import Item, ItemRecords, JsonValue, ScoredItem, UnscoredReason
from .caption_lines import (
    Matching,
    SourceLines,
    Target,
    corrected_matching,
    is_heading,
    released_matching,
)

MODES = ("hallucination", "omission")
"""What a target caption is examined for."""
ENTAILED, ACTION = "entailment", "dynamic-action"
"""The verdict and the kind of lines that have a place."""
VERDICTS = (ENTAILED, "contradiction", "underdetermined")
"""The verdicts of the released judge."""
_ANYWHERE = frozenset(["summary", "visual-description"])
# The released script refuses a caption from this share of headings and short lines on.
_REFUSED_FROM = 0.4
# What the script reads as evidence where the judge gave none.
_NO_EVIDENCE = "- Reasoning:"


class JudgedLine(NamedTuple):
    """A line of the target caption, as a judge sees it."""

    text: str
    """The line."""
    evidence: str
    """What the judge names as evidence in the source caption; empty without any."""
    kind: str
    """``summary``, ``visual-description`` or ``dynamic-action``."""
    verdict: str
    """``entailment``, ``contradiction`` or ``underdetermined``."""


class ArgusItem(Item, frozen=True, kw_only=True):
    """A target caption whose lines are compared with a source caption."""

    mode: str
    """``hallucination`` or ``omission``."""
    response: str | None
    """The target caption. None if it or its file is missing."""
    source: str | None
    """The source caption."""
    lines: tuple[JudgedLine, ...] = ()
    """The judged lines; empty without verdicts."""
    problem: str = ""
    """Why there is no response, or why there are no lines, if their file is missing or wrong."""

    def records(self) -> ItemRecords:
        """Return the mode and the person's caption as the reference."""
        return ItemRecords(
            None, [self.mode, self.source if self.mode == MODES[0] else self.response]
        )


class LineCost(NamedTuple):
    """A line with its cost."""

    text: str
    """The line."""
    kind: str
    """Its kind, or ``heading``."""
    verdict: str
    evidence: str
    """The evidence as the judge names it."""
    place: int
    """The source line at which it is placed, counted from 0; -1 for one without a place."""
    cost: float
    """1 if it is not supported, or not at its evidence."""
    penalty: float
    """The penalty for earlier actions that are placed after it."""


class ArgusEvidence(Struct, frozen=True, kw_only=True, gc=False):
    """Evidence of a caption's cost."""

    lines: tuple[LineCost, ...]
    """The lines that count."""
    sources: int
    """Number of lines of the source caption."""
    actions: int
    """Number of entailed dynamic actions."""
    cost: float
    """The cost of all lines."""
    max_cost: float
    """What it is divided by."""
    judging: tuple[dict[str, JsonValue], ...] = ()
    """The judges that were called, in order. Empty if none was."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the lines with their costs, and their sum."""
        line = structs.asdict(self) | {"lines": [dict(each._asdict()) for each in self.lines]}
        return {name: value for name, value in line.items() if name != "judging" or value}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgusMetric(Metric):
    """The mean cost of captions, of hallucinations and of omissions.

    Attributes:
        verdicts: Where verdicts on lines come from.
        judge: Identity of the judge, for the signature; empty without one.
    """

    name: ClassVar[Literal["argus"]] = "argus"
    judge_option: ClassVar[str] = "verdicts"
    summary: ClassVar[str] = "Hallucinated and omitted lines of video captions, and their order."
    papers: ClassVar[tuple[Paper, ...]] = (paper("argus"),)
    variants: ClassVar[tuple[VariantDefinition, ...]] = (
        PUBLISHED,
        VariantDefinition(
            name="corrected",
            meaning="The lowest cost, at most 1; headings and empty evidence do not count.",
        ),
    )
    options: ClassVar[tuple[OptionDefinition, ...]] = (
        verdicts_option("verdicts", "Verdicts on lines.", "those of the files"),
    )
    unit: ClassVar[Literal["captions"]] = "captions"
    # Captions' costs are fractions.
    folds: ClassVar[bool] = False
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="hallucination_cost", meaning="costs of models' captions", integral=False),
        Column(name="hallucination", meaning="models' captions with a cost"),
        Column(name="omission_cost", meaning="costs of people's captions", integral=False),
        Column(name="omission", meaning="people's captions with a cost"),
        Column(name="hallucination_open", meaning="models' captions without a cost"),
        Column(name="omission_open", meaning="people's captions without a cost"),
    )
    score_definitions: ClassVar[tuple[ScoreDefinition, ...]] = (
        share(
            "cost_h",
            "mean cost of models' captions compared with people's (ArgusCost-H)",
            "hallucination_cost",
            "hallucination",
            direction="lower",
        ),
        share(
            "cost_o",
            "mean cost of people's captions compared with models' (ArgusCost-O)",
            "omission_cost",
            "omission",
            direction="lower",
        ),
    )
    ranked_by: ClassVar[tuple[str, ...]] = ("cost_h",)
    ranking_source: ClassVar[str] = "The paper names it first, before omissions (cost_o)."

    verdicts: str = ""
    judge: str = ""

    @property
    def scores(self) -> tuple[ScoreDefinition, ...]:
        """Return the scores; published ones have no upper limit."""
        if self.variant != "published":
            return self.score_definitions
        return _UNLIMITED

    def signature_fields(self) -> tuple[tuple[str, str], ...]:
        """Return where verdicts come from, and the judge."""
        return (("verdicts", self.verdicts), *((("judge", self.judge),) if self.judge else ()))

    def problem(self, item: ArgusItem) -> tuple[UnscoredReason, str] | None:
        """Return why the lines of an item have no cost, or None if they have one."""
        if item.problem:
            return UnscoredReason.CLAIMS_INVALID, item.problem
        if not item.lines:
            return UnscoredReason.CLAIMS_MISSING, "the file has no judged lines"
        headings, number = sum(is_heading(line.text) for line in item.lines), len(item.lines)
        # Corrected leaves headings out, so that only a caption of nothing else has no lines.
        refused_from = _REFUSED_FROM if self.variant == "published" else 1.0
        if headings / number >= refused_from:
            found = f"{headings} of {number} lines are headings or have fewer than three words"
            return UnscoredReason.TOO_MANY_HEADINGS, found
        return None

    def score(self, item: ArgusItem) -> ScoredItem[ArgusEvidence]:
        """Return the cost of an item without a problem; unreadable if it is not a number."""
        source = SourceLines(item.source or "")
        published = self.variant == "published"
        known = [(line, is_heading(line.text)) for line in item.lines]
        lines = [_as_summary(line) if heading else line for line, heading in known]
        if not published:
            lines = [line for line, heading in known if not heading]
        targets = [_target(line, source, published=published) for line in lines]
        sources = len(source.lines)
        made = released_matching(targets, sources) if published else corrected_matching(targets)
        cost = made.normalized
        return ScoredItem(
            statistics=self._row(item.mode, cost if math.isfinite(cost) else None),
            scores={f"cost_{item.mode[0]}": cost} if math.isfinite(cost) else {},
            # With the judge's own verdicts on headings, which were made summaries above.
            evidence=_evidence(item.lines if published else lines, known, made, sources),
            readable=math.isfinite(cost),
        )

    def _row(self, mode: str, cost: float | None) -> tuple[float, ...]:
        """Return the statistics of a caption; the cost is None if there is none."""
        scored = (cost or 0.0, int(cost is not None))
        nothing = (0.0, 0)
        places = (scored, nothing) if mode == MODES[0] else (nothing, scored)
        left = int(cost is None)
        return (*places[0], *places[1], left * (mode == MODES[0]), left * (mode != MODES[0]))

    def unscored_row(self, item: ArgusItem) -> tuple[float, ...]:
        """Return the statistics of an unscored caption: bounds need to know its mode."""
        return self._row(item.mode, None)

    def resolve(self, items: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, FloatArray]:
        """Return the columns with every caption without a cost at 0, or at 1."""
        found = dict(items)
        for mode in MODES:
            left = items[f"{mode}_open"]
            found[mode] = items[mode] + left
            found[f"{mode}_cost"] = items[f"{mode}_cost"] + left * (not best)
        return found

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:  # noqa: ARG002
        """Return nothing: the rows of unscored captions say it."""
        return {}


# A misplaced action adds to a published cost, but not to its limit.
_UNLIMITED = tuple(
    replace(score, bounded=False, high=math.inf) for score in ArgusMetric.score_definitions
)


def _as_summary(line: JudgedLine) -> JudgedLine:
    return line._replace(kind="summary", verdict=ENTAILED)


def _target(line: JudgedLine, source: SourceLines, *, published: bool) -> Target:
    supported, anywhere = line.verdict == ENTAILED, line.kind in _ANYWHERE
    evidence = line.evidence
    if not published and evidence.startswith(_NO_EVIDENCE):
        evidence = ""
    # Evidence is looked up only where its place counts.
    needed = supported and not anywhere
    place = source.place_of(evidence, by_share=not published) if needed else None
    return Target(supported, line.kind == ACTION, anywhere, place)


def _evidence(
    lines: Sequence[JudgedLine],
    known: Sequence[tuple[JudgedLine, bool]],
    made: Matching,
    sources: int,
) -> ArgusEvidence:
    headings = {line for line, heading in known if heading}
    costs = zip(lines, made.path, made.costs, made.penalties, strict=True)
    return ArgusEvidence(
        lines=tuple(
            LineCost(
                line.text,
                "heading" if line in headings else line.kind,
                line.verdict,
                line.evidence,
                place,
                cost,
                penalty,
            )
            for line, place, cost, penalty in costs
        ),
        sources=sources,
        actions=made.actions,
        cost=made.cost,
        max_cost=made.most,
    )
