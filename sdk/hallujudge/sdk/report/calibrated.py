"""Corrected scores beside raw ones: cells and sentences for every format of a report."""

from __future__ import annotations

from collections.abc import Iterator

from hallujudge.metrics import Score
from hallujudge.metrics.calibration.calibrated_scores import CalibratedScore, Calibration
from hallujudge.metrics.calibration.judge_accuracy import Rate

from .text import ABSENT, Shown, counted, shown

__all__ = [
    "calibration_sentences",
    "corrected_cells",
    "corrected_headings",
    "group_cells",
    "group_headings",
    "group_text",
]

_METHODS = {"ppi++": "prediction-powered inference", "rogan-gladen": "Rogan and Gladen"}


def corrected_headings(calibration: Calibration | None) -> list[str]:
    """Return the headings of corrected scores; none without a calibration."""
    if calibration is None:
        return []
    return ["corrected", f"{calibration.confidence * 100:g}% interval"]


def corrected_cells(calibration: Calibration | None, name: str) -> list[str]:
    """Return the cells of a corrected score, as many as there are headings."""
    if calibration is None:
        return []
    return _cells(name, calibration.scores.get(name))


def group_headings(calibration: Calibration | None, key: str) -> list[str]:
    """Return the headings of a key's corrected scores; none if no group has enough labels."""
    if calibration is None or key not in calibration.groups:
        return []
    return ["corrected", "interval"]


def group_cells(calibration: Calibration | None, key: str, value: str, name: str) -> list[str]:
    """Return the cells of a group's corrected score, as many as there are headings."""
    if calibration is None or key not in calibration.groups:
        return []
    return _cells(name, calibration.groups[key].get(value, {}).get(name))


def group_text(calibration: Calibration | None, key: str, value: str, name: str) -> str:
    """Return a group's corrected score as one text; nothing if it is not corrected."""
    cells = group_cells(calibration, key, value, name)
    return " ".join(["corrected", *cells]) if cells and cells[0] != ABSENT else ""


def _cells(name: str, found: CalibratedScore | None) -> list[str]:
    if found is None or found.recommended == "raw" or (best := found.best) is None:
        return [ABSENT, ""]
    score = Score(
        name=name, value=best.value, ci_low=best.ci_low, ci_high=best.ci_high, n=found.labels
    )
    figures: Shown = shown(score)
    return [figures.value, figures.interval]


def calibration_sentences(calibration: Calibration) -> Iterator[str]:
    """Yield what scores were corrected by, how the judge does, and the warnings."""
    methods = {score.recommended for score in calibration.scores.values()} - {"raw"}
    by = " and ".join(_METHODS[method] for method in sorted(methods))
    how = f"Corrected by {by}" if by else "Not corrected"
    accuracy = calibration.accuracy
    yield (
        f"{how}, from {counted(calibration.labels, 'human label')}. The judge's sensitivity is "
        f"{_rate(accuracy.sensitivity)}, its specificity {_rate(accuracy.specificity)}."
    )
    for name, score in calibration.scores.items():
        if score.recommended == "raw":
            yield f"{name} is not corrected: {score.reason}"
    if nearer := [name for name, score in calibration.scores.items() if score.raw_is_nearer]:
        yield (
            f"By these labels the raw score is expected to be nearer than the corrected one: "
            f"{', '.join(nearer)}."
        )
    yield from calibration.notes


def _rate(rate: Rate) -> str:
    if rate.value is None or rate.ci_low is None or rate.ci_high is None:
        return "unknown"
    return f"{rate.value:.2f} [{rate.ci_low:.2f}, {rate.ci_high:.2f}]"
