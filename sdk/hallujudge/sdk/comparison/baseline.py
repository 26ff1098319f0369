"""What a page compares a run's scores with: another run, or a row of a paper's table."""

from __future__ import annotations

from pathlib import Path

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.metrics.framework.published_figures import published_rows

from ..errors import InvalidInputError
from ..runs import read_run

__all__ = ["PUBLISHED", "baseline_of"]

PUBLISHED = "published:"
"""Beginning of a baseline that names a row of a paper's table."""


def baseline_of(given: str, metric: str) -> tuple[str, dict[str, float]]:
    """Return a baseline's name, with its paper and table, and its scores.

    Args:
        given: The folder of a run, or ``published:`` and the name of a row.
        metric: The metric of the run that is compared.

    Raises:
        ArchiveError: The folder does not hold a run.
        InvalidInputError: The run is of another metric, or the metric has no such row.
    """
    if given.startswith(PUBLISHED):
        return _published(given.removeprefix(PUBLISHED), metric)
    held = read_run(Path(given)).report
    if held.metric != metric:
        raise InvalidInputError(
            f"{given}: a run of {held.metric}, not of {metric}; give a run of {metric} to compare "
            "with"
        )
    values = {name: score.value for name, score in held.scores.items() if score.value is not None}
    return Path(given).name, values


def _published(name: str, metric: str) -> tuple[str, dict[str, float]]:
    rows = published_rows(metric_entry(metric).metric)
    row = next((row for row in rows if row.name == name), None)
    if row is None:
        known = ", ".join(row.name for row in rows) or "none"
        raise InvalidInputError(
            f"no published row of {metric} has the name {name!r:.80}; the rows are: {known}"
        )
    return f"{row.model} ({row.source})", dict(row.scores)
