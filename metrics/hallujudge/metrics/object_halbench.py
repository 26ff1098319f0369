"""Object HalBench: CHAIR of objects that a language model extracts from answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import ClassVar

from .chair import ChairEvidence, ChairItem, ChairMetric, FoundMention, hallucinated_share
from .framework.arrays import FloatArray
from .framework.asking import OwnAsking, plain
from .framework.columns_and_scores import Column, JudgedColumn, ScoreDefinition, share
from .framework.metric import PUBLISHED, OptionDefinition, Paper, VariantDefinition
from .framework.papers import paper
from .framework.results import CanonicalRecord, ItemRecords, ScoredItem


class ObjectHalBenchItem(ChairItem, frozen=True, kw_only=True):
    """An answer, its question, the objects that it names, and those that its image shows."""

    question: str = ""
    """What was asked. Only a language model that extracts objects reads it."""
    predicted_objects: tuple[str, ...] | None = None
    """Words that the answer names objects with. None if they are not given."""

    def records(self) -> ItemRecords:
        """Return the question, and the image's objects, each once, as the reference."""
        asked: CanonicalRecord | None = self.question or None
        return ItemRecords(asked, ChairItem.records(self).reference)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectHalBenchMetric(ChairMetric):
    """Object HalBench (Yu et al., RLHF-V, CVPR 2024), CHAIR of extracted objects.

    A language model extracts the objects of an answer, so that things it does not claim to see
    are not counted. Words of COCO's 80 objects count. Such a word is *hallucinated* if its object
    is not among the image's objects.

    * ``chair_s`` = answers with a hallucinated word / answers
    * ``chair_s_refined`` = the same / answers with at least one word; the released summary
      reports it as "response hallucination"
    * ``chair_i`` = hallucinated words / words
    * ``recall`` = distinct right objects / objects of the images

    ``published`` follows ``eval/eval_gpt_obj_halbench.py`` of RLHF-V/RLAIF-V to the last digit:

    * a word counts once in an answer if its objects are extracted ("man" and "person" are two
      words), and every time if they are the answer's own words;
    * own words count by the shortest lemma of WordNet, so that "men", a noun of its own there, is
      no word of the table;
    * given objects must equal a word of the table: "kitchen table" names nothing;
    * a name of two words hides the other words of an extracted object;
    * "seat" does not count in an answer that also has "toilet";
    * answers of at most three words have no objects, and the language model is not asked.

    Differences from the script, in both variants:

    * a score without a denominator is None, where the script stops;
    * an answer without a list of objects is unscored, where the script stops;
    * ``recalled_objects`` is what the script calls ``coco_word_count``; ``mentioned`` is the number
      of words;
    * captions of files with "coh" in their path are not cut;
    * any number of images is scored, where the script insists on 300.

    ``corrected`` finds words as CHAIR's variant does, with the graph ``coco``: inside of given and
    extracted objects too, each once, and without what an answer denies. It asks about short
    answers.
    """

    name: ClassVar[str] = "object-halbench"  # type: ignore[assignment]  # another metric than CHAIR
    summary: ClassVar[str] = "Objects that an answer names and the image lacks, as extracted."
    papers: ClassVar[tuple[Paper, ...]] = (
        paper("object-halbench"),
        *ChairMetric.papers,
    )
    variants: ClassVar[tuple[VariantDefinition, ...]] = (
        PUBLISHED,
        VariantDefinition(
            name="corrected",
            meaning="Finds words inside of extracted objects, with CHAIR's corrected word table.",
        ),
    )
    # Where words come from says how often they count, so that CHAIR's option is not offered.
    options: ClassVar[tuple[OptionDefinition, ...]] = ()
    extractor_option: ClassVar[str] = "objects"
    unit: ClassVar[str] = "answers"  # type: ignore[assignment]  # another unit than CHAIR's
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="mentioned", meaning="words of objects"),
        Column(name="hallucinated", meaning="words of objects that the image lacks"),
        Column(name="answers_with_hallucination", meaning="answers with a hallucinated word"),
        Column(name="answers_with_objects", meaning="answers with at least one word of an object"),
        Column(name="recalled_objects", meaning="reference objects that the answer names"),
        Column(name="reference_objects", meaning="reference objects"),
        Column(name="words", meaning="words in the answer"),
    )
    score_definitions: ClassVar[tuple[ScoreDefinition, ...]] = (
        hallucinated_share(
            "chair_s",
            "answers with a hallucinated word / answers",
            "answers_with_hallucination",
            "answers",
        ),
        hallucinated_share(
            "chair_s_refined",
            "answers with a hallucinated word / answers with a word of an object",
            "answers_with_hallucination",
            "answers_with_objects",
        ),
        hallucinated_share(
            "chair_i",
            "hallucinated words / words of objects",
            "hallucinated",
            "mentioned",
        ),
        share(
            "recall",
            "reference objects named / reference objects",
            "recalled_objects",
            "reference_objects",
            count="",
        ),
    )
    ranked_by: ClassVar[tuple[str, ...]] = ("chair_s_refined", "chair_s")
    ranking_source: ClassVar[str] = (
        "The released summary prints chair_s_refined first, as response hallucination."
    )
    judged: ClassVar[tuple[JudgedColumn, ...]] = (
        JudgedColumn(column="hallucinated", of="claim", scores=("chair_i",)),
        JudgedColumn(
            column="answers_with_hallucination", of="item", scores=("chair_s", "chair_s_refined")
        ),
    )

    extractor: str
    """Where the words come from, for the signature."""

    def signature_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the object matcher, the graph and where words come from."""
        return (("match", self.matcher), ("graph", self.graph), ("extract", self.extractor))

    def score_caption(
        self, caption: str, mentions: Sequence[FoundMention], reference: AbstractSet[str]
    ) -> ScoredItem[ChairEvidence]:
        """Return the statistics of one answer, which CHAIR has but for one."""
        made = ChairMetric.score_caption(self, caption, mentions, reference)
        mentioned, wrong, with_wrong, *others = made.statistics
        # CHAIR's mean_words is not a score here.
        scores = {name: made.scores[name] for name in ("chair_s", "chair_i", "recall")}
        refined = float(wrong > 0) if mentioned else None
        return ScoredItem(
            (mentioned, wrong, with_wrong, int(mentioned > 0), *others),
            {**scores, "chair_s_refined": refined},
            made.evidence,
        )

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:
        """Return an unscored answer's statistics; see :meth:`ChairMetric.extreme`."""
        made = dict(ChairMetric.extreme(self, observed, best=best))
        # CHAIR names this column after captions.
        made["answers_with_hallucination"] = made.pop("captions_with_hallucination")
        return made | {"answers_with_objects": 1.0}


ASKING = {
    "object-halbench": OwnAsking(
        protocols=plain("{{question}}"),
        question=("question", "prompt"),
        id=("image_id", "id"),
        response="response",
        kept=(),
        max_tokens=1024,
    )
}
"""How its questions are asked."""
