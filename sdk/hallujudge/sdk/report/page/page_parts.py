"""Parts of a page: what it shows of a batch of items, compressed, and the markup of it all.

Only this module turns text into markup. ``make page`` builds the scripts and style sheets from
``web/report``.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from itertools import islice
from typing import Any, TypeAlias

from hallujudge.metrics import Item, ItemResult, JsonValue, Outcome, Score

from ..item_views import Facet, ItemView, Passage, Shade, view_item, view_of
from ..report_text import clean, cut

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


def score_bar(score: Score, *, is_count: bool = False) -> Markup:
    """Draw value and interval on a line from 0 to 1; draw nothing for lengths and counts."""
    ends = [end for end in (score.ci_low, score.ci_high, score.value) if end is not None]
    if is_count or score.value is None or not all(0 <= end <= 1 for end in ends):
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


def score_scale(score: Score, baseline: float | None = None, highest: float = 1.0) -> Markup:
    """Draw value, interval and baseline on a scale that fits them.

    Args:
        score: The score.
        baseline: Another value to compare with, drawn as a dashed line.
        highest: The highest value that the score may have, where the scale ends if it gets there.
    """
    if score.value is None:
        return Markup("")
    known = [n for n in (score.value, score.ci_low, score.ci_high, baseline) if n is not None]
    ticks = _ticks(min(known), max(known), highest)
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


def _ticks(low: float, high: float, highest: float) -> list[float]:
    """Return round numbers around an interval: at least two, about five."""
    room = (high - low) * 0.25 or abs(high) * 0.05 or 0.05
    most = high
    # Below 0 there is nothing to show, unless a value is there.
    low, high = max(low - room, min(low, 0.0)), high + room
    raw = (high - low) / 4
    power = 10 ** math.floor(math.log10(raw))
    # The tolerance absorbs the rounding of the division by a power of ten.
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.floor(low / step), math.ceil(high / step)
    ticks = [round(n * step, 10) for n in range(first, last + 1)]
    # Rates end at 1, and ratings at the best one; counts and lengths may be above.
    if not most <= highest < ticks[-1]:
        return ticks
    return [*(tick for tick in ticks if tick < highest), highest]


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


MOST_PAGE_BYTES = 64 << 20
"""Compressed size at which a page takes no more items."""

ITEMS_IN_PART = 64
"""Items in each part but the last; the page's script finds an item's part by its position."""

FIELD = "field:"
"""Prefix of facets that are fields of the input, which separates them from the metric's own."""

# Prefix of measures that are scores of items.
_SCORE = "score:"
# Limits of what the list holds of each item, which a browser has in memory at once; details are
# unpacked when an item is opened.
_SNIPPET = 90
_REASON = 240
_NAME = 200
_TERMS = 200
# Length of the compressed columns, before the columns.
_SIZE = 4
_STATUS = "status"
# A chart of more bars than this is of no use.
_FACET_VALUES = 200
# More values than this, of less than two items each, name items: they are ids.
_NAMES = 20


