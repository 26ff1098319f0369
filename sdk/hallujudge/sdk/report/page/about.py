"""What a page says about its run beside the report."""

from __future__ import annotations

from dataclasses import dataclass

from hallujudge.metrics.calibration.result import Calibration

__all__ = ["PageAbout"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAbout:
    """What a page says about its run beside the report."""

    title: str = ""
    """The model, or the name of the run; empty if it is not known."""
    inputs: tuple[tuple[str, str], ...] = ()
    """Names of the input files, with their SHA-256."""
    date: str = ""
    """Date of the run."""
    overview: str = ""
    """Address of the page of all runs; empty for a page that stands alone."""
    card: str = ""
    """The judge's report card, as JSON; empty without one."""
    baseline: tuple[str, dict[str, float]] | None = None
    """A name and its scores, such as a published row, to compare with."""
    calibration: Calibration | None = None
    """The scores corrected by human labels, which are shown beside the raw ones."""
