"""AMBER's descriptions: item, object words, scores, and what archives say of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice
from typing import ClassVar, NamedTuple, TypeAlias

from msgspec import Struct, structs

from ..answers.answer_scores import AnswerScore, Count, share
from ..answers.answers_metric import AnswersMetric
from ..answers.closed_questions import AnswersItem, InputTable, SpecialItem
from ..framework.arrays import FloatArray, np
from ..framework.columns_and_scores import Ratio, Sums
from ..framework.metric import OptionDefinition
from ..framework.results import ItemRecords, JsonValue, ScoredItem

GENERATIVE = "generative"
"""The kind of descriptions; all other kinds are questions."""


class AmberObject(Struct, frozen=True, kw_only=True, gc=False):
    """An object of an image, or a hallucination target."""

    word: str
    """Name of the object."""
    associated: tuple[str, ...] = ()
    """Words that are associated with it in the association table."""


class AmberItem(AnswersItem, frozen=True, kw_only=True):
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

    def records(self) -> ItemRecords:
        """Return what was asked; the objects and targets, and the safe words."""
        parts = (self.objects, self.targets)
        words = [sorted([(each.word, sorted(each.associated)) for each in part]) for part in parts]
        reference = (GENERATIVE, words, sorted(self.safe_words))
        return ItemRecords(AnswersItem.records(self).question, reference)


class AmberWord(NamedTuple):
    """An object word of a description."""

    word: str
    """A noun of the description, as AMBER's script finds it."""
    verdict: str
    """``true``, ``safe`` or ``hallucinated``."""


class AmberEvidence(Struct, frozen=True, kw_only=True, gc=False):
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
        return structs.asdict(self) | {"words": [dict(each._asdict()) for each in self.words]}


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
    true = {word for entry in item.objects for word in (entry.word, *entry.associated)}
    safe = frozenset(item.safe_words)
    # Words that are not equal to a true word; their vectors may still be similar.
    unknown = [noun for noun in item.nouns if noun not in true and noun not in safe]
    wrong = unknown
    if similar is not None:
        wrong = [noun for noun in unknown if not any(similar(noun, word) for word in true)]
    hallucinated = frozenset(wrong)
    verdicts = [
        "safe" if noun in safe else _WRONG if noun in hallucinated else "true"
        for noun in item.nouns
    ]
    # The released script skips a safe word before it looks for the objects that it names.
    credited = [noun for noun in item.nouns if not published or noun not in safe]
    # The released script looks for targets before it compares a word with the true ones by vectors.
    suspects = unknown if published else wrong
    find = _first_named if published else _all_named
    covered, said = find(objects, credited), find(targets, suspects)
    if similar is not None:
        covered |= _similar_to(objects, unknown, similar, first=published)
        said |= _similar_to(targets, suspects, similar, first=published)
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
    return frozenset([first[noun] for noun in nouns if noun in first])


def _all_named(objects: Sequence[AmberObject], nouns: Sequence[str]) -> frozenset[int]:
    """Return every object that a word names or is associated with."""
    said = frozenset(nouns)
    return frozenset(
        index
        for index, entry in enumerate(objects)
        if entry.word in said or not said.isdisjoint(entry.associated)
    )


def _similar_to(
    objects: Sequence[AmberObject], nouns: Sequence[str], similar: Similar, *, first: bool
) -> frozenset[int]:
    """Return the objects that words are similar to.

    Args:
        objects: The objects.
        nouns: The words.
        similar: Compares words.
        first: Whether a word names one object only, as in the released script: the first with
            a similar associated word, or else the first with a similar name.
    """
    found: set[int] = set()
    # A repeated noun names the same objects, and comparing vectors takes long.
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
    return tuple([objects[index].word for index in sorted(which)])


