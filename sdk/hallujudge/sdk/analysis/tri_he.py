"""Tri-HE analyses: trend, frequent pairs, prediction errors, agreement with annotators."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from hallujudge.metrics.framework.agreement import Level, human_agreement, krippendorff_alpha
from hallujudge.metrics.framework.claims import (
    ClaimParts,
    ClaimVerdict,
    Part,
    Sentence,
    Triplet,
    Verdict,
)
from hallujudge.metrics.tri_he import TriHeMetric
from hallujudge.metrics.tri_he.claim_analyses import (
    JudgedAnswer,
    Rates,
    frequent_pair_rates,
    rates,
    trend,
)

from ..archives.records import Record
from ..archives.tri_he import human_scores
from ..errors import ArchiveError
from .analyzed_run import AnalysisOptions, AnalysisTable, Cell, Run

_PARTS = ("", "object_", "relation_")
# Points of the trend by default: every ten words, and at most thirty of them.
_STEP, _MOST_STEPS = 10, 30
_NO_PLACES = (
    "no trend: the claims have no position in the answers, since they were given or are worded "
    "differently"
)
_NO_HUMAN = (
    "no agreement with annotators: the answers have no human_score "
    "(see InputOptions(own=dict(human_keys=…)))"
)
_NO_SECOND = "no Krippendorff's alpha: no answer has scores of two annotators"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    id: str
    is_scored: bool
    judged: JudgedAnswer
    human: tuple[float, ...]


def tri_he_tables(run: Run, options: AnalysisOptions) -> tuple[list[AnalysisTable], list[str]]:
    """Return the analyses of a Tri-HE run, and the reasons for missing ones.

    Raises:
        ArchiveError: A line of items.jsonl is not one that a Tri-HE run writes.
    """
    soft = "yes" if "|soft:yes|" in run.signature else ""
    metric = TriHeMetric(variant=run.variant, judge="of the run", soft=soft)
    every = [_answer(record) for record in run.items_of_report()]
    answers = [answer for answer in every if answer.is_scored]
    judged = [answer.judged for answer in answers]
    tables, notes = _trend_over_placed(judged, metric, options)
    tables += [*_frequent(judged, metric, options.share), _errors(judged)]
    more_tables, more_notes = _people(every, answers, metric)
    return tables + more_tables, notes + more_notes


def _trend_over_placed(
    answers: Sequence[JudgedAnswer], metric: TriHeMetric, options: AnalysisOptions
) -> tuple[list[AnalysisTable], list[str]]:
    """Return the trend over claims with a position, and a note on claims without one."""
    placed = [_placed(answer) for answer in answers]
    claims, known = (sum(len(a.verdicts) for a in some) for some in (answers, placed))
    if claims and not known:
        return [], [_NO_PLACES]
    table = _trend(placed, metric, options.words or _steps(placed))
    if known == claims:
        return [table], []
    left_out = f"{claims - known} of {claims} claims"
    return [table], [f"trend: {left_out} are left out, since they have no position in the answer"]


def _placed(answer: JudgedAnswer) -> JudgedAnswer:
    kept = tuple(claim for claim in answer.verdicts if claim.within_words is not None)
    return JudgedAnswer(group_id=answer.group_id, verdicts=kept)


def _people(
    every: Sequence[_Answer], scored: Sequence[_Answer], metric: TriHeMetric
) -> tuple[list[AnalysisTable], list[str]]:
    """Return agreement with annotators over scored answers, and between annotators over all."""
    rated = sum(bool(answer.human) for answer in every)
    if not rated:
        return [], [_NO_HUMAN]
    compared = sum(bool(answer.human) for answer in scored)
    notes = []
    if compared < rated:
        notes.append(
            f"agreement with annotators: {rated - compared} of {rated} answers with human scores "
            "are unscored and left out"
        )
    tables = [_agreement(scored, metric)] if compared else []
    alpha = _alpha(every)
    if not alpha.rows:
        return tables, [*notes, _NO_SECOND]
    return [*tables, alpha], notes


def _steps(answers: Sequence[JudgedAnswer]) -> tuple[int, ...]:
    last = max((c.within_words or 0 for a in answers for c in a.verdicts), default=0)
    steps = math.ceil(last / _STEP)
    return tuple(_STEP * k for k in range(1, min(steps, _MOST_STEPS - 1) + 1)) + (
        (last,) if steps >= _MOST_STEPS else ()
    )


def _trend(
    answers: Sequence[JudgedAnswer], metric: TriHeMetric, words: Sequence[int]
) -> AnalysisTable:
    points = [trend(answers, metric, words, part) for part in _PARTS]
    return AnalysisTable(
        name="trend",
        source="Wu et al., Figure 3: claims within the first words of the answers",
        rows=tuple(
            {"words": at[0].words} | _joined([point.rates for point in at])
            for at in zip(*points, strict=True)
        ),
    )


def _joined(parts: Sequence[Rates]) -> dict[str, Cell]:
    """Return the rates of all claims, of wrong objects and of wrong relations, and their counts."""
    row: dict[str, Cell] = {}
    for part, found in zip(_PARTS, parts, strict=True):
        row |= {f"{part}hallu_q": found.hallu_q, f"{part}hallu_i": found.hallu_i}
    return row | _counts(parts[0])


def _counts(found: Rates) -> dict[str, Cell]:
    return {"questions": found.questions, "images": found.images, "claims": found.claims}


def _frequent(
    answers: Sequence[JudgedAnswer], metric: TriHeMetric, share: float
) -> Iterator[AnalysisTable]:
    found = frequent_pair_rates(answers, metric, share=share)
    rows: list[Mapping[str, Cell]] = []
    for name, of, pairs in (
        ("all", found.original, found.all_pairs),
        ("frequent", found.frequent, len(found.pairs)),
    ):
        row: dict[str, Cell] = {"claims_on": f"{name} pairs", "pairs": pairs}
        row |= {"relation_hallu_q": of.hallu_q, "relation_hallu_i": of.hallu_i}
        rows.append(row | _counts(of))
    yield AnalysisTable(
        name="frequent_pairs",
        source=f"Wu et al., Table 4: relations on the most frequent {share:.0%} of object pairs",
        rows=tuple(rows),
    )
    yield AnalysisTable(
        name="pairs",
        source="the frequent pairs, the most frequent first",
        rows=tuple({"subject": one, "object": other} for one, other in found.pairs),
    )


def _errors(answers: Sequence[JudgedAnswer]) -> AnalysisTable:
    claims = [claim for answer in answers for claim in answer.verdicts]
    wrong = sum(claim.verdict is Verdict.NOT_SUPPORTED for claim in claims)
    errors = sum(claim.prediction_error for claim in claims)
    return AnalysisTable(
        name="prediction_errors",
        source="Wu et al., section 3.1: all parts are in the image, but not so paired",
        rows=(
            {
                "claims": len(claims),
                "not_supported": wrong,
                "prediction_errors": errors,
                "share_of_not_supported": errors / wrong if wrong else None,
            },
        ),
    )


def _agreement(answers: Sequence[_Answer], metric: TriHeMetric) -> AnalysisTable:
    human = {a.id: math.fsum(a.human) / len(a.human) for a in answers if a.human}
    rows: list[Mapping[str, Cell]] = []
    for part in _PARTS:
        scores = {a.id: rates([a.judged], metric, part).hallu_q for a in answers}
        found = human_agreement(scores, human)
        rows.append(
            {
                "score": f"{part}hallu_q",
                "pearson": found.pearson,
                "spearman": found.spearman,
                "answers": found.n,
            }
        )
    return AnalysisTable(
        name="human_agreement",
        source="Wu et al., Table 3: correlation with people's scores, annotators averaged",
        rows=tuple(rows),
    )


def _alpha(answers: Sequence[_Answer]) -> AnalysisTable:
    units = [answer.human for answer in answers if len(answer.human) > 1]
    levels: tuple[Level, ...] = get_args(Level) if units else ()
    return AnalysisTable(
        name="krippendorff_alpha",
        source="Krippendorff 2011: agreement of the annotators with each other",
        rows=tuple(
            {
                "level": level,
                "alpha": krippendorff_alpha(units, level),
                "answers": len(units),
                "scores": sum(map(len, units)),
            }
            for level in levels
        ),
    )


def _answer(record: Record) -> _Answer:
    evidence = record.values.get("evidence")
    claims = evidence.get("claims") if isinstance(evidence, Mapping) else None
    is_scored = record.values.get("outcome") == "scored"
    if not isinstance(evidence, Mapping) or (is_scored and not isinstance(claims, list)):
        raise ArchiveError(
            f"{record.place}: no claims in the evidence; give a run of the metric tri-he"
        )
    with ArchiveError.of_content(
        f"{record.place}: not a line that a run of tri-he writes", "score again"
    ):
        return _Answer(
            id=str(record.values["id"]),
            is_scored=is_scored,
            judged=JudgedAnswer(
                group_id=str(record.values["group_id"]), verdicts=tuple(map(_claim, claims or ()))
            ),
            human=human_scores(record._replace(values=evidence), ()),
        )


def _claim(entry: Mapping[str, object]) -> ClaimVerdict:
    part, words, score = entry["part"], entry.get("within_words"), entry.get("score")
    return ClaimVerdict(
        triplet=_parts(entry["triplet"]),
        verdict=Verdict(entry["verdict"]),
        part=None if part is None else Part(part),
        within_words=words if isinstance(words, int) else None,
        score=float(score) if isinstance(score, int | float) else None,
        judge=str(entry.get("judge", "")),
        prediction_error=entry.get("prediction_error") is True,
        reason=str(entry.get("reason", "")),
    )


def _parts(value: object) -> ClaimParts:
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        raise TypeError(f"a triplet is {value!r:.60}")
    return Triplet(*value) if len(value) != 1 else Sentence(*value)
