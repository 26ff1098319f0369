"""The pipeline of closed questions of which a language model may judge some answers.

A benchmark declares in ``judged`` what is asked about an answer, and what a choice means. The last
answer of a bundle is the one that is judged, or each of them; its verdict is a field of the answer,
which the file may hold already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import structs
from msgspec.structs import replace

from hallujudge.metrics import ItemResult, Outcome
from hallujudge.metrics.answers.answers_metric import AnswersMetric
from hallujudge.metrics.answers.closed_questions import (
    Answer,
    AnswersEvidence,
    AnswersItem,
    ClosedQuestions,
    JudgedAnswers,
)
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.framework.asking import is_prompt_text
from hallujudge.metrics.framework.metric import LLM_JUDGES, SOFT, YES, OptionDefinition
from hallujudge.metrics.framework.results import ScoredItem, UnscoredReason

from ..errors import InvalidInputError
from ..judges import DIGITS, judging_of, payer_of
from ..judges.questions import Question, choice_question, printed_question
from ..llm.prompt_templates import (
    JUDGE,
    PROMPT_PRESET,
    Template,
    load_template,
    own_template,
    paper_prompt,
    preset_in,
    preset_option,
    presets_of,
    prompt_option,
)
from .answers_pipeline import ONE_EACH, AnswersPipeline
from .judge_options import ESCALATION_OPTIONS, SHARE_OPTION, escalation_of, share_rule_of
from .judge_quality import (
    CARD_OPTION,
    asked_judge_note,
    card_of,
    check_probabilities,
    given_verdicts_note,
)
from .pipelines import AskingPipeline
from .registry import MetricEntry, declared_trial
from .resources import Resources
from .responses import Problem, ResponseCheck
from .spec import ScoreSpec

if TYPE_CHECKING:
    from ..judges.choice_judge import ChoiceJudge, Chosen


GIVEN = "given"
"""The value of a benchmark's option with which the verdicts of the file count."""
_SHOWN_CHARS = 80