def description_maker(tables: Mapping[str, object]) -> SpecialItem:
    """Return what makes a description of a record.

    Args:
        tables: ``associations``: word -> associated words; ``safe_words``: the safe words.

    Raises:
        ValueError: One of them is missing.
    """
    table, safe = tables.get("associations"), tables.get("safe_words")
    if not isinstance(table, Mapping) or not isinstance(safe, Mapping):
        raise ValueError(  # noqa: TRY004  # a file that is not given
            "descriptions are compared by AMBER's association table and safe words",
            "Give relation.json with InputOptions(own=dict(associations=…)) and safe_words.txt "
            "with InputOptions(own=dict(safe_words=…))",
        )
    # One value for each word, which all images share.
    entries = {word: AmberObject(word=word, associated=_words(table, word)) for word in table}
    known = frozenset(entries).union(*(entry.associated for entry in entries.values()))
    vocabulary, safe_words = tuple(sorted(known)), tuple(map(str, safe))

    def objects(record: Mapping[str, object], key: str) -> tuple[AmberObject, ...]:
        words = _words(record, key)
        try:
            return tuple([entries[word] for word in words])
        except KeyError as err:
            raise ValueError(
                "annotated objects are not in the association table",
                "Use the relation.json of the same release as the annotations",
                ", ".join(sorted(set(words) - entries.keys())),
            ) from err

    def make(item: AnswersItem, record: Mapping[str, object]) -> AmberItem:
        [answer] = item.answers
        shown, targets = objects(record, "truth"), objects(record, "hallu")
        _check_counts(record, len(shown), len(targets))
        nouns = None if record.get("nouns") is None else _words(record, "nouns")
        return AmberItem(
            id=item.id,
            group_id=item.group_id,
            fields=item.fields,
            answers=(structs.replace(answer, fields={}),),
            # Words outside the association table are not object words, as in the script.
            nouns=tuple([noun for noun in nouns or () if noun in known]),
            nouns_given=nouns is not None,
            objects=shown,
            targets=targets,
            safe_words=safe_words,
            vocabulary=vocabulary if answer.response is not None else (),
        )

    return make


def _words(record: Mapping[str, object], key: str) -> tuple[str, ...]:
    """Return a list of words.

    Raises:
        ValueError: The value is not a list of words.
    """
    value = record.get(key)
    if isinstance(value, (list, tuple)) and set(map(type, value)) <= {str}:
        return tuple(value)
    found = ", ".join(map(str, record)) if key not in record else repr(value)
    raise ValueError(
        f"values of {key!r} are not a list of words (found {found:.160})",
        "Use AMBER's own files, or write them in the same way",
    )


def _check_counts(record: Mapping[str, object], objects: int, targets: int) -> None:
    """Refuse a log whose counts of objects are not those of its annotation.

    Samples of lmms-eval have no id, so their position is taken as the id.

    Raises:
        ValueError: The position is not AMBER's id.
    """
    counted = (record.get("truth_count"), record.get("hallu_count"))
    # Only logs of lmms-eval have these counts.
    if isinstance(counted[0], int) and counted != (objects, targets):
        raise ValueError(
            "the log's counts of objects differ from the annotations",
            "Its positions are not AMBER's ids: name the key of the id, "
            "InputOptions(id_key=…), or give AMBER's own answers",
        )


def _scores() -> tuple[AnswerScore, ...]:
    names = {
        "descriptions": "descriptions",
        "hallucinating": "descriptions with a hallucinated object word",
        "words": "object words",
        "hallucinated": "hallucinated object words",
        "objects": "objects of the images",
        "covered": "objects that the descriptions name",
        "targets": "hallucination targets",
        "targets_said": "hallucination targets that the descriptions name",
    }
    # The metric fills them; an answer to a question has none.
    counts = {
        name: Count(name=name, meaning=meaning, of=lambda _: 0) for name, meaning in names.items()
    }
    rows = (
        ("chair", "hallucinated", "words"),
        ("cover", "covered", "objects"),
        ("hal", "hallucinating", "descriptions"),
        ("cog", "targets_said", "targets"),
    )
    return tuple(
        share(
            name,
            f"{names[top]} / {names[bottom]}",
            counts[top],
            counts[bottom],
            direction="higher" if name == "cover" else "lower",
        )
        for name, top, bottom in rows
    )


ADDED = 0.001
"""Start value of each count of a denominator in the released script."""
_Formula: TypeAlias = "Callable[[Sums], FloatArray]"


def with_added(score: AnswerScore, added: float = ADDED) -> AnswerScore:
    """Return a share with the released script's addition to its denominator.

    It is 0 where its denominator is.
    """
    [top], [bottom] = ratio_of(score).upper, ratio_of(score).lower

    def over(added: float) -> _Formula:
        def value(sums: Sums) -> FloatArray:
            below = sums[bottom] + added
            # The count above is 0 where this one is.
            return sums[top] / np.where(below, below, 1)

        return value

    return with_formulas(score, over(added), over(0.0))


