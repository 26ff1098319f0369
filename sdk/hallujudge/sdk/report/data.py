"""The report as data for other programs: plain scores, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import re

from hallujudge.metrics import Report

from .text import clean, interval_label, shown

__all__ = ["render_csv", "render_latex", "render_scores"]

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_SPECIAL = re.compile("|".join(map(re.escape, _LATEX)))


def render_scores(report: Report) -> str:
    """Return one line for each score: its name and its value, or ``-`` if it is not defined."""
    width = max((len(name) for name in report.scores), default=0)
    return "".join(
        f"{clean(name):<{width}} {'-' if score.value is None else repr(score.value)}\n"
        for name, score in report.scores.items()
    )


def render_csv(report: Report) -> str:
    """Return the scores of the run and of its groups as CSV, with all digits."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["group_by", "group", "score", "value", "ci_low", "ci_high", "n"])
    tables = [("", "", report.scores)]
    tables += [(key, value, s) for key, of in report.groups.items() for value, s in of.items()]
    for key, value, scores in tables:
        for name, score in scores.items():
            figures = (score.value, score.ci_low, score.ci_high)
            numbers = ["" if number is None else repr(number) for number in figures]
            writer.writerow([_cell(key), _cell(value), _cell(name), *numbers, score.n])
    return stream.getvalue()


def render_latex(report: Report) -> str:
    """Return the scores as a LaTeX table, with the signature in a comment."""
    lines = [
        r"\begin{tabular}{lrlr}",
        rf"score & value & {_latex(interval_label(report))} & $n$ \\",
        r"\hline",
    ]
    for name, score in report.scores.items():
        figures = shown(score)
        value = "--" if score.value is None else figures.value
        lines.append(rf"{_latex(name)} & {value} & {_latex(figures.interval)} & {figures.n} \\")
    lines += [r"\end{tabular}", f"% {clean(report.signature).replace(chr(10), ' ')}"]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Return text that a spreadsheet does not take for a formula."""
    line = clean(text)
    return f"'{line}" if line[:1] in ("=", "+", "-", "@", "\t") else line


def _latex(text: str) -> str:
    line = " ".join(clean(text).split())
    return _SPECIAL.sub(lambda match: _LATEX[match[0]], line)