class JudgedAnswersPipeline(AskingPipeline[AnswersItem, AnswersMetric], AnswersPipeline):
    """Scores the answers of a bundle, of which a language model may judge the last one.

    Args:
        metric: The metric.
        responses: Recognises missing responses.
        judge: The language models, or None if no judge is called.
        notes: Sentences for the report.
    """

    def __init__(
        self,
        metric: AnswersMetric,
        responses: ResponseCheck,
        judge: ChoiceJudge | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(metric, responses, notes)
        declared = metric.benchmark
        self.judge = judge
        self._how = judged_in(declared)
        self._verdict_field = declared.verdict
        self._each = declared.judges_each
        self._prompt_by = declared.prompt_by
        self._given = getattr(metric, declared.judge_option) == GIVEN
        self._reference = self._how.reference
        self._choices = () if metric.variant in metric.verdict_prompts else tuple(self._how.choices)
        printed = presets_of(declared.name, JUDGE)
        self._is_printed = judge is not None and judge.templates[0].name in printed
        # A judge sees more of an answer than parsers do.
        self._repeats = self._repeats and judge is None and declared.verdict in declared.seen

    def questions(self, item: AnswersItem) -> dict[int, Question]:
        """Return place of each answer that a judge is asked about -> question."""
        if self.metric.leaves_out(item) or self.problem(item) is not None:
            return {}
        judged = [(n, each) for n, each in enumerate(item.answers) if self._is_judged(each)]
        judged = judged if self._each else judged[:1]
        return {n: self._question(item, each) for n, each in judged if self._needs_verdict(each)}

    def _needs_verdict(self, answer: Answer) -> bool:
        if self.responses.problem(answer.response) is not None:
            return False
        return not self._each or self._decides(answer)

    def _decides(self, answer: Answer) -> bool:
        """Return whether only a verdict tells what an answer says, and any verdict does."""
        choices = self._how.choices.values()
        given = [{}, *({self._verdict_field: verdict} for verdict in choices)]
        without, *said = [self.metric.parse(self._changed(answer, each)).value for each in given]
        return without is None and any(value is not None for value in said)

    def _question(self, item: AnswersItem, answer: Answer) -> Question:
        assert self.judge is not None, "only asked then"
        how = self._how
        if self._is_printed:
            people = self._reference, answer.fields.get(self._reference, "")
            asked = printed_question(self.judge.templates[0], answer.response or "", *people)
            return self._asked_of(item, asked)
        place = [*how.prompts].index(item.fields[self._prompt_by]) if self._prompt_by else 0
        template, values = self.judge.templates[place], {s: how.text(s, answer) for s in how.slots}

        def about(**extracted: str) -> Question:
            asked = choice_question(template, {**values, **extracted}, self._choices)
            return self._asked_of(item, asked)

        if not self.metric.extracts(item):
            return about()
        before = self._asked_of(item, choice_question(self.judge.templates[-1], values, ()))
        return replace(about(), first=(before, lambda text: about(response=text)))

    def _asked_of(self, item: AnswersItem, asked: Question) -> Question:
        payer = payer_of(item.id, asked.messages)
        return replace(asked, affinity=item.group_id or item.id, payer=payer)

    def size(self, item: AnswersItem) -> int:
        """Return the number of characters that scoring an item reads."""
        size = AnswersPipeline.size(self, item)
        if self._given:
            for each in item.answers:
                if not self._partial or self._is_judged(each):
                    size += len(each.fields.get(self._verdict_field) or "")
        return size

    def _is_judged(self, answer: Answer) -> bool:
        return not self._partial or answer.name == self.metric.benchmark.judged_name

    def _judged_of(self, item: AnswersItem) -> Answer:
        """Return the judged answer; one without a response if the item has none."""
        none = Answer(response=None)
        return next(filter(self._is_judged, item.answers), none)

    def judged(self, item: AnswersItem, found: Mapping[int, Chosen]) -> ItemResult:
        """Return the result of an item, of whose answers a judge was asked about some, or none.

        Without a choice, an answer that counts alone is unscored. In a partial bundle its verdict
        is an unparsed one, unless unparsed ones would be wrong: it is left out then, because a
        judge that fails must not produce a score.
        """
        if self._each:
            return self._each_judged(item, found)
        chosen = next(iter(found.values()), None)
        if not self._partial and (chosen is None or not chosen.choice):
            return self._unjudged(item, chosen)
        verdict = self._verdict(item, chosen)
        known = self._with_verdict(item, verdict)
        if chosen is None:
            return self.result(known)
        made = self.score(known, self._probability(item, chosen))
        given = self.metric.parse(self._judged_of(item)).value or None
        answers = made.evidence.answers
        if written := chosen.extracted if self._choices else chosen.choice:
            *others, last = answers
            answers = (*others, structs.replace(last, how=f"{last.how}: {written!r}"))
        evidence = structs.replace(
            made.evidence,
            answers=answers,
            given=given,
            margin=chosen.margin,
            judging=chosen.judging(),
        )
        result = self.made_result(known, made._replace(evidence=evidence))
        if result.outcome is not Outcome.UNSCORED or verdict:
            return result
        return structs.replace(result, reason=UnscoredReason(chosen.reason), detail=chosen.detail)

    def _each_judged(self, item: AnswersItem, found: Mapping[int, Chosen]) -> ItemResult:
        """Return the result of an item whose answers are all judged; without any verdict, none."""
        if (problem := self.problem(item)) is not None:
            return self.unscored(item, *problem)
        failed = [each for each in found.values() if not each.choice]
        if failed and len(failed) == len(found):
            return self._unjudged(item, failed[0])
        said = {place: self._how.choices.get(each.choice, "") for place, each in found.items()}
        answers = [
            self._changed(answer, {self._verdict_field: said.get(place, "")})
            for place, answer in enumerate(item.answers)
        ]
        made = self.metric.score_answers(answers)
        asked = (part for each in found.values() for part in each.asked)
        evidence = structs.replace(made.evidence, judging=judging_of(asked))
        return self.made_result(item, made._replace(evidence=evidence))

    def unanswered(self, item: AnswersItem, places: Collection[int]) -> AnswersItem:
        """Return an item without the verdicts on some answers, whose responses were cut off."""
        answers = [self._changed(a, {}) if n in places else a for n, a in enumerate(item.answers)]
        return structs.replace(item, answers=tuple(answers))

    def _unjudged(self, item: AnswersItem, chosen: Chosen | None) -> ItemResult:
        if chosen is None:
            return self.result(item)
        return self.unscored(item, UnscoredReason(chosen.reason), chosen.detail)

    def _verdict(self, item: AnswersItem, chosen: Chosen | None) -> str | None:
        """Return the verdict of a choice: empty for a failed one, None if there is nothing."""
        failed = chosen is not None and not chosen.choice
        if self._judged_of(item).response is None or (failed and not self._leaves_unparsed()):
            return None
        if chosen is not None and (self._is_printed or not self._choices):
            return chosen.choice
        return self._how.choices.get(chosen.choice, "") if chosen is not None else ""

    def _leaves_unparsed(self) -> bool:
        """Return whether the variant leaves out what it can't parse."""
        return self.metric.benchmark.variant(self.metric.variant).unparsed == "unscored"

    def _with_verdict(self, item: AnswersItem, verdict: str | None) -> AnswersItem:
        """Return an item with another verdict on its judged answer; None for none."""
        given = {} if verdict is None else {self._verdict_field: verdict}
        answers = [self._changed(a, given) if self._is_judged(a) else a for a in item.answers]
        return structs.replace(item, answers=tuple(answers))

    def _changed(self, answer: Answer, given: Mapping[str, str]) -> Answer:
        others = {n: text for n, text in answer.fields.items() if n != self._verdict_field}
        return structs.replace(answer, fields={**others, **given})

    def _probability(self, item: AnswersItem, chosen: Chosen) -> float | None:
        """Return the probability that the judged answer counts as right, if the judge states it."""
        if chosen.probabilities is None or self._is_printed:
            return None
        answer, how = self._judged_of(item), self._how
        right: list[float] = []
        wrong: list[float] = []
        for verdict, stated in zip(how.choices.values(), chosen.probabilities, strict=True):
            counts = self.metric.parse(self._changed(answer, {self._verdict_field: verdict})).right
            (right if counts else wrong).append(stated)
        # One probability is given as the judge states it; sums are rounded like it.
        return right[0] if len(right) == 1 else round(1.0 - sum(wrong), DIGITS)

    def problem(self, item: AnswersItem) -> Problem | None:
        """Return why a bundle can't be scored, or None if it can."""
        if self._each:
            found = (self._problem_of_each(item, answer) for answer in item.answers)
            return next(filter(None, found), None)
        if not self._partial and len(item.answers) != 1:
            return ONE_EACH
        if (problem := self.place_problem(item)) is not None:
            return problem
        if not self._partial:
            return self._problem_alone(item.answers[0])
        answer = self._judged_of(item)
        others = [each for each in item.answers if not self._is_judged(each)]
        if self.judge is not None and answer.response is not None:
            problem = self._reference_problem(answer)
        elif not others and (self.judge is not None or self._verdict_field not in answer.fields):
            name = self.metric.benchmark.judged_name
            what = name if self.judge is not None else self._verdict_field
            detail = f"it has neither a question nor a {what}"
            problem = UnscoredReason.REFERENCE_MISSING, detail
        elif not others:
            problem = self._failure(answer)
        return problem or next(filter(None, map(self.label_problem, others)), None)

    def _problem_of_each(self, item: AnswersItem, answer: Answer) -> Problem | None:
        """Return why an answer can't be scored: its response, or a verdict that it needs."""
        if problem := self.responses.problem(answer.response, "the answer"):
            return None if self.metric.counts_missing(item) else problem
        # An empty verdict of a file counts by the variant's rule of unparsed ones.
        if self.judge is None and self._verdict_field in answer.fields:
            return None
        if not self._decides(answer):
            return None
        if self.judge is not None:
            return self._reference_problem(answer)
        missing = (
            f"the {self._how.noun} came without {self.metric.judge_option}; set the option "
            f"{self.metric.judge_option} to a judge"
        )
        return UnscoredReason.VERDICT_NULL, missing

    def _problem_alone(self, answer: Answer) -> Problem | None:
        if self._given:
            failure = self.responses.failure(answer.response, "the answer")
            if failure or answer.fields.get(self._verdict_field):
                return failure
            missing = f"the answer came without a {self._verdict_field}; give it, or set the option"
            return UnscoredReason.VERDICT_NULL, f"{missing} {self.metric.judge_option} to a judge"
        if self.judge is None:
            return self.answer_problem(answer)
        if problem := self.responses.problem(answer.response, "the answer"):
            return problem
        if problem := self._reference_problem(answer):
            return problem
        return self.label_problem(answer) if answer.label else None

    def _reference_problem(self, answer: Answer) -> Problem | None:
        if not self._reference or self._how.text(self._reference, answer).strip():
            return None
        return UnscoredReason.REFERENCE_MISSING, self.metric.benchmark.lacking

    def score(
        self, item: AnswersItem, probability: float | None = None
    ) -> ScoredItem[AnswersEvidence]:
        """Return the statistics of a bundle; of a partial one without what has no verdict.

        Args:
            item: The bundle.
            probability: Probability that its judged answer is right, if the judge reports one.
        """
        if self._partial:
            return self.metric.score_judged(tuple(self._counted(item.answers)), probability)
        made = self.metric.score_judged(item.answers, probability)
        if self._given or self.judge is not None:
            return made
        given = item.answers[0].fields.get(self._verdict_field)
        if not given:
            return made
        return made._replace(evidence=structs.replace(made.evidence, given=given))

    def unread(self, item: AnswersItem) -> Problem:
        """Return why a bundle is unscored whose answer, or verdict of the file, can't be parsed."""
        if self._partial or (self._choices and not self._given):
            return super().unread(item)
        unread = [each for each in item.answers if self.metric.parse(each).value is None]
        if self._each and not any(map(self._decides, unread)):
            return super().unread(item)
        verdict = (unread or item.answers)[0].fields.get(self._verdict_field, "").strip()
        what = self._verdict_field if self._given else "judge's text"
        detail = f"the {what} {verdict[-_SHOWN_CHARS:]!r} has no verdict"
        return UnscoredReason.NO_VERDICT, detail

    def _failure(self, answer: Answer) -> Problem | None:
        leaves_out = self._leaves_unparsed()
        return self.responses.failure(answer.response, f"the {answer.name}") if leaves_out else None

    def _counted(self, answers: Sequence[Answer]) -> Iterator[Answer]:
        for answer in answers:
            if self._is_judged(answer):
                if self._verdict_field in answer.fields and not self._failure(answer):
                    yield answer
            elif self._leaves_unparsed() and self.responses.problem(answer.response) is not None:
                yield structs.replace(answer, response=None)
            else:
                yield answer


def declared_entry(benchmark: ClosedQuestions) -> MetricEntry:
    """Return the registration of a benchmark of which a language model may judge answers."""
    how, metric = judged_in(benchmark), metric_of(benchmark)

    def opened(spec: ScoreSpec, resources: Resources) -> JudgedAnswersPipeline:
        responses = ResponseCheck(spec.options)
        prompts = declared_prompts(benchmark, spec)
        judge = choice_judge(spec, entry, prompts, tuple(how.slots), resources)
        if judge is not None and spec.variant in metric.extraction_prompts | metric.verdict_prompts:
            judge.check_writes()
        card = card_of(spec, judge.signatures) if judge else None
        signature = judge.signature + (card.mark if card else "") if judge else ""
        made = entry.metric_for(spec, responses, judge=signature)
        notes: tuple[str, ...] = ()
        if judge is not None:
            notes = (card.note if card else asked_judge_note(), *judge.notes)
        elif getattr(made, metric.judge_option) == GIVEN:
            resting = f"Scores of {how.noun} rest" if benchmark.partial else "Every score rests"
            notes = (given_verdicts_note(resting, metric.judge_option),)
        return JudgedAnswersPipeline(made, responses, judge, notes)

    entry = MetricEntry(
        metric=metric,
        item_type=AnswersItem,
        trial=declared_trial(benchmark, metric),
        judge_trial=declared_trial(benchmark, metric, judged=True),
        # A learnt margin and a report card are made of labels, which correct these columns.
        engine_options=(
            *(ESCALATION_OPTIONS if metric.judged else ()),
            SHARE_OPTION,
            *((CARD_OPTION,) if metric.judged else ()),
            *own_prompts(benchmark),
        ),
        open=opened,
    )
    return entry


def template_of(spec: ScoreSpec, name: str, own: Sequence[str], slots: Sequence[str]) -> Template:
    """Return a declared prompt, or what the user gives instead.

    Args:
        spec: The spec.
        name: The name of the declared prompt, or its text.
        own: The options that may hold the user's own.
        slots: The slots that it has.

    Raises:
        InvalidInputError: A prompt can't be used, or two are given.
    """
    text = next((spec.options[option] for option in own if spec.options.get(option)), "")
    if preset := preset_in(spec.options):
        if text:
            raise InvalidInputError(
                f"the options {PROMPT_PRESET} and {own[-1]} are both given; give one of them"
            )
        return paper_prompt(preset, spec.metric, JUDGE).template
    # A prompt that a declaration has as a text has no name, which the signature needs.
    if not text and is_prompt_text(name):
        return replace(own_template(name, slots), name=spec.metric)
    return own_template(text, slots) if text else load_template(name)


def judged_in(benchmark: ClosedQuestions) -> JudgedAnswers:
    """Return what a judge may be asked in a benchmark."""
    assert benchmark.judged is not None, "only such benchmarks have this pipeline"
    return benchmark.judged


def declared_prompts(benchmark: ClosedQuestions, spec: ScoreSpec) -> dict[str, tuple[str, ...]]:
    """Return each declared prompt -> the options that may hold the user's own instead.

    The prompt that extracts, if the variant has one, is the last.
    """
    how, metric = judged_in(benchmark), metric_of(benchmark)
    if own := metric.verdict_prompts.get(spec.variant):
        return {own: ("prompt",)}
    first: dict[str, tuple[str, ...]] = {}
    if extracting := metric.extraction_prompts.get(spec.variant):
        first[extracting] = ()
    if not benchmark.prompt_by:
        return dict.fromkeys(how.prompts.values(), ("prompt",)) | first
    return {name: (f"prompt_{value}", "prompt") for value, name in how.prompts.items()} | first


def own_prompts(benchmark: ClosedQuestions) -> Iterator[OptionDefinition]:
    """Yield the options of a user's own prompts."""
    how, by = judged_in(benchmark), benchmark.prompt_by
    yield prompt_option("prompt", tuple(how.slots), by and f" for all {by}s")
    if printed := presets_of(benchmark.name, JUDGE):
        yield preset_option(*printed)
    for value in how.prompts if by else ():
        yield prompt_option(f"prompt_{value}", tuple(how.slots), f" for {value}")


def choice_judge(
    spec: ScoreSpec,
    entry: MetricEntry,
    prompts: Mapping[str, Sequence[str]],
    slots: Sequence[str],
    resources: Resources,
) -> ChoiceJudge | None:
    """Return the judge that a spec names, or None if it names none.

    Args:
        spec: The spec.
        entry: The metric's entry.
        prompts: Each declared prompt -> the options that may hold the user's own instead.
        slots: The slots of the prompts.
        resources: Provides the language models.

    Raises:
        InvalidInputError: The judge is not configured, or a prompt can't be used.
    """
    if entry.asks_llm(spec):
        templates = [template_of(spec, name, own, slots) for name, own in prompts.items()]
        name = spec.options[entry.judge_option]
        if spec.options.get(SOFT) == YES:
            check_probabilities(resources.judges, name, others="")
        return resources.judges.choice_judge(
            name, templates, escalation_of(spec), share_rule_of(spec)
        )
    about = [each.name for each in (*ESCALATION_OPTIONS, SHARE_OPTION, CARD_OPTION)]
    about += [SOFT] if spec.options.get(SOFT) == YES else []
    asking = [option for own in prompts.values() for option in own]
    asking += [PROMPT_PRESET] if preset_in(spec.options) else []
    kinds = dict.fromkeys(about, "about a judge") | dict.fromkeys(asking, "a judge's prompt")
    for option, kind in kinds.items():
        if spec.options.get(option):
            raise InvalidInputError(
                f"the option {option} is {kind}, but no judge is asked; set the option "
                f"{entry.judge_option} to {' or '.join(LLM_JUDGES)}"
            )
    return None
