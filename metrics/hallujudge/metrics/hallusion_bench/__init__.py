"""HallusionBench: wrong answers due to language and due to vision (released: ``utils.py``).

An answer is right, wrong or unclear. An unclear answer counts as right if the question has no
figure (category VS, figure 0), otherwise as wrong.

* ``question_accuracy`` (aAcc) = right answers / answers
* ``pair_accuracy`` (qAcc) = questions of a set with right answers about all figures / questions
* ``easy_pair_accuracy``, ``hard_pair_accuracy``: the same over answers about original figures
  (or none), and about edited ones (``visual_input`` 2); undefined if all are ``unknown``
* ``figure_accuracy`` (fAcc) = figures with right answers to all questions / figures;
  ``figure_wrong``, ``figure_inconsistent``: figures with no right answer, and with some;
  ``figure_score``: the mean over figures of the share of right answers
* ``mean_accuracy`` = (aAcc + fAcc + qAcc) / 3, by which the leaderboard of VLMEvalKit sorts
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
probabilities that its judge states: P(correct), and without a figure also P(unclear); without
them 0 or 1. The other scores count verdicts: P(right) of a pair does not follow from its answers'.

The released script stops at duplicate questions, and if figure 0 is missing.

An item is one answer; its set is its cluster. :mod:`.cause_analyses` makes pairs and figures, and
finds the causes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..answers.answer_scores import (
    AnswerScore,
    Bundle,
    Count,
    ReadAnswer,
    average,
    count,
    credit,
    share,
    value_of,
)
from ..answers.answer_text import number_of
from ..answers.answers_metric import AnswersMetric
from ..answers.closed_questions import (
    Answer,
    AnswersItem,
    AnswerVariant,
    Bundling,
    ClosedQuestions,
    JudgedAnswers,
    Keys,
    Parsed,
    compared_by,
    of_first,
)
from ..answers.declared_metrics import metric_of
from ..answers.uncounted_answers import NamedParser
from ..answers.yes_no import YES_NO_PARSERS, yes_bias
from ..framework import columns_and_scores as framework
from ..framework.arrays import FloatArray, np
from ..framework.asking import Shown
from ..framework.columns_and_scores import Column, Grouping, ScoreDefinition
from ..framework.metric import OptionDefinition, soft_option
from .cause_analyses import (
    CATEGORIES,
    CAUSE_SCORES,
    COMPARED,
    JUDGES,
    NO_VERDICT,
    QUESTION_CAUSES,
    RIGHT,
    UNCLEAR,
    UNKNOWN_INPUT,
    VERDICTS,
    WRONG,
    Rows,
    cause_columns,
    code_by,
    code_of,
    group_columns,
    place_code,
)

SHOWN = ("0", "1", "2")
"""``visual_input``: no figure, the original one, an edited one."""
IMAGE_ONLY = "image-only"
"""The variant without questions that have no figure."""
PARSERS = {name: compared_by(YES_NO_PARSERS[name], name) for name in ("vlmevalkit", "strict")}
"""The answer parsers that the option ``correctness`` chooses, unless it names other verdicts."""
_PARSE = PARSERS["vlmevalkit"]
_PLACE = ("category", "subcategory", "set_id", "figure_id", "question_id")
_SET, _SET_OF_IMAGES = _PLACE[:3], _PLACE[1:3]
_UNKNOWN = "unknown"


def without_figure(field: Callable[[str], str | None]) -> bool:
    """Return whether no figure belongs to a question, so that an unclear answer is right.

    Args:
        field: Returns a field of the answer.
    """
    return field("category") == "VS" and field("figure_id") == "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class HallusionBenchAnswers(AnswersMetric):
    """A metric whose answers count together within their sets."""

    place_columns: ClassVar[tuple[Column, ...]] = (
        Column(name="pair", meaning="question and set, as a number", integral=False, label=True),
        Column(name="figure", meaning="figure and set, as a number", integral=False, label=True),
    )
    unresolved: ClassVar[str] = "unscored"
    soft_scores: ClassVar[str] = "in question_accuracy an answer counts P(right) instead of 0 or 1"

    correctness: str = ""
    """Where correctness comes from: ``given``, an answer parser, or one of :data:`JUDGES`."""

    @classmethod
    def shown(cls, record: Mapping[str, object]) -> Shown:
        """Return the figure of a question; one without a figure shows what the model knows."""
        has_figure = str(record.get("visual_input")) in SHOWN[1:]
        return Shown(media=("filename",) if has_figure else None)

    def derived_fields(self, item: AnswersItem) -> Mapping[str, str]:
        """Return category and subcategory of a figure."""
        return {name: value for name in _PLACE[:2] if (value := of_first(name)(item))}

    @property
    def parser_name(self) -> str:
        """The answer parser, or what judges in its place: what the option chooses."""
        return self.correctness

    @classmethod
    def choosable_parsers(cls, benchmark: ClosedQuestions) -> Sequence[NamedParser]:  # noqa: ARG003
        """Return the answer parsers that the option chooses among; variants choose none."""
        named = "the option correctness = {}"
        return [NamedParser(name, parse, named.format(name)) for name, parse in PARSERS.items()]

    def leaves_out(self, item: AnswersItem) -> bool:
        """Return whether a question has no figure, in the variant without those."""
        shown = [each.fields.get("visual_input") for each in item.answers]
        return self.variant == IMAGE_ONLY and shown == ["0"]

    def cluster(self, item: AnswersItem) -> str:
        """Return the set of a question; sets are the clusters of intervals."""
        return "_".join(self._set_of(item.answers[0].fields)) if item.answers else ""

    def _set_of(self, fields: Mapping[str, str]) -> Sequence[str]:
        names = _SET_OF_IMAGES if self.variant == IMAGE_ONLY else _SET
        return [fields.get(name, "") for name in names]

    def parse(self, answer: Answer) -> Parsed:
        """Return the verdict on an answer, or the parsed answer; None is unclear."""
        parser = PARSERS.get(self.correctness)
        value = parser(answer).value if parser else answer.fields.get("correctness")
        verdict = code_by(value, answer.label)
        unclear = verdict == UNCLEAR and without_figure(answer.fields.get)
        return Parsed(value, verdict == RIGHT or unclear, self.correctness)

    def places(self, item: AnswersItem) -> tuple[float, ...]:
        """Return the pair and the figure of an answer as numbers."""
        if not item.answers:
            return 0, 0
        fields = item.answers[0].fields
        own = self._set_of(fields)
        # A question without a figure belongs to no figure's score.
        figure = 0 if without_figure(fields.get) else number_of(*own, fields.get("figure_id", ""))
        return number_of(*own, fields.get("question_id", "")), figure

    def unscored_row(self, item: AnswersItem) -> tuple[float, ...]:
        """Return the statistics of an unscored answer: its pair and figure are incomplete."""
        bundle = [self._missing(answer, "") for answer in item.answers[:1]]
        counts = (float(each.of(bundle)) for each in self.counts)
        # Columns of other parsers are between the counts and the places.
        elsewhere = (0,) * len(self.all_parsers.columns if self.all_parsers else ())
        return (*counts, *elsewhere, *self.places(item))

    def expand(self, items: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Return the columns of pairs, figures and causes."""
        rows = Rows.of(items)
        pairs = Grouping(items["pair"], rows.all)
        return {**group_columns(items, rows, pairs), **cause_columns(rows, pairs)}

    def resolve(self, items: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, FloatArray]:
        """Return the columns with every unscored answer right, or wrong, in its pair and figure."""
        verdict = items["verdict"]
        decided = np.where(verdict == NO_VERDICT, float(RIGHT if best else WRONG), verdict)
        return {**items, **self.expand({**items, "verdict": decided})}


