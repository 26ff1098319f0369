"""Plain negation: mentions that say that an object is absent.

"There is no dog" mentions a dog without claiming one. The rule looks for one of the openings below
in the clause directly before a mention. It prefers a missed negation to a wrong one: "the dog is
not wearing a hat" and "hardly any cars" still claim their objects.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["absent", "has_negation"]

# A quick test that rules out most captions; every opening below contains one of these words
# ("cannot" contains "not").
_CUES: Final = (
    *("no ", "not ", "without ", "neither ", "n't ", "n’t "),
    *("absence of ", " lack", "devoid of ", "free of "),
)
# Up to three words may separate the opening from the object ("no other visible cars"). Words that
# begin a new phrase end the negation: "no one is on the bench", "no room for more motorcycles".
_STOPS: Final = (
    "a|an|and|any|are|as|at|be|but|by|can|could|do|does|doubt|for|from|had|has|have|her|his|if|in|"
    "is|it|its|just|longer|matter|merely|of|on|one|only|onto|or|nor|over|than|that|the|their|there|"
    "these|they|this|those|to|under|was|were|which|while|who|will|with|would"
)
_MODIFIERS: Final = rf"(?:(?!(?:{_STOPS})\b)[\w'’-]+[ ]+){{0,3}}"
# The first of two absent things need not be an object of the graph ("no animals or people").
_WORD: Final = rf"(?!(?:{_STOPS})\b)[\w'’-]+[ ]+"
_ARTICLE: Final = r"(?:(?:a|an|any|the|his|her|its|their|a[ ]single|one)[ ]+)?"
_BE: Final = r"(?:is|are|was|were|be|appears?|seems?|['’]s)"
_DO: Final = r"(?:do|does|did|can|could)"
_NOT: Final = r"(?:[ ]+not|n['’]t|not)[ ]+"
_SEE: Final = r"(?:see|contain|show|have|include|feature|depict)[ ]+"
_OPENING: Final = re.compile(
    rf"""
    (?: \b(?:no|neither)[ ]+ {_ARTICLE}
      | \bwithout[ ]+ {_ARTICLE}
      | \b(?:absence|lack|devoid|free)[ ]+of[ ]+ {_ARTICLE}
      | \b(?:lacks?|lacking)[ ]+ {_ARTICLE}
      | \b{_BE}{_NOT} (?:a|an|any)[ ]+
      | \b(?:there|{_DO}){_NOT} (?:appears?|seems?)[ ]+to[ ]+be[ ]+ {_ARTICLE}
      | \b{_DO}{_NOT} {_SEE} {_ARTICLE}
    ) (?: {_MODIFIERS} {_WORD} (?:or|nor)[ ]+ {_ARTICLE} )? {_MODIFIERS} $
    """,
    re.VERBOSE,
)
_OR: Final = re.compile(rf"\s*,?\s+(?:or|nor)\s+{_ARTICLE}{_MODIFIERS}")
_COMMA: Final = re.compile(rf"\s*,\s+{_ARTICLE}{_MODIFIERS}")
_WINDOW: Final = 120
"""How many characters before a mention are searched: more than an opening and three words need."""


def has_negation(text: str) -> bool:
    """Return whether a lower-case text has a word that could negate a mention."""
    # A loop takes half the time of any(…) over a generator, and this runs for every caption.
    for cue in _CUES:  # noqa: SIM110
        if cue in text:
            return True
    return False


def absent(text: str, spans: Sequence[tuple[int, int]]) -> list[bool]:
    """Return, for each mention, whether the text says that the object is absent.

    Both objects of "no cars or trucks" are absent, and so is every object of "no cars, buses, or
    trucks". In "no dog, a cat" only the dog is absent: commas alone do not extend the negation,
    since a list of absent objects ends with "or" or "nor".

    Args:
        text: The caption in lower case, as long as the original.
        spans: Start and end of each mention, from left to right.
    """
    found = [_opened(text, start) for start, _ in spans]
    linked = _list_links(text, spans)
    for index in range(1, len(spans)):
        found[index] = found[index] or (found[index - 1] and linked[index])
    return found


def _opened(text: str, start: int) -> bool:
    before = text[max(0, start - _WINDOW) : start]
    if not has_negation(before):
        return False
    # Punctuation that ends a clause ends the negation.
    clause = re.split(r"[.!?;:,()\n]", before)[-1]
    return _OPENING.search(clause) is not None


def _list_links(text: str, spans: Sequence[tuple[int, int]]) -> list[bool]:
    """Return, for each mention, whether it continues a list that ends with "or" or "nor"."""
    linked = [False] * len(spans)
    goes_on = False
    for index in range(len(spans) - 1, 0, -1):
        between = text[spans[index - 1][1] : spans[index][0]][:_WINDOW]
        goes_on = bool(_OR.fullmatch(between)) or (goes_on and bool(_COMMA.fullmatch(between)))
        linked[index] = goes_on
    return linked
