"""VidHalluc: actions, their order and scene changes in pairs of videos that look and mean alike.

Li et al., 2024; released scripts ``eval_bqa.py``, ``eval_mcq.py`` and ``eval_tsh.py``; the fourth
task, changes of the scene, is in ``scene_changes``.

* ``vidhalluc-bqa``: a question of several clips with a yes or a no for each. It is right if all
  its clips are.
* ``vidhalluc-mcq``: a clip with four actions, of which one or more are right.
* ``vidhalluc-tsh``: a video with two actions, A and B, whose order is asked.

* ``accuracy`` = right questions / questions
* ``unparsed_rate`` = missing or unparsed answers / answers

``published`` reproduces the scripts, including their known bugs:

* A yes or no is the text before the first full stop and the first comma, in any case. "Yes it is"
  and "**Yes**" are wrong, and so is a clip without an answer. A question without any answer, of an
  unknown id or behind the end of a list, leaves the denominator. Questions are joined by position.
* Letters are all capitals A to D that stand alone, such as the article in "A person is running".
  "AC" and "b" are not parsed. Without a letter, the first choice whose text occurs is chosen, so
  that "running" hides "running on a track". No letter equals a label without a letter.
* Orders are read by patterns that exclude single letters instead of words, so that "Action B
  happens after Action A" is read as BA. Brackets before a full stop or a space may be marks.

``corrected`` reads the first yes or no as a word; letters alone or joined, but no article, or else
the longest choices; and the order of whole words, with any text between them and repeated actions
merged. Missing answers count as wrong, also those of whole questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ..answers.answer_scores import all_right, unparsed_rate
from ..answers.answers_metric import metric_of
from ..answers.closed_questions import (
    Answer,
    AnswerParser,
    AnswersItem,
    AnswerVariant,
    Bundling,
    ClosedQuestions,
    Keys,
    compared_by,
)
from ..framework.asking import Asking, plain
from . import action_parsers, scene_changes

_Records: TypeAlias = Sequence[Mapping[str, object]]
_Unfolded: TypeAlias = Iterator[tuple[int, Mapping[str, object]]]
# A dict is found in a fifth of the time of another mapping.
_OBJECT = (dict, Mapping)


def _questions(records: _Records, key: str) -> _Unfolded:
    """Yield the questions of objects id -> list, by position; other records as they are."""
    # A mapping in memory is split into records.
    named = [{str(r["id"]): r["text"]} if r.keys() == {"id", "text"} else r for r in records]
    lists = [each for values in named for each in values.values() if isinstance(each, list)]
    asked = [each for listed in lists for each in listed if isinstance(each, _OBJECT)]
    if asked and not any("a" in each for each in asked):
        found = ", ".join(sorted({name for each in asked for name in each}))
        raise ValueError(f"no key for clips: tried a; found {found}", "Give it this name")
    for place, values in enumerate(named):
        if not all(isinstance(each, list) or each is None for each in values.values()):
            yield place, records[place]
            continue
        for name, listed in values.items():
            for number, each in enumerate(listed if isinstance(listed, list) else ()):
                clips = each.get("a") or {} if isinstance(each, _OBJECT) else None
                if not isinstance(clips, _OBJECT) or not (clips or key == "response"):
                    raise ValueError(f"question {number + 1} of {name!r} has no clips", "Add them")
                own = {"question_id": f"{name}_{number}", "video": name, "question": each.get("q")}
                yield place, {**own, f"{key}s": clips}


def _clips(records: _Records, _key: str) -> _Unfolded:
    """Yield the clips of an id, if a record has nothing else; other records as they are."""
    for place, values in enumerate(records):
        clips = {name: each for name, each in values.items() if isinstance(each, _OBJECT)}
        if "id" not in values or not values.keys() - {"id"} <= clips.keys():
            yield place, values
            continue
        for name, each in clips.items():
            own = {"id": f"{values['id']}_{name}", "video": values["id"], "clip": name}
            yield place, {**each, **own}


def _variants(published: AnswerParser, corrected: AnswerParser) -> tuple[AnswerVariant, ...]:
    return (
        AnswerVariant(
            name="published",
            meaning="The released script; unparsed answers are wrong.",
            parse=published,
            missing="wrong in part",
        ),
        AnswerVariant(
            name="corrected",
            meaning="Reads whole words; missing and unparsed answers are wrong.",
            parse=corrected,
            missing="wrong",
        ),
    )


BINARY = ClosedQuestions(
    name="vidhalluc-bqa",
    family="vidhalluc",
    summary="Questions about an action that are right for all their clips.",
    title="VidHalluc: a yes or no for each of several clips.",
    papers=(scene_changes.PAPER,),
    unit="questions",
    keys=Keys(
        response=("response", "prediction", "answer", "a"),
        label=("label", "truth", "gt"),
        question=("question", "q"),
        media=("video", "video_id"),
        fields={"question_id": ("question_id", "id"), "clip": ("clip", "clip_id")},
    ),
    bundle=Bundling(
        by=("question_id",), name=("clip",), columns={"labels": "label", "responses": "response"}
    ),
    question_files=True,
    unfold=_questions,
    incomplete=True,
    questions_name="binary_qa.json",
    variants=_variants(
        compared_by(action_parsers.yes_no_before_marks, "before marks"),
        compared_by(action_parsers.first_yes_no, "first yes or no"),
    ),
    scores=(
        all_right("accuracy", "right questions / questions", own=True),
        unparsed_rate("answers", "answers of clips"),
    ),
    main_score="accuracy",
    asking=Asking(media=("clip",)),
    trial=AnswersItem(id="1", answers=(Answer(response="Yes.", label="yes", name="1"),)),
)
"""Binary questions."""
CHOICES = replace(
    BINARY,
    name="vidhalluc-mcq",
    summary="Clips whose actions are all chosen, and no others.",
    title="VidHalluc: one or more of four actions for each clip.",
    keys=Keys(
        response=("Model Answer", "response", "prediction"),
        label=("Correct Answer", "label", "answer"),
        question=("Question", "question"),
        options=("Choices", "choices", "options"),
        media=("video", "video_id"),
    ),
    labels=(),
    choices=True,
    bundle=Bundling(),
    question_files=False,
    incomplete=False,
    unfold=_clips,
    complete=action_parsers.with_order,
    asking=Asking(
        # A clip's id is that of its question and its own.
        media=("clip", "video"),
        protocols=plain("{{question}}\n{{options}}\nAnswer with the letters of all right ones."),
    ),
    kept=("order",),
    variants=_variants(action_parsers.choices_published, action_parsers.choices_corrected),
    trial=AnswersItem(
        id="1", answers=(Answer(response="A", label="A", options={"A": "running", "B": "sitting"}),)
    ),
)
"""Multiple choice questions."""
ORDER = replace(
    CHOICES,
    name="vidhalluc-tsh",
    summary="Videos whose two actions are put in the right order.",
    title="VidHalluc: the order of two actions.",
    keys=replace(CHOICES.keys, labels={"ab": "AB", "ba": "BA"}),
    labels=("AB", "BA"),
    choices=False,
    complete=None,
    asking=Asking(
        protocols=plain(
            "{{question}}\nAnswer AB if action A comes first, and BA if action B comes first."
        )
    ),
    kept=(),
    unfold=None,
    variants=_variants(
        compared_by(action_parsers.order_by_patterns, "patterns"),
        compared_by(action_parsers.order_by_words, "words"),
    ),
    trial=AnswersItem(id="1", answers=(Answer(response="AB", label="AB"),)),
)
"""Orders of two actions."""
BENCHMARKS = (BINARY, CHOICES, ORDER, scene_changes.BENCHMARK)
VidhallucBqaMetric, VidhallucMcqMetric, VidhallucTshMetric, VidhallucSthMetric = map(
    metric_of, BENCHMARKS
)
