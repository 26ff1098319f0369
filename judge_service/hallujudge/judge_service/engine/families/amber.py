"""AMBER: nouns of descriptions -> object words; answers -> yes or no."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct, structs

from hallujudge.metrics.amber import KINDS, AmberMetric
from hallujudge.metrics.amber.descriptions import AmberItem, AmberObject, Similar
from hallujudge.metrics.answers.answers_metric import AnswersMetric
from hallujudge.metrics.answers.closed_questions import Answer, AnswersItem
from hallujudge.metrics.framework.results import ScoredItem, UnscoredReason

from ...errors import InvalidInputError
from ...extractors.library_extractors import NltkNounExtractor, load_pipeline, pipeline_label
from ...extractors.rules.rule_extractors import RuleNounExtractor
from ...threads import RULES_EFFORT
from ..answers_pipeline import AnswersPipeline
from ..registry import MetricEntry, Trial
from ..resources import Offers, Resources
from ..responses import Problem, ResponseCheck
from ..spec import ScoreSpec

GIVEN = "given"
_KNOWN = ", ".join(KINDS)
RELEASED_MODEL = "en_core_web_lg"
"""The model of the released script."""
_SIMILAR_ABOVE = 0.8
"""The released script's default of ``--similarity_score``."""
# Pairs repeat over all descriptions of a run, and comparing one takes a model.
_KEPT_PAIRS = 1 << 20
_COMPONENTS = ["tok2vec", "tagger", "parser", "senter", "attribute_ruler", "lemmatizer", "ner"]


class NounSource(Struct, frozen=True, kw_only=True):
    """How nouns are found and compared."""

    extractor: NltkNounExtractor | RuleNounExtractor | None = None
    """Finds nouns; None if they are given."""
    exact_case: bool = False
    """Whether a word has to be written as in the association table."""
    similar: Similar | None = None
    """Compares words that differ; without it, words are equal or not."""
    words: str = "equal"
    """How words are compared, for the signature."""

    def known(self, item: AmberItem) -> AmberItem:
        """Return a description with its object words: the nouns in the association table."""
        if self.extractor is None:
            return item
        found = self.extractor.extract(item.response or "")
        table = _spellings(item.vocabulary, exact_case=self.exact_case)
        nouns = tuple(table[noun] for noun in found if noun in table)
        return structs.replace(item, nouns=nouns, nouns_given=True)


@lru_cache(maxsize=16)
def _spellings(vocabulary: tuple[str, ...], *, exact_case: bool) -> Mapping[str, str]:
    """Return word as an extractor may write it -> word of the association table."""
    spelt = {word: word for word in vocabulary}
    # Exact spellings come last: they must not be lost to a word that differs in case only.
    return spelt if exact_case else {word.casefold(): word for word in vocabulary} | spelt


class AmberPipeline(AnswersPipeline):
    """Compares object words with the image's objects, and answers with their labels.

    Args:
        metric: The metric.
        responses: Recognises missing responses.
        source: Finds and compares nouns.
        english: Recognises descriptions that the extractor does not read.
    """

    def __init__(
        self,
        metric: AnswersMetric,
        responses: ResponseCheck,
        source: NounSource,
        english: ResponseCheck,
    ) -> None:
        super().__init__(metric, responses)
        self._source = source
        self._english = english

    @property
    def settings(self) -> Mapping[str, str]:
        """Where nouns come from and how they are compared, then how responses are checked."""
        found = {"words": self._source.words, **super().settings, **self._english.settings()}
        if self._source.extractor is not None:
            found["nouns_by"] = self._source.extractor.label
        if self._source.similar is None:
            # It is an option of the released word comparison, which is not in use here.
            del found["vectors"]
        return found

    def size(self, item: AnswersItem) -> int:
        """Return the number of characters that scoring an item reads, weighted by their effort."""
        size = super().size(item)
        return size if self._source.extractor is None else RULES_EFFORT * size

    def key_of(self, item: AnswersItem) -> tuple[object, ...] | None:
        """Return all that the outcome of an answer depends on; descriptions hardly repeat."""
        return None if isinstance(item, AmberItem) else super().key_of(item)

    def unanswered(self, item: AnswersItem, places: Collection[int]) -> AnswersItem:  # noqa: ARG002 - it has one response
        """Return an item without the nouns of a description that was cut off."""
        is_text = isinstance(item, AmberItem)
        return structs.replace(item, nouns=(), nouns_given=False) if is_text else item

    def problem(self, item: AnswersItem) -> Problem | None:
        """Return why an item can't be scored, or None if it can."""
        if isinstance(item, AmberItem):
            return self._description_problem(item)
        kind = item.answers[0].fields.get("kind", "") if item.answers else ""
        if kind not in KINDS:
            return UnscoredReason.REFERENCE_MISSING, f"the kind is {kind!r:.80}, not {_KNOWN}"
        return super().problem(item)

    def _description_problem(self, item: AmberItem) -> Problem | None:
        """Return why a description can't be scored; its text is not needed if nouns are given."""
        given = self._source.extractor is None
        only_nouns = given and item.response is None and item.nouns_given
        problem = self.responses.problem(item.response, "the description")
        if problem is not None and not only_nouns:
            return problem
        if given and not item.nouns_given:
            return UnscoredReason.KEYWORDS_MISSING, (
                "no nouns are given; add them, or set the option nouns = rules"
            )
        if not item.objects:
            return UnscoredReason.REFERENCE_MISSING, "the image has no annotated object"
        return None if given else self._english.language(item.response or "", "the description")

    def score(self, item: AnswersItem) -> ScoredItem[Any]:
        """Return the statistics of a description or an answer."""
        if not isinstance(item, AmberItem):
            return super().score(item)
        metric: Any = self.metric
        described: ScoredItem[Any] = metric.score_description(
            self._source.known(item), self._source.similar
        )
        return described


