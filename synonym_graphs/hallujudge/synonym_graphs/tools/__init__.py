"""Tools that draw, edit and extend graphs; scoring does not need them."""

from __future__ import annotations

from .drawing import draw_domain, draw_neighbourhood
from .editing import (
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
from .suggestions import (
    RootChooser,
    Similarity,
    Synset,
    WordNet,
    find_wordnet,
    open_wordnet,
    suggest_roots,
    wordnet_candidates,
)

__all__ = [
    "PATCH_FORMAT",
    "Candidate",
    "GraphDifference",
    "GraphPatch",
    "GraphStatistics",
    "PatchEntry",
    "RootChooser",
    "Similarity",
    "Synset",
    "WordNet",
    "apply_patch",
    "difference",
    "draw_domain",
    "draw_neighbourhood",
    "find_wordnet",
    "merge_graphs",
    "open_wordnet",
    "parse_patch",
    "statistics_of",
    "suggest_roots",
    "wordnet_candidates",
]
