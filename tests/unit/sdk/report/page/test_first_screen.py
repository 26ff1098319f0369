"""What a notebook shows: the first screen of the page, inert and without a script."""

from __future__ import annotations

import re

from support import report_samples as samples
from support.comparison_runs import pope_run
from support.pages import Page

from hallujudge.sdk.report import HtmlPage
from hallujudge.sdk.report.export_formats import render_markdown
from hallujudge.sdk.report.page.first_screen import render_notebook

HOSTILE = "</style><script>alert(1)</script><img src=x onerror=alert(1)>"


def test_a_notebook_shows_the_first_screen_of_the_page() -> None:
    report = samples.report(unscored=2)
    shown = Page(render_notebook(report))
    page = Page(HtmlPage().render(report))
    for part in ("0.1877", "[0.1700, 0.2000]", "They could make chair_i", samples.SIGNATURE):
        assert part in shown.text
        assert part in page.text
    assert ("class", "headline") in shown.attributes
    assert ("role", "img") in shown.attributes, "the interval is drawn on a scale"


def test_the_score_that_ranks_models_is_the_large_one() -> None:
    page = HtmlPage().render(pope_run(None, 0.9))
    large = re.search(r'aria-label="Main score".*?<code>(\w+)</code>', page, re.DOTALL)
    assert large is not None
    assert large[1] == "f1"
    silent = HtmlPage().render(pope_run(None, 0.9, unclear=1.0))
    assert 'aria-label="Main score"' in silent


def test_a_notebook_needs_no_script_and_its_style_reaches_nothing_else() -> None:
    shown = Page(render_notebook(samples.report()))
    assert shown.scripts == []
    assert all(name != "id" for name, _ in shown.attributes), "cells may show several reports"
    [style] = shown.styles
    rules = [rule for rule in style.replace("@media(max-width:40rem){", "").split("}") if rule]
    selectors = [name.strip() for rule in rules for name in rule.partition("{")[0].split(",")]
    assert all(name.startswith(".hallujudge.hallujudge") for name in selectors if name)
    assert "url(" not in style


def test_hostile_text_stays_text_in_a_notebook() -> None:
    groups = {HOSTILE: {HOSTILE: {"chair_i": samples.score("chair_i", 0.5, 0.4, 0.6)}}}
    shown = Page(render_notebook(samples.report(groups=groups)))
    assert HOSTILE in shown.text
    assert shown.scripts == []
    assert all(not name.startswith("on") for name, _ in shown.attributes)


def test_a_score_above_one_in_a_group_is_a_count_in_all() -> None:
    few, many = (samples.score("chair_i", value, None, None) for value in (1.0, 4.0))
    report = samples.report(groups={"type": {"few": {"chair_i": few}, "many": {"chair_i": many}}})
    shown = render_notebook(report)
    assert "<b>1.00</b>" in shown
    for text in (shown, render_markdown(report)):
        assert "1.0000" not in text
