"""Parsing of the graphs that Mementos released: ``{word: {second word or '': [roots]}}``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from ..errors import GraphFormatError
from ..graph import SynonymGraph
from ..words import clean_word

__all__ = ["is_released", "released_graph", "released_json", "released_pairs"]

RELEASED_VERSION: Final = "released"

Pair = tuple[str, str, tuple[str, ...]]
"""A keyword, the keyword after it (may be empty) and their roots, as written."""


def is_released(data: Mapping[str, object]) -> bool:
    """Return whether decoded JSON has the released layout: words, each with an object."""
    return bool(data) and all(isinstance(ways, dict) for ways in data.values())


def released_graph(
    data: Mapping[str, Mapping[str, object]], *, name: str, limit: int
) -> SynonymGraph:
    """Return the graph of a released layout.

    The graph keeps the entries exactly as written (a blank before ``pick up``, a comma after
    ``arrange``), because published matching compares them so. It also has edges between cleaned
    words, for lookups and drawings. Words of a released graph may lead to each other, so cycles
    are allowed.

    Args:
        data: The decoded file.
        name: The graph's name, and the name of the file in error messages.
        limit: The maximum number of entries.

    Raises:
        GraphFormatError: A value does not have the layout, or there are too many entries.
    """
    # Sorted, so that a pickle and its JSON copy are equal graphs: word order has no meaning.
    pairs = tuple(sorted(_pairs(data, name, limit)))
    return released_pairs(pairs, name=name, version=RELEASED_VERSION)


def released_pairs(pairs: tuple[Pair, ...], *, name: str, version: str) -> SynonymGraph:
    """Return the graph of entries as written."""
    edges: dict[str, dict[str, None]] = {}
    roots: dict[str, None] = {}
    for word, second, targets in pairs:
        form = clean_word(f"{word} {second}")
        for target in filter(None, map(clean_word, targets)):
            roots[target] = None
            if form:
                edges.setdefault(form, {})[target] = None
    for root in roots:
        edges.setdefault(root, {root: None})
    return SynonymGraph(
        name=name,
        version=version,
        roots=tuple(roots),
        edges=tuple((form, tuple(targets)) for form, targets in edges.items()),
        ambiguous=frozenset(form for form, targets in edges.items() if len(targets) > 1),
        pairs=pairs,
    )


def released_json(data: Mapping[str, object]) -> str:
    """Return a released graph as JSON text, which can be sent to a server."""
    return json.dumps(data, ensure_ascii=False, indent=1)


def _pairs(data: Mapping[str, Mapping[str, object]], name: str, limit: int) -> Iterator[Pair]:
    count = 0
    for word, ways in data.items():
        place = f"$[{word!r:.60}]"
        if not isinstance(ways, Mapping):
            raise GraphFormatError("expected an object of lists", source=name, place=place)
        for second, roots in ways.items():
            if not isinstance(roots, list):
                raise GraphFormatError("expected a list of roots", source=name, place=place)
            count += 1 + len(roots)
            if count > limit:
                raise GraphFormatError(f"more than {limit} entries; split the graph", source=name)
            yield (
                _text(word, name, place),
                _text(second, name, place),
                tuple(_text(root, name, place) for root in roots),
            )


def _text(value: object, name: str, place: str) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise GraphFormatError(f"{value!r:.60} is not a word", source=name, place=place)
    return value
