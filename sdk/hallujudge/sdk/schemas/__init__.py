"""JSON Schemas (draft 2020-12) of the files that a run writes."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

__all__ = [
    "calibration_schema",
    "cascade_schema",
    "item_schema",
    "judge_card_schema",
    "report_schema",
]


def calibration_schema() -> dict[str, Any]:
    """Return the schema of ``calibration.json``."""
    return _schema("calibration")


def cascade_schema() -> dict[str, Any]:
    """Return the schema of ``cascade.json``."""
    return _schema("cascade")


def judge_card_schema() -> dict[str, Any]:
    """Return the schema of a judge's report card."""
    return _schema("judge-card")


def report_schema() -> dict[str, Any]:
    """Return the schema of ``report.json``."""
    return _schema("report")


def item_schema() -> dict[str, Any]:
    """Return the schema of one line of ``items.jsonl``."""
    return _schema("items")


def _schema(name: str) -> dict[str, Any]:
    text = files(__package__).joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
