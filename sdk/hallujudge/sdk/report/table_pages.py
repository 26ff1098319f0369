"""Pages of tables that are not reports, such as comparisons, in every format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar, cast

from hallujudge.metrics.framework.json_values import file_text
from hallujudge.metrics.framework.results import JsonValue

from .charts import Chart, draw
from .export_formats import csv_text, frame, latex_table, markdown_table, markdown_text, spans
from .page.document import document
from .page.first_screen import notebook_fragment
from .page.page_parts import Content, Markup, breakable, element
from .report_text import ABSENT, broken, clean, cut, signature_lines
from .terminal_tables import print_to_text, score_table

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.table import Table


Cell: TypeAlias = "str | int | float | bool | None"
"""A value of a table; None if it is undefined."""

Text = TypeVar("Text")

_BEST = "• "
_NAME_CHARS = 60
_WORD_CHARS = 12
_GAP = 3
_CELL_CHARS = 400
_NOTE_CHARS = 2_000
# About the smallest p that the usual 10,000 replicates of a permutation test can find.
_SMALLEST_P = 0.0001


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table: what is shown, and the values behind it."""

    title: str
    """Heading of the table."""
    headings: tuple[str, ...]
    """Headings of the columns."""
    rows: tuple[tuple[str, ...], ...]
    """The cells as they are shown."""
    keys: tuple[str, ...]
    """Names of the values behind the table."""
    values: tuple[tuple[Cell, ...], ...]
    """The values with all digits, row by row."""
    spare: tuple[str, ...] = ()
    """Headings of columns that a narrow terminal leaves out, in this order."""
    bold: frozenset[tuple[int, int]] = frozenset()
    """Row and column of each cell that is shown in bold; a terminal marks it by a dot."""
    over: tuple[str, ...] = ()
    """A second heading above each column, which neighbours share; empty for none."""
    notes: tuple[str, ...] = ()
    """Notes on the numbers of each row, a further value of it if any row has one; empty for none.
    """
    chart: Chart | None = None
    """How pages draw the values above the table; None for the table alone."""
    charted: tuple[Mapping[str, Cell], ...] = ()
    """The rows that the chart draws; empty for the table's own."""

    @property
    def full_headings(self) -> tuple[str, ...]:
        """The headings in one line each, for formats whose headings have one row."""
        over = self.over or ("",) * len(self.headings)
        return tuple(" ".join(filter(None, pair)) for pair in zip(over, self.headings, strict=True))

    @property
    def noted_keys(self) -> tuple[str, ...]:
        """Names of the values, and of the notes if there are any."""
        return (*self.keys, "notes") if any(self.notes) else self.keys

    @property
    def noted_values(self) -> Iterable[tuple[Cell, ...]]:
        """The values row by row, with the notes if there are any."""
        if not any(self.notes):
            return self.values
        return ((*row, note) for row, note in zip(self.values, self.notes, strict=True))

    def cells(
        self, embolden: Callable[[str], Text], plain: Callable[[str], Text]
    ) -> list[list[Text]]:
        """Return the rows with each cell made by one of two functions."""
        return [
            [
                (embolden if (at, place) in self.bold else plain)(cell)
                for place, cell in enumerate(row)
            ]
            for at, row in enumerate(self.rows)
        ]

    def records(self) -> list[dict[str, Cell]]:
        """Return the values as one mapping for each row."""
        return [dict(zip(self.noted_keys, row, strict=True)) for row in self.noted_values]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A result as tables and sentences."""

    title: str
    """Heading of the page."""
    grids: tuple[Grid, ...]
    """The tables, the most important first."""
    sentences: tuple[str, ...] = ()
    """How to read the tables."""
    notes: tuple[str, ...] = ()
    """Warnings, one sentence each."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """What the numbers were made from and how: name -> signature or method."""


class Shown(ABC):
    """A result with a table: ``print(result)``, a notebook's cell, ``result.to_pandas()``."""

    __slots__ = ()
    schema: ClassVar[str]
    """What its JSON is, as in ``FILE_SCHEMAS``."""

    def to_json(self) -> Mapping[str, JsonValue]:
        """Return the result as plain values."""
        return cast("Mapping[str, JsonValue]", asdict(self))  # type: ignore[call-overload]  # each result is a dataclass

    @abstractmethod
    def page(self) -> Page:
        """Return the result as tables and sentences."""

    def to_text(self) -> str:
        """Return the result as JSON text, which is deterministic; ends with a line feed."""
        return file_text(self.schema, self.to_json())

    def to_pandas(self) -> DataFrame:
        """Return the first table as a DataFrame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return frame(self.page().grids[0].records())

    def __str__(self) -> str:
        return render_page(self.page()).rstrip("\n")

    def _repr_html_(self) -> str:
        return notebook_page(self.page())


def values_of(entries: Iterable[object], keys: Sequence[str]) -> tuple[tuple[Cell, ...], ...]:
    """Return the values behind a table, where each key names a field of the entries."""
    return tuple(tuple(getattr(entry, key) for key in keys) for entry in entries)


def show_p(p: float | None) -> str:
    """Format a p-value; a dash without one."""
    if p is None:
        return ABSENT
    return f"{p:.4f}" if p >= _SMALLEST_P else f"<{_SMALLEST_P:.4f}"


def render_page(page: Page, *, width: int = 80) -> str:
    """Return the page for a terminal; ends with a line feed."""
    parts: list[object] = [clean(page.title), ""]
    widest = width
    for grid in page.grids:
        table = _text_table(grid, width)
        widest = max(widest, table.width or 0)
        parts += [clean(grid.title), table, ""]
    parts += [clean(sentence) for sentence in page.sentences]
    parts += ["A terminal shows bold as a dot."] if any(grid.bold for grid in page.grids) else []
    parts += [f"note: {clean(note)}" for note in page.notes]
    if page.sources:
        parts.append("")
    for name, text in page.sources.items():
        parts += [clean(name), *(f"  {line}" for line in signature_lines(text, width - 2))]
    return print_to_text(parts, width=widest)


def _text_table(grid: Grid, width: int) -> Table:
    """Return a table whose cells break between words, and in long names after ``_ / . -``."""
    shown = grid.cells(lambda cell: f"{_BEST}{cell}", str)
    columns = [
        [cut(clean(cell), _NAME_CHARS) for cell in column]
        for column in zip(grid.full_headings, *shown, strict=True)
    ]
    for heading in grid.spare:
        if _wide(columns) <= width:
            break
        columns = [column for column in columns if column[0] != heading]
    widths = _widths(columns, width)
    table = score_table(*(broken(cells[0], at) for cells, at in zip(columns, widths, strict=True)))
    table.width = sum(widths) + _GAP * (len(widths) - 1)
    for column, chars in zip(table.columns, widths, strict=True):
        column.width = chars
    for row in zip(*(cells for _, *cells in columns), strict=True):
        table.add_row(*map(broken, row, widths))
    return table


def _widths(columns: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the columns' widths: that of the longest word, or of the longest cell if it fits.

    Lines that are too long are better than columns that are cut.
    """
    words = [
        min(max(len(word) for cell in cells for word in cell.split(" ")), _WORD_CHARS)
        for cells in columns
    ]
    left = width - sum(words) - _GAP * (len(words) - 1)
    # From the right: the first column has names, which may take whatever is left.
    for place in reversed(range(len(words))):
        more = max(map(len, columns[place])) - words[place]
        # Names break anywhere, other cells only between words, so that a part of the width that
        # they need would be wasted.
        given = max(min(more, left), 0) if place == 0 or more <= left else 0
        words[place] += given
        left -= given
    return words


