"""Object HalBench: objects that are given or extracted -> words of COCO's objects -> CHAIR."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import structs

from hallujudge.metrics import ChairEvidence, Item, ItemResult
from hallujudge.metrics.chair import FoundMention
from hallujudge.metrics.framework.metric import OptionDefinition
from hallujudge.metrics.framework.results import ScoredItem, UnscoredReason
from hallujudge.metrics.object_halbench import ObjectHalBenchItem, ObjectHalBenchMetric
from hallujudge.synonym_graphs import SynonymGraph

from ...extractors.llm_extractor_base import Extraction
from ...extractors.llm_extractors import AskedAnswer, LlmObjectExtractor
from ...extractors.rules.lexicon import wordnet_noun_lemma
from ...extractors.rules.rule_extractors import shared_analyser
from ...llm.estimate import Estimate, estimate_calls
from ...threads import map_cpu, of_each
from ..extraction import extract_prompt_option, llm_extractor
from ..pipelines import checked_items, unscored_result
from ..registry import MetricEntry, Trial
from ..resources import Resources, read_graph
from ..responses import Problem, ResponseCheck
from ..spec import GraphSource, ScoreSpec, ShippedGraph
from .chair import ROLE, ChairPipeline, graph_notes, unknown_objects_note

GIVEN, WORDS, _ = SOURCES = ("given", "words", "llm")
"""Where the objects of an answer come from."""
_OPTION = "objects"
_GRAPHS = {
    "published": ShippedGraph(name="coco-refined"),
    "corrected": ShippedGraph(name="coco"),
}
# Which rules find words; raised when they change.
_MATCHERS = {"published": "refined-1", "corrected": "refined-2"}
# The released script takes an answer of three words for one without objects.
_LEAST_WORDS = {"published": 4, "corrected": 1}


class ObjectHalBenchPipeline(ChairPipeline):
    """Finds the words of COCO's objects among given, extracted or the answer's own words.

    Args:
        metric: The metric.
        graph: The synonym graph that maps words and references to objects.
        responses: Recognises missing answers.
        notes: Sentences for the report.
        source: One of :data:`SOURCES`.
        extractor: Extracts objects if the source is a language model.
    """

    item_type = ObjectHalBenchItem
    response_name = "the answer"

    def __init__(
        self,
        metric: ObjectHalBenchMetric,
        graph: SynonymGraph,
        responses: ResponseCheck,
        notes: tuple[str, ...],
        source: str,
        extractor: LlmObjectExtractor | None,
    ) -> None:
        super().__init__(metric, graph, responses, notes, wordnet_noun_lemma)
        self._source = source
        self._extractor = extractor

    @property
    def settings(self) -> Mapping[str, str]:
        """Where objects come from, then the graph."""
        return {_OPTION: self._source, **super().settings}

    def problem(self, item: ObjectHalBenchItem) -> Problem | None:  # type: ignore[override]  # this family's own item
        """Return why an answer can't be scored, or None if it can."""
        if problem := super().problem(item):
            return problem
        if self._source == GIVEN and item.predicted_objects is None:
            return UnscoredReason.KEYWORDS_MISSING, (
                "no objects are given under objs; add them, or set the option objects = words "
                "(or llm)"
            )
        return None

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """Return one result for each item, in order; a language model extracts objects first."""
        if self._extractor is None:
            return await super().evaluate(items)
        answers = checked_items(items, ObjectHalBenchItem)
        sources = self._sources(answers)
        made = dict(zip(sources, await self._extractor.try_many(list(sources)), strict=True))
        return await map_cpu(
            of_each(lambda item: self._extracted(item, made)), answers, chars=self.size
        )

    async def estimate(self, items: Sequence[Item]) -> list[Estimate]:
        """Return the calls that the language model would get, without calling it."""
        if self._extractor is None:
            return []
        sources = self._sources(checked_items(items, ObjectHalBenchItem))
        planned = [await self._extractor.planned(source) for source in sources]
        calls = [call for call in planned if call is not None]
        return [await estimate_calls("llm extractor", self._extractor.client, calls, None)]

    def score(self, item: ObjectHalBenchItem) -> ScoredItem[ChairEvidence]:  # type: ignore[override]  # this family's own item
        """Return the statistics of an answer with its own words, or with given objects."""
        if self._source == WORDS:
            return super().score(item)
        response, reference = item.response, item.reference_objects
        assert response is not None, "this is a problem"
        assert reference is not None, "this is a problem"
        found = self._named(item.predicted_objects or ())
        return self.metric.score_caption(
            response, self._placed(response, found), self.roots(reference)
        )

    def _sources(self, answers: Iterable[ObjectHalBenchItem]) -> dict[AskedAnswer, None]:
        scored = [item for item in answers if self.problem(item) is None]
        return {AskedAnswer(item.question, item.response or ""): None for item in scored}

    def _extracted(
        self, item: ObjectHalBenchItem, made: Mapping[AskedAnswer, Extraction[tuple[str, ...]]]
    ) -> ItemResult:
        if problem := self.problem(item):
            return self.unscored(item, *problem)
        extraction = made[AskedAnswer(item.question, item.response or "")]
        if extraction.found is None:
            assert self._extractor is not None, "it extracted"
            detail = f"{self._extractor.label}: {extraction.detail}"
            return unscored_result(item, UnscoredReason(extraction.reason), detail)
        phrases = extraction.found
        if self.metric.variant == "published":
            phrases = tuple(dict.fromkeys(word for each in phrases for word in self._words(each)))
        return self.result(structs.replace(item, predicted_objects=phrases))

    def _words(self, phrase: str) -> list[str]:
        """Return the words of an extracted object, as the released script makes them of it.

        Names of two words hide the others; otherwise each unbroken run of nouns is one phrase. The
        script tags with spaCy's largest model, this with the rules.
        """
        analyser = shared_analyser()
        words: list[str] = []
        for lemmas, tags in analyser.tagged_lemmas(f"a {phrase}", wordnet_noun_lemma):
            words += self.matcher.names_of_two(lemmas) or _runs(lemmas, tags)
        return words

    def _named(self, objects: Iterable[str]) -> list[FoundMention]:
        """Return the words of COCO's objects among given ones."""
        if self.metric.variant == "published":
            return self.matcher.of_words(objects)
        found = [(m.word, m.object, 0, 0) for each in objects for m in self.matcher.find(each)]
        return list(dict.fromkeys(found))

    def _placed(self, response: str, found: Sequence[FoundMention]) -> list[FoundMention]:
        """Return mentions with the first place of their word; 0 to 0 if it is not found."""
        if not found:
            return []
        # Reversed, so that of several places of a word the first one stays.
        own = {word: (start, end) for word, _, start, end in reversed(self.matcher.found(response))}
        return [(word, name, *own.get(word, (0, 0))) for word, name, _, _ in found]


