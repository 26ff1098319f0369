"""Scores that harnesses accumulate: records and running scores give the numbers of a report."""

from __future__ import annotations

import doctest
import json
import math
import pickle
from collections.abc import Iterator
from typing import Any, cast

import pytest

from hallujudge.integrations import harness_scores
from hallujudge.metrics import Outcome
from hallujudge.metrics.errors import MergeError
from hallujudge.sdk import Client, Report, ResponseScore, RunReport, Scorer
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.harness_adapters import lmms_results
from hallujudge.sdk.harness_scores import (
    RunningScores,
    corpus_score,
    explanation,
    report_of,
    scored_records,
    scores_with_intervals,
)
from hallujudge.sdk.trackers import LoggedReport

CAPTIONS = ["A cat and a dog and a car.", "A cat.", "A view.", "", "A dog on a sofa.", "A car."]
OBJECTS = [["cat", "couch"]] * 5 + [["dog"]]
IDS = [str(at) for at in range(len(CAPTIONS))]


@pytest.fixture(scope="module")
def report() -> RunReport:
    with Client.embedded() as client:
        return client.score(
            "chair",
            responses=dict(zip(IDS, CAPTIONS, strict=True)),
            references=dict(zip(IDS, OBJECTS, strict=True)),
        )


@pytest.fixture(scope="module")
def scorer() -> Iterator[Scorer]:
    with Scorer("chair", scores=["chair_i", "recall"]) as made:
        yield made


@pytest.fixture(scope="module")
def records(scorer: Scorer) -> list[dict[str, Any]]:
    return [
        scored_records(scorer, caption, objects, group=name)["chair_i"]
        for name, caption, objects in zip(IDS, CAPTIONS, OBJECTS, strict=True)
    ]


def assert_same(found: Report, expected: Report) -> None:
    assert found.scores == expected.scores
    assert found.coverage == expected.coverage
    assert found.signature == expected.signature


def test_examples() -> None:
    result = doctest.testmod(harness_scores)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_records_make_the_report_also_after_they_were_written(
    records: list[dict[str, Any]], report: RunReport
) -> None:
    assert_same(report_of(records), report)
    assert_same(report_of(json.loads(json.dumps(records))), report)
    assert corpus_score(records) == report.chair_i


def test_a_record_has_the_score_of_its_response(records: list[dict[str, Any]]) -> None:
    assert [record.get("score") for record in records] == [2 / 3, 0.0, None, None, 0.5, 1.0]
    assert records[0]["item"]["evidence"]["hallucinated"] == [("dog", "dog"), ("car", "car")]
    assert records[3]["item"]["reason"] == "RESPONSE_EMPTY"


def test_a_missing_reference_is_unscored_and_no_zero(scorer: Scorer) -> None:
    record = scored_records(scorer, "A cat.", None)["chair_i"]
    assert record["item"]["outcome"] == "unscored"
    assert record["item"]["reason"] == "REFERENCE_MISSING"
    assert math.isnan(corpus_score([record]))
    known = scored_records(scorer, "A cat.", ["cat"])["chair_i"]
    assert report_of([record, known]).coverage.unscored == 1
    assert corpus_score([]) != corpus_score([])


def test_records_of_two_metrics_make_no_report(records: list[dict[str, Any]]) -> None:
    with Scorer("pope") as pope:
        [other] = scored_records(pope, "Yes", "yes").values()
    with pytest.raises(InvalidInputError, match="2 signatures"):
        report_of([records[0], other])


def test_running_scores_are_those_of_a_report(report: RunReport) -> None:
    running = RunningScores("chair", ["chair_i", "recall"])
    assert running.compute() == {"chair_i": None, "recall": None}
    for name, caption, objects in zip(IDS, CAPTIONS, OBJECTS, strict=True):
        [score] = running.update([caption], [objects], groups=[name])
        assert score.outcome in Outcome
    assert running.compute() == {"chair_i": report.chair_i, "recall": report.recall}
    assert_same(running.report(), report)
    logged: list[LoggedReport] = []
    running.report().log_to(logged.append)
    assert logged[0].numbers["chair/chair_i"] == report.chair_i
    running.reset()
    assert running.compute() == {"chair_i": None, "recall": None}


