"""CHAIR: objects that captions mention and images lack."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from .framework.arrays import FloatArray
from .framework.asking import OwnAsking, plain
from .framework.columns_and_scores import Column, JudgedColumn, ScoreDefinition, ratio, share
from .framework.metric import PUBLISHED, Metric, OptionDefinition, Paper, VariantDefinition
from .framework.papers import paper
from .framework.results import Item, ItemRecords, JsonValue, ScoredItem


class ChairItem(Item, frozen=True, kw_only=True):
    """A caption and the objects that its image shows."""

    response: str | None
    """The model's caption. None if it is missing; the item is then unscored."""
    reference_objects: tuple[str, ...] | None
    """Objects of the image. None without a reference; empty if the image shows none."""

    def records(self) -> ItemRecords:
        """Return the image's objects, each once, as the reference."""
        objects = self.reference_objects
        return ItemRecords(None, None if objects is None else sorted(set(objects)))


class MentionVerdict(Struct, frozen=True, gc=False, array_like=True):
    """An object that a caption mentions, and whether the image lacks it."""

    word: str
    """The word as the object matcher found it."""
    object: str
    """The object that the word names."""
    start: int
    """Position of the mention's first character in the caption."""
    end: int
    """Position after its last character."""
    hallucinated: bool
    """Whether the object is absent from the reference."""


class ChairEvidence(Struct, frozen=True, kw_only=True, gc=False):
    """Evidence of a caption's CHAIR scores."""

    mentions: tuple[MentionVerdict, ...]
    """Every mention, in the order of the caption."""
    missed: tuple[str, ...] = ()
    """Reference objects that the caption does not mention."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return ``mentioned`` and ``hallucinated`` as [word, object] pairs with their spans."""
        words: list[JsonValue] = []
        spans: list[JsonValue] = []
        wrong_words: list[JsonValue] = []
        wrong_spans: list[JsonValue] = []
        for mention in self.mentions:
            word, span = (mention.word, mention.object), (mention.start, mention.end)
            words.append(word)
            spans.append(span)
            if mention.hallucinated:
                wrong_words.append(word)
                wrong_spans.append(span)
        return {
            "mentioned": words,
            "hallucinated": wrong_words,
            "mentioned_spans": spans,
            "hallucinated_spans": wrong_spans,
            "missed": self.missed,
        }


FoundMention: TypeAlias = tuple[str, str, int, int]
"""An object mention as a matcher reports it: word, object, start and end in the caption."""


def hallucinated_share(
    name: str, meaning: str, numerator: str, denominator: str
) -> ScoreDefinition:
    """Return the score of a column with hallucinations in another; ``n`` counts scored items.

    Args:
        name: Name of the score.
        meaning: Short description of the score.
        numerator: The column with hallucinations.
        denominator: The column that they are part of.
    """
    return share(name, meaning, numerator, denominator, direction="lower", count="")


