"""Experiment trackers, and other places where results are read.

    report.log_to("mlflow:captions")
    hallujudge report results --to wandb:my-project

A tracker is a function of a :class:`LoggedReport`; ``log_to`` also takes one of yours. MLflow, W&B
and TensorBoard get scores, signature and page; ``every-eval-ever`` and ``hf-eval-results`` are
files in shared formats; ``otel`` is events of OpenTelemetry. No tracker is imported before it is
used.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

from hallujudge.metrics import Report
from hallujudge.metrics.framework.signature import signature_field

from .errors import InvalidInputError, MissingExtraError
from .every_eval_ever import checked_model, write_every_eval_ever
from .hub_results import checked_dataset, write_hub_results

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
    """The report."""
    lines: Callable[[], Iterable[Mapping[str, Any]]]
    """Returns its items as ``items.jsonl`` has them; none if the report does not hold them."""
    model: str = ""
    """The evaluated model, such as ``llava-hf/llava-1.5-7b-hf``; empty if it was not given."""
    dataset: str = ""
    """The benchmark's dataset on the Hub; empty if it was not given."""


Tracker: TypeAlias = "Callable[[LoggedReport], object]"
"""Logs a report."""


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
        InvalidInputError: It is unknown, or lacks its folder, model or dataset.
    """
    name, _, place = text.partition(":")
    if name not in _TRACKERS:
        alike = get_close_matches(name, _TRACKERS, 1)
        meant = f", did you mean {alike[0]}" if alike else ""
        raise InvalidInputError(
            f"tracker {name!r:.80} is unknown{meant}; known: {', '.join(_TRACKERS)}"
        )
    if name == "tensorboard" and not place:
        raise InvalidInputError("TensorBoard needs a folder: tensorboard:FOLDER")
    if name == _EVERY_EVAL_EVER:
        checked_model(model)
    if name == _HUB_RESULTS:
        checked_dataset(dataset)
    return lambda logged: _TRACKERS[name](logged, place)


def _to_mlflow(logged: LoggedReport, place: str) -> None:
    with MissingExtraError.unless_package("mlflow"):
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
    with MissingExtraError.unless_package("wandb"):
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
    with MissingExtraError.unless_package("tensorboard"):
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


def _to_every_eval_ever(logged: LoggedReport, place: str) -> None:
    dataset = checked_dataset(logged.dataset)[0] if logged.dataset else ""
    folder, lines = Path(place), logged.lines()
    write_every_eval_ever(logged.report, lines, folder, model=logged.model, dataset=dataset)


def _to_hub_results(logged: LoggedReport, place: str) -> None:
    write_hub_results(logged.report, Path(place), dataset=logged.dataset)


def _to_otel(logged: LoggedReport, place: str) -> None:
    # It needs OpenTelemetry's packages.
    from .evaluation_events import emit_report

    emit_report(logged.report, logged.lines(), place, step=logged.step, model=logged.model)


def _named(logged: LoggedReport) -> str:
    """Return a folder for the files, another one for each step."""
    return logged.name if logged.step is None else f"{logged.name}/{logged.step}"


_EVERY_EVAL_EVER, _HUB_RESULTS = "every-eval-ever", "hf-eval-results"
_TRACKERS: Mapping[str, Callable[[LoggedReport, str], None]] = {
    "mlflow": _to_mlflow,
    "wandb": _to_wandb,
    "tensorboard": _to_tensorboard,
    _EVERY_EVAL_EVER: _to_every_eval_ever,
    _HUB_RESULTS: _to_hub_results,
    "otel": _to_otel,
}
