"""Shared text of the renderers: numbers, intervals, coverage, lines of the signature."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.metrics import Bound, Coverage, Report, Score

from ..errors import NotFoundError

__all__ = [
    "ABSENT",
    "GROUP_LIMIT",
    "Shown",
    "bounds_note",
    "broken",
    "clean",
    "counted",
    "coverage_sentence",
    "cut",
    "interval_label",
    "meaning_of",
    "shown",
    "signature_lines",
]

GROUP_LIMIT = 100
"""Most groups of one key that are rendered; report.json has all."""

ABSENT = "–"
"""Shown for a value that is undefined."""

# Characters that control a terminal or a page: control codes, bidirectional
# overrides, line separators, and halves of surrogate pairs, which no file in UTF-8 can hold.
_UNREADABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)

_PARTS_OF_NAMES = re.compile(r"[^_/.-]*[_/.-]+|[^_/.-]+")


def clean(text: str) -> str:
    """Return the text with every control character replaced, one for one.

    The length stays the same, so that spans stay right. Line feeds and tabs stay.
    """
    return _UNREADABLE.sub("\ufffd", text)


def cut(text: str, limit: int) -> str:
    """Return the text, or its beginning and the number of omitted characters."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit:,} more characters)"


def broken(cell: str, chars: int) -> str:
    """Return a cell with line feeds in the words that are too long for its column."""
    return " ".join(
        word if len(word) <= chars else _broken_name(word, chars) for word in cell.split(" ")
    )


def _broken_name(name: str, chars: int) -> str:
    """Return a name with a line feed before each part that does not fit; rich folds longer ones."""
    lines = [""]
    for part in _PARTS_OF_NAMES.findall(name):
        if lines[-1] and len(lines[-1]) + len(part) > chars:
            lines.append(part)
        else:
            lines[-1] += part
    return "\n".join(lines)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 item``, ``2,000 items``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A score formatted as text."""

    value: str
    """The value; a dash if it is undefined."""
    interval: str
    """Both ends of the interval in brackets; empty without an interval."""
    n: str
    """How many items the score is based on."""
    bound: str
    """Bounds from unscored items; empty if everything is scored."""


def shown(score: Score, bound: Bound | None = None) -> Shown:
    """Format a score: fractions with four decimals, lengths and counts with two."""
    ends = (score.ci_low, score.ci_high)
    numbers = [number for number in (score.value, *ends) if number is not None]
    digits = 2 if any(abs(number) > 1 for number in numbers) else 4
    return Shown(
        value=_figure(score.value, digits),
        interval=f"[{_figure(ends[0], digits)}, {_figure(ends[1], digits)}]"
        if None not in ends
        else "",
        n=f"{score.n:,}",
        bound=bounds_note(bound, digits) if bound else "",
    )


def _figure(number: float | None, digits: int) -> str:
    return ABSENT if number is None else f"{number:.{digits}f}"


def bounds_note(bound: Bound, digits: int = 4) -> str:
    """Return bounds as text, ``0.1200 to 0.1400``, the smaller end first."""
    low, high = sorted((bound.best, bound.worst))
    return f"{_figure(low, digits)} to {_figure(high, digits)}"


def coverage_sentence(coverage: Coverage) -> str:
    """Return how many items are scored, and the reasons of the unscored ones."""
    if coverage.items == 0:
        return "No items."
    if coverage.unscored == 0:
        return (
            f"All {coverage.items:,} items are scored."
            if coverage.items > 1
            else ("The one item is scored.")
        )
    reasons = ", ".join(f"{clean(why)} {count:,}" for why, count in coverage.reasons.items())
    return (
        f"{coverage.scored:,} of {counted(coverage.items, 'item')} scored; "
        f"{coverage.unscored:,} unscored: {reasons}."
    )


def interval_label(report: Report) -> str:
    """Return the heading ``95% interval``, with the confidence level of the signature."""
    stated = re.search(r"\|ci:[a-z-]*-(0?\.\d+)\b", report.signature)
    return f"{float(stated[1]) * 100:g}% interval" if stated else "interval"


def meaning_of(report: Report, score: str) -> str:
    """Return what a score is and which end is better; empty for a metric of another release."""
    return _meanings(report.metric).get(score, "")


@cache
def _meanings(metric: str) -> Mapping[str, str]:
    try:
        scores = metric_entry(metric).metric.score_definitions
    except NotFoundError:
        return {}
    return {score.name: score.sentence for score in scores}


def signature_lines(signature: str, width: int) -> Iterator[str]:
    """Break the signature into lines of at most ``width``, after its bars where possible."""
    line = ""
    for part in re.findall(r"[^|]*\|?", clean(signature)):
        if line and len(line) + len(part) > width:
            yield line
            line = ""
        line += part
        while len(line) > width:
            yield line[:width]
            line = line[width:]
    if line:
        yield line
