"""Reading of the verdicts of a run's folder."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hallujudge.judge_service.errors import fault_of
from hallujudge.metrics import Outcome

from ..archives.records import Record
from ..errors import ArchiveError, UnsupportedError
from ..runs.names import ITEMS
from ..runs.stored import records_of, result_of
from .values import DecidedItem

if TYPE_CHECKING:
    from ..runs.read import StoredRun

__all__ = ["KINDS", "divisor", "read_verdicts"]

KINDS = {"chair": "mention", "tri-he": "claim", "event-hallusion": "description"}
"""Metrics whose verdicts labels can correct, and what a verdict is on."""

_CLOSE = 1e-6


def read_verdicts(run: StoredRun) -> Iterator[DecidedItem]:
    """Yield the scored items of a run with their verdicts.

    Raises:
        UnsupportedError: The run's metric has no verdicts that labels could correct.
        ArchiveError: A line can't be read.
    """
    name = run.report.metric
    if name not in KINDS:
        raise UnsupportedError(
            f"{run.folder}: scores of {name} do not depend on verdicts that labels could correct; "
            f"give a run of {', '.join(KINDS)}"
        )
    claims_of = import_module(f".{name.replace('-', '_')}", __package__).claims_of
    for record in records_of(run.folder / ITEMS, run.signature):
        result = result_of(record, run.metric.columns)
        if result.outcome is Outcome.SCORED:
            names = (column.name for column in run.metric.columns)
            statistics = dict(zip(names, map(float, result.statistics), strict=True))
            try:
                claims = tuple(claims_of(record.values.get("evidence"), run.report.settings))
            except (KeyError, TypeError, ValueError) as err:
                raise ArchiveError(
                    f"{record.place}: the evidence has no verdicts: {fault_of(err)}; score again"
                ) from err
            item = DecidedItem(
                id=result.id,
                cluster=result.group_id,
                statistics=statistics,
                claims=claims,
                fields=result.fields,
                response=_text(record.values.get("response")),
            )
            _check(item, run, record)
            yield item


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _check(item: DecidedItem, run: StoredRun, record: Record) -> None:
    """Refuse a line whose verdicts do not add up to its statistics."""
    for column in run.metric.judged:
        if column.of == "claim":
            found = math.fsum(
                claim.weight * (1.0 - claim.counted if column.supported else claim.counted)
                for claim in item.claims
                if claim.hallucinated is not None
            )
            told = item.statistics[column.column] * divisor(item.statistics, column.divided_by)
            if not math.isclose(found, told, abs_tol=_CLOSE, rel_tol=_CLOSE):
                raise ArchiveError(
                    f"{record.place}: {column.column} is {told:g}, but the verdicts give "
                    f"{found:g}; the line was changed: score again"
                )


def divisor(statistics: Mapping[str, float], column: str) -> float:
    """Return what an item's number of hallucinated claims is divided by."""
    return statistics[column] if column else 1.0