def verdict_of(value: str | None, label: str) -> str:
    """Return whether a value is right, wrong or unclear: a verdict, or a parsed answer."""
    code = code_by(value, label)
    return next(word for word, each in VERDICTS.items() if each == code)


def _place(answer: ReadAnswer) -> int:
    shown = answer.field("visual_input")
    return place_code(
        supplement=answer.field("category") == "VS",
        original=answer.field("figure_id") == "0",
        visual_input=int(shown) if shown in SHOWN else UNKNOWN_INPUT,
    )


def _is_unscored(bundle: Bundle) -> bool:
    return not (bundle and bundle[0].counted)


_ANSWERED = count("answered", "answers with a correctness")
_UNCLEAR = count("unclear", "unclear answers", lambda a: code_of(a) == UNCLEAR)
_COLUMNS = (
    *QUESTION_CAUSES,
    Count(name="unscored", meaning="answers without a correctness", of=_is_unscored),
    value_of("place", "category and figure", _place),
    value_of("verdict", "correctness", code_of),
    *COMPARED,
)


_MADE_SHARES = (
    ("pair_accuracy", "questions right about all their figures / questions (qAcc)", "pairs"),
    ("figure_accuracy", "figures with right answers to all questions / figures (fAcc)", "figures"),
    ("easy_pair_accuracy", "pair_accuracy over original figures and questions without one", "easy"),
    ("hard_pair_accuracy", "pair_accuracy over edited figures", "hard"),
)
_MEANT = ("pair_accuracy", "figure_accuracy")
_FIGURES = (
    ("figure_inconsistent", "figures with right and wrong answers / figures", "figures_mixed"),
    ("figure_wrong", "figures with wrong answers only / figures", "figures_wrong"),
)
_MADE_DEFINITIONS = (
    *(framework.share(name, meaning, f"{of}_right", of) for name, meaning, of in _MADE_SHARES),
    *(framework.share(*each, "figures", direction="lower", bounded=False) for each in _FIGURES),
    framework.share(
        "figure_score",
        "share of right answers to a figure, mean over figures",
        "figure_share",
        "figures",
    ),
)


