"""What a report's scores are shown next to: another run, or a row of a paper's table."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.metrics.framework.published import PublishedRow, published_rows
from hallujudge.metrics.framework.signature import judge_of

from ..errors import InvalidInputError
from ..runs import read_run

if TYPE_CHECKING:
    from hallujudge.metrics import Report

PUBLISHED = "published:"
"""Beginning of a baseline that names a row of a paper's table."""
JUDGE = "judge"
"""The field of signatures that a published row may differ in, where the user allows it."""
# Judges of a router stand one after another; a matcher's thresholds have this sign too.
_NEXT_JUDGE = re.compile(r"(?<!keep)(?<!sup)>")
# Parameters of several judges begin with the judge's name: "llm.api=chat,fallback.api=chat".
_OF_ONE_JUDGE = re.compile(r",([a-z][a-z0-9_-]*)\.[a-z_]+=")


def baseline_of(
    given: str, report: Report, allow: Container[str] = ()
) -> tuple[str, dict[str, float]]:
    """Return a baseline's name, with its paper, table and judge, and its scores.

    Args:
        given: The folder of a run, or ``published:`` and the name of a row.
        report: The report of the run that is compared.
        allow: Fields of signatures that may differ; ``judge`` allows a row of another judge.

    Raises:
        ArchiveError: The folder does not hold a run.
        InvalidInputError: The run is of another metric, the metric has no such row, or the row is
            of another judge.
    """
    if given.startswith(PUBLISHED):
        return _published(given.removeprefix(PUBLISHED), report, allow)
    held, metric = read_run(Path(given)).report, report.metric
    if held.metric != metric:
        raise InvalidInputError(
            f"{given}: a run of {held.metric}, not of {metric}; give a run of {metric} to compare "
            "with"
        )
    values = {name: score.value for name, score in held.scores.items() if score.value is not None}
    return Path(given).name, values


def deciding_judges(report: Report) -> tuple[str, ...]:
    """Return the judges whose verdicts count, with their models, as the signature names them."""
    judge = judge_of(report.signature)
    models = _NEXT_JUDGE.split(judge.partition(",")[0])
    names = list(dict.fromkeys(_OF_ONE_JUDGE.findall(judge)))
    decided = {share.judge for share in report.judging if share.decided}
    # A fallback that was never needed judged nothing.
    if len(models) == len(names) and decided:
        return tuple(model for model, name in zip(models, names, strict=True) if name in decided)
    return tuple(models)


def _published(name: str, report: Report, allow: Container[str]) -> tuple[str, dict[str, float]]:
    rows = published_rows(metric_entry(report.metric).metric)
    row = next((row for row in rows if row.name == name), None)
    if row is None:
        known = ", ".join(row.name for row in rows) or "none"
        raise InvalidInputError(
            f"no published row of {report.metric} has the name {name!r:.80}; the rows are: {known}"
        )
    if JUDGE not in allow:
        _refuse_other_judge(row, rows, deciding_judges(report))
    return f"{row.model} ({row.source})", dict(row.scores)


def _refuse_other_judge(
    row: PublishedRow, rows: Sequence[PublishedRow], judges: Sequence[str]
) -> None:
    """Refuse a row whose numbers another judge made: they differ by the judge alone.

    Raises:
        InvalidInputError: The row names its judge, and another one judged the run.
    """
    if not row.judge or _are(judges, row.judge):
        return
    same = [each.name for each in rows if _are(judges, each.judge)]
    advice = f"choose one of {', '.join(same)}" if same else "no row is of this run's judge"
    raise InvalidInputError(
        f"the row {row.name} was judged by {row.judge}, and this run by {' and '.join(judges)}; "
        f"{advice}, or allow the difference with CompareOptions(allow={JUDGE})"
    )


def _are(judges: Sequence[str], name: str) -> bool:
    """Return whether all judges are the one of a name, which servers write in several ways."""
    # All parts of a name such as published/mpnet must be there, whatever the marks between them.
    parts = [_plain(part) for part in name.split("/")]
    return bool(name) and all(part in _plain(judge) for judge in judges for part in parts)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
