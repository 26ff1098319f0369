"""Graphs in plain JSON, as people or networkx write it, and in Mementos' released layout."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from typing import Final

import msgspec
from msgspec import Struct

from .graph import MAX_FORMS, UNNAMED, GraphFormatError, GraphInvalidError, SynonymGraph, cycles
from .word_forms import clean_word

_VERSION = "plain"


class _Plain(Struct, frozen=True, kw_only=True):
    """The content of a plain layout."""

    links: Iterable[tuple[str, str]]
    """Pairs of form and root."""
    words: tuple[str, ...] = ()
    """Words that belong to the graph even without a link."""
    roots: frozenset[str] = frozenset()
    """Words that are roots even if they lead to another root."""
    ambiguous: frozenset[str] = msgspec.field(default_factory=frozenset)
    """Words that may lead to several roots."""
    blocked: tuple[str, ...] = ()
    """Words that name no object."""


def plain_graph(data: Mapping[str, object], name: str) -> SynonymGraph | None:
    """Return the graph of a plain layout, or None if the data has another layout.

    The layouts are ``{form: root}``, ``{root: [forms]}`` and networkx's node-link layout: ``nodes``
    with ``links`` or ``edges``, each with a ``source`` (the form) and a ``target`` (the root).
    A form may lead to its root through other forms. A form with several roots must be declared
    ambiguous, in Hallujudge's layout or by ``ambiguous`` on an edge of networkx. The attributes
    that ``SynonymGraph.to_networkx`` sets are read, so that a graph saved from there has the same
    words and roots again.

    Raises:
        GraphFormatError: A value does not have the layout.
        GraphInvalidError: The links form a cycle; the error names its words.
    """
    plain = _plain(data, name)
    if plain is None:
        return None
    targets: dict[str, dict[str, None]] = {}
    words = dict.fromkeys(plain.words)
    for form, root in plain.links:
        words |= {form: None, root: None}
        if form != root:
            targets.setdefault(form, {})[root] = None
    _refuse_cycles(targets, name)
    roots = {word: None for word in words if word in plain.roots or word not in targets}
    found = _terminals(targets, roots)
    own = {word: {word: None} if word in roots else {} for word in words}
    return SynonymGraph(
        name=UNNAMED,
        version=_VERSION,
        roots=tuple(roots),
        edges=tuple((word, tuple(own[word] | found.get(word, {}))) for word in words),
        ambiguous=plain.ambiguous,
        compounds=tuple((word, None) for word in sorted(plain.blocked)),
    )


def _plain(data: Mapping[str, object], name: str) -> _Plain | None:
    # networkx called them links, and calls them edges in newer releases.
    key = "links" if "links" in data else "edges"
    linked = data.get(key)
    if isinstance(nodes := data.get("nodes"), list) and isinstance(linked, list):
        if data.get("directed") is False:
            raise GraphFormatError(
                "an undirected graph does not determine the roots; save a DiGraph with edges from "
                "form to root",
                source=name,
                place="$.directed",
            )
        links = _objects(linked, name, f"$.{key}")
        return _node_link(_objects(nodes, name, "$.nodes"), links, name)
    if data and all(isinstance(value, str) for value in data.values()):
        return _Plain(links=((_word(f, name, f), _word(root, name, f)) for f, root in data.items()))
    if data and all(isinstance(value, list) for value in data.values()):
        return _Plain(links=_lists(data, name))
    return None


_Placed = list[tuple[dict[str, object], str]]


def _objects(values: list[object], name: str, place: str) -> _Placed:
    """Return objects, each with its place in the file."""
    placed: _Placed = []
    for index, value in enumerate(values):
        if not isinstance(value, dict):
            raise GraphFormatError("expected an object", source=name, place=f"{place}[{index}]")
        placed.append((value, f"{place}[{index}]"))
    return placed


def _node_link(nodes: _Placed, links: _Placed, name: str) -> _Plain:
    ids = [(_word(node.get("id"), name, place), node) for node, place in nodes]
    pairs = [
        (_end(link, "source", name, place), _end(link, "target", name, place), link)
        for link, place in links
    ]
    return _Plain(
        links=[(form, root) for form, root, _ in pairs],
        words=tuple(word for word, node in ids if node.get("blocked") is not True),
        roots=frozenset(word for word, node in ids if node.get("root") is True),
        ambiguous=frozenset(form for form, _, link in pairs if link.get("ambiguous") is True),
        blocked=tuple(word for word, node in ids if node.get("blocked") is True),
    )


def _lists(data: Mapping[str, object], name: str) -> Iterator[tuple[str, str]]:
    for key, forms in data.items():
        root = _word(key, name, key)
        # A root without forms is a word too.
        yield root, root
        assert isinstance(forms, list), "checked by _plain"
        for index, form in enumerate(forms):
            yield _word(form, name, f"$[{key!r}][{index}]"), root


def _end(link: Mapping[str, object], key: str, name: str, place: str) -> str:
    if key not in link:
        raise GraphFormatError(f"has no {key}; give source and target", source=name, place=place)
    return _word(link[key], name, place)


def _word(value: object, name: str, place: str) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise GraphFormatError(f"{value!r:.60} is not a word", source=name, place=place)
    return clean_word(value)


def _refuse_cycles(targets: Mapping[str, Mapping[str, None]], name: str) -> None:
    if problems := cycles(targets):
        raise GraphInvalidError(problems, name=name)


def _terminals(
    targets: Mapping[str, Mapping[str, None]], roots: Mapping[str, None]
) -> dict[str, dict[str, None]]:
    """Return the roots that each word leads to, the nearest and first written ones first.

    A root is not followed further, unless the search starts there.
    """
    found: dict[str, dict[str, None]] = {}
    # What a word leads to comes before it, so that each link is followed once.
    for word in TopologicalSorter(targets).static_order():
        found[word] = {}
        for target in targets.get(word, {}):
            found[word] |= {target: None} if target in roots else found[target]
    return found


RELEASED_VERSION: Final = "released"

Pair = tuple[str, str, tuple[str, ...]]
"""A keyword, the keyword after it (may be empty) and their roots, as written."""


def is_released(data: Mapping[str, object]) -> bool:
    """Return whether decoded JSON has the released layout: words, each with an object."""
    return bool(data) and all(isinstance(ways, dict) for ways in data.values())


def released_graph(data: Mapping[str, Mapping[str, object]], *, name: str) -> SynonymGraph:
    """Return the graph of a released layout.

    The graph keeps the entries exactly as written (a blank before ``pick up``, a comma after
    ``arrange``), because published matching compares them so. It also has edges between cleaned
    words, for lookups and drawings. Words of a released graph may lead to each other, so cycles
    are allowed.

    Args:
        data: The decoded file.
        name: The name of the file in error messages.

    Raises:
        GraphFormatError: A value does not have the layout, or there are too many entries.
    """
    # Sorted, so that a pickle and its JSON copy are equal graphs: word order has no meaning.
    pairs = tuple(sorted(_pairs(data, name)))
    return released_pairs(pairs, name=UNNAMED, version=RELEASED_VERSION)


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
        # A root that is not an entry of its own is found as itself.
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


def _pairs(data: Mapping[str, Mapping[str, object]], name: str) -> Iterator[Pair]:
    count = 0
    for word, ways in data.items():
        place = f"$[{word!r:.60}]"
        if not isinstance(ways, Mapping):
            raise GraphFormatError("expected an object of lists", source=name, place=place)
        for second, roots in ways.items():
            if not isinstance(roots, list):
                raise GraphFormatError("expected a list of roots", source=name, place=place)
            count += 1 + len(roots)
            if count > MAX_FORMS:
                raise GraphFormatError(
                    f"more than {MAX_FORMS} entries; split the graph", source=name
                )
            yield (
                _text(word, name, place),
                _text(second, name, place),
                tuple(_text(root, name, place) for root in roots),
            )


def _text(value: object, name: str, place: str) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise GraphFormatError(f"{value!r:.60} is not a word", source=name, place=place)
    return value
