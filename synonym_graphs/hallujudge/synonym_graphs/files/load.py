"""Loading of synonym graphs by name or path."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Final

from ..errors import GraphFormatError, GraphInvalidError, GraphNotFoundError
from ..graph import SynonymGraph
from .parse import MAX_BYTES, MAX_FORMS, Layout, parse_graph
from .pickles import is_pickle, read_released_pickle
from .released import released_graph
from .validate import validate_graph

_DATA: Final = resources.files("hallujudge.synonym_graphs") / "data"
_SUFFIX: Final = ".json"
_PICKLES: Final = (".pkl", ".pickle")


def shipped_graphs() -> tuple[str, ...]:
    """Return the names of the graphs that come with the package, sorted."""
    return tuple(
        sorted(
            entry.name.removesuffix(_SUFFIX)
            for entry in _DATA.iterdir()
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
        name: The graph's name if the content has none.
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
    text = (_DATA / f"{name}{_SUFFIX}").read_text("utf-8")
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
