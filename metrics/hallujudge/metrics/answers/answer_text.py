"""The text of answers: normalization, numbers in words, lists of texts, uncertainty, a cache.

Tables hold lists and objects as texts in their cells, which are read here too.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from hashlib import blake2b
from json.encoder import encode_basestring
from typing import TypeVar

NEGATIONS = frozenset({"not", "never", "none", "nothing", "nobody", "neither", "nor", "without"})
"""Words that negate a statement, in addition to words that end in ``n't``."""

_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " "})
_MARKUP = re.compile(r"[*_`#]+")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


# A list of tasks in Markdown, of which the ticked entries are the answer.
_NOT_TICKED = re.compile(r"^[ \t]{0,20}(?:[-*+]|\d{1,3}[.)])[ \t]\[ \][^\n]*+\n?", re.MULTILINE)
_TICKED = re.compile(r"^[ \t]{0,20}(?:[-*+]|\d{1,3}[.)])[ \t]\[[xX]\]", re.MULTILINE)


def plain(text: str) -> str:
    """Return text without mark-up, with plain quotes and letters, stripped."""
    if not text.isascii():
        # NFKC makes full-width and styled letters plain ones.
        text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    if "[x]" in text or "[X]" in text:
        text = _TICKED.sub("", _NOT_TICKED.sub("", text))
    return _MARKUP.sub(" ", text).strip()


# Scripts whose words are written without spaces: Thai, Lao, Burmese, Khmer, Chinese, Japanese,
# Korean. Their punctuation is translated below.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u9fff\uac00-\ud7af\uf900-\ufaff"
)
_BESIDE_LETTER = re.compile(rf"(?<=[{UNSPACED}])(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])(?=[{UNSPACED}])")
_PUNCTUATION = str.maketrans(
    {"。": ". ", "、": ", ", **dict.fromkeys("「」『』【】〔〕《》〈〉", '"')}
)


def spaced(text: str) -> str:
    """Return a text with spaces around letters and digits beside scripts that have none.

    So ``答案是A`` becomes ``答案是 A``.
    """
    if text.isascii():
        return text
    return _BESIDE_LETTER.sub(" ", text.translate(_PUNCTUATION)).strip()


def words_of(text: str) -> list[str]:
    """Return words in lower case, without punctuation; ``isn't`` is one word."""
    return _WORD.findall(text.casefold())


# At the start of a clause; "they wait, then cross" is what a picture may show.
_CORRECTIONS = ("wait", "hold on", "scratch that", "on second thought", "correction")
# A model in a loop repeats one without end; the bound keeps the search linear.
_CORRECTION = re.compile(
    r"(?:^|[.!?…,;:\n])\s{0,20}"
    rf"(?:(?:(?:no|hmm|oh|but)\W+)?(?:{'|'.join(_CORRECTIONS)})\b[\s,.:;!…-]++){{1,40}}+(?=\w)",
    re.IGNORECASE,
)


def after_correction(text: str) -> str:
    """Return what follows the last "wait" or such by which a text corrects itself; or empty."""
    last, lower = 0, text.lower()
    # Most texts have none of the words, which is found sooner than that the pattern does not match.
    if not any(word in lower for word in _CORRECTIONS):
        return ""
    for found in _CORRECTION.finditer(text):
        last = found.end()
    return text[last:] if last else ""


# "A. Actually, B." corrects the letter, and so does a last "no, B"; "no, B is wrong" does not, nor
# what a list says of each option: "A. no, B. yes".
_TURNED_LETTER = re.compile(
    r"(?:[.!?…,;:\n]|–|—)[ \t]{0,20}(?:(?:actually|sorry|i meant?)\b[ ,.:;!]{0,20}(?:i meant? )?"
    r"[(\"']?(?-i:([A-Z]))[)\"']?(?=[ \t]{0,20}(?:[.,;!\n]|$))"
    r"|no\b[ ,.:;!]{0,20}[(\"']?(?-i:([A-Z]))[)\"']?[.!]?\s{0,20}\Z)",
    re.IGNORECASE,
)


def corrected_choice(text: str) -> str:
    """Return the letter, or the rest of a text, by which it corrects a choice; or empty."""
    turned = [found[1] or found[2] for found in _TURNED_LETTER.finditer(text)]
    return turned[-1] if turned else after_correction(text)


_NOTHING_HASHED = blake2b(digest_size=6)


@lru_cache(maxsize=1 << 16)
def number_of(*parts: str) -> int:
    """Return a number for texts, a 48-bit hash: above 0 and exact in a float."""
    # A copy is made in half the time of a new one.
    hashed = _NOTHING_HASHED.copy()
    # With a character between that no text has, or "a", "bc" would be "ab", "c".
    hashed.update("\0".join(parts).encode("utf-8", "surrogatepass"))
    return int.from_bytes(hashed.digest()) + 1


