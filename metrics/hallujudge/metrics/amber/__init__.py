"""AMBER: object words in descriptions of images, and yes/no questions about images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias

from ..answers.closed_questions import AnswerEvidence
from ..answers.yes_no import YES_NO_PARSERS
from ..framework.columns_and_scores import Column, ScoreDefinition
from ..framework.metric import Metric, OptionDefinition, Paper, VariantDefinition
from ..framework.results import CanonicalRecord, Item, JsonValue, ScoredItem
from .dimension_scores import COLUMNS, CORRECTED, DIMENSIONS, PUBLISHED

if TYPE_CHECKING:
    from ..framework.columns_and_scores import FloatArray


GENERATIVE = "generative"
"""The kind of descriptions; all other kinds are questions."""
KINDS = ("existence", "state", "number", "action", "relation")
"""The kinds of questions; state, number and action are attributes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AmberObject:
    """An object of an image, or a hallucination target."""

    word: str
    """Name of the object."""
    associated: tuple[str, ...] = ()
    """Words that are associated with it in the association table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AmberItem(Item):
    """A description of an image, or an answer to a question about it."""

    kind: str
    """``generative``, or the kind of question: ``existence``, ``state``, ``number``, ``action`` or
    ``relation``."""
    response: str | None = None
    """What the model wrote; None without a response, or if only its nouns are known."""
    question: str = ""
    """The question."""
    label: str = ""
    """The right answer to a question: ``yes`` or ``no``."""
    nouns: tuple[str, ...] = ()
    """The object words of a description: its nouns in the association table, with repetitions."""
    nouns_given: bool = False
    """Whether the nouns of a description are known; the list may be empty."""
    objects: tuple[AmberObject, ...] = ()
    """The objects that the image shows."""
    targets: tuple[AmberObject, ...] = ()
    """The hallucination targets: objects that the image lacks and that models tend to name."""
    safe_words: tuple[str, ...] = ()
    """Words that are never hallucinated."""
    vocabulary: tuple[str, ...] = ()
    """The words of the association table, where a description has a text to look for nouns in."""

    def question_record(self) -> CanonicalRecord:
        """Return the question."""
        return self.question

    def reference_record(self) -> CanonicalRecord:
        """Return the kind, the label, the objects and targets, and the safe words."""
        parts = (self.objects, self.targets)
        words = [sorted((each.word, sorted(each.associated)) for each in part) for part in parts]
        return self.kind, self.label, words, sorted(self.safe_words)


class AmberWord(NamedTuple):
    """An object word of a description."""

    word: str
    """The word."""
    verdict: str
    """``true``, ``safe`` or ``hallucinated``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AmberEvidence:
    """Evidence of a description's scores."""

    words: tuple[AmberWord, ...]
    """Its object words, with repetitions."""
    covered: tuple[str, ...]
    """Objects of the image that it names."""
    missed: tuple[str, ...]
    """Objects of the image that it does not name."""
    targets_said: tuple[str, ...]
    """Hallucination targets that it names."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return words with their verdicts, then objects and targets."""
        return {
            "words": [dict(word._asdict()) for word in self.words],
            "covered": list(self.covered),
            "missed": list(self.missed),
            "targets_said": list(self.targets_said),
        }


class DescriptionCounts(NamedTuple):
    """Counts of one description for the generative scores."""

    words: int
    """Object words."""
    hallucinated: int
    """Object words that are hallucinated."""
    objects: int
    """Objects of the image."""
    covered: int
    """Objects of the image that the description names."""
    targets: int
    """Hallucination targets."""
    targets_said: int
    """Hallucination targets that the description names."""


Similar: TypeAlias = Callable[[str, str], bool]
"""Whether two words that differ are taken to be the same."""


