"""INFACT's totals over columns of answers and labels."""

from __future__ import annotations

import pytest
from oracles import answers_published as oracle
from support.messages import expected_message
from support.qa_samples import infact_questions

from hallujudge.metrics import OptionError
from hallujudge.metrics.infact import InfactMetric

WORDS = dict(zip("ABCD", ["a red dog", "two men", "rain", "wind"], strict=True))


@pytest.mark.parametrize("words", [{}, WORDS], ids=["letters", "words"])
def test_totals_over_columns_equal_the_formulas(words: dict[str, str]) -> None:
    questions = infact_questions(200, seed=4)
    columns = {
        operator: [words.get(q["runs"][operator], str(q["runs"][operator])) for q in questions]
        for operator in questions[0]["runs"]
    }
    labels = [words.get(q["label"], str(q["label"])) for q in questions]
    got = InfactMetric().total(columns, labels, [q["order_sensitive"] for q in questions])
    wanted = oracle.infact(questions)
    assert got == {name: pytest.approx(wanted[name]) for name in got}
    assert len(got) == 9


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(OptionError, match="1 answers to 2"):
        InfactMetric().total({"base": ["A"]}, ["A", "B"], [True, False])


def test_a_mean_without_a_value_says_which_operators_are_missing() -> None:
    totals = {column.name: 1.0 for column in InfactMetric.columns}
    assert InfactMetric().notes_on(totals) == ()
    (note,) = InfactMetric().notes_on({**totals, "asked_motion_blur": 0, "asked_reverse": 0})
    assert note.startswith(
        expected_message("metrics.infact.operators:no-value-rr-visual-degradation-tss-average")
    )
    assert (
        expected_message("metrics.infact.operators:parsed-answer-under-motion-blur-reverse") in note
    )
    nothing = dict.fromkeys(totals, 0.0)
    (note,) = InfactMetric().notes_on({**nothing, "runs": 1})
    assert note.endswith(
        expected_message("metrics.infact.operators:no-question-has-right-answer-to-the")
    )
    assert InfactMetric().notes_on(nothing) == (), "a server says it of no question in advance"
