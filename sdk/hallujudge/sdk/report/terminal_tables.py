"""Tables for a terminal: a report, and several variants side by side."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from hallujudge.metrics import Report, Score

from .report_text import (
    GROUP_LIMIT,
    Shown,
    bounds_note,
    broken,
    calibration_sentences,
    clean,
    counts_among,
    coverage_sentence,
    cut,
    group_cells,
    group_headings,
    group_text,
    headline_of,
    judging_sentences,
    meaning_of,
    score_rows,
    shown,
    signature_lines,
)

if TYPE_CHECKING:
    from rich.styled import Styled
    from rich.table import Table

    from hallujudge.metrics.calibration.calibrated_scores import Calibration


_MIN_WIDTH = 40
# Widths of a terminal from which bounds and the meanings of scores fit into the table.
_WITH_BOUNDS = 80
_WITH_MEANINGS = 90
_NAME_CHARS = 60
# Limit for the names of scores if other columns take most of 80.
_SCORE_CHARS = 22
_VARIANTS_WIDTH = 80
# Reports with more rows of groups are shown in short, in as many rows, which fit a screen.
_MOST_ROWS = 24
# More undefined scores are left out of a table that has others.
_MOST_UNDEFINED = 8
# Names of scores are broken after this many characters, to stand side by side.
_HEADING_CHARS = 12


def render_table(
    report: Report,
    *,
    width: int = 80,
    color: bool = False,
    calibration: Calibration | None = None,
    all_rows: bool = False,
) -> str:
    """Return the report as a table.

    Args:
        report: The report.
        width: Columns of the terminal, at least 40.
        color: Whether to use ANSI colour codes.
        calibration: The scores corrected by human labels, which are shown next to the raw ones.
        all_rows: Whether a long report shows all scores of all groups, with intervals.

    Returns:
        Scores with intervals, coverage with bounds where items are unscored, notes, groups, and the
        signature; ends with a line feed.
    """
    width = max(width, _MIN_WIDTH)
    return print_to_text(_parts(report, width, calibration, all_rows), width=width, color=color)


def print_to_text(parts: Iterable[object], *, width: int, color: bool = False) -> str:
    """Return lines and tables as they look on a terminal; ends with a line feed."""
    from rich.console import Console

    # Fixed settings: the text must not depend on this process's terminal or environment.
    console = Console(
        file=io.StringIO(),
        _environ={},
        width=max(width, _MIN_WIDTH),
        force_terminal=color,
        force_jupyter=False,
        no_color=not color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    # Rich pads cells to their column's width; without trailing blanks, copied text is clean.
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _is_long(report: Report) -> bool:
    """Return whether a report has more rows than fit a screen."""
    rows = sum(len(scores) for groups in report.groups.values() for scores in groups.values())
    return rows > _MOST_ROWS


def _parts(
    report: Report, width: int, calibration: Calibration | None, all_rows: bool
) -> Iterator[object]:
    """Yield the lines and tables of a report."""
    short = not all_rows and calibration is None and _is_long(report)
    yield from (_bold(f"{clean(report.metric)} ({clean(report.variant)})"), "")
    shown_report = _shortened(report) if short else report
    lacking = [] if all_rows else _undefined(shown_report)
    kept = {name: s for name, s in shown_report.scores.items() if name not in lacking}
    yield from (_scores_table(replace(shown_report, scores=kept), width, calibration), "")
    if lacking:
        yield (
            f"{len(lacking)} scores are undefined, such as {clean(lacking[0])}; --all-rows prints "
            "them."
        )
    yield coverage_sentence(report)
    if report.coverage.bounds and width < _WITH_BOUNDS:
        for name, bound in report.coverage.bounds.items():
            yield f"  unscored could make {clean(name)} {bounds_note(bound)}"
    yield from judging_sentences(report.judging)
    for sentence in calibration_sentences(calibration) if calibration else ():
        yield from ("", clean(sentence))
    for note in report.notes:
        yield from ("", f"note: {clean(note)}")
    if short:
        yield from _short_groups(report, width)
    for key, values in () if short else report.groups.items():
        title = _bold(f"by {cut(clean(key), _NAME_CHARS)}")
        yield from ("", title, _groups_table(key, values, width, calibration))
        if len(values) > GROUP_LIMIT:
            yield f"and {len(values) - GROUP_LIMIT:,} more in report.json"
    yield from ("", _bold("signature"))
    signature = calibration.signature if calibration else report.signature
    yield from (f"  {line}" for line in signature_lines(signature, width - 2))


def _bold(text: str) -> Styled:
    from rich.styled import Styled

    return Styled(text, "bold")


def _undefined(report: Report) -> list[str]:
    """Return the scores that are left out: many undefined ones, as of AMBER's other task."""
    found = [name for name, score in report.scores.items() if score.value is None]
    return found if _MOST_UNDEFINED < len(found) < len(report.scores) else []


def _shortened(report: Report) -> Report:
    """Return a report with the scores that a short table shows."""
    names = set(headline_of(report))
    scores = {name: score for name, score in report.scores.items() if name in names}
    return replace(report, scores=scores)


