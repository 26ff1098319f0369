"""The list of metric families, which every layer uses.

A family is a module or package of the same name in ``metrics`` and a line here. One of closed
questions lists its declarations in ``BENCHMARKS``; another one also has a module in
``engine/families``, ``archives`` and ``cli``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .answers.closed_questions import ClosedQuestions

FAMILIES = [
    "chair",
    "pope",
    "tri_he",
    "mementos",
    "vidhal",
    "infact",
    "hallusion_bench",
    "event_hallusion",
    "video_hallucer",
    "amber",
]
"""Names of the families, in the order of tables and listings."""


def benchmarks_of(family: str) -> tuple[ClosedQuestions, ...]:
    """Return the benchmarks that a family declares; empty if it is not one of closed questions."""
    found: tuple[ClosedQuestions, ...] = getattr(
        import_module(f".{family}", __package__), "BENCHMARKS", ()
    )
    return found


def benchmark_named(metric: str) -> ClosedQuestions | None:
    """Return the declaration of a metric; None if the metric is not one of closed questions."""
    # A metric's name begins with its family's, so that no other family is imported.
    own = [family for family in FAMILIES if metric.startswith(family.replace("_", "-"))]
    declared = (found for family in own or FAMILIES for found in benchmarks_of(family))
    return next((found for found in declared if found.name == metric), None)
