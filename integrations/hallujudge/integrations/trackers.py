"""Trackers: MLflow, W&B, TensorBoard, OpenTelemetry, and files in shared formats.

The entry points of the group ``hallujudge.trackers`` name the public functions of this module.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hallujudge.metrics import Report
from hallujudge.sdk.errors import InvalidInputError, MissingExtraError, OutputError
from hallujudge.sdk.report.report_text import interval_label, main_score_of
from hallujudge.sdk.trackers import LoggedReport, Tracker

from .every_eval_ever import checked_model, write_every_eval_ever
from .harness_scores import explanation

if TYPE_CHECKING:
    from hallujudge.judge_service.observe.open_telemetry import EvaluationEvents

_FOLDER = ".eval_results"
"""The folder in the repository of a model, on whose page the Hub shows it."""

_DATASET = re.compile(r"([\w.-]+/[\w.-]+)(?::([\w.-]+))?", re.ASCII)
_TASK = "default"

# A longer explanation is a caption, and not what its score rests on.
_MOST_EXPLAINED = 500


def mlflow_tracker(place: str, **_: str) -> Tracker:
    """Return what logs to MLflow's active run, and otherwise to a new one of an experiment."""

    def log(logged: LoggedReport) -> None:
        with MissingExtraError.unless_package("mlflow"):
            import mlflow
        active = mlflow.active_run()
        # A program that has begun a run has chosen its experiment.
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
        # A run that the program began goes on after this report.
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
        # TensorBoard groups names by what is before a slash.
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
    # Now, before anything is scored, and not when the report is written.
    checked_model(model)

    def log(logged: LoggedReport) -> None:
        dataset = _checked_dataset(logged.dataset)[0] if logged.dataset else ""
        folder, lines = Path(place), logged.lines()
        write_every_eval_ever(logged.report, lines, folder, model=logged.model, dataset=dataset)

    return log


def hub_results_tracker(place: str, *, dataset: str, **_: str) -> Tracker:
    """Return what writes results as the Hub reads them.

    Raises:
        InvalidInputError: The dataset is missing, or is not ``ORG/NAME``.
    """
    _checked_dataset(dataset)

    def log(logged: LoggedReport) -> None:
        _write_hub_results(logged.report, Path(place), dataset=logged.dataset)

    return log


def otel_tracker(place: str, **_: str) -> Tracker:
    """Return what emits events ``gen_ai.evaluation.result`` of OpenTelemetry, for scores and items.

    The event of a score has its interval, bounds and signature as attributes that begin with
    ``hallujudge.``. The event of an item has the item's id as the id of the response, and the
    reason as ``error.type`` if it is unscored.

    Args:
        place: The address of a collector that takes OTLP over HTTP. If empty, events go to the
            provider that the program has set, or without one to the address in the environment.
    """

    def log(logged: LoggedReport) -> None:
        with MissingExtraError.unless_installed("logging to OpenTelemetry", "otel"):
            from opentelemetry._logs import get_logger_provider

            from hallujudge.judge_service.observe.open_telemetry import EvaluationEvents, sending
        set_by_program = None if place else get_logger_provider()
        # The API's own provider emits nothing until a program sets another one.
        if set_by_program is not None and hasattr(set_by_program, "force_flush"):
            _emit(EvaluationEvents(set_by_program), logged)
            return
        with sending(place) as provider:
            _emit(EvaluationEvents(provider), logged)

    return log


def _named(logged: LoggedReport) -> str:
    """Return a folder for the files, another one for each step."""
    return logged.name if logged.step is None else f"{logged.name}/{logged.step}"


def _checked_dataset(dataset: str) -> tuple[str, str]:
    """Return the id of a dataset and the task within it.

    Raises:
        InvalidInputError: It is not the id of a dataset on the Hub.
    """
    found = _DATASET.fullmatch(dataset)
    if found is None:
        raise InvalidInputError(
            "hf-eval-results needs the benchmark's dataset on the Hub as ORG/NAME or "
            f"ORG/NAME:TASK, such as lmms-lab/POPE, not {dataset!r:.80}; give it with "
            "log_to(dataset=…)"
        )
    return found[1], found[2] or _TASK


