"""The page of two runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from support import report_samples as samples
from support.pages import Page

from hallujudge.metrics import AnswersItem, ItemResult, MentionVerdict, Outcome, one_answer
from hallujudge.sdk.comparison import page_comparisons
from hallujudge.sdk.comparison.page_comparisons import PageRun, render_comparison
from hallujudge.sdk.report.page import document, page_part

RIGHT = (MentionVerdict("sofa", "couch", 11, 15, False),)
WRONG = (MentionVerdict("dog", "dog", 2, 5, True),)
ROW = samples.difference()
FOUND: dict[str, Any] = {"method": "paired-bootstrap", "notes": ["Few images."]}


def run(title: str, verdicts: Mapping[str, tuple[MentionVerdict, ...]]) -> PageRun:
    pairs = [samples.caption(name, mentions=of) for name, of in verdicts.items()]
    parts = [page_part(pairs[at : at + 64]) for at in range(0, len(pairs), 64)]
    return PageRun(title=title, report=samples.report(), parts=parts)


def answered(name: str, question: str) -> tuple[AnswersItem, ItemResult]:
    item = one_answer(id=name, response="Yes.", question=question, label="no")
    result = ItemResult(
        id=name, group_id=name, outcome=Outcome.SCORED, evidence=samples.WRONG_ANSWER
    )
    return item, result


def test_items_are_joined_by_id_whatever_their_order() -> None:
    first = run("A model", {"1": RIGHT, "2": WRONG, "3": RIGHT})
    second = run("B model", {"9": RIGHT, "2": RIGHT, "1": WRONG})
    page = Page(render_comparison(first, second, [ROW]))
    assert page.columns["ids"] == ["1", "2"]
    assert [side["wrong"] for side in page.columns["sides"]] == [[0, 1], [1, 0]]
    summaries = [[side["summary"][:6] for side in sides] for sides in page.items()]
    assert summaries == [["0 of 1", "1 of 1"], ["1 of 1", "0 of 1"]]


def test_first_screen_has_both_runs_and_what_is_missing() -> None:
    first, second = run("A model", {"1": RIGHT, "2": RIGHT}), run("B model", {"1": RIGHT})
    text = Page(render_comparison(first, second, [ROW], **FOUND)).text
    for part in ("A model", "B model", "−0.0200", "better", "Few images.", "0.0004"):
        assert part in text
    assert "1 item only in A model." in text
    assert text.count(samples.SIGNATURE) == 2
    assert "Differences: paired-bootstrap" in text


def test_items_that_a_page_leaves_out_are_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (document, page_comparisons):
        monkeypatch.setattr(module, "MOST_PAGE_ITEMS", 100)
    names = [str(number) for number in range(200)]
    first, second = run("A", dict.fromkeys(names, RIGHT)), run("B", dict.fromkeys(names, RIGHT))
    assert "only in" not in Page(render_comparison(first, second, [ROW], **FOUND)).text
    turned = run("B", dict.fromkeys(reversed(names), RIGHT))
    assert "only in" not in Page(render_comparison(first, turned, [ROW], **FOUND)).text


def test_differences_of_lengths_have_two_decimals() -> None:
    row = replace(ROW, score="mean_words", difference=65.99551, ci_low=64.6, ci_high=67.3)
    text = Page(render_comparison(run("A", {"1": RIGHT}), run("B", {"1": RIGHT}), [row])).text
    assert "+66.00" in text
    assert "[+64.60, +67.30]" in text


def test_large_runs_are_joined_in_chunks() -> None:
    names = {str(n): RIGHT for n in range(150)}
    page = Page(render_comparison(run("A", names), run("B", dict(reversed(names.items()))), []))
    assert page.head["count"] == 150
    assert len(page.items()) == 150
    assert page.head["runs"][1]["title"] == "B"
