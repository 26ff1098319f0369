"""Patches, merges, differences and statistics of graphs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from hallujudge.synonym_graphs.graph import (
    MAX_BYTES,
    GraphFormatError,
    GraphInvalidError,
    SynonymGraph,
    validate_graph,
)
from hallujudge.synonym_graphs.graph_parser import newer_format
from hallujudge.synonym_graphs.json_layouts import released_pairs
from hallujudge.synonym_graphs.word_forms import clean_word

PATCH_FORMAT: Final = "hallujudge-graph-patch/1"
ACCEPT, REJECT, PENDING = "accept", "reject", "pending"
_DECISIONS: Final = (PENDING, ACCEPT, REJECT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A root that an unknown keyword may belong to."""

    root: str
    score: float
    """How near the keyword is to the root, in [0, 1]."""
    source: str
    """The source: ``spelling``, ``words``, ``wordnet``, ``embedding`` or ``llm``; several are
    joined by ``+``."""
    form: str = ""
    """The form of the root that is nearest. Empty for the root itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchEntry:
    """The candidates for one keyword, and the decision."""

    form: str
    """The keyword."""
    decision: str = PENDING
    """``pending``, ``accept`` or ``reject``."""
    root: str = ""
    """The accepted root; the keyword itself creates a new root."""
    count: int = 0
    """In how many items the keyword occurred."""
    candidates: tuple[Candidate, ...] = ()
    """Candidate roots, the best first."""

    def to_json(self) -> dict[str, Any]:
        """Return the entry as it is written to a patch file."""
        # People read the file, and more digits would say nothing: the scores only order roots.
        rounded = (replace(each, score=round(each.score, 4)) for each in self.candidates)
        return asdict(replace(self, candidates=tuple(rounded)))


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPatch:
    """Decisions about keywords that a graph does not know."""

    graph: str
    """The label of the graph that the patch belongs to."""
    entries: tuple[PatchEntry, ...] = ()
    """The keywords."""

    def to_text(self) -> str:
        """Return the content of the patch file, which people read and edit."""
        data = {
            "format": PATCH_FORMAT,
            "graph": self.graph,
            "entries": [entry.to_json() for entry in self.entries],
        }
        return json.dumps(data, ensure_ascii=False, indent=1) + "\n"

    def decided(self, accepted: Mapping[str, str], rejected: Iterable[str]) -> GraphPatch:
        """Return the patch with decisions.

        Args:
            accepted: Keyword -> root.
            rejected: Keywords.

        Raises:
            KeyError: A keyword is not in the patch.
        """
        refused = set(rejected)
        known = {entry.form for entry in self.entries}
        for form in (*accepted, *refused):
            if form not in known:
                raise KeyError(form)
        return replace(
            self, entries=tuple(_decide(entry, accepted, refused) for entry in self.entries)
        )


def _decide(entry: PatchEntry, accepted: Mapping[str, str], refused: set[str]) -> PatchEntry:
    if entry.form in refused:
        return replace(entry, decision=REJECT, root="")
    if entry.form in accepted:
        return replace(entry, decision=ACCEPT, root=accepted[entry.form])
    return entry


def parse_patch(text: str, *, name: str) -> GraphPatch:
    """Parse the content of a patch file.

    Raises:
        GraphFormatError: The text is not a patch file; the error names the place.
    """
    if len(text) > MAX_BYTES:
        raise GraphFormatError(f"more than {MAX_BYTES} characters", source=name)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as err:
        raise GraphFormatError(f"not JSON ({err})", source=name) from err
    found = data.get("format") if isinstance(data, dict) else None
    if problem := newer_format(found, PATCH_FORMAT):
        raise GraphFormatError(problem, source=name, place="$.format")
    if not isinstance(data, dict) or found != PATCH_FORMAT:
        raise GraphFormatError(
            f"is not a patch file: expected the format {PATCH_FORMAT!r}", source=name
        )
    entries = data.get("entries")
    if not isinstance(entries, list):
        raise GraphFormatError("expected a list", source=name, place="$.entries")
    return GraphPatch(
        graph=str(data.get("graph", "")),
        entries=tuple(_entry(value, index, name) for index, value in enumerate(entries)),
    )


def _entry(value: object, index: int, name: str) -> PatchEntry:
    place = f"$.entries[{index}]"
    if not isinstance(value, dict) or not isinstance(value.get("form"), str):
        raise GraphFormatError("expected an object with a form", source=name, place=place)
    decision, root = value.get("decision", PENDING), value.get("root", "")
    if decision not in _DECISIONS:
        known = ", ".join(_DECISIONS)
        raise GraphFormatError(
            f"decision {decision!r:.40} is not one of {known}", source=name, place=place
        )
    if not isinstance(root, str) or (decision == ACCEPT and not root.strip()):
        raise GraphFormatError(
            f"{value['form']!r} is accepted without a root; name one, or the word itself for a new "
            "root",
            source=name,
            place=place,
        )
    # Candidates are not read back: they only help a person to decide, and suggest ranks them again.
    count = value.get("count", 0)
    return PatchEntry(
        form=value["form"],
        decision=decision,
        root=root,
        count=count if isinstance(count, int) else 0,
    )


def apply_patch(graph: SynonymGraph, patch: GraphPatch, *, version: str = "") -> SynonymGraph:
    """Return the graph with every accepted keyword.

    A keyword that already has another root gets a second one and becomes ambiguous. A root that is
    a form of the graph is replaced by that form's roots. An unknown root is created.

    Args:
        graph: The graph.
        patch: The decisions; pending and rejected ones change nothing.
        version: The new graph's version. By default the next number, or the old one with ``+1``.

    Raises:
        GraphInvalidError: The result contradicts itself, for example by a cycle.
    """
    accepted = [(e.form, e.root) for e in patch.entries if e.decision == ACCEPT]
    version = version or _next(graph.version)
    # Edges of a released graph are made from its pairs, so that these are what is edited.
    if graph.pairs:
        return _with_pairs(graph, accepted, version)
    links = [(clean_word(form), clean_word(root)) for form, root in accepted]
    own = dict(graph.edges)
    # New roots, and cycles, which the validation of the result must find.
    plain = {(form, root): None for form, root in links if form in (root, *own.get(root, ()))}
    resolved = _to_roots(graph, (link for link in links if link not in plain))
    return _with_links(graph, [*plain, *resolved], version)


def _to_roots(graph: SynonymGraph, links: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the links; a target that is a form of the graph is replaced by the form's roots."""
    # A person may accept mug as a root, which is a form of cup: it leads to cup then.
    roots, own = set(graph.roots), dict(graph.edges)
    return [
        (form, target)
        for form, root in links
        for target in ((root,) if root in roots else own.get(root, (root,)))
    ]


