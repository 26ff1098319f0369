"""Charts of tables, drawn as SVG without scripts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import convert

from .page.page_parts import Markup, element, joined
from .report_text import clean, cut

Row: TypeAlias = "Mapping[str, str | int | float | bool | None]"

# Okabe and Ito's palette, which readers with any colour vision can tell apart, without yellow,
# which is hard to see on white.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#555555")
# Lengths here are in units of the drawing, which its viewBox maps to the page.
_WIDTH, _HEIGHT = 640, 320
# Drawn in a fixed size, in which letters stay readable: a narrow screen scrolls.
_SHOWN_WIDTH = 760
_LEFT, _RIGHT, _TOP = 72, 16, 28
# Room for what is below the axis; each letter of a slanted name reaches down by so much more.
_BELOW, _BELOW_LETTER = 46, 5
_LEGEND_ROW = 18
_NAME_CHARS, _LEGEND_CHARS = 14, 60
# Slanted names are shorter, so that the first one ends inside the drawing and all above its label.
_SLANTED_CHARS, _SLANT = 26, -60
# Twice as many series as colors, half of them dashed or hollow; more could not be told apart.
# Slanted names of more bars would overlap.
_MOST_SERIES, _MOST_BARS = 14, 24
_TICKS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """How a table is drawn: which columns are the axes, and which make several series."""

    kind: Literal["lines", "bars", "points"]
    """Lines and points have numbers on both axes, bars have names on the horizontal one."""
    x: str
    """Column of the horizontal axis."""
    y: tuple[str, ...]
    """Columns that are drawn, one series each."""
    by: tuple[str, ...] = ()
    """Columns whose values split the rows into series."""
    low: str = ""
    """Column of the lower end of the interval of a single ``y``; empty without one."""
    high: str = ""
    """Column of the upper end."""
    order: str = ""
    """Column of numbers by which bars are ordered; empty for the order of the rows."""

    def split_by(self, keys: tuple[str, ...]) -> Chart:
        """Return the chart with one more series for each value of some columns."""
        return replace(self, by=(*keys, *self.by))

    def to_json(self) -> dict[str, Any]:
        """Return the chart as plain values."""
        return {name: value for name, value in asdict(self).items() if value}


def chart_from(values: Mapping[str, Any] | None) -> Chart | None:
    """Return the chart of plain values.

    Raises:
        TypeError: It is of no known kind.
        ValueError: A value has another type.
    """
    if values is None:
        return None
    if values.get("kind") not in ("lines", "bars", "points"):
        raise TypeError(f"the kind of a chart is {values.get('kind')!r:.40}")
    return convert(values, Chart)


class _Point(NamedTuple):
    x: float
    y: float
    low: float
    high: float
    label: str


def draw(chart: Chart, rows: Sequence[Row], title: str) -> Markup:
    """Return a table as figures with a legend; nothing if no row has values to draw.

    If columns split the rows into series, each column of values has a figure of its own, as in the
    papers: with all of them in one, series could not be told apart.

    Args:
        chart: What is drawn.
        rows: The rows of the table.
        title: What the chart shows, for readers who can't see it.
    """
    if not chart.by or len(chart.y) == 1:
        return _figure(chart, rows, title)
    return joined(
        _figure(replace(chart, y=(column,)), rows, f"{title}: {words_of(column)}")
        for column in chart.y
    )


def _figure(chart: Chart, rows: Sequence[Row], title: str) -> Markup:
    every = _names_of_bars(chart, rows)
    names = every[:_MOST_BARS]
    at: Callable[[Row], float | None] = (
        (lambda row: _place(names, row[chart.x]))
        if chart.kind == "bars"
        else (lambda row: _number(row[chart.x]))
    )
    found = dict(_series(chart, rows, at))
    series = dict(list(found.items())[:_MOST_SERIES])
    points = [point for some in series.values() for point in some]
    if not points:
        return Markup("")
    # Room for slanted names is added below, so that they leave the values as much as others do.
    height = _HEIGHT + _below(chart, names) - _BELOW
    # In the colour of the text, since a notebook's theme is not the system's.
    svg = element(
        "svg", element("title", title), *_drawing(chart, series, names, height),
        viewBox=f"0 0 {_WIDTH} {height}", role="img", width=str(_SHOWN_WIDTH),
        font_family="sans-serif", font_size="11", fill="currentColor",
    )  # fmt: skip
    legend = _legend(list(series)) if len(series) > 1 else ""
    hidden = [
        f"{left_out} more {what} are in the table only"
        for what, left_out in (
            ("series", len(found) - len(series)),
            ("names", len(every) - len(names) if chart.kind == "bars" else 0),
        )
        if left_out
    ]
    note = element("p", "; ".join(hidden)) if hidden else ""
    # A scrollable region must be reachable by keyboard.
    return element(
        "div", svg, legend, note, _class="scroll", role="figure", tabindex="0", aria_label=title
    )


def _drawing(
    chart: Chart, series: Mapping[str, Sequence[_Point]], names: Sequence[str], height: int
) -> Iterator[Markup]:
    """Yield the axes with their labels, and the series."""
    points = [point for some in series.values() for point in some]
    bars = chart.kind == "bars"
    across = (
        _Scale(-0.5, len(names) - 0.5, _LEFT, _WIDTH - _RIGHT)
        if bars
        else _Scale.of(
            [p.x for p in points],
            _LEFT,
            _WIDTH - _RIGHT,
            whole=all(p.x.is_integer() for p in points),
        )
    )
    slanted = bars and _are_long(names)
    floor = height - _below(chart, names)
    ends = [end for p in points for end in (p.low, p.high)]
    # Bars are compared by their lengths, which mislead unless they begin at zero.
    up = _Scale.of(ends, floor, _TOP, least=0.0 if bars else None)
    yield from _axis_y(up)
    yield from _names(names, across, floor, slanted=slanted) if bars else _axis_x(across, floor)
    for place, some in enumerate(series.values()):
        color = _COLORS[place % len(_COLORS)]
        yield _DRAWN[chart.kind](some, across, up, color, (place, len(series)))
    yield _text(_WIDTH / 2, height - 4, words_of(chart.x))
    yield _text(4, 12, ", ".join(map(words_of, chart.y)), anchor="start")


def _names_of_bars(chart: Chart, rows: Sequence[Row]) -> list[str]:
    """Return the names on the horizontal axis, in the chart's order."""
    ordered: Sequence[Row] = rows
    if chart.order:
        numbers = [_number(row.get(chart.order)) for row in rows]
        last = float("inf")
        places = [last if number is None else number for number in numbers]
        ordered = [rows[at] for at in sorted(range(len(rows)), key=places.__getitem__)]
    return list(dict.fromkeys(str(row[chart.x]) for row in ordered))


