"""VideoHallucer: pairs of questions about what a video shows and does not show.

Wang et al., 2024; released script ``evaluation_utils.py``, ``cal_score``. A pair is a basic
question, about what the video shows, and a hallucinated one.

* ``basic_accuracy``, ``hallucination_accuracy`` = right answers / pairs
* ``pair_accuracy`` = pairs with two right answers / pairs
* ``mean_…_accuracy``: the means over the paper's five sets, with equal weights. None if one of them
  has no pair.
* ``yes_percent_difference`` = share of yes answers - share of yes labels
* ``false_positive_ratio`` = wrong answers with the label no / wrong answers
* ``unparsed_rate`` = pairs with an answer that could not be parsed / pairs with two answers

``published`` follows the released script: an answer is right if it contains the label as a word, in
any letter case. "No, ... Yes" is therefore right for both labels. For the yes bias, a right answer
counts as its label and a wrong one as the opposite. ``corrected`` uses the strict parser of yes and
no; a pair with an unparsed answer is unscored.

Differences from the released scripts: the script of the bias uses the hallucinated question if the
basic answer is wrong, and the reverse, and counts answers twice; here every answer counts once. The
released means are over the sets that were run; here they need all five.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from .answers.answer_items import with_lists
from .answers.answer_scores import (
    AnswerScore,
    Bundle,
    Count,
    are_right,
    count,
    count_groups,
    is_right,
    mean,
    named,
    share,
)
from .answers.closed_questions import (
    Answer,
    AnswersItem,
    AnswerVariant,
    Bundling,
    ClosedQuestions,
    FileNames,
    Keys,
    Parsed,
    compared_by,
)
from .answers.yes_no import YES_NO_PARSERS, yes_bias
from .framework.asking import name_under

PAPER_SETS = (
    "object_relation",
    "temporal",
    "semantic_detail",
    "external_factual",
    "external_nonfactual",
)
"""The sets that the paper's overall accuracy is the mean of."""
SETS = (*PAPER_SETS, "interaction", "fact_detect")
"""All sets."""
BASIC = "basic"
"""The question about what the video shows."""
HALLUCINATION = "hallucination"
"""The question about what it does not show."""
_PAIR, _ROLE = ("pair_id", "pair"), ("role", "question_type", "question_kind")
_ROLES = {BASIC: "about what the video shows", HALLUCINATION: "about what it does not show"}


def _questions(
    records: Sequence[Mapping[str, object]], _key: str
) -> Iterator[tuple[int, Mapping[str, object] | ValueError]]:
    """Yield the questions of records that hold a pair, by its number in its set, and others.

    Each set counts from 0, in a file of its own and in one of all sets.
    """
    pairs: dict[str, int] = defaultdict(int)
    for place, given in enumerate(records):
        record = with_lists(given, _ROLES)
        of_set = name_under(record, ("set",)).casefold()
        number, pairs[of_set] = pairs[of_set], pairs[of_set] + 1
        held = {role: each for role in _ROLES if isinstance(each := record.get(role), Mapping)}
        if lacking := _ROLES.keys() - (_ROLES if name_under(record, _PAIR) else held):
            fault = (
                f"no {' and no '.join(sorted(lacking))} answer: tried "
                f"{', '.join((*_ROLES, *_PAIR))}; found {', '.join(sorted(record))}"
            )
            remedy = f"Write each pair as an object with {' and '.join(_ROLES)}, or give each "
            yield place, ValueError(fault, f"{remedy}question its {_PAIR[0]}")
            continue
        rest = {name: value for name, value in record.items() if name not in _ROLES}
        for role, question in held.items():
            yield place, {**rest, **question, _PAIR[0]: number, _ROLE[0]: role}
        if not held:
            yield place, record


_WORDS = {label: re.compile(rf"\b{label}\b", re.IGNORECASE) for label in ("yes", "no")}
_OPPOSITE = {"yes": "no", "no": "yes"}


def _by_word(answer: Answer) -> Parsed:
    # The released script looks for the label alone: "No, ... Yes" is right either way.
    text, other = answer.response or "", _OPPOSITE[answer.label]
    right = _WORDS[answer.label].search(text) is not None
    found = answer.label if right else other if _WORDS[other].search(text) else None
    return Parsed(found, right, "word")


def _unread(pair: Bundle) -> bool:
    return any(answer.unparsed == "unscored" for answer in pair)


_PAIRS = count_groups("parsed", "pairs whose answers count")
_RIGHT = {
    **{
        name: count(f"{name}_right", f"right answers to {kind} questions", named(name, is_right))
        for name, kind in ((BASIC, "basic"), (HALLUCINATION, "hallucinated"))
    },
    "pair": count_groups("pair_right", "pairs with two right answers", are_right),
}


def _accuracy(kind: str, right: Count) -> AnswerScore:
    return share(f"{kind}_accuracy", f"{right.meaning} / pairs", right, _PAIRS, own=True)


_ACCURACIES = [_accuracy(kind, right) for kind, right in _RIGHT.items()]

BENCHMARK = ClosedQuestions(
    name="video-hallucer",
    title="VideoHallucer: pairs of questions about what videos show and do not show.",
    unit="pairs",
    keys=Keys(
        response=("predict", "prediction", "model_prediction", "response", "output"),
        label=("answer", "label"),
        media=("video",),
        fields={
            "set": ("set",),
            "kind": ("type",),
            "pair": _PAIR,
            "role": _ROLE,
            **{role: (role,) for role in _ROLES},
        },
        values={
            "set": FileNames(
                {
                    # The names of the released script, with which its files begin.
                    "obj_rel": "object_relation",
                    "semantic": "semantic_detail",
                    "fact": "external_factual",
                    "nonfact": "external_nonfactual",
                    "factdet": "fact_detect",
                    **{name: name for name in SETS},
                }
            )
        },
        optional=("kind", "pair", *_ROLES),
    ),
    bundle=Bundling(by=("pair",), name=("role",)),
    unfold=_questions,
    places={"set": SETS, "role": _ROLES},
    variants=(
        AnswerVariant(
            name="published",
            meaning="Reproduces the released script: right if the label is a word of the answer.",
            parse=_by_word,
        ),
        AnswerVariant(
            name="corrected",
            meaning="Parses a clear yes or a clear no; pairs with another answer are unscored.",
            parse=compared_by(YES_NO_PARSERS["strict"], "strict"),
            unparsed="unscored",
        ),
    ),
    scores=(
        *_ACCURACIES,
        *(mean(score, "set", PAPER_SETS, "the paper's five sets") for score in _ACCURACIES),
        *yes_bias(),
        share(
            # Of pairs, and not of answers: one unread answer takes its pair out of all scores.
            "unparsed_rate",
            "pairs with an answer that could not be parsed / pairs",
            count_groups(
                "unparsed", "pairs with an answer that could not be parsed", _unread, unread=True
            ),
            count_groups("answered", "pairs with two answers", unread=True),
            direction="lower",
            bounded=False,
        ),
    ),
    ranked_by=("pair_accuracy",),
    trial=AnswersItem(
        id="1",
        fields={"set": SETS[0]},
        answers=(
            Answer(name=BASIC, response="Yes.", label="yes"),
            Answer(name=HALLUCINATION, response="No.", label="no"),
        ),
    ),
    group_by=("set",),
)
"""The declaration."""
