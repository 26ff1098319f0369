"""Labels of runs, and calibrations by them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

from support.running import read_rows

from hallujudge.metrics.calibration.calibrated_scores import Calibration
from hallujudge.sdk.calibration import CalibrateOptions, calibrate

__all__ = ["calibrated", "labels_file"]


def labels_file(
    path: Path, folder: Path, wrong: Callable[[str, int, bool], bool], *, share: float = 1.0
) -> Path:
    """Label the mentions of a random share of a run's captions."""
    chosen = random.Random(5)
    lines = []
    for row in read_rows(folder / "items.jsonl"):
        spans = row["evidence"]["hallucinated_spans"]
        if chosen.random() < share:
            for index, span in enumerate(row["evidence"]["mentioned_spans"]):
                truth = wrong(row["id"], index, span in spans)
                label = "not_supported" if truth else "supported"
                lines.append({"item": row["id"], "claim": index, "label": label, "annotator": "a"})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def calibrated(folder: Path, labels: Path) -> Calibration:
    """Calibrate a run by the labels of a file."""
    return calibrate(folder, CalibrateOptions(labels=(labels,)))