def _with_links(
    graph: SynonymGraph, links: Sequence[tuple[str, str]], version: str
) -> SynonymGraph:
    edges = {form: dict.fromkeys(roots) for form, roots in graph.edges}
    roots = dict.fromkeys(graph.roots)
    for form, root in links:
        roots[root] = None
        edges.setdefault(root, {})[root] = None
        edges.setdefault(form, {})[root] = None
    # Validation refuses a form with several roots that is not declared ambiguous.
    several = {form for form, found in edges.items() if len(found) > 1}
    grown = replace(
        graph,
        version=version,
        roots=tuple(roots),
        edges=tuple((form, tuple(found)) for form, found in edges.items()),
        ambiguous=graph.ambiguous | several,
    )
    if problems := validate_graph(grown):
        raise GraphInvalidError(problems, name=grown.label)
    return grown


def _with_pairs(
    graph: SynonymGraph, links: Sequence[tuple[str, str]], version: str
) -> SynonymGraph:
    pairs = {(word, second): dict.fromkeys(roots) for word, second, roots in graph.pairs}
    for form, root in links:
        # A root is a keyword of its own, as in the released graphs.
        pairs.setdefault((root, ""), {}).setdefault(root)
        pairs.setdefault((form, ""), {}).setdefault(root)
    entries = tuple(sorted((w, second, tuple(roots)) for (w, second), roots in pairs.items()))
    return released_pairs(entries, name=graph.name, version=version)


