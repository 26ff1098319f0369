"""Tools that look at graphs and grow them; scoring needs none of them."""

from ._draw import draw_domain, draw_neighbourhood
from ._edit import (
    PATCH_FORMAT,
    Candidate,
    GraphDifference,
    GraphPatch,
    GraphStatistics,
    PatchEntry,
    apply_patch,
    difference,
    merge_graphs,
    parse_patch,
    statistics_of,
)
from ._suggest import Similarity, suggest_roots, wordnet_candidates

__all__ = [
    "PATCH_FORMAT",
    "Candidate",
    "GraphDifference",
    "GraphPatch",
    "GraphStatistics",
    "PatchEntry",
    "Similarity",
    "apply_patch",
    "difference",
    "draw_domain",
    "draw_neighbourhood",
    "merge_graphs",
    "parse_patch",
    "statistics_of",
    "suggest_roots",
    "wordnet_candidates",
]
