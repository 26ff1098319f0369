"""EventHallusion: questions about events in videos, and judged descriptions.

Zhang et al., 2024; the released ``eval.py``. An item is a video with its questions and, as the last
answer, the model's description, which is right if the judgement about it is yes.

* ``question_accuracy`` = right answers / questions
* ``description_accuracy`` = descriptions judged right / judged descriptions
* ``question_unparsed_rate`` = answers that could not be parsed / questions
* ``description_unparsed_rate`` = judgements that could not be parsed / judged descriptions

The released script prints them for each split (the groups of ``split``) and overall. ``published``
reproduces the script, including its known bugs:

* An answer or judgement that starts with the letters yes or no is parsed as that word, such as "Not
  sure" and "Nothing happens" as no.
* Any other text is wrong, such as "So the answer is no." and " No.". A missing answer is wrong too,
  and a failed judgement of the file counts against the model. A description at which the judge of
  this run fails is left out, because a failed judge must not produce a score.
* Asterisks are removed from judgements, but not from answers.

``corrected`` parses the first whole word, or else a clear yes or no by the parser ``strict``
(answers only). Unparsed answers and judgements count neither in the numerator nor in the
denominator, and neither do missing answers and failure texts.

With ``soft``, a judged description adds P(right) to the right ones instead of 0 or 1, the
probability that its judge states. One without it adds 0 or 1 by its verdict.

A description without a judgement counts in neither variant; the script stops there. Labels may end
with a full stop; the script accepts only "Yes." and "No.".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from msgspec import structs

from .answers.answer_items import with_lists
from .answers.answer_scores import ReadAnswer, count, credit, named, share, unparsed_rate
from .answers.answers_metric import AnswersMetric
from .answers.closed_questions import (
    Answer,
    AnswersItem,
    AnswerVariant,
    Bundling,
    ClosedQuestions,
    FileNames,
    JudgedAnswers,
    Keys,
    by_name,
    compared_by,
)
from .answers.declared_metrics import metric_of
from .answers.yes_no import YES_NO_PARSERS, YesNo, yes_no_at_start
from .framework.arrays import FloatArray
from .framework.asking import Shown, name_under, plain
from .framework.columns_and_scores import JudgedColumn
from .framework.metric import soft_option, verdicts_option
from .responses import sent_text

SPLITS = ("entire", "interleave", "misleading")
"""The splits of the benchmark."""
DESCRIPTION = "description"
"""Name of the answer that is a description of the video. Its field ``judgement`` is the reply of a
judge: empty if the judge failed, absent without one; ``reference`` is what happens in the video."""
_RESPONSE, _LABEL = ("prediction", "response"), ("answer", "label")
_SAID = {
    # Under the key of answers too, in archives of asked questions.
    "description": ("desc", "description", "response", "prediction"),
    "judgement": ("judgement", "judgment"),
}
_OF_VIDEO = [name for keys in _SAID.values() for name in keys]
_TOLD = [name for name in _OF_VIDEO if name != _RESPONSE[0]]
_LISTS = ("qa", "questions")
_HELD = {"qa": _LISTS, "event_info": ("event_info",)}
# A question may have an id of its own.
_OF_BUNDLE = ("id", "split")
_NAME = "number"


def _first_letters(text: str) -> YesNo | None:
    # As the released script, so that "Not sure" and "Nothing happens" are no.
    start = text[:3].lower()
    return "yes" if start.startswith("yes") else "no" if start.startswith("no") else None


def _first_letters_unmarked(text: str) -> YesNo | None:
    return _first_letters(text.replace("*", ""))


def _first_word_or_clear(text: str) -> YesNo | None:
    return yes_no_at_start(text) or YES_NO_PARSERS["strict"](text)


def _has(record: Mapping[str, object], keys: Sequence[str]) -> bool:
    return not record.keys().isdisjoint(keys)


def _is_list(value: object) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(each, Mapping) for each in value)


def _rows(
    records: Sequence[Mapping[str, object]], key: str
) -> Iterator[tuple[int, Mapping[str, object] | ValueError]]:
    """Yield a row for each question and each description of the videos."""
    videos: dict[str, list[str]] = {}
    records = [with_lists(each, (*_LISTS, *_HELD)) for each in records]
    asks = any(_has(each, _LABEL) or any(map(each.get, _LISTS)) for each in records)
    # The keys of answers are chosen by the first one, whatever it answers.
    whole = {} if asks else {_RESPONSE[0]: None, _LABEL[0]: "yes"}
    for place, record in enumerate(records):
        listed = next((name for name in _LISTS if name in record), "")
        rest = {name: value for name, value in record.items() if name != listed}
        asked: Any = record[listed] if listed else ()
        if not isinstance(asked, (list, tuple)) or not all(isinstance(q, Mapping) for q in asked):
            fault = f"{listed!r} must be a list of objects; found {asked!r:.60}"
            yield place, ValueError(fault, "Give each question an object")
            continue
        of_video = {name: value for name, value in rest.items() if name not in _OF_VIDEO}
        for number, question in enumerate(asked, 1):
            own = {name: of_video[name] for name in _OF_BUNDLE if name in of_video}
            yield place, {**of_video, **question, **own, _NAME: number}
        # A list of objects under another key holds questions, which an error then names.
        told = _has(rest, _TOLD) and (bool(listed) or not any(map(_is_list, rest.values())))
        if listed and key == "label":
            yield place, {**of_video, _NAME: DESCRIPTION}
        elif (listed and (told or not asked)) or (told and not _has(rest, (_NAME, *_LABEL))):
            yield place, _described({**whole, **rest, _NAME: DESCRIPTION})
        elif not listed and _NAME in rest:
            yield place, rest
        elif not listed:
            questions = videos.setdefault(name_under(rest, ("id",)), [])
            try:
                number = _number(rest, questions, key)
            except ValueError as err:
                yield place, err
            else:
                yield place, {**rest, _NAME: number}


def _described(row: Mapping[str, object]) -> Mapping[str, object] | ValueError:
    """Return the row of a description with texts of what is said, or what is no text in it."""
    texts: dict[str, object] = {}
    for key in filter(row.__contains__, _TOLD):
        value: Any = row[key]
        # As in answers, a list of one text is that text.
        said = sent_text(value)
        said = said[0] if isinstance(said, (list, tuple)) and len(said) == 1 else said
        if not (_is_missing(said) or isinstance(said, str)):
            fault = f"{key!r} must be a text; found {value!r:.60}"
            return ValueError(fault, "Write what the model or the judge said as a text")
        texts[key] = said
    return {**row, **texts}


def _lacks(record: Mapping[str, object], keys: Sequence[str]) -> bool:
    return all(_is_missing(record.get(key)) for key in keys)


def _is_missing(value: object) -> bool:
    # An empty cell of a table is NaN where its column holds numbers.
    return value is None or value != value


def _number(record: Mapping[str, object], before: list[str], key: str) -> int:
    """Return the number of a question after those of its video that were before it."""
    if key == "response" and not _has(record, _RESPONSE):
        raise ValueError(
            f"no list of answers: tried {_LISTS[0]}; found {', '.join(sorted(record))}",
            f"Give each video its questions under {_LISTS[0]!r}, or each question a record",
        )
    asked = name_under(record, ("question",))
    # A second answer to one question would get a number of its own, and count as another.
    if asked and asked in before:
        raise ValueError(
            f"questions are answered more than once: {name_under(record, ('id',))} ({asked:.80})",
            "Give different questions, and other samples, ids of their own",
        )
    before.append(asked)
    return len(before)


def _completed(answer: Answer, record: Mapping[str, object]) -> Answer:
    """Return a description with what happens in its video, which a judge compares it with."""
    if answer.name != DESCRIPTION:
        # The keys of a question's response are keys of descriptions too, and fields are hashed.
        return structs.replace(answer, fields={})
    said = {name: answer.fields[name] for name, keys in _SAID.items() if not _lacks(record, keys)}
    response = said.pop("description", None)
    # As in the released prompts: in this split it is the unexpected event.
    unexpected = str(record.get("split")).strip().casefold() == "interleave"
    events = record.get("event_info")
    known = events if isinstance(events, Mapping) else {}
    about = known.get("unexpected" if unexpected else "caption")
    event = record.get("event") if about is None else about
    found = {"reference": event} if isinstance(event, str) else {}
    return structs.replace(answer, response=response, label="yes", fields={**said, **found})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Videos(AnswersMetric):
    """A metric whose unscored videos have as many answers as any video."""

    soft_scores: ClassVar[str] = (
        "in description_accuracy a description counts P(right) instead of 0 or 1"
    )
    judged: ClassVar[tuple[JudgedColumn, ...]] = (
        JudgedColumn(
            column="approved", of="claim", scores=("description_accuracy",), supported=True
        ),
    )

    @classmethod
    def is_question(cls, record: Mapping[str, object]) -> bool:
        """Return whether a record is not a description, whose label is always yes."""
        return record.get(_NAME) != DESCRIPTION

    @classmethod
    def shown(cls, record: Mapping[str, object]) -> Shown:
        """Return how a question is to be answered, or that a video is to be described."""
        if cls.is_question(record):
            return Shown(slots={"instruction": "\nAnswer with yes or no."})
        asked = "Describe what happens in this video."
        return Shown(slots={"question": asked, "instruction": ""})

    @classmethod
    def lacks(cls, answer: Answer, record: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        """Yield what a description lacks that has the other part, and the tried keys."""
        lacking = [name for name, keys in _SAID.items() if _lacks(record, keys)]
        if answer.name == DESCRIPTION and len(lacking) == 1:
            yield f"descriptions have no {lacking[0]}", ", ".join(_SAID[lacking[0]])

    def extreme(self, observed: Mapping[str, FloatArray], *, best: bool) -> Mapping[str, float]:
        """Return an unscored video with all answers and the description right, or wrong."""
        asked, judged = (float(observed[name].max()) for name in ("asked", "judged"))
        questions = {"answered": asked, "right": asked * best}
        return {**questions, "decided": judged, "approved": judged * best}


_describes = named(DESCRIPTION)


def _asks(answer: ReadAnswer) -> bool:
    return answer.name != DESCRIPTION


_ACCURACIES = (
    share(
        "question_accuracy",
        "right answers / questions",
        count("right", "right answers", lambda answer: _asks(answer) and answer.right),
        count("answered", "questions that count in the accuracy", _asks),
        own=True,
    ),
    share(
        "description_accuracy",
        "descriptions judged right / judged descriptions",
        count(
            "approved",
            "descriptions that are right",
            lambda answer: _describes(answer) and credit(answer),
            integral=False,
        ),
        count("decided", "judged descriptions that count in the accuracy", _describes),
        own=True,
    ),
)

BENCHMARK = ClosedQuestions(
    name="event-hallusion",
    title="EventHallusion: right answers about events in videos, and right descriptions.",
    unit="videos",
    keys=Keys(
        id=("id",),
        response=_RESPONSE,
        label=_LABEL,
        media=("video", "group_id", "id"),
        fields={"split": ("split",), _NAME: (_NAME,), **_SAID, **_HELD},
        values={"split": FileNames({split: split for split in SPLITS})},
        optional=(*_SAID, *_HELD),
    ),
    bundle=Bundling(name=(_NAME,)),
    unfold=_rows,
    asking=plain("{{question}}{{instruction}}"),
    complete=_completed,
    seen=("judgement",),
    places={"split": SPLITS},
    variants=(
        AnswerVariant(
            name="published",
            meaning="The released script: unparsed answers and judgements are wrong.",
            parse=by_name(
                DESCRIPTION,
                compared_by(_first_letters_unmarked, "judgement", of="judgement"),
                compared_by(_first_letters, "first letters"),
            ),
            missing="wrong",
        ),
        AnswerVariant(
            name="corrected",
            meaning="Whole words are parsed; unparsed answers and failed judgements do not count.",
            parse=by_name(
                DESCRIPTION,
                compared_by(yes_no_at_start, "judgement", of="judgement"),
                compared_by(_first_word_or_clear, "first word"),
            ),
            unparsed="unscored",
        ),
    ),
    options=(
        verdicts_option("judgements", "Judgements of descriptions.", "those of the file"),
        soft_option(
            "P(right)",
            "Needs a judge of descriptions with log-probabilities. Descriptions without a "
            "probability count by their verdict.",
        ),
    ),
    judged=JudgedAnswers(
        choices={"yes": "yes", "no": "no"},
        prompts={split: f"event_hallusion_{split}" for split in SPLITS},
        slots={"event": "reference", "description": "response"},
    ),
    scores=(
        *_ACCURACIES,
        unparsed_rate("asked", "questions", name="question_unparsed_rate", among=_asks),
        unparsed_rate(
            "judged",
            "judged descriptions",
            name="description_unparsed_rate",
            column="undecided",
            noun="judgements",
            among=_describes,
        ),
    ),
    ranked_by=("question_accuracy",),
    trial=AnswersItem(
        id="1",
        fields={"split": "entire"},
        answers=(
            Answer(name="1", response="No.", label="no"),
            Answer(
                name=DESCRIPTION,
                response="A dog runs.",
                label="yes",
                fields={"description": "", "judgement": "Yes.", "reference": "A dog runs."},
            ),
        ),
    ),
    group_by=("split",),
    base=_Videos,
)
"""The declaration."""
EventHallusionMetric = metric_of(BENCHMARK)
"""The metric."""
