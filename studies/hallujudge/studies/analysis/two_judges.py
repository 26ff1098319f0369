"""Two judges of the same claims: how often their verdicts agree, and how their rates correlate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

from hallujudge.metrics.framework.agreement import (
    JudgedTwice,
    cohen_kappa,
    kendall,
    pearson,
    spearman,
)
from hallujudge.metrics.framework.claims import ClaimVerdict, Sentence, Verdict
from hallujudge.metrics.framework.signature import judge_of
from hallujudge.metrics.seen_claims.claim_kinds import KINDS, kind_of
from hallujudge.sdk.report.analysis_tables import AnalysisTable
from hallujudge.sdk.report.table_pages import Cell

from .analyzed_run import AnalyzedRun

JudgedAnswers: TypeAlias = "Mapping[str, tuple[str, Sequence[ClaimVerdict]]]"
"""Id of an answer -> its image, and the verdicts on its claims in order."""

_ALL = "all"
_SENTENCE = "sentence"


class _Pair(NamedTuple):
    """What two judges say of one claim."""

    answer: str
    image: str
    kind: str
    one: Verdict
    other: Verdict

    @property
    def is_decided(self) -> bool:
        """Whether both have a verdict."""
        return Verdict.UNSCORED not in (self.one, self.other)


def agreement_tables(
    runs: Sequence[tuple[AnalyzedRun, JudgedAnswers]],
) -> tuple[list[AnalysisTable], list[str]]:
    """Return the agreement of each two runs that judge the same claims by different judges.

    Args:
        runs: Runs of one metric, with their verdicts.
    """
    counts: list[Mapping[str, Cell]] = []
    rates: list[Mapping[str, Cell]] = []
    notes: list[str] = []
    for (one, mine), (other, theirs) in combinations(runs, 2):
        if judge_of(one.signature) == judge_of(other.signature):
            continue
        names: dict[str, Cell] = {"judge": one.name, "other_judge": other.name}
        common = mine.keys() & theirs.keys()
        # Verdicts are paired by their place, which requires the same claims in the same order.
        if not common or any(_claims(mine[each]) != _claims(theirs[each]) for each in common):
            notes.append(
                f"no agreement of {one.name} and {other.name}: their judges differ, and so do "
                "their claims; score the same answers with the same extractor"
            )
            continue
        pairs = [pair for each in mine if each in common for pair in _pairs(each, mine, theirs)]
        for kind, some in _by_kind(pairs):
            counts.append({**names, "claims_on": kind, **_agreement(some)})
            rates.append({**names, "claims_on": kind, **_correlation(some)})
    tables = (
        AnalysisTable(
            name="judge_agreement",
            source="ours: claims that two judges decide alike, and Cohen's kappa over images",
            rows=tuple(counts),
        ),
        AnalysisTable(
            name="judge_correlation",
            source="in the form of Wu et al., Table 3: an answer's share of claims that are not "
            "supported, by one judge and by the other",
            rows=tuple(rates),
        ),
    )
    return [table for table in tables if table.rows], notes


def _claims(answer: tuple[str, Sequence[ClaimVerdict]]) -> list[tuple[str, ...]]:
    return [tuple(claim.triplet) for claim in answer[1]]


def _pairs(answer: str, mine: JudgedAnswers, theirs: JudgedAnswers) -> Iterator[_Pair]:
    image, claims = mine[answer]
    for one, other in zip(claims, theirs[answer][1], strict=True):
        is_sentence = isinstance(one.triplet, Sentence)
        kind = _SENTENCE if is_sentence else kind_of(one.triplet)
        yield _Pair(answer, image, kind, one.verdict, other.verdict)


def _by_kind(pairs: Sequence[_Pair]) -> Iterator[tuple[str, Sequence[_Pair]]]:
    """Yield all claims, then those of each kind that there is."""
    yield _ALL, pairs
    found = {pair.kind for pair in pairs}
    for kind in (*KINDS, _SENTENCE):
        # Of one kind alone, the first row says it all.
        if kind in found and len(found) > 1:
            yield kind, [pair for pair in pairs if pair.kind == kind]


def _agreement(pairs: Sequence[_Pair]) -> dict[str, Cell]:
    decided = [pair for pair in pairs if pair.is_decided]
    cells = Counter((pair.one, pair.other) for pair in decided)
    yes, no = Verdict.SUPPORTED, Verdict.NOT_SUPPORTED
    found = cohen_kappa([JudgedTwice(p.image, p.one.value, p.other.value) for p in decided])
    return {
        "claims": len(decided),
        "both_support": cells[yes, yes],
        "judge_only": cells[yes, no],
        "other_only": cells[no, yes],
        "neither": cells[no, no],
        "without_verdict": len(pairs) - len(decided),
        "agreement": found.agreement,
        "kappa": found.kappa,
        "kappa_low": found.ci_low,
        "kappa_high": found.ci_high,
    }


def _correlation(pairs: Sequence[_Pair]) -> dict[str, Cell]:
    decided: dict[str, list[_Pair]] = {}
    for pair in pairs:
        if pair.is_decided:
            decided.setdefault(pair.answer, []).append(pair)
    one = [_share([pair.one for pair in some]) for some in decided.values()]
    other = [_share([pair.other for pair in some]) for some in decided.values()]
    return {
        "pearson": pearson(one, other),
        "spearman": spearman(one, other),
        "kendall": kendall(one, other),
        "answers": len(decided),
    }


def _share(verdicts: Sequence[Verdict]) -> float:
    return verdicts.count(Verdict.NOT_SUPPORTED) / len(verdicts)
