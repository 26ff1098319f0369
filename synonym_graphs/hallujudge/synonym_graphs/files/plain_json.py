"""Graphs in the plain JSON layouts that people write by hand or save from networkx.

Read are ``{form: root}``, ``{root: [forms]}`` and networkx's node-link layout (``nodes`` with
``links`` or ``edges``, each with ``source`` and ``target``, an edge leading from form to root).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ..errors import GraphFormatError, GraphInvalidError
from ..graph import SynonymGraph
from ..words import clean_word

_VERSION = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plain:
    """What a plain layout says."""

    links: Iterable[tuple[str, str]]
    """Form -> root."""
    words: tuple[str, ...] = ()
    """Words that need no link to be there."""
    roots: frozenset[str] = frozenset()
    """Words that are roots though they may lead to a wider one."""
    ambiguous: frozenset[str] = field(default_factory=frozenset)
    """Words that may lead to several roots."""
    blocked: tuple[str, ...] = ()
    """Words that name nothing."""


def plain_graph(data: Mapping[str, object], name: str) -> SynonymGraph | None:
    """Return the graph of a plain layout, or None if the data has none of them.

    A form may lead to its root over other forms. Where it leads to several roots it must be
    declared ambiguous, which takes our own layout or edges of networkx with ``ambiguous`` set. What
    ``SynonymGraph.to_networkx`` notes at nodes and edges is read, so that a graph which is saved
    from there comes back with the same words and roots.

    Raises:
        GraphFormatError: An entry is not of the layout.
        GraphInvalidError: The links go in a circle; its words are named.
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
    _refuse_circles(targets, name)
    roots = {word: None for word in words if word in plain.roots or word not in targets}
    return SynonymGraph(
        name=name,
        version=_VERSION,
        roots=tuple(roots),
        edges=tuple((word, tuple(_terminals(word, targets, roots))) for word in words),
        ambiguous=plain.ambiguous,
        compounds=tuple((word, None) for word in sorted(plain.blocked)),
    )


def _plain(data: Mapping[str, object], name: str) -> _Plain | None:
    linked = data.get("links", data.get("edges"))
    if isinstance(nodes := data.get("nodes"), list) and isinstance(linked, list):
        if data.get("directed") is False:
            raise GraphFormatError(
                "an undirected graph does not say which word is the root; save a DiGraph with "
                "edges from form to root",
                source=name,
                place="$.directed",
            )
        return _node_link(_objects(nodes, name, "$.nodes"), _objects(linked, name, "$.links"), name)
    if data and all(isinstance(value, str) for value in data.values()):
        return _Plain(links=((_word(f, name, f), _word(root, name, f)) for f, root in data.items()))
    if data and all(isinstance(value, list) for value in data.values()):
        return _Plain(links=_lists(data, name))
    return None


_Placed = list[tuple[dict[str, object], str]]


def _objects(values: list[object], name: str, place: str) -> _Placed:
    """Objects, each with its place."""
    placed: _Placed = []
    for index, value in enumerate(values):
        if not isinstance(value, dict):
            raise GraphFormatError("expected an object", source=name, place=f"{place}[{index}]")
        placed.append((value, f"{place}[{index}]"))
    return placed


def _node_link(nodes: _Placed, links: _Placed, name: str) -> _Plain:
    ids = [(_word(node.get("id"), name, place), node) for node, place in nodes]
    pairs = [
        (_word(link.get("source"), name, place), _word(link.get("target"), name, place), link)
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
        yield root, root
        assert isinstance(forms, list), "_plain looked"
        for index, form in enumerate(forms):
            yield _word(form, name, f"$[{key!r}][{index}]"), root


def _word(value: object, name: str, place: str) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise GraphFormatError(f"{value!r:.60} is not a word", source=name, place=place)
    return clean_word(value)


def _refuse_circles(targets: Mapping[str, Mapping[str, None]], name: str) -> None:
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_edges_from((form, root) for form, roots in targets.items() for root in roots)
    problems = [
        "a cycle: " + " -> ".join(sorted(circle))
        for circle in nx.strongly_connected_components(graph)
        if len(circle) > 1
    ]
    if problems:
        raise GraphInvalidError(sorted(problems), name=name)


def _terminals(
    word: str, targets: Mapping[str, dict[str, None]], roots: Mapping[str, None]
) -> dict[str, None]:
    """The roots where the ways from a word end, the nearest and first written one first."""
    found: dict[str, None] = {}
    seen: set[str] = set()
    waiting = [word]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        if current in roots:
            found[current] = None
        if current == word or current not in roots:
            waiting.extend(reversed(targets.get(current, {})))
    return found