def with_formulas(score: AnswerScore, value: _Formula, smooth: _Formula) -> AnswerScore:
    """Return a score by another formula, and that for its interval; None where ``n`` is 0.

    The effect of an addition depends on the sample size; it is not an uncertainty of the model.
    """
    known = score.definition

    def counted(formula: _Formula) -> _Formula:
        def of(sums: Sums) -> FloatArray:
            return np.where(sums[known.count] > 0, formula(sums), np.nan)

        return of

    made = replace(known, value=counted(value), smooth=counted(smooth))
    return structs.replace(score, definition=made)


def ratio_of(score: AnswerScore) -> Ratio:
    """Return the ratio that a share is."""
    assert isinstance(score.definition.value, Ratio), "shares are ratios"
    return score.definition.value


DESCRIPTION_SCORES = _scores()
"""``chair``, ``cover``, ``hal`` and ``cog``."""
_RATIOS = {score.definition.name: ratio_of(score) for score in DESCRIPTION_SCORES}


def _released_hal(sums: Sums) -> FloatArray:
    """Return the share of hallucinating descriptions, as 1 minus the share of the others."""
    number = sums["descriptions"]
    result: FloatArray = 1 - (number - sums["hallucinating"]) / (number + ADDED)
    return result


RELEASED_DESCRIPTION_SCORES = tuple(
    with_formulas(score, _released_hal, ratio_of(score))
    if score.definition.name == "hal"
    else with_added(score)
    for score in DESCRIPTION_SCORES
)
"""The same as the released script computes them."""
TABLES = (
    InputTable(name="nouns", meaning="Nouns of the descriptions by id.", form="answers"),
    InputTable(name="associations", meaning="AMBER's relation.json.", form="whole"),
    InputTable(name="safe_words", meaning="AMBER's safe_words.txt.", form="lines"),
)
"""The files of descriptions."""
OPTIONS = (
    OptionDefinition(
        name="nouns",
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
"""The options of descriptions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptionsMetric(AnswersMetric):
    """What descriptions add to the metric of the questions."""

    text_scores: ClassVar[tuple[str, ...] | None] = ("chair", "cover", "hal", "cog")

    nouns: str = ""
    """Where nouns of descriptions come from: ``given``, ``rules`` or ``published``."""
    extractor: str = ""
    """What finds nouns, for the signature. Empty if they are given."""
    words: str = "equal"
    """How words are compared, for the signature."""

    @classmethod
    def loads_models(cls, options: Mapping[str, str]) -> bool:
        """Return whether word vectors are loaded, with which published nouns are compared."""
        return options.get("nouns") not in (None, "", "given", "rules")

    @property
    def main_score(self) -> str:
        """Return ``chair``: descriptions are what a run may hold alone."""
        return "chair"

    def signature_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the source of nouns and their comparison."""
        return (("nouns", self.extractor or self.nouns), ("words", self.words))

    @classmethod
    @cache
    def _nothing_counted(cls) -> Mapping[str, float]:
        """Return column -> 0."""
        return dict.fromkeys((column.name for column in cls.columns), 0)

    def score_description(
        self, item: AmberItem, similar: Similar | None = None
    ) -> ScoredItem[AmberEvidence]:
        """Return the statistics of a description whose nouns are known.

        Args:
            item: The description.
            similar: Compares words that differ. By default, words are equal or not.
        """
        counts, evidence = count_words(item, self.variant, similar)
        own = {"descriptions": 1, "hallucinating": int(counts.hallucinated > 0)}
        row: dict[str, float] = {**self._nothing_counted(), **counts._asdict(), **own}
        found = {name: ratio.of(row) for name, ratio in _RATIOS.items()}
        scores = {name: None if math.isnan(value) else value for name, value in found.items()}
        return ScoredItem(statistics=tuple(row.values()), scores=scores, evidence=evidence)

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:
        """Return an unscored item at its best, or at its worst.

        It may be a description or a question of any dimension, so each score assumes one of its own
        kind; a description is as large as the largest one.
        """
        row = dict(AnswersMetric.extreme(self, observed, best=best))
        sizes = {"words": "hallucinated", "objects": "covered", "targets": "targets_said"}
        for whole, part in sizes.items():
            largest = float(observed[whole].max())
            # The shared end is 1 where every word, object or target is of this part, and else 0.
            row |= {whole: largest, part: largest * row[part]}
        return row
