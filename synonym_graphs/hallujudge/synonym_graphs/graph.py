"""The synonym graph as a value, the errors of this package, and what makes a graph valid.

::

    GraphError (ValueError)
    ├── GraphFormatError     the file is not a graph: unreadable, too large, wrong layout
    ├── GraphInvalidError    the file is a graph, but contradicts itself
    └── GraphNotFoundError   no graph has this name, and no file has this path

"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, Final

from .word_forms import clean_word, singular

if TYPE_CHECKING:
    import networkx as nx


FORMAT: Final = "hallujudge-synonyms/1"
# Graphs may come from callers. The largest shipped one has 1,488 forms in 42 kB.
MAX_BYTES: Final = 16 * 1024 * 1024
"""The maximum size of a graph file."""
MAX_FORMS: Final = 500_000
"""The maximum number of surface forms of a graph."""


class GraphError(ValueError):
    """Base class of this package's errors."""


class GraphFormatError(GraphError):
    """A file cannot be read as a synonym graph.

    Attributes:
        source: The file or name that was read.
        place: A line ("line 3") or a JSON path ("$.categories.cat"); may be empty.
    """

    def __init__(self, message: str, *, source: str, place: str = "") -> None:
        # "$" is the whole file.
        where = f"{source}, {place}" if place not in ("", "$") else source
        super().__init__(f"{where}: {message}")
        self.source = source
        self.place = place


class GraphInvalidError(GraphError):
    """A graph was read, but breaks the rules that every graph must keep.

    Attributes:
        problems: Every problem that was found, not only the first.
    """

    def __init__(self, problems: Iterable[str], *, name: str = "graph") -> None:
        self.problems = tuple(problems)
        shown = "; ".join(self.problems[:10])
        more = len(self.problems) - 10
        tail = f"; and {more} more" if more > 0 else ""
        count = len(self.problems)
        super().__init__(
            f"{name}: {count} problem{'' if count == 1 else 's'}: {shown}{tail}. "
            "Correct the graph; hallujudge graph validate prints the whole list"
        )


