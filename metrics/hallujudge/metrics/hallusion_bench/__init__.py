"""HallusionBench: wrong answers due to language and due to vision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from ..answers.answer_scores import yes_bias_scores
from ..answers.yes_no import yes_no_parser
from ..framework.columns_and_scores import Column, ScoreDefinition, ratio, share
from ..framework.metric import OptionDefinition, Paper, SoftMetric, VariantDefinition, soft_option
from ..framework.results import JsonValue, ScoredItem
from .question_groups import (
    CAUSES,
    MADE,
    NO_VERDICT,
    RIGHT,
    UNCLEAR,
    UNKNOWN,
    WRONG,
    HallusionBenchItem,
    key_of,
    made_columns,
    place_code,
)

if TYPE_CHECKING:
    from ..framework.columns_and_scores import FloatArray, Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class HallusionBenchEvidence:
    """Evidence of an answer's scores."""

    answer: str | None
    """The parsed answer, ``yes`` or ``no``; None for an unparsed answer."""
    label: str
    """The right answer; empty if unknown."""
    correctness: int
    """1 right, 0 wrong, 2 unclear."""
    correct: bool
    """Whether it counts as right; an unclear answer does if there is no figure."""
    how: str
    """Where the correctness comes from: ``given``, ``llm``, ``router`` or the answer parser."""
    given: int | None = None
    """The correctness that came with the answer, where another source was chosen."""
    margin: float | None = None
    """The judge's log-probability of its choice minus that of the runner-up."""
    probability: float | None = None
    """The judge's probability that the answer counts as right."""
    judging: tuple[dict[str, JsonValue], ...] = field(default=())
    """The judges that were called, in order. Empty if none was."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the correctness, what it was made of, and the judges where some were called."""
        line: dict[str, JsonValue] = {
            "answer": self.answer,
            "label": self.label,
            "correctness": self.correctness,
            "correct": self.correct,
            "how": self.how,
        }
        if self.given is not None:
            line["given"] = self.given
        if self.judging:
            line |= {
                "margin": self.margin,
                "probability": self.probability,
                "judging": list(self.judging),
            }
        return line


COLUMNS: tuple[Column, ...] = (
    Column(name="answered", meaning="answers with a correctness"),
    Column(
        name="right", meaning="right answers; also unclear ones without a figure", integral=False
    ),
    Column(name="unclear", meaning="unclear answers"),
    Column(name="labelled", meaning="answers to questions with a label"),
    Column(name="yes_labels", meaning="of these, with the label yes"),
    Column(name="yes_answers", meaning="of these, right with the label yes or wrong with no"),
    Column(name="labelled_wrong", meaning="of these, wrong"),
    Column(name="wrong_yes", meaning="of these, wrong with the label no"),
    Column(name="question_language_hallucination", meaning="wrong without a figure"),
    Column(name="question_visual_illusion", meaning="wrong because of the figure"),
    Column(name="question_mixed", meaning="wrong with a figure, for either reason"),
    Column(name="without_probability", meaning="soft: answers that count by verdict"),
    Column(name="unscored", meaning="answers without a correctness"),
    Column(name="pair", meaning="question and set, as a number", integral=False, label=True),
    Column(name="figure", meaning="figure and set, as a number", integral=False, label=True),
    Column(name="place", meaning="category and figure", label=True),
    Column(name="verdict", meaning="correctness", label=True),
    Column(name="same", meaning="whether it agrees with figure 0", label=True),
    Column(name="said", meaning="the parsed answer", label=True),
)
"""The statistics of a question, in order; those of pairs and figures are made from them."""


def _known(top: str, bottom: str, unknown: str) -> Callable[[Sums], FloatArray]:
    """Return a share that is undefined if the cause of a failure is unknown."""
    over = ratio(top, bottom)

    def value(sums: Sums) -> FloatArray:
        import numpy as np

        return np.where(sums[unknown] > 0, np.nan, over(sums))

    return value


