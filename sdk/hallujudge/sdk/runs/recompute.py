"""Recomputes a run's report from the files in its folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, cast

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.metrics import (
    Column,
    IntervalSettings,
    ItemResult,
    Metric,
    MetricError,
    Outcome,
    Report,
    Tally,
)

from ..archives.json_files import read_json
from ..archives.records import Record, read_records
from ..errors import ArchiveError, HallujudgeError

__all__ = ["recompute", "statistic_names"]

_INTERVAL = re.compile(r"jackknife-wilson-(?P<confidence>\d[\d.e-]*\d)(-\d+-groups)?")
_BATCH = 4096


def statistic_names(metric: str) -> tuple[str, ...]:
    """Return the names of a metric's statistics, in the order that results carry them."""
    return tuple(column.name for column in metric_entry(metric).metric.columns)


def recompute(folder: str | Path, *, group_by: Sequence[str] | None = None) -> Report:
    """Return the report of a run's folder, from the statistics in its ``items.jsonl``.

    Nothing is judged again. The values agree with ``report.json``; the groups may be others.

    Args:
        folder: What ``hallujudge score`` or ``report.save`` wrote.
        group_by: Fields to report groups by, out of those that the items carry; None for the
            groups of ``report.json``.

    Raises:
        ArchiveError: The folder does not hold a complete run.
    """
    path = Path(folder)
    head = _head(path / "report.json")
    metric = _metric(head, path)
    keys = tuple(head["groups"]) if group_by is None else tuple(group_by)
    tally = Tally(metric, keys)
    batch: list[ItemResult] = []
    for result in _results(path / "items.jsonl", metric, head["signature"]):
        batch.append(result)
        if len(batch) == _BATCH:
            tally.add_all(batch)
            batch = []
    tally.add_all(batch)
    parts = dict(part.partition(":")[::2] for part in head["signature"].split("|")[1:])
    report = tally.finish(_interval(parts, path / "report.json"), version=parts.get("v", ""))
    return replace(
        report,
        signature=head["signature"],
        settings=head["settings"],
        notes=tuple(head.get("notes", ())),
    )


def _head(path: Path) -> dict[str, Any]:
    content = read_json(path)
    names = {"metric": str, "variant": str, "signature": str, "settings": dict, "groups": dict}
    if not isinstance(content, dict) or not all(
        isinstance(content.get(name), kind) for name, kind in names.items()
    ):
        raise ArchiveError(
            f"{path}: not a report of hallujudge: it needs {', '.join(names)}; give the folder "
            "of a run"
        )
    return content


def _metric(head: Mapping[str, Any], folder: Path) -> Metric:
    """Return the metric as the run used it, without fields that only the signature has."""
    try:
        declared = metric_entry(head["metric"]).metric
        options = {
            option.name: head["settings"][option.name]
            for option in declared.options
            if option.name in head["settings"]
        }
        labels = {
            entry.name: ""
            for entry in fields(declared)
            if entry.init and entry.default is MISSING and entry.default_factory is MISSING
        }
        metric: Any = declared(**labels | options, variant=head["variant"])
        return cast("Metric", metric)
    except (HallujudgeError, MetricError) as err:
        raise ArchiveError(f"{folder / 'report.json'}: {err}") from err


def _interval(parts: Mapping[str, str], path: Path) -> IntervalSettings:
    match = _INTERVAL.fullmatch(parts.get("ci", ""))
    if match is None:
        raise ArchiveError(
            f"{path}: the signature's interval {parts.get('ci')!r:.60} is unknown; recompute the "
            "report with the release that wrote it"
        )
    return IntervalSettings(confidence=float(match["confidence"]))


def _results(path: Path, metric: Metric, signature: str) -> Iterator[ItemResult]:
    for record in read_records(path):
        if record.values.get("signature") != signature:
            raise ArchiveError(
                f"{record.place}: the signature differs from report.json; the files are from "
                "different runs"
            )
        yield _result(record, metric.columns)


def _result(record: Record, columns: Sequence[Column]) -> ItemResult:
    line: Mapping[str, Any] = record.values
    statistics = line.get("statistics")
    names = {column.name for column in columns}
    try:
        if not isinstance(statistics, Mapping) or (statistics and set(statistics) != names):
            raise ValueError(f"the statistics are {json.dumps(statistics)[:80]}")
        return ItemResult(
            id=line["id"],
            group_id=line["group_id"],
            outcome=Outcome(line["outcome"]),
            reason=line.get("reason", ""),
            statistics=tuple(
                (int if column.integral else float)(statistics[column.name])
                for column in columns
                if statistics
            ),
            fields=dict(line.get("fields", {})),
        )
    except (KeyError, TypeError, ValueError) as err:
        raise ArchiveError(f"{record.place}: not a line of items.jsonl: {err}") from err
