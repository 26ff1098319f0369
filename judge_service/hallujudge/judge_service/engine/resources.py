"""Resources that pipelines share: synonym graphs, judges, and what remote callers may name."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from hallujudge.metrics.errors import choose_from

from ..errors import InvalidInputError, NotFoundError, OverloadedError
from ..settings.connection import listed
from ..tenancy import MemoryBudget
from ..threads import LONG_CHARS
from .spec import GraphSource, InlineGraph, ShippedGraph

if TYPE_CHECKING:
    from hallujudge.synonym_graphs import SynonymGraph

    from ..settings.server_settings import OfferedSettings
    from .judge_factory import JudgeFactory


_LOG = logging.getLogger(__name__)
# The most graphs in the cache; the least recently used one is dropped first.
_KEPT_GRAPHS = 32
# Bytes of a graph for each character of its text, measured with words of five letters.
_GRAPH_FACTOR = 40


class Resources:
    """Graphs and judges that pipelines share, safe to use from several threads.

    Args:
        make_judges: Builds the judges on first use. By default they have the default settings,
            without a language model.
        offers: What specs may name. Without it, specs come from this process, and may name any
            model or folder.
        memory: The memory budget of the process. Without one, nothing is limited.
    """

    def __init__(
        self,
        make_judges: Callable[[], JudgeFactory] | None = None,
        *,
        offers: Offers | None = None,
        memory: MemoryBudget | None = None,
    ) -> None:
        self.offers = offers
        self.memory = memory or MemoryBudget()
        self._graphs: OrderedDict[GraphSource, SynonymGraph] = OrderedDict()
        self._make_judges = make_judges
        self._judges: JudgeFactory | None = None
        # Not held while a graph is read, which takes seconds: two threads may read the same one.
        self._lock = threading.Lock()

    @property
    def judges(self) -> JudgeFactory:
        """The judges that the settings describe."""
        with self._lock:
            if self._judges is None:
                self._judges = self._make_judges() if self._make_judges else _no_models()
            return self._judges

    @property
    def built_judges(self) -> JudgeFactory | None:
        """The judges, if they were used."""
        return self._judges

    async def close(self) -> None:
        """Close the judges' connections and cache."""
        with self._lock:
            # Taken out first: callers that ask while they close get new ones.
            judges, self._judges = self._judges, None
        if judges is not None:
            await judges.close()

    def graph(self, source: GraphSource) -> SynonymGraph:
        """Return a validated graph, from the cache if it is there.

        Raises:
            NotFoundError: No shipped graph has this name.
            InvalidInputError: The text is not a valid graph.
            OverloadedError: The memory budget is full.
        """
        with self._lock:
            if source in self._graphs:
                self._graphs.move_to_end(source)
                return self._graphs[source]
        self._take(_size(source))
        try:
            graph = read_graph(source)
        # Whatever ends the reading: what is not given back is lost to all callers.
        except BaseException:
            self.memory.give_back(_size(source))
            raise
        with self._lock:
            if source in self._graphs:  # another thread was faster
                self.memory.give_back(_size(source))
            self._graphs[source] = graph
            while len(self._graphs) > _KEPT_GRAPHS:
                self._drop_oldest()
        return graph

    def _take(self, size: int) -> None:
        """Take memory for a graph; kept graphs are dropped if there is too little.

        Raises:
            OverloadedError: There is not enough.
        """
        while True:
            try:
                return self.memory.take(size, "the graph")
            except OverloadedError:
                with self._lock:
                    if not self._graphs:
                        raise
                    self._drop_oldest()

    def _drop_oldest(self) -> None:
        source, _ = self._graphs.popitem(last=False)
        self.memory.give_back(_size(source))


class Offers(Struct, frozen=True, kw_only=True):
    """The models and devices that callers of a server may name; nothing else is looked for."""

    models: tuple[str, ...] = ()
    """Models of matchers."""
    vectors: tuple[str, ...] = ()
    """spaCy models."""
    pipelines: tuple[str, ...] = ()
    """spaCy pipelines of the extractor ``spacy``."""
    devices: tuple[str, ...] = ("cpu",)
    """Devices of matchers."""

    @classmethod
    def of(cls, settings: OfferedSettings) -> Offers:
        """Return what the settings of a server offer."""
        return cls(**{name: listed(getattr(settings, name)) for name in cls.__struct_fields__})

    def check(self, option: str, value: str, offered: tuple[str, ...]) -> None:
        """Refuse what is not offered. A name that is not given is the server's default.

        Raises:
            NotFoundError: The value is not offered.
        """
        if value and value not in offered:
            raise self._error(option, offered)

    @contextmanager
    def opening(self, option: str, offered: tuple[str, ...]) -> Iterator[None]:
        """Raise the same error if an offered model is not on this machine.

        Raises:
            NotFoundError: The block did not find a model, or can't use it.
        """
        try:
            yield
        except (NotFoundError, InvalidInputError) as err:
            if "model" not in err.metadata or err.reason.startswith("JUDGE_"):
                raise
            _LOG.warning("a model that is offered can't be used: %s", err)
            raise self._error(option, offered) from None

    def _error(self, option: str, offered: tuple[str, ...]) -> NotFoundError:
        return NotFoundError(
            f"the option {option} names something that this server does not offer; it offers "
            f"{', '.join(offered) or 'nothing'}",
            reason="MODEL_NOT_OFFERED",
            metadata={"option": option},
        )


def graph_settings(graph: SynonymGraph) -> Mapping[str, str]:
    """Return a graph's name, version and content hash, for the settings of a report."""
    return {
        "graph": graph.name,
        "graph_version": graph.version,
        "graph_sha256": graph.digest,
    }


def read_graph(source: GraphSource) -> SynonymGraph:
    """Return a validated graph, without the cache of :meth:`Resources.graph`."""
    # Imported here because most metrics have no graph.
    from hallujudge.synonym_graphs import (
        GraphError,
        GraphInvalidError,
        load_graph,
        parse_graph,
        shipped_graphs,
        validate_graph,
    )

    try:
        if isinstance(source, ShippedGraph):
            # load_graph accepts paths too, but a remote caller must not open files of the server.
            if source.name not in shipped_graphs():
                known = choose_from(source.name, shipped_graphs())
                raise NotFoundError(
                    f"no shipped synonym graph is called {source.name!r:.80}; {known}, or "
                    "send the text of a graph",
                    reason="GRAPH_UNKNOWN",
                    metadata={"graph": source.name},
                )
            return load_graph(source.name)
        graph = parse_graph(source.text, layout=source.layout, name=source.name)
        if problems := validate_graph(graph):
            raise GraphInvalidError(problems, name=source.name)
        return graph
    except GraphError as err:
        raise InvalidInputError(
            f"synonym graph {err}", reason="GRAPH_INVALID", metadata={"graph": source.name}
        ) from err


def has_long_graph(*sources: GraphSource) -> bool:
    """Return whether a graph among these takes more than some milliseconds to read."""
    return any(
        isinstance(source, InlineGraph) and len(source.text) > LONG_CHARS for source in sources
    )


def _size(source: GraphSource) -> int:
    """Return the memory of a graph, at most; shipped ones are the server's own."""
    return 0 if isinstance(source, ShippedGraph) else _GRAPH_FACTOR * len(source.text)


def _no_models() -> JudgeFactory:
    from .judge_factory import JudgeFactory

    return JudgeFactory()
