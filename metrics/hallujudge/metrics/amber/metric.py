"""AMBER: object words in descriptions of images, and yes/no questions about images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from ..answers import YES_NO_PARSERS
from ..answers.evidence import AnswerEvidence
from ..framework.base import MetricBase
from ..framework.definitions import OptionDefinition, Paper, VariantDefinition
from ..framework.metric import Column, ScoreDefinition
from ..framework.result import ScoredItem
from .evidence import AmberEvidence
from .items import AmberItem
from .scores import COLUMNS, CORRECTED, DIMENSIONS, PUBLISHED
from .words import Similar, count_words

if TYPE_CHECKING:
    from ..framework.metric import FloatArray

__all__ = ["AmberMetric"]

_RELEASED_ANSWERS = {"Yes": "yes", "No": "no"}
_ATTRIBUTES = frozenset({"state", "number", "action"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AmberMetric(MetricBase):
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
        extractor: What finds nouns, for the signature; empty: they are given.
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
        """The scores, whose formulas depend on the variant."""
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
            similar: Compares words that differ; None: words are equal or not.
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
