"""A report as events ``gen_ai.evaluation.result`` of OpenTelemetry: each score, and each item's.

The event of a score has its interval, bounds and signature as attributes that begin with
``hallujudge.``. The event of an item has the item's id as the id of the response, and the reason as
``error.type`` if it is unscored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from opentelemetry._logs import get_logger_provider

from hallujudge.judge_service.observe.evaluation_events import EvaluationEvents, sending
from hallujudge.metrics import Report

from .harness_scores import explanation

# A longer explanation is a caption, and not what its score rests on.
_MOST_EXPLAINED = 500


def emit_report(
    report: Report,
    lines: Iterable[Mapping[str, Any]],
    endpoint: str = "",
    *,
    step: int | None = None,
    model: str = "",
) -> None:
    """Emit the events of a report and its items.

    Args:
        report: The report.
        lines: Its items, as ``items.jsonl`` has them.
        endpoint: The address of a collector that takes OTLP over HTTP. If empty, events go to the
            provider that the program has set, or without one to the address in the environment.
        step: The step of training.
        model: The evaluated model.

    Raises:
        InvalidInputError: The address is not that of a collector.
        UnavailableError: No collector there took the events.
    """
    own = {} if step is None else {"step": step}
    set_by_program = None if endpoint else get_logger_provider()
    # The API's own provider emits nothing until a program sets another one.
    if set_by_program is not None and hasattr(set_by_program, "force_flush"):
        _emit(EvaluationEvents(set_by_program), report, lines, own, model)
        return
    with sending(endpoint) as provider:
        _emit(EvaluationEvents(provider), report, lines, own, model)


def _emit(
    events: EvaluationEvents,
    report: Report,
    lines: Iterable[Mapping[str, Any]],
    own: Mapping[str, str | int | float],
    model: str,
) -> None:
    own = {**own, "metric": report.metric, "variant": report.variant, "signature": report.signature}
    if model:
        own["model"] = model
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
    for line in lines:
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