def packed(value: object, *, level: int = 6) -> bytes:
    """Return a value as compressed JSON; equal values give equal bytes.

    Args:
        value: The value; it has no NaN and no infinity.
        level: Compression level of gzip, from 1 to 9.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # gzip would store the time of day; equal items must make equal bytes.
    return gzip.compress(text.encode(), compresslevel=level, mtime=0)


def unpacked(data: bytes) -> Any:
    """Return the value that was packed."""
    return json.loads(gzip.decompress(data))


@dataclass(slots=True)
class Columns:
    """The columns of items: what charts, filters and the list need of each."""

    ids: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    unscored: list[str] = field(default_factory=list)
    """Why an item is unscored; empty if it is scored."""
    wrong: list[int] = field(default_factory=list)
    total: list[int] = field(default_factory=list)
    snippet: list[str] = field(default_factory=list)
    measures: list[dict[str, float]] = field(default_factory=list)
    facets: list[dict[str, str]] = field(default_factory=list)
    terms: list[dict[str, list[str]]] = field(default_factory=list)
    positions: list[list[int]] = field(default_factory=list)
    charts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Titles of the charts: of facets, with whether bars show rates, and of terms."""

    def add(self, item: Item, result: ItemResult, view: ItemView) -> None:
        """Add an item."""
        scored = result.outcome is Outcome.SCORED
        self.ids.append(clean(item.id))
        self.groups.append(clean(item.group_id))
        reason = f"{result.reason}: {result.detail}" if result.detail else result.reason
        self.unscored.append("" if scored else cut(clean(reason), _REASON))
        self.wrong.append(view.wrong)
        self.total.append(view.total)
        self.snippet.append(_snippet(view))
        self.measures.append(_measures(item, result, view))
        own = {f"{FIELD}{name}": value for name, value in result.fields.items()}
        own[_STATUS] = "scored" if scored else result.reason
        facets = {**view.facets, **own}
        self.facets.append({name: cut(clean(value), _NAME) for name, value in facets.items()})
        self.terms.append(
            {
                kind: [cut(clean(word), _NAME) for word in list(words)[:_TERMS]]
                for kind, words in view.terms.items()
            }
        )
        self.positions.append(_positions(view))
        self._add_charts(result)

    def _add_charts(self, result: ItemResult) -> None:
        view = view_of(result.evidence)
        facets = self.charts.setdefault("facets", {})
        facets.setdefault(_STATUS, list(Facet("Scored", rates=False)))
        for name in result.fields:
            facets.setdefault(f"{FIELD}{name}", list(Facet(_title(name))))
        for name, facet in view.facets.items():
            facets.setdefault(name, list(facet))
        self.charts.setdefault("terms", {}).update(view.terms)
        if result.evidence is not None:
            self.charts.setdefault("words", {})[" ".join(view.words)] = list(view.words)
        for name in islice(result.scores, 1):
            scores = self.charts.setdefault("scores", {})
            scores.setdefault(f"{_SCORE}{name}", f"{name} of an item")

    def extend(self, later: Columns) -> None:
        """Add the columns of the items that follow."""
        for name in _LISTS:
            getattr(self, name).extend(getattr(later, name))
        for kind, titles in later.charts.items():
            self.charts.setdefault(kind, {}).update(titles)

    def at(self, places: Sequence[int]) -> Columns:
        """Return the columns of the items at some places, in this order."""
        lists = {name: [getattr(self, name)[place] for place in places] for name in _LISTS}
        return Columns(**lists, charts=self.charts)

    def to_json(self) -> Mapping[str, Any]:
        """Return the columns as a part holds them."""
        return {name: getattr(self, name) for name in self.__slots__}


_LISTS = tuple(name for name in Columns.__slots__ if name != "charts")


def page_part(pairs: Iterable[tuple[Item, ItemResult]]) -> bytes:
    """Return what the page shows of a batch of items, compressed.

    Args:
        pairs: Items with their results.
    """
    columns = Columns()
    details: list[JsonValue] = []
    for item, result in pairs:
        view = view_item(item, result)
        columns.add(item, result, view)
        # A list with the details of each run on the page: one here, two on a page of two runs.
        details.append([{**view.detail(), "words": list(view_of(result.evidence).words)}])
    head = packed(columns.to_json())
    return len(head).to_bytes(_SIZE, "little") + head + packed(details)


def read_columns(parts: Iterable[bytes]) -> Columns:
    """Return the columns of a page's parts, one after the other."""
    columns = Columns()
    for part in parts:
        columns.extend(Columns(**unpacked(part[_SIZE : _SIZE + _head_size(part)])))
    return columns


def read_details(part: bytes) -> list[list[dict[str, JsonValue]]]:
    """Return the details of a part's items, in a list of one for each item."""
    details: list[list[dict[str, JsonValue]]] = unpacked(packed_details(part))
    return details


def packed_details(part: bytes) -> bytes:
    """Return the details of a part as they are, compressed."""
    return part[_SIZE + _head_size(part) :]


def _head_size(part: bytes) -> int:
    return int.from_bytes(part[:_SIZE], "little")


def _title(field_name: str) -> str:
    """Return a field's name as the title of its chart, like those of a metric's own charts."""
    title = cut(clean(field_name.replace("_", " ")), _NAME)
    return title[:1].upper() + title[1:]