class GraphNotFoundError(GraphError):
    """No shipped graph and no file has this name.

    Attributes:
        value: The name or path that was given.
        shipped: The names of the shipped graphs.
    """

    def __init__(self, value: str, *, shipped: Iterable[str]) -> None:
        self.value = value
        self.shipped = tuple(shipped)
        names = ", ".join(self.shipped) or "none"
        super().__init__(
            f"no synonym graph {value!r:.300}. Shipped graphs: {names}. "
            "Give one of these names, or the path of a graph file."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QualifierRule:
    """Qualifiers that do not change which object the next word names ("baby" elephant)."""

    qualifiers: tuple[str, ...]
    """Words that may stand before a head."""
    heads: tuple[str, ...]
    """The words that may follow them; a pair counts as its second word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressRule:
    """A word that does not count in captions that also mention another word."""

    form: str
    """The word that is dropped ("seat")."""
    beside: str
    """The word whose presence drops it ("toilet")."""


UNNAMED = "custom"
"""Name of a graph whose content has none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SynonymGraph:
    """A directed graph from surface forms to their root words.

    A graph is an immutable value: two graphs are equal if their digests are equal. Most forms have
    one root. A form that is declared ambiguous may have several. The caller then chooses one: the
    Mementos protocol chooses the root that the reference uses, an object matcher the first.

    Unlike the table of the published CHAIR script, the graph contains the multi-word names,
    qualifiers and exceptions, which the script keeps in code. They are part of the digest.
    """

    name: str
    """A short name, such as ``coco``."""
    version: str
    """The version of the content, as its author counts it."""
    roots: tuple[str, ...]
    """The categories, in the file's order."""
    edges: tuple[tuple[str, tuple[str, ...]], ...]
    """Every surface form with its root or roots; a root is a form of itself."""
    ambiguous: frozenset[str] = frozenset()
    """Forms that may have more than one root."""
    compounds: tuple[tuple[str, str | None], ...] = ()
    """Multi-word forms, each with the form that it counts as. None if it names no object."""
    qualifiers: tuple[QualifierRule, ...] = ()
    """Qualifier rules."""
    suppress: tuple[SuppressRule, ...] = ()
    """Suppress rules."""
    rows: tuple[tuple[str, ...], ...] = ()
    """For a table: its entries exactly as written, which the published variant needs."""
    pairs: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """For a released Mementos graph: its entries exactly as written, which published matching
    needs. Each has a keyword, the keyword after it (may be empty) and the roots."""
    digest: str = field(init=False)
    """SHA-256 of the canonical JSON, in hexadecimal."""
    _lookup: dict[str, tuple[str, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Compute the digest and the lookup table from the content."""
        digest = hashlib.sha256(self.to_json().encode()).hexdigest()
        # The class is frozen, and these are computed of its other fields.
        object.__setattr__(self, "digest", digest)
        object.__setattr__(self, "_lookup", dict(self.edges))

    def __eq__(self, other: object) -> bool:
        """Return whether both graphs have the same content."""
        if not isinstance(other, SynonymGraph):
            return NotImplemented
        return self.digest == other.digest

    def __hash__(self) -> int:
        """Return the hash of the digest."""
        return hash(self.digest)

    def __repr__(self) -> str:
        """Return the label and the size."""
        return f"<SynonymGraph {self.label}: {len(self.roots)} roots, {len(self.edges)} forms>"

    @property
    def label(self) -> str:
        """The name, the version and the first digits of the digest: ``coco-1@1a2b3c4d``."""
        return f"{self.name}-{self.version}@{self.digest[:8]}"

    def roots_of(self, form: str) -> tuple[str, ...]:
        """Return every root of a form; empty if the graph does not know it.

        The lookup ignores case, extra blanks and letter variants (composed, wide). A form that is
        not found is looked up again in the singular.
        """
        words = clean_word(form).split()
        found = self._lookup.get(" ".join(words))
        if found is None and words:
            # Of several words, the last one has the plural.
            words[-1] = singular(words[-1])
            found = self._lookup.get(" ".join(words))
        return found or ()

    def root_of(self, form: str) -> str | None:
        """Return the root of a form (the first, if it is ambiguous), or None."""
        roots = self.roots_of(form)
        return roots[0] if roots else None

    @property
    def table_entries(self) -> dict[str, str]:
        """Entry as written -> category, as the published script reads a table; the last row wins.

        Tables with equal entries have equal published numbers, whatever the order of their rows.
        Empty for a graph that is not a table.
        """
        return {entry: row[0] for row in self.rows for entry in row}

    def to_networkx(self) -> nx.DiGraph[str]:
        """Return the graph as ``networkx.DiGraph``, with an edge from each form to its root.

        Nodes carry ``root`` (bool); edges carry ``ambiguous`` and ``words`` (how many words the
        form has). Compounds that name nothing are nodes with ``blocked`` set and no edge.

        Raises:
            GraphError: networkx is not installed; nothing else of Hallujudge uses it.
        """
        try:
            import networkx as nx
        except ImportError as err:
            raise GraphError("to_networkx() needs networkx: pip install networkx") from err

        graph: nx.DiGraph[str] = nx.DiGraph(name=self.name, version=self.version)
        graph.add_nodes_from((root, {"root": True}) for root in self.roots)
        for form, roots in self.edges:
            for root in roots:
                if form != root:
                    self._add_edge(graph, form, root)
        for form, target in self.compounds:
            if target is None:
                graph.add_node(form, root=False, blocked=True)
        return graph

    def _add_edge(self, graph: nx.DiGraph[str], form: str, root: str) -> None:
        if form not in graph:
            graph.add_node(form, root=form in self.roots)
        ambiguous = form in self.ambiguous
        graph.add_edge(form, root, ambiguous=ambiguous, words=len(form.split()))

    def to_json(self) -> str:
        """Return the canonical JSON: sorted, one line per category, the same for equal content."""
        return json.dumps(self._as_data(), ensure_ascii=False, indent=1, sort_keys=True)

    def _as_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "format": FORMAT,
            "name": self.name,
            "version": self.version,
        }
        if self.pairs:
            # Everything else of a released graph is made of its entries.
            return data | {"pairs": self.pairs}
        forms: dict[str, list[str]] = {root: [] for root in self.roots}
        for form, roots in self.edges:
            for root in roots:
                if form != root:
                    forms.setdefault(root, []).append(form)
        data |= {
            "categories": [{"root": r, "forms": sorted(f)} for r, f in forms.items()],
            "ambiguous": sorted(self.ambiguous),
            "blocked": sorted(form for form, target in self.compounds if target is None),
            "reads_as": {form: target for form, target in self.compounds if target is not None},
            "qualifiers": [asdict(rule) for rule in self.qualifiers],
            "suppress": [asdict(rule) for rule in self.suppress],
        }
        if self.rows:
            data["rows"] = self.rows
        return data


# A cycle of 50,000 words would make an error of 489 KB.
_NAMED_WORDS = 20


# Each further one is a search of the whole graph, and an error shows ten problems.
_NAMED_CYCLES = 20


def cycles(targets: Mapping[str, Iterable[str]]) -> list[str]:
    """Return a sentence for each cycle of links, the first ones of a graph that has many.

    No two of them share a word, so that each needs a correction of its own.
    """
    left = {form: dict.fromkeys(roots) for form, roots in targets.items()}
    problems: list[str] = []
    while len(problems) < _NAMED_CYCLES:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as err:
            # Of two neighbours in the error, the first is what the second leads to.
            words = err.args[1][:0:-1]
            # A cycle is named alike wherever the search enters it.
            start = words.index(min(words))
            problems.append(_named_cycle([*words[start:], *words[:start]]))
            left = _without(left, frozenset(words))
        else:
            break
    return sorted(problems)


def _without(
    targets: Mapping[str, Mapping[str, None]], words: frozenset[str]
) -> dict[str, dict[str, None]]:
    return {
        form: dict.fromkeys(root for root in roots if root not in words)
        for form, roots in targets.items()
        if form not in words
    }


def _named_cycle(words: Sequence[str]) -> str:
    """Return the problem of a cycle, which names no more words than a person reads."""
    if len(words) <= _NAMED_WORDS:
        return "a cycle: " + " -> ".join((*words, words[0]))
    return f"a cycle of {len(words):,} words: {' -> '.join(words[:_NAMED_WORDS])} -> …"


def validate_graph(graph: SynonymGraph) -> tuple[str, ...]:
    """Return every problem of a graph as a sentence; empty if the graph is valid.

    Problems are contradictions: a cycle (its words are named), a form with two roots that is not
    declared ambiguous, a root that is not a category, a blank form, a rule about unknown words, or
    too many forms. An entry of two rows of a table is not a problem; see ``table_notes``.
    """
    # The checks below are for graphs of a size that can be searched.
    if len(graph.edges) > MAX_FORMS:
        return (f"{len(graph.edges)} forms exceed the limit of {MAX_FORMS}; split the graph",)
    checks = (_blanks, _roots, _several_roots, _cycles, _compounds, _rules)
    return tuple(problem for check in checks for problem in check(graph))


def table_notes(graph: SynonymGraph) -> tuple[str, ...]:
    """Return a note on each entry of a table that is in several rows, which is allowed."""
    rows: dict[str, list[str]] = defaultdict(list)
    for row in graph.rows:
        for entry in dict.fromkeys(row):
            rows[entry].append(row[0])
    return tuple(
        f"{entry!r} is in the rows of {', '.join(map(repr, roots))}; the last one counts"
        for entry, roots in rows.items()
        if len(roots) > 1
    )


def _blanks(graph: SynonymGraph) -> Iterator[str]:
    forms = [*graph.roots, *(f for f, _ in graph.edges), *(f for f, _ in graph.compounds)]
    if any(not form.strip() for form in forms):
        yield "a form is blank"
    for form in forms:
        if form != " ".join(form.split()):
            yield f"{form!r} has blanks that do not separate words"


def _roots(graph: SynonymGraph) -> Iterator[str]:
    if not graph.roots:
        yield "no categories"
    known = set(graph.roots)
    for form, roots in graph.edges:
        if not roots:
            yield f"{form!r} has no root"
        for root in roots:
            if root not in known:
                yield f"{form!r} leads to {root!r}, which is not a category"


def _several_roots(graph: SynonymGraph) -> Iterator[str]:
    for form, roots in graph.edges:
        if len(roots) > 1 and form not in graph.ambiguous:
            named = ", ".join(map(repr, roots))
            yield f"{form!r} has the roots {named}; declare it ambiguous or keep one"
    for form in sorted(graph.ambiguous - {form for form, _ in graph.edges}):
        yield f"{form!r} is declared ambiguous, but is not a form"


def _cycles(graph: SynonymGraph) -> Iterator[str]:
    """Find cycles in the links from forms to roots and from compounds to forms."""
    if graph.pairs:
        return  # Words of a released graph lead to each other by design.
    edges = [(form, root) for form, roots in graph.edges for root in roots if form != root]
    edges += [(form, target) for form, target in graph.compounds if target not in (None, form)]
    # The edges of a table have only the last row of an entry, which hides contradictory rows.
    for root, *entries in map(_cleaned, graph.rows):
        edges += [(entry, root) for entry in entries if entry and entry != root]
    targets: dict[str, dict[str, None]] = defaultdict(dict)
    for form, root in edges:
        targets[form][root] = None
    yield from cycles(targets)


def _cleaned(row: tuple[str, ...]) -> list[str]:
    return [clean_word(entry) for entry in row]


def _compounds(graph: SynonymGraph) -> Iterator[str]:
    known = dict(graph.edges)
    for form, target in graph.compounds:
        if " " not in form and "-" not in form:
            yield f"{form!r} is declared a compound, but has one word"
        if target is None and form in known and not graph.rows:
            yield f"{form!r} is blocked, but is also a form of {known[form][0]!r}"
        if target is not None and target not in known and not graph.rows:
            yield f"{form!r} reads as {target!r}, which is not a form"


def _rules(graph: SynonymGraph) -> Iterator[str]:
    known = {form for form, _ in graph.edges}
    for rule in graph.suppress:
        for word in (rule.form, rule.beside):
            if word not in known and not graph.rows:
                yield f"a suppress rule names {word!r}, which is not a form"
    for qualifier in graph.qualifiers:
        if not qualifier.qualifiers or not qualifier.heads:
            yield "a qualifier rule has no words"
