"""The description of a scoring run, shared by the command line and both clients."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeAlias, TypeVar

from msgspec import Struct

from .. import runs
from ..errors import InvalidInputError

# Importing a client loads this module, and neither the engine nor the graphs.
if TYPE_CHECKING:
    from hallujudge.judge_service.engine.spec import ScoreSpec
    from hallujudge.judge_service.engine.streams import RunProgress

    from ..archives import InputOptions, References, Responses
    from ..backends import BatchResult


OnBatch: TypeAlias = "Callable[[BatchResult], None]"
"""Callback for each batch of items and their results, in the order of the items."""
OnProgress: TypeAlias = "Callable[[RunProgress], None]"
"""Callback for what a run is doing while it has no results."""

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
            graphs=runs.graph_sources(self.metric, self.graph),
            options=options,
            group_by=runs.group_keys(self.metric, self.group_by),
            interval=runs.interval_settings(self.confidence),
        )


def _text(value: object) -> str:
    """Return an option's value as messages and signatures hold it."""
    found = runs.plain(value)
    # As JSON and the command line write it, not as Python does.
    return str(found).lower() if isinstance(found, bool) else str(value)


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
