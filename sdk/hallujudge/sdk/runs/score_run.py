"""The description of a scoring run, shared by the command line and both clients; its specification.

Importing a client loads this module, and neither the engine nor the graphs: their names are taken
from the package :mod:`hallujudge.sdk.runs`, which imports them on first use.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeAlias, TypeVar

from msgspec import Struct

from hallujudge import metrics
from hallujudge.metrics.errors import choose_from

from .. import runs
from ..errors import InvalidInputError, NotFoundError

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.spec import GraphLayout, GraphSource, ScoreSpec
    from hallujudge.judge_service.engine.streams import RunProgress
    from hallujudge.metrics import IntervalSettings, Item

    from ..archives import InputOptions, References, Responses
    from ..backends import BatchResult


OnBatch: TypeAlias = "Callable[[BatchResult], None]"
"""Callback for each batch of items and their results, in the order of the items."""
OnProgress: TypeAlias = "Callable[[RunProgress], None]"
"""Callback for what a run is doing while it has no results."""

# Enough to find a word that a metric's rules miss; larger archives are not read twice for it.
_FIRST_ITEMS = 1_000
# The role of a metric's only graph, and the first one of a metric with several.
_FIRST_ROLE = "objects"
# A graph travels in the spec, which is sent with every stream and must fit a message.
_MAX_GRAPH_BYTES = 16 << 20

_P = ParamSpec("_P")
_Self = TypeVar("_Self")
_Value = TypeVar("_Value")
_Result = TypeVar("_Result")


class SaveOptions(Struct, frozen=True, kw_only=True):
    """What a run's folder holds of its items."""

    keep_text: bool = True
    """Whether responses are saved; otherwise their SHA-256."""
    html: bool = False
    """Whether ``report.html`` is written."""


@dataclass(frozen=True, slots=True)
class ScoreRun:
    """A scoring run. Its fields are the arguments of ``Client.score``."""

    metric: str
    """The metric's name, such as ``"chair"``."""
    _: KW_ONLY
    responses: Responses
    """A file, a mapping id -> text, a table (DataFrame), or records."""
    references: References | None = None
    """A file, a mapping id -> reference, or records; None where responses carry them."""
    ids: str = ""
    """``"position"`` for lists and tables without ids, whose order this states: the first response
    belongs to the first reference, and so on. Without it, nothing is joined by order."""
    variant: str = ""
    """The metric's variant; empty for its default."""
    graph: str | Path | Mapping[str, str] | None = None
    """A shipped graph's name or a file; for metrics with several graphs, role -> name or file."""
    options: Mapping[str, object] | None = None
    """The metric's own options by name: texts, numbers or truth values."""
    group_by: Sequence[str] = ()
    """Fields of the responses to report groups by; empty for the metric's default."""
    confidence: float = 0.95
    """Confidence level of the intervals."""
    inputs: InputOptions | None = None
    """How files are read and joined."""
    on_batch: OnBatch | None = None
    """Callback for each batch of results, in the order of the responses."""
    progress: bool = False
    """Whether a progress bar is shown on standard error."""
    keep_items: bool = True
    """Whether the report holds the items; False saves time and memory in runs of many items.
    With ``folder`` the items are in the folder only."""
    folder: str | Path | None = None
    """Folder that the run writes to while it scores; None writes nothing."""
    resume: bool = False
    """Whether to go on with the run that stopped in the folder."""
    overwrite: bool = False
    """Whether to replace a complete run of other inputs or settings in the folder."""
    keep_text: bool = True
    """Whether the folder's items hold the responses; otherwise their SHA-256."""
    html: bool = False
    """Whether ``report.html`` is written to the folder."""
    workers: int = 1
    """Processes that score into the folder; 1 is this process alone. 0: as many as there are cores
    if the run is large and calls no model. A script that starts others needs an
    ``if __name__ == "__main__":``."""
    engine: str = "local"
    """Where processes run: ``local`` on this machine, ``ray`` on a Ray cluster (extra ``ray``)."""
    ray_address: str = ""
    """Address of a running Ray cluster; empty starts one on this machine."""

    @property
    def save_options(self) -> SaveOptions:
        """What the folder holds of the items."""
        return SaveOptions(keep_text=self.keep_text, html=self.html)

    def paths(self) -> tuple[Path, ...]:
        """Return the files that the run reads."""
        sources = (self.responses, self.references)
        archives = [path for s in sources for path in (s if isinstance(s, list) else [s])]
        graphs = self.graph.values() if isinstance(self.graph, Mapping) else [self.graph]
        more = runs.own_paths(self.metric, self.inputs, "file").values() if self.inputs else ()
        given = (*archives, *graphs, *more)
        return tuple(
            Path(path) for path in given if isinstance(path, (str, Path)) and not runs.is_url(path)
        )

    def spec(self) -> ScoreSpec:
        """Return how items are scored; graph files are read here, since a server can't see them.

        Raises:
            NotFoundError: The metric or a graph is unknown.
            InvalidInputError: A graph file can't be read, or an interval argument is invalid.
        """
        options = {name: _text(value) for name, value in (self.options or {}).items()}
        if own := runs.declaration_hash(self.metric):
            options[runs.DECLARATION] = own
        return runs.ScoreSpec(
            metric=self.metric,
            variant=self.variant,
            graphs=_graph_sources(self.metric, self.graph),
            options=options,
            group_by=group_keys(self.metric, self.group_by),
            interval=_interval_settings(self.confidence),
        )