_OF_OBJECTS = frozenset({"precision", "f1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChairMetric(Metric):
    """CHAIR (Rohrbach et al., Object Hallucination in Image Captioning, EMNLP 2018).

    A mention is *hallucinated* if its object is not among the image's reference objects.

    * ``chair_i`` = hallucinated mentions / all mentions (section 3.1)
    * ``chair_s`` = captions with a hallucinated mention / all captions
    * ``recall`` = reference objects mentioned / reference objects, summed over captions, as the
      later scripts report it
    * ``mean_words`` = words in all captions / captions (``Len`` in Table 1 of the POPE paper)
    * ``precision``, ``f1`` (PAI, arXiv:2407.21771, and VISTA print them; released: PAI's
      ``chair.py``), with the option ``count`` ``objects``: objects of captions that the image
      shows / objects of captions, each once a caption; and the harmonic mean with ``recall``

    ``published`` follows the released script to the last digit. Its unexpected
    behaviour:

    * every mention counts, so that an object named five times weighs five times in ``chair_i``;
    * table rows with a leading space or a capital (`` motor bike``, `` cheesecake``, ``iPhone``)
      and names of three words (``stove top oven``) can never match;
    * a caption that names a toilet loses every ``seat``; the script then reports the places of the
      hallucinated words by an index that this removal has shifted. Spans here are taken from the
      caption itself, so they are right in both variants;
    * the script divides by zero when no caption mentions any object; here the score is None;
    * one lineage scores an unknown image id against an empty reference, so that everything is
      hallucinated, another stops with an error. Here an item without reference is unscored;
    * ``mean_words`` counts what single spaces separate, which yields the printed ``Len`` (two words
      either side of a blank line count as one).

    ``corrected`` reads the graph as it was meant (see the matcher), leaves out mentions of absent
    objects ("there is no dog"), and counts as words what any white space separates.

    Attributes:
        variant: ``published`` or ``corrected``.
        count: What ``chair_i`` counts: every ``mentions``, or each of a caption's ``objects`` once.
        matcher: How mentions were found, for the signature.
        graph: Which graph found them, for the signature.
    """

    name: ClassVar[Literal["chair"]] = "chair"
    summary: ClassVar[str] = "Objects that captions mention and images lack."
    papers: ClassVar[tuple[Paper, ...]] = (paper("chair"),)
    variants: ClassVar[tuple[VariantDefinition, ...]] = (
        PUBLISHED,
        VariantDefinition(
            name="corrected",
            meaning="Fixes the script's word table and tokenizer, and splits words at white space.",
        ),
    )
    options: ClassVar[tuple[OptionDefinition, ...]] = (
        OptionDefinition(
            name="count",
            choices=("mentions", "objects"),
            meaning="What chair_i counts.",
            details="mentions: every mention; objects: each object of a caption once, with "
            "precision and F1 as PAI and VISTA report them.",
        ),
    )
    unit: ClassVar[Literal["captions"]] = "captions"
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="mentioned", meaning="object mentions"),
        Column(name="hallucinated", meaning="mentions of objects that the image lacks"),
        Column(name="captions_with_hallucination", meaning="captions with a hallucinated mention"),
        Column(name="recalled_objects", meaning="reference objects that the caption mentions"),
        Column(name="reference_objects", meaning="reference objects"),
        Column(name="words", meaning="words in the caption"),
    )
    score_definitions: ClassVar[tuple[ScoreDefinition, ...]] = (
        hallucinated_share(
            "chair_i",
            "hallucinated mentions / mentions",
            "hallucinated",
            "mentioned",
        ),
        hallucinated_share(
            "chair_s",
            "captions with a hallucinated mention / captions",
            "captions_with_hallucination",
            "captions",
        ),
        share(
            "recall",
            "reference objects mentioned / reference objects",
            "recalled_objects",
            "reference_objects",
            count="",
        ),
        share(
            # No bounds: the best caption of extreme() may recall more objects than it mentions.
            "precision",
            "objects that the image shows / objects of captions, with count objects",
            "recalled_objects",
            "mentioned",
            count="",
            bounded=False,
        ),
        share(
            "f1",
            "harmonic mean of precision and recall, with count objects",
            # As a ratio of sums: 2 x recalled / (named + shown) is the harmonic mean.
            ("recalled_objects", "recalled_objects"),
            ("mentioned", "reference_objects"),
            count="",
            bounded=False,
        ),
        ScoreDefinition(
            name="mean_words",
            meaning="words in a caption, on average",
            unit="words",
            columns=("words", "captions"),
            value=ratio("words", "captions"),
            bounded=False,
            high=math.inf,
        ),
    )

    ranked_by: ClassVar[tuple[str, ...]] = ("chair_i",)
    ranking_source: ClassVar[str] = "Table 4 of POPE's paper compares captions by it alone."
    judged: ClassVar[tuple[JudgedColumn, ...]] = (
        JudgedColumn(column="hallucinated", of="claim", scores=("chair_i",)),
        JudgedColumn(column="captions_with_hallucination", of="item", scores=("chair_s",)),
    )

    count: str = ""
    matcher: str
    graph: str

    @property
    def scores(self) -> tuple[ScoreDefinition, ...]:
        """Return the scores; precision and F1 are of objects, however often they are mentioned."""
        of_objects = self.count == "objects"
        return tuple(s for s in self.score_definitions if of_objects or s.name not in _OF_OBJECTS)

    def signature_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the object matcher, the graph and what is counted."""
        return (("match", self.matcher), ("graph", self.graph), ("count", self.count))

    def score_caption(
        self, caption: str, mentions: Sequence[FoundMention], reference: AbstractSet[str]
    ) -> ScoredItem[ChairEvidence]:
        """Return the statistics of one caption.

        Args:
            caption: What the model wrote.
            mentions: The objects found in it, in order.
            reference: Objects of the image, as the graph's roots.
        """
        objects = {name for _, name, _, _ in mentions}
        # Objects, and not mentions: a caption names few, however often it names them.
        absent = objects - reference
        verdicts = tuple(
            [
                MentionVerdict(word, name, start, end, name in absent)
                for word, name, start, end in mentions
            ]
        )
        recalled = len(objects) - len(absent)
        if self.count == "objects":
            mentioned, wrong = len(objects), len(absent)
        else:
            # Lists here and above, since generators take longer and a run has many captions.
            mentioned = len(verdicts)
            wrong = sum([each.hallucinated for each in verdicts]) if absent else 0
        # The script splits at single spaces, so that two in a row make an empty word.
        words = caption.count(" ") + 1 if self.variant == "published" else len(caption.split())
        missed = tuple(sorted(reference - objects)) if recalled < len(reference) else ()
        scores = {
            "chair_i": wrong / mentioned if mentioned else None,
            "chair_s": float(wrong > 0),
            "recall": recalled / len(reference) if reference else None,
            "mean_words": float(words),
        }
        if self.count == "objects":
            either = mentioned + len(reference)
            scores["precision"] = recalled / mentioned if mentioned else None
            scores["f1"] = 2 * recalled / either if either else None
        return ScoredItem(
            (mentioned, wrong, int(wrong > 0), recalled, len(reference), words),
            scores,
            ChairEvidence(mentions=verdicts, missed=missed),
        )

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:
        """Return an unscored caption's statistics; see :func:`extreme_of_objects`."""
        # No bound of the length is known, and none is reported: mean_words is not bounded.
        return extreme_of_objects(observed, best=best)


def extreme_of_objects(observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:
    """Return an unscored caption's statistics: at best it names the image's objects alone.

    At worst it names only others. How many it names is taken from the fullest scored caption, and
    how many there are from the fullest reference.

    Args:
        observed: For each column the largest number that a scored caption has.
        best: Which of the two.
    """
    mentioned = float(observed["mentioned"].max(initial=1.0))
    reference = float(observed["reference_objects"].max(initial=1.0))
    return {
        "mentioned": mentioned,
        "hallucinated": 0.0 if best else mentioned,
        "captions_with_hallucination": 0.0 if best else 1.0,
        "recalled_objects": reference if best else 0.0,
        "reference_objects": reference,
    }


ASKING = {
    "chair": OwnAsking(
        protocols=plain("Describe this image."),
        id=("image_id", "id"),
        response="caption",
        kept=(),
        of_media=True,
        max_tokens=1024,
    )
}
"""How captions are asked for."""
