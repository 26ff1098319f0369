"""CHAIR: caption -> object mentions -> comparison with the reference objects."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise

from hallujudge.metrics import ChairEvidence, ChairItem, ChairMetric
from hallujudge.metrics.framework.results import ScoredItem, UnscoredReason
from hallujudge.synonym_graphs import SynonymGraph, compile_matcher
from hallujudge.synonym_graphs.object_lexicon import Lemma

from ...threads import map_cpu, of_each
from ..found_claims import FoundClaim
from ..pipelines import TextPipeline
from ..registry import MetricEntry, Trial
from ..resources import Resources, graph_settings, read_graph
from ..responses import Problem, ResponseCheck
from ..spec import GraphSource, ScoreSpec, ShippedGraph

ROLE = "objects"
"""The role of the graph that finds mentions."""
# So many examples say what is wrong; the note is one sentence.
_NAMED = 5
_WORD = re.compile(r"[a-z]+")
# Captions of the papers lose a few words, and so do the papers' own numbers.
_TOLD_SHARE = 0.05
# Words of the published table that its rules never find: their published singular is "bu".
_NEVER_FOUND = frozenset({"bus", "airbus", "minibus"})
_PUBLISHED_GRAPH = ShippedGraph(name="coco-published")
_DEFAULT_GRAPHS = {"published": _PUBLISHED_GRAPH, "corrected": ShippedGraph(name="coco")}
# Which rules find mentions; raised when they change.
_MATCHERS = {"published": "words-1", "corrected": "words-3"}


class ChairPipeline(TextPipeline[ChairItem, ChairMetric]):
    """Finds object mentions with a compiled matcher and compares them with the references.

    Args:
        metric: What is counted, and how.
        graph: The synonym graph that maps mentions and references to objects.
        responses: Recognises missing captions.
        notes: Sentences for the report.
        lemma: Returns a word's lemma, for a published procedure that has lemmas for singulars.
    """

    item_type = ChairItem
    response_name = "the caption"

    def __init__(
        self,
        metric: ChairMetric,
        graph: SynonymGraph,
        responses: ResponseCheck,
        notes: tuple[str, ...] = (),
        lemma: Lemma | None = None,
    ) -> None:
        super().__init__(metric, responses, notes)
        self._graph = graph
        self.matcher = compile_matcher(
            graph,
            variant="published" if metric.variant == "published" else "corrected",
            lemma=lemma,
        )
        # Captions of several models, or several of one image, have the same references.
        self.roots = lru_cache(maxsize=65_536)(self._roots_of)

    @property
    def settings(self) -> Mapping[str, str]:
        """The graph by name, version and content hash."""
        return {**graph_settings(self._graph), **super().settings}

    def problem(self, item: ChairItem) -> Problem | None:
        """Return why a caption can't be scored, or None if it can."""
        if problem := self.responses.problem(item.response, self.response_name):
            return problem
        if item.reference_objects is None:
            return UnscoredReason.REFERENCE_MISSING, "no reference objects for this image"
        return None

    def score(self, item: ChairItem) -> ScoredItem[ChairEvidence]:
        """Return the statistics of a caption."""
        response, objects = item.response, item.reference_objects
        assert response is not None, "this is a problem"
        assert objects is not None, "this is a problem"
        return self.metric.score_caption(
            response, self.matcher.found(response), self.roots(objects)
        )

    def _roots_of(self, objects: tuple[str, ...]) -> frozenset[str]:
        # An object that the graph doesn't know still counts as one to be recalled.
        return frozenset(self._graph.root_of(name) or name for name in objects)


def _graph_of(spec: ScoreSpec) -> GraphSource:
    return spec.graphs.get(ROLE) or _DEFAULT_GRAPHS[_variant_of(spec)]


def _variant_of(spec: ScoreSpec) -> str:
    return spec.variant or ChairMetric.variant_names()[0]


def _reference_notes(spec: ScoreSpec, names: Collection[str]) -> tuple[str, ...]:
    """Return a note on reference objects that no caption can mention, which lower the recall."""
    return unknown_objects_note(read_graph(_graph_of(spec)), names)


def unknown_objects_note(graph: SynonymGraph, names: Collection[str]) -> tuple[str, ...]:
    """Return a note on reference objects that a graph does not know, which lower the recall."""
    unknown = sorted(name for name in names if name.strip() and graph.root_of(name) is None)
    if not unknown:
        return ()
    more = len(unknown) - _NAMED
    first = ", ".join(f"{name!r:.60}" for name in unknown[:_NAMED])
    return (
        f"{len(unknown)} of {len(names)} different reference objects are not in the graph "
        f"{graph.name}: {first}{f' and {more} more' if more > 0 else ''}. No caption can mention "
        "them, so they lower the recall; correct the references, or add them to the graph.",
    )


