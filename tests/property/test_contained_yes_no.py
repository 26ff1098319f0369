"""DASH-B, ELV-Halluc and RePOPE's rule: the engine against plain loops, for any answers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import contained_yes_no as oracle
from support.sizes import examples

from hallujudge.sdk import Client, RunReport

# Each example is a whole run, and the machine may be busy: a slow one is not a failure.
patient = settings(deadline=None, max_examples=examples(60))

SAID = ["Yes", "no", "NO.", "yes, no", "not", "Yesterday", "nothing", "(no)", "a dog", "snow", ""]
responses = st.sampled_from(SAID)
labels = st.sampled_from(["yes", "no"])
answers = st.lists(st.tuples(labels, responses), min_size=1, max_size=12)
orders = st.permutations(["ground_truth", "in_video", "out_video"])
triplets = st.lists(
    st.tuples(orders, st.lists(responses, min_size=3, max_size=3)), min_size=1, max_size=6
)


def run(metric: str, rows: list[Any], **more: Any) -> RunReport:
    with Client.embedded() as client:
        # The released scripts score empty answers.
        return client.score(metric, responses=rows, options={"count_empty": "true"}, **more)


def agree(report: RunReport, wanted: oracle.Scores) -> None:
    for name, value in wanted.items():
        got = report[name].value
        assert got == (None if value is None else pytest.approx(value, abs=1e-12)), name


@patient
@given(answers)
def test_dash_b(drawn: list[tuple[str, str]]) -> None:
    rows = [
        {"img_id": f"{n}.jpg", "object_name": "cup", "gt": label, "response": text}
        for n, (label, text) in enumerate(drawn)
    ]
    agree(run("dash-b", rows), oracle.rates(drawn))


@patient
@given(answers)
def test_repope(drawn: list[tuple[str, str]]) -> None:
    rows = [
        {"question_id": n, "image": f"{n}.jpg", "label": label, "response": text}
        for n, (label, text) in enumerate(drawn)
    ]
    agree(run("pope", rows, variant="repope"), oracle.repope(drawn))


@patient
@given(triplets, st.integers(0, 2))
def test_elv_halluc_leaves_out_what_is_no_whole_triplet(drawn: list[Any], lost: int) -> None:
    rows = [
        {
            "caption_type": kind,
            "aspect": "object",
            "ref_answer": "Yes" if kind == "ground_truth" else "No",
            "model_response": text,
        }
        for kinds, texts in drawn
        for kind, text in zip(kinds, texts, strict=True)
    ]
    rows = rows[: len(rows) - lost]
    report = run("elv-halluc", rows)
    agree(report, oracle.elv_halluc(rows))
    assert report.coverage.unscored == (lost > 0)
