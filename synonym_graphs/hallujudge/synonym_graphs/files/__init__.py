"""Graph files: loading by name or path, and validation."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..errors import GraphFormatError, GraphInvalidError, GraphNotFoundError
from ..graph import SynonymGraph
from ..word_forms import clean_word
from .graph_parser import MAX_BYTES, MAX_FORMS, Layout, parse_graph
from .json_layouts import cycles, released_graph
from .released_pickles import is_pickle, read_released_pickle

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_SUFFIX: Final = ".json"
_PICKLES: Final = (".pkl", ".pickle")


@cache
def _data() -> Traversable:
    """Return the folder of the graphs that come with the package."""
    from importlib import resources

    return resources.files("hallujudge.synonym_graphs") / "data"


@cache
def shipped_graphs() -> tuple[str, ...]:
    """Return the names of the graphs that come with the package, sorted."""
    return tuple(
        sorted(
            entry.name.removesuffix(_SUFFIX)
            for entry in _data().iterdir()
            if entry.name.endswith(_SUFFIX)
        )
    )


def load_graph(name_or_path: str | os.PathLike[str]) -> SynonymGraph:
    """Load a shipped graph by its name, or any graph file by its path, and validate it.

    Text that equals the name of a shipped graph loads that graph. Any other text, and every path
    object, is a path.

    Raises:
        GraphNotFoundError: No shipped graph and no file has this name.
        GraphFormatError: The file cannot be read as a graph.
        GraphInvalidError: The graph contradicts itself.
    """
    value = os.fspath(name_or_path)
    if isinstance(name_or_path, str) and value in shipped_graphs():
        return _shipped(value)
    if not value:
        raise GraphNotFoundError(value, shipped=shipped_graphs())
    return graph_from_bytes(_read(Path(value), value), name=Path(value).stem or value, source=value)


def graph_from_bytes(data: bytes, *, name: str, source: str) -> SynonymGraph:
    """Parse and validate the content of a graph file: text of any layout, or a released pickle.

    Args:
        data: The content. It is untrusted: nothing in it is executed, and its size is limited.
        name: The name of a released graph in error messages.
        source: The name of the content in error messages.

    Raises:
        GraphFormatError: The content cannot be read as a graph.
        GraphInvalidError: The graph contradicts itself.
    """
    if is_pickle(data) or source.endswith(_PICKLES):
        words = read_released_pickle(data, source=source)
        return _checked(released_graph(words, name=name, limit=MAX_FORMS))
    # Any text is a valid table, so the suffix keeps a broken JSON file from being read as one.
    layout: Layout = "json" if source.lower().endswith(_SUFFIX) else "auto"
    return _checked(parse_graph(_decoded(data, source), layout=layout, name=name))


@lru_cache(maxsize=32)
def _shipped(name: str) -> SynonymGraph:
    text = (_data() / f"{name}{_SUFFIX}").read_text("utf-8")
    return _checked(parse_graph(text, layout="json", name=name))


def _checked(graph: SynonymGraph) -> SynonymGraph:
    problems = validate_graph(graph)
    if problems:
        raise GraphInvalidError(problems, name=graph.name)
    return graph


def _read(path: Path, shown: str) -> bytes:
    """Return the content of a file, and refuse one that is larger than the limit."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as err:
        raise GraphNotFoundError(shown, shipped=shipped_graphs()) from err
    except IsADirectoryError as err:
        raise GraphFormatError("is a directory; give a graph file in it", source=shown) from err
    except (OSError, ValueError) as err:
        # A path with a null character or of excessive length cannot name a file.
        if isinstance(err, ValueError) or not path.is_absolute():
            raise GraphNotFoundError(shown, shipped=shipped_graphs()) from err
        raise GraphFormatError(f"cannot be read ({err.strerror})", source=shown) from err
    if len(data) > MAX_BYTES:
        raise GraphFormatError(
            f"more than {MAX_BYTES} bytes; check that it is a graph, or split it", source=shown
        )
    return data


def _decoded(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        line = data.count(b"\n", 0, err.start) + 1
        raise GraphFormatError(
            f"not UTF-8 (byte {data[err.start]:#04x}); save it as UTF-8",
            source=source,
            place=f"line {line}",
        ) from err


def validate_graph(graph: SynonymGraph) -> tuple[str, ...]:
    """Return every problem of a graph as a sentence; empty if the graph is valid.

    Problems are contradictions: a cycle (its words are named), a form with two roots that is not
    declared ambiguous, a root that is not a category, a blank form, a rule about unknown words, or
    too many forms. An entry of two rows of a table is not a problem; see ``table_notes``.
    """
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
