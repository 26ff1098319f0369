"""A run's header from a report, as at a server or in a run's folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, cast

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.metrics import Metric, Report

from .base import RunHeader

__all__ = ["header_of", "metric_of"]

_OF_ITEMS = "|ci:"


def metric_of(name: str, variant: str, settings: Mapping[str, str]) -> Metric:
    """Return a metric as a run used it, without fields that only the signature has.

    Args:
        name: Its name.
        variant: Its variant.
        settings: The settings of the run's report.

    Raises:
        NotFoundError: The metric is unknown.
        MetricError: The variant or an option is unknown.
    """
    declared = metric_entry(name).metric
    options = {
        option.name: settings[option.name] for option in declared.options if option.name in settings
    }
    labels = {
        entry.name: ""
        for entry in fields(declared)
        if entry.init and entry.default is MISSING and entry.default_factory is MISSING
    }
    metric: Any = declared(**labels | options, variant=variant)
    return cast("Metric", metric)


def header_of(report: Report) -> RunHeader:
    """Return the header of the run that made a report of no items."""
    signature, _, rest = report.signature.partition(_OF_ITEMS)
    parts = dict(part.partition(":")[::2] for part in rest.split("|"))
    return RunHeader(
        metric=metric_of(report.metric, report.variant, report.settings),
        signature=signature,
        settings=report.settings,
        notes=report.notes,
        release=parts.get("v", ""),
    )
