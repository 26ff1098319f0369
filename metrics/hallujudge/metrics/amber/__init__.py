"""AMBER: object words in descriptions of images, and yes/no questions about images.

Wang et al., 2023; the released ``inference.py``.

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
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..answers.answers_metric import AnswersMetric, metric_with
from ..answers.closed_questions import (
    Answer,
    AnswersItem,
    AnswerVariant,
    ClosedQuestions,
    Keys,
    compared_by,
)
from ..answers.yes_no import YES_NO_PARSERS
from ..framework.metric import OptionDefinition, Paper
from ..framework.results import CanonicalRecord, JsonValue, ScoredItem
from .dimension_scores import CORRECTED, DIMENSIONS, PUBLISHED

if TYPE_CHECKING:
    from ..framework.columns_and_scores import FloatArray, ScoreDefinition


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
class AmberItem(AnswersItem):
    """A description of an image: the only answer, whose response is None if its nouns are known."""

    nouns: tuple[str, ...] = ()
    """The object words: nouns in the association table, with repetitions."""
    nouns_given: bool = False
    """Whether the nouns are known; the list may be empty."""
    objects: tuple[AmberObject, ...] = ()
    """The objects that the image shows."""
    targets: tuple[AmberObject, ...] = ()
    """The hallucination targets: objects that the image lacks and that models tend to name."""
    safe_words: tuple[str, ...] = ()
    """Words that are never hallucinated."""
    vocabulary: tuple[str, ...] = ()
    """The words of the association table, where there is a text to look for nouns in."""

    def reference_record(self) -> CanonicalRecord:
        """Return the objects and targets, and the safe words."""
        parts = (self.objects, self.targets)
        words = [sorted((each.word, sorted(each.associated)) for each in part) for part in parts]
        return GENERATIVE, words, sorted(self.safe_words)


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


def _released(text: str) -> str | None:
    return {"Yes": "yes", "No": "no"}.get(text)


QUESTIONS = ClosedQuestions(
    name="amber",
    summary="Hallucinated object words in descriptions, and wrong yes/no answers.",
    title="AMBER: object words in descriptions, and yes/no questions.",
    papers=(
        Paper(
            title="AMBER: An LLM-free Multi-dimensional Benchmark for MLLMs Hallucination "
            "Evaluation",
            authors="Wang et al.",
            year=2023,
            link="arXiv:2311.07397",
            where="inference.py",
        ),
    ),
    unit="items",
    keys=Keys(
        response=("response", "answer", "prediction", "output", "text"),
        label=("truth",),
        id=("id", "question_id"),
        asked=("query", "question"),
        media=("image", "image_id"),
        fields={"kind": ("type",)},
    ),
    seen=("kind",),
    variants=(
        AnswerVariant(
            name="published",
            meaning="The released script; words are equal or not, unless nouns are published.",
            parse=compared_by(_released, "published"),
        ),
        AnswerVariant(
            name="corrected",
            meaning="Parses whole answers, rounds and adds nothing, covers every named object.",
            parse=compared_by(YES_NO_PARSERS["strict"], "strict"),
            unparsed="unscored",
        ),
    ),
    options=(
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
    ),
    scores=CORRECTED,
    main_score="accuracy",
    trial=AnswersItem(
        id="1", answers=(Answer(response="No", label="no", fields={"kind": KINDS[0]}),)
    ),
)
"""The questions; descriptions add to the same columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Descriptions(AnswersMetric):
    """What descriptions add to the metric of the questions."""

    nouns: str = ""
    """Where nouns of descriptions come from: ``given``, ``rules`` or ``published``."""
    extractor: str = ""
    """What finds nouns, for the signature. Empty if they are given."""
    words: str = "equal"
    """How words are compared, for the signature."""

    @property
    def scores(self) -> tuple[ScoreDefinition, ...]:
        """Return the scores, whose formulas depend on the variant."""
        scores = PUBLISHED if self.variant == "published" else CORRECTED
        return tuple(score.definition for score in scores)

    def signature_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the source of nouns and their comparison."""
        return (("nouns", self.extractor or self.nouns), ("words", self.words))

    def _zeros(self) -> dict[str, float]:
        return {column.name: 0 for column in self.columns}

    def score_description(
        self, item: AmberItem, similar: Similar | None = None
    ) -> ScoredItem[AmberEvidence]:
        """Return the statistics of a description whose nouns are known.

        Args:
            item: The description.
            similar: Compares words that differ. By default, words are equal or not.
        """
        counts, evidence = count_words(item, self.variant, similar)
        row = (
            self._zeros()
            | counts._asdict()
            | {"descriptions": 1, "hallucinating": int(counts.hallucinated > 0)}
        )
        scores: dict[str, float | None] = {
            "chair": counts.hallucinated / counts.words if counts.words else None,
            "cover": counts.covered / counts.objects if counts.objects else None,
            "hal": float(counts.hallucinated > 0),
            "cog": counts.targets_said / counts.targets if counts.targets else None,
        }
        return ScoredItem(statistics=tuple(row.values()), scores=scores, evidence=evidence)

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:
        """Return an unscored item at its best, or at its worst.

        It may be a description or a question of any dimension, so each score assumes one of its own
        kind. At best: a true description, or a right no. At worst: a wrong description, or a no
        instead of yes.
        """
        largest = {name: float(values.max()) for name, values in observed.items()}
        row = self._zeros()
        row |= {name: largest[name] for name in ("words", "objects", "targets")}
        row |= {"descriptions": 1.0, "hallucinating": float(not best)}
        row |= {"hallucinated": row["words"] * (not best), "covered": row["objects"] * best}
        row["targets_said"] = row["targets"] * (not best)
        for dimension in DIMENSIONS:
            row |= {f"{dimension}_{name}": 1.0 for name in ("asked", "no", "said_no")}
            row |= {f"{dimension}_{name}": float(best) for name in ("right", "right_no")}
        return row


AmberMetric = metric_with(_Descriptions, QUESTIONS)
"""The metric."""
