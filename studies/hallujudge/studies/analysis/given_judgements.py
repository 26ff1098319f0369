"""Agreement of a run's verdicts with the judgements that came with its items.

HallusionBench's archives carry correctness labels, EventHallusion's carry judgements of
descriptions, MMHal-Bench's carry reviews, and those of VQA the replies of a judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hallujudge.metrics.event_hallusion import DESCRIPTION
from hallujudge.metrics.framework.agreement import JudgedTwice, cohen_kappa
from hallujudge.metrics.hallusion_bench import verdict_of
from hallujudge.sdk.archives.records import Record
from hallujudge.sdk.errors import ArchiveError
from hallujudge.sdk.report.analysis_tables import AnalysisTable
from hallujudge.sdk.report.table_pages import Cell

from .analyzed_run import (
    AnalyzedRun,
    FamilyAnalyses,
    Tables,
    run_by_run,
)

_ALL_ITEMS = "all"


def _correctness_verdicts(record: Record) -> Verdicts:
    # The evidence of an item that counts in no score is empty.
    evidence: Any = evidence_of(record, "answers")
    # Archives say right, wrong or unclear. Evidence may say so too, or have a parsed answer, which
    # needs its label.
    judged = [verdict_of(each["answer"], each["label"]) for each in evidence.get("answers", ())]
    return Verdicts(judge=judged[0] if judged else None, given=evidence.get("given"))


def _description_verdicts(record: Record) -> Verdicts:
    evidence: Any = evidence_of(record, "answers")
    # Only descriptions are judged; EventHallusion's yes/no questions are parsed by rules.
    judged = [each for each in evidence.get("answers", ()) if each.get("name") == DESCRIPTION]
    return Verdicts(judge=judged[0].get("answer") if judged else None, given=evidence.get("given"))


def _answer_verdicts(record: Record) -> Verdicts:
    evidence: Any = evidence_of(record, "answers")
    judged = [each.get("answer") for each in evidence.get("answers", ())]
    return Verdicts(judge=judged[0] if judged else None, given=evidence.get("given"))


def _compared(
    field: str, verdicts_of: Callable[[Record], Verdicts]
) -> Callable[[AnalyzedRun, Mapping[str, Any]], Tables]:
    """Return what compares the verdicts of a run; see :func:`agreement_tables`."""
    return lambda run, _: agreement_tables(run, field, verdicts_of)


def evidence_of(record: Record, key: str) -> Mapping[str, object]:
    """Return the evidence of a line.

    Args:
        record: The line.
        key: A key that the metric's evidence always has.

    Raises:
        ArchiveError: The line is not one that the metric writes.
    """
    evidence = record.values.get("evidence")
    if not isinstance(evidence, Mapping) or (evidence and key not in evidence):
        raise ArchiveError(f"{record.place}: no {key!r} in the evidence; score the run again")
    return evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """Verdicts of the judge and of the archive on an item; None if missing or unparsed."""

    judge: str | None
    """The judge's verdict."""
    given: str | None
    """The archive's verdict."""


def agreement_tables(
    run: AnalyzedRun, field: str, verdicts_of: Callable[[Record], Verdicts]
) -> Tables:
    """Return kappa with its interval, over all items and for each group, and its counts.

    Args:
        run: The run.
        field: The field whose groups are shown; empty for none.
        verdicts_of: Reads the verdicts of a line.

    Raises:
        ArchiveError: A line of items.jsonl is not one that the metric writes.
    """
    pairs: dict[str, list[JudgedTwice]] = {_ALL_ITEMS: []}
    items = 0
    for record in run.scored():
        items += 1
        found = verdicts_of(record)
        if found.judge is None or found.given is None:
            continue
        pair = JudgedTwice(str(record.values.get("group_id")), found.given, found.judge)
        for name in (_ALL_ITEMS, _field(record, field)) if field else (_ALL_ITEMS,):
            pairs.setdefault(name, []).append(pair)
    compared = len(pairs[_ALL_ITEMS])
    if not compared:
        return [], ["no agreement: no item has both a verdict of this run and a given judgement"]
    left_out = (
        f"{items - compared} of {items} scored items lack one of the verdicts and are left out"
    )
    notes = [f"agreement with given judgements: {left_out}"] if compared < items else []
    groups = {name: pairs[name] for name in (_ALL_ITEMS, *sorted(pairs.keys() - {_ALL_ITEMS}))}
    shown = field or "items_of"
    return [_kappas(shown, groups), _counts(shown, groups)], notes


def _kappas(field: str, groups: Mapping[str, list[JudgedTwice]]) -> AnalysisTable:
    rows: list[Mapping[str, Cell]] = []
    for name, pairs in groups.items():
        found = cohen_kappa(pairs)
        rows.append(
            {
                field: name,
                "items": found.n,
                "agreement": found.agreement,
                "kappa": found.kappa,
                "ci_low": found.ci_low,
                "ci_high": found.ci_high,
            }
        )
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
    FamilyAnalyses(metrics=(metric,), make=run_by_run(_compared(field, verdicts_of), metric))
    for metric, field, verdicts_of in (
        ("hallusion-bench", "category", _correctness_verdicts),
        ("event-hallusion", "split", _description_verdicts),
        ("mmhal", "type", _answer_verdicts),
        ("vqa", "", _answer_verdicts),
    )
)