def _runs(lemmas: Sequence[str], tags: Sequence[str]) -> list[str]:
    """Return each unbroken run of nouns as one phrase."""
    # A line break is in no lemma, so that it can end the runs.
    marked = [lemma if tag == "N" else "\n" for lemma, tag in zip(lemmas, tags, strict=True)]
    return [run.strip() for run in " ".join(marked).split("\n") if run.strip()]


def _variant_of(spec: ScoreSpec) -> str:
    return spec.variant or ObjectHalBenchMetric.variant_names()[0]


def _graph_of(spec: ScoreSpec) -> GraphSource:
    return spec.graphs.get(ROLE) or _GRAPHS[_variant_of(spec)]


def _reference_notes(spec: ScoreSpec, names: Collection[str]) -> tuple[str, ...]:
    return unknown_objects_note(read_graph(_graph_of(spec)), names)


def _open(spec: ScoreSpec, resources: Resources) -> ObjectHalBenchPipeline:
    variant, source = _variant_of(spec), spec.options.get(_OPTION, GIVEN)
    # Given objects say what the answer names, and language models read any language.
    responses = ResponseCheck(spec.options, reads_english=source == WORDS)
    graph = resources.graph(_graph_of(spec))
    extractor = llm_extractor(
        LlmObjectExtractor, source, spec.options, resources, least_words=_LEAST_WORDS[variant]
    )
    label = source if extractor is None else extractor.label
    metric = ENTRY.metric_for(
        spec, responses, matcher=_MATCHERS[variant], graph=graph.label, extractor=label
    )
    published = resources.graph(_GRAPHS["published"])
    notes = graph_notes(variant, graph, published, _GRAPHS["corrected"].name)
    return ObjectHalBenchPipeline(metric, graph, responses, notes, source, extractor)


ENTRY = MetricEntry(
    metric=ObjectHalBenchMetric,
    item_type=ObjectHalBenchItem,
    trial=Trial(
        item=ObjectHalBenchItem(
            id="1",
            response="A dog on a sofa.",
            predicted_objects=("dog", "sofa"),
            reference_objects=("couch",),
        ),
        score="chair_i",
        value=0.5,
    ),
    graph_roles=(ROLE,),
    engine_options=(
        extract_prompt_option(("question", "response")),
        OptionDefinition(
            name=_OPTION,
            default=GIVEN,
            choices=SOURCES,
            meaning="Where the objects of answers come from.",
            details="given: the file; words: the answer's own; llm: a language model.",
        ),
    ),
    reads_english=True,
    reference_notes=_reference_notes,
    open=_open,
)
ENTRIES = (ENTRY,)
