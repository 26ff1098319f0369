"""Lines of items.jsonl."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from hallujudge.metrics import ChairEvidence, ChairItem, ItemResult, MentionVerdict, Outcome
from hallujudge.sdk.runs.saved_items import item_lines, signed_lines

ITEM = ChairItem(id="1", response='A "dog"\n\u2028 über \x00 𝄞', reference_objects=("cat",))


def result(statistic: float = 1.0, score: float | None = 0.1) -> ItemResult:
    return ItemResult(
        id="1",
        group_id="g",
        outcome=Outcome.SCORED,
        statistics=(statistic, 0.5),
        scores={"chair_i": score, "recall": None},
        evidence=ChairEvidence(mentions=(MentionVerdict("dog", "dog", 3, 6, True),)),
        fields={"model": "m"},
    )


def test_a_line_holds_the_result_and_the_response() -> None:
    line = item_lines([(ITEM, result())], ("mentioned", "words"), keep_text=True)
    assert line.count(b"\n") == 1
    plain = result().to_json()
    values = json.loads(line)
    assert values == {
        **plain,
        "evidence": json.loads(json.dumps(plain["evidence"])),
        "statistics": {"mentioned": 1, "words": 0.5},
        "response": ITEM.response,
    }
    assert list(values)[-1] == "evidence"
    assert b'"mentioned":1,' in line


def test_a_number_of_numpy_is_a_number() -> None:
    line = item_lines([(ITEM, result(np.float64(2), np.float64(0.25)))], ("a", "b"), keep_text=True)
    assert json.loads(line)["scores"] == {"chair_i": 0.25, "recall": None}


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_number_that_json_lacks_is_refused(number: float) -> None:
    for wrong in (result(statistic=number), result(score=number)):
        with pytest.raises(ValueError, match="'1'"):
            item_lines([(ITEM, wrong)], ("a", "b"), keep_text=True)


def test_a_signature_ends_every_line() -> None:
    line = item_lines([(ITEM, result())], ("a", "b"), keep_text=True)
    both = signed_lines(line * 2, 'chair|"x"').splitlines()
    assert [json.loads(each).get("signature") for each in both] == ['chair|"x"'] * 2
    assert json.loads(both[0])["response"] == ITEM.response