def _made(definition: ScoreDefinition) -> AnswerScore:
    return AnswerScore(definition=definition, counts=_COLUMNS)


_QUESTION_ACCURACY = share(
    "question_accuracy",
    "right answers / answers (aAcc)",
    count("right", "right answers; also unclear ones without a figure", credit, integral=False),
    _ANSWERED,
    own=True,
)
_MADE_SCORES = tuple(map(_made, _MADE_DEFINITIONS))


_WITHOUT_FIGURES = (
    "image-only: questions without a figure were read and count in no score; sets of one "
    "subcategory and number are one set, whatever their category, as in VLMEvalKit."
)
BENCHMARK = ClosedQuestions(
    name="hallusion-bench",
    title="HallusionBench: answers about figures and edited figures, by set.",
    unit="questions",
    keys=Keys(
        response=("model_prediction", "response", "prediction", "answer", "output", "text"),
        label=("gt_answer",),
        media=(),
        fields={
            **{name: (name,) for name in (*_PLACE, "same")},
            "visual_input": ("visual_input", "visual_input_in_table"),
            "correctness": ("correctness", "gpt4v_output_gpt_check"),
            "reference": ("gt_answer_details",),
        },
        values={
            # Files write them as 1, "1" or, in tables with gaps, 1.0.
            **{name: {} for name in ("set_id", "figure_id", "question_id", "visual_input")},
            "correctness": {"1": "right", "0": "wrong", "2": "unclear"},
            "same": {"true": "1", "false": "0"},
            "label": {"1": "yes", "0": "no", "true": "yes", "false": "no"},
        },
        optional=("correctness", "same", "reference"),
    ),
    # Each set numbers its questions from its own start, so that only the whole place is an id.
    bundle=Bundling(by=_PLACE),
    seen=("category", "figure_id", "visual_input", "correctness", "same"),
    places={
        "category": CATEGORIES,
        "visual_input": (*SHOWN, _UNKNOWN),
        "correctness": ("", *VERDICTS),
    },
    question_files="questions.json",
    variants=(
        AnswerVariant(
            name="published",
            meaning="Reproduces the released script: all 1,129 questions.",
            parse=_PARSE,
        ),
        AnswerVariant(
            name=IMAGE_ONLY,
            meaning="Reproduces VLMEvalKit's table: the 951 questions with a figure.",
            parse=_PARSE,
            notes=lambda _totals: (_WITHOUT_FIGURES,),
        ),
    ),
    base=HallusionBenchAnswers,
    options=(
        OptionDefinition(
            name="correctness",
            default="vlmevalkit",
            choices=(*PARSERS, "given", *JUDGES),
            meaning="Correctness.",
            details="vlmevalkit and strict parse the answer; given uses labels of the file; llm "
            "and router are judges.",
        ),
        soft_option(
            "P(right)",
            "Needs a judge with log-probabilities, and concerns question_accuracy alone. Answers "
            "without a probability count by their verdict.",
        ),
    ),
    judged=JudgedAnswers(
        choices={"correct": "right", "incorrect": "wrong", "unclear": "unclear"},
        prompts={"": "hallusion_bench"},
        slots={
            "question": "question",
            "reference": lambda answer: answer.fields.get("reference") or answer.label,
            "prediction": "response",
        },
    ),
    scores=(
        _QUESTION_ACCURACY,
        # They are made from whole tables of these columns.
        *_MADE_SCORES,
        average(
            "mean_accuracy",
            "mean of aAcc, fAcc and qAcc, by which VLMEvalKit's leaderboard sorts",
            (_QUESTION_ACCURACY, *(s for s in _MADE_SCORES if s.definition.name in _MEANT)),
        ),
        *yes_bias("labelled", "labelled_wrong", among=lambda answer: bool(answer.label)),
        *map(_made, CAUSE_SCORES),
        share(
            "unclear_rate",
            "unclear answers / answers",
            _UNCLEAR,
            _ANSWERED,
            direction="neither",
            bounded=False,
            own=True,
        ),
    ),
    ranked_by=("mean_accuracy", "question_accuracy"),
    trial=AnswersItem(
        id="1",
        answers=(
            Answer(
                question="Is the line on the left longer?",
                response="Yes.",
                label="yes",
                fields={
                    "category": "VD",
                    "subcategory": "illusion",
                    **dict.fromkeys(("set_id", "figure_id", "question_id"), "0"),
                    "visual_input": "1",
                    "reference": "The line on the left is longer.",
                },
            ),
        ),
    ),
    group_by=("category", "subcategory"),
)
"""The declaration."""
HallusionBenchMetric = metric_of(BENCHMARK)
"""The metric."""
