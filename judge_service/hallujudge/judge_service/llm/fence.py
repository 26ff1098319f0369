"""Fencing: judged text is data, and nothing in it can end its fence or imitate another role.

Three things are done to a text before it enters a prompt:

* invisible characters (zero-width, direction, tag and control characters) are dropped or
  become spaces, so that nothing is hidden from a reader of the prompt;
* what fences and chat templates are made of is replaced by look-alikes that no tokeniser treats as
  a mark: ``<`` and ``>`` (``<|eot_id|>``, ``</s>``, ``<start_of_turn>``, our own fence) become
  single angle quotes, and upper-case words in square brackets (``[INST]``) get round ones;
* it is written as a JSON string, so that quotes and line breaks in it are escaped.

Readers of a verdict see ``‹b›`` where the text had ``<b>``; the evidence keeps the text itself.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable

__all__ = ["FENCE_CLOSE", "FENCE_OPEN", "as_line", "defused", "fenced"]

FENCE_OPEN = "<<<{name}"
"""Opens a block of judged text."""
FENCE_CLOSE = "{name}>>>"
"""Closes it."""

# ASCII signs and every character that compatibility normalisation turns into one: some tokenisers
# normalise before they look for marks.
_SIGNS = str.maketrans({"<": "‹", "＜": "‹", "﹤": "‹", ">": "›", "＞": "›", "﹥": "›"})
_BRACKETED = re.compile(r"[\[［](\s*/?\s*[A-Z][A-Z0-9_ ]*\s*)[\]］]")
_SPACES = re.compile(r"\s+")
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp", "Zs"})
# Blank when drawn, though Unicode calls them letters or symbols.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800")


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if character in _BLANK or (category == "Mn" and 0xFE00 <= ord(character) <= 0xFE0F):
        return ""
    if category not in _HIDDEN and not 0xE0100 <= ord(character) <= 0xE01EF:
        return character
    return " " if category in {"Zl", "Zp", "Zs"} or character in "\t\n\v\f\r\x85" else ""


def defused(text: str) -> str:
    """The text as one visible line without anything that a fence or a chat template is made of."""
    if not (text.isascii() and text.isprintable()):
        text = "".join(map(_visible, text))
    text = text.translate(_SIGNS)
    return _SPACES.sub(" ", _BRACKETED.sub(r"(\1)", text)).strip()


def as_line(value: str | Iterable[str]) -> str:
    """A text, or several, as one line of JSON."""
    data = defused(value) if isinstance(value, str) else [defused(part) for part in value]
    return json.dumps(data, ensure_ascii=False)


def fenced(name: str, lines: Iterable[str]) -> str:
    """Lines of data between marks that no line can contain.

    Args:
        name: What the data is, such as ``SCENE``; chosen by us, never by the data.
        lines: Lines from :func:`as_line`.
    """
    body = list(lines)
    assert not any("<" in line or ">" in line or "\n" in line for line in body)
    return "\n".join([FENCE_OPEN.format(name=name), *body, FENCE_CLOSE.format(name=name)])
