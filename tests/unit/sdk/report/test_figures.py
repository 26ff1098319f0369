"""Figures of reports show every fraction and group once, with values that can be read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message

from hallujudge.metrics import Coverage, Report, Score
from hallujudge.sdk.errors import InvalidInputError, MissingExtraError
from hallujudge.sdk.report.figures import plot_report


def score(name: str, value: float | None, *, interval: bool = True) -> Score:
    known = value is not None and interval
    low, high = (value - 0.1, value + 0.1) if known and value is not None else (None, None)
    return Score(name=name, value=value, ci_low=low, ci_high=high, n=20)


def report(**more: Any) -> Report:
    scores = {name: score(name, 0.25) for name in ("chair_i", "chair_s")}
    scores |= {"recall": score("recall", None), "mean_words": score("mean_words", 9.5)}
    made: dict[str, Any] = {"metric": "chair", "variant": "published", "scores": scores}
    made |= {
        "signature": "chair|ci:jackknife-wilson-0.95|",
        "coverage": Coverage(items=20, scored=20, unscored=0),
    }
    return Report(**{**made, **more})


def test_a_figure_has_the_fractions_with_values(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    figure = plot_report(report())
    [axes] = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["chair_i", "chair_s"]
    assert [text.get_text() for text in axes.texts] == ["0.2500", "0.2500"]
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_each_key_of_groups_has_a_panel_of_the_first_score(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    groups = {"split $x_1$": {"a": {"chair_i": score("chair_i", 0.1, interval=False)}}}
    groups["kind"] = {str(n): {"chair_i": score("chair_i", 0.5)} for n in range(60)}
    figure = plot_report(report(groups=groups))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["scores", r"chair_i by split \$x_1\$", "chair_i by kind, the first 40 of 60"]
    assert len(figure.axes[2].texts) == 40
    figure.savefig(tmp_path / "figure.png")


def test_a_report_without_a_fraction_has_no_figure() -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    empty = report(scores={"chair_i": score("chair_i", None)})
    with pytest.raises(
        InvalidInputError, match=expected_message("sdk.report.figures:no-score-is-a-fraction")
    ):
        plot_report(empty)


def test_without_matplotlib_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(
        MissingExtraError, match=expected_message("sdk.report.figures:needs-the-extra-plots")
    ):
        plot_report(report())
