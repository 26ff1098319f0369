"""Open objects: doubt, thresholds, scores and what is unscored."""

from __future__ import annotations

from typing import Any

import pytest

from hallujudge.metrics.open_objects import (
    WEIGHTS,
    ComparedObject,
    OpenObjectsItem,
    OpenObjectsMetric,
)


def metric(**options: str) -> OpenObjectsMetric:
    return OpenObjectsMetric(matcher="m", graph="g", **options)


def compared(**values: Any) -> ComparedObject:
    given = {"similarity": 1.0, "closeness": 1.0, "gain": 0.0, "uncounted": False} | values
    return ComparedObject(object="dog", start=0, end=3, reference="dog", **given)


@pytest.mark.parametrize(
    ("values", "doubt"),
    [
        ({}, 0.0),
        ({"similarity": 0.5}, 0.5 * WEIGHTS[0] / 1.9),
        ({"closeness": 0.5}, 0.5 * WEIGHTS[1] / 1.9),
        ({"gain": 0.1}, 0.1 * WEIGHTS[2] / 1.9),
        ({"uncounted": True}, WEIGHTS[3] / 1.9),
    ],
)
def test_doubt_is_a_weighted_sum(values: dict[str, Any], doubt: float) -> None:
    made = metric().score_caption([[compared(**values)]], {}, has_captions=True)
    assert made.evidence is not None
    [found] = made.evidence.objects
    assert found.doubt == pytest.approx(doubt, abs=1e-6)
    assert found.hallucinated is (doubt > 1)


def test_doubts_about_objects_of_a_sentence_add_up() -> None:
    dog = compared(closeness=0.75, gain=0.02)
    cat = compared(closeness=0.75, similarity=0.0)._replace(object="cat")
    together, apart = (
        metric().score_caption(sentences, {}, has_captions=True).evidence
        for sentences in ([[dog, cat]], [[dog], [cat]])
    )
    assert together is not None
    assert apart is not None
    assert [found.hallucinated for found in together.objects] == [True, False]
    assert [found.hallucinated for found in apart.objects] == [False, False]


def test_strict_needs_more_doubt() -> None:
    doubtful = [[compared(closeness=0.55)]]
    flags = [
        metric(threshold=name).score_caption(doubtful, {}, has_captions=True).scores["open_chair_s"]
        for name in ("balanced", "strict")
    ]
    assert flags == [1.0, 0.0]


@pytest.mark.parametrize(("similarity", "wrong"), [(0.61, 0.0), (0.59, 1.0)])
def test_objects_alone_are_compared_by_similarity(similarity: float, wrong: float) -> None:
    made = metric().score_caption([[compared(similarity=similarity)]], {}, has_captions=False)
    assert made.scores["open_chair_i"] == wrong


def test_scores_and_what_is_missed() -> None:
    objects = [compared(), compared(gain=0.2)]
    made = metric().score_caption([objects], {"dog": True, "cat": False}, has_captions=True)
    assert made.statistics == (2, 1, 1, 1, 2)
    assert made.scores == {"open_chair_i": 0.5, "open_chair_s": 1.0, "recall": 0.5}
    assert made.evidence is not None
    line: dict[str, Any] = dict(made.evidence.to_json())
    assert (line["hallucinated"], line["missed"]) == (["dog"], ("cat",))
    assert line["objects"][1]["span"] == [0, 3]


def test_a_caption_without_objects_has_no_share() -> None:
    made = metric().score_caption([], {}, has_captions=True)
    assert made.scores == {"open_chair_i": None, "open_chair_s": 0.0, "recall": None}


def test_the_reference_is_captions_and_objects_without_order() -> None:
    one, other = (
        OpenObjectsItem(id="1", response="x", reference_captions=captions)
        for captions in (("a", "b"), ("b", "a", "a"))
    )
    assert one.records() == other.records()
    assert OpenObjectsItem(id="1", response="x").records().reference is None
