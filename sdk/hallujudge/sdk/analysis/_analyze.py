"""A run's folder -> its analyses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from ..errors import UnsupportedError
from ._mementos import mementos_tables
from ._options import AnalysisOptions
from ._run_folder import RunFolder
from ._tri_he import tri_he_tables
from ._values import Analysis, AnalysisTable

__all__ = ["ANALYSIS_FILE", "AnalysisOptions", "analyze"]

ANALYSIS_FILE = "analysis.json"
"""Its name in a run's folder."""

_Tables: TypeAlias = Callable[[RunFolder, AnalysisOptions], tuple[list[AnalysisTable], list[str]]]
_METRICS: Mapping[str, _Tables] = {"mementos": mementos_tables, "tri-he": tri_he_tables}


def analyze(run: str | Path, options: AnalysisOptions | None = None) -> Analysis:
    """The paper's analyses of a run, from the verdicts that it kept.

    Nothing is judged again, and no server is asked. For ``tri-he``: the trend over the first words
    of the answers, relation rates on frequent object pairs, prediction errors, and agreement with
    people's scores and of people with each other. For ``mementos``: correlation between object and
    behaviour scores, recall against the length of the episode, and how often a made-up behaviour is
    the usual companion of a true one.

    Args:
        run: The folder that ``hallujudge score`` left: ``report.json`` and ``items.jsonl``.
        options: What can be set.

    Raises:
        ArchiveError: The folder holds no finished run, or files that are none of ours.
        UnsupportedError: The run's metric has no such analyses.
        InvalidInputError: A graph can't be read.
        NotFoundError: A graph is unknown.
    """
    folder = RunFolder.open(Path(run))
    if (tables_of := _METRICS.get(folder.metric)) is None:
        raise UnsupportedError(
            f"{folder.path}: a run of {folder.metric!r}; analyses of a run are there for "
            f"{', '.join(sorted(_METRICS))}. The others' need several runs: see "
            "docs/question-answering.md"
        )
    tables, notes = tables_of(folder, options or AnalysisOptions())
    return Analysis(
        metric=folder.metric,
        variant=folder.variant,
        signature=folder.signature,
        tables=tuple(tables),
        notes=tuple(notes),
    )