class WordVectors:
    """Compares words: they are similar if the cosine of their vectors is above 0.8.

    Args:
        model: Name of an installed spaCy model, or a folder.

    Raises:
        MissingExtraError: spaCy or the model is not installed.
        InvalidInputError: The model has no vectors.
    """

    def __init__(self, model: str = RELEASED_MODEL) -> None:
        needed = f"the word comparison of AMBER's released script needs the spaCy model {model!r}"
        # Vectors need the tokenizer only.
        self._model = load_pipeline(model, needed, suggested=RELEASED_MODEL, exclude=_COMPONENTS)
        if not len(self._model.vocab.vectors):
            raise InvalidInputError(
                f"the spaCy model {model!r} has no vectors; use {RELEASED_MODEL}"
            )
        self._doc = lru_cache(maxsize=_KEPT_PAIRS)(self._model.make_doc)
        self.similar = lru_cache(maxsize=_KEPT_PAIRS)(self._similar)

    @property
    def label(self) -> str:
        """The threshold and the model with its version."""
        return f"cosine>{_SIMILAR_ABOVE}@{pipeline_label(self._model)}"

    def _similar(self, one: str, other: str) -> bool:
        with warnings.catch_warnings():
            # spaCy warns of words without a vector; they are similar to none.
            warnings.simplefilter("ignore", UserWarning)
            return bool(self._doc(one).similarity(self._doc(other)) > _SIMILAR_ABOVE)


def _noun_source(options: Mapping[str, str], offers: Offers | None) -> NounSource:
    """Return how nouns are found.

    Raises:
        MissingExtraError: What ``published`` needs is not installed.
        NotFoundError: A caller of a server names a model that is not offered.
        InvalidInputError: A model has no vectors.
    """
    name = options.get("nouns") or GIVEN
    if name == GIVEN:
        return NounSource()
    if name == "rules":
        return NounSource(extractor=RuleNounExtractor())

    model = options.get("vectors") or RELEASED_MODEL
    if offers is not None:
        offers.check("vectors", options.get("vectors", ""), offers.vectors)
    vectors = WordVectors(model)
    return NounSource(
        extractor=NltkNounExtractor(),
        exact_case=True,
        similar=vectors.similar,
        words=f"equal or {vectors.label}",
    )


def _open(spec: ScoreSpec, resources: Resources) -> AmberPipeline:
    source = _noun_source(spec.options, resources.offers)
    responses = ResponseCheck(spec.options)
    # Extractors read English; answers and given nouns may be in any language.
    english = ResponseCheck(spec.options, reads_english=source.extractor is not None)
    extractor = source.extractor.label if source.extractor else ""
    metric = ENTRY.metric_for(spec, english, extractor=extractor, words=source.words)
    return AmberPipeline(metric, responses, source, english)


ENTRY = MetricEntry(
    metric=AmberMetric,
    item_type=AnswersItem,
    trial=Trial(
        item=AmberItem(
            id="1",
            answers=(Answer(response="A dog."),),
            nouns=("dog",),
            nouns_given=True,
            objects=(AmberObject(word="dog"),),
        ),
        score="cover",
        value=1 / 1.001,
    ),
    reads_english=True,
    parses=lambda spec: spec.options.get("nouns") == "rules",
    open=_open,
)
ENTRIES = (ENTRY,)
"""The metrics of the family."""