def words_of(name: str) -> str:
    """Return a column's name as words; scores such as ``chair_i`` and ``p_ti`` keep their name."""
    parts = name.split("_")
    return name if any(len(part) == 1 for part in parts) else " ".join(parts)


def _series(
    chart: Chart, rows: Sequence[Row], at: Callable[[Row], float | None]
) -> Iterator[tuple[str, list[_Point]]]:
    found: dict[str, list[_Point]] = {}
    for row in rows:
        parts = [str(row[key]) for key in chart.by]
        for column in chart.y:
            name = " ".join([*parts, *([words_of(column)] if len(chart.y) > 1 else [])])
            # Without values too, so that it has the same color in each figure of a table.
            some = found.setdefault(name, [])
            x, y = at(row), _number(row[column])
            if x is None or y is None:
                continue
            low, high = (_number(row.get(end)) for end in (chart.low, chart.high))
            label = f"{name} {row[chart.x]}: {y:.4g}".strip()
            some.append(_Point(x, y, y if low is None else low, y if high is None else high, label))
    yield from found.items()


def _number(value: object) -> float | None:
    # A truth value is an int too, and what is not finite has no place in a drawing.
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if known else None  # type: ignore[arg-type]  # a number


def _place(names: Sequence[str], value: object) -> float | None:
    return float(names.index(str(value))) if str(value) in names else None


class _Scale(NamedTuple):
    """Maps numbers to places in the drawing."""

    first: float
    last: float
    begin: float
    end: float
    step: float = 1.0

    @classmethod
    def of(
        cls,
        values: Sequence[float],
        begin: float,
        end: float,
        *,
        least: float | None = None,
        whole: bool = False,
    ) -> _Scale:
        low, high = min(values), max(values)
        low = low if least is None else min(low, least)
        # Fractions get the whole axis from 0 to 1, unless they are so near that it would hide how
        # they differ.
        if not whole and low >= 0 and high <= 1 and (high - low > 0.3 or low == high):
            low, high = 0.0, 1.0
        elif low == high:
            low, high = low - 0.5, high + 0.5
        step = max(_step(high - low), float(whole))
        return cls(math.floor(low / step) * step, math.ceil(high / step) * step, begin, end, step)

    def __call__(self, value: float) -> float:
        share = (value - self.first) / (self.last - self.first)
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> Iterator[float]:
        for number in range(round((self.last - self.first) / self.step) + 1):
            yield self.first + number * self.step


