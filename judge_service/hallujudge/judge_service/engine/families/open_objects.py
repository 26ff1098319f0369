"""Open objects: caption -> objects by rules -> comparison with reference captions and objects.

References support an object of a caption by words, meaning and context.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.framework.arrays import np
from hallujudge.metrics.framework.metric import OptionDefinition
from hallujudge.metrics.framework.results import ScoredItem, UnscoredReason
from hallujudge.metrics.open_objects import (
    RECALLED_FROM,
    ComparedObject,
    OpenObjectsEvidence,
    OpenObjectsItem,
    OpenObjectsMetric,
)
from hallujudge.synonym_graphs import SynonymGraph

from ...extractors.rules.rule_extractors import (
    OBJECTS_LABEL,
    CaptionObject,
    CaptionSentence,
    numbers_of,
    read_caption,
)
from ...matchers import MatcherSettings, TextComparer
from ...threads import RULES_EFFORT, check_wanted, in_thread
from ..pipelines import TextPipeline, checked_items
from ..registry import MetricEntry, Trial
from ..resources import Resources, graph_settings
from ..responses import Problem, ResponseCheck
from ..spec import ScoreSpec, ShippedGraph

if TYPE_CHECKING:
    from ...matchers import Vectors

RootOf: TypeAlias = "Callable[[str], str | None]"
"""Returns the root of a name in a synonym graph; None if the graph does not know it."""

# Two words for persons, such as "skier" and "man", may name the same one.
_PERSONS = 0.9


class Reference(NamedTuple):
    """What is known of an image."""

    objects: tuple[CaptionObject, ...]
    """Objects that it shows: given ones, and those of its captions, each name once."""
    captions: tuple[str, ...]
    numbers: Mapping[int, int]
    """Number -> how many of its captions state it."""


def reference_of(captions: Sequence[str], names: Sequence[str]) -> Reference:
    """Return a reference of captions, and of further names of objects."""
    found = [o for text in captions for sentence in read_caption(text) for o in sentence.objects]
    given = [
        # No sentence tells which word is the head; in English it is mostly the last one.
        CaptionObject(name, name.rpartition(" ")[2], False, 0, 0, 0, ())
        for name in map(str.lower, names)
    ]
    named = {each.name: each for each in (*found, *given)}
    numbers = Counter(number for text in captions for number in numbers_of(text))
    return Reference(tuple(named.values()), tuple(captions), numbers)


def texts_of(sentences: Sequence[CaptionSentence], reference: Reference) -> set[str]:
    """Return all texts whose vectors :func:`supports` needs."""
    objects = (o for sentence in sentences for o in sentence.objects)
    texts = {text for o in (*objects, *reference.objects) for text in (o.name, o.head)}
    if reference.captions:
        texts.update(map(normal, reference.captions))
        for sentence in sentences:
            texts.add(normal(sentence.text))
            texts.update(normal(t) for o in sentence.objects for t in _shortened(sentence, o))
    return texts


def normal(text: str) -> str:
    """Return a text in lower case without a full stop, as short captions are compared."""
    return " ".join(text.lower().split()).rstrip(" .")


def compared(
    sentences: Sequence[CaptionSentence],
    reference: Reference,
    vectors: Mapping[str, Vectors],
    root_of: RootOf,
) -> tuple[list[list[ComparedObject]], dict[str, bool]]:
    """Return the objects of each sentence, and for each reference object whether it is named.

    Args:
        sentences: The caption.
        reference: What it is compared with.
        vectors: The vectors of :func:`texts_of`.
        root_of: The synonym graph.
    """
    # A caption that names an object twice means the same one.
    named = list({o.name: o for sentence in sentences for o in sentence.objects}.values())
    alike = [
        [_similarity(o, other, vectors, root_of) for other in reference.objects] for o in named
    ]
    partners = {
        o.name: ("", 0.0) if at is None else (reference.objects[at].name, row[at])
        for o, row, at in zip(named, alike, assign(alike), strict=True)
    }
    found = [
        [
            ComparedObject(
                object=o.name,
                start=o.start,
                end=o.end,
                reference=partners[o.name][0],
                similarity=partners[o.name][1],
                closeness=near,
                gain=gain,
                # Fewer than half of the captions state the number.
                uncounted=bool(o.number)
                and 2 * reference.numbers.get(o.number, 0) < len(reference.captions),
            )
            for o, (near, gain) in zip(
                sentence.objects, _contexts(sentence, reference, vectors), strict=True
            )
        ]
        for sentence in sentences
    ]
    best = [max((row[at] for row in alike), default=0.0) for at in range(len(reference.objects))]
    names = (other.name for other in reference.objects)
    return found, {n: b >= RECALLED_FROM for n, b in zip(names, best, strict=True)}


def _similarity(
    one: CaptionObject,
    other: CaptionObject,
    vectors: Mapping[str, Vectors],
    root_of: RootOf,
) -> float:
    root = root_of(one.name) or root_of(one.head)
    same = root is not None and root == (root_of(other.name) or root_of(other.head))
    if same or one.head == other.head:
        return 1.0
    cosine = max(
        float(vectors[one.name] @ vectors[other.name]),
        float(vectors[one.head] @ vectors[other.head]),
    )
    # Rounding may make the cosine of two equal vectors larger than 1.
    return max(cosine, _PERSONS) if one.person and other.person else min(cosine, 1.0)


def _contexts(
    sentence: CaptionSentence,
    reference: Reference,
    vectors: Mapping[str, Vectors],
) -> list[tuple[float, float]]:
    """Return for each object how close its sentence is to the captions, and the gain."""
    if not reference.captions:
        return [(1.0, 0.0)] * len(sentence.objects)
    mean = np.mean([vectors[normal(text)] for text in reference.captions], axis=0)
    mean /= np.linalg.norm(mean)
    near = float(mean @ vectors[normal(sentence.text)])
    return [
        (
            near,
            max(
                (float(mean @ vectors[normal(t)]) - near for t in _shortened(sentence, o)),
                default=0.0,
            ),
        )
        for o in sentence.objects
    ]


def _shortened(sentence: CaptionSentence, o: CaptionObject) -> list[str]:
    """Return the sentence without each of the words about an object."""
    return [sentence.without(place) for place in o.words]


def assign(values: Sequence[Sequence[float]]) -> list[int | None]:
    """Return the column of each row in the one-to-one assignment with the largest sum.

    Kuhn's Hungarian algorithm with potentials, in O(rows² · columns), as in
    ``scipy.optimize.linear_sum_assignment``: docs/decisions/open-objects.md says why not scipy's.

    Args:
        values: Rows of equal length. Rows that are left over when columns run out have None.
    """
    rows, columns = len(values), len(values[0]) if values else 0
    # The algorithm needs a column for every row.
    if rows > columns:
        flipped = assign([list(column) for column in zip(*values, strict=True)])
        by_row = {row: column for column, row in enumerate(flipped)}
        return [by_row.get(row) for row in range(rows)]
    row_of = [-1] * (columns + 1)  # the last column is a place for the row to be assigned
    of_row, of_column = [0.0] * rows, [0.0] * (columns + 1)
    for row in range(rows):
        _add(row, values, row_of, of_row, of_column)
    found: list[int | None] = [None] * rows
    for column, row in enumerate(row_of[:columns]):
        if row >= 0:
            found[row] = column
    return found


def _add(
    row: int,
    values: Sequence[Sequence[float]],
    row_of: list[int],
    of_row: list[float],
    of_column: list[float],
) -> None:
    """Assign one more row along the shortest augmenting path."""
    columns = len(row_of) - 1
    row_of[columns], current = row, columns
    least, before = [float("inf")] * columns, [columns] * columns
    used = [False] * (columns + 1)
    while row_of[current] >= 0:
        used[current] = True
        at = row_of[current]
        for column in range(columns):
            if not used[column]:
                # Negated, because the algorithm looks for the least sum.
                cost = -values[at][column] - of_row[at] - of_column[column]
                if cost < least[column]:
                    least[column], before[column] = cost, current
        after = min((c for c in range(columns) if not used[c]), key=least.__getitem__)
        step = least[after]
        for column in range(columns + 1):
            if used[column]:
                of_row[row_of[column]] += step
                of_column[column] -= step
            elif column < columns:
                least[column] -= step
        current = after
    while current != columns:
        row_of[current] = row_of[before[current]]
        current = before[current]
    row_of[columns] = -1


_ROLE = "objects"
_MODEL = "encoder"
# More words than captions of a benchmark have.
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
        return {**graph_settings(self._graph), **super().settings}

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """Return one result for each item, in order; models run in a thread."""
        mine = checked_items(items, OpenObjectsItem)
        results: list[ItemResult] = []
        for at in range(0, len(mine), _TOGETHER):
            results += await in_thread(partial(self._results, mine[at : at + _TOGETHER]))
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
        found, named = compared(sentences, reference, vectors, self._root_of)
        return self.metric.score_caption(found, named, has_captions=bool(reference.captions))

    def _results(self, items: Sequence[OpenObjectsItem]) -> list[ItemResult]:
        """Return the result of each item, whose texts are encoded together."""
        check_wanted()
        texts: set[str] = set()
        for item in items:
            if self.problem(item) is None:
                texts |= texts_of(read_caption(item.response or ""), self._reference(item))
        # Batches of equal length take less time.
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
    matcher = f"{OBJECTS_LABEL}+{encoder.label}"
    metric = ENTRY.metric_for(spec, responses, matcher=matcher, graph=graph.label)
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
    open=_open,
)
ENTRIES = (ENTRY,)
