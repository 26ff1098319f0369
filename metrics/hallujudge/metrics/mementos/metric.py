"""Mementos: objects and behaviours of image sequences, recalled and made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

from ..errors import OptionError, UnknownVariantError
from ..framework.metric import Column, ScoreDefinition, Sums, ratio
from ..framework.signature import Signature

if TYPE_CHECKING:
    from ..framework.metric import FloatArray

__all__ = ["KINDS", "CountedKeywords", "KeywordScores", "MementosMetric", "keyword_scores"]

KINDS = ("object", "behavior")
"""What keywords name; scores and statistics begin with it."""
_MEASURES = ("recall", "precision", "f1")
_SEQUENCES, _POOLED = "sequences", "pooled"


class CountedKeywords(Protocol):
    """Keyword counts as a matcher reports them."""

    @property
    def hits(self) -> int:
        """Reference keywords that a prediction names."""
        ...

    @property
    def wrong(self) -> int:
        """Predictions that name none."""
        ...

    @property
    def missed(self) -> int:
        """Reference keywords that no prediction names."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordScores:
    """Scores of one keyword list against another; None: not defined."""

    recall: float | None
    """Reference keywords named / reference keywords."""
    precision: float | None
    """Reference keywords named / those and the wrong predictions."""
    f1: float | None
    """Harmonic mean of both."""


def keyword_scores(counts: CountedKeywords, *, variant: str) -> KeywordScores:
    """Recall, precision and F1 of one sequence (section 2.3 of the paper).

    In ``published`` a share of nothing is 0, as the released script has it. In ``corrected`` a
    sequence whose reference names nothing has no recall and no F1, and one for which neither list
    names anything has no precision; a model that says nothing of something has precision 0 in both.
    """
    wanted, said = counts.hits + counts.missed, counts.hits + counts.wrong
    strict = variant != "published"
    recall = counts.hits / wanted if wanted else None if strict else 0.0
    precision = counts.hits / said if said else None if strict and not wanted else 0.0
    if recall is None or precision is None:
        return KeywordScores(recall=recall, precision=precision, f1=None)
    total = precision + recall
    f1 = 2 * (precision * recall) / total if total else 0.0
    return KeywordScores(recall=recall, precision=precision, f1=f1)


def _counts_columns(kind: str) -> tuple[Column, ...]:
    counted = tuple(Column(name=f"{kind}_{name}") for name in ("hits", "wrong", "missed"))
    shares = tuple(
        column
        for name in _MEASURES
        for column in (
            Column(name=f"{kind}_{name}_sum", integral=False),
            Column(name=f"{kind}_{name}_items"),
        )
    )
    return counted + shares


def _pooled_f1(kind: str) -> Callable[[Sums], FloatArray]:
    def value(sums: Sums) -> FloatArray:
        import numpy as np

        twice = 2 * sums[f"{kind}_hits"]
        bottom = twice + sums[f"{kind}_wrong"] + sums[f"{kind}_missed"]
        out = np.full(twice.shape, np.nan)
        np.divide(twice, bottom, out=out, where=bottom != 0)
        return out

    return value


def _share(kind: str, other: str) -> Callable[[Sums], FloatArray]:
    def value(sums: Sums) -> FloatArray:
        total = {"top": sums[f"{kind}_hits"], "all": sums[f"{kind}_hits"] + sums[f"{kind}_{other}"]}
        return ratio("top", "all")(total)

    return value


def _mean_scores(kind: str) -> tuple[ScoreDefinition, ...]:
    return tuple(
        ScoreDefinition(
            name=f"{kind}_{name}",
            columns=(f"{kind}_{name}_sum", f"{kind}_{name}_items"),
            value=ratio(f"{kind}_{name}_sum", f"{kind}_{name}_items"),
            count=f"{kind}_{name}_items",
            higher_is_better=True,
        )
        for name in _MEASURES
    )


