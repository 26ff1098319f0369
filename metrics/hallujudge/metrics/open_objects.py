"""Open objects: any object that a caption names, compared with reference captions and objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from msgspec import Struct

from .chair import extreme_of_objects, hallucinated_share
from .framework.arrays import FloatArray
from .framework.columns_and_scores import Column, JudgedColumn, ScoreDefinition, share
from .framework.metric import Metric, OptionDefinition, Paper, VariantDefinition
from .framework.papers import paper
from .framework.results import Item, ItemRecords, JsonValue, ScoredItem

# Fitted on the shown half of HAT by benchmarks/bench_open_objects.py, and rounded: the logistic
# regression of "people marked a word" on unlike, far, gain and uncounted of a sentence.
# docs/decisions/open-objects.md has the figures of held-out folds.
WEIGHTS = (0.3, 5.0, 22.0, 2.1)
THRESHOLDS = {"balanced": 1.9, "strict": 2.7}
"""The doubt above which a sentence is hallucinated, before it is divided by the balanced one."""
# Without reference captions, there is no context: an object then needs this similarity.
_ALONE = 0.6
RECALLED_FROM = 0.6
"""The similarity from which a reference object counts as named."""
# An encoder's further digits differ between machines and batch sizes.
_DIGITS = 6
_JSON_FIELDS = ("object", "reference", "similarity", "closeness", "gain", "uncounted", "doubt")


class OpenObjectsItem(Item, frozen=True, kw_only=True):
    """A caption, and what people say of its image."""

    response: str | None
    """The model's caption. None if it is missing; the item is then unscored."""
    reference_captions: tuple[str, ...] | None = None
    """Captions that people wrote. None if there are none."""
    reference_objects: tuple[str, ...] | None = None
    """Further objects of the image. None if they are not given."""

    def records(self) -> ItemRecords:
        """Return captions and objects, each once, as the reference."""
        given = (self.reference_captions, self.reference_objects)
        if given == (None, None):
            return ItemRecords(None, None)
        return ItemRecords(None, [None if each is None else sorted(set(each)) for each in given])


class ComparedObject(NamedTuple):
    """An object that a caption names, and how well the references support it."""

    object: str
    """The noun in the singular, after the noun that forms a compound with it."""
    start: int
    """Position of the phrase's first character in the caption."""
    end: int
    """Position after its last character."""
    reference: str
    """The reference object that is assigned to it; empty if none is left."""
    similarity: float
    """The similarity of both, from 0 to 1."""
    closeness: float
    """Cosine of its sentence and the mean of the reference captions; 1 without captions."""
    gain: float
    """By how much the closeness grows at most without a word about the object."""
    uncounted: bool
    """Whether the caption states a number of it that fewer than half of the references state."""
    doubt: float = 0.0
    """The weighted sum of what speaks against it; the most doubtful object of a sentence has the
    doubt of the sentence. Above 1, or 1.42 if strict: hallucinated."""
    hallucinated: bool = False
    """Whether the doubt is too large."""


