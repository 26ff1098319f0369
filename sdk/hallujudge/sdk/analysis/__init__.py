"""The papers' analyses of a run, computed from its files without judging again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from hallujudge.metrics import ItemResult, Report, UnknownVariantError

from ..errors import ArchiveError, UnsupportedError
from .analyzed_run import Analysis, AnalysisOptions, AnalysisTable, Cell, Run
from .given_judgements import event_hallusion_tables, hallusion_bench_tables
from .mementos import mementos_tables
from .tri_he import tri_he_tables

__all__ = [
    "ANALYSIS_FILE",
    "Analysis",
    "AnalysisOptions",
    "AnalysisTable",
    "Cell",
    "analyze",
    "analyze_results",
]


ANALYSIS_FILE = "analysis.json"
"""Name of the analysis file in a run's folder."""

_Tables: TypeAlias = Callable[[Run, AnalysisOptions], tuple[list[AnalysisTable], list[str]]]
_METRICS: Mapping[str, _Tables] = {
    "event-hallusion": event_hallusion_tables,
    "hallusion-bench": hallusion_bench_tables,
    "mementos": mementos_tables,
    "tri-he": tri_he_tables,
}


def analyze(run: str | Path, options: AnalysisOptions | None = None) -> Analysis:
    """Return the analyses of a run, computed from its stored verdicts.

    Nothing is judged again, and no server is called. For ``tri-he``: the trend over the first words
    of the answers, relation rates on frequent object pairs, prediction errors, and agreement with
    human scores and between annotators. For ``mementos``: correlation between object and
    behaviour scores, recall against the length of the episode, and how often a made-up behaviour is
    the usual companion of a true one. For ``hallusion-bench`` and ``event-hallusion``: agreement of
    the run's verdicts with the judgements that the archive holds (Cohen's kappa).

    Args:
        run: The folder that ``hallujudge score`` wrote: ``report.json`` and ``items.jsonl``.
        options: Settings of the analyses.

    Raises:
        ArchiveError: The folder does not hold a complete run of hallujudge.
        UnsupportedError: The run's metric has no such analyses.
        InvalidInputError: A graph can't be read.
        NotFoundError: A graph is unknown.
    """
    return _analysis(Run.open(Path(run)), options or AnalysisOptions())


def analyze_results(
    report: Report, results: Iterable[ItemResult], options: AnalysisOptions | None = None
) -> Analysis:
    """Return the analyses of a run in this process.

    Args:
        report: The report that :meth:`Client.score` returned.
        results: All results of the run, as ``on_batch`` received them, in any order.
        options: Settings of the analyses.

    Raises:
        ArchiveError: The results are not those of the report.
        UnsupportedError: See :func:`analyze`.
        InvalidInputError: See :func:`analyze`.
        NotFoundError: See :func:`analyze`.
    """
    return _analysis(Run.of(report, results), options or AnalysisOptions())


def _analysis(run: Run, options: AnalysisOptions) -> Analysis:
    if (tables_of := _METRICS.get(run.metric)) is None:
        raise UnsupportedError(
            f"{run.source}: a run of {run.metric!r} can't be analyzed; give a run of "
            f"{', '.join(sorted(_METRICS))}. Analyses of other metrics compare several runs: see "
            "docs/how-to/score-questions.md"
        )
    try:
        tables, notes = tables_of(run, options)
    except UnknownVariantError as err:
        raise ArchiveError(f"{run.source}: not written by hallujudge: {err}; score again") from err
    return Analysis(
        metric=run.metric,
        variant=run.variant,
        signature=run.signature,
        tables=tuple(tables),
        notes=tuple(notes),
    )
