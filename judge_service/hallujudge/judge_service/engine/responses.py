"""Checks of responses: absent, empty, too long, a failure text, or in another language.

A failure text, such as "API error", is not an answer of the model, and scoring it would distort
every score. ``data/failure_texts.txt`` lists the known ones; callers can add more.

The rules and graphs cannot read other languages than English. A caption in Chinese has no English
object word, so that it would appear free of hallucination. The rule of :func:`language_problem` is
fixed and small, so that a response always gets the same outcome, and it accepts short or unusual
English. docs/decisions/languages.md has the measurements.

0. A response in ASCII with the word "the" is English. This makes the check cheap.
1. A response whose letters are mostly not Latin is not English. A Chinese, Japanese or Korean
   letter is a syllable or a word, and counts as three.
2. A response with more function words of another language than of English is not English. It needs
   at least two of them, or one if it has three to six words and no English function word.
3. A response of at least twelve words without an English function word is not English, unless it
   is a list (a comma for every third word).
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from hashlib import sha256
from importlib import resources
from typing import Final, TypeAlias

from hallujudge.metrics.framework.metric import OptionDefinition
from hallujudge.metrics.framework.results import UnscoredReason
from hallujudge.metrics.responses import READER_OPTIONS

Problem: TypeAlias = tuple[UnscoredReason, str]
"""The reason why an item is unscored, and a sentence about it."""

MAX_RESPONSE_CHARS = 500_000
"""Longer responses are unscored, which limits the cost of hostile input."""

RESPONSE_OPTIONS = (
    OptionDefinition(
        name="count_empty",
        choices=("false", "true"),
        meaning="Scores of empty responses, as in released scripts.",
        details="Failure texts are scored too.",
        purpose="input",
    ),
    OptionDefinition(
        name="failure_texts",
        meaning="More failure texts, one a line.",
        details="* at the end of a text matches any ending.",
        purpose="input",
    ),
    *READER_OPTIONS,
)
"""Options that every metric has."""

LANGUAGE_OPTION = OptionDefinition(
    name="language",
    choices=("en", "any"),
    meaning="Language of scored responses.",
    details="en leaves responses in other languages unscored.",
    purpose="input",
)
"""Option of metrics whose extractor or synonym graph reads English."""

_SHOWN_CHARS = 80
# Checks of shorter responses are cached: short answers repeat, long ones would only fill the cache.
_REPEATING_CHARS = 40
_START_CHARS = 5
# Longer texts are not parsed as JSON, which limits the cost of hostile input.
_MOST_ERROR_CHARS = 20_000
# A dictionary with an error as Python prints it, alone or first in a list.
_PRINTED_ERROR = re.compile(
    r"""\[?\{\s*'(?:error'\s*:(?!\s*(?:None\b|''|""|\{\}|\[\]))|object'\s*:\s*'error')""",
    re.IGNORECASE,
)
# An exception as Python prints it: ``ValueError: …``, ``litellm.RateLimitError: …``.
_EXCEPTION = re.compile(
    r"(?:[a-z_]\w*\.)+[A-Z]\w{3,}(?:: |\(|$)|[A-Z]\w*(?:Error|Exception)(?:: |\(|$)"
)
# How one begins: two words joined by a capital or a full stop. Few responses do.
_EXCEPTION_BEGINS = re.compile(r"\s*[\"']?(?:[A-Z]+[a-z]*[A-Z]|[a-z_]\w*\.\w|[a-z_]\w{5,})")
# Categories of characters that show nothing: controls, formats such as a zero-width space, blanks.
_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
# A few more than are compared: white space and quotes do not count.
_OPENING_CHARS = 8


@cache
def failure_texts() -> tuple[str, ...]:
    """Return the failure texts that ship with Hallujudge."""
    file = resources.files(__package__).joinpath("data", "failure_texts.txt")
    return _entries(file.read_text(encoding="utf-8").splitlines())


def _entries(lines: Iterable[str]) -> tuple[str, ...]:
    stripped = (line.strip() for line in lines)
    # Errors of spreadsheets, such as #N/A, are not comments.
    return tuple(
        dict.fromkeys(
            line for line in stripped if line not in ("", "#") and not line.startswith("# ")
        )
    )


class ResponseCheck:
    """Recognises missing responses.

    Args:
        options: The spec's options; see :data:`RESPONSE_OPTIONS`.
        reads_english: Whether the extractor or synonym graph supports English only.
    """

    def __init__(self, options: Mapping[str, str], *, reads_english: bool = False) -> None:
        self._any_language = reads_english and options.get("language") == "any"
        self._english_only = reads_english and not self._any_language
        self._count_empty = options.get("count_empty", "false") == "true"
        self._drops_cut = options.get("drop_cut_sentence") == "true"
        self._more = _entries(options.get("failure_texts", "").splitlines())
        whole = (*failure_texts(), *self._more)
        self._beginnings = tuple(_folded(text[:-1]) for text in whole if text.endswith("*"))
        self._texts = frozenset(_folded(text) for text in whole if not text.endswith("*"))
        # The first characters rule out a failure text for nearly all responses.
        self._width = min([_START_CHARS, *map(len, self._beginnings)])
        self._starts = {text[: self._width] for text in (*self._beginnings, *self._texts)}
        # Responses of one model often begin alike.
        self._clear = lru_cache(maxsize=4096)(self._is_clear)
        # White space within a text may double its length before it is folded.
        self._head = 2 * max(map(len, whole))
        self._repeating = lru_cache(maxsize=4096)(self._checked)

    @property
    def signature(self) -> str:
        """The settings that differ from the defaults, for signatures; may be empty."""
        parts = ["any-language"] if self._any_language else []
        if self._drops_cut:
            parts.append("drop-cut-sentence")
        if self._count_empty:
            parts.append("count-empty")
        elif self._more:
            digest = sha256("\n".join(sorted(self._more)).encode()).hexdigest()
            parts.append(f"failures+{digest[:8]}")
        return ",".join(parts)

    def settings(self) -> dict[str, str]:
        """Return the settings as the report shows them."""
        shown = {"max_response_chars": str(MAX_RESPONSE_CHARS)}
        if self._count_empty:
            shown["count_empty"] = "true"
        if self._any_language:
            shown["language"] = "any"
        if self._more:
            shown["failure_texts"] = " / ".join(self._more)
        return shown

    def problem(self, text: str | None, what: str = "the response") -> Problem | None:
        """Return why a response cannot be scored, or None.

        Args:
            text: The response.
            what: The name of the response in the detail.
        """
        if text is None:
            return UnscoredReason.RESPONSE_MISSING, f"{what} is null or absent"
        if len(text) < _REPEATING_CHARS:
            return self._repeating(text, what)
        fits = self._clear(text[:_OPENING_CHARS]) and len(text) <= MAX_RESPONSE_CHARS
        if fits and (not self._english_only or language_problem(text) is None):
            return None
        return self._checked(text, what)

    def failure(self, text: str | None, what: str = "the response") -> Problem | None:
        """Return which tool's failure text a response is; None for every other one.

        For items whose verdicts, claims or keywords came with the response. These need no text, and
        a released script counts what its judge said of an empty one; but what was made of a tool's
        failure text is not about the model.

        Args:
            text: The response.
            what: The name of the response in the detail.
        """
        found = None if text is None else self._failure(text, what)
        return found if found and found[0] is UnscoredReason.RESPONSE_FAILED else None

    def _checked(self, text: str, what: str) -> Problem | None:
        if len(text) > MAX_RESPONSE_CHARS:
            return (
                UnscoredReason.RESPONSE_TOO_LONG,
                f"{what} has {len(text)} characters; at most {MAX_RESPONSE_CHARS} are read",
            )
        if not self._clear(text[:_OPENING_CHARS]) and (problem := self._failure(text, what)):
            return problem
        return self.language(text, what)

    def _failure(self, text: str, what: str) -> Problem | None:
        if self._count_empty:
            return None
        if _shows_nothing(text):
            return UnscoredReason.RESPONSE_EMPTY, f"{what} is {text[:_SHOWN_CHARS]!r}"
        if self._is_failure(_bare(text)):
            return (
                UnscoredReason.RESPONSE_FAILED,
                f"{what} is a failure text: {_bare(text)[:_SHOWN_CHARS]!r}",
            )
        return None

    def language(self, text: str, what: str) -> Problem | None:
        """Return why a text is in an unsupported language, or None.

        Args:
            text: A response, or a reference that the same extractor reads.
            what: The name of the text in the detail.
        """
        if not self._english_only or (found := language_problem(text)) is None:
            return None
        return UnscoredReason.LANGUAGE_UNSUPPORTED, f"{what} is not English: {found}"

    def _is_clear(self, opening: str) -> bool:
        """Return whether no response that begins like this is empty or a failure text."""
        start = _folded(opening)
        return (
            len(start) >= self._width
            and start[: self._width] not in self._starts
            and not start.startswith(("{", "["))
            and not _EXCEPTION_BEGINS.match(opening)
        )

    def _is_failure(self, text: str) -> bool:
        head = _folded(text[: self._head])
        if head.startswith(self._beginnings) or _EXCEPTION.match(text.lstrip("\"'")):
            return True
        return (len(text) <= self._head and head in self._texts) or _is_error_object(text)


def _shows_nothing(text: str) -> bool:
    """Return whether a text has white space and invisible characters only."""
    return all(letter.isspace() or unicodedata.category(letter) in _INVISIBLE for letter in text)


def _bare(text: str) -> str:
    """Return a text without white space and byte order marks around it."""
    return text.strip().strip("\ufeff").strip()


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip("\"'")


def _is_error_object(text: str) -> bool:
    """Return whether a text is an object with an ``error``, or a list of them, as services send it.

    It may be JSON, or a dictionary as Python prints it.
    """
    if not text.startswith(("{", "[")) or len(text) > _MOST_ERROR_CHARS:
        return False
    if _PRINTED_ERROR.match(text):
        return True
    if '"error"' not in text.casefold():
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    entries = value if isinstance(value, list) else [value]
    return bool(entries) and all(map(_is_error_entry, entries))


def _is_error_entry(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    known = {key.casefold(): entry for key, entry in value.items() if isinstance(key, str)}
    return bool(known.get("error")) or known.get("object") == "error"


# The beginning of a response is enough to recognise its language.
_READ_CHARS: Final = 4_000
# Letters with an inner apostrophe, such as "there's".
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
# What each character of ASCII becomes where blanks alone divide words.
_DIVIDED: Final = "".join(chr(code) if chr(code).isalpha() else " " for code in range(128))
# The letters of Chinese, Japanese and Korean begin here.
_SYLLABLES: Final = "\u2e80"
# A character of theirs says about as much as so many letters: "一只狗 (dog)" is Chinese.
_SYLLABLE_LETTERS: Final = 3
# A short text has room for one function word; a single word or two are often names.
_SHORT: Final = range(3, 7)
# English texts of so many words have a function word, unless they are lists with commas.
_LONG: Final = 12


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ENGLISH: Final = _words(
    """
    a about above across after all also am an and another any appears are around as at
    background be because been before behind being below beside between both but by can could
    do does down each for from front has have having he her here him his how i image in inside
    into is it it's its just left like looks many may more most near next no not of off on one
    only onto or other out outside over picture right scene seems several she shows sits
    sitting so some standing stands such than that the their them then there there's these
    they this those three through to top toward towards two under up very was we were what
    when where which while who will with without would you your
    """
)
# English nouns and loan words that are function words of other languages ("a bear den", "a van").
_ALSO_ENGLISH: Final = _words(
    """
    ada al bag con dan de del den di dos era es far hay he hun la los men met non om pan per
    pod sin van we
    """
)
# Function words of other languages. ``_own`` removes those that are English words too ("die").
_OTHERS: Final = {
    "German": """auf auch aus bei bis das dem den der des doch ein eine einem einen einer eines es
        für ich ist mit nach nicht noch oder sich sie sind über und unter vom von vor wie wir wird
        zu zum zur zwei zwischen""",
    "French": """au aussi aux avec ce ces cette dans de des deux du elle en est et il ils la le les
        leur mais ne nous où par pas pour près qui que sa ses son sont sous sur très une un vers
        vous être""",
    "Spanish": """al con cerca como de del desde dos el en entre es esta este está están hay junto
        la las lo los más muy para pero por que se sobre su sus también un una unas unos y""",
    "Portuguese": """ao as com como da das de do dois dos e em entre está estão há mais mas muito na
        nas nos não o os para pela pelo por que se sobre sua seu também um uma""",
    "Italian": """accanto al alla anche che con da dei del della delle di due e gli il la le lo ma
        nel nella non per più questa questo sono sopra su sul sulla tra un una uno è""",
    "Dutch": """aan bij de dat deze die dit een en er geen het hij hun ik is met naar naast niet
        ook om onder op te tussen uit van voor wordt zijn zit""",
    "Swedish": """av bakom den det en ett och på som är med för till från har inte eller hon han
        sitter står under över två""",
    "Danish": """af bag den det en et og på som er med til fra har ikke eller hun han sidder står
        over under to ved""",
    "Polish": """i jest na nie od oraz po pod przed przez się są to w we z za ze że dwa dwie który
        która które obok""",
    "Turkish": """bir bu da de ile için ve var çok olan üzerinde yanında olarak iki gibi daha""",
    "Indonesian": """ada adalah dan dari dengan di ini itu pada sebuah seorang yang untuk dalam
        sedang tidak dua""",
    "Vietnamese": """bên các có của cho đang đó được là một người những này trên trong và với
        không hai""",
    "Romanian": """al cu de din este în la o pe pentru și sunt un una care mai lângă două nu""",
    "Czech": """a i je jsou na nebo pod se s v vedle z za že který která dva dvě není u""",
    "Finnish": """ja on ei että se joka ovat kanssa vieressä päällä kaksi hän mutta myös""",
    "Hungarian": """a az és egy van nem hogy mellett két mint is ez rajta előtt""",
}


def _own(words: str) -> frozenset[str]:
    known = _ENGLISH | _ALSO_ENGLISH
    return frozenset(word for word in words.split() if word not in known and len(word) > 1)


_WORDS: Final = {language: _own(words) for language, words in _OTHERS.items()}
_FOREIGN: Final = frozenset().union(*_WORDS.values())


def language_problem(text: str) -> str | None:
    """Return why a text is not English, or None if it may be.

    Args:
        text: A response, of which the first 4,000 characters are examined.
    """
    read = text[:_READ_CHARS]
    is_ascii = read.isascii()
    if is_ascii and " the " in read:
        return None
    if not is_ascii and (script := _other_script(read)):
        return f"most of its letters are not Latin (such as {script!r})"
    low = read.lower()
    # The same words in half the time: most texts have neither an apostrophe nor an accent.
    plain = is_ascii and "'" not in low
    words = low.translate(_DIVIDED).split() if plain else _WORD.findall(low)
    # Nearly all responses end here.
    if _FOREIGN.isdisjoint(words) and not _ENGLISH.isdisjoint(words):
        return None
    english = sum(word in _ENGLISH for word in words)
    foreign = [word for word in words if word in _FOREIGN]
    if len(foreign) > english and (found := _language_of(foreign, english, len(words))):
        return f"its function words are {found}"
    if len(words) >= _LONG and not english and read.count(",") * 3 < len(words):
        return f"none of its {len(words)} words is an English function word"
    return None


def _other_script(text: str) -> str:
    """Return a letter of another script if most letters are; numbers and signs do not count."""
    letters = [character for character in text if character.isalpha()]
    others = [c for c in letters if not c.isascii() and "LATIN" not in unicodedata.name(c, "")]
    weight = sum(_SYLLABLE_LETTERS if letter >= _SYLLABLES else 1 for letter in others)
    return others[0] if weight > len(letters) - len(others) else ""


def _language_of(foreign: list[str], english: int, words: int) -> str:
    counts = {language: sum(word in own for word in foreign) for language, own in _WORDS.items()}
    language, count = max(counts.items(), key=lambda item: item[1])
    enough = count >= 2 or (not english and words in _SHORT)
    return language if count > english and enough else ""
