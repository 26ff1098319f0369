"""Parsers of VidHalluc's answers: yes or no, letters of choices, and orders of two actions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from ..answers.answer_text import folded, plain, says_it_is_unsure
from ..answers.closed_questions import Answer, Parsed

_YES_NO = re.compile(r"\b(yes|no)\b", re.IGNORECASE)


def yes_no_before_marks(text: str) -> str | None:
    """Return what is before the first full stop and comma if it is yes or no, as released."""
    word = text.strip().partition(".")[0].partition(",")[0].strip().lower()
    return word if word in ("yes", "no") else None


def first_yes_no(text: str) -> str | None:
    """Return the first word that is yes or no."""
    found = _YES_NO.search(text)
    return found[1].lower() if found else None


_ALONE = re.compile(r"\b[A-D]\b")
# An "A" before another word is an article, and "B-roll" is a word.
_LETTER = re.compile(r"(?<![\w'-])(?:[B-D]|A(?!\s+[a-z]))(?![\w'-])")
_ONLY_LETTERS = re.compile(r"[A-D]{1,4}|[a-d]")
_AROUND_LETTERS = frozenset(
    ("and", "answer", "answers", "are", "choice", "choices", "is", "option", "options", "or", "the")
)


def _letters_alone(answer: Answer) -> set[str]:
    text = answer.response or ""
    if found := set(_ALONE.findall(text)):
        return found
    # Files with another order than that of the letters have it in a field.
    letters = answer.fields.get("order", "").split() or sorted(answer.options)
    named = (each for each in letters if answer.options[each].lower() in text.lower())
    return {next(named, "")} - {""}


def _letters_of(answer: Answer) -> set[str]:
    text = plain(answer.response or "").replace("_", " ")
    words = [word for word in re.findall(r"\w+", text) if word.lower() not in _AROUND_LETTERS]
    if words and all(map(_ONLY_LETTERS.fullmatch, words)):
        return set("".join(words).upper())
    marks = _LETTER.finditer(text)
    found = {m[0] for m in marks if not re.search(r"\b(?:not|n't)\W*$", text[: m.start()])}
    if found:
        return found
    said = f" {folded(text)} "
    texts = {each: f" {folded(option)} " for each, option in answer.options.items()}
    named = {each: option for each, option in texts.items() if option.strip() and option in said}
    longer = [*named.values()]
    return {a for a, one in named.items() if not any(one in b and one != b for b in longer)}


def with_order(answer: Answer, _record: Mapping[str, object]) -> Answer:
    """Return an answer with the order of its choices, where the file has another than letters."""
    if sorted(answer.options) == [*answer.options]:
        return answer
    return answer._replace(fields={"order": " ".join(answer.options)})


def choices_published(answer: Answer) -> Parsed:
    """Return the letters alone, or the first choice whose text occurs."""
    letters = _letters_alone(answer)
    return _parsed(letters, letters == _labelled(answer), "letters alone, or a choice")


def choices_corrected(answer: Answer) -> Parsed:
    """Return the letters alone or joined, or the longest choices whose texts occur."""
    letters = _letters_of(answer)
    right = bool(letters) and letters == _labelled(answer)
    return _parsed(letters, right, "letters, or choices")


def _labelled(answer: Answer) -> set[str]:
    return set(re.findall("[A-D]", answer.label))


def _parsed(letters: set[str], right: bool, how: str) -> Parsed:
    return Parsed(", ".join(sorted(letters)) or None, right, how)


_MARK = r"(action [ab]|[ab][\.\)])"
# As released: the classes exclude the letters of the words.
_PATTERNS = {
    word: re.compile(rf"{_MARK}[^{word}]+{word}[^action]*?{_MARK}")
    for word in ("before", "then", "after")
}


def order_by_patterns(text: str) -> str | None:
    """Return the order as the released script reads it, which may be another text than AB or BA."""
    text = text.lower()
    if text in ("ab", "ba", "a", "b"):
        return text.upper()
    named = [each for each in "ab" if f"action {each}" in text]
    if "not clear" in text or "no clear" in text or not named:
        return None
    if len(named) == 1:
        return named[0].upper()
    word = next((each for each in _PATTERNS if each in text), "")
    found = _PATTERNS[word].search(text) if word else None
    marks = list(found.groups()) if found else re.findall(_MARK, text)
    order = [mark[-1] for mark in marks]
    return "".join(order[::-1] if found and word == "after" else order).upper()


_ACTION = re.compile(r"\baction\s+([ab])\b")
_LISTED = re.compile(r"(?<!\w)([ab])[.):](?!\w)")
_TURNING = re.compile(r"\bafter\b|\bpreceded\b|(?<!then )\b(?:follows|succeeds)\b")
_KEEPING = re.compile(r"\bbefore\b|\bthen\b|\bprecedes\b|\bfollowed\b")


def order_by_words(text: str) -> str | None:
    """Return ``AB`` or ``BA`` by whole words such as before, after and then."""
    text = re.sub(r"\([^)]*\)", " ", plain(text).lower())
    letters = re.sub(r"\baction\b|\band\b|\bthen\b|[\W_]", "", text)
    if letters in ("ab", "ba"):
        return letters.upper()
    if says_it_is_unsure(text) or "not clear" in text or "no clear" in text:
        return None
    marks = list(_ACTION.finditer(text)) or list(_LISTED.finditer(text))
    pairs = [(x, y) for x, y in pairwise(marks) if x[1] != y[1]]
    for one, other in pairs:
        between, lead = text[one.end() : other.start()], text[: one.start()].rstrip()
        if _TURNING.search(between) or (lead.endswith("before") and not _KEEPING.search(between)):
            return (other[1] + one[1]).upper()
        if _KEEPING.search(between) or lead.endswith("after"):
            return (one[1] + other[1]).upper()
    return (pairs[0][0][1] + pairs[0][1][1]).upper() if pairs else None
