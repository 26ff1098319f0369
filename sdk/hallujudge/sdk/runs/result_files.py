"""Reads the files of a run: its report, items, analysis and calibration."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hallujudge.judge_service.engine.spec import metric_of
from hallujudge.judge_service.errors import fault_of
from hallujudge.metrics import (
    Bound,
    Column,
    Coverage,
    IntervalSettings,
    ItemResult,
    Metric,
    MetricError,
    Outcome,
    Report,
    Score,
)
from hallujudge.metrics.calibration.calibrated_scores import Calibration
from hallujudge.metrics.framework.claims import ChoiceShare
from hallujudge.metrics.framework.report import JudgeShare
from hallujudge.metrics.framework.signature import parsed_signature

from .. import runs
from ..archives.json_files import read_json, shown
from ..archives.records import Record, read_records
from ..archives.stored_files import read_stored, refuse_schema
from ..errors import ArchiveError, HallujudgeError
from .manifest import ANALYSIS, CALIBRATION

if TYPE_CHECKING:
    from ..report.analysis_tables import Analysis

# The interval in signatures and manifests: jackknife-wilson-0.95, or with the number of groups
# jackknife-wilson-0.95-12-groups.
_INTERVAL = re.compile(r"jackknife-wilson-(?P<confidence>\d[\d.e-]*\d)(-\d+-groups)?")
_MOST_ITEMS = 2**63
_HUGE = 1e300
_KINDS = {
    "metric": str,
    "variant": str,
    "signature": str,
    "settings": dict,
    "groups": dict,
    "scores": dict,
    "coverage": dict,
    "totals": dict,
}
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}


def head_of(path: Path) -> dict[str, Any]:
    """Return the content of ``report.json``.

    Raises:
        ArchiveError: The file can't be read, or is not a report.
        VersionMismatchError: A newer release wrote it.
    """
    if not path.parent.is_dir():
        raise ArchiveError(f"{path.parent}: not a folder; give the folder of a run")
    content = read_json(path)
    # Before the keys, which a newer release may have changed.
    refuse_schema(content, "report", str(path))
    if not isinstance(content, dict) or not all(
        isinstance(content.get(name), kind) for name, kind in _KINDS.items()
    ):
        raise ArchiveError(
            f"{path}: not a report of hallujudge: it needs {', '.join(_KINDS)}; give the folder "
            "of a run"
        )
    return content


def stored_report(head: Mapping[str, Any], path: Path) -> Report:
    """Return the report that a file holds.

    Raises:
        ArchiveError: The content is not a report.
    """
    with ArchiveError.of_content(f"{path}: not a report of hallujudge", "score again"):
        return Report(
            metric=head["metric"],
            variant=head["variant"],
            signature=head["signature"],
            scores=_scores(head["scores"], "scores"),
            coverage=_coverage(head["coverage"]),
            groups={
                key: {
                    value: _scores(scores, f"groups.{key}.{value}")
                    for value, scores in values.items()
                }
                for key, values in head["groups"].items()
            },
            totals={
                name: float(_number(total, f"totals.{name}"))
                for name, total in head["totals"].items()
            },
            settings={
                name: _text(head["settings"], name, "settings.") for name in head["settings"]
            },
            item_set=str(head.get("item_set", "")),
            references=str(head.get("references", "")),
            notes=tuple(_text({"note": note}, "note") for note in head.get("notes", ())),
            judging=tuple(_share(share) for share in head.get("judging", ())),
            traits={
                name: _number(number, f"traits.{name}")
                for name, number in _object(head, "traits").items()
            },
        )


def metric_of_head(head: Mapping[str, Any], folder: Path) -> Metric:
    """Return the metric as the run used it, without fields that only the signature has.

    Raises:
        ArchiveError: The metric, its variant or an option is unknown.
    """
    try:
        return metric_of(head["metric"], head["variant"], head["settings"])
    except (HallujudgeError, MetricError) as err:
        raise ArchiveError(f"{folder / 'report.json'}: {err}") from err


def interval_of(signature: str, path: Path) -> tuple[IntervalSettings, str]:
    """Return how the intervals of a run were made, and the release that made them.

    Args:
        signature: The run's signature.
        path: The file that it is from.

    Raises:
        ArchiveError: The signature's interval is unknown.
    """
    parts = parsed_signature(signature)
    return interval_named(parts.get("ci", ""), path), parts.get("v", "")


def interval_named(name: str, path: Path) -> IntervalSettings:
    """Return how intervals are made, from the name that signatures and manifests give it.

    Args:
        name: The name, such as ``jackknife-wilson-0.95``.
        path: The file that it is from.

    Raises:
        ArchiveError: The name is unknown.
    """
    match = _INTERVAL.fullmatch(name)
    if match is None:
        raise ArchiveError(
            f"{path}: the interval {name!r:.60} is unknown; recompute the report with the release "
            "that wrote it"
        )
    return IntervalSettings(confidence=float(match["confidence"]))


def records_of(path: Path, signature: str) -> Iterator[Record]:
    """Yield the records of ``items.jsonl``.

    Raises:
        ArchiveError: A line can't be read, or is from another run.
    """
    for record in read_records(path):
        refuse_schema(record.values, "item", record.place)
        if record.values.get("signature") != signature:
            raise ArchiveError(
                f"{record.place}: the signature differs from report.json; the files are from "
                "different runs"
            )
        yield record


def result_of(record: Record, columns: Sequence[Column]) -> ItemResult:
    """Return the result of a record, without evidence.

    Args:
        record: The record.
        columns: The metric's statistics.

    Raises:
        ArchiveError: The record is not a line of ``items.jsonl``.
    """
    line: Mapping[str, Any] = record.values
    statistics = line.get("statistics")
    names = {column.name for column in columns}
    try:
        outcome = _outcome(line["outcome"])
        # Unscored items may have none, and items that the variant leaves out.
        if not isinstance(statistics, Mapping) or (statistics and set(statistics) != names):
            raise ValueError(f"the statistics are {json.dumps(statistics)[:80]}")
        return ItemResult(
            id=_text(line, "id"),
            group_id=_text(line, "group_id"),
            outcome=outcome,
            reason=line.get("reason", ""),
            detail=line.get("detail", ""),
            statistics=tuple(
                _statistic(column, statistics[column.name]) for column in columns if statistics
            ),
            scores={
                name: _number_or_none(value, f"scores.{name}")
                for name, value in _object(line, "scores").items()
            },
            fields=dict(_object(line, "fields")),
            # Lines of a run that does not say what it compared with have no hashes.
            question_hash=str(line.get("question_hash", "")),
            reference_hash=str(line.get("reference_hash", "")),
            traits=_counts(line, "traits", "line"),
            kept=_kept(line, columns),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as err:
        raise ArchiveError(
            f"{record.place}: not a line of items.jsonl: {fault_of(err)}. Score the run again"
        ) from err


def _kept(line: Mapping[str, Any], columns: Sequence[Column]) -> tuple[float, ...]:
    numbers = line.get("kept", [])
    if not isinstance(numbers, list) or len(numbers) not in (0, len(columns)):
        raise ValueError(f"kept is {shown(numbers)}, not a list of {len(columns)} numbers")
    return tuple(float(_number(number, "kept")) for number in numbers)


def is_counted(line: Mapping[str, object]) -> bool:
    """Return whether a line of ``items.jsonl`` counts among the report's items.

    An item that the variant leaves out has neither statistics nor a reason.
    """
    return bool(line.get("statistics", True) or line.get("reason"))


def _text(line: Mapping[str, object], key: str, where: str = "") -> str:
    value = line[key]
    if not isinstance(value, str):
        # Callers catch ValueError and show its message.
        raise ValueError(f"{where}{key} is {shown(value)}, not a text")  # noqa: TRY004
    return value


def _object(line: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = line.get(key, {})
    if not isinstance(value, Mapping):
        raise ValueError(f"{key} is {shown(value)}, not an object")  # noqa: TRY004
    return value


def _outcome(value: object) -> Outcome:
    if not isinstance(value, str) or value not in _OUTCOMES:
        raise ValueError(f"outcome is {shown(value)}, not {' or '.join(_OUTCOMES)}")
    return _OUTCOMES[value]


def _statistic(column: Column, value: object) -> int | float:
    """Return a statistic.

    Raises:
        ValueError: It is not a number, or no count that a tally can hold.
    """
    number = _number(value, column.name)
    if problem := column.problem(number):
        raise ValueError(problem)
    return int(number) if column.integral else float(number)


def _number(value: object, field: str) -> int | float:
    """Return a number of a file.

    Raises:
        ValueError: It is not one, or is NaN or infinite.
    """
    # NaN is in no range; and isfinite() fails for whole numbers of hundreds of digits.
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_HUGE < value < _HUGE:
        raise ValueError(f"{field} is {shown(value)}, not a finite number")
    return value


def _number_or_none(value: object, field: str) -> float | None:
    return None if value is None else _number(value, field)


def _count(values: Mapping[str, Any], key: str, field: str) -> int:
    value = values[key]
    # True is an int in Python, and no number of items.
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST_ITEMS:
        raise ValueError(f"{field}.{key} is {shown(value)}, not a number of items")
    return value


def _counts(values: Mapping[str, Any], key: str, field: str) -> dict[str, int]:
    counts = _object(values, key)
    return {name: _count(counts, name, f"{field}.{key}") for name in counts}


def _scores(values: Mapping[str, Any], field: str) -> dict[str, Score]:
    return {name: _score(_object(values, name), name, f"{field}.{name}") for name in values}


def _score(score: Mapping[str, Any], name: str, field: str) -> Score:
    value, low, high = (
        None if score[key] is None else float(_number(score[key], f"{field}.{key}"))
        for key in ("value", "ci_low", "ci_high")
    )
    return Score(name=name, value=value, ci_low=low, ci_high=high, n=_count(score, "n", field))


def _coverage(values: Mapping[str, Any]) -> Coverage:
    items, scored, unscored = (
        _count(values, key, "coverage") for key in ("items", "scored", "unscored")
    )
    bounds = _object(values, "bounds")
    return Coverage(
        items=items,
        scored=scored,
        unscored=unscored,
        reasons=_counts(values, "reasons", "coverage"),
        bounds={name: _bound(_object(bounds, name), f"coverage.bounds.{name}") for name in bounds},
    )


def _bound(values: Mapping[str, Any], field: str) -> Bound:
    best, worst = (_number(values[key], f"{field}.{key}") for key in ("best", "worst"))
    return Bound(best=best, worst=worst)


def _share(values: Mapping[str, Any]) -> JudgeShare:
    counts = ("decided", "calls", "prompt_tokens", "cached_tokens", "completion_tokens", "reused")
    return JudgeShare(
        judge=_text(values, "judge"),
        declined=_counts(values, "declined", "judging"),
        cost=_number_or_none(values.get("cost"), "judging.cost"),
        choice_share=_choice_share(_object(values, "choice_share")),
        **{
            key: _count(values, key, "judging")
            for key in counts
            if key in values or key == "decided"
        },
    )


def _choice_share(values: Mapping[str, Any]) -> ChoiceShare | None:
    if not values:
        return None
    mean = _number(values.get("mean"), "judging.choice_share.mean")
    return ChoiceShare(mean=mean, n=_count(values, "n", "judging.choice_share"))


def stored_analysis(folder: Path) -> Analysis | None:
    """Return the analysis in a run's folder; None without one.

    Raises:
        ArchiveError: The file is damaged.
    """
    path = folder / ANALYSIS
    if not path.exists():
        return None
    stored: dict[str, object] = read_stored(
        path, dict, "analysis", "an analysis", "analyze the run again"
    )
    return runs.Analysis.from_json(stored, str(path))


def read_calibration(folder: str | Path, signature: str) -> Calibration | None:
    """Return the calibration in a run's folder; None without one.

    Args:
        folder: The folder.
        signature: The run's signature.

    Raises:
        ArchiveError: The file is not a calibration, or is of other scores.
    """
    path = Path(folder) / CALIBRATION
    if not path.exists():
        return None
    found = read_stored(
        path, Calibration, "calibration", "a calibration", "run hallujudge calibrate again"
    )
    if found.run_signature != signature:
        raise ArchiveError(
            f"{path}: calibrates another run than report.json; run hallujudge calibrate again"
        )
    return found