def _write_hub_results(report: Report, folder: Path, *, dataset: str) -> None:
    """Write the entry of a report.

    The Hub reads ``.eval_results/*.yaml`` of a model's repository, and lists the values of a
    benchmark dataset as a leaderboard. An entry has one value; variant, interval, unscored items
    and signature are in its notes.

    Args:
        report: The report.
        folder: A copy of the model's repository.
        dataset: The benchmark's dataset on the Hub, as ``ORG/NAME`` or ``ORG/NAME:TASK``.

    Raises:
        InvalidInputError: The dataset is not such an id, or the score has no value.
        OutputError: The file can't be written.
    """
    name, task = _checked_dataset(dataset)
    main = main_score_of(report)
    if not main or report.scores[main].value is None:
        raise InvalidInputError(
            f"the {report.metric} report has no score with a value, and an entry of the Hub is a "
            "number; print(report) shows why"
        )
    target = folder / _FOLDER / f"{report.metric}_{report.variant}.yaml"
    # Texts in JSON's quotes are YAML too.
    lines = [
        f"- dataset:\n    id: {_quoted(name)}\n    task_id: {_quoted(task)}",
        f"  value: {report.scores[main].value!r}",
        f"  date: {_quoted(datetime.now(UTC).strftime('%Y-%m-%d'))}",
        f"  notes: {_quoted(_notes(report, main))}",
    ]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as err:
        raise OutputError.of(target, err, "give another folder") from err


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _notes(report: Report, main: str) -> str:
    score, coverage = report.scores[main], report.coverage
    parts = [f"hallujudge {report.metric} ({report.variant}), {main}"]
    if score.ci_low is not None and score.ci_high is not None:
        parts.append(f"{interval_label(report)} {score.ci_low:.4f} to {score.ci_high:.4f}")
    parts.append(f"{coverage.items} items, {coverage.unscored} unscored")
    if (bound := coverage.bounds.get(main)) is not None:
        parts.append(f"best case {bound.best:.4f}, worst case {bound.worst:.4f}")
    return "; ".join([*parts, f"signature {report.signature}"])


def _emit(events: EvaluationEvents, logged: LoggedReport) -> None:
    report = logged.report
    own: dict[str, str | int | float] = {} if logged.step is None else {"step": logged.step}
    own |= {"metric": report.metric, "variant": report.variant, "signature": report.signature}
    if logged.model:
        own["model"] = logged.model
    coverage = report.coverage
    counts = {"items": coverage.items, "unscored": coverage.unscored}
    for name, score in report.scores.items():
        if score.value is None:
            continue
        bound = coverage.bounds.get(name)
        ends = {"ci_low": score.ci_low, "ci_high": score.ci_high, "n": score.n}
        if bound is not None:
            ends |= {"best": bound.best, "worst": bound.worst}
        known = {key: end for key, end in ends.items() if end is not None}
        events.emit(f"{report.metric}/{name}", score.value, own={**own, **counts, **known})
    # Items come after the scores, so that a reader who stops early has the scores.
    for line in logged.lines():
        _emit_item(events, report.metric, line, own)


def _emit_item(
    events: EvaluationEvents,
    metric: str,
    line: Mapping[str, Any],
    own: Mapping[str, str | int | float],
) -> None:
    item = str(line["id"])
    if reason := str(line.get("reason") or ""):
        events.emit(metric, response_id=item, error=reason, own=own)
    for name, value in (line.get("scores") or {}).items():
        if value is not None:
            why = explanation(name, value, line.get("evidence") or {})[:_MOST_EXPLAINED]
            events.emit(f"{metric}/{name}", value, response_id=item, explanation=why, own=own)
