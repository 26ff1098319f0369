"""The synonym graph as a value."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from .errors import GraphError
from .word_forms import clean_word, singular

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, slots=True, kw_only=True)
class QualifierRule:
    """Qualifiers that do not change which object the next word names ("baby" elephant)."""

    qualifiers: tuple[str, ...]
    """The qualifiers."""
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
            "format": "hallujudge-synonyms/1",
            "name": self.name,
            "version": self.version,
        }
        if self.pairs:
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