def _snippet(view: ItemView) -> str:
    """Return the beginning of what was said: a response, or short answers with their questions."""
    passages = [passage for passage in view.passages if passage.text]
    if len(passages) > 1 and passages[0].label == "Question":
        question, answer, *_ = passages
        long = len(answer.text) > _SNIPPET // 2
        text = _start(answer) if long else f"{_start(question)} – {_start(answer)}"
    elif len(passages) > 1 and len(passages[0].text) <= _SNIPPET // 2:
        text = " · ".join(f"{each.label}: {_start(each)}" for each in passages)
    else:
        text = _start(passages[0]) if passages else view.summary
    return clean(" ".join(text.split()))[:_SNIPPET]


def _start(passage: Passage) -> str:
    return passage.text[: 2 * _SNIPPET]


def _measures(item: Item, result: ItemResult, view: ItemView) -> dict[str, float]:
    response = getattr(item, "response", None)
    measures = dict(view.measures)
    if isinstance(response, str):
        measures["words"] = len(response.split())
    # The first score of the item's kind; AMBER's descriptions and questions have different ones.
    for name, score in islice(result.scores.items(), 1):
        if score is not None:
            measures[f"{_SCORE}{name}"] = score
    return {name: round(number, 6) for name, number in measures.items()}


def _positions(view: ItemView) -> list[int]:
    """Return the places of hallucinated spans, in percent of their passage's length.

    A mark on a whole passage, as on a wrong answer, has no place in it.
    """
    return [
        min(99, 100 * mark.start // len(passage.text))
        for passage in view.passages
        for mark in passage.marks
        if mark.shade is Shade.WRONG and passage.text and mark.end - mark.start < len(passage.text)
    ]


def columns_json(runs: Sequence[Columns]) -> dict[str, Any]:
    """Return the columns of one or several runs over the same items, as the script reads them."""
    words = Counter(
        word for run in runs for terms in run.terms for of in terms.values() for word in of
    )
    # The most frequent first, whose codes then have the fewest digits.
    dictionary = {word: code for code, (word, _) in enumerate(words.most_common())}
    reasons = list(dict.fromkeys(reason for run in runs for reason in run.unscored if reason))
    values = _facet_values(runs)
    return {
        "ids": runs[0].ids,
        "groups": runs[0].groups,
        "dictionary": list(dictionary),
        "facetValues": {name: list(codes) for name, codes in values.items()},
        "reasons": reasons,
        "sides": [_side_columns(run, dictionary, reasons, values) for run in runs],
    }


def _facet_values(runs: Sequence[Columns]) -> dict[str, dict[str, int]]:
    """Return the values of each facet with their codes.

    Facets with too many values, or with ids, are left out, as are input fields that repeat a facet
    of the metric.
    """
    counts: dict[str, Counter[str]] = {}
    for run in runs:
        for facets in run.facets:
            for name, value in facets.items():
                counts.setdefault(name, Counter())[value] += 1
    return {
        name: {value: code for code, (value, _) in enumerate(counter.most_common())}
        for name, counter in counts.items()
        if 1 < len(counter) <= _FACET_VALUES
        and len(counter) <= max(_NAMES, counter.total() / 2)
        and not _repeats(name, counts, runs)
    }


def _repeats(name: str, counts: Mapping[str, Counter[str]], runs: Sequence[Columns]) -> bool:
    """Return whether a field has the values of a facet of the metric, item by item."""
    if not name.startswith(FIELD):
        return False
    same = [
        other for other in counts if not other.startswith(FIELD) and counts[other] == counts[name]
    ]
    return any(
        all(of.get(name) == of.get(other) for run in runs for of in run.facets) for other in same
    )


def _side_columns(
    run: Columns,
    dictionary: Mapping[str, int],
    reasons: Sequence[str],
    values: Mapping[str, Mapping[str, int]],
) -> dict[str, Any]:
    # 0 stands for items that are scored.
    codes = {reason: code for code, reason in enumerate(reasons, 1)}
    measures, facets, terms = run.measures, run.facets, run.terms
    return {
        "unscored": [codes.get(reason, 0) for reason in run.unscored],
        "wrong": run.wrong,
        "total": run.total,
        "snippet": run.snippet,
        "positions": run.positions,
        "measures": {name: [of.get(name) for of in measures] for name in _column_names(measures)},
        "facets": {
            name: [code.get(of.get(name, ""), -1) for of in facets] for name, code in values.items()
        },
        "terms": {
            kind: [[dictionary[word] for word in of.get(kind, ())] for of in terms]
            for kind in _column_names(terms)
        },
    }


def _column_names(columns: Iterable[Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(name for of in columns for name in of))
