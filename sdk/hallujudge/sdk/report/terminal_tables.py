"""Tables for a terminal: a report, several variants side by side, and analyses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from hallujudge.metrics import Report, Score
from hallujudge.metrics.calibration.calibrated_scores import Calibration

from ..analysis import Analysis, AnalysisTable, Cell
from .report_text import (
    ABSENT,
    GROUP_LIMIT,
    Shown,
    bounds_note,
    broken,
    calibration_sentences,
    clean,
    coverage_sentence,
    cut,
    group_cells,
    group_headings,
    group_text,
    judging_sentences,
    meaning_of,
    score_rows,
    shown,
    signature_lines,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


_MIN_WIDTH = 40
# Widths of a terminal from which bounds and the meanings of scores fit into the table.
_WITH_BOUNDS = 80
_WITH_MEANINGS = 90
_NAME_CHARS = 60
# Limit for the names of scores if other columns take most of 80.
_SCORE_CHARS = 22
_VARIANTS_WIDTH = 80
_ANALYSIS_ROWS = 30
_ANALYSIS_CELL_CHARS = 40


def render_table(
    report: Report,
    *,
    width: int = 80,
    color: bool = False,
    calibration: Calibration | None = None,
) -> str:
    """Return the report as a table.

    Args:
        report: The report.
        width: Columns of the terminal, at least 40.
        color: Whether to use ANSI colour codes.
        calibration: The scores corrected by human labels, which are shown next to the raw ones.

    Returns:
        Scores with intervals, coverage with bounds where items are unscored, notes, groups, and the
        signature; ends with a line feed.
    """
    console = _console(width, color)
    with console.capture() as capture:
        _print_report(console, report, calibration)
    return _without_padding(capture.get())


def print_to_text(parts: Iterable[object], *, width: int) -> str:
    """Return lines and tables as they look on a terminal without colours; ends with a line feed."""
    console = _console(width, color=False)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return _without_padding(capture.get())


def _without_padding(text: str) -> str:
    # Rich pads cells to their column's width; without trailing blanks, copied text is clean.
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def _console(width: int, color: bool) -> Console:
    import io

    from rich.console import Console

    # Fixed settings: the text must not depend on this process's terminal or environment.
    return Console(
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


def _print_report(console: Console, report: Report, calibration: Calibration | None) -> None:
    title = f"{clean(report.metric)} ({clean(report.variant)})"
    console.print(title, style="bold")
    console.print()
    console.print(_scores_table(report, console.width, calibration))
    console.print()
    console.print(coverage_sentence(report))
    if report.coverage.bounds and console.width < _WITH_BOUNDS:
        for name, bound in report.coverage.bounds.items():
            console.print(f"  unscored could make {clean(name)} {bounds_note(bound)}")
    for sentence in judging_sentences(report.judging):
        console.print(sentence)
    for sentence in calibration_sentences(calibration) if calibration else ():
        console.print()
        console.print(clean(sentence))
    for note in report.notes:
        console.print()
        console.print(f"note: {clean(note)}")
    for key, values in report.groups.items():
        console.print()
        console.print(f"by {cut(clean(key), _NAME_CHARS)}", style="bold")
        console.print(_groups_table(key, values, console.width, calibration))
        if len(values) > GROUP_LIMIT:
            console.print(f"and {len(values) - GROUP_LIMIT:,} more in report.json")
    console.print()
    console.print("signature", style="bold")
    signature = calibration.signature if calibration else report.signature
    for line in signature_lines(signature, console.width - 2):
        console.print(f"  {line}")


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
    for value, scores in islice(values.items(), GROUP_LIMIT):
        label = cut(clean(value), _NAME_CHARS) or "(none)"
        figures = {name: shown(score) for name, score in scores.items()}
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


def render_variants(reports: Sequence[Report], *, width: int = _VARIANTS_WIDTH) -> str:
    """Return the scores of one metric's variants in one table.

    Args:
        reports: One report for each variant, of the same responses.
        width: Columns of the terminal.

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
        parts += [f"  {line}" for line in signature_lines(report.signature, width - 2)]
    return print_to_text(parts, width=width)


def _variant_difference(reports: Sequence[Report], score: str) -> str:
    first, last = reports[0][score].value, reports[-1][score].value
    return "" if first is None or last is None else f"{last - first:+.4f}"


def render_analysis(analysis: Analysis) -> str:
    """Return the analyses as readable text that ends with a line feed.

    Args:
        analysis: The analyses. Long tables are cut after their first rows.
    """
    parts = [f"{analysis.metric}/{analysis.variant}"]
    parts += [_analysis_table(table) for table in analysis.tables if table.rows]
    parts.append(f"of the run {clean(analysis.signature)}")
    return "\n\n".join(parts) + "\n"


def _analysis_table(table: AnalysisTable) -> str:
    head = [_heading_words(name) for name in table.rows[0]]
    rows = [
        [_analysis_cell(value) for value in row.values()] for row in table.rows[:_ANALYSIS_ROWS]
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [f"{_heading_words(table.name)} ({table.source})"]
    for row in (head, *rows):
        lines.append("  ".join(c.rjust(width) for c, width in zip(row, widths, strict=True)))
    if (more := len(table.rows) - _ANALYSIS_ROWS) > 0:
        lines.append(f"… and {more} more in the analysis file")
    return "\n".join(lines)


def _heading_words(name: str) -> str:
    return name.replace("_", " ")


def _analysis_cell(value: Cell) -> str:
    if value is None:
        return ABSENT
    return (
        f"{value:.4f}" if isinstance(value, float) else cut(clean(str(value)), _ANALYSIS_CELL_CHARS)
    )