def merge_graphs(
    first: SynonymGraph, second: SynonymGraph, *, name: str = "", version: str = "1"
) -> SynonymGraph:
    """Return a graph with the content of both graphs.

    A form that has different roots in the two graphs keeps both and becomes ambiguous. If a root of
    the second graph is a form of the first, its forms get the first graph's root.

    Raises:
        GraphInvalidError: The graphs contradict each other, for example by a cycle, or only one of
            them is a released graph.
    """
    name = name or first.name
    if bool(first.pairs) != bool(second.pairs):
        raise GraphInvalidError(
            ["a released graph cannot be merged with a graph of another layout"], name=name
        )
    if first.pairs:
        links = [(w, root) for w, s, roots in second.pairs if not s for root in roots]
        return replace(_with_pairs(first, links, version), name=name)
    both = replace(
        first,
        name=name,
        ambiguous=first.ambiguous | second.ambiguous,
        # Of equal keys the last entry wins, which is the first graph's.
        compounds=tuple(dict([*second.compounds, *first.compounds]).items()),
        qualifiers=tuple(dict.fromkeys((*first.qualifiers, *second.qualifiers))),
        suppress=tuple(dict.fromkeys((*first.suppress, *second.suppress))),
        # Rows are those of one table file, and the new graph has none.
        rows=(),
    )
    theirs = ((form, root) for form, roots in second.edges for root in roots)
    return _with_links(both, _to_roots(first, theirs), version)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphDifference:
    """The difference between two graphs."""

    added: tuple[tuple[str, str], ...] = ()
    """(form, root) pairs that only the second graph has."""
    removed: tuple[tuple[str, str], ...] = ()
    """(form, root) pairs that only the first graph has."""
    new_roots: tuple[str, ...] = ()
    """Roots that only the second graph has."""
    lost_roots: tuple[str, ...] = ()
    """Roots that only the first graph has."""


def difference(first: SynonymGraph, second: SynonymGraph) -> GraphDifference:
    """Return the changes that turn the first graph into the second one."""
    old, new = (
        {(form, root) for form, roots in g.edges for root in roots} for g in (first, second)
    )
    return GraphDifference(
        added=tuple(sorted(new - old)),
        removed=tuple(sorted(old - new)),
        new_roots=tuple(sorted(set(second.roots) - set(first.roots))),
        lost_roots=tuple(sorted(set(first.roots) - set(second.roots))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphStatistics:
    """Counts of a graph's content."""

    roots: int
    """The number of roots."""
    forms: int
    """The number of forms, including roots."""
    edges: int
    """The number of links from a form to another word."""
    ambiguous: int
    """The number of forms with several roots."""
    phrases: int
    """The number of forms of several words."""
    alone: int
    """The number of roots without other forms."""
    largest: tuple[tuple[str, int], ...] = field(default=())
    """The roots with the most forms, and how many they have."""


def statistics_of(graph: SynonymGraph) -> GraphStatistics:
    """Return the statistics of a graph."""
    sizes = Counter(root for form, roots in graph.edges for root in roots if root != form)
    return GraphStatistics(
        roots=len(graph.roots),
        forms=len(graph.edges),
        edges=sizes.total(),
        ambiguous=sum(len(roots) > 1 for _, roots in graph.edges),
        phrases=sum(" " in form for form, _ in graph.edges),
        alone=sum(root not in sizes for root in graph.roots),
        largest=tuple(sorted(sizes.items(), key=lambda pair: (-pair[1], pair[0]))[:10]),
    )


def _next(version: str) -> str:
    """Return the next version: ``2`` after ``1``, ``released+1`` after ``released``."""
    head, plus, tail = version.rpartition("+")
    number = tail if plus else version
    if number.isdecimal():
        return f"{head}{plus}{int(number) + 1}"
    return f"{version}+1"
