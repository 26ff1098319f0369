"""Synonym graphs of a run: shipped ones by name, and files, which a server can't see."""

from __future__ import annotations

from pathlib import Path

from hallujudge.judge_service.engine.spec import (
    GraphLayout,
    GraphSource,
    InlineGraph,
    ScoreSpec,
    ShippedGraph,
)
from hallujudge.synonym_graphs import (
    GraphError,
    is_pickle,
    read_released_pickle,
    released_json,
    shipped_graphs,
    table_notes,
)

from .. import runs
from ..errors import InvalidInputError, NotFoundError

_MAX_GRAPH_BYTES = 16 << 20


def graph_source(name_or_path: str) -> GraphSource:
    """Return the graph of a shipped name or of a file.

    Raises:
        NotFoundError: The name is neither a shipped graph nor a file.
        InvalidInputError: The file can't be read.
    """
    if name_or_path in shipped_graphs():
        return ShippedGraph(name=name_or_path)
    path = Path(name_or_path)
    # A link to nothing, or to itself, is a file that can't be read.
    if not name_or_path or not (path.exists() or path.is_symlink()):
        raise NotFoundError(
            f"graph {name_or_path!r} is neither a shipped graph ({', '.join(shipped_graphs())}) "
            "nor a file; give one of these names, or check the path",
            reason="GRAPH_UNKNOWN",
            metadata={"graph": name_or_path},
        )
    # File names may hold bytes that are not UTF-8; signatures and messages may not.
    name = path.stem.encode(errors="replace").decode()
    # Any text is a valid table, so a broken JSON file must not be read as one.
    layout: GraphLayout = "json" if path.suffix.lower() == ".json" else "auto"
    return InlineGraph(name=name, text=_graph_text(path), layout=layout)


def graph_notes(spec: ScoreSpec) -> tuple[str, ...]:
    """Return notes on oddities of the user's graphs that have a defined meaning.

    Raises:
        InvalidInputError: A graph is broken.
    """
    own = [source for source in spec.graphs.values() if isinstance(source, InlineGraph)]
    if not own:
        return ()
    notes: list[str] = []
    for source in own:
        notes += (f"graph {source.name}: {note}" for note in table_notes(runs.read_graph(source)))
    return tuple(notes[:20])


def _graph_text(path: Path) -> str:
    """Return a graph file as text; a released pickle is converted to JSON."""
    try:
        if path.stat().st_size > _MAX_GRAPH_BYTES:
            raise InvalidInputError(
                f"graph file {path} is larger than {_MAX_GRAPH_BYTES} bytes; split it"
            )
        data = path.read_bytes()
        if is_pickle(data) or path.suffix in (".pkl", ".pickle"):
            return released_json(read_released_pickle(data, source=str(path)))
        return data.decode("utf-8-sig")
    except OSError as err:
        raise InvalidInputError(
            f"graph file {path}: {err.strerror or err}; give a graph file"
        ) from err
    except GraphError as err:
        raise InvalidInputError(str(err), reason="GRAPH_INVALID") from err
    except UnicodeDecodeError as err:
        raise InvalidInputError(f"graph file {path} is not UTF-8 text; save it as UTF-8") from err
