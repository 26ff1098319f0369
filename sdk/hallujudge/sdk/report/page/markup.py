"""HTML with automatic escaping, its style sheets and scripts, and scores drawn on a scale.

Only this module turns text into markup. ``make page`` builds the scripts and style sheets from
``web/report``.
"""

from __future__ import annotations

import base64
import hashlib
import html
import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import resources
from typing import TypeAlias

from hallujudge.metrics import Score

from ..report_text import clean

Content: TypeAlias = "str | Markup"
"""Text, which is escaped, or markup, which is kept as it is."""

At: TypeAlias = "Callable[[float], str]"
"""Returns the horizontal position of a number on a scale."""

# Elements without content and end tag, of those that pages use.
_VOID = frozenset({"input", "meta", "wbr"})
# Width of a scale and the vertical position of its axis, in the units of its view box.
_WIDTH, _AXIS = 480, 34
_BAR_WIDTH = 100


class Markup(str):
    """Escaped markup. Only :func:`element` and :func:`joined` create it."""

    __slots__ = ()


def element(tag: str, *content: Content, **attributes: str) -> Markup:
    """Return an HTML element.

    Args:
        tag: Name of the element.
        content: Its content; plain text is escaped.
        attributes: Its attributes, escaped. A leading underscore is dropped (``_class``), others
            become hyphens (``aria_label``).
    """
    shown = "".join(
        f' {name.removeprefix("_").replace("_", "-")}="{_escaped(value)}"'
        for name, value in attributes.items()
    )
    if tag in _VOID:
        return Markup(f"<{tag}{shown}>")
    return Markup(f"<{tag}{shown}>{joined(content)}</{tag}>")


def joined(parts: Iterable[Content], separator: str = "") -> Markup:
    """Return the concatenated parts; plain text is escaped."""
    return Markup(
        _escaped(separator).join(
            part if isinstance(part, Markup) else _escaped(part) for part in parts
        )
    )


def breakable(text: str, mark: str) -> Markup:
    """Return a text whose lines may break after a mark, such as a bar.

    Args:
        text: The text.
        mark: The mark. Copied text is the same with and without breaks.
    """
    *parts, last = text.split(mark)
    pieces = [piece for part in parts for piece in (f"{part}{mark}", element("wbr"))]
    return joined([*pieces, last])


def _escaped(text: str) -> str:
    return html.escape(clean(text), quote=True)


@cache
def asset(name: str) -> str:
    """Return the text of a script or style sheet, which contains no closing tag of its element."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """Return the hash by which a content security policy allows an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def score_bar(score: Score) -> Markup:
    """Draw value and interval on a line from 0 to 1; draw nothing for lengths and counts."""
    ends = [end for end in (score.ci_low, score.ci_high, score.value) if end is not None]
    if score.value is None or not all(0 <= end <= 1 for end in ends):
        return Markup("")
    low, high = min(ends) * _BAR_WIDTH, max(ends) * _BAR_WIDTH
    return element(
        "svg",
        element("rect", x="0", y="5", width=str(_BAR_WIDTH), height="2", _class="scale"),
        element("rect", x=f"{low:.2f}", y="3", width=f"{high - low:.2f}", height="6", _class="ci"),
        element("circle", cx=f"{score.value * _BAR_WIDTH:.2f}", cy="6", r="3.5", _class="point"),
        viewBox=f"-4 0 {_BAR_WIDTH + 8} 12",
        _class="bar",
        aria_hidden="true",
    )


def score_scale(score: Score, baseline: float | None = None) -> Markup:
    """Draw value, interval and baseline on a scale that fits them.

    Args:
        score: The score.
        baseline: Another value to compare with, drawn as a dashed line.
    """
    if score.value is None:
        return Markup("")
    known = [n for n in (score.value, score.ci_low, score.ci_high, baseline) if n is not None]
    ticks = _ticks(min(known), max(known))
    span = ticks[-1] - ticks[0]

    def at(number: float) -> str:
        return f"{(number - ticks[0]) / span * _WIDTH:.1f}"

    return element(
        "svg",
        *_scale_axis(ticks, at_of=at),
        *_scale_interval(score, at_of=at),
        *([_scale_line(at(baseline))] if baseline is not None else []),
        element("circle", cx=at(score.value), cy="17", r="6", _class="point"),
        viewBox=f"-24 0 {_WIDTH + 48} 54",
        role="img",
        aria_label=_spoken_score(score, baseline),
    )


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers around an interval: at least two, about five."""
    room = (high - low) * 0.25 or abs(high) * 0.05 or 0.05
    most = high
    low, high = max(low - room, min(low, 0.0)), high + room
    raw = (high - low) / 4
    power = 10 ** math.floor(math.log10(raw))
    # The tolerance absorbs the rounding of the division by a power of ten.
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.floor(low / step), math.ceil(high / step)
    ticks = [round(n * step, 10) for n in range(first, last + 1)]
    # Rates end at 1.
    return [tick for tick in ticks if tick <= 1] if most <= 1 < ticks[-1] else ticks


def _scale_axis(ticks: list[float], at_of: At) -> Iterator[Markup]:
    yield element("line", x1="0", x2=str(_WIDTH), y1=str(_AXIS), y2=str(_AXIS), _class="axis")
    decimals = max(len(f"{tick:.10f}".rstrip("0").partition(".")[2]) for tick in ticks)
    for tick in ticks:
        x = at_of(tick)
        yield element("line", x1=x, x2=x, y1=str(_AXIS), y2=str(_AXIS + 5), _class="axis")
        yield element("text", f"{tick:.{decimals}f}", x=x, y=str(_AXIS + 18), text_anchor="middle")


def _scale_interval(score: Score, at_of: At) -> Iterator[Markup]:
    if score.ci_low is None or score.ci_high is None:
        return
    low, high = at_of(score.ci_low), at_of(score.ci_high)
    width = f"{float(high) - float(low):.1f}"
    yield element("rect", x=low, y="11", width=width, height="12", rx="3", _class="ci")
    for end in (low, high):
        yield element("line", x1=end, x2=end, y1="8", y2="26", _class="axis")


def _scale_line(x: str) -> Markup:
    return element("line", x1=x, x2=x, y1="2", y2=str(_AXIS), _class="base")


def _spoken_score(score: Score, baseline: float | None) -> str:
    parts = [f"{score.name} {score.value:.4f}"]
    if score.ci_low is not None and score.ci_high is not None:
        parts.append(f"interval {score.ci_low:.4f} to {score.ci_high:.4f}")
    if baseline is not None:
        parts.append(f"compared with {baseline:.4f}")
    return ", ".join(parts)