def count_words(
    item: AmberItem, variant: str, similar: Similar | None = None
) -> tuple[DescriptionCounts, AmberEvidence]:
    """Return the counts of a description, and its evidence.

    Args:
        item: The description, with its nouns.
        variant: ``published`` or ``corrected``.
        similar: Compares words that differ. By default, words are the same or not.
    """
    published = variant == "published"
    objects = item.objects if published else _distinct(item.objects)
    targets = item.targets if published else _distinct(item.targets)
    verdicts = _verdicts(item, similar)
    wrong = [noun for noun, verdict in zip(item.nouns, verdicts, strict=True) if verdict == _WRONG]
    true, safe = _words_of(item.objects), frozenset(item.safe_words)
    # Words that are not equal to a true word; their vectors may still be similar.
    unknown = [noun for noun in item.nouns if noun not in true and noun not in safe]
    credited = [noun for noun in item.nouns if not published or noun not in safe]
    # The released script looks for targets before it compares a word with the true ones by vectors.
    suspects = unknown if published else wrong
    find = _first_named if published else _all_named
    covered = find(objects, credited) | _similar_to(objects, unknown, similar, first=published)
    said = find(targets, suspects) | _similar_to(targets, suspects, similar, first=published)
    counts = DescriptionCounts(
        words=len(item.nouns),
        hallucinated=len(wrong),
        objects=len(objects),
        covered=len(covered),
        targets=len(targets),
        targets_said=len(said),
    )
    evidence = AmberEvidence(
        words=tuple(map(AmberWord, item.nouns, verdicts)),
        covered=_names(objects, covered),
        missed=_names(objects, frozenset(range(len(objects))) - covered),
        targets_said=_names(targets, said),
    )
    return counts, evidence


_WRONG = "hallucinated"


def _verdicts(item: AmberItem, similar: Similar | None) -> list[str]:
    true, safe = _words_of(item.objects), frozenset(item.safe_words)

    def is_true(noun: str) -> bool:
        return noun in true or (similar is not None and any(similar(noun, word) for word in true))

    return ["safe" if noun in safe else "true" if is_true(noun) else _WRONG for noun in item.nouns]


def _words_of(objects: Sequence[AmberObject]) -> frozenset[str]:
    return frozenset(word for entry in objects for word in (entry.word, *entry.associated))


def _distinct(objects: Sequence[AmberObject]) -> tuple[AmberObject, ...]:
    return tuple({entry.word: entry for entry in objects}.values())


def _first_named(objects: Sequence[AmberObject], nouns: Sequence[str]) -> frozenset[int]:
    """Return the objects that words name in the released script.

    A word names one object: the first that it is associated with, or else the first of
    that name.
    """
    first: dict[str, int] = {}
    for index, entry in enumerate(objects):
        for word in entry.associated:
            first.setdefault(word, index)
    for index, entry in enumerate(objects):
        first.setdefault(entry.word, index)
    return frozenset(first[noun] for noun in nouns if noun in first)


def _all_named(objects: Sequence[AmberObject], nouns: Sequence[str]) -> frozenset[int]:
    """Return every object that a word names or is associated with."""
    said = frozenset(nouns)
    return frozenset(
        index
        for index, entry in enumerate(objects)
        if entry.word in said or not said.isdisjoint(entry.associated)
    )


def _similar_to(
    objects: Sequence[AmberObject], nouns: Sequence[str], similar: Similar | None, *, first: bool
) -> frozenset[int]:
    """Return the objects that words are similar to.

    Args:
        objects: The objects.
        nouns: The words.
        similar: Compares words. Without it, nothing is similar.
        first: Whether a word names one object only, as in the released script: the first with
            a similar associated word, or else the first with a similar name.
    """
    if similar is None:
        return frozenset()
    found: set[int] = set()
    for noun in frozenset(nouns):
        by_table = (
            index
            for index, entry in enumerate(objects)
            if any(similar(noun, word) for word in entry.associated)
        )
        by_name = (index for index, entry in enumerate(objects) if similar(noun, entry.word))
        named = chain(by_table, by_name)
        found.update(islice(named, 1) if first else named)
    return frozenset(found)