def _step(span: float) -> float:
    """Return the distance of ticks: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(span / _TICKS))
    # The tolerance absorbs the rounding of the division by a power of ten.
    return next(power * n for n in (1, 2, 5, 10) if power * n * _TICKS >= span * 0.999)


def _axis_y(up: _Scale) -> Iterator[Markup]:
    for tick in up.ticks():
        at = f"{up(tick):.1f}"
        yield element(
            "line", x1=str(_LEFT), x2=str(_WIDTH - _RIGHT), y1=at, y2=at,
            stroke="currentColor", stroke_opacity="0.15",
        )  # fmt: skip
        yield _text(_LEFT - 6, up(tick) + 4, f"{tick:.4g}", anchor="end")


def _axis_x(across: _Scale, floor: float) -> Iterator[Markup]:
    for tick in across.ticks():
        yield _text(across(tick), floor + 16, f"{tick:.4g}")


def _are_long(names: Sequence[str]) -> bool:
    # Level names of more bars, or longer ones, would run into each other.
    return len(names) > 6 or any(len(name) > _NAME_CHARS for name in names)


def _below(chart: Chart, names: Sequence[str]) -> int:
    """Return the room below the axis, for the longest of slanted names."""
    if chart.kind != "bars" or not _are_long(names):
        return _BELOW
    return _BELOW + _BELOW_LETTER * min(max(map(len, names)), _SLANTED_CHARS)


def _names(
    names: Sequence[str], across: _Scale, floor: float, *, slanted: bool
) -> Iterator[Markup]:
    for place, name in enumerate(names):
        text, x, y = clean(name), across(place), floor + 14
        # The page's cut says how much is missing, which is longer than what these places hold.
        most = _SLANTED_CHARS if slanted else _NAME_CHARS
        shown = text if len(text) <= most else f"{text[: most - 1]}…"
        if slanted:
            yield _text(x, y, shown, anchor="end", transform=f"rotate({_SLANT} {x:.1f} {y})")
        else:
            yield _text(x, y, shown)


def _text(x: float, y: float, text: str, anchor: str = "middle", **more: str) -> Markup:
    return element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, **more)


def _interval(point: _Point, x: float, up: _Scale, color: str) -> list[Markup]:
    if point.low == point.high:
        return []
    ends = {"y1": f"{up(point.low):.1f}", "y2": f"{up(point.high):.1f}"}
    return [element("line", x1=f"{x:.1f}", x2=f"{x:.1f}", stroke=color, stroke_width="1.5", **ends)]


def _points(
    points: Sequence[_Point], across: _Scale, up: _Scale, color: str, of: tuple[int, int]
) -> Markup:
    fill = color if of[0] < len(_COLORS) else "none"
    made = []
    for point in points:
        x = across(point.x)
        dot = element(
            "circle", element("title", point.label),
            cx=f"{x:.1f}", cy=f"{up(point.y):.1f}", r="3.5", fill=fill, stroke=color,
        )  # fmt: skip
        made += [*_interval(point, x, up, color), dot]
    return joined(made)


def _lines(
    points: Sequence[_Point], across: _Scale, up: _Scale, color: str, of: tuple[int, int]
) -> Markup:
    inorder = sorted(points, key=lambda point: point.x)
    way = " ".join(f"{across(point.x):.1f},{up(point.y):.1f}" for point in inorder)
    dashed = {"stroke_dasharray": "6 4"} if of[0] >= len(_COLORS) else {}
    line = element("polyline", points=way, fill="none", stroke=color, stroke_width="2", **dashed)
    return joined([line, _points(inorder, across, up, color, of)])


def _bars(
    points: Sequence[_Point], across: _Scale, up: _Scale, color: str, of: tuple[int, int]
) -> Markup:
    place, count = of
    # A fifth is left free between the bars of one name and those of the next.
    width = 0.8 * (across(1) - across(0)) / count
    # As in the legend: framed where the colors begin again.
    fill = color if place < len(_COLORS) else "none"
    made = []
    for point in points:
        left = across(point.x) + (place - count / 2) * width
        # From zero, or from the end of the axis that is nearer to it.
        ends = sorted((up(point.y), up(min(max(up.first, 0.0), up.last))))
        bar = element(
            "rect", element("title", point.label), fill=fill, stroke=color,
            x=f"{left:.1f}", y=f"{ends[0]:.1f}",
            width=f"{width * 0.88:.1f}", height=f"{ends[1] - ends[0]:.1f}",
        )  # fmt: skip
        made += [bar, *_interval(point, left + width * 0.46, up, "currentColor")]
    return joined(made)


_DRAWN: Mapping[str, Callable[[Sequence[_Point], _Scale, _Scale, str, tuple[int, int]], Markup]] = {
    "lines": _lines,
    "points": _points,
    "bars": _bars,
}


def _legend(names: Sequence[str]) -> Markup:
    names = [cut(clean(name), _LEGEND_CHARS) for name in names]
    # A letter of this size is about six units wide.
    wide = 30 + 6 * max(map(len, names))
    in_row = max(1, (_WIDTH - _LEFT) // wide)
    entries = []
    for place, name in enumerate(names):
        x, y = _LEFT + place % in_row * wide, 12 + place // in_row * _LEGEND_ROW
        color = _COLORS[place % len(_COLORS)]
        # As the line is: filled, or framed for a dashed one.
        fill = color if place < len(_COLORS) else "none"
        square = element(
            "rect", x=str(x), y=str(y - 9), width="10", height="10", fill=fill, stroke=color
        )
        entries += [square, _text(x + 16, y, name, anchor="start")]
    height = 20 + (len(names) - 1) // in_row * _LEGEND_ROW
    return element(
        "svg", *entries, viewBox=f"0 0 {_WIDTH} {height}", width=str(_SHOWN_WIDTH),
        aria_hidden="true", font_family="sans-serif", font_size="11", fill="currentColor",
    )  # fmt: skip
