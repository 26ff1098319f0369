"""OpenCHAIR: objects of captions, of any kind, that a judge does not find in the image's caption.

Ben-Kish et al., 2023; released scripts ``OpenCHAIR/evaluate.py`` and ``utils.py``. An item is a
caption with the objects that were extracted from it and the judge's answer about each: whether the
image contains the object, by its ground-truth caption. A repeated object counts again.

* ``openchair`` = no / (yes + no), over all mentions of all captions
* ``unsure_rate``, ``ignored_rate``, ``unparsed_rate`` = mentions with such an answer / mentions

The objects painting, drawing, photo, picture, portrait and photograph are ignored, whatever the
judge says. Captions without objects add nothing.

* ``published`` follows the script: commas, full stops and semicolons are deleted, and "yes", "no"
  or "not", and "unsure" are looked for in this order among the words between single blanks. "I am
  not sure" is therefore no, and "No!" is nothing. The script stops where no answer is yes, or none
  is no: the score is undefined.
* ``corrected`` takes the first of the words yes, no and unsure, and knows "not sure" and "not
  clear" as unsure. The score is 0 or 1 where one side is empty.

The script extracts objects with spaCy and a table of concreteness, and judges with Llama-2-70b.
Here objects are given, and judged by any language model, with a prompt of our own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from msgspec import structs

from .answers.answer_items import HeldAnswers, in_columns
from .answers.answer_scores import AnswerScore, Bundle, Count, combined, count, share
from .answers.answers_metric import AnswersMetric
from .answers.closed_questions import (
    Answer,
    AnswerParser,
    AnswersItem,
    AnswerVariant,
    ClosedQuestions,
    JudgedAnswers,
    Keys,
    Parsed,
)
from .answers.declared_metrics import metric_of
from .framework.arrays import FloatArray, np
from .framework.asking import OwnAsking, plain
from .framework.columns_and_scores import ScoreDefinition
from .framework.metric import verdicts_option

IGNORED = frozenset(("painting", "drawing", "photo", "picture", "portrait", "photograph"))
"""Objects that are ignored."""
IGNORE = "ignore"
"""The parsed answer of ignored objects."""
# The first of these words counts: "not sure, but yes" is unsure.
_FIRST = re.compile(r"\b(?:(yes|no)|unsure|not\s+sure|not\s+clear)\b", re.IGNORECASE)
_DELETED = str.maketrans({",": "", ".": "", ";": "", "\n": " "})


def _published(text: str) -> str | None:
    words = text.strip().lower().translate(_DELETED).split(" ")
    if "yes" in words:
        return "yes"
    return "no" if "no" in words or "not" in words else "unsure" if "unsure" in words else None


def _corrected(text: str) -> str | None:
    found = _FIRST.search(text)
    return None if found is None else (found[1] or "unsure").lower()


def _judged_by(read: Callable[[str], str | None], how: str) -> AnswerParser:
    def parse(answer: Answer) -> Parsed:
        value = IGNORE if answer.response in IGNORED else read(answer.fields.get("judgement", ""))
        return Parsed(value, value == "yes", how, counts=value in ("yes", "no"))

    return parse


def _completed(answer: Answer, record: Mapping[str, object]) -> Answer:
    """Return a mention whose judgement is absent, rather than empty, if there is none."""
    fields = {name: text for name, text in answer.fields.items() if name in record or text}
    return structs.replace(answer, fields=fields)


def _said(name: str, value: str | None) -> Count:
    # Answers that are neither yes nor no do not count in the score, so that they are "unread".
    return count(name, f"mentions: {name}", lambda a: a.value == value, unread=True)


def _rate(name: str, value: str | None, meaning: str) -> AnswerScore:
    how, counted = f"{meaning} / mentions", _said(name, value)
    return share(f"{name}_rate", how, counted, _MENTIONS, direction="lower", bounded=False)


_NO, _JUDGED = _said("no", "no"), count("judged", "mentions that are judged yes or no")
_MENTIONS = count("mentions", "mentions of objects", unread=True)
_MEANING = "mentions judged no / mentions judged yes or no"
_CORRECTED = share("openchair", _MEANING, _NO, _JUDGED, direction="lower", bounded=False, own=True)
_RATES = (
    _rate("unsure", "unsure", "unsure answers"),
    _rate("ignored", IGNORE, "ignored objects"),
    _rate("unparsed", None, "answers that could not be parsed"),
)


def _of_both(no: FloatArray, judged: FloatArray) -> FloatArray:
    # The released script stops with a key error without a yes, or without a no.
    both = (no > 0) & (no < judged)
    return np.where(both, no / np.where(both, judged, 1), np.nan)


_PUBLISHED = combined(
    "openchair", _MEANING, _of_both, (_NO, _JUDGED), n=_JUDGED, direction="lower", bounded=False
)


def _undefined(totals: Mapping[str, float]) -> Iterator[str]:
    """Yield why the score is undefined, where the released script stops."""
    no, judged = totals["no"], totals["judged"]
    if totals["mentions"] and not 0 < no < judged:
        lacking = "yes" if no else "no" if judged else "yes or no"
        yield (
            f"openchair is undefined: no mention is judged {lacking}, where the released script "
            "stops. The variant corrected has a score if any mention is judged"
        )


def _mention(number: str, thing: str, said: str) -> Answer:
    fields = {"judgement": said, "reference": "A brown dog sleeps on a sofa."}
    return Answer(response=thing, name=number, fields=fields)


_COLUMNS = {"generated_objs": "object", "judge_texts": "judgement"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Captions(AnswersMetric):
    """A metric of captions; one without a judged object counts, and adds nothing."""

    @classmethod
    def held_answers(cls, record: Mapping[str, object]) -> HeldAnswers | None:
        """Return the objects of a caption, with their judgements if it has some.

        Raises:
            ValueError: It has no list of objects.
        """
        objects, *_ = _COLUMNS
        if record.get(objects) is None:
            found = ", ".join(sorted(key for key in record if record[key] is not None))
            fault = f"no key for the answers: tried {objects}; found {found}"
            raise ValueError(fault, "Give it this name")
        return in_columns(record, _COLUMNS)

    def counts_bundle(self, bundle: Bundle) -> bool:  # noqa: ARG002
        """Return True: objects without a verdict are left out."""
        return True

    @classmethod
    def trial_value(cls, score: ScoreDefinition) -> float:  # noqa: ARG003 - the main one
        """Return the score of the trial item: the released rule needs an object of both kinds."""
        return 0.5


BENCHMARK = ClosedQuestions(
    name="openchair",
    title="OpenCHAIR: objects of captions that a judge does not find in the reference.",
    unit="captions",
    keys=Keys(
        response=("object",),
        label=(),
        id=("id", "image_id"),
        media=("image", "image_id"),
        fields={
            "judgement": ("judgement",),
            "reference": ("gt_caption", "reference"),
            "caption": ("generated_caption", "caption"),
            **{key: (key,) for key in _COLUMNS},
        },
        optional=("judgement", "reference", "caption", *_COLUMNS),
    ),
    labels=(),
    # Objects of the captions are extracted afterwards, by a tagger of the user's.
    asking=OwnAsking(
        protocols=plain("Describe this image."), response="generated_caption", max_tokens=1024
    ),
    seen=("judgement",),
    complete=_completed,
    variants=(
        AnswerVariant(
            name="published",
            meaning="The released script: not sure is no; undefined without a yes or a no.",
            parse=_judged_by(_published, "words"),
            unparsed="unscored",
            scores=(_PUBLISHED, *_RATES),
            notes=_undefined,
        ),
        AnswerVariant(
            name="corrected",
            meaning="The first of the words yes, no and unsure.",
            parse=_judged_by(_corrected, "first word"),
            unparsed="unscored",
        ),
    ),
    options=(verdicts_option("judgements", "Judgements of objects.", "those of the file"),),
    judged=JudgedAnswers(
        choices={"yes": "yes", "no": "no", "unsure": "unsure"},
        prompts={"": "openchair"},
        slots={"caption": "reference", "object": "response"},
    ),
    scores=(_CORRECTED, *_RATES),
    ranked_by=("openchair",),
    trial=AnswersItem(
        id="1", answers=(_mention("1", "dog", "yes"), _mention("2", "airplane", "no"))
    ),
    base=_Captions,
)
"""The declaration."""
OpenchairMetric = metric_of(BENCHMARK)
"""The metric."""