def _response_notes(spec: ScoreSpec, items: Iterable[ChairItem]) -> tuple[str, ...]:
    """Return a note on words for the images' own objects that the published rules miss.

    Such an object is not recalled, and the wrong words of its caption weigh more.
    """
    if _variant_of(spec) != "published" or _graph_of(spec) != _PUBLISHED_GRAPH:
        return ()
    graphs = [read_graph(graph) for graph in _DEFAULT_GRAPHS.values()]
    missed: Counter[str] = Counter()
    captions = affected = 0
    for found in _missed_words(items, *graphs):
        missed.update(found)
        captions, affected = captions + 1, affected + bool(found)
    if affected <= _TOLD_SHARE * captions:
        return ()
    # Words with equal counts have an order of their own, since sets have none.
    common = sorted(missed.items(), key=lambda entry: (-entry[1], entry[0]))[:_NAMED]
    words = ", ".join(f"{word!r:.60} ({count:,})" for word, count in common)
    return (
        f"In {affected:,} of {captions:,} captions, the published rules miss words for objects "
        f"that the images show: {words}. These captions score worse than they should; the variant "
        "corrected finds the words, and published alone gives the paper's numbers.",
    )


def _missed_words(
    items: Iterable[ChairItem], published: SynonymGraph, corrected: SynonymGraph
) -> Iterator[set[str]]:
    """Yield each caption's words for its image's objects that the published rules miss.

    Plain words and pairs of them suffice for a note; a client at a server loads no matcher.
    """
    # Captions repeat words, and few pairs begin as one of the graph's names does.
    published_root, root_of = cache(published.root_of), cache(corrected.root_of)
    openings = {form.split()[0] for form, _ in published.edges if " " in form.strip()}
    for item in items:
        words = _WORD.findall((item.response or "").lower())
        said = {word: root for word in {*words} if (root := root_of(word))}
        pairs = {f"{one} {next_}" for one, next_ in pairwise(words) if one in openings}
        forms = {*said, *pairs} - _NEVER_FOUND
        known = {root_of(form) for form in forms if published_root(form)}
        shown = set(map(root_of, item.reference_objects or ())) - known
        yield {word for word, root in said.items() if root in shown}


def _open(spec: ScoreSpec, resources: Resources) -> ChairPipeline:
    variant = _variant_of(spec)
    responses = ResponseCheck(spec.options, reads_english=True)
    graph = resources.graph(_graph_of(spec))
    published = resources.graph(_PUBLISHED_GRAPH)
    metric = ENTRY.metric_for(spec, responses, matcher=_MATCHERS[variant], graph=graph.label)
    notes = graph_notes(variant, graph, published, _DEFAULT_GRAPHS["corrected"].name)
    return ChairPipeline(metric, graph, responses, notes)


def graph_notes(
    variant: str, graph: SynonymGraph, published: SynonymGraph, corrected: str
) -> tuple[str, ...]:
    """Return a note if the variant and the graph do not belong together.

    Args:
        variant: The variant.
        graph: The graph.
        published: The graph of the published numbers.
        corrected: The name of the graph of the variant ``corrected``.
    """
    same = graph.table_entries == published.table_entries
    if variant == "published" and not same:
        return (
            f"Variant published with graph {graph.name}: the published numbers are made with the "
            f"graph {published.name}. Leave the graph out to compare with them.",
        )
    if variant == "corrected" and same:
        return (
            f"Variant corrected with graph {graph.name}: this graph holds the published word table "
            f"with its errors. Leave the graph out to use {corrected}.",
        )
    return ()


async def _extract(
    spec: ScoreSpec, texts: Sequence[str], resources: Resources
) -> list[list[FoundClaim]]:
    # In a thread, since a graph may take seconds to read and compile.
    matcher = (await asyncio.to_thread(_open, spec, resources)).matcher
    return await map_cpu(
        of_each(
            lambda text: [FoundClaim(start=m.start, end=m.end, claim=m) for m in matcher.find(text)]
        ),
        texts,
        chars=len,
    )


ENTRY = MetricEntry(
    metric=ChairMetric,
    item_type=ChairItem,
    trial=Trial(
        item=ChairItem(id="1", response="A dog on a sofa.", reference_objects=("couch",)),
        score="chair_i",
        value=0.5,
    ),
    graph_roles=(ROLE,),
    extract=_extract,
    reads_english=True,
    reference_notes=_reference_notes,
    response_notes=_response_notes,
    open=_open,
)
ENTRIES = (ENTRY,)
