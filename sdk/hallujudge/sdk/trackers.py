"""What of a report is logged in experiment trackers, and other places where results are read.

    report.log_to("mlflow:captions")
    hallujudge report results --to wandb:my-project

A tracker is a function of a :class:`LoggedReport`; ``log_to`` also takes one of yours. Packages add
named ones by entry points of the group ``hallujudge.trackers``. MLflow, W&B and TensorBoard get
scores, signature and page; ``every-eval-ever`` and ``hf-eval-results`` are files in shared formats;
``otel`` is events of OpenTelemetry. No tracker is imported before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from hallujudge.judge_service.entry_points import guarded, loaded, registered, registered_once
from hallujudge.metrics import Report
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.framework.signature import signature_field

from .errors import InvalidInputError

__all__ = ["LoggedReport", "Tracker", "log_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedReport:
    """What a tracker gets of a report."""

    name: str
    """The metric's name, with which the names of numbers begin."""
    numbers: Mapping[str, float]
    """``chair/chair_i`` and, with ``_ci_low`` and ``_ci_high``, the ends of its interval; the
    numbers of items and of unscored items. A score that is undefined is left out."""
    tags: Mapping[str, str]
    """The signature, metric, variant and release, each with ``hallujudge.`` before its name."""
    files: tuple[Path, ...]
    """``report.json``, and ``report.html`` if the report holds its items; they exist during the
    call."""
    step: int | None
    """The step of training; None without one."""
    report: Report
    """All scores, with intervals and groups."""
    lines: Callable[[], Iterable[Mapping[str, Any]]]
    """Returns its items as ``items.jsonl`` has them; none if the report does not hold them."""
    model: str = ""
    """The evaluated model, such as ``llava-hf/llava-1.5-7b-hf``; empty if it was not given."""
    dataset: str = ""
    """The benchmark's dataset on the Hub; empty if it was not given."""


Tracker: TypeAlias = "Callable[[LoggedReport], object]"
"""Logs a report."""

_TRACKERS = "hallujudge.trackers"
"""The entry points of trackers: each has a tracker's name, and names a :class:`TrackerAt`."""


class TrackerAt(Protocol):
    """Returns a tracker."""

    def __call__(self, place: str, /, *, model: str, dataset: str) -> Tracker:
        """Return the tracker.

        Args:
            place: What is behind the colon of its name; empty without one.
            model: The evaluated model; empty if it was not given.
            dataset: The benchmark's dataset; empty if it was not given.

        Raises:
            InvalidInputError: It lacks its place, model or dataset.
        """


def log_report(
    report: Report,
    files: Sequence[Path],
    to: str | Tracker,
    *,
    step: int | None = None,
    model: str = "",
    dataset: str = "",
    lines: Callable[[], Iterable[Mapping[str, Any]]] = tuple,
) -> None:
    """Log a report to an experiment tracker, or write it where others read results.

    Args:
        report: The report.
        files: The files that go with it.
        to: ``"mlflow"``, ``"wandb"`` or ``"tensorboard"``, which log to the run that is active, and
            otherwise to a new one. Behind a colon may be the name of an experiment or project, and
            must be TensorBoard's folder: ``"tensorboard:runs/1"``. ``"every-eval-ever"`` and
            ``"hf-eval-results"`` write files in this folder, or in one behind a colon. ``"otel"``
            emits events through the program's own provider of OpenTelemetry, or to an address
            behind a colon. Or a function.
        step: The step of training.
        model: The evaluated model as ``ORG/NAME``, which ``every-eval-ever`` needs.
        dataset: The benchmark's dataset on the Hub as ``ORG/NAME``, which ``hf-eval-results``
            needs.
        lines: Returns the items, as ``items.jsonl`` has them.

    Raises:
        InvalidInputError: The tracker is unknown, or lacks its folder, model or dataset.
        MissingExtraError: The tracker's package is not installed.
    """
    tracker = tracker_named(to, model=model, dataset=dataset) if isinstance(to, str) else to
    tracker(
        LoggedReport(
            name=report.metric,
            numbers=_numbers(report),
            tags=_tags(report, model),
            files=tuple(files),
            step=step,
            report=report,
            lines=lines,
            model=model,
            dataset=dataset,
        )
    )


def _numbers(report: Report) -> dict[str, float]:
    found: dict[str, float | None] = {
        "items": report.coverage.items,
        "unscored": report.coverage.unscored,
    }
    for name, score in report.scores.items():
        ends = {f"{name}_ci_low": score.ci_low, f"{name}_ci_high": score.ci_high}
        found |= {name: score.value, **ends}
    # Trackers refuse None, or show a chart that is empty.
    return {
        f"{report.metric}/{name}": float(value)
        for name, value in found.items()
        if value is not None
    }


def _tags(report: Report, model: str) -> dict[str, str]:
    values = {
        "signature": report.signature,
        "metric": report.metric,
        "variant": report.variant,
        "release": signature_field(report.signature, "v"),
        **({"model": model} if model else {}),
    }
    return {f"hallujudge.{name}": value for name, value in values.items()}


def tracker_named(text: str, *, model: str = "", dataset: str = "") -> Tracker:
    """Return the tracker of a name such as ``mlflow`` or ``tensorboard:runs/1``.

    Args:
        text: The name, with a place behind a colon where there is one.
        model: The evaluated model, as for :func:`log_report`.
        dataset: The benchmark's dataset, as for :func:`log_report`.

    Raises:
        InvalidInputError: It is unknown, can't be loaded, or lacks its folder, model or dataset.
    """
    name, _, place = text.partition(":")
    trackers = registered(_TRACKERS)
    if name not in trackers.names:
        known = sorted(trackers.names)
        raise InvalidInputError(f"tracker {name!r:.80} is unknown; {choose_from(name, known)}")
    entry = registered_once(_TRACKERS, name, "tracker")
    tracker_at = loaded(entry, "tracker")
    tracker: object = None
    if callable(tracker_at):
        with guarded(entry, "tracker"):
            tracker = tracker_at(place, model=model, dataset=dataset)
    if not callable(tracker):
        raise InvalidInputError(
            f"the tracker {name} ({entry.value}) must be a function that returns a "
            "function of a report; correct the entry point"
        )
    log: Tracker = tracker

    def logged(report: LoggedReport) -> None:
        with guarded(entry, "tracker"):
            log(report)

    return logged
