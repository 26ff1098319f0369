"""Reports and tables for other programs: Markdown, LaTeX, CSV, DataFrames and figures."""

from __future__ import annotations

import csv
import html
import io
import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, NamedTuple

from hallujudge.metrics import Report, Score

from ..errors import InvalidInputError, MissingExtraError
from .report_text import (
    ABSENT,
    GROUP_LIMIT,
    calibration_sentences,
    clean,
    counts_among,
    coverage_sentence,
    cut,
    group_text,
    interval_label,
    is_fraction,
    judging_sentences,
    main_score_of,
    score_rows,
    shown,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from hallujudge.metrics.calibration.calibrated_scores import Calibration

_MARKDOWN_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~-])")
_MARKDOWN_CHARS = 120
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # \textquotedbl needs another font encoding than LaTeX's default.
    '"': r"\char34{}",
    "\ufffd": "?",
    "\u2212": "$-$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≠": r"$\neq$",
    ABSENT: "--",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_LATEX_SPECIAL = re.compile("|".join(map(re.escape, _LATEX)))
_LATEX_BREAK = re.compile(re.escape(_LATEX["|"]) + "|[,/]")
# A number, which may have an interval and a mark of significance.
_LATEX_NUMBER = re.compile(r"[-+]?\d[\d,]*(\.\d+)?( \[\S+ \S+\])?\*?|<?\d\.\d+|–|")
_LATEX_CELL_CHARS = 200

# Characters that every font of pdfLaTeX has; the others depend on the font and its encoding.
_LATEX_FOREIGN = re.compile(
    "[^\\x00-\\xaa\\xac-\\xba\\xbc-\\xcf\\xd1-\\xdd\\xdf-\\xef\\xf1-\\xfd\\xffŒœŠš–—‘’“”…€→]"
)
# Unicode's category of format characters, such as zero-width joiners.
_INVISIBLE = "Cf"
_NAMED_CHARACTERS = 10

# A spreadsheet runs a cell that begins with one of these as a formula, also in full-width forms.
_FORMULA = ("=", "+", "-", "@", "\t", "\n", "＝", "＋", "－", "＠")


def render_markdown(report: Report, calibration: Calibration | None = None) -> str:
    """Return the report as GitHub-flavoured Markdown.

    Args:
        report: The report.
        calibration: The scores corrected by human labels, which are shown next to the raw ones.

    Returns:
        A heading, a table of scores, coverage, notes, groups, and the signature in a code block.
    """
    headings, rows = score_rows(report, calibration)
    parts = [
        f"### {markdown_text(report.metric)} ({markdown_text(report.variant)})",
        # The first cells are names of scores, which may come from a benchmark's file.
        markdown_table(headings, ([markdown_text(name), *cells] for name, *cells in rows)),
        *(
            markdown_text(sentence, limit=2_000)
            for sentence in (
                coverage_sentence(report),
                *judging_sentences(report.judging),
                *(calibration_sentences(calibration) if calibration else ()),
            )
        ),
        *(f"> **Note:** {markdown_text(note, limit=2_000)}" for note in report.notes),
        *(_markdown_groups(key, values, calibration) for key, values in report.groups.items()),
        f"```\n{_inert_markdown(calibration.signature if calibration else report.signature)}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _markdown_groups(
    key: str, values: Mapping[str, Mapping[str, Score]], calibration: Calibration | None
) -> str:
    names = list(next(iter(values.values()), {}))
    counts = counts_among(values.values())
    rows = [
        [
            markdown_text(value) or "(none)",
            *(
                f"{f.value} {f.interval} n {f.n} {more}".replace("  ", " ").strip()
                for name, score in scores.items()
                for f in [shown(score, is_count=name in counts)]
                for more in [group_text(calibration, key, value, name)]
            ),
        ]
        for value, scores in islice(values.items(), GROUP_LIMIT)
    ]
    more = f"\n\n{len(values) - GROUP_LIMIT:,} more" if len(values) > GROUP_LIMIT else ""
    table = markdown_table(map(markdown_text, (key, *names)), rows)
    return f"By {markdown_text(key)}:\n\n{table}{more}"