def _wide(columns: Sequence[Sequence[str]]) -> int:
    """Return the width of a table whose first column may break words."""
    names, *others = (max(map(len, column)) + _GAP for column in columns)
    return min(names, _WORD_CHARS) + sum(others) - _GAP


def _markdown(page: Page) -> str:
    parts = [f"### {markdown_text(page.title)}"]
    for grid in page.grids:
        rows = grid.cells(lambda cell: f"**{markdown_text(cell)}**", markdown_text)
        head = [markdown_text(heading) for heading in grid.full_headings]
        parts += [f"**{markdown_text(grid.title)}**", markdown_table(head, rows)]
    parts += [markdown_text(sentence, limit=_NOTE_CHARS) for sentence in page.sentences]
    parts += [f"> **Note:** {markdown_text(note, limit=_NOTE_CHARS)}" for note in page.notes]
    parts += [
        f"- {markdown_text(name)}: {markdown_text(text, limit=_NOTE_CHARS)}"
        for name, text in page.sources.items()
    ]
    return "\n\n".join(parts) + "\n"


def _csv(page: Page) -> str:
    """Return the first table with all digits."""
    # A CSV file holds one table.
    return csv_text(page.grids[0].noted_keys, page.grids[0].noted_values)


def _latex(page: Page) -> str:
    """Return the first table, with sentences, notes and signatures as footnotes."""
    grid = page.grids[0]
    return latex_table(
        grid.headings,
        grid.rows,
        notes=(*page.sentences, *page.notes),
        sources=page.sources,
        bold=grid.bold,
        over=grid.over,
    )