def _text(value: object) -> str:
    """Return an option's value as messages and signatures hold it."""
    found = runs.plain(value)
    # As JSON and the command line write it, not as Python does.
    return str(found).lower() if isinstance(found, bool) else str(value)


def _graph_sources(
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
    runs.known_metric(metric)
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
    return tuple(dict.fromkeys((*runs.known_metric(metric).group_by, *group_by)))


def _interval_settings(confidence: float) -> IntervalSettings:
    """Return how intervals are made.

    Raises:
        InvalidInputError: A number is out of range.
    """
    try:
        return metrics.IntervalSettings(confidence=confidence)
    except ValueError as err:
        raise InvalidInputError(str(err)) from err


def graph_source(name_or_path: str) -> GraphSource:
    """Return the graph of a shipped name or of a file.

    Raises:
        NotFoundError: The name is neither a shipped graph nor a file.
        InvalidInputError: The file can't be read.
    """
    shipped = runs.shipped_graphs()
    if name_or_path in shipped:
        return runs.ShippedGraph(name=name_or_path)
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
    return runs.InlineGraph(name=name, text=_graph_text(path), layout=layout)


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


# Notes --------------------------------------------------------------------------------------------


def graph_notes(spec: ScoreSpec) -> tuple[str, ...]:
    """Return notes on oddities of the user's graphs that have a defined meaning.

    Raises:
        InvalidInputError: A graph is broken.
    """
    own = [source for source in spec.graphs.values() if isinstance(source, runs.InlineGraph)]
    notes = [
        f"graph {source.name}: {note}"
        for source in own
        for note in runs.table_notes(runs.read_graph(source))
    ]
    # A broken table may have a note for each line, and a report shows them all.
    return tuple(notes[:20])


def input_notes(spec: ScoreSpec, items: Iterable[Item]) -> tuple[str, ...]:
    """Return notes for the report on its archive, and on words of references and responses.

    Notes on words need the graph and the rules of the metric, which a client alone does not have.

    Args:
        spec: How the items are scored.
        items: The items; those of an archive know the words of its references.
    """
    about_archive: tuple[str, ...] = getattr(items, "about_scores", ())
    if not runs.is_whole():
        return about_archive
    entry = runs.metric_entry(spec.metric)
    names: frozenset[str] = getattr(items, "reference_names", frozenset)()
    about_references = entry.reference_notes(spec, names) if names else ()
    about_responses = entry.response_notes(spec, islice(items, _FIRST_ITEMS))
    return (*about_archive, *about_references, *about_responses)


# Arguments ----------------------------------------------------------------------------------------


def called_with(
    make: Callable[_P, _Value],
) -> Callable[[Callable[[_Self, _Value], _Result]], Callable[Concatenate[_Self, _P], _Result]]:
    """Let callers pass a value's constructor arguments to a method in place of the value.

    A field that is added to the value is then an argument of every such method.

    Args:
        make: The value's class.
    """
    taken = inspect.signature(make)

    def decorate(
        method: Callable[[_Self, _Value], _Result],
    ) -> Callable[Concatenate[_Self, _P], _Result]:
        @functools.wraps(method)
        def called(self: _Self, /, *args: _P.args, **kwargs: _P.kwargs) -> _Result:
            try:
                taken.bind(*args, **kwargs)
            except TypeError as err:
                # The mistake is the caller's: binding the arguments is no part of it.
                raise TypeError(f"{method.__name__}(): {err}") from None
            return method(self, make(*args, **kwargs))

        first, *_ = inspect.signature(method).parameters.values()
        # Editors and help() take the arguments from here.
        called.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # read by inspect
            [first.replace(kind=first.POSITIONAL_ONLY), *taken.parameters.values()],
            return_annotation=inspect.signature(method).return_annotation,
        )
        return called

    return decorate


def by_domain(graphs: Sequence[str] | None, role: str) -> dict[str, str]:
    """Return domain -> graph, from ``GRAPH`` (the empty domain: any) and ``DOMAIN=GRAPH``.

    Args:
        graphs: The values of the option.
        role: What the graphs are of, for errors.

    Raises:
        InvalidInputError: Two graphs are given for one domain.
    """
    chosen: dict[str, str] = {}
    for value in graphs or ():
        domain, equals, name = value.partition("=")
        # A file's name may hold an equals sign.
        single = not equals or Path(value).exists()
        key, graph = ("", value) if single else (domain, name)
        if key in chosen:
            where = f"{role} of {key}" if key else role
            raise InvalidInputError(f"two graphs for {where}: {chosen[key]} and {graph}; give one")
        chosen[key] = graph
    return chosen
