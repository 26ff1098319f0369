"""CHAIR: caption -> object mentions -> verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from hallujudge.metrics import ChairItem, ChairMetric, Item, ItemResult
from hallujudge.synonym_graphs import SynonymGraph, compile_matcher

from ..cpu import run_cpu
from ..entry import FoundClaim, MetricEntry, OptionEntry
from ..items import MAX_RESPONSE_CHARS, checked, scored, unscored
from ..resources import Resources
from ..spec import ScoreSpec, ShippedGraph

__all__ = ["ENTRY", "ChairPipeline"]

_ROLE = "objects"
_PUBLISHED_GRAPH = ShippedGraph(name="coco-published")
# Which rules find mentions; raised when they change.
_MATCHERS = {"published": "words-1", "corrected": "words-2"}
_DEFAULT_GRAPHS = {"published": _PUBLISHED_GRAPH, "corrected": ShippedGraph(name="coco")}


class ChairPipeline:
    """Finds object mentions with a compiled matcher and holds them against the references.

    Args:
        metric: What is counted, and how.
        graph: The synonym graph that mentions and references are normalised by.
        notes: Sentences for the report.
    """

    def __init__(
        self, metric: ChairMetric, graph: SynonymGraph, notes: tuple[str, ...] = ()
    ) -> None:
        self.metric = metric
        self.notes = notes
        self._graph = graph
        self.matcher = compile_matcher(
            graph, variant="published" if metric.variant == "published" else "corrected"
        )
        self._roots = lru_cache(maxsize=65_536)(self._roots_of)

    @property
    def settings(self) -> Mapping[str, str]:
        """The graph by name, version and content hash."""
        return {
            "graph": self._graph.name,
            "graph_version": self._graph.version,
            "graph_sha256": self._graph.digest,
            "count": self.metric.count,
            "max_response_chars": str(MAX_RESPONSE_CHARS),
        }

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """One result for each caption, in order."""
        captions = checked(items, ChairItem)
        return await run_cpu(
            lambda: [self._score(item) for item in captions],
            chars=sum(len(item.response or "") for item in captions),
        )

    def _score(self, item: ChairItem) -> ItemResult:
        if item.response is None:
            return unscored(item, "RESPONSE_MISSING", "the caption is null or absent")
        if len(item.response) > MAX_RESPONSE_CHARS:
            return unscored(
                item,
                "RESPONSE_TOO_LONG",
                f"the caption has {len(item.response)} characters; "
                f"at most {MAX_RESPONSE_CHARS} are read",
            )
        if item.reference_objects is None:
            return unscored(item, "REFERENCE_MISSING", "no reference objects for this image")
        result = self.metric.score_caption(
            item.response, self.matcher.find(item.response), self._roots(item.reference_objects)
        )
        return scored(item, result.statistics, result.scores, result.evidence)

    def _roots_of(self, objects: tuple[str, ...]) -> frozenset[str]:
        # An object that the graph doesn't know still counts as one to be recalled.
        return frozenset(self._graph.root_of(name) or name for name in objects)


def _open(spec: ScoreSpec, resources: Resources) -> ChairPipeline:
    variant = spec.variant or ChairMetric.variants[0]
    graph = resources.graph(spec.graphs.get(_ROLE) or _DEFAULT_GRAPHS[variant])
    published = resources.graph(_PUBLISHED_GRAPH)
    metric = ChairMetric(
        variant=variant,
        count=spec.options.get("count", ChairMetric.counts[0]),
        matcher=_MATCHERS[variant],
        graph=graph.label,
    )
    return ChairPipeline(metric, graph, _graph_notes(variant, graph, published))


def _graph_notes(variant: str, graph: SynonymGraph, published: SynonymGraph) -> tuple[str, ...]:
    """Say when the variant and the graph do not belong together."""
    same = graph.table_entries == published.table_entries
    if variant == "published" and not same:
        return (
            f"Variant published with graph {graph.name}: the published numbers are made with the "
            f"graph {published.name}. Leave the graph out to compare with them.",
        )
    if variant == "corrected" and same:
        return (
            f"Variant corrected with graph {graph.name}: this graph holds the published word table "
            f"with its errors. Leave the graph out to use {_DEFAULT_GRAPHS[variant].name}.",
        )
    return ()


async def _extract(
    spec: ScoreSpec, texts: Sequence[str], resources: Resources
) -> list[list[FoundClaim]]:
    matcher = _open(spec, resources).matcher
    return await run_cpu(
        lambda: [
            [FoundClaim(start=m.start, end=m.end, claim=m) for m in matcher.find(text)]
            for text in texts
        ],
        chars=sum(len(text) for text in texts),
    )


ENTRY = MetricEntry(
    name=ChairMetric.name,
    description="How often a caption mentions objects that its image lacks (Rohrbach et al. 2018).",
    variants=ChairMetric.variants,
    score_names=tuple(score.name for score in ChairMetric.scores),
    item_type=ChairItem,
    graph_roles=(_ROLE,),
    options=(
        OptionEntry(
            name="count",
            default=ChairMetric.counts[0],
            choices=ChairMetric.counts,
            description="what chair_i counts: every mention, or each of a caption's objects once",
        ),
    ),
    extract=_extract,
    open=_open,
)