def _html(page: Page) -> str:
    return document(f"{page.title} – Hallujudge", _sections(page), scripts=())


def notebook_page(page: Page) -> Markup:
    """Return the page as a fragment of HTML."""
    return notebook_fragment(_sections(page))


def _sections(page: Page) -> Sequence[Markup]:
    sections = [element("h1", page.title), *grid_sections(page.grids)]
    sections += [element("p", sentence) for sentence in page.sentences]
    sections += [element("p", f"Note: {note}") for note in page.notes]
    sections += [
        element("p", element("b", name), " ", breakable(text, "|"), _class="signature")
        for name, text in page.sources.items()
    ]
    return sections


def grid_sections(grids: Iterable[Grid]) -> Iterator[Markup]:
    """Yield tables as sections of a page, each with its chart if it has one."""
    for grid in grids:
        drawn = draw(grid.chart, grid.charted or grid.records(), grid.title) if grid.chart else ""
        yield element("section", element("h2", grid.title), drawn, _html_table(grid))


def _html_table(grid: Grid) -> Markup:
    over = [
        element("th", heading, scope="colgroup", colspan=str(width))
        for heading, width in spans(grid.over)
    ]
    heads = [element("tr", *over)] if over else []
    heads.append(element("tr", *(element("th", heading, scope="col") for heading in grid.headings)))
    body = [
        element("tr", element("th", first, scope="row"), *cells)
        for first, *cells in _html_cells(grid)
    ]
    table = element("table", element("thead", *heads), element("tbody", *body))
    # A scrollable region must be reachable by keyboard.
    return element("div", table, _class="scroll", tabindex="0")


def _html_cells(grid: Grid) -> Iterable[list[Content]]:
    """Yield the rows: text of the first cells, and elements of the others."""
    made = grid.cells(lambda cell: _html_cell(cell, element("b", cell)), _html_cell)
    for row, cells in zip(grid.rows, made, strict=True):
        yield [cut(row[0], _CELL_CHARS), *cells[1:]]


def _html_cell(text: str, content: Content = "") -> Markup:
    # Numbers stay in one line; sentences wrap.
    style = {"_class": "long"} if len(text) > _NAME_CHARS // 2 else {}
    return element("td", content or cut(text, _CELL_CHARS), **style)


PAGE_FORMATS: Mapping[str, Callable[[Page], str]] = {
    "table": render_page,
    "markdown": _markdown,
    "csv": _csv,
    "latex": _latex,
    "html": _html,
}
"""Format -> renderer of a page. Each result makes its own JSON."""