def _names(objects: Sequence[AmberObject], which: frozenset[int]) -> tuple[str, ...]:
    return tuple(objects[index].word for index in sorted(which))


_RELEASED_ANSWERS = {"Yes": "yes", "No": "no"}
_ATTRIBUTES = frozenset({"state", "number", "action"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AmberMetric(Metric):
    """AMBER (Wang et al., 2023; the released ``inference.py``).

    Descriptions, over their object words (nouns in the association table):

    * ``chair`` = words that are neither true, nor associated with a true object, nor safe / words
    * ``cover`` = named true objects / true objects
    * ``hal`` = descriptions with a hallucinated word / descriptions
    * ``cog`` = named hallucination targets / hallucination targets

    Questions, with no as the positive class: ``accuracy``, ``precision``, ``recall`` and ``f1``
    over all and, as ``existence_accuracy`` and so on, for each dimension.

    * ``amber_score`` = (1 - ``chair`` + ``f1``) / 2. The paper introduces it as the "AMBER Score",
      1/2 x (1 - CHAIR + F1); written here after lmms-eval's task ``amber_g``, which quotes it so.
      The released script does not print it.

    ``published`` reproduces the script:

    * Only the answers ``Yes`` and ``No`` are parsed; "No." and "no" are wrong.
    * 0.001 is added to each denominator (0.003 for attribute, the sum of three).
    * F1 is computed from precision and recall rounded to 0.1 %, with 0.0001 (existence: 0.001)
      added to their sum.
    * A word counts for one object only: the first one that it is associated with, or else the one
      that it names. The word "man" may cover "person" and leave "man" uncovered.
    * A duplicate annotated object can be covered only once.
    * A safe word covers no object, not even the one that it names.

    ``corrected`` uses the parser ``strict``, and unparsed answers are unscored. It adds and rounds
    nothing. A word covers every object that it names or is associated with, also a safe word.
    Duplicate annotations count once.

    The script finds nouns with nltk, and also compares word vectors (cosine above 0.8). The source
    of nouns ``published`` does both; the others compare words by equality only. With vectors, a
    word that is similar to a true one is true. The variant ``published`` counts a target as said
    before it compares the word with true ones by vectors.

    Attributes:
        variant: ``published`` or ``corrected``.
        nouns: Where nouns of descriptions come from: ``given``, ``rules`` or ``published``.
        vectors: The spaCy model of ``published`` nouns.
        extractor: What finds nouns, for the signature. Empty if they are given.
        words: How words are compared, for the signature.
    """

    name: ClassVar[Literal["amber"]] = "amber"
    summary: ClassVar[str] = "Hallucinated object words in descriptions, and wrong yes/no answers."
    papers: ClassVar[tuple[Paper, ...]] = (
        Paper(
            title="AMBER: An LLM-free Multi-dimensional Benchmark for MLLMs Hallucination "
            "Evaluation",
            authors="Wang et al.",
            year=2023,
            link="arXiv:2311.07397",
            where="inference.py",
        ),
    )
    variants: ClassVar[tuple[VariantDefinition, ...]] = (
        VariantDefinition(
            name="published",
            meaning="The released script; words are equal or not, unless nouns are published.",
        ),
        VariantDefinition(
            name="corrected",
            meaning="Parses whole answers, rounds and adds nothing, covers every named object.",
        ),
    )
    options: ClassVar[tuple[OptionDefinition, ...]] = (
        OptionDefinition(
            name="nouns",
            default="given",
            choices=("given", "rules", "published"),
            meaning="Nouns of descriptions.",
            details="rules finds them in the texts; published does so with nltk, and also compares "
            "words by spaCy's vectors.",
        ),
        OptionDefinition(
            name="vectors",
            default="en_core_web_lg",
            meaning="Model of published nouns: a spaCy package or folder.",
        ),
    )
    unit: ClassVar[Literal["items"]] = "items"
    columns: ClassVar[tuple[Column, ...]] = COLUMNS
    score_definitions: ClassVar[tuple[ScoreDefinition, ...]] = PUBLISHED

    nouns: str = ""
    vectors: str = ""
    extractor: str = ""
    words: str = "equal"

    @property
    def scores(self) -> tuple[ScoreDefinition, ...]:
        """Return the scores, whose formulas depend on the variant."""
        return PUBLISHED if self.variant == "published" else CORRECTED

    def signature_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the source of nouns and their comparison."""
        return (("nouns", self.extractor or self.nouns), ("words", self.words))

    def score_description(
        self, item: AmberItem, similar: Similar | None = None
    ) -> ScoredItem[AmberEvidence]:
        """Return the statistics of a description whose nouns are known.

        Args:
            item: The description.
            similar: Compares words that differ. By default, words are equal or not.
        """
        counts, evidence = count_words(item, self.variant, similar)
        row = dict.fromkeys(_NAMES, 0)
        row |= counts._asdict()
        row |= {"descriptions": 1, "hallucinating": int(counts.hallucinated > 0)}
        scores: dict[str, float | None] = {
            "chair": counts.hallucinated / counts.words if counts.words else None,
            "cover": counts.covered / counts.objects if counts.objects else None,
            "hal": float(counts.hallucinated > 0),
            "cog": counts.targets_said / counts.targets if counts.targets else None,
        }
        return ScoredItem(statistics=tuple(row.values()), scores=scores, evidence=evidence)

    def score_answer(self, item: AmberItem) -> ScoredItem[AnswerEvidence]:
        """Return the statistics of an answer to a question with the label ``yes`` or ``no``."""
        answer, label = self._read(item.response or ""), item.label
        readable = answer is not None or self.variant == "published"
        right = answer == label
        row = dict.fromkeys(_NAMES, 0)
        row |= {"questions": 1, "unparsed": int(answer is None)}
        for dimension in _dimensions(item.kind) if readable else ():
            row[f"{dimension}_asked"] = 1
            row[f"{dimension}_right"] = int(right)
            row[f"{dimension}_no"] = int(label == "no")
            row[f"{dimension}_said_no"] = int(answer == "no")
            row[f"{dimension}_right_no"] = int(answer == "no" and right)
        return ScoredItem(
            statistics=tuple(row.values()),
            scores={"accuracy": float(right)} if readable else {},
            evidence=AnswerEvidence(answer=answer, label=label, correct=right, how=self._parser),
            readable=readable,
        )

    @property
    def _parser(self) -> str:
        return "published" if self.variant == "published" else "strict"

    def _read(self, text: str) -> str | None:
        if self.variant == "published":
            return _RELEASED_ANSWERS.get(text)
        return YES_NO_PARSERS["strict"](text)

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:
        """Return an unscored item at its best, or at its worst.

        It may be a description or a question of any dimension, so each score assumes one of its own
        kind. At best: a true description, or a right no. At worst: a wrong description, or a no
        instead of yes.
        """
        largest = {name: float(values.max()) for name, values in observed.items()}
        row = dict.fromkeys(_NAMES, 0.0)
        row |= {name: largest[name] for name in ("words", "objects", "targets")}
        row |= {"descriptions": 1.0, "hallucinating": float(not best)}
        row |= {"hallucinated": row["words"] * (not best), "covered": row["objects"] * best}
        row["targets_said"] = row["targets"] * (not best)
        for dimension in DIMENSIONS:
            row |= {f"{dimension}_{name}": 1.0 for name in ("asked", "no", "said_no")}
            row |= {f"{dimension}_{name}": float(best) for name in ("right", "right_no")}
        return row


_NAMES = tuple(column.name for column in COLUMNS)


def _dimensions(kind: str) -> tuple[str, ...]:
    """Return the dimensions that a question counts in."""
    return ("all", "attribute", kind) if kind in _ATTRIBUTES else ("all", kind)