def _cause(prefix: str, cause: str, failures: str, bottom: str, unknown: str) -> ScoreDefinition:
    name = f"{prefix}{cause}"
    # Shares of wrong answers have no prefix; their columns are named ``failure_…``.
    top = name if prefix else f"failure_{cause}"
    return ScoreDefinition(
        name=name,
        meaning=f"share of {failures}, cause: {cause.replace('_', ' ')}",
        columns=(top, bottom, unknown),
        value=_known(top, bottom, unknown),
        count=bottom,
        bounded=False,
    )


SCORES: tuple[ScoreDefinition, ...] = (
    share("question_accuracy", "right answers / answers (aAcc)", "right", "answered"),
    share(
        "pair_accuracy",
        "questions with right answers about all their figures / questions (qAcc)",
        "pairs_right",
        "pairs",
    ),
    share(
        "figure_accuracy",
        "figures with right answers to all their questions / figures (fAcc)",
        "figures_right",
        "figures",
    ),
    share(
        "easy_pair_accuracy",
        "pair_accuracy over original figures and questions without one",
        "easy_right",
        "easy",
    ),
    share(
        "hard_pair_accuracy",
        "pair_accuracy over edited figures",
        "hard_right",
        "hard",
    ),
    share(
        "figure_inconsistent",
        "figures with right and wrong answers / figures",
        "figures_mixed",
        "figures",
        direction="lower",
        bounded=False,
    ),
    share(
        "figure_wrong",
        "figures with wrong answers only / figures",
        "figures_wrong",
        "figures",
        direction="lower",
        bounded=False,
    ),
    share(
        "figure_score",
        "share of right answers to a figure, mean over figures",
        "figure_share",
        "figures",
    ),
    *yes_bias_scores("labelled", "labelled_wrong"),
    *(_cause("", cause, "wrong answers", "failures", "failures_unknown") for cause in CAUSES),
    *(
        _cause("question_", cause, "wrong answers, judged one by one", "failures", "never")
        for cause in CAUSES
    ),
    *(_cause("pair_", cause, "wrong pairs", "pairs_wrong", "pairs_unknown") for cause in CAUSES),
    share(
        "unclear_rate",
        "unclear answers / answers",
        "unclear",
        "answered",
        direction="neither",
        bounded=False,
    ),
)
"""The scores, in the order of the report."""


JUDGES = ("llm", "router")
"""Sources of correctness that are language models, asked with the reference answer."""

