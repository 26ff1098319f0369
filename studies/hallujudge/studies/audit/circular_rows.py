"""CRPE as VLMEvalKit counts it: four rows of a table that follow each other are one question.

After ``vlmeval/dataset/utils/crpe.py`` and the class ``CRPE`` of ``vlmeval/dataset/image_vqa.py``,
as the package ms-vlmeval 0.0.20 has them (May 2026). Commits before pull request 1205 (opened in
August 2025) count each row by itself; their numbers are not explained here.

* A row is right if the prediction is one character, or begins with A, B, C or D, and its first
  character is that of the table's answer.
* Another prediction is right if it has the answer's text from its fifth character on, in any case.
  Of an answer of four characters or fewer, such as a letter alone, nothing is left: every such
  prediction is right then.
* Rows are taken by fours, whatever was asked; the tool stops where the last four are not whole. It
  looks at no row after the first wrong one, whose category is the question's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hallujudge.sdk.errors import InvalidInputError

from .waterfall import Counts

HARNESS = "vlmevalkit"
"""The tool."""
ITS_RULE = "VLMEvalKit's rule"
TIMES = 4
"""CRPE asks each question four times, with the options rolled on by one."""
_LETTERS = frozenset("ABCD")
# The answer's text follows its letter and a mark, as in "(B) cart".
_TEXT = 4
# What pandas reads in an empty cell, as the tool writes it.
_EMPTY = "nan"
# Texts that pandas 3.1 takes for an empty cell.
_EMPTY_TEXTS = {"", "#N/A", "#N/A N/A", "#NA", "<NA>", "N/A", "n/a", "NA", "NULL", "null", "None"}
_EMPTY_TEXTS |= {"NaN", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}


def is_right(answer: str, prediction: str) -> bool:
    """Return whether the tool takes a prediction for right."""
    first = prediction[:1]
    if len(prediction) == 1 or first in _LETTERS:
        return first == answer[:1]
    return answer[_TEXT:].lower() in prediction.lower()


def rows_of(records: Sequence[Mapping[str, object]]) -> list[Counts]:
    """Return how the tool counts each row of a table by itself.

    Raises:
        InvalidInputError: The last four rows are not whole, where the tool stops.
    """
    if len(records) % TIMES:
        raise InvalidInputError(
            f"the table has {len(records):,} rows: VLMEvalKit stops where they are not a multiple "
            f"of {TIMES}; give the whole table that it wrote"
        )
    return [
        {
            "rows": 1,
            "answered": 1,
            "right": int(is_right(_text(each.get("answer")), _text(each.get("prediction")))),
        }
        for each in records
    ]


def _text(value: object) -> str:
    text = "" if value is None else str(value)
    return _EMPTY if text in _EMPTY_TEXTS else text


def by_question(
    counts: Sequence[Counts], keys: Sequence[object], *, stops: bool = False
) -> list[Counts]:
    """Return counts in which one answer to a question stands for all four.

    Args:
        counts: The counts of each answer; empty for one that is left out, with its question.
        keys: The question of each.
        stops: Whether it is the first wrong answer, or the last one; otherwise it is the first.
    """
    groups: dict[object, list[int]] = {}
    for place, key in enumerate(keys):
        groups.setdefault(key, []).append(place)
    made: list[Counts] = [{} for _ in counts]
    for places in groups.values():
        if len(places) != TIMES or not all(counts[place] for place in places):
            continue
        wrong = next((place for place in places if not counts[place]["right"]), None)
        last = places[-1] if wrong is None else wrong
        at = last if stops else places[0]
        made[at] = {"rows": 1, "answered": 1, "right": int(wrong is None)}
    return made
