"""Tools that draw, edit and extend graphs; scoring does not need them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hallujudge.studies.graph_tools.drawing import draw_domain, draw_neighbourhood
    from hallujudge.studies.graph_tools.editing import (
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
    from hallujudge.studies.graph_tools.suggestions import (
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

_ROOM = "hallujudge.studies.graph_tools"
"""The package whose modules define these names; it is imported when one is used."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = (import_module(f"{_ROOM}.{each}") for each in ("editing", "drawing", "suggestions"))
    return next(getattr(module, name) for module in modules if hasattr(module, name))


def __dir__() -> list[str]:
    return __all__