class OpenObjectsEvidence(Struct, frozen=True, kw_only=True, gc=False):
    """Evidence of a caption's scores."""

    objects: tuple[ComparedObject, ...]
    """Every object, in the order of the caption."""
    missed: tuple[str, ...] = ()
    """Reference objects that the caption does not name."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the objects with their places, those that are hallucinated, and missed ones."""
        rows = [{name: getattr(o, name) for name in _JSON_FIELDS} for o in self.objects]
        return {
            "objects": [
                {**row, "span": [o.start, o.end], "hallucinated": o.hallucinated}
                for row, o in zip(rows, self.objects, strict=True)
            ],
            "hallucinated": [o.object for o in self.objects if o.hallucinated],
            "missed": self.missed,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenObjectsMetric(Metric):
    """Open objects, after the idea of ALOHa (Petryk et al., NAACL 2024, arXiv:2404.02904).

    The objects of a caption are all its nouns, found by rules, not COCO's 80. Each is assigned to
    one object of the references, so that the sum of similarities is largest.

    * ``open_chair_i`` = hallucinated objects / objects
    * ``open_chair_s`` = captions with a hallucinated object / captions
    * ``recall`` = reference objects that captions name / reference objects

    An object's *doubt* is a weighted sum of four values: 1 - similarity to its reference object
    (equal nouns and equal roots of the synonym graph: 1; two persons by WordNet: at least 0.9; else
    the cosine of the sentence encoder), 1 - closeness of its sentence to the mean of the reference
    captions, by how much the closeness grows at most without one of the words about the object, and
    whether fewer than half of the reference captions state its number. A *sentence's* doubt has the
    sum of its objects' first values and the largest of the others; it is the doubt of its most
    doubtful object. The weights are fitted to people's word labels.

    Differences from ALOHa: it extracts objects with GPT-3.5 and spaCy, adds a detector's objects,
    and takes 1 - the smallest similarity as a caption's score. It compares objects alone, while
    people mark actions, numbers and places too.

    Attributes:
        threshold: ``balanced`` or ``strict``.
        graph: Which synonym graph compared objects, for the signature.
        matcher: Rules and encoder, for the signature.
    """

    name: ClassVar[str] = "open-objects"
    summary: ClassVar[str] = "Any object of a caption that reference captions do not support."
    papers: ClassVar[tuple[Paper, ...]] = (paper("open-objects"),)
    variants: ClassVar[tuple[VariantDefinition, ...]] = (
        VariantDefinition(
            name="tuned", meaning="Weights and thresholds fitted to people's labels of HAT."
        ),
    )
    options: ClassVar[tuple[OptionDefinition, ...]] = (
        OptionDefinition(
            name="threshold",
            choices=("balanced", "strict"),
            meaning="Doubt that an object needs.",
            details="balanced: agrees best with people; strict: fewer false alarms.",
        ),
    )
    unit: ClassVar[str] = "captions"
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="mentioned", meaning="objects that captions name"),
        Column(name="hallucinated", meaning="objects that the references do not support"),
        Column(name="captions_with_hallucination", meaning="captions with a hallucinated object"),
        Column(name="recalled_objects", meaning="reference objects that the caption names"),
        Column(name="reference_objects", meaning="reference objects"),
    )
    score_definitions: ClassVar[tuple[ScoreDefinition, ...]] = (
        hallucinated_share(
            "open_chair_i",
            "hallucinated objects / objects",
            "hallucinated",
            "mentioned",
        ),
        hallucinated_share(
            "open_chair_s",
            "captions with a hallucinated object / captions",
            "captions_with_hallucination",
            "captions",
        ),
        share(
            "recall",
            "reference objects named / reference objects",
            "recalled_objects",
            "reference_objects",
            count="",
        ),
    )
    ranked_by: ClassVar[tuple[str, ...]] = ("open_chair_s", "open_chair_i")
    ranking_source: ClassVar[str] = (
        "Thresholds were chosen by how well flagged captions agree with people's labels."
    )
    judged: ClassVar[tuple[JudgedColumn, ...]] = (
        JudgedColumn(column="hallucinated", of="claim", scores=("open_chair_i",)),
        JudgedColumn(column="captions_with_hallucination", of="item", scores=("open_chair_s",)),
    )

    threshold: str = ""
    matcher: str
    graph: str

    @classmethod
    def loads_models(cls, options: Mapping[str, str]) -> bool:  # noqa: ARG003 - whatever they are
        """Return True: a sentence encoder compares phrases."""
        return True

    def signature_fields(self) -> tuple[tuple[str, str], ...]:
        """Return rules and encoder, the graph and the threshold."""
        return (("match", self.matcher), ("graph", self.graph), ("threshold", self.threshold))

    def score_caption(
        self,
        sentences: Sequence[Sequence[ComparedObject]],
        named: Mapping[str, bool],
        *,
        has_captions: bool,
    ) -> ScoredItem[OpenObjectsEvidence]:
        """Return the statistics of one caption.

        Args:
            sentences: The objects of each of its sentences, without doubts.
            named: Reference object -> whether the caption names it.
            has_captions: Whether it is compared with captions, or with objects alone.
        """
        judged = tuple(
            self._judged(found, doubt)
            for objects in sentences
            for found, doubt in zip(objects, _doubts(objects, has_captions), strict=True)
        )
        wrong = sum(each.hallucinated for each in judged)
        recalled = sum(named.values())
        return ScoredItem(
            (len(judged), wrong, int(wrong > 0), recalled, len(named)),
            {
                "open_chair_i": wrong / len(judged) if judged else None,
                "open_chair_s": float(wrong > 0),
                "recall": recalled / len(named) if named else None,
            },
            OpenObjectsEvidence(
                objects=judged,
                missed=tuple(name for name, found in named.items() if not found),
            ),
        )

    def _judged(self, found: ComparedObject, doubt: float) -> ComparedObject:
        wrong = doubt > THRESHOLDS[self.threshold or "balanced"] / THRESHOLDS["balanced"]
        return found._replace(
            similarity=round(found.similarity, _DIGITS),
            closeness=round(found.closeness, _DIGITS),
            gain=round(found.gain, _DIGITS),
            doubt=round(doubt, _DIGITS),
            hallucinated=wrong,
        )

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:
        """Return an unscored caption's statistics: at best it names the image's objects alone."""
        return extreme_of_objects(observed, best=best)


def values_of(objects: Sequence[ComparedObject]) -> tuple[float, float, float, float]:
    """Return what speaks against a sentence with these objects, in the order of the weights."""
    # By noun, so that one that a sentence repeats is doubted once.
    unlike = {found.object: 1 - found.similarity for found in objects}
    return (
        sum(unlike.values()),
        max((1 - found.closeness for found in objects), default=0.0),
        max((found.gain for found in objects), default=0.0),
        float(any(found.uncounted for found in objects)),
    )


def _doubts(objects: Sequence[ComparedObject], has_captions: bool) -> list[float]:
    """Return the doubt of each object of a sentence; the largest is that of the sentence."""
    if not has_captions:
        # On the scale of the other doubts, of which 1 is the threshold.
        return [(1 - found.similarity) / (1 - _ALONE) for found in objects]
    doubts = [_doubt([found]) for found in objects]
    if doubts:
        # Doubts about different objects add up: a wrong number and a strange word were each
        # too little.
        doubts[doubts.index(max(doubts))] = _doubt(objects)
    return doubts


def _doubt(objects: Sequence[ComparedObject]) -> float:
    weighted = (w * v for w, v in zip(WEIGHTS, values_of(objects), strict=True))
    return sum(weighted) / THRESHOLDS["balanced"]
