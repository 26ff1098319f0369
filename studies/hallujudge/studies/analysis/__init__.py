"""The papers' analyses of finished runs, computed from their files without judging again.

A family's analyses are in the module of its name, which declares them in ``ANALYSES``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from hallujudge.metrics import UnknownVariantError
from hallujudge.sdk.comparison.named_runs import RunSource, notes_of_runs
from hallujudge.sdk.errors import ArchiveError, UnsupportedError
from hallujudge.sdk.report.analysis_tables import Analysis

from ..analysis_options import OptionValue
from .analyzed_run import (
    AnalyzedRun,
    FamilyAnalyses,
    Tables,
    analyzed_runs,
    checked_options,
    described,
    joined,
)

_MODULES = ("chair", "pope", "tri_he", "mementos", "vidhal", "infact", "agreement")
"""Modules of this package that declare analyses, in the order in which tables are shown."""


def analyze(
    *runs: RunSource,
    names: Sequence[str] = (),
    options: Mapping[str, OptionValue] | None = None,
) -> Analysis:
    """Return the papers' analyses of finished runs, computed from their stored verdicts.

    Nothing is judged again, and no server is called. Which analyses there are depends on the
    metrics of the runs, and on what their archives hold; the notes say why one is missing. Several
    runs of one metric are analyzed side by side, and together where an analysis compares runs.

    Args:
        runs: Folders that ``hallujudge score`` wrote, or reports that hold their items.
        names: A name for each run, or keys with values, such as ``model=llava,prompt=2``. Empty
            for the names of the folders.
        options: Option -> value; ``hallujudge analyze --help`` lists them.

    Raises:
        ArchiveError: A folder does not hold a complete run of hallujudge.
        UnsupportedError: No run's metric has analyses.
        InvalidInputError: An option, a name or a graph is wrong.
        NotFoundError: A graph is unknown.
    """
    given = analyzed_runs(runs, names)
    analyses = list(_analyses_of(given))
    declared = [option for each in analyses for option in each.options]
    checked = checked_options(options or {}, declared)
    tables, notes = _made(analyses, given, checked)
    return Analysis(
        runs=tuple(map(described, given)),
        tables=tuple(tables),
        notes=(*dict.fromkeys(notes), *notes_of_runs((r.name, r.report.notes) for r in given)),
    )


def _made(
    analyses: Iterable[FamilyAnalyses], runs: Sequence[AnalyzedRun], options: Mapping[str, Any]
) -> Tables:
    try:
        return joined(each.make(runs, options) for each in analyses)
    # The variant is read from files of the run, which may have been changed by hand.
    except UnknownVariantError as err:
        sources = ", ".join(run.source for run in runs)
        raise ArchiveError(f"{sources}: not written by hallujudge: {err}; score again") from err


def _analyses_of(runs: Iterable[AnalyzedRun]) -> list[FamilyAnalyses]:
    """Return the analyses of the runs' families.

    Raises:
        UnsupportedError: No run's metric has any.
    """
    metrics = dict.fromkeys(run.metric for run in runs)
    if found := [each for each in all_analyses() if not metrics.keys().isdisjoint(each.metrics)]:
        return found
    known = sorted({metric for each in all_analyses() for metric in each.metrics})
    raise UnsupportedError(
        f"a run of {' and '.join(metrics)} has no analyses of its own; hallujudge table and "
        f"hallujudge compare take runs of every metric. Metrics with analyses: {', '.join(known)}"
    )


@cache
def all_analyses() -> tuple[FamilyAnalyses, ...]:
    """Return the analyses of all families."""
    # Imported on use: a run needs the modules of its family, and help pages need none.
    modules = (import_module(f".{name}", __package__) for name in _MODULES)
    return tuple(analyses for module in modules for analyses in module.ANALYSES)
