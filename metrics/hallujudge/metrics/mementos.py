"""Mementos: named and hallucinated objects and behaviours of image sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from msgspec import Struct, to_builtins

from .framework.arrays import FloatArray
from .framework.asking import AskingProtocol, AskingStep, OwnAsking, Shown
from .framework.claims import InvalidEntry, invalid_note, invalid_to_json
from .framework.columns_and_scores import Column, ScoreDefinition, share
from .framework.metric import Metric, OptionDefinition, Paper, VariantDefinition
from .framework.papers import paper
from .framework.results import Item, ItemRecords, JsonValue, ScoredItem


class MementosItem(Item, frozen=True, kw_only=True):
    """A model's and a human description of an image sequence, as texts or as keywords."""

    response: str | None = None
    """What the model wrote; None without a response, or if only its keywords are known."""
    reference: str | None = None
    """The human description."""
    domain: str = ""
    """The domain whose synonym graphs are used. Empty for the general ones."""
    reference_objects: tuple[str, ...] | None = None
    """Objects of the human description; None if they are to be extracted."""
    predicted_objects: tuple[str, ...] | None = None
    """Objects of the model's description."""
    reference_behaviors: tuple[str, ...] | None = None
    """Behaviours of the human description."""
    predicted_behaviors: tuple[str, ...] | None = None
    """Behaviours of the model's description."""
    episode_length: int | None = None
    """Number of events in the sequence; None counts the reference behaviours."""

    def records(self) -> ItemRecords:
        """Return the domain, the human description, its keywords if given, and the events."""
        kinds = (self.reference_objects, self.reference_behaviors)
        keywords = [None if words is None else sorted(words) for words in kinds]
        reference = (self.domain, self.reference, keywords, self.episode_length)
        return ItemRecords(None, reference)


Span = tuple[int, int]


class MatchedKeyword(NamedTuple):
    """A predicted keyword and the reference keyword that it matches."""

    predicted: str
    """The predicted keyword."""
    reference: str
    """The reference keyword."""


class NearKeyword(NamedTuple):
    """A hallucinated keyword and a missed one that are close, but not synonyms."""

    predicted: str
    """The hallucinated keyword."""
    reference: str
    """The missed keyword."""
    why: str
    """``spelling``, ``direction``, ``root`` or ``word``."""


class KeywordEvidence(Struct, frozen=True, kw_only=True, gc=False):
    """Matches of one kind of keywords: objects or behaviours."""

    reference: tuple[str, ...] = ()
    """Keywords of the human description."""
    predicted: tuple[str, ...] = ()
    """Keywords of the model's description."""
    matched: tuple[MatchedKeyword, ...] = ()
    """Matching pairs."""
    hallucinated: tuple[str, ...] = ()
    """Predicted keywords without a match."""
    missed: tuple[str, ...] = ()
    """Reference keywords without a match."""
    unknown: tuple[str, ...] = ()
    """Keywords that the synonym graph does not know."""
    near: tuple[NearKeyword, ...] = ()
    """Near misses."""
    reference_spans: tuple[Span, ...] = ()
    """Positions of the reference keywords in the human description; empty for given keywords."""
    predicted_spans: tuple[Span, ...] = ()
    """Positions of the predicted keywords in the model's description."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return everything but the keyword lists, which :class:`MementosEvidence` writes."""
        line: dict[str, JsonValue] = to_builtins(self)
        del line["reference"], line["predicted"]
        return {name: own for name, own in line.items() if own or not name.endswith("_spans")}


class MementosEvidence(Struct, frozen=True, kw_only=True, gc=False):
    """Evidence of a description's scores.

    The keyword lists have the names that ``--keywords`` reads, so that ``items.jsonl`` can be
    scored again with another graph, without extracting them again.
    """

    domain: str = ""
    """The domain whose graphs were used."""
    extractor: str = ""
    """The extractor that found the keywords; empty for given keywords."""
    episode_length: int | None = None
    """Number of events in the sequence; the number of reference behaviours if it was not given."""
    objects: KeywordEvidence = KeywordEvidence()
    """Matches of objects."""
    behaviors: KeywordEvidence = KeywordEvidence()
    """Matches of behaviours."""
    invalid: tuple[InvalidEntry, ...] = ()
    """Keywords of a language model's reply that were rejected or repaired."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the domain, the four keyword lists, the matches, and invalid keywords."""
        return {
            "domain": self.domain,
            "extractor": self.extractor,
            "episode_length": self.episode_length,
            "reference_objects": list(self.objects.reference),
            "predicted_objects": list(self.objects.predicted),
            "reference_behaviors": list(self.behaviors.reference),
            "predicted_behaviors": list(self.behaviors.predicted),
            "objects": self.objects.to_json(),
            "behaviors": self.behaviors.to_json(),
            **invalid_to_json(self.invalid),
        }


