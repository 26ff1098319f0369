"""LaTeX tables of names with odd characters."""

from __future__ import annotations

import pytest

from hallujudge.sdk.report.export_formats import latex_table, latex_text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("50%_a & b#$", r"50\%\_a \& b\#\$"),
        ('say "no"', r"say \char34{}no\char34{}"),
        ("p ≤ 0.05 \u2212 1", r"p $\leq$ 0.05 $-$ 1"),
        ("a\u200bb\ufeffc\u202ed", "abc?d"),
        ("Zoë–Ł", r"Zoë--Ł"),
    ],
)
def test_text_compiles_with_the_default_fonts(text: str, written: str) -> None:
    assert latex_text(text) == written


def test_characters_of_other_scripts_are_named() -> None:
    plain, *_ = latex_table(["run"], [("qwén",)]).splitlines()
    assert plain == r"% Needs \usepackage{booktabs,threeparttable}."
    _, told, table, *_ = latex_table(["run"], [("模型",)], notes=["型 я"]).splitlines()
    assert told.startswith("% Has characters that pdfLaTeX may lack (模 型 я): XeLaTeX and")
    assert table == r"\begin{threeparttable}"


def test_footnotes_are_not_stretched() -> None:
    table = latex_table(["run"], [("a",)], sources={"a": "chair|n:1"})
    assert "\\begin{tablenotes}\\footnotesize\\raggedright\n" in table
