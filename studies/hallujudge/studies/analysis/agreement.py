"""Agreement of a run's verdicts with the judgements that came with its items, and of two judges.

HallusionBench's archives carry correctness labels, EventHallusion's carry judgements of
descriptions, MMHal-Bench's carry reviews, and those of VQA the replies of a judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

from hallujudge.metrics.event_hallusion import DESCRIPTION
from hallujudge.metrics.framework.agreement import (
    HumanAgreement,
    JudgedTwice,
    cohen_kappa,
    human_agreement,
)
from hallujudge.metrics.framework.claims import ClaimVerdict, Sentence, Verdict
from hallujudge.metrics.framework.signature import judge_of
from hallujudge.metrics.hallusion_bench import verdict_of
from hallujudge.metrics.seen_claims.claim_words import KINDS, kind_of
from hallujudge.sdk.archives.records import Record
from hallujudge.sdk.report.analysis_tables import AnalysisTable
from hallujudge.sdk.report.table_pages import Cell

from .analyzed_run import AnalyzedRun, FamilyAnalyses, Tables, cells_of, evidence_of, run_by_run

_ALL = "all"


def _correctness(answer: Mapping[str, Any]) -> str | None:
    # Archives say right, wrong or unclear. Evidence may say so too, or have a parsed answer, which
    # needs its label.
    return verdict_of(answer["answer"], answer["label"])


def _plain_answer(answer: Mapping[str, Any]) -> str | None:
    return answer.get("answer")


def _compared(
    field: str, verdict: Callable[[Mapping[str, Any]], str | None], name: str
) -> Callable[[AnalyzedRun, Mapping[str, Any]], Tables]:
    """Return what compares the verdicts of a run; see :func:`_agreement_tables`."""
    return lambda run, _: _agreement_tables(run, field, verdict, name)


def _agreement_tables(
    run: AnalyzedRun,
    field: str,
    verdict: Callable[[Mapping[str, Any]], str | None],
    judged: str,
) -> Tables:
    """Return kappa with its interval, over all items and for each group, and its counts.

    Args:
        run: The run.
        field: The field whose groups are shown; empty for none.
        verdict: Returns the judge's verdict on an answer; None if it could not be parsed.
        judged: Name of the answers that are judged; empty for any.

    Raises:
        ArchiveError: A line of items.jsonl is not one that the metric writes.
    """
    pairs: dict[str, list[JudgedTwice]] = {_ALL: []}
    items = 0
    for record in run.scored():
        items += 1
        # The evidence of an item that counts in no score is empty.
        evidence: Any = evidence_of(record, "answers")
        answers = [a for a in evidence.get("answers", ()) if not judged or a.get("name") == judged]
        given, own = evidence.get("given"), verdict(answers[0]) if answers else None
        if given is None or own is None:
            continue
        # Questions about one image hang together, so that the interval is over groups.
        pair = JudgedTwice(str(record.values.get("group_id")), given, own)
        for name in (_ALL, _field(record, field)) if field else (_ALL,):
            pairs.setdefault(name, []).append(pair)
    compared = len(pairs[_ALL])
    if not compared:
        return [], ["no agreement: no item has both a verdict of this run and a given judgement"]
    left_out = (
        f"{items - compared} of {items} scored items lack one of the verdicts and are left out"
    )
    notes = [f"agreement with given judgements: {left_out}"] if compared < items else []
    groups = {name: pairs[name] for name in (_ALL, *sorted(pairs.keys() - {_ALL}))}
    shown = field or "items_of"
    return [_kappas(shown, groups), _counts(shown, groups)], notes


def _kappas(field: str, groups: Mapping[str, list[JudgedTwice]]) -> AnalysisTable:
    rows: list[Mapping[str, Cell]] = []
    for name, pairs in groups.items():
        found = cohen_kappa(pairs)
        measures = cells_of(found, "agreement", "kappa", "ci_low", "ci_high")
        rows.append({field: name, "items": found.n, **measures})
    return AnalysisTable(
        name="given_judgements",
        source="Cohen 1960: this run's verdicts with the archive's; 95 % interval by cluster",
        rows=tuple(rows),
    )


def _counts(field: str, groups: Mapping[str, Iterable[JudgedTwice]]) -> AnalysisTable:
    rows: list[Mapping[str, Cell]] = [
        {field: name, "given": given, "judge": judge, "items": count}
        for name, pairs in groups.items()
        for (given, judge), count in sorted(Counter((p.one, p.other) for p in pairs).items())
    ]
    return AnalysisTable(
        name="given_judgement_counts",
        source="counts of each pair of verdicts",
        rows=tuple(rows),
    )


def _field(record: Record, field: str) -> str:
    fields = record.values.get("fields")
    return str(fields.get(field, "")) if isinstance(fields, Mapping) else ""


ANALYSES = tuple(
    FamilyAnalyses(metrics=(metric,), make=run_by_run(_compared(field, verdict, name), metric))
    for metric, field, verdict, name in (
        ("hallusion-bench", "category", _correctness, ""),
        # Only descriptions are judged; EventHallusion's yes/no questions are parsed by rules.
        ("event-hallusion", "split", _plain_answer, DESCRIPTION),
        ("mmhal", "type", _plain_answer, ""),
        ("vqa", "", _plain_answer, ""),
    )
)


# Two judges ---------------------------------------------------------------------------------------


JudgedAnswers: TypeAlias = "Mapping[str, tuple[str, Sequence[ClaimVerdict]]]"
"""Id of an answer -> its image, and the verdicts on its claims in order."""

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


def judge_agreement_tables(
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
        # One judge twice shows how it repeats itself, which `judge card --flips` measures.
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
    # Most analyses are of one run or of one judge, which needs no empty tables.
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
    # By answer, as Table 3 of the Tri-HE paper correlates scores of answers and not of claims.
    one = {answer: _share([pair.one for pair in some]) for answer, some in decided.items()}
    other = {answer: _share([pair.other for pair in some]) for answer, some in decided.items()}
    return correlations(human_agreement(one, other))


def correlations(found: HumanAgreement) -> dict[str, Cell]:
    """Return the cells of a correlation over answers."""
    return {**cells_of(found, "pearson", "spearman", "kendall"), "answers": found.n}


def _share(verdicts: Sequence[Verdict]) -> float:
    return verdicts.count(Verdict.NOT_SUPPORTED) / len(verdicts)
