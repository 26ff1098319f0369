"""Yes/no answer parsers: those of released tools, and ours.

=============  ====================================================================================
``published``  POPE and LLaVA: up to the first full stop, commas dropped, split at single spaces; a
               word ``No``, ``no`` or ``not`` makes it no, anything else yes (``NO``, ``isn't`` and
               the empty answer are yes)
``opera``      OPERA: full stops and commas dropped from the whole answer; ``No``, ``no``, ``NO``,
               ``not`` or a word that ends in ``n't`` makes it no, anything else yes
``lmms-eval``  the whole answer, stripped and in lower case, is ``yes`` or ``no``; else unread
``vlmevalkit`` punctuation dropped, lower case; one of the words ``yes`` and ``no`` and not the
               other; else unread (the tool then asks a language model; we do not)
``strict``     ours: a clear yes or a clear no; an answer that contradicts itself, hedges or has
               neither is unread
``repope``     RePOPE, DASH-B and ELV-Halluc: ``yes`` anywhere, also in ``eyes``, is yes; else
               ``no`` anywhere, also in ``snow``, is no; else unread
``first-word`` ours: the first word ``yes``, or ``no`` where it is not part of a phrase such as
               ``with no collar``; an answer that begins with neither and hedges is unread
=============  ====================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from ..errors import OptionError
from .answer_text import NEGATIONS, plain, remembered, says_it_is_unsure, words_of

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


_EXISTENTIAL = re.compile(
    r"\b(?:there (?:is|are|was|were)|there's|i (?:can )?see|(?:has|have)) no\b"
)
_VERDICT = re.compile(r"\banswer(?: to the question)?(?: is|:|) *:? *[\"'(]?(?:yes|no)\b")


def _strict(text: str) -> YesNo | None:
    text = plain(text).casefold()
    words = words_of(text)
    yes, no = "yes" in words, "no" in words
    if yes == no or says_it_is_unsure(text):
        return None
    if yes:
        turned = any(word in NEGATIONS or word.endswith("n't") for word in words)
        return None if turned or "cannot" in words else "yes"
    # Elsewhere "no" may belong to another statement, such as "a dog with no collar".
    if words[0] == "no" or _EXISTENTIAL.search(text) or _VERDICT.search(text):
        return "no"
    return None


def _repope(text: str) -> YesNo | None:
    text = text.lower()
    return "yes" if "yes" in text else "no" if "no" in text else None


_YES_OR_NO = re.compile(r"\b(?:yes (?:and|or) no|no (?:and|or) yes|yes|no)\b")
# A no is an answer of its own next to one of these marks; elsewhere it may belong to a phrase.
_MARKS = ".,;:!?()[]\"'"


def _first_word(text: str) -> YesNo | None:
    text = plain(text).casefold()
    for found in _YES_OR_NO.finditer(text):
        before, after = text[: found.start()].rstrip(), text[found.end() :].lstrip()
        alone = not after or after[0] in _MARKS
        first = not before or before[-1] in _MARKS
        if " " in found[0] or (not (first and alone) and says_it_is_unsure(text)):
            return None
        if found[0] == "yes":
            return "yes"
        if first or alone or _said_in(_EXISTENTIAL, text, found) or _said_in(_VERDICT, text, found):
            return "no"
    return None


def _said_in(phrase: re.Pattern[str], text: str, word: re.Match[str]) -> bool:
    """Return whether a phrase ends with a word of a text."""
    return any(found.end() == word.end() for found in phrase.finditer(text))


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


def yes_no_parser(name: str) -> Callable[[str], YesNo | None]:
    """Return the parser with a name.

    Raises:
        OptionError: No parser has that name.
    """
    if name not in YES_NO_PARSERS:
        known = ", ".join(YES_NO_PARSERS)
        raise OptionError("pope", "parser", f"{name!r} is not one of {known}")
    return YES_NO_PARSERS[name]
