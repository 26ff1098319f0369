"""What a claim is about, by its words: its kind, and the moment of a video that a text names.

These forms of moments, such as "at 0:12" or "in the first seconds", are read, in English:

* a time: ``at 0:12``, ``around 1:02:03``, ``[0:12]``, ``after 12 seconds``, ``at the 12-second
  mark``, ``12 seconds into the video``, ``at 2 minutes``
* two times: ``from 0:10 to 0:15``, ``0:10-0:15``, ``between 3 and 5 seconds``
* the start: ``in the first 3 seconds``, ``in the first seconds``, ``at the beginning``, ``the
  video starts with``
* the middle: ``halfway through the video``, ``in the middle of the clip``
* the end: ``in the last 5 seconds``, ``at the end of the video``, ``the clip ends with``

"Then", "finally" and "initially" order events and name no moment. "At the end of the table" and "in
the middle of the room" are places; "10:45 pm" is a time of the day.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from ..answers.answer_text import NUMBER_WORDS, number_named
from ..framework.claims import ClaimParts, Triplet

# A caption says "at 0:12" of something that takes a moment, and rounds to whole seconds.
_AROUND = 2.0
# "At the start" is a tenth of the video, and at least so many seconds.
_SHARE, _LEAST = 0.1, 3.0
# What "the first seconds" and "the last few seconds" mean.
_FEW = 3.0

_VIDEO = r"(?:video|clip|film|footage|recording|sequence|movie)"
# Of the video, or of nothing: "the start of the road" and "the start line" are places.
_OF_VIDEO = rf"(?:\s+of\s+(?:the|this)\s+{_VIDEO}\b|(?!\s+(?:of|line)\b))"
_CLOCK = r"(?:\d{1,2}:)?\d{1,3}:\d{2}(?:\.\d{1,3})?"
_COUNT = rf"(?:\d{{1,5}}(?:\.\d{{1,3}})?|{NUMBER_WORDS})"
_UNIT = r"(?:seconds?|secs?|s|minutes?|mins?)"
_TIME = rf"(?:{_CLOCK}|{_COUNT}[ -]?{_UNIT})"
_TO = r"(?:to|and|until|till|through|[-\u2013\u2014])"
_NEAR = r"(?:at|around|about|by|near|after|@)(?:\s+(?:the|about|around))?"


class Moment(NamedTuple):
    """A part of a video that a text names."""

    label: str
    """Its name in evidence, such as ``0:12``, ``0:10-0:15``, ``start`` or ``last 5 s``."""
    begin: float
    """Its first second."""
    end: float
    """Its last second."""


class _Found(NamedTuple):
    """A moment, and the place of the words that name it."""

    moment: Moment
    start: int
    end: int


def moments_in(text: str, seconds: float) -> list[Moment]:
    """Return the moments that a text names, each once, in the order of the text.

    Args:
        text: What was said of a video.
        seconds: Length of the video; 0 if unknown. A moment after its end is left out.
    """
    return list(dict.fromkeys(found.moment for found in _found(text, seconds)))


def moment_of(text: str, span: tuple[int, int] | None, seconds: float) -> Moment | None:
    """Return the moment of a claim: of those that its sentence names, the nearest one.

    Args:
        text: The response; without a span, the claim's own words.
        span: Place of the claim in the response.
        seconds: Length of the video; 0 if unknown.
    """
    if span is None:
        return next((found.moment for found in _found(text, seconds)), None)
    start, end = sentence_at(text, span)
    own = (span[0] - start, span[1] - start)
    near = sorted(_found(text[start:end], seconds), key=lambda found: _gap(found, own))
    return near[0].moment if near else None


def sentence_at(text: str, span: tuple[int, int]) -> tuple[int, int]:
    """Return the place of the sentence, or sentences, that a span lies in."""
    breaks = [found.end() for found in re.finditer(r"[.!?]+[\"')\]]*\s+|\n+", text)]
    start = max((at for at in breaks if at <= span[0]), default=0)
    end = min((at for at in breaks if at >= span[1]), default=len(text))
    return start, end


def _gap(found: _Found, span: tuple[int, int]) -> int:
    return max(0, found.start - span[1], span[0] - found.end)


def _found(text: str, seconds: float) -> list[_Found]:
    """Return all moments of a text, in its order; of words that two forms read, the first form."""
    taken: list[_Found] = []
    for form, made in _FORMS:
        for match in form.finditer(text):
            if any(match.start() < one.end and one.start < match.end() for one in taken):
                continue
            moment = made(match, seconds)
            # A time after the end is not a moment of this video; of an unknown length any may be.
            if moment is not None and not 0 < seconds < moment.begin:
                taken.append(_Found(moment, *match.span()))
    return sorted(taken, key=lambda one: one.start)


def _between(match: re.Match[str], _seconds: float) -> Moment | None:
    # "Between 3 and 5 seconds" has its unit once.
    unit = match["unit"] if "unit" in match.groupdict() else ""
    # Models also write "from 0:20 to 0:10".
    first, last = sorted((_seconds_of(match[1], unit), _seconds_of(match[2], unit)))
    return Moment(f"{_shown(first)}-{_shown(last)}", first, last)


def _at(match: re.Match[str], _seconds: float) -> Moment | None:
    at = _seconds_of(match[1])
    return Moment(_shown(at), max(at - _AROUND, 0.0), at + _AROUND)


def _first(match: re.Match[str], _seconds: float) -> Moment | None:
    count = _seconds_of(match[1]) if match[1] else _FEW
    return Moment(f"first {count:g} s", 0.0, count)


def _last(match: re.Match[str], seconds: float) -> Moment | None:
    count = _seconds_of(match[1]) if match[1] else _FEW
    return Moment(f"last {count:g} s", max(seconds - count, 0.0), seconds)


def _start(_match: re.Match[str], seconds: float) -> Moment | None:
    return Moment("start", 0.0, max(_SHARE * seconds, _LEAST))


def _middle(_match: re.Match[str], seconds: float) -> Moment | None:
    half = max(_SHARE * seconds, _LEAST) / 2
    return Moment("middle", max(seconds / 2 - half, 0.0), seconds / 2 + half)


def _end(_match: re.Match[str], seconds: float) -> Moment | None:
    return Moment("end", max(seconds - max(_SHARE * seconds, _LEAST), 0.0), seconds)


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# The more exact forms come first: of words that two forms read, the first one counts.
_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], float], Moment | None]], ...] = (
    (_form(rf"\b(?:from|between)\s+({_TIME})\s*{_TO}\s*({_TIME})\b"), _between),
    (
        _form(rf"\b(?:from|between)\s+({_COUNT})\s*{_TO}\s*({_COUNT})[ -]?(?P<unit>{_UNIT})\b"),
        _between,
    ),
    (_form(rf"(?<![\d:])({_CLOCK})\s*[-\u2013\u2014]\s*({_CLOCK})(?![\d:])"), _between),
    (
        _form(
            rf"\bfirst\s+(?:(?:few|couple\s+of)\s+)?({_COUNT}[ -]?{_UNIT}\b)?"
            r"(?(1)|(?:seconds?|moments?|frames?)\b)"
        ),
        _first,
    ),
    (
        _form(
            rf"\b(?:last|final|closing)\s+(?:(?:few|couple\s+of)\s+)?({_COUNT}[ -]?{_UNIT}\b)?"
            r"(?(1)|(?:seconds?|moments?|frames?)\b)"
        ),
        _last,
    ),
    (_form(rf"\b{_NEAR}\s*({_TIME})(?:[ -]mark)?\b(?!\s*[ap]\.?m\b)"), _at),
    (_form(rf"[\[(]({_CLOCK})[\])]"), _at),
    # A list of events has the time first: "0:12 - a dog runs".
    (_form(rf"^\s*({_CLOCK})(?=\s*[-\u2013\u2014:,]\s)"), _at),
    (_form(rf"\b({_COUNT}[ -]?{_UNIT})\s+in(?:to)?\b"), _at),
    (
        _form(
            rf"\b(?:at|in|from)\s+the\s+(?:very\s+)?(?:beginning|start|opening){_OF_VIDEO}"
            rf"|\b{_VIDEO}\s+(?:begins|starts|opens)\b|\bopening\s+(?:seconds?|moments?|frames?)\b"
        ),
        _start,
    ),
    (
        _form(
            rf"\b(?:halfway|midway)(?:\s+through)?{_OF_VIDEO}|\b(?:halfway|midway)\s+through\s+the"
            rf"\s+{_VIDEO}\b|\bin\s+the\s+middle\s+of\s+the\s+{_VIDEO}\b"
        ),
        _middle,
    ),
    (
        _form(
            rf"\b(?:at|by|towards?|near)\s+the\s+(?:very\s+)?end{_OF_VIDEO}"
            rf"|\b{_VIDEO}\s+(?:ends|closes|concludes|finishes)\b"
        ),
        _end,
    ),
)


_LEADING = _form(_COUNT)


def _seconds_of(text: str, unit: str = "") -> float:
    """Return a time in seconds: ``1:02:03``, ``12.5 seconds``, ``two minutes``, or a number."""
    if ":" in text:
        parts = [float(part) for part in text.split(":")]
        return sum(part * 60.0**place for place, part in enumerate(reversed(parts)))
    number = _LEADING.match(text)
    assert number is not None, "a time that is no clock begins with a count"
    count = number_named(number[0])
    named = text[number.end() :].strip(" -").lower() or unit.lower()
    return count * 60 if named.startswith("m") else count


def _shown(seconds: float) -> str:
    """Return a time as evidence shows it: minutes and seconds, with a fraction if there is one."""
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}:{rest:04.1f}" if rest % 1 else f"{int(minutes)}:{int(rest):02}"


def frames_near(moment: Moment, times: Sequence[float], count: int) -> list[int]:
    """Return the numbers of at most some frames of a moment, evenly among those that it has.

    Without a frame within it, the one nearest to its middle is taken.

    Args:
        moment: The moment.
        times: When each frame is shown, in seconds from the first one, in order.
        count: Frames at most.
    """
    own = [at for at, time in enumerate(times) if moment.begin <= time <= moment.end]
    if not own:
        middle = (moment.begin + moment.end) / 2
        return [min(range(len(times)), key=lambda at: abs(times[at] - middle))]
    if len(own) <= count:
        return own
    # The middle of each of `count` equal parts.
    return [own[(2 * n + 1) * len(own) // (2 * count)] for n in range(count)]


ClaimKind: TypeAlias = Literal["object", "attribute", "count", "relation", ""]
"""The kind of a claim; empty for a sentence, which may hold several."""
KINDS = ("object", "attribute", "count", "relation")
"""The kinds with scores of their own."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NUMBERS = _words(
    "zero two three four five six seven eight nine ten eleven twelve dozen hundred thousand"
)
# "One" alone is a number, and before a noun mostly an article.
_ALONE = _NUMBERS | {"one", "single"}
_COPULAS = _words("is are was were be being am")
_PRESENT = _words("present there visible here shown seen existing")
_HOLDING = _words("has have contains contain shows show depicts depict features includes include")
_COUNTING = _words("number numbers count counts total totals")
# What a caption says that it describes; the rule extractor's own list is of all such nouns.
_MEDIA = _words("image picture photo photograph scene video clip frame view")
_WORD = re.compile(r"[a-z0-9]+")


