"""Answers yes and no: their parsers, those of released tools and ours, and their scores.

=============  ====================================================================================
``published``  POPE and LLaVA: up to the first full stop, commas dropped, split at single spaces; a
               word ``No``, ``no`` or ``not`` makes it no, anything else yes (``NO``, ``isn't`` and
               the empty answer are yes)
``opera``      OPERA: full stops and commas dropped from the whole answer; ``No``, ``no``, ``NO``,
               ``not`` or a word that ends in ``n't`` makes it no, anything else yes
``lmms-eval``  the whole answer, stripped and in lower case, is ``yes`` or ``no``; else unread
``vlmevalkit`` punctuation dropped, lower case; one of the words ``yes`` and ``no`` and not the
               other; else unread (the tool then asks a language model; we do not)
``strict``     ours: a clear yes or a clear no, or what an answer that discusses both concludes
               with, as in ``Answer: yes``; one that contradicts itself, hedges or has neither is
               unread
``repope``     RePOPE and other scripts: ``yes`` anywhere, also in ``eyes``, is yes; else
               ``no`` anywhere, also in ``snow``, is no; else unread
``first-word`` ours: the first word ``yes``, or ``no`` where it is not part of a phrase such as
               ``with no collar``; before it, what an answer that begins with neither concludes
               with; an answer that begins with neither and hedges is unread. What follows a
               ``wait`` counts
=============  ====================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Literal, TypeAlias

from ..framework import columns_and_scores as framework
from ..framework.arrays import FloatArray, np
from ..framework.columns_and_scores import ScoreDefinition, Sums
from ..responses.forms import BOXED
from ..responses.thoughts import Division, divided, lmms_eval_division
from .answer_scores import (
    AnswerScore,
    Condition,
    Count,
    ReadAnswer,
    combined,
    count,
    is_any,
    is_right,
    share,
)
from .answer_text import (
    NEGATIONS,
    after_correction,
    plain,
    remembered,
    says_it_is_unsure,
    words_of,
)
from .closed_questions import AnswerVariant, compared_by

YesNo: TypeAlias = Literal["yes", "no"]
"""A parsed yes/no answer."""


def _published(text: str) -> YesNo | None:
    words = text.partition(".")[0].replace(",", "").split(" ")
    return "no" if "No" in words or "not" in words or "no" in words else "yes"


_OPERA_NO = frozenset({"No", "not", "no", "NO"})


def _opera(text: str) -> YesNo | None:
    words = text.replace(".", "").replace(",", "").split(" ")
    return "no" if any(word in _OPERA_NO or word.endswith("n't") for word in words) else "yes"


def _lmms_eval(text: str) -> YesNo | None:
    answer = text.lower().strip()
    return "yes" if answer == "yes" else "no" if answer == "no" else None


# As VLMEvalKit's ``process_punctuation``: a mark next to a space is deleted, any other becomes a
# space. If a comma is between digits, all marks are deleted. Full stops before a digit stay, and so
# does the 33rd (the tool passes a flag, 32, where the number of replacements belongs).
_KIT_MARKS = ';/[]"{}()=+\\_-><@`,?!'
_KIT_COMMA = re.compile(r"\d,\d")
_KIT_STOP = re.compile(r"\.(?!\d)")


def _vlmevalkit(text: str) -> YesNo | None:
    text = text.lower()
    numbers = _KIT_COMMA.search(text) is not None
    out = text
    for mark in _KIT_MARKS:
        if mark in out:
            joined = numbers or f"{mark} " in text or f" {mark}" in text
            out = out.replace(mark, "" if joined else " ")
    words = _KIT_STOP.sub("", out, count=32).split()
    yes, no = "yes" in words, "no" in words
    return None if yes == no else "yes" if yes else "no"


# "There is no dog" denies the object in question; "a dog with no collar" does not.
_EXISTENTIAL = re.compile(
    r"\b(?:there (?:is|are|was|were)|there's|i (?:can )?see|(?:has|have)) no\b"
)
# "The answer is no", perhaps with a quote or a bracket before the word.
_VERDICT = re.compile(r"\banswer(?: to the question)?(?: is|:|) *+:? *+[\"'(]?(?:yes|no)\b")

# The words of other languages that answer a yes/no question, in lower case.
_YES_ABROAD = (
    "sí|si|sim|sì|oui|ja|da|да|так|tak|ano|evet|có|vâng|ya|igen|kyllä|ναι|हाँ|হ্যাঁ|نعم|بله|כן|"
    "ใช่|是|是的|对|对的|對|對的|有|有的|はい|ええ|네|예"
)
_NO_ABROAD = (
    "non|não|nao|nein|nee|nej|nei|нет|ні|nie|ne|nem|nu|ei|hayır|không|tidak|όχι|नहीं|না|لا|خیر|לא|"
    "ไม่ใช่|ไม่|不|不是|不是的|否|没有|沒有|没|无|無|いいえ|いえ|아니요|아니오|아뇨"
)
_ANSWER_ABROAD = "答案|回答|答え|정답|답|respuesta|réponse|resposta|risposta|antwort|ответ"
# With a mark or the end after it: "sim card" and "da vinci" are English.
_ABROAD = re.compile(
    rf"(?:\A|(?<=\n))[^\w\n]*(?:(?:answer|{_ANSWER_ABROAD})\s*:\s*)?"
    rf"(?:({_YES_ABROAD})|{_NO_ABROAD})\s*(?=[,.!;:。、\n]|$)"
)
# "La respuesta es sí." and "答案是：否" anywhere. The verb alone, as in a cut "答案是", is no yes.
_IS_ABROAD = "是|为|為|は|은|는|est|es|é|è|ist|lautet|это"
_ANSWERED_ABROAD = re.compile(
    rf"(?:{_ANSWER_ABROAD})(?: finale?| correct[ae])?\s*+(?:(?:{_IS_ABROAD})\s*+:?|[:—–-])\s*+"
    rf"[\"'「(]*(?:(yes|{_YES_ABROAD})|no|{_NO_ABROAD})(?=[\"'」)]*\s*(?:[,.!;。、\n]|$|です|입니다))"
)


_ASCII_ANSWERS = [word for word in _ANSWER_ABROAD.split("|") if word.isascii()]


def _english(text: str) -> str:
    """Return an answer in lower case with yes and no for those words of other languages."""
    text = _ABROAD.sub(lambda found: "yes" if found[1] else "no", text)
    # English answers, which most are, have no such word for one.
    if text.isascii() and not any(word in text for word in _ASCII_ANSWERS):
        return text
    return _ANSWERED_ABROAD.sub(lambda found: f"answer: {'yes' if found[1] else 'no'}", text)


# "Answer: yes", or what the first or last line, or a paragraph, begins with; "answer yes or no"
# repeats the question. A line may go on after a mark: "No, I see none." Options have letters.
# Bounds keep the search linear in texts of line ends and marks.
_CONCLUSION = re.compile(
    r"(?<!if the )\b(?:answer(?: to (?:the|this|your) question)?|conclusion|verdict|decision)[\"']?"
    r"(?: is| (?:would|should|must) be|\s*+(?:[:=→]|->|[-–—](?=\s)))\s*+:?\s*+[\"'(\[]*+"
    r"(yes|no|true|false)\b(?!\W{0,20}(?:or |and |/)?\W{0,20}(?:yes|no|true|false)\b)"
    r"|(?:^|[.!?\n])\s{0,20}(?:so|therefore|thus|hence|in conclusion)\b[,:]?\s+(yes|no)"
    r"(?=\s*(?:[.,;!]|$))|\n\W{0,20}(?:[a-z]\W{1,3})?(yes|no)\b(?=\s*(?:[.,;!–—]|\W*\Z))[^\n]*\Z"
    r"|\n[^\S\n]{0,20}\n\W{0,20}(?:[a-z]\W{1,3})?(yes|no)\b(?=[^\S\n]*(?:[.,;!–—\n]|\Z))|\A\W*(yes|no)[^\w\n]*(?=\n)"
)
# Most answers have none of these, and looking for the pattern would take half of a parser's time.
_CONCLUDES = re.compile(r"answer|\n|conclu|verdict|decision|so[, ]|therefore|thus|hence")
_SAYS_YES = frozenset({"yes", "true"})


def _concluded(text: str) -> YesNo | None:
    """Return what an answer concludes with; None if it begins with, or concludes with, another."""
    if _CONCLUDES.search(text) is None:
        return None
    said = {found[found.lastindex or 0] in _SAYS_YES for found in _CONCLUSION.finditer(text)}
    if begun := _YES_NO_AT_START.match(text):
        said &= {begun[1] in _SAYS_YES} if len(said) == 1 else set()
    return None if len(said) != 1 else "yes" if said == {True} else "no"


# A no between marks, as in "B. No" and "Therefore, no.", is no part of a phrase.
_NO_ALONE = re.compile(r"(?:^|[.,;:!?()\[\]{}\"'\n])\s{0,20}no\s*(?=[.,;:!?()\[\]{}\"'\n]|$)")
# What an answer repeats of its question.
_OFFERED = re.compile(r"\b(?:yes or no|no or yes|yes ?/ ?no|no ?/ ?yes)\b")


def _without_offer(text: str) -> str:
    """Return an answer without the words "yes or no" of its question, if it has another of them."""
    rest = _OFFERED.sub(" ", text) if "no" in text and "yes" in text else text
    return rest if _YES_NO.search(rest) else text


# After a no, that a thing can't be seen is the answer; that the picture can't be seen is none.
_UNSEEN = re.compile(
    r"^no\b(.*?)\b(?:can't|cannot|can not) see\b"
    r"(?! (?:(?:the|an|any|your|this|that) )?(?:image|picture|photo|video|file|attach))"
)


def _strict(text: str) -> YesNo | None:
    text = _without_offer(_english(plain(text).casefold()))
    words = words_of(text)
    yes, no = "yes" in words, "no" in words
    concluded = _concluded(text)
    if says_it_is_unsure(_UNSEEN.sub(r"no\1", text)):
        return None
    if concluded or yes == no:
        return concluded
    if yes:
        turned = any(word in NEGATIONS or word.endswith("n't") for word in words)
        return None if turned or "cannot" in words else "yes"
    # Elsewhere "no" may belong to another statement, such as "a dog with no collar".
    denies = words[0] == "no" or any(
        phrase.search(text) for phrase in (_EXISTENTIAL, _VERDICT, _NO_ALONE)
    )
    return "no" if denies else None


def _repope(text: str) -> YesNo | None:
    text = text.lower()
    return "yes" if "yes" in text else "no" if "no" in text else None


# "Yes and no", which decides nothing, is looked for before the single words.
_YES_OR_NO = re.compile(r"\b(?:yes (?:and|or) no|no (?:and|or) yes|yes|no)\b")
# A no is an answer of its own next to one of these marks; elsewhere it may belong to a phrase.
_MARKS = ".,;:!?()[]{}|<>$\"'"
_QUOTES = "\"'"
# "Yes. Actually, no." corrects the first word; "actually no dog" goes on.
_TURN = re.compile(
    r"(?:^|[.!?…,;:\n–—-])\s{0,20}(?:sorry|actually|i meant?"
    r"|(?:up)?on (?:a )?(?:closer|second|further) (?:inspection|look|examination)"
    r"|looking (?:closer|more closely|again))\b[\s,.:;!]*(?:i meant?\s+)?(yes|no)"
    r"(?=\s*(?:[.,;!–—]|$))"
)
_TURNS = re.compile(r"sorry|actually|i mean|inspection|look|examination|thought")


def _first_word(text: str) -> YesNo | None:
    text = _without_offer(_english(plain(text).casefold()))
    after = after_correction(text)
    return (_clear_word(plain(after)) if after else None) or _clear_word(text)


def _clear_word(text: str) -> YesNo | None:
    """Return the first clear yes or no of a text without corrections, or its conclusion."""
    if _TURNS.search(text) and (turns := _TURN.findall(text)):
        return "yes" if turns[-1] == "yes" else "no"
    if concluded := _concluded(text):
        return concluded
    # Looked for once: a model in a loop says a word thousands of times.
    is_unsure: bool | None = None
    ends: frozenset[int] | None = None
    for found in _YES_OR_NO.finditer(text):
        before = text[max(0, found.start() - _BESIDE) : found.start()].rstrip()
        after = text[found.end() : found.end() + _BESIDE].lstrip()
        alone = not after or after[0] in _MARKS
        first = not before or before[-1] in _MARKS
        # "Not yes" is neither, and a phrase in quotes, such as "No parking", is on a sign.
        if _DENIES.search(before) or (before[1:] and before[-1] in _QUOTES and not alone):
            continue
        if is_unsure is None and not (first and alone):
            is_unsure = says_it_is_unsure(text)
        if " " in found[0] or (is_unsure and not (first and alone)):
            return None
        if found[0] == "yes":
            return "yes"
        ends = _phrase_ends(text) if ends is None else ends
        if first or alone or found.end() in ends:
            return "no"
    return None


# All that is looked at is beside a word, and texts may be long.
_BESIDE = 64
_DENIES = re.compile(r"(?:\bnot|n't)$")
_YES_NO = re.compile(r"\b(yes|no)\b", re.IGNORECASE)
_YES_NO_AT_START = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)


def first_yes_no(text: str) -> YesNo | None:
    """Return the first word that is yes or no, wherever it is."""
    return _yes_no_in(_YES_NO.search(text))


def yes_no_at_start(text: str) -> YesNo | None:
    """Return the first word of a text if it is yes or no."""
    return _yes_no_in(_YES_NO_AT_START.match(text))


def _yes_no_in(found: re.Match[str] | None) -> YesNo | None:
    return None if found is None else "yes" if found[1].lower() == "yes" else "no"


def _phrase_ends(text: str) -> frozenset[int]:
    """Return where the phrases of a text end that a yes or a no ends."""
    phrases = (_EXISTENTIAL, _VERDICT)
    return frozenset([found.end() for phrase in phrases for found in phrase.finditer(text)])


YES_NO_PARSERS: Mapping[str, Callable[[str], YesNo | None]] = MappingProxyType(
    {
        "published": remembered(_published),
        "opera": remembered(_opera),
        "lmms-eval": remembered(_lmms_eval),
        "vlmevalkit": remembered(_vlmevalkit),
        "repope": remembered(_repope),
        "first-word": remembered(_first_word),
        "strict": remembered(_strict),
    }
)
"""Name -> parser. A parser returns ``yes``, ``no``, or None if its rule does not apply."""


PARSER_DIVISIONS: Mapping[str, Division] = MappingProxyType(
    {
        "lmms-eval": lmms_eval_division,
        # The tool's own rule for boxes is part of the parser.
        "vlmevalkit": partial(divided, kept=frozenset({BOXED})),
    }
)
"""Name of a parser -> how its tool tells thoughts from answers, where it has a rule of its own."""


CONTAINS_VARIANTS = (
    AnswerVariant(
        name="published",
        meaning="Reproduces the released script: yes anywhere is yes, else no anywhere is no.",
        parse=compared_by(YES_NO_PARSERS["repope"], "contains"),
    ),
    AnswerVariant(
        name="corrected",
        meaning="Reads words: the first clear yes or no; any other answer counts as wrong.",
        parse=compared_by(YES_NO_PARSERS["first-word"], "first-word"),
    ),
)
"""Variants of benchmarks whose released scripts look for the letters yes and no."""


def labelled(label: str, also: Condition = is_any) -> Condition:
    """Return the condition that an answer has a label, any if it is empty, and meets another."""
    return lambda answer: label in ("", answer.label) and also(answer)


def _false_no(answer: ReadAnswer) -> bool:
    said_no = answer.value == "no" or answer.unparsed == "no"
    return answer.label == "yes" and said_no


def object_scores() -> tuple[AnswerScore, ...]:
    """Return ``accuracy``, ``precision``, ``recall``, ``f1`` and ``yes_ratio``.

    As in POPE (Li et al. 2023, section 5.1), whose questions ask whether an object is there: yes is
    the positive class. All have the number of answers that count as ``n``.
    """
    answered = count("answered", "answers that count in the accuracy")
    tp = count("tp", "yes to objects that are there", lambda a: a.value == "yes" and a.right)
    fp = count(
        "fp", "yes to objects that are not there", lambda a: a.value == "yes" and not a.right
    )
    tn = count("tn", "no to objects that are not there", lambda a: a.value == "no" and a.right)
    fn = count("fn", "no to objects that are there", _false_no)
    # An unparsed answer is wrong in the accuracy, but only where it counts as a no also in f1.
    wrong = count(
        "wrong",
        "wrong answers that count in f1",
        lambda a: not is_right(a) and (a.value is not None or _false_no(a)),
    )
    there = "right yes answers / questions about objects that are there"
    return (
        share("accuracy", "right answers / answers", (tp, tn), answered, own=True),
        share("precision", "right yes answers / yes answers", tp, (tp, fp), n=answered),
        share("recall", there, tp, (tp, fn), n=answered),
        share("f1", "harmonic mean of precision and recall", (tp, tp), (tp, tp, wrong), n=answered),
        share(
            "yes_ratio",
            "yes answers / answers",
            (tp, fp),
            answered,
            direction="neither",
            bounded=False,
        ),
    )


def matthews_correlation(
    meaning: str, *, meanings: tuple[str, str, str, str], among: Condition = is_any
) -> AnswerScore:
    """Return ``mcc``, Matthews correlation of answers and labels; 0 where a side is constant.

    Args:
        meaning: Short description of the score.
        meanings: What right and wrong answers with the label yes are, and wrong and right ones with
            the label no.
        among: The answers that count.
    """

    def cell(name: str, meaning: str, label: str, *, right: bool) -> Count:
        return count(name, meaning, labelled(label, lambda a: a.right is right and among(a)))

    kinds = (("tp", "yes", True), ("fn", "yes", False), ("fp", "no", False), ("tn", "no", True))
    cells = [
        cell(name, each, label, right=right)
        for (name, label, right), each in zip(kinds, meanings, strict=True)
    ]
    return combined("mcc", meaning, _mcc, tuple(cells), bounded=False, low=-1.0)


def _mcc(tp: FloatArray, fn: FloatArray, fp: FloatArray, tn: FloatArray) -> FloatArray:
    # Damaged sums may have counts below zero; nothing is divided by their root.
    below = np.sqrt(np.maximum((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn), 0.0))
    found = (tp * tn - fp * fn) / np.where(below, below, 1)
    return np.where(tp + fn + fp + tn, found, np.nan)


def yes_bias(
    answers: str = "answers", wrong: str = "wrong", among: Condition = is_any
) -> tuple[AnswerScore, AnswerScore]:
    """Return ``yes_percent_difference`` and ``false_positive_ratio``: a model's bias towards yes.

    HallusionBench defines them (``utils.py``), and VideoHallucer's script took them from there. As
    in these scripts, a right answer counts as its label, and any other as the opposite.

    Args:
        answers: Column of the number of answers.
        wrong: Column of the number of wrong answers.
        among: The answers that count.
    """

    def each(when: Condition) -> Condition:
        return lambda answer: among(answer) and when(answer)

    every = count(answers, "answers that count", among)
    said = count("yes_answers", "of these, yes", each(lambda a: a.right == (a.label == "yes")))
    labels = count("yes_labels", "of these, with the label yes", each(lambda a: a.label == "yes"))
    failed = count(wrong, "of these, wrong", each(lambda a: not a.right))
    to_no = count(
        "wrong_yes",
        "of these, wrong with the label no",
        each(lambda a: not a.right and a.label == "no"),
    )
    over = framework.ratio("more", answers)

    def difference(sums: Sums) -> FloatArray:
        return over({"more": sums["yes_answers"] - sums["yes_labels"], answers: sums[answers]})

    more = ScoreDefinition(
        name="yes_percent_difference",
        meaning="share of yes answers - share of yes labels",
        columns=("yes_answers", "yes_labels", answers),
        value=difference,
        count=answers,
        bounded=False,
        low=-1.0,
    )
    return (
        AnswerScore(definition=more, counts=(every, said, labels)),
        share(
            "false_positive_ratio",
            "wrong answers with the label no / wrong answers",
            to_no,
            failed,
            direction="neither",
            bounded=False,
        ),
    )
