"""What a page says about its run beside the report."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from hallujudge.metrics.calibration.calibrated_scores import Calibration

from ..text import clean

__all__ = ["PageAbout", "run_identity"]


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

    @property
    def content(self) -> str:
        """The hashes of the input files; empty if they are not known."""
        return "\n".join(digest for _, digest in self.inputs)


def run_identity(signature: str, content: str) -> str:
    """Return what labels name their run by: a hash of its settings and of what it scored.

    Args:
        signature: The run's signature.
        content: What tells the run from those of other responses scored in the same way.
    """
    # A run under way has the identity that it will have when it is complete.
    settings = signature.partition("|ci:")[0]
    return hashlib.sha256(clean(f"{settings}\n{content}").encode()).hexdigest()[:16]