def markdown_table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of Markdown; every column but the first is aligned to the right."""
    headings = list(headings)
    ruler = [":---", *["---:"] * (len(headings) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, ruler, *rows))


def markdown_text(text: str, limit: int = _MARKDOWN_CHARS) -> str:
    """Return text on one line with Markdown's special characters escaped."""
    line = " ".join(cut(clean(text), limit).split())
    return _MARKDOWN_SPECIAL.sub(r"\\\1", html.escape(line, quote=False))


def _inert_markdown(text: str) -> str:
    """Return text that can't end a code block."""
    return clean(text).replace("\n", " ").replace("```", "'''")


def latex_text(text: str) -> str:
    """Return text on one line with LaTeX's special characters escaped."""
    visible = "".join(c for c in clean(text) if unicodedata.category(c) != _INVISIBLE)
    line = " ".join(visible.split())
    return _LATEX_SPECIAL.sub(lambda match: _LATEX[match[0]], line)


def latex_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    notes: Iterable[str] = (),
    sources: Mapping[str, str] | None = None,
    bold: Container[tuple[int, int]] = (),
    over: Sequence[str] = (),
) -> str:
    r"""Return a table for ``\usepackage{booktabs,threeparttable}``.

    Args:
        headings: Headings of the columns.
        rows: Cells as text; columns of numbers are aligned to the right.
        notes: Sentences below the table.
        sources: Name -> signature or method, below the table.
        bold: Row and column of each cell in bold letters.
        over: A second heading above each column, which neighbours share.
    """
    # Read twice: the alignment of a column depends on all of its cells.
    rows = [tuple(row) for row in rows]
    lines = [
        r"\begin{threeparttable}",
        rf"\begin{{tabular}}{{{_alignment(len(headings), rows)}}}",
        r"\toprule",
        *_latex_spans(over),
        _latex_line(headings),
        r"\midrule",
        *(
            _latex_line(row, [place for place in range(len(row)) if (at, place) in bold])
            for at, row in enumerate(rows)
        ),
        r"\bottomrule",
        r"\end{tabular}",
        *_footnotes(notes, sources or {}),
        r"\end{threeparttable}",
    ]
    return "\n".join([*_latex_needs("".join(lines)), *lines]) + "\n"


def _latex_needs(table: str) -> list[str]:
    """Return LaTeX comments with the packages and the compiler that a table needs."""
    needs = [r"% Needs \usepackage{booktabs,threeparttable}."]
    if foreign := list(dict.fromkeys(_LATEX_FOREIGN.findall(table))):
        shown = " ".join(foreign[:_NAMED_CHARACTERS])
        needs.append(
            f"% Has characters that pdfLaTeX may lack ({shown}): XeLaTeX and LuaLaTeX take them "
            "from any font."
        )
    return needs


def spans(over: Iterable[str]) -> list[tuple[str, int]]:
    """Return each heading above several columns, and how many it is above."""
    return [(heading, len(list(same))) for heading, same in groupby(over)]


def _latex_spans(over: Sequence[str]) -> Iterator[str]:
    """Yield the line of headings above several columns, with a rule under each."""
    if not over:
        return
    cells, rules, first = [], [], 1
    for heading, width in spans(over):
        cells.append(
            rf"\multicolumn{{{width}}}{{c}}{{{latex_text(heading)}}}"
            if heading
            else "&" * (width - 1)
        )
        if heading:
            rules.append(rf"\cmidrule(lr){{{first}-{first + width - 1}}}")
        first += width
    yield " & ".join(cells) + r" \\"
    yield " ".join(rules)


def _latex_line(cells: Iterable[str], bold: Container[int] = ()) -> str:
    first, *others = (
        rf"\textbf{{{text}}}" if place in bold else text
        for place, cell in enumerate(cells)
        for text in [latex_text(cut(cell, _LATEX_CELL_CHARS))]
    )
    return " & ".join((_guarded_cell(first), *others)) + r" \\"


