"""Drawings of graphs as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Final

from hallujudge.synonym_graphs.graph import SynonymGraph

_FONT: Final = "font-family='DejaVu Sans, Helvetica, Arial, sans-serif'"
_ROOT, _FORM, _EDGE, _AMBIGUOUS = "#0b5394", "#333333", "#9aa7b5", "#b45309"
# Pixels: the height of a row, the mean width of a character at 13 px, margins, cards and lines.
_ROW, _CHAR, _MARGIN = 26, 7.6, 24
_CARD, _GAP, _LINE = 250, 14, 17
_LIMIT: Final = 400
"""The maximum number of forms in a neighbourhood."""
_MAX_LINES: Final = 60
"""The maximum number of lines that stays readable; a graph with more is drawn as cards."""


def draw_neighbourhood(graph: SynonymGraph, word: str) -> str:
    """Return a drawing of the forms around a word and their roots.

    Forms are on the left and roots on the right, joined by lines. If there are too many lines, each
    root is a card with its forms; the cards of the word's own roots come first.

    Args:
        graph: The graph.
        word: A root or a form.

    Raises:
        KeyError: The graph does not know the word.
    """
    roots = list(graph.roots_of(word))
    if word in graph.roots and word not in roots:
        roots.insert(0, word)
    if not roots:
        raise KeyError(word)
    edges = [
        (form, root)
        for form, found in graph.edges
        for root in found
        if form != root and not set(found).isdisjoint(roots)
    ]
    shown = list(dict.fromkeys(form for form, _ in sorted(edges, key=_by_root(roots))))[:_LIMIT]
    targets = list(dict.fromkeys([*roots, *sorted({root for _, root in edges})]))
    edges = [edge for edge in edges if edge[0] in set(shown)]
    title = f"{word}: {_counted(len(shown), 'form')}, {_counted(len(targets), 'root')}"
    if len(edges) <= _MAX_LINES:
        return _two_columns(graph, shown, targets, edges, word, title)
    forms: dict[str, list[str]] = {root: [] for root in targets}
    for form, root in edges:
        forms[root].append(form)
    return _cards(graph, forms, title, 4)


def _by_root(roots: Sequence[str]) -> Callable[[tuple[str, str]], tuple[int, str, str]]:
    place = {root: index for index, root in enumerate(roots)}
    return lambda edge: (place.get(edge[1], len(roots)), edge[1], edge[0])


def _two_columns(
    graph: SynonymGraph,
    forms: Sequence[str],
    roots: Sequence[str],
    edges: Iterable[tuple[str, str]],
    word: str,
    title: str,
) -> str:
    left = max((len(form) for form in forms), default=8) * _CHAR + 20
    right = max(len(root) for root in roots) * _CHAR + 40
    width = 2 * _MARGIN + left + 220 + right
    rows = max(len(forms), len(roots), 1)
    height = 2 * _MARGIN + 40 + rows * _ROW
    form_y = {form: _place(i, len(forms), rows) for i, form in enumerate(forms)}
    root_y = {root: _place(i, len(roots), rows) for i, root in enumerate(roots)}
    x1, x2 = _MARGIN + left, _MARGIN + left + 220
    several = {form for form, found in graph.edges if len(found) > 1}
    parts = [_title(title, graph.label)]
    for form, root in edges:
        y1, y2 = form_y[form], root_y[root]
        colour = _AMBIGUOUS if form in several else _EDGE
        parts.append(
            # 110 is half of the room between the columns: curves leave and arrive level.
            f"<path d='M{x1:.0f} {y1:.0f} C{x1 + 110:.0f} {y1:.0f} {x2 - 110:.0f} {y2:.0f} "
            f"{x2:.0f} {y2:.0f}' fill='none' stroke='{colour}' stroke-width='1.4' opacity='0.8'/>"
        )
    for form, y in form_y.items():
        weight = "bold" if form == word else "normal"
        parts.append(_text(x1 - 8, y + 4, form, _FORM, anchor="end", weight=weight))
    for root, y in root_y.items():
        parts.append(
            f"<rect x='{x2:.0f}' y='{y - 11:.0f}' rx='5' width='{len(root) * _CHAR + 22:.0f}' "
            f"height='22' fill='#e8f0fa' stroke='{_ROOT}'/>"
        )
        parts.append(_text(x2 + 10, y + 4, root, _ROOT, weight="bold"))
    return _svg(width, height, parts)


def _place(index: int, count: int, rows: int) -> float:
    """Return the y coordinate of a row; the rows are spread evenly over the height."""
    return _MARGIN + 48 + (index + 0.5) * rows * _ROW / max(count, 1)


def draw_domain(graph: SynonymGraph, *, columns: int = 6) -> str:
    """Return a drawing of every root with its forms, as cards in columns of similar height.

    Args:
        graph: The graph.
        columns: The number of columns.
    """
    forms: dict[str, list[str]] = {root: [] for root in sorted(graph.roots)}
    for form, found in graph.edges:
        for root in found:
            if form != root:
                forms[root].append(form)
    counts = f"{_counted(len(graph.roots), 'root')}, {_counted(len(graph.edges), 'form')}"
    title = f"{graph.name}: {counts}"
    return _cards(graph, forms, title, columns)


def _cards(
    graph: SynonymGraph, forms: Mapping[str, Sequence[str]], title: str, columns: int
) -> str:
    """Return the cards of roots with their forms, each in the shortest column."""
    several = {form for form, found in graph.edges if len(found) > 1}
    heights = [0.0] * columns
    parts = [_title(title, graph.label)]
    for root, under in forms.items():
        column = heights.index(min(heights))
        lines = _wrapped(sorted(under), several)
        x = _MARGIN + column * (_CARD + _GAP)
        y = _MARGIN + 48 + heights[column]
        height = 28 + _LINE * len(lines) + (4 if lines else 0)
        parts += _card(x, y, height, root, lines)
        heights[column] += height + _GAP
    width = 2 * _MARGIN + columns * (_CARD + _GAP) - _GAP
    return _svg(width, _MARGIN + 60 + max(heights), parts)


def _card(x: float, y: float, height: float, root: str, lines: Sequence[str]) -> list[str]:
    parts = [
        f"<rect x='{x:.0f}' y='{y:.0f}' rx='6' width='{_CARD}' height='{height:.0f}' "
        "fill='#fbfcfe' stroke='#c5d0dc'/>",
        _text(x + 10, y + 19, _cut(root, 30), _ROOT, weight="bold"),
    ]
    parts += [
        _text(x + 10, y + 21 + _LINE * (index + 1), line, _FORM, size=11, raw=True)
        for index, line in enumerate(lines)
    ]
    return parts


def _wrapped(forms: Sequence[str], several: set[str]) -> list[str]:
    """Return forms in lines that fit a card; forms with several roots have another colour."""
    lines: list[str] = []
    line, room = "", 0
    for index, form in enumerate(forms):
        # A card has room for 36 characters at 11 px, and for 30 of its root at 13 px.
        text = _cut(form, 34) + ("," if index < len(forms) - 1 else "")
        if line and room + len(text) + 1 > 36:
            lines.append(line)
            line, room = "", 0
        colour = f" fill='{_AMBIGUOUS}'" if form in several else ""
        line += f"{' ' if line else ''}<tspan{colour}>{escape(text)}</tspan>"
        room += len(text) + 1
    return [*lines, line] if line else lines


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _title(title: str, label: str) -> str:
    note = f"{label}   (orange: more than one root)"
    return _text(_MARGIN, _MARGIN + 12, title, "#111111", size=16, weight="bold") + _text(
        _MARGIN, _MARGIN + 31, note, "#666666", size=11
    )


def _text(
    x: float,
    y: float,
    text: str,
    fill: str,
    *,
    size: int = 13,
    anchor: str = "start",
    weight: str = "normal",
    raw: bool = False,
) -> str:
    body = text if raw else escape(text)
    return (
        f"<text x='{x:.0f}' y='{y:.0f}' fill='{fill}' font-size='{size}' font-weight='{weight}' "
        f"text-anchor='{anchor}'>{body}</text>"
    )


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _svg(width: float, height: float, parts: Sequence[str]) -> str:
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0f}' height='{height:.0f}' "
        f"viewBox='0 0 {width:.0f} {height:.0f}' {_FONT}>\n"
        f"<rect width='100%' height='100%' fill='white'/>\n" + "\n".join(parts) + "\n</svg>\n"
    )
