"""LaTeX tables with booktabs' rules and footnotes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from .text import ABSENT, clean, cut

__all__ = ["latex_table", "latex_text"]

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
_SPECIAL = re.compile("|".join(map(re.escape, _LATEX)))
_NUMBER = re.compile(r"[-+]?\d[\d,]*(\.\d+)?|<?\d\.\d+|–|")
_CELL_CHARS = 200
# Characters of all fonts of pdfLaTeX; which others it has depends on the fonts and their encoding.
_FOREIGN = re.compile(
    "[^\\x00-\\xaa\\xac-\\xba\\xbc-\\xcf\\xd1-\\xdd\\xdf-\\xef\\xf1-\\xfd\\xffŒœŠš–—‘’“”…€→]"
)
_INVISIBLE = "Cf"
_SHOWN = 10


def latex_text(text: str) -> str:
    """Return text on one line with LaTeX's special characters escaped."""
    visible = "".join(c for c in clean(text) if unicodedata.category(c) != _INVISIBLE)
    line = " ".join(visible.split())
    return _SPECIAL.sub(lambda match: _LATEX[match[0]], line)


def latex_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    notes: Iterable[str] = (),
    sources: Mapping[str, str] | None = None,
) -> str:
    r"""Return a table for ``\usepackage{booktabs,threeparttable}``.

    Args:
        headings: Headings of the columns.
        rows: Cells as text; columns of numbers are aligned to the right.
        notes: Sentences below the table.
        sources: Name -> signature or method, below the table.
    """
    rows = [tuple(row) for row in rows]
    lines = [
        r"\begin{threeparttable}",
        rf"\begin{{tabular}}{{{_alignment(len(headings), rows)}}}",
        r"\toprule",
        _line(headings),
        r"\midrule",
        *map(_line, rows),
        r"\bottomrule",
        r"\end{tabular}",
        *_footnotes(notes, sources or {}),
        r"\end{threeparttable}",
    ]
    return "\n".join([*_needs("".join(lines)), *lines]) + "\n"


def _needs(table: str) -> list[str]:
    """Return comments on what compiles a table."""
    needs = [r"% Needs \usepackage{booktabs,threeparttable}."]
    if foreign := list(dict.fromkeys(_FOREIGN.findall(table))):
        shown = " ".join(foreign[:_SHOWN])
        needs.append(
            f"% Has characters that pdfLaTeX may lack ({shown}): XeLaTeX and LuaLaTeX take them "
            "from any font."
        )
    return needs


def _line(cells: Iterable[str]) -> str:
    first, *others = (latex_text(cut(cell, _CELL_CHARS)) for cell in cells)
    return " & ".join((_guarded(first), *others)) + r" \\"


def _guarded(cell: str) -> str:
    """Return text in braces if the command before it would take it for its option."""
    return f"{{{cell}}}" if cell.startswith(("[", "*")) else cell


def _alignment(width: int, rows: Sequence[Sequence[str]]) -> str:
    numeric = [all(_NUMBER.fullmatch(row[at]) for row in rows) for at in range(width)]
    return "".join("r" if is_numeric and rows else "l" for is_numeric in numeric)


def _footnotes(notes: Iterable[str], sources: Mapping[str, str]) -> list[str]:
    items = [rf"\item {_guarded(latex_text(note))}" for note in notes]
    items += [rf"\item {latex_text(name)}: {_code(text)}" for name, text in sources.items()]
    return (
        [r"\begin{tablenotes}\footnotesize\raggedright", *items, r"\end{tablenotes}"]
        if items
        else []
    )


def _code(text: str) -> str:
    """Return a signature in typewriter letters that may break after its bars."""
    bar = _LATEX["|"]
    return rf"\texttt{{{latex_text(text).replace(bar, bar + chr(92) + 'allowbreak ')}}}"