def _pooled_scores(kind: str) -> tuple[ScoreDefinition, ...]:
    hits, wrong, missed = (f"{kind}_{name}" for name in ("hits", "wrong", "missed"))
    shapes = {
        "recall": ((hits, missed), _share(kind, "missed")),
        "precision": ((hits, wrong), _share(kind, "wrong")),
        "f1": ((hits, wrong, missed), _pooled_f1(kind)),
    }
    return tuple(
        ScoreDefinition(name=f"{kind}_{name}", columns=columns, value=value, higher_is_better=True)
        for name, (columns, value) in shapes.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MementosMetric:
    """Mementos (Wang et al., 2024, papers/mementos.txt, section 2.3).

    Object and behaviour keywords of a model's description of an image sequence are held against
    those of the human description, after synonyms were brought to one word:

    * ``recall`` = reference keywords named / reference keywords
    * ``precision`` = reference keywords named / those and the wrong predictions
    * ``f1`` = the harmonic mean of both

    for objects and for behaviours, each the mean over sequences of the sequence's own score, as the
    paper's Tables 1 and 2 have it. With ``average="pooled"`` keywords of all sequences are added up
    first.

    ``published`` follows the released script to the last digit; what it does that one may not
    expect is listed at ``hallujudge.synonym_graphs.KeywordMatcher``. Beside that:

    * a share of nothing counts as 0, also where the reference names nothing;
    * sequences whose keyword file is missing are left out silently; here such an item is unscored
      and counted;
    * its reader makes one empty keyword of an empty list ``[]``, so that two empty lists score 1.
      Lists are empty here, and that item scores 0.

    ``corrected`` counts every wrong prediction, and leaves scores undefined that have nothing to
    divide by (see :func:`keyword_scores`).

    Attributes:
        variant: ``published`` or ``corrected``.
        average: ``sequences`` or ``pooled``.
        matcher: How keywords were matched, for the signature.
        object_graph: Which graph matched objects, for the signature.
        behavior_graph: Which graph matched behaviours.
        extractor: Who took keywords from texts that brought none.
        domain: The domain of items that name none, or ``items`` where there is none.
    """

    name: ClassVar[Literal["mementos"]] = "mementos"
    variants: ClassVar[tuple[str, ...]] = ("published", "corrected")
    averages: ClassVar[tuple[str, ...]] = (_SEQUENCES, _POOLED)
    score_names: ClassVar[tuple[str, ...]] = tuple(f"{k}_{m}" for k in KINDS for m in _MEASURES)
    unit: ClassVar[Literal["sequences"]] = "sequences"
    folds: ClassVar[bool] = False
    columns: ClassVar[tuple[Column, ...]] = tuple(
        c for kind in KINDS for c in _counts_columns(kind)
    )

    variant: str = "published"
    average: str = _SEQUENCES
    matcher: str
    object_graph: str
    behavior_graph: str
    extractor: str
    domain: str = "items"

    def __post_init__(self) -> None:
        if self.variant not in self.variants:
            raise UnknownVariantError(self.name, self.variant, self.variants)
        if self.average not in self.averages:
            raise OptionError(
                self.name, "average", f"{self.average!r} is not one of {', '.join(self.averages)}"
            )

    @property
    def scores(self) -> tuple[ScoreDefinition, ...]:
        """Six scores: means over sequences, or ratios of what all sequences add up to."""
        make = _mean_scores if self.average == _SEQUENCES else _pooled_scores
        return tuple(score for kind in KINDS for score in make(kind))

    @property
    def signature(self) -> Signature:
        """Variant, matching, both graphs, who extracted, and how scores are averaged."""
        return Signature(
            metric=self.name,
            fields=(
                ("var", self.variant),
                ("match", self.matcher),
                ("objects", self.object_graph),
                ("behaviors", self.behavior_graph),
                ("domain", self.domain),
                ("extract", self.extractor),
                ("avg", self.average),
            ),
        )

    def score_description(
        self, objects: CountedKeywords, behaviors: CountedKeywords
    ) -> tuple[tuple[float, ...], dict[str, float | None]]:
        """Statistics of one sequence and its own scores.

        Args:
            objects: How its object keywords match.
            behaviors: How its behaviour keywords match.
        """
        statistics: list[float] = []
        scores: dict[str, float | None] = {}
        for kind, counts in zip(KINDS, (objects, behaviors), strict=True):
            statistics += (counts.hits, counts.wrong, counts.missed)
            own = keyword_scores(counts, variant=self.variant)
            for name, value in zip(_MEASURES, (own.recall, own.precision, own.f1), strict=True):
                scores[f"{kind}_{name}"] = value
                statistics += (0.0, 0) if value is None else (value, 1)
        return tuple(statistics), scores

    def derive(self, clusters: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Nothing beside the sums."""
        return clusters

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:
        """An unscored description at its best names every keyword, at its worst others alone.

        How many there are is taken from the fullest reference, and how many it makes up from the
        worst description.
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