def fraction_of(text: str) -> float | None:
    """Return the number that a text is; None if it is no number from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        return None
    # NaN, which float() reads too, is in no range.
    return number if 0 <= number <= 1 else None


MAX_KEPT_CHARS = 400
"""Longer answers rarely repeat."""

_KEPT_ANSWERS = 1 << 15
_ResultT = TypeVar("_ResultT")


def remembered(read: Callable[[str], _ResultT]) -> Callable[[str], _ResultT]:
    """Return the parser with a cache of at most 32,768 short answers."""
    kept = lru_cache(maxsize=_KEPT_ANSWERS)(read)

    @wraps(read)
    def parser(text: str) -> _ResultT:
        return kept(text) if len(text) <= MAX_KEPT_CHARS else read(text)

    return parser


# Labels, and the answers of people in VQA, are few texts that come again and again.
@remembered
def folded(text: str) -> str:
    """Return the words joined by single spaces; texts with the same words give the same result."""
    return " ".join(words_of(plain(text)))


def text_of_list(texts: Sequence[str]) -> str:
    """Return the text of a list of texts, as the field of an answer holds it."""
    # What a JSON encoder returns, without a new encoder for each list.
    return f"[{', '.join(map(encode_basestring, texts))}]"


_decode = json.JSONDecoder().decode


def texts_in(field: str) -> list[str]:
    """Return the list of texts that a field of an answer holds.

    A client may send anything: what is not such a list is one text.
    """
    try:
        found = _decode(field or "[]")
    except (ValueError, RecursionError):
        return [field]
    return found if isinstance(found, list) and {*map(type, found)} <= {str} else [field]


def listed_texts(held: object, key: str) -> list[str]:
    """Return the texts that files hold as one or as a list; empty ones for what is not a text.

    Args:
        held: A text, a number, an object with the text, or a list of these.
        key: The key of the text in an object.
    """
    listed = held if isinstance(held, list) else [held]
    return [each if type(each) is str else _listed_text(each, key) for each in listed]


def _listed_text(held: object, key: str) -> str:
    found = held.get(key) if isinstance(held, Mapping) else held
    is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
    return str(found) if is_number or isinstance(found, str) else ""


def most_frequent(texts: Sequence[str]) -> tuple[str, ...]:
    """Return each text once, the most frequent first; those with the same words are one."""
    said = list(map(folded, texts))
    # Equally frequent ones keep their order.
    ordered = sorted(dict.fromkeys(said), key=said.count, reverse=True)
    return tuple([texts[said.index(each)] for each in ordered])


_PHRASES = (
    "not sure",
    "unsure",
    "not certain",
    "uncertain",
    "don't know",
    "do not know",
    "no idea",
    "can't tell",
    "cannot tell",
    "can not tell",
    "can't see",
    "cannot see",
    "can't determine",
    "cannot determine",
    "cannot be determined",
    "can't be determined",
    "unable to",
    "impossible to",
    "not possible to",
    "no way to tell",
    "hard to say",
    "hard to tell",
    "difficult to say",
    "difficult to tell",
    "it depends",
    "unclear",
    "can't answer",
    "cannot answer",
    "can't assist",
    "cannot assist",
    "can't help",
    "cannot help",
    "insufficient information",
    "not enough information",
)
# With blanks around, so that "uncertainty" does not say "uncertain".
_PADDED = tuple(f" {phrase} " for phrase in _PHRASES)


def says_it_is_unsure(text: str) -> bool:
    """Return whether an answer states that it is unsure (appendix A.4 of the INFACT paper)."""
    padded = f" {folded(text)} "
    return any(phrase in padded for phrase in _PADDED)


def reply_text(held: object) -> str | None:
    """Return the text of a judge's reply as files hold it: a text, or a chat completion.

    Args:
        held: The reply; None without one. A number is a table's cell.

    Raises:
        ValueError: It is something else; with the fault, the next step and what was found.
    """
    found = held
    if isinstance(found, (dict, Mapping)):
        if found.get("error"):
            # What a failed call leaves is no reply.
            return None
        choices = found.get("choices")
        if isinstance(choices, list):
            found = choices[0] if choices else None
        for key in ("message", "content", "review", "text"):
            if type(found) is str:
                # Asking whether a text is a mapping takes longer than all the rest.
                break
            if isinstance(found, (dict, Mapping)) and key in found:
                found = found[key]
    if found is None or isinstance(found, str):
        return found
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        # Numbers of a table have a fraction where other cells are empty.
        return str(found).removesuffix(".0")
    raise ValueError(
        "replies of the judge are neither a text nor a chat completion",
        "Write each one as a text, or as an object with choices[0].message.content",
        held,
    )


_ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    *("ten", "eleven", "twelve", "thirteen", "fourteen"),
    *("fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORTH = {word: number for number, word in enumerate(("zero", *_ONES, *_TEENS))}
_WORTH |= {word: 10 * number for number, word in enumerate(_TENS, start=2)}

# Tens come first, so that "twenty-five" is not read as five.
NUMBER_WORDS = (
    rf"(?:(?:{'|'.join(_TENS)})(?:[-\s](?:{'|'.join(_ONES)}))?|{'|'.join((*_TEENS, *_ONES))}|zero)"
)
"""A regular expression of a number in words, in small letters."""


def number_named(text: str) -> float:
    """Return the number that digits, or words such as "thirty-two", name."""
    words = re.split(r"[-\s]", text.lower())
    return float(sum(_WORTH[word] for word in words) if words[0] in _WORTH else text)


_NUMBER = re.compile(rf"(?<![\w.])(?:\d+|{NUMBER_WORDS})(?!\w)", re.IGNORECASE)


def numbers_in(text: str) -> set[float]:
    """Return the whole numbers that a text names, in digits or in words."""
    return {number_named(found) for found in _NUMBER.findall(text)}


def is_number(text: str) -> bool:
    """Return whether a text is a whole number, in digits or in words."""
    return _NUMBER.fullmatch(text) is not None