def _guarded_cell(cell: str) -> str:
    """Return text in braces if the command before it would read it as its option."""
    return f"{{{cell}}}" if cell.startswith(("[", "*")) else cell


def _alignment(width: int, rows: Sequence[Sequence[str]]) -> str:
    numeric = [all(_LATEX_NUMBER.fullmatch(row[at]) for row in rows) for at in range(width)]
    return "".join("r" if is_numeric and rows else "l" for is_numeric in numeric)


def _footnotes(notes: Iterable[str], sources: Mapping[str, str]) -> list[str]:
    items = [rf"\item {_guarded_cell(latex_text(note))}" for note in notes]
    items += [rf"\item {latex_text(name)}: {_latex_code(text)}" for name, text in sources.items()]
    return (
        [r"\begin{tablenotes}\footnotesize\raggedright", *items, r"\end{tablenotes}"]
        if items
        else []
    )


def _latex_code(text: str) -> str:
    """Return a signature in typewriter letters that may break after its bars, commas and slashes.

    The settings of a judge have no bars, and would be longer than a line.
    """
    broken = _LATEX_BREAK.sub(r"\g<0>\\allowbreak ", latex_text(text))
    return rf"\texttt{{{broken}}}"


def csv_text(keys: Iterable[str], rows: Iterable[Iterable[str | float | bool | None]]) -> str:
    """Return values as CSV with all digits."""
    stream = io.StringIO()
    # csv would end lines with CR LF, unlike every other file of a run.
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(keys)
    writer.writerows(map(csv_cell, row) for row in rows)
    return stream.getvalue()


def csv_cell(value: str | float | bool | None) -> str:
    """Return a cell: a number with all digits, or a text that is not run as a formula."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value)
    line = clean(value)
    # With the apostrophe, a spreadsheet shows the cell as the text that it is.
    return f"'{line}" if line.startswith(_FORMULA) else line


def frame(records: Iterable[Mapping[str, object]], doing: str = "to_pandas()") -> DataFrame:
    """Return records as a DataFrame.

    Args:
        records: One mapping for each row.
        doing: What needs pandas, for the error.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    with MissingExtraError.unless_installed(doing, "tables"):
        from pandas import DataFrame
    return DataFrame(list(records))


def render_scores(report: Report) -> str:
    """Return one line for each score: its name and its value, or ``-`` if it is not defined."""
    width = max((len(name) for name in report.scores), default=0)
    return "".join(
        f"{clean(name):<{width}} {'-' if score.value is None else repr(score.value)}\n"
        for name, score in report.scores.items()
    )


def render_csv(report: Report) -> str:
    """Return the scores of the run and of its groups as CSV, with all digits."""
    keys = ("group_by", "group", "score", "value", "ci_low", "ci_high", "n")
    return csv_text(keys, (record.values() for record in report.records()))


def render_latex(report: Report) -> str:
    """Return the scores as a LaTeX table, with the signature as a footnote."""
    headings, rows = score_rows(report, bounds=False)
    sources = {"Signature": report.signature}
    return latex_table(headings, rows, notes=report.notes, sources=sources)


_NAME_CHARS = 40
# More dots than these can't be told apart on a screen.
_MOST_DOTS = 40
_WIDTH_INCHES = 7.0
_DOT_INCHES = 0.32
# Room for the title and the axis of a panel.
_PANEL_INCHES = 1.1
# Of Okabe and Ito's palette, which readers with any colour vision can tell apart.
_BLUE = "#0072B2"


class _Panel(NamedTuple):
    """One chart of the figure."""

    title: str
    dots: Sequence[tuple[str, Score]]