def kind_of(claim: ClaimParts) -> ClaimKind:
    """Return the kind of a claim.

    A triplet whose relation is a form of "be" says that something is there (object), how many there
    are (count) or what it is like (attribute). Any other one relates two things, unless the first
    is the image itself.

    Args:
        claim: A triplet; a sentence has no kind.
    """
    if not isinstance(claim, Triplet):
        return ""
    subject, relation, target = (_WORD.findall(part.lower()) for part in claim)
    # A denied claim is of the kind that it denies; "isn't" leaves a "t".
    said = [word for word in relation if word not in ("not", "no", "t")]
    if set(said) <= _COPULAS:
        return _kind_of_state(subject, target)
    if set(subject) & _MEDIA and set(said) & _HOLDING:
        # A number at the beginning counts the things; one later on is of something else.
        return _kind_of_thing(target)
    if set(said) <= _COPULAS | _COUNTING and _is_alone(target):
        return "count"
    # "A dog appears in the picture" says that it is there, and relates it to nothing.
    if set(target) & _MEDIA and said[-1:] in (["in"], ["within"]) and set(said[:-1]) <= _AT:
        return _kind_of_thing(subject)
    return "relation"


_AT = _COPULAS | _PRESENT | {"appears", "appear"}


def _kind_of_state(subject: list[str], target: list[str]) -> ClaimKind:
    if _is_alone(target):
        return "count"
    if target and set(target) <= _PRESENT:
        return _kind_of_thing(subject)
    return "attribute"


def _kind_of_thing(words: list[str]) -> ClaimKind:
    """Return the kind of a claim that something is there, by a number before it."""
    return "count" if words and (words[0] in _NUMBERS or words[0].isdigit()) else "object"


def _is_alone(words: list[str]) -> bool:
    """Return whether words are a number, with nothing but a noun of counting around it."""
    left = [word for word in words if word not in ("in", "number", "exactly", "only", "of", "all")]
    return len(left) == 1 and (left[0] in _ALONE or left[0].isdigit())
