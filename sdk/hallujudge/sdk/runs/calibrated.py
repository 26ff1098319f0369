"""The calibration that a run's folder keeps."""

from __future__ import annotations

from pathlib import Path

from hallujudge.judge_service.errors import fault_of
from hallujudge.metrics.calibration.calibrated_scores import Calibration

from ..archives.json_files import read_json
from ..errors import ArchiveError
from .names import CALIBRATION

__all__ = ["read_calibration"]


def read_calibration(folder: str | Path, signature: str) -> Calibration | None:
    """Return the calibration in a run's folder; None without one.

    Args:
        folder: The folder.
        signature: The run's signature.

    Raises:
        ArchiveError: The file is not a calibration, or is of other scores.
    """
    path = Path(folder) / CALIBRATION
    if not path.exists():
        return None
    content = read_json(path)
    try:
        found = Calibration.from_json(content if isinstance(content, dict) else {})
    except (KeyError, TypeError, ValueError) as err:
        raise ArchiveError(
            f"{path}: not a calibration: {fault_of(err)}; run hallujudge calibrate again"
        ) from err
    if found.run_signature != signature:
        raise ArchiveError(
            f"{path}: calibrates another run than report.json; run hallujudge calibrate again"
        )
    return found
