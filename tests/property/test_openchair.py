"""OpenCHAIR: the engine against a plain loop over the rule of the released script."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import openchair as oracle
from support.sizes import examples

from hallujudge.sdk import Client

words = st.sampled_from(
    ["yes", "no", "not", "unsure", "Yes.", "NO;", "sure", "I", "am", "\n", "yes/no", '"Yes"', "no!"]
)
texts = st.lists(words, max_size=5).map(" ".join)
things = st.sampled_from(["dog", "cat", "photo", "photos", "painting", "Photo"])
captions = st.lists(st.lists(st.tuples(things, texts), max_size=4), min_size=1, max_size=6)


# Each example is a whole run, and the machine may be busy: a slow one is not a failure.
@settings(deadline=None, max_examples=examples(60))
@given(captions)
def test_published_is_the_plain_loop(found: list[list[tuple[str, str]]]) -> None:
    archive: list[Any] = [
        {"generated_objs": [t for t, _ in each], "judge_texts": [text for _, text in each]}
        for each in found
    ]
    wanted = oracle.counts([(row["generated_objs"], row["judge_texts"]) for row in archive])
    with Client.embedded() as client:
        report = client.score("openchair", responses=archive)
    totals = report.totals
    assert (totals["no"], totals["judged"] - totals["no"]) == (wanted["no"], wanted["yes"])
    assert (totals["unsure"], totals["ignored"]) == (wanted["unsure"], wanted["ignore"])
    assert totals["unparsed"] == wanted["ERROR"]
    value = report["openchair"].value
    if wanted["yes"] and wanted["no"]:
        assert value == pytest.approx(wanted["no"] / (wanted["yes"] + wanted["no"]), abs=1e-12)
    else:
        assert value is None, "the released script stops"