def plot_report(report: Report) -> Figure:
    """Return the fractions of a report, and its first score by group, with their intervals.

    Args:
        report: The report.

    Raises:
        InvalidInputError: No score of the report is a fraction with a value.
        MissingExtraError: matplotlib is not installed.
    """
    figure_type = _figure_type()
    panels = [*_panels(report)]
    heights = [_DOT_INCHES * len(panel.dots) + _PANEL_INCHES for panel in panels]
    # Not by pyplot, which would keep the figure, and show it twice in a notebook.
    figure = figure_type(figsize=(_WIDTH_INCHES, sum(heights) + 0.5), layout="constrained")
    figure.suptitle(clean(f"{report.metric} ({report.variant})"), fontweight="bold")
    axes = figure.subplots(len(panels), squeeze=False, height_ratios=heights)[:, 0]
    for panel, each in zip(panels, axes, strict=True):
        _draw(each, panel)
    axes[-1].set_xlabel(f"{interval_label(report)}; {coverage_sentence(report)}", wrap=True)
    return figure


def _figure_type() -> type[Figure]:
    """Return the class of figures that a notebook shows without pyplot."""
    try:
        from matplotlib.figure import Figure
    except ImportError as err:
        raise MissingExtraError.of("plot()", "plots") from err

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            png = io.BytesIO()
            self.savefig(png, format="png")
            return png.getvalue()

    return ShownFigure


def _panels(report: Report) -> Iterable[_Panel]:
    scores = [(name, score) for name, score in report.scores.items() if is_fraction(report, name)]
    if not scores:
        raise InvalidInputError(
            f"no score of this {report.metric} report is a fraction with a value; print(report) "
            "shows why"
        )
    yield _Panel("scores", scores[:_MOST_DOTS])
    drawn, main = dict(scores), main_score_of(report)
    main = main if main in drawn else scores[0][0]
    for key, groups in report.groups.items():
        dots = [
            (value or "(none)", found[main])
            for value, found in groups.items()
            if main in found and found[main].value is not None
        ]
        more = f", the first {_MOST_DOTS} of {len(dots):,}" if len(dots) > _MOST_DOTS else ""
        if dots:
            yield _Panel(f"{main} by {key}{more}", dots[:_MOST_DOTS])


def _draw(axes: Axes, panel: _Panel) -> None:
    values = [score.value or 0.0 for _, score in panel.dots]
    reach = [_reach(score) for _, score in panel.dots]
    places = range(len(values))
    # Without clipping, as the frame would cut a dot at 0 or at 1 in half.
    axes.errorbar(
        values,
        places,
        xerr=list(zip(*reach, strict=True)),
        fmt="o",
        color=_BLUE,
        capsize=3,
        clip_on=False,
    )
    for place, value, (_, score) in zip(places, values, panel.dots, strict=True):
        # As text, the figures can be read off; above the dot, they hide no interval.
        axes.annotate(
            shown(score).value, (value, place), (0, 4), textcoords="offset points",
            ha="center", fontsize="x-small",
        )  # fmt: skip
    # A name is not a formula: matplotlib reads what is between dollar signs as one.
    names = [cut(clean(name), _NAME_CHARS).replace("$", r"\$") for name, _ in panel.dots]
    axes.set_yticks(places, names)
    # Upside down, so that the first score is at the top, with room for its figure above it.
    axes.set_ylim(len(values) - 0.5, -0.7)
    low = min([0.0, *values])
    axes.set_xlim(low, max([1.0, *values]))
    axes.set_title(panel.title.replace("$", r"\$"), loc="left", fontsize="medium")
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _reach(score: Score) -> tuple[float, float]:
    """Return how far the interval reaches to the left and to the right of the score."""
    if score.value is None or score.ci_low is None or score.ci_high is None:
        return 0.0, 0.0
    # Rounding may put the score a last digit outside of its interval.
    return max(score.value - score.ci_low, 0.0), max(score.ci_high - score.value, 0.0)


PRINTED: Mapping[str, Callable[[Report], str]] = {
    "json": Report.to_text,
    "markdown": render_markdown,
    "csv": render_csv,
    "latex": render_latex,
}
"""Format -> renderer, for the formats that are printed instead of the table."""
