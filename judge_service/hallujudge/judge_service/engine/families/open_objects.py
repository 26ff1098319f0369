"""Open objects: caption -> objects by rules -> comparison with reference captions and objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.framework.metric import OptionDefinition
from hallujudge.metrics.framework.results import ScoredItem, UnscoredReason
from hallujudge.metrics.open_objects import (
    OpenObjectsEvidence,
    OpenObjectsItem,
    OpenObjectsMetric,
)
from hallujudge.synonym_graphs import SynonymGraph

from ...extractors.caption_objects import LABEL, read_caption
from ...matchers.matcher_interface import MatcherSettings
from ...matchers.vectors import TextComparer
from ...threads import RULES_EFFORT, check_wanted, in_thread
from ..object_support import Reference, compared, reference_of, texts_of
from ..pipelines import TextPipeline, checked_items
from ..registry import MetricEntry, Trial
from ..resources import Resources
from ..responses import Problem, ResponseCheck
from ..spec import ScoreSpec, ShippedGraph

_ROLE = "objects"
_MODEL = "encoder"
_KEPT = 1 << 16
# Captions whose texts are encoded together; their vectors are kept for that long.
_TOGETHER = 64


class OpenObjectsPipeline(TextPipeline[OpenObjectsItem, OpenObjectsMetric]):
    """Compares the objects of captions with those of the references.

    Args:
        metric: The metric.
        graph: The synonym graph.
        responses: Recognises missing captions.
        encoder: The sentence encoder.
    """

    item_type = OpenObjectsItem
    response_name = "the caption"

    def __init__(
        self,
        metric: OpenObjectsMetric,
        graph: SynonymGraph,
        responses: ResponseCheck,
        encoder: TextComparer,
    ) -> None:
        super().__init__(metric, responses)
        self._graph = graph
        self._encoder = encoder
        self._root_of = lru_cache(maxsize=_KEPT)(graph.root_of)
        self._references = lru_cache(maxsize=_TOGETHER)(reference_of)

    @property
    def settings(self) -> Mapping[str, str]:
        """The graph, then the settings of the metric and the response check."""
        return {
            "graph": self._graph.name,
            "graph_version": self._graph.version,
            "graph_sha256": self._graph.digest,
            **super().settings,
        }

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """Return one result for each item, in order; models run in a thread."""
        mine = checked_items(items, OpenObjectsItem)
        results: list[ItemResult] = []
        for at in range(0, len(mine), _TOGETHER):
            results += await self._in_thread(mine[at : at + _TOGETHER])
        return results

    def size(self, item: OpenObjectsItem) -> int:
        """Return the number of characters that scoring an item reads, weighted by their effort."""
        return RULES_EFFORT * super().size(item)

    def problem(self, item: OpenObjectsItem) -> Problem | None:
        """Return why a caption can't be scored, or None if it can."""
        if problem := self.responses.problem(item.response, self.response_name):
            return problem
        if not item.reference_captions and item.reference_objects is None:
            return UnscoredReason.REFERENCE_MISSING, "no reference captions or objects"
        return None

    def score(self, item: OpenObjectsItem) -> ScoredItem[OpenObjectsEvidence]:
        """Return the statistics of a caption."""
        reference = self._reference(item)
        sentences = read_caption(item.response or "")
        vectors = self._encoder.vectors(texts_of(sentences, reference))
        objects, named = compared(sentences, reference, vectors, self._root_of)
        return self.metric.score_caption(objects, named, has_captions=bool(reference.captions))

    async def _in_thread(self, items: Sequence[OpenObjectsItem]) -> list[ItemResult]:
        return await in_thread(lambda: self._results(items))

    def _results(self, items: Sequence[OpenObjectsItem]) -> list[ItemResult]:
        check_wanted()
        texts: set[str] = set()
        for item in items:
            if self.problem(item) is None:
                texts |= texts_of(read_caption(item.response or ""), self._reference(item))
        # Encoded together, since batches of equal length take less time.
        self._encoder.vectors(sorted(texts))
        return list(map(self.result, items))

    def _reference(self, item: OpenObjectsItem) -> Reference:
        return self._references(item.reference_captions or (), item.reference_objects or ())


def _open(spec: ScoreSpec, resources: Resources) -> OpenObjectsPipeline:
    responses = ResponseCheck(spec.options, reads_english=True)
    graph = resources.graph(spec.graphs.get(_ROLE) or ShippedGraph(name="coco"))
    if (offers := resources.offers) is not None:
        offers.check(_MODEL, spec.options.get(_MODEL, ""), offers.models)
    encoder = resources.judges.text_comparer(spec.options.get(_MODEL) or MatcherSettings().model)
    metric = OpenObjectsMetric(
        variant=spec.variant,
        responses=responses.signature,
        matcher=f"{LABEL}+{encoder.label}",
        graph=graph.label,
        **ENTRY.own_options(spec),
    )
    return OpenObjectsPipeline(metric, graph, responses, encoder)


ENTRY = MetricEntry(
    metric=OpenObjectsMetric,
    item_type=OpenObjectsItem,
    trial=Trial(
        item=OpenObjectsItem(
            id="1",
            response="A dog on a sofa.",
            reference_captions=("A dog lies on a couch.", "A dog on a sofa."),
        ),
        score="open_chair_i",
        value=0.0,
    ),
    graph_roles=(_ROLE,),
    engine_options=(
        OptionDefinition(
            name=_MODEL,
            default=MatcherSettings().model,
            meaning="Sentence encoder: a name or a folder.",
            details="The weights of the doubt are fitted for minilm.",
        ),
    ),
    reads_english=True,
    parses=lambda _: True,
    loads_models=lambda _: True,
    open=_open,
)
ENTRIES = (ENTRY,)
