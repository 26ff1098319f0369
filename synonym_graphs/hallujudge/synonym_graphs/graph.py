"""The synonym graph as a value."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .words import clean_word

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, slots=True, kw_only=True)
class QualifierRule:
    """Qualifiers that change nothing about the word they stand before ("baby" elephant)."""

    qualifiers: tuple[str, ...]
    """The words that may stand in front."""
    heads: tuple[str, ...]
    """The words they may stand in front of; the pair is read as this word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressRule:
    """A word that does not count where another one is mentioned too."""

    form: str
    """The word that is dropped ("seat")."""
    beside: str
    """The word whose presence drops it ("toilet")."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SynonymGraph:
    """A directed graph from surface forms to the root words they stand for.

    A graph is an immutable value: two graphs are equal when their digests are. Most forms have one
    root. A form may have several if it is declared ambiguous; the caller then chooses (in the
    Mementos protocol the root that the reference uses wins), and a matcher reports the first.

    It departs from the table of the published CHAIR script in that multi-word names, qualifiers and
    exceptions are part of the graph and so of its digest, and not lines of code beside it.
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
    """Multi-word forms read as a unit, each with the form it reads as, or None: names nothing."""
    qualifiers: tuple[QualifierRule, ...] = ()
    """Qualifier rules."""
    suppress: tuple[SuppressRule, ...] = ()
    """Suppress rules."""
    rows: tuple[tuple[str, ...], ...] = ()
    """For a table: its entries exactly as written, on which the published variant is defined."""
    pairs: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """For a released Mementos graph: its entries exactly as written (a keyword, the keyword after
    it or nothing, the roots), on which the published matching is defined."""
    digest: str = field(init=False)
    """SHA-256 of the canonical JSON, in hexadecimal."""
    _lookup: dict[str, tuple[str, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Fill in what follows from the content."""
        digest = hashlib.sha256(self.to_json().encode()).hexdigest()
        object.__setattr__(self, "digest", digest)
        object.__setattr__(self, "_lookup", dict(self.edges))

    def __eq__(self, other: object) -> bool:
        """Tell whether both hold the same content."""
        if not isinstance(other, SynonymGraph):
            return NotImplemented
        return self.digest == other.digest

    def __hash__(self) -> int:
        """Hash the digest."""
        return hash(self.digest)

    def __repr__(self) -> str:
        """Show the label and the size."""
        return f"<SynonymGraph {self.label}: {len(self.roots)} roots, {len(self.edges)} forms>"

    @property
    def label(self) -> str:
        """Name, version and the first digits of the digest: ``coco-1@1a2b3c4d``."""
        return f"{self.name}-{self.version}@{self.digest[:8]}"

    def roots_of(self, form: str) -> tuple[str, ...]:
        """Return every root of a form; empty if the graph does not know it.

        Upper case, extra blanks and other spellings of the same letters (composed, wide) do not
        matter, and a plural is tried in the singular.
        """
        words = clean_word(form).split()
        found = self._lookup.get(" ".join(words))
        if found is None and words:
            from .singular import singular

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

        Two tables with equal entries give equal published numbers, in whatever order their rows
        and entries are. Empty for a graph that is not a table.
        """
        return {entry: row[0] for row in self.rows for entry in row}

    def forms_of(self, root: str) -> tuple[str, ...]:
        """Return every form of a root, sorted; empty if there is no such root."""
        return tuple(sorted(form for form, roots in self.edges if root in roots))

    def to_networkx(self) -> nx.DiGraph[str]:
        """Return the graph as ``networkx.DiGraph``, with an edge from each form to its root.

        Nodes carry ``root`` (bool); edges carry ``ambiguous`` and ``words`` (how many words the
        form has). Compounds that name nothing are nodes with ``blocked`` set and no edge.
        """
        import networkx as nx

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
        if self.pairs:
            return {
                "format": "hallujudge-synonyms/1",
                "name": self.name,
                "version": self.version,
                "pairs": [[word, second, list(roots)] for word, second, roots in self.pairs],
            }
        forms: dict[str, list[str]] = {root: [] for root in self.roots}
        for form, roots in self.edges:
            for root in roots:
                if form != root:
                    forms.setdefault(root, []).append(form)
        data: dict[str, Any] = {
            "format": "hallujudge-synonyms/1",
            "name": self.name,
            "version": self.version,
            "categories": [{"root": r, "forms": sorted(f)} for r, f in forms.items()],
            "ambiguous": sorted(self.ambiguous),
            "blocked": sorted(form for form, target in self.compounds if target is None),
            "reads_as": {form: target for form, target in self.compounds if target is not None},
            "qualifiers": [
                {"qualifiers": list(q.qualifiers), "heads": list(q.heads)} for q in self.qualifiers
            ],
            "suppress": [{"form": s.form, "beside": s.beside} for s in self.suppress],
        }
        if self.rows:
            data["rows"] = [list(row) for row in self.rows]
        return data
