"""Reports as plain scores, CSV, LaTeX and figures; LaTeX tables of names with odd characters."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message

from hallujudge.metrics import Coverage, Report, Score
from hallujudge.sdk.errors import InvalidInputError, MissingExtraError
from hallujudge.sdk.report import PRINTED, render_csv, render_latex, render_scores
from hallujudge.sdk.report.export_formats import latex_table, latex_text, plot_report


def score(name: str, value: float | None) -> Score:
    ends = (None, None) if value is None else (value / 2, 1.0)
    return Score(name=name, value=value, ci_low=ends[0], ci_high=ends[1], n=3)


@pytest.fixture
def report() -> Report:
    scores = {"chair_i": score("chair_i", 1 / 3), "recall": score("recall", None)}
    return Report(
        metric="chair",
        variant="published",
        signature="chair|var:published|n:3",
        scores=scores,
        groups={"model": {"=1+1": {"chair_i": score("chair_i", 0.5)}}},
        coverage=Coverage(items=3, scored=3, unscored=0),
    )


def test_scores_are_names_and_values_with_all_digits(report: Report) -> None:
    assert render_scores(report) == "chair_i 0.3333333333333333\nrecall  -\n"


def test_csv_holds_groups_and_no_formulas(report: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(render_csv(report))))
    assert [(row["group_by"], row["group"], row["score"]) for row in rows] == [
        ("", "", "chair_i"),
        ("", "", "recall"),
        ("model", "'=1+1", "chair_i"),
    ]
    assert float(rows[0]["value"]) == 1 / 3
    assert rows[1]["value"] == rows[1]["ci_low"] == ""


def test_latex_is_escaped_and_quotes_the_signature(report: Report) -> None:
    text = render_latex(report)
    assert r"chair\_i & 0.3333 & [0.1667, 1.0000] & 3 \\" in text
    assert r"recall & -- &  & 3 \\" in text
    bar = r"\textbar{}\allowbreak "
    assert rf"\item Signature: \texttt{{chair{bar}var:published{bar}n:3}}" in text
    assert r"\begin{tabular}{lrlr}" + "\n" + r"\toprule" in text
    assert text.endswith("\\end{threeparttable}\n")


def test_long_settings_of_a_signature_break_in_latex() -> None:
    text = latex_table(("a",), [("1",)], sources={"run": "tri-he|judge:minilm/onnx,top=3"})
    settings = r"judge:minilm/\allowbreak onnx,\allowbreak top=3"
    assert rf"\item run: \texttt{{tri-he\textbar{{}}\allowbreak {settings}}}" in text


def test_every_printed_format_ends_with_a_line_feed(report: Report) -> None:
    assert sorted(PRINTED) == ["csv", "json", "latex", "markdown"]
    assert all(render(report).endswith("\n") for render in PRINTED.values())


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
    assert plain == expected_message(
        "sdk.report.export_formats:needs-sepackage-booktabs-threeparttable"
    )
    _, told, table, *_ = latex_table(["run"], [("模型",)], notes=["型 я"]).splitlines()
    assert told.startswith(
        expected_message("sdk.report.export_formats:has-characters-that-pdflatex-may-lack-xelatex")
    )
    assert table == r"\begin{threeparttable}"


def test_footnotes_are_not_stretched() -> None:
    table = latex_table(["run"], [("a",)], sources={"a": "chair|n:1"})
    assert "\\begin{tablenotes}\\footnotesize\\raggedright\n" in table


def plotted_score(name: str, value: float | None, *, interval: bool = True) -> Score:
    known = value is not None and interval
    low, high = (value - 0.1, value + 0.1) if known and value is not None else (None, None)
    return Score(name=name, value=value, ci_low=low, ci_high=high, n=20)


def plotted_report(**more: Any) -> Report:
    scores = {name: plotted_score(name, 0.25) for name in ("chair_i", "chair_s")}
    scores |= {
        "recall": plotted_score("recall", None),
        "mean_words": plotted_score("mean_words", 9.5),
    }
    made: dict[str, Any] = {"metric": "chair", "variant": "published", "scores": scores}
    made |= {
        "signature": "chair|ci:jackknife-wilson-0.95|",
        "coverage": Coverage(items=20, scored=20, unscored=0),
    }
    return Report(**{**made, **more})


def test_a_figure_has_the_fractions_with_values(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    figure = plot_report(plotted_report())
    [axes] = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["chair_i", "chair_s"]
    assert [text.get_text() for text in axes.texts] == ["0.2500", "0.2500"]
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_each_key_of_groups_has_a_panel_of_the_first_score(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    groups = {"split $x_1$": {"a": {"chair_i": plotted_score("chair_i", 0.1, interval=False)}}}
    groups["kind"] = {str(n): {"chair_i": plotted_score("chair_i", 0.5)} for n in range(60)}
    figure = plot_report(plotted_report(groups=groups))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["scores", r"chair_i by split \$x_1\$", "chair_i by kind, the first 40 of 60"]
    assert len(figure.axes[2].texts) == 40
    figure.savefig(tmp_path / "figure.png")


def test_a_report_without_a_fraction_has_no_figure() -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    empty = plotted_report(scores={"chair_i": plotted_score("chair_i", None)})
    with pytest.raises(
        InvalidInputError,
        match=expected_message("sdk.report.export_formats:no-score-is-a-fraction"),
    ):
        plot_report(empty)


def test_without_matplotlib_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(
        MissingExtraError,
        match=expected_message("sdk.report.export_formats:needs-the-extra-plots"),
    ):
        plot_report(plotted_report())
