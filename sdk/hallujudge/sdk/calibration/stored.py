"""Files of a run's folder about labels: the plan, the labels, the calibration."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hallujudge.metrics.calibration.result import Calibration

from ..errors import OutputError
from ..labels import Label
from ..runs.names import CALIBRATION

__all__ = ["LABELS", "PLAN", "labels_text", "write_calibration"]

LABELS, PLAN = "labels.jsonl", "label-plan.json"


def labels_text(labels: Iterable[Label]) -> str:
    """Return the text of ``labels.jsonl``."""
    import json

    lines = (json.dumps(label.to_json(), ensure_ascii=False) for label in labels)
    return "".join(f"{line}\n" for line in lines)


def write_calibration(folder: Path, calibration: Calibration) -> Path:
    """Write ``calibration.json`` into a run's folder, and return its path.

    Raises:
        OutputError: It can't be written.
    """
    path = folder / CALIBRATION
    try:
        path.write_text(calibration.to_text(), encoding="utf-8")
    except OSError as err:
        raise OutputError(f"can't write {path}: {err.strerror or err}") from err
    return path
