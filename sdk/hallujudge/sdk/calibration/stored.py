"""Files of a run's folder about labels: the plan, the labels, the calibration, the cascade."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hallujudge.metrics.calibration.calibrated_scores import Calibration
from hallujudge.metrics.framework.signature import judge_of

from ..errors import OutputError
from ..labels import Label
from ..runs.manifest import CALIBRATION, CASCADE

__all__ = ["LABELS", "PLAN", "cascade_text", "labels_text", "write_calibration", "write_cascade"]

LABELS, PLAN = "labels.jsonl", "label-plan.json"


def labels_text(labels: Iterable[Label]) -> str:
    """Return the text of ``labels.jsonl``."""
    import json

    lines = (json.dumps(label.to_json(), ensure_ascii=False) for label in labels)
    return "".join(f"{line}\n" for line in lines)


def cascade_text(calibration: Calibration, reference: str = "") -> str:
    """Return the text of ``cascade.json``; empty if no margin was asked for.

    Args:
        calibration: What the margin was learnt from.
        reference: Signature of the run whose verdicts were taken for labels; empty for labels.
    """
    import json
    from dataclasses import asdict

    from hallujudge.judge_service.judges.escalation import CASCADE_SCHEMA

    if calibration.cascade is None:
        return ""
    content = {
        "schema": CASCADE_SCHEMA,
        "metric": calibration.metric,
        "judge": judge_of(calibration.run_signature),
        **asdict(calibration.cascade),
        "labels_sha256": calibration.labels_sha256,
        "reference": judge_of(reference) if reference else "",
        "run_signature": calibration.run_signature,
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_calibration(folder: Path, calibration: Calibration) -> Path:
    """Write ``calibration.json`` into a run's folder, and return its path.

    Raises:
        OutputError: It can't be written.
    """
    return _write(folder / CALIBRATION, calibration.to_text())


def write_cascade(folder: Path, calibration: Calibration, reference: str = "") -> Path | None:
    """Write ``cascade.json`` into a run's folder, and return its path; None without a margin.

    Raises:
        OutputError: It can't be written.
    """
    text = cascade_text(calibration, reference)
    return _write(folder / CASCADE, text) if text else None


def _write(path: Path, text: str) -> Path:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as err:
        raise OutputError.of(path, err, "check the folder of the run") from err
    return path
