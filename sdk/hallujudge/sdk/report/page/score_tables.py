"""Tables of the first screen: the scores of the run and of its groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from hallujudge.metrics import Report, Score
from hallujudge.metrics.calibration.calibrated_scores import Calibration

from ..calibrated import corrected_cells, corrected_headings, group_text
from ..markup import Content, Markup, breakable, element, joined
from ..text import GROUP_LIMIT, counted, cut, interval_label, meaning_of, shown
from .about import PageAbout
from .scale import bar

__all__ = ["group_tables", "scores_table", "table"]

_NAME_CHARS = 120
_BASELINE_CHARS = 16
"""Longer names are in the headline alone; the table calls them the baseline."""
_FIRST_SCORES = 8
_FIRST_OF_GROUPS = 6
"""Columns of a group's table: as many as a window and a sheet of paper hold."""


def table(headings: Iterable[str], rows: Iterable[Iterable[Content]], style: str = "") -> Markup:
    """Return a table whose first cells are headings of their rows.

    Args:
        headings: Headings of the columns.
        rows: The cells.
        style: Class of the table, whose cells repeat their headings for a page too narrow for
            columns; empty for none.
    """
    first, *labels = headings
    names = (breakable(text, "_") for text in (first, *labels))
    head = element("tr", *(element("th", name, scope="col") for name in names))
    body = [_row(cells, labels if style else ()) for cells in rows]
    given = {"_class": style} if style else {}
    made = element("table", element("thead", head), element("tbody", *body), **given)
    # A scrollable region must be reachable by keyboard.
    return element("div", made, _class="scroll", tabindex="0", role="region", aria_label="Table")


def _row(cells: Iterable[Content], labels: Sequence[str]) -> Markup:
    """Return a row; its cells tell their labels if there are any."""
    first, *others = cells
    named = labels or [""] * len(others)
    data = [
        element("td", cell, **({"data_label": label} if label else {}))
        for label, cell in zip(named, others, strict=True)
    ]
    return element("tr", element("th", first, scope="row"), *data)


def scores_table(report: Report, about: PageAbout) -> Markup:
    """Return all scores; those after the first ones and those without items are folded up.

    Args:
        report: The report of the run.
        about: The baseline to compare with.
    """
    bounds = report.coverage.bounds
    name, base = about.baseline or ("", {})
    beside = corrected_headings(about.calibration)
    headings = ["score", "value", interval_label(report), "from 0 to 1", *beside, "n"]
    headings += ["unscored could make it"] if bounds else []
    headings += [name if len(name) <= _BASELINE_CHARS else "baseline"] if base else []
    some, empty = _by_items(report.scores.values())
    first, more = some[:_FIRST_SCORES], some[_FIRST_SCORES:]

    def shown_table(scores: Iterable[Score]) -> Markup:
        return table(headings, [_score_row(report, score, about) for score in scores], "scores")

    parts = [element("h2", "Scores"), shown_table(first)]
    if more:
        parts.append(_folded(f"{len(more)} more scores", shown_table(more)))
    if empty:
        parts.append(_folded(f"{counted(len(empty), 'score')} without items", shown_table(empty)))
    return element("section", *parts)


def _by_items(scores: Iterable[Score]) -> tuple[list[Score], list[Score]]:
    """Return scores with items, and ones without, such as those of a mode that was not run."""
    every = list(scores)
    some = [score for score in every if score.n]
    empty = [score for score in every if not score.n]
    # Where nothing is scored, the empty table says so.
    return (some, empty) if some else (every, [])


def _folded(told: str, *content: Markup) -> Markup:
    return element("details", element("summary", told), *content)


def _score_row(report: Report, score: Score, about: PageAbout) -> list[Content]:
    baseline = about.baseline[1] if about.baseline else {}
    bounds = report.coverage.bounds
    figures = shown(score, bounds.get(score.name))
    row: list[Content] = [
        _name(score.name, meaning_of(report, score.name)),
        element("b", figures.value),
        figures.interval,
        bar(score),
        *corrected_cells(about.calibration, score.name),
        figures.n,
    ]
    row += [figures.bound] if bounds else []
    if baseline:
        row.append(f"{baseline[score.name]:.4f}" if score.name in baseline else "")
    return row


def _name(name: str, meaning: str) -> Markup:
    parts = [element("code", name)]
    if meaning:
        parts.append(element("small", meaning))
    return joined(parts)


def group_tables(
    key: str, values: Mapping[str, Mapping[str, Score]], calibration: Calibration | None = None
) -> Markup:
    """Return the scores of the groups of a key; scores that no group has are left out.

    Args:
        key: What the items are grouped by.
        values: Group -> its scores.
        calibration: The scores corrected by human labels.
    """
    names = list(next(iter(values.values()), {}))
    names = [name for name in names if any(_defined(scores, name) for scores in values.values())]
    title = element("h2", f"By {cut(key, _NAME_CHARS)}")
    first, *more = (
        _group_table(key, values, names[at : at + _FIRST_OF_GROUPS], calibration)
        for at in range(0, max(len(names), 1), _FIRST_OF_GROUPS)
    )
    parts = [title, first]
    if more:
        parts.append(_folded(f"{len(names) - _FIRST_OF_GROUPS} more scores", *more))
    if len(values) > GROUP_LIMIT:
        note = f"and {len(values) - GROUP_LIMIT:,} more in report.json"
        parts.append(element("p", note, _class="muted"))
    return element("section", *parts, _class="groups")


def _defined(scores: Mapping[str, Score], name: str) -> bool:
    return name in scores and scores[name].value is not None


def _group_table(
    key: str,
    values: Mapping[str, Mapping[str, Score]],
    names: Sequence[str],
    calibration: Calibration | None,
) -> Markup:
    def corrected(value: str) -> dict[str, str]:
        return {name: group_text(calibration, key, value, name) for name in names}

    rows = (
        [cut(value, _NAME_CHARS) or "(none)", *_group_cells(scores, corrected(value))]
        for value, scores in islice(values.items(), GROUP_LIMIT)
    )
    return table([key, *names], rows)


def _group_cells(scores: Mapping[str, Score], corrected: Mapping[str, str]) -> Iterator[Content]:
    """Yield a cell for each score, with the text of its corrected one if there is any."""
    for name, told in corrected.items():
        if name not in scores:
            yield ""
            continue
        figures = shown(scores[name])
        small = element("small", f"{figures.interval} n\u00a0{figures.n}".strip())
        beside = [element("small", told)] if told else []
        yield joined([element("b", figures.value), bar(scores[name]), small, *beside])
