"""Trackers: MLflow, W&B, TensorBoard, OpenTelemetry, and files in shared formats.

The entry points of the group ``hallujudge.trackers`` name the public functions of this module.
"""

from __future__ import annotations

import re
import shutil
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from hallujudge.sdk.errors import InvalidInputError, MissingExtraError
from hallujudge.sdk.trackers import LoggedReport, Tracker

from .every_eval_ever import checked_model, write_every_eval_ever
from .hub_results import checked_dataset, write_hub_results


def mlflow_tracker(place: str, **_: str) -> Tracker:
    """Return what logs to MLflow's active run, and otherwise to a new one of an experiment."""

    def log(logged: LoggedReport) -> None:
        with MissingExtraError.unless_package("mlflow"):
            import mlflow
        active = mlflow.active_run()
        if place and not active:
            mlflow.set_experiment(place)
        with nullcontext() if active else mlflow.start_run():
            # MLflow refuses names with other characters.
            named = {
                re.sub(r"[^/\w.\- ]", "_", name): value for name, value in logged.numbers.items()
            }
            mlflow.log_metrics(named, step=logged.step)
            mlflow.set_tags(dict(logged.tags))
            for path in logged.files:
                mlflow.log_artifact(str(path), artifact_path=_named(logged))

    return log


def wandb_tracker(place: str, **_: str) -> Tracker:
    """Return what logs to W&B's active run, and otherwise to a new one of a project."""

    def log(logged: LoggedReport) -> None:
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

    return log


def tensorboard_tracker(place: str, **_: str) -> Tracker:
    """Return what writes TensorBoard's events into a folder.

    Raises:
        InvalidInputError: The folder is missing.
    """
    if not place:
        raise InvalidInputError("TensorBoard needs a folder: tensorboard:FOLDER")

    def log(logged: LoggedReport) -> None:
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

    return log


def every_eval_ever_tracker(place: str, *, model: str, **_: str) -> Tracker:
    """Return what writes files of the format Every Eval Ever.

    Raises:
        InvalidInputError: The model is missing, or is not ``ORG/NAME``.
    """
    checked_model(model)

    def log(logged: LoggedReport) -> None:
        dataset = checked_dataset(logged.dataset)[0] if logged.dataset else ""
        folder, lines = Path(place), logged.lines()
        write_every_eval_ever(logged.report, lines, folder, model=logged.model, dataset=dataset)

    return log


def hub_results_tracker(place: str, *, dataset: str, **_: str) -> Tracker:
    """Return what writes results as the Hub reads them.

    Raises:
        InvalidInputError: The dataset is missing, or is not ``ORG/NAME``.
    """
    checked_dataset(dataset)

    def log(logged: LoggedReport) -> None:
        write_hub_results(logged.report, Path(place), dataset=logged.dataset)

    return log


def otel_tracker(place: str, **_: str) -> Tracker:
    """Return what emits events of OpenTelemetry, to an address if one is given."""

    def log(logged: LoggedReport) -> None:
        # It needs OpenTelemetry's packages.
        from .evaluation_events import emit_report

        emit_report(logged.report, logged.lines(), place, step=logged.step, model=logged.model)

    return log


def _named(logged: LoggedReport) -> str:
    """Return a folder for the files, another one for each step."""
    return logged.name if logged.step is None else f"{logged.name}/{logged.step}"