KINDS = ("object", "behavior")
"""Kinds of keywords; names of scores and statistics begin with the kind."""
_MEASURES = ("recall", "precision", "f1")
_SEQUENCES, _POOLED = "sequences", "pooled"


KeywordCounts: TypeAlias = "tuple[int, int, int]"
"""Counts of a matcher: reference keywords with a match, predictions without, references without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordScores:
    """Scores of one keyword list compared with another; None if undefined."""

    recall: float | None
    """Matched reference keywords / reference keywords."""
    precision: float | None
    """Matched reference keywords / (matched ones + wrong predictions)."""
    f1: float | None
    """Harmonic mean of recall and precision."""


def keyword_scores(counts: KeywordCounts, *, variant: str) -> KeywordScores:
    """Return recall, precision and F1 of one sequence (section 2.3 of the paper).

    In ``published``, 0/0 is 0, as in the released script. In ``corrected``, recall and F1 are
    undefined if the reference list is empty, and precision is undefined if both lists are empty. If
    only the predicted list is empty, precision is 0 in both variants.
    """
    hits, wrong, missed = counts
    wanted, said = hits + missed, hits + wrong
    strict = variant != "published"
    recall = hits / wanted if wanted else None if strict else 0.0
    precision = hits / said if said else None if strict and not wanted else 0.0
    if recall is None or precision is None:
        return KeywordScores(recall=recall, precision=precision, f1=None)
    total = precision + recall
    f1 = 2 * (precision * recall) / total if total else 0.0
    return KeywordScores(recall=recall, precision=precision, f1=f1)


def _counts_columns(kind: str) -> tuple[Column, ...]:
    counted = {
        "hits": "matched reference {} keywords",
        "wrong": "wrong predicted {} keywords",
        "missed": "missed reference {} keywords",
    }
    shares = tuple(
        column
        for name in _MEASURES
        for column in (
            Column(
                name=f"{kind}_{name}_sum",
                meaning=f"the sequence's own {kind} {name}",
                integral=False,
            ),
            Column(name=f"{kind}_{name}_items", meaning=f"sequences with a {kind} {name}"),
        )
    )
    return (
        *(
            Column(name=f"{kind}_{name}", meaning=meaning.format(kind))
            for name, meaning in counted.items()
        ),
        *shares,
    )


_INVALID_COLUMNS = (
    Column(name="rejected_keywords", meaning="invalid extracted keywords that were left out"),
    Column(name="repaired_keywords", meaning="invalid extracted keywords that were replaced"),
)
_SCORE_MEANINGS = {
    "recall": "matched reference {} keywords / reference {} keywords",
    "precision": "matched reference {} keywords / (matched ones + wrong predictions)",
    "f1": "harmonic mean of {} recall and precision",
}


def _score(
    kind: str,
    name: str,
    numerator: str | tuple[str, ...],
    denominator: str | tuple[str, ...],
    count: str | None = None,
) -> ScoreDefinition:
    meaning = _SCORE_MEANINGS[name].format(kind, kind)
    return share(f"{kind}_{name}", meaning, numerator, denominator, count=count)


def _mean_scores(kind: str) -> tuple[ScoreDefinition, ...]:
    return tuple(
        _score(kind, name, f"{kind}_{name}_sum", f"{kind}_{name}_items") for name in _MEASURES
    )


def _pooled_scores(kind: str) -> tuple[ScoreDefinition, ...]:
    hits, wrong, missed = (f"{kind}_{name}" for name in ("hits", "wrong", "missed"))
    return (
        # As for the means, n is the number of sequences, and not of keywords.
        _score(kind, "recall", hits, (hits, missed), count=""),
        _score(kind, "precision", hits, (hits, wrong), count=""),
        # The harmonic mean as a ratio of sums: 2 hits / (2 hits + wrong + missed).
        _score(kind, "f1", (hits, hits), (hits, hits, wrong, missed), count=""),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MementosMetric(Metric):
    """Mementos (Wang et al., 2024, section 2.3).

    The keywords of a model's description of an image sequence are compared with those of the human
    description, after synonyms are mapped to one word:

    * ``recall`` = matched reference keywords / reference keywords
    * ``precision`` = matched reference keywords / (matched ones + wrong predictions)
    * ``f1`` = the harmonic mean of both

    Objects and behaviours have a score each: the mean of the sequences' own scores, as in the
    paper's Tables 1 and 2. With ``average="pooled"``, the keywords of all sequences are added up
    first.

    ``published`` reproduces the released script exactly, including its known bugs, which
    ``hallujudge.synonym_graphs.KeywordMatcher`` lists. Furthermore:

    * 0/0 is 0, even if the reference list is empty;
    * sequences without a keyword file are silently left out; here such an item is unscored;
    * an empty list ``[]`` is parsed as one empty keyword, so that two empty lists score 1; here
      they are empty, and the item scores 0.

    The released script maps the model's keywords alone to roots, because every human keyword is a
    root of the released graphs. With other graphs, such as those that are shipped, both sides are
    mapped; the signature's ``map`` says which.

    ``corrected`` counts every wrong prediction, and leaves 0/0 undefined (see
    :func:`keyword_scores`).

    Attributes:
        variant: ``published`` or ``corrected``.
        average: ``sequences`` or ``pooled``.
        matcher: Name of the keyword matcher, for the signature.
        object_graph: Name of the graph of objects, for the signature.
        behavior_graph: Name of the graph of behaviours, for the signature.
        extractor: Name of the extractor of keywords.
        domain: The domain of items without one.
    """

    name: ClassVar[Literal["mementos"]] = "mementos"
    group_by: ClassVar[tuple[str, ...]] = ("domain",)
    summary: ClassVar[str] = "Hallucinated objects and behaviours of image sequences."
    papers: ClassVar[tuple[Paper, ...]] = (paper("mementos"),)
    variants: ClassVar[tuple[VariantDefinition, ...]] = (
        VariantDefinition(
            name="published",
            meaning="Reproduces the released script exactly, including its known bugs. With graphs "
            "other than the released ones, whose roots need not be the human words, both sides' "
            "keywords are mapped to roots.",
        ),
        VariantDefinition(
            name="corrected",
            meaning="Counts every wrong prediction, and leaves 0/0 undefined.",
        ),
    )
    options: ClassVar[tuple[OptionDefinition, ...]] = (
        OptionDefinition(
            name="average",
            choices=(_SEQUENCES, _POOLED),
            meaning="Average of scores.",
            details="sequences: mean over sequences, as in the paper; pooled: over all keywords.",
        ),
        OptionDefinition(
            name="domain",
            meaning="Domain of items that name none.",
        ),
    )
    unit: ClassVar[Literal["sequences"]] = "sequences"
    # The sequences' own scores are fractions.
    folds: ClassVar[bool] = False
    columns: ClassVar[tuple[Column, ...]] = (
        *(c for kind in KINDS for c in _counts_columns(kind)),
        *_INVALID_COLUMNS,
    )
    score_definitions: ClassVar[tuple[ScoreDefinition, ...]] = tuple(
        score for kind in KINDS for score in _mean_scores(kind)
    )
    ranked_by: ClassVar[tuple[str, ...]] = ("object_f1",)
    ranking_source: ClassVar[str] = (
        "The paper names none; the models that it calls best are best by it in Table 2."
    )

    average: str = ""
    domain: str = ""
    matcher: str
    object_graph: str
    behavior_graph: str
    extractor: str

    @property
    def scores(self) -> tuple[ScoreDefinition, ...]:
        """Return the six scores: means over sequences, or ratios over all keywords."""
        if self.average == _SEQUENCES:
            return self.score_definitions
        return tuple(score for kind in KINDS for score in _pooled_scores(kind))

    def signature_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the matcher, both graphs, the extractor and the average."""
        return (
            ("match", self.matcher),
            ("objects", self.object_graph),
            ("behaviors", self.behavior_graph),
            ("domain", self.domain or "items"),
            ("extract", self.extractor),
            ("avg", self.average),
        )

    def score_description(
        self,
        objects: KeywordCounts,
        behaviors: KeywordCounts,
        invalid: Sequence[InvalidEntry] = (),
    ) -> ScoredItem[None]:
        """Return the statistics of one sequence and its own scores.

        Args:
            objects: Counts of its object keywords.
            behaviors: Counts of its behaviour keywords.
            invalid: Extracted keywords that were rejected or repaired.
        """
        statistics: list[float] = []
        scores: dict[str, float | None] = {}
        for kind, counts in zip(KINDS, (objects, behaviors), strict=True):
            statistics += counts
            own = keyword_scores(counts, variant=self.variant)
            for name, value in zip(_MEASURES, (own.recall, own.precision, own.f1), strict=True):
                scores[f"{kind}_{name}"] = value
                # An undefined score is left out of the mean: it adds to neither of the columns.
                statistics += (0.0, 0) if value is None else (value, 1)
        repaired = sum(bool(entry.repaired) for entry in invalid)
        statistics += (len(invalid) - repaired, repaired)
        return ScoredItem(statistics=tuple(statistics), scores=scores, evidence=None)

    def notes_on(self, totals: Mapping[str, float]) -> tuple[str, ...]:
        """Return how many extracted keywords were invalid, if any were."""
        return invalid_note("keywords", totals["rejected_keywords"], totals["repaired_keywords"])

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:
        """Return a description with every keyword at best, and with only wrong ones at worst.

        The number of keywords is the largest of a reference; the number of wrong ones is the
        largest of a description.
        """
        row: dict[str, float] = {}
        for kind in KINDS:
            hits, missed = observed[f"{kind}_hits"], observed[f"{kind}_missed"]
            wanted = float((hits + missed).max(initial=1.0))
            row[f"{kind}_hits"] = wanted if best else 0.0
            row[f"{kind}_missed"] = 0.0 if best else wanted
            row[f"{kind}_wrong"] = (
                0.0 if best else float(observed[f"{kind}_wrong"].max(initial=1.0))
            )
            for name in _MEASURES:
                row[f"{kind}_{name}_sum"] = float(best)
                row[f"{kind}_{name}_items"] = 1.0
        return row


