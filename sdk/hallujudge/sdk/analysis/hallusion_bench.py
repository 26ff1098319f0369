"""HallusionBench analyses: agreement of a judge or parser with given correctness labels."""

from __future__ import annotations

from ..archives.records import Record
from .given import Verdicts, agreement_tables, evidence_of
from .options import AnalysisOptions
from .runs import Run
from .values import AnalysisTable

__all__ = ["hallusion_bench_tables"]

_WORDS = {0: "wrong", 1: "right", 2: "unclear"}


def hallusion_bench_tables(
    run: Run,
    options: AnalysisOptions,  # noqa: ARG001  # none concerns this metric
) -> tuple[list[AnalysisTable], list[str]]:
    """Return the agreement of a HallusionBench run's verdicts with the labels of its answers.

    Raises:
        ArchiveError: A line of items.jsonl is not one that a HallusionBench run writes.
    """
    return agreement_tables(run, "category", _verdicts)


def _verdicts(record: Record) -> Verdicts:
    # The evidence of an item that counts in no score is empty.
    evidence = evidence_of(record, "correctness")
    ours, given = evidence.get("correctness"), evidence.get("given")
    return Verdicts(
        judge=_WORDS.get(ours) if isinstance(ours, int) else None,
        given=_WORDS.get(given) if isinstance(given, int) else None,
    )
