"""Graphs in the plain JSON layouts that people write by hand or save from networkx.

Read are ``{form: root}``, ``{root: [forms]}`` and networkx's node-link layout (``nodes`` with
``links`` or ``edges``, each with ``source`` and ``target``, an edge leading from form to root).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ._graph import SynonymGraph
from .errors import GraphFormatError, GraphInvalidError

_VERSION = "plain"


def plain_graph(data: Mapping[str, object], name: str) -> SynonymGraph | None:
    """Return the graph of a plain layout, or None if the data has none of them.

    A form may lead to its root over other forms. Where it leads to several roots it must be
    declared ambiguous, which takes our own layout.

    Raises:
        GraphFormatError: An entry is not of the layout.
        GraphInvalidError: The links go in a circle; its words are named.
    """
    links = _links(data, name)
    if links is None:
        return None
    targets: dict[str, dict[str, None]] = {}
    words: dict[str, None] = {}
    for form, root in links:
        words |= {form: None, root: None}
        if form != root:
            targets.setdefault(form, {})[root] = None
    _refuse_circles(targets, name)
    edges = tuple((word, tuple(_terminals(word, targets))) for word in words)
    roots = tuple(word for word in words if word not in targets)
    return SynonymGraph(name=name, version=_VERSION, roots=roots, edges=edges)


def _links(data: Mapping[str, object], name: str) -> Iterator[tuple[str, str]] | None:
    """Links from form to root; None where the data has no plain layout."""
    linked = data.get("links", data.get("edges"))
    if isinstance(data.get("nodes"), list) and isinstance(linked, list):
        return _node_link(linked, name)
    if data and all(isinstance(value, str) for value in data.values()):
        return ((_word(f, name, f), _word(root, name, f)) for f, root in data.items())
    if data and all(isinstance(value, list) for value in data.values()):
        return _lists(data, name)
    return None


def _node_link(links: Iterable[object], name: str) -> Iterator[tuple[str, str]]:
    for index, link in enumerate(links):
        place = f"$.links[{index}]"
        if not isinstance(link, dict):
            raise GraphFormatError("expected an object", source=name, place=place)
        yield _word(link.get("source"), name, place), _word(link.get("target"), name, place)


def _lists(data: Mapping[str, object], name: str) -> Iterator[tuple[str, str]]:
    for key, forms in data.items():
        root = _word(key, name, key)
        yield root, root
        assert isinstance(forms, list), "_links looked"
        for index, form in enumerate(forms):
            yield _word(form, name, f"$[{key!r}][{index}]"), root


def _word(value: object, name: str, place: str) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise GraphFormatError(f"{value!r:.60} is not a word", source=name, place=place)
    return " ".join(value.casefold().split())


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


def _terminals(word: str, targets: Mapping[str, Mapping[str, None]]) -> dict[str, None]:
    """The words where all ways from a word end."""
    found: dict[str, None] = {}
    seen: set[str] = set()
    waiting = [word]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        if current in targets:
            waiting.extend(targets[current])
        else:
            found[current] = None
    return found