@pytest.mark.parametrize("cut", [0, 2, 6])
def test_states_merge_in_any_order(report: RunReport, cut: int) -> None:
    parts = [RunningScores("chair", ["chair_i"]), RunningScores("chair", ["chair_i"])]
    for part, where in zip(parts, (slice(cut), slice(cut, None)), strict=True):
        part.update(CAPTIONS[where], OBJECTS[where], groups=IDS[where])
    states = [part.state() for part in parts]
    assert_same(parts[0].gather(lambda _: states), report)
    assert_same(parts[1].gather(lambda _: states[::-1]), report)
    copied = pickle.loads(pickle.dumps(parts[0]))
    copied.merge(states[1])
    assert_same(copied.report(), report)


def test_responses_without_statistics_are_refused() -> None:
    bare = ResponseScore(id="0", scores={"chair_i": 0.5}, outcome=Outcome.SCORED)
    running = RunningScores.of(cast("Scorer", lambda *_: [bare]))
    with pytest.raises(InvalidInputError, match="evidence=False"):
        running.update(["A cat."], [["cat"]])


def test_a_damaged_state_is_refused() -> None:
    with pytest.raises(MergeError):
        RunningScores("chair").merge(b"\x02\x00\x00\x00{}")


def test_responses_to_one_reference_id_are_a_group() -> None:
    running = RunningScores("chair", ["chair_i"], references={"1": ["cat"], "2": ["dog"]})
    running.update([("1", "A cat."), ("1", "A cat."), ("2", "A car and a dog.")])
    report = running.report()
    assert report["chair_i"].n == 3
    groups = RunningScores("chair", ["chair_i"])
    groups.update(
        ["A cat.", "A cat.", "A car and a dog."],
        [["cat"], ["cat"], ["dog"]],
        groups=["x", "x", "y"],
    )
    assert groups.report().scores == report.scores


def test_lmms_eval_gets_a_record_of_each_score(report: RunReport) -> None:
    process = lmms_results("chair", ["chair_i", "recall"], reference="objects", group="image")
    docs = [{"objects": objects, "image": at} for at, objects in enumerate(OBJECTS)]
    rows = [process(doc, [caption]) for doc, caption in zip(docs, CAPTIONS, strict=True)]
    for name in ("chair_i", "recall"):
        assert corpus_score([row[name] for row in rows]) == report.scores[name].value
    with pytest.raises(InvalidInputError, match="'objects'; it has image"):
        process({"image": 1}, ["A cat."])


def test_undefined_scores_have_no_interval() -> None:
    running = RunningScores("chair", ["chair_i"])
    running.update(["A view."], [["cat"]])
    assert scores_with_intervals(running.report(), ["chair_i"]) == {}


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        ({"hallucinated": []}, "nothing hallucinated"),
        ({"hallucinated": [["dogs", "dog"]]}, "hallucinated: dogs"),
        (
            {"answers": [{"answer": "yes", "label": "no"}, {"answer": None, "label": "no"}]},
            "answered yes, label no; answered nothing that can be read, label no",
        ),
        (
            {
                "claims": [
                    {"triplet": ["a man", "rides", "a cow"], "verdict": "not_supported"},
                    {"triplet": ["a", "is", "b"], "verdict": "supported"},
                ]
            },
            "not supported: a man rides a cow",
        ),
        (
            {"objects": {"hallucinated": ["cup"]}, "behaviors": {"hallucinated": ["pour"]}},
            "hallucinated objects: cup; hallucinated behaviors: pour",
        ),
    ],
)
def test_a_sentence_says_what_a_score_rests_on(evidence: dict[str, Any], why: str) -> None:
    assert explanation("score", 0.25, evidence) == f"score 0.25: {why}"


@pytest.mark.parametrize(
    ("name", "evidence", "why"),
    [
        ("recall", {"hallucinated": [["dogs", "dog"]], "missed": ["cat"]}, "missed: cat"),
        ("recall", {"hallucinated": [["dogs", "dog"]], "missed": []}, "nothing missed"),
        (
            "behavior_recall",
            {"objects": {"missed": ["cup"]}, "behaviors": {"missed": ["pour"]}},
            "missed: pour",
        ),
        # Answers to questions are not mentioned or missed.
        ("recall", {"answers": [{"answer": "no", "label": "yes"}]}, "answered no, label yes"),
    ],
)
def test_recall_rests_on_what_is_missed(name: str, evidence: dict[str, Any], why: str) -> None:
    assert explanation(name, 0.5, evidence) == f"{name} 0.5: {why}"