_SAID = {None: 0, "yes": 1, "no": 2}
_OPPOSITE = {"yes": "no", "no": "yes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HallusionBenchMetric(SoftMetric):
    """HallusionBench (Guan et al., 2024; released script ``utils.py``).

    An answer is right, wrong or unclear. An unclear answer counts as right if the question has no
    figure (category VS, figure 0), otherwise as wrong.

    * ``question_accuracy`` (aAcc) = right answers / answers
    * ``pair_accuracy`` (qAcc) = questions of a set with right answers about all figures / questions
    * ``easy_pair_accuracy``, ``hard_pair_accuracy``: the same over answers about original figures
      (or none), and about edited ones (``visual_input`` 2)
    * ``figure_accuracy`` (fAcc) = figures with right answers to all questions / figures;
      ``figure_wrong``, ``figure_inconsistent``: figures with no right answer, and with some;
      ``figure_score``: the mean over figures of the share of right answers
    * ``yes_percent_difference`` = share of yes answers - share of yes labels, and
      ``false_positive_ratio`` = wrong answers with the label no / wrong answers. As in the script,
      a right answer counts as its label, and any other answer as the opposite.
    * ``language_hallucination``, ``visual_illusion``, ``mixed``: shares of wrong answers by their
      cause, which the answer for figure 0 decides; ``pair_…``: shares of wrong pairs by the causes
      of all their answers; ``question_…``: shares of wrong answers, regardless of figure 0

    Variants: ``published`` has all 1,129 questions. ``image-only`` has the 951 questions with a
    figure, and identifies sets by subcategory and number, without the category, as VLMEvalKit's
    table does. That merges the sets of charts, tables and texts of both categories.

    A pair or figure with an unscored answer is left out of the scores of pairs or figures; the
    bounds show what it could change. Causes need figure 0, and either ``same`` or parsed answers;
    if one is missing, the shares are None.

    With ``soft``, an answer adds P(right) to ``question_accuracy`` instead of 0 or 1, from the
    probabilities that its judge states: P(correct), and without a figure also P(unclear). One
    without them adds 0 or 1 by its verdict. The other scores count verdicts: how probable it is
    that all answers of a pair are right does not follow from the probabilities of each.

    Difference from the released script: it stops at duplicate questions, and if figure 0 is
    missing.

    Attributes:
        variant: ``published`` or ``image-only``.
        correctness: Where correctness comes from: ``given``, an answer parser, or one of
            :data:`JUDGES`.
        judge: The judge, its prompt and its parameters, for the signature. Empty without a judge.
        soft: ``yes`` counts probabilities instead of verdicts.
    """

    name: ClassVar[Literal["hallusion-bench"]] = "hallusion-bench"
    summary: ClassVar[str] = "Answers about figures and edited figures, by set."
    papers: ClassVar[tuple[Paper, ...]] = (
        Paper(
            title="HallusionBench",
            authors="Guan et al.",
            year=2024,
            link="arXiv:2310.14566",
            where="section 4 and utils.py",
        ),
    )
    variants: ClassVar[tuple[VariantDefinition, ...]] = (
        VariantDefinition(
            name="published", meaning="Reproduces the released script: all 1,129 questions."
        ),
        VariantDefinition(
            name="image-only",
            meaning="Reproduces VLMEvalKit's table: the 951 questions with a figure.",
        ),
    )
    options: ClassVar[tuple[OptionDefinition, ...]] = (
        OptionDefinition(
            name="correctness",
            default="vlmevalkit",
            choices=("vlmevalkit", "strict", "given", *JUDGES),
            meaning="Correctness.",
            details="vlmevalkit and strict parse the answer; given uses labels of the file; llm "
            "and router are judges.",
        ),
        soft_option(
            "P(right)",
            "Needs a judge with log-probabilities, and concerns question_accuracy alone. Answers "
            "without a probability count by their verdict.",
        ),
    )
    soft_scores: ClassVar[str] = "in question_accuracy an answer counts P(right) instead of 0 or 1"
    soft_noun: ClassVar[str] = "answers"
    unit: ClassVar[Literal["questions"]] = "questions"
    # Columns of pairs and figures are made from whole tables, so rows must stay as they are.
    folds: ClassVar[bool] = False
    unresolved: ClassVar[str] = "unscored"
    columns: ClassVar[tuple[Column, ...]] = COLUMNS
    score_definitions: ClassVar[tuple[ScoreDefinition, ...]] = SCORES

    correctness: str = ""
    judge: str = ""

    def signature_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the source of correctness, and whether probabilities count."""
        judge = (("judge", self.judge),) if self.judge else ()
        return (("correctness", self.correctness), *self.soft_fields(), *judge)

    def verdicts_in(self, totals: Mapping[str, float]) -> int:
        """Return the number of scored answers."""
        return int(totals["answered"])

    def counts(self, item: HallusionBenchItem) -> bool:
        """Return whether this variant counts a question."""
        return self.variant != "image-only" or item.visual_input != 0

    def set_of(self, item: HallusionBenchItem) -> tuple[str, ...]:
        """Return the key of a question's set; sets are the clusters of intervals."""
        category = () if self.variant == "image-only" else (item.category,)
        return (*category, item.subcategory, item.set_id)

    def score_answer(
        self,
        item: HallusionBenchItem,
        judged: int | None = None,
        probability: float | None = None,
    ) -> ScoredItem[HallusionBenchEvidence]:
        """Statistics of one answer, which has a correctness, or a response and a label.

        Args:
            item: The answer.
            judged: The judge's verdict, where one is asked.
            probability: Probability that the answer counts as right, if the judge states one.
        """
        answer, verdict = self._verdict(item, judged)
        correct = verdict == RIGHT or (verdict == UNCLEAR and item.without_figure)
        right = probability if self.is_soft and probability is not None else int(correct)
        answered, _, *others = _counts(item, verdict, correct=correct)
        return ScoredItem(
            statistics=(
                answered,
                right,
                *others,
                int(self.is_soft and probability is None),
                0,
                *self._labels(item, verdict, self._said(item, answer, verdict)),
            ),
            scores={"question_accuracy": float(right), "unclear_rate": float(verdict == UNCLEAR)},
            evidence=HallusionBenchEvidence(
                answer=answer,
                label=item.label,
                correctness=verdict,
                correct=correct,
                how=self.correctness,
                given=None if self.correctness == "given" else item.correctness,
                probability=probability,
            ),
        )

    def unscored_row(self, item: HallusionBenchItem) -> tuple[float, ...]:
        """Return the statistics of an unscored answer: its pair and figure are incomplete."""
        zeros = (0,) * (len(self.columns) - len(_LABELS) - 1)
        return (*zeros, 1, *self._labels(item, NO_VERDICT, 0))

    def _said(self, item: HallusionBenchItem, answer: str | None, verdict: int) -> int:
        """Return the answer as a code; a judged answer is its label if right, else the opposite."""
        # A judge states correctness only; the answer follows from it, as there are but two.
        if self.correctness in JUDGES and item.label and verdict != UNCLEAR:
            answer = item.label if verdict == RIGHT else _OPPOSITE[item.label]
        return _SAID[answer]

    def _verdict(self, item: HallusionBenchItem, judged: int | None) -> tuple[str | None, int]:
        if self.correctness in JUDGES:
            assert judged is not None, "an item without it is unscored"
            return None, judged
        if self.correctness == "given":
            assert item.correctness is not None, "an item without it is unscored"
            return None, item.correctness
        assert item.response is not None, "an item without it is unscored"
        answer = yes_no_parser(self.correctness)(item.response)
        if answer is None:
            # Unclear is the third verdict of the released files.
            return None, UNCLEAR
        return answer, RIGHT if answer == item.label else WRONG

    def _labels(self, item: HallusionBenchItem, verdict: int, said: int) -> tuple[float, ...]:
        place = self.set_of(item)
        given = UNKNOWN if item.same is None or self.correctness != "given" else int(item.same)
        return (
            key_of(*place, item.question_id),
            0.0 if item.without_figure else key_of(*place, item.figure_id),
            place_code(
                supplement=item.category == "VS",
                original=item.original,
                visual_input=item.visual_input if item.visual_input in (0, 1, 2) else _NOWHERE,
            ),
            verdict,
            given,
            said,
        )

    def expand(self, items: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Return the columns of pairs, figures and causes."""
        return made_columns(items)

    def resolve(self, items: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, FloatArray]:
        """Return the columns with every unscored answer right, or wrong, in its pair and figure."""
        import numpy as np

        verdict = items["verdict"]
        decided = np.where(verdict == NO_VERDICT, float(RIGHT if best else WRONG), verdict)
        return {**items, **made_columns({**items, "verdict": decided})}

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:  # noqa: ARG002
        """Return a right answer or a wrong one; :meth:`resolve` has its pair and figure."""
        row = dict.fromkeys((*(column.name for column in self.columns), *MADE), 0.0)
        return row | {"answered": 1.0, "right": float(best)}


_LABELS = tuple(column for column in COLUMNS if column.label)
_NOWHERE = 3
"""The visual input of an item whose own is not valid; it is unscored, and any number may come."""


def _counts(item: HallusionBenchItem, verdict: int, *, correct: bool) -> tuple[int, ...]:
    labelled, yes = bool(item.label), item.label == "yes"
    wrong = labelled and not correct
    return (
        1,
        int(correct),
        int(verdict == UNCLEAR),
        int(labelled),
        int(yes),
        int(labelled and correct == yes),
        int(wrong),
        int(wrong and not yes),
        *_question_causes(item, verdict),
    )


def _question_causes(item: HallusionBenchItem, verdict: int) -> tuple[int, int, int]:
    """Return language hallucination, visual illusion and mixed, by the answer alone."""
    failed, unclear = verdict == WRONG, verdict == UNCLEAR
    if item.category == "VD":
        blind = item.original
        return (0, int(unclear or (failed and blind)), int(failed and not blind))
    shown = item.visual_input != 0
    return (int(failed and not shown), int(unclear and shown), int(failed and shown))