_DESCRIBED = (
    "This is a sequence of images, in the order of time. Describe in one paragraph what happens in "
    "it: who or what is there, and what they do one after another."
)
_REWRITTEN = (
    "Below are questions about a sequence of images, with their answers. Write one paragraph that "
    "describes the sequence by them. Leave out objects and actions that the images do not show."
    "\n\n{{pairs}}"
)


def _pairs(record: Mapping[str, object]) -> Shown:
    """Return the questions and answers of a record as lines of a prompt."""
    held = record.get("qa", record.get("questions"))
    records = [each for each in held if isinstance(each, Mapping)] if isinstance(held, list) else []
    texts = (
        [str(each.get(key) or "").strip() for key in ("question", "answer")] for each in records
    )
    # A question without its answer says nothing that a description could be made of.
    pairs = (f"Question: {asked}\nAnswer: {answer}" for asked, answer in texts if asked and answer)
    return Shown(slots={"pairs": "\n".join(pairs)})


ASKING = {
    "mementos": OwnAsking(
        protocols=(
            AskingProtocol(steps=(AskingStep(prompt=_DESCRIBED),)),
            AskingProtocol(
                name="rewritten",
                meaning="Questions and answers (qa) become a description (appendix C).",
                steps=(AskingStep(prompt=_REWRITTEN),),
            ),
        ),
        id=("image_name", "image", "id", "image_id"),
        response="description",
        kept=("domain",),
        of_media=True,
        shown=_pairs,
        max_tokens=1024,
    )
}
"""How descriptions are asked for (tasks of appendix C): one picture, or a folder of frames."""
