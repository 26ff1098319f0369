"""The parts of a run's spec and notes: graphs by name or file, keys of groups, intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from hallujudge.judge_service.engine.spec import (
    GraphLayout,
    GraphSource,
    InlineGraph,
    ScoreSpec,
    ShippedGraph,
    known_metric,
)
from hallujudge.judge_service.installation import is_whole
from hallujudge.metrics import IntervalSettings, Item
from hallujudge.metrics.errors import choose_from

from .. import runs
from ..errors import InvalidInputError, NotFoundError

# Enough to find a word that a metric's rules miss; larger archives are not read twice for it.
_FIRST_ITEMS = 1_000
# The role of a metric's only graph, and the first one of a metric with several.
_FIRST_ROLE = "objects"


def graph_sources(
    metric: str, graph: str | Path | Mapping[str, str] | None
) -> dict[str, GraphSource]:
    """Return role -> graph.

    Args:
        metric: The metric's name.
        graph: A shipped name or a file, for the metric's first role; or role -> either.

    Raises:
        NotFoundError: The metric or a graph is unknown.
        InvalidInputError: A graph file can't be read.
    """
    known_metric(metric)
    if isinstance(graph, (str, Path)):
        graph = {_FIRST_ROLE: str(graph)}
    return {role: graph_source(name) for role, name in (graph or {}).items()}


def group_keys(metric: str, group_by: Sequence[str]) -> tuple[str, ...]:
    """Return the keys to report groups by: the metric's own, then those that were given.

    Raises:
        NotFoundError: The metric is unknown.
    """
    if isinstance(group_by, str):
        raise InvalidInputError(f"group_by is the text {group_by!r}; give a list, [{group_by!r}]")
    return tuple(dict.fromkeys((*known_metric(metric).group_by, *group_by)))


def interval_settings(confidence: float) -> IntervalSettings:
    """Return how intervals are made.

    Raises:
        InvalidInputError: A number is out of range.
    """
    try:
        return IntervalSettings(confidence=confidence)
    except ValueError as err:
        raise InvalidInputError(str(err)) from err


def input_notes(spec: ScoreSpec, items: Iterable[Item]) -> tuple[str, ...]:
    """Return notes for the report on its archive, and on words of references and responses.

    Notes on words need the graph and the rules of the metric, which a client alone does not have.

    Args:
        spec: How the items are scored.
        items: The items; those of an archive know the words of its references.
    """
    about_archive: tuple[str, ...] = getattr(items, "about_scores", ())
    if not is_whole():
        return about_archive
    entry = runs.metric_entry(spec.metric)
    names: frozenset[str] = getattr(items, "reference_names", frozenset)()
    about_references = entry.reference_notes(spec, names) if names else ()
    about_responses = entry.response_notes(spec, islice(items, _FIRST_ITEMS))
    return (*about_archive, *about_references, *about_responses)


# A graph travels in the spec, which is sent with every stream and must fit a message.
_MAX_GRAPH_BYTES = 16 << 20


def graph_source(name_or_path: str) -> GraphSource:
    """Return the graph of a shipped name or of a file.

    Raises:
        NotFoundError: The name is neither a shipped graph nor a file.
        InvalidInputError: The file can't be read.
    """
    shipped = runs.shipped_graphs()
    if name_or_path in shipped:
        return ShippedGraph(name=name_or_path)
    path = Path(name_or_path)
    # A link to nothing, or to itself, is a file that can't be read.
    if not name_or_path or not (path.exists() or path.is_symlink()):
        raise NotFoundError(
            f"graph {name_or_path!r} is neither a shipped graph nor a file; "
            f"{choose_from(name_or_path, shipped)}, or check the path",
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
        notes += (
            f"graph {source.name}: {note}" for note in runs.table_notes(runs.read_graph(source))
        )
    # A broken table may have a note for each line, and a report shows them all.
    return tuple(notes[:20])


def _graph_text(path: Path) -> str:
    """Return a graph file as text; a released pickle is converted to JSON."""
    try:
        if path.stat().st_size > _MAX_GRAPH_BYTES:
            raise InvalidInputError(
                f"graph file {path} is larger than {_MAX_GRAPH_BYTES} bytes; split it"
            )
        data = path.read_bytes()
        if runs.is_pickle(data) or path.suffix in (".pkl", ".pickle"):
            return runs.released_json(runs.read_released_pickle(data, source=str(path)))
        # Editors on Windows begin a file with a mark, which would be part of the first word.
        return data.decode("utf-8-sig")
    except OSError as err:
        raise InvalidInputError(
            f"graph file {path}: {err.strerror or err}; give a graph file"
        ) from err
    except runs.GraphError as err:
        raise InvalidInputError(str(err), reason="GRAPH_INVALID") from err
    except UnicodeDecodeError as err:
        raise InvalidInputError(f"graph file {path} is not UTF-8 text; save it as UTF-8") from err
