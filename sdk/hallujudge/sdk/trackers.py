"""Experiment trackers: a report's scores, signature and page in MLflow, W&B or TensorBoard.

    report.log_to("mlflow:captions")
    hallujudge report results --to wandb:my-project

A tracker is a function of a :class:`LoggedReport`; ``log_to`` also takes one of yours. No tracker
is imported before it is used.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from hallujudge.metrics import Report
from hallujudge.metrics.framework.signature import signature_field

from .errors import InvalidInputError, MissingExtraError

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


Tracker: TypeAlias = "Callable[[LoggedReport], object]"
"""Logs a report."""


def log_report(
    report: Report, files: Sequence[Path], to: str | Tracker, *, step: int | None = None
) -> None:
    """Log a report to an experiment tracker.

    Args:
        report: The report.
        files: The files that go with it.
        to: ``"mlflow"``, ``"wandb"`` or ``"tensorboard"``, which log to the run that is active, and
            otherwise to a new one. Behind a colon may be the name of an experiment or project, and
            must be TensorBoard's folder: ``"tensorboard:runs/1"``. Or a function.
        step: The step of training.

    Raises:
        InvalidInputError: The tracker is unknown, or TensorBoard has no folder.
        MissingExtraError: The tracker's package is not installed.
    """
    tracker = tracker_named(to) if isinstance(to, str) else to
    tracker(
        LoggedReport(
            name=report.metric,
            numbers=_numbers(report),
            tags=_tags(report),
            files=tuple(files),
            step=step,
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
    return {
        f"{report.metric}/{name}": float(value)
        for name, value in found.items()
        if value is not None
    }


def _tags(report: Report) -> dict[str, str]:
    values = {
        "signature": report.signature,
        "metric": report.metric,
        "variant": report.variant,
        "release": signature_field(report.signature, "v"),
    }
    return {f"hallujudge.{name}": value for name, value in values.items()}


def tracker_named(text: str) -> Tracker:
    """Return the tracker of a name such as ``mlflow`` or ``tensorboard:runs/1``.

    Raises:
        InvalidInputError: It is unknown, or TensorBoard has no folder.
    """
    name, _, place = text.partition(":")
    if name not in _TRACKERS:
        raise InvalidInputError(f"tracker {name!r:.80} is unknown; known: {', '.join(_TRACKERS)}")
    if name == "tensorboard" and not place:
        raise InvalidInputError("TensorBoard needs a folder: tensorboard:FOLDER")
    return lambda logged: _TRACKERS[name](logged, place)


@contextmanager
def installed(package: str) -> Iterator[None]:
    """Say what to install if a tracker's package is absent."""
    try:
        yield
    except ModuleNotFoundError as err:
        raise MissingExtraError(
            f"{package} is not installed: pip install {package}", metadata={"feature": package}
        ) from err


def _to_mlflow(logged: LoggedReport, place: str) -> None:
    with installed("mlflow"):
        import mlflow
    active = mlflow.active_run()
    if place and not active:
        mlflow.set_experiment(place)
    with nullcontext() if active else mlflow.start_run():
        # MLflow refuses names with other characters.
        named = {re.sub(r"[^/\w.\- ]", "_", name): value for name, value in logged.numbers.items()}
        mlflow.log_metrics(named, step=logged.step)
        mlflow.set_tags(dict(logged.tags))
        for path in logged.files:
            mlflow.log_artifact(str(path), artifact_path=_named(logged))


def _to_wandb(logged: LoggedReport, place: str) -> None:
    with installed("wandb"):
        import wandb
    began = wandb.run is None
    run: Any = wandb.init(project=place or None) if began else wandb.run
    run.log(dict(logged.numbers), step=logged.step)
    # A tag of W&B has at most 64 characters, fewer than a signature.
    run.config.update(dict(logged.tags), allow_val_change=True)
    artifact = wandb.Artifact(
        _named(logged).replace("/", "-"), type="hallujudge", metadata=dict(logged.tags)
    )
    for path in logged.files:
        artifact.add_file(str(path))
    run.log_artifact(artifact)
    if began:
        run.finish()


def _to_tensorboard(logged: LoggedReport, place: str) -> None:
    with installed("tensorboard"):
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.plugins.scalar.summary_v2 import scalar_pb
        from tensorboard.plugins.text.summary_v2 import text_pb
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    writer = EventFileWriter(place)
    texts = {name.replace(".", "/"): value for name, value in logged.tags.items()}
    summaries = [
        *(scalar_pb(name, value) for name, value in logged.numbers.items()),
        *(text_pb(f"{logged.name}/{name}", value) for name, value in texts.items()),
    ]
    for summary in summaries:
        writer.add_event(Event(wall_time=time.time(), step=logged.step or 0, summary=summary))
    writer.close()
    # TensorBoard has no artifacts, so they go into the folder of its file.
    folder = Path(place, _named(logged))
    folder.mkdir(parents=True, exist_ok=True)
    for path in logged.files:
        shutil.copy(path, folder)


def _named(logged: LoggedReport) -> str:
    """Return a folder for the files, another one for each step."""
    return logged.name if logged.step is None else f"{logged.name}/{logged.step}"


_TRACKERS: Mapping[str, Callable[[LoggedReport, str], None]] = {
    "mlflow": _to_mlflow,
    "wandb": _to_wandb,
    "tensorboard": _to_tensorboard,
}