def _short_groups(report: Report, width: int) -> Iterator[object]:
    """Yield one row for each group, without intervals, and how to see the rest."""
    # A group's name and n take about 30 columns, a score at least 10.
    names = headline_of(report)[: max(1, (width - 30) // 10)]
    left, hidden = _MOST_ROWS, []
    for key, values in report.groups.items():
        title = f"by {cut(clean(key), _NAME_CHARS)}"
        # Half of the groups by a further key would be taken for all of them.
        fitting = left if left == _MOST_ROWS or len(values) <= left else 0
        left -= min(len(values), fitting)
        if len(values) > fitting:
            hidden.append(f"{len(values) - fitting:,} groups {title}")
        if fitting:
            table = _short_table(names, dict(islice(values.items(), fitting)))
            yield from ("", _bold(title), table)
    more = f", and {' and '.join(hidden)}" if hidden else ""
    yield from ("", f"--all-rows prints all scores with intervals{more}.")


def _short_table(names: Sequence[str], groups: Mapping[str, Mapping[str, Score]]) -> Table:
    table = score_table("group", *(broken(name, _HEADING_CHARS) for name in names), "n")
    counts = counts_among(groups.values())
    for value, scores in groups.items():
        figures = [shown(scores[name], is_count=name in counts) for name in names]
        label = cut(clean(value), _NAME_CHARS) or "(none)"
        table.add_row(label, *(figure.value for figure in figures), figures[0].n)
    return table


def score_table(*headings: str) -> Table:
    """Return an empty table with headings; values are aligned to the right."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in headings:
        numeric = heading in {"value", "n"}
        table.add_column(
            heading,
            justify="right" if numeric else "left",
            # rich would otherwise cut a long cell off.
            overflow="fold",
        )
    return table


def _scores_table(report: Report, width: int, calibration: Calibration | None) -> Table:
    bounds = bool(report.coverage.bounds)
    headings, rows = score_rows(report, calibration, bounds=width >= _WITH_BOUNDS)
    narrow = (bounds and width >= _WITH_BOUNDS) or calibration is not None
    meanings = [[meaning_of(report, name)] for name in report.scores]
    if width < _WITH_MEANINGS or bounds or not any(map(any, meanings)):
        meanings = [[] for _ in meanings]
    table = score_table(*headings, *(["meaning"] if any(meanings) else []))
    for (name, *cells), meaning in zip(rows, meanings, strict=True):
        shown_name = broken(clean(name), _SCORE_CHARS) if narrow else clean(name)
        table.add_row(shown_name, *cells, *meaning)
    return table


def _groups_table(
    key: str,
    values: Mapping[str, Mapping[str, Score]],
    width: int,
    calibration: Calibration | None,
) -> Table:
    names = list(next(iter(values.values()), {}))
    # An interval is 16 columns wide; a group's name and n need about 24.
    wide = 24 + 18 * len(names) <= width
    table = (
        score_table("group", *names)
        if wide
        else score_table(
            "group", "score", "value", "interval", *group_headings(calibration, key), "n"
        )
    )
    counts = counts_among(values.values())
    for value, scores in islice(values.items(), GROUP_LIMIT):
        label = cut(clean(value), _NAME_CHARS) or "(none)"
        figures = {name: shown(score, is_count=name in counts) for name, score in scores.items()}
        if wide:
            corrected = (group_text(calibration, key, value, name) for name in figures)
            table.add_row(label, *map(_value_cell, figures.values(), corrected))
        else:
            for name, f in figures.items():
                cells = group_cells(calibration, key, value, name)
                table.add_row(label, clean(name), f.value, f.interval, *cells, f.n)
                label = ""
    return table


def _value_cell(figures: Shown, corrected: str) -> str:
    return "\n".join(filter(None, (figures.value, figures.interval, f"n {figures.n}", corrected)))


def render_variants(reports: Sequence[Report]) -> str:
    """Return the scores of one metric's variants in one table.

    Args:
        reports: One report for each variant, of the same responses.

    Returns:
        A row for each score with each variant's value and interval, the difference of the last
        and the first variant, coverage, notes and signatures; ends with a line feed.
    """
    names = [clean(report.variant) for report in reports]
    table = score_table("score", *names, "difference")
    for score in reports[0].scores:
        figures = [shown(report[score]) for report in reports]
        cells = ["\n".join(filter(None, (f.value, f.interval))) for f in figures]
        table.add_row(clean(score), *cells, _variant_difference(reports, score))
    parts: list[object] = [f"{clean(reports[0].metric)} ({', '.join(names)})", "", table]
    for name, report in zip(names, reports, strict=True):
        parts += ["", f"{name}: {coverage_sentence(report)}", *judging_sentences(report.judging)]
        parts += [f"note: {clean(note)}" for note in report.notes]
    parts += ["", "signatures"]
    for report in reports:
        parts += [f"  {line}" for line in signature_lines(report.signature, _VARIANTS_WIDTH - 2)]
    return print_to_text(parts, width=_VARIANTS_WIDTH)


def _variant_difference(reports: Sequence[Report], score: str) -> str:
    first, last = reports[0][score].value, reports[-1][score].value
    return "" if first is None or last is None else f"{last - first:+.4f}"
