"""EventHallusion analyses: agreement of a judge of descriptions with given judgements."""

from __future__ import annotations

from ..archives.records import Record
from .given import Verdicts, agreement_tables, evidence_of
from .options import AnalysisOptions
from .runs import Run
from .values import AnalysisTable

__all__ = ["event_hallusion_tables"]


def event_hallusion_tables(
    run: Run,
    options: AnalysisOptions,  # noqa: ARG001  # none concerns this metric
) -> tuple[list[AnalysisTable], list[str]]:
    """Return the agreement of an EventHallusion run's judge with the archive's judgements.

    Raises:
        ArchiveError: A line of items.jsonl is not one that an EventHallusion run writes.
    """
    return agreement_tables(run, "split", _verdicts)


def _verdicts(record: Record) -> Verdicts:
    evidence = evidence_of(record, "judgement")
    ours, given = evidence.get("judgement"), evidence.get("given")
    return Verdicts(
        judge=ours if isinstance(ours, str) else None,
        given=given if isinstance(given, str) else None,
    )
