"""Scores of single responses in this process: as values, over pickles and threads."""

from __future__ import annotations

import asyncio
import doctest
import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.metric_runs import RUNS
from support.threads import run_in_threads

from hallujudge.metrics import Outcome
from hallujudge.sdk import AsyncClient, Client, Scorer, scorer
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.rewards import Reward

REFERENCES = {"1": ["dog", "couch"], "2": ["cat"]}
RESPONSES = [
    ("1", "A dog and a cat."),
    ("2", "A cat."),
    ("1", "A dog on a couch."),
    ("3", "A bird."),
    ("2", ""),
    ("1", "A dog and a cat."),
]
CHAIR_I = [0.5, 0.0, 0.0, None, None, 0.5]
REASONS = ["", "", "", "REFERENCE_MISSING", "RESPONSE_EMPTY", ""]


def test_examples() -> None:
    result = doctest.testmod(scorer)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_scores_equal_those_of_a_report_of_each_response() -> None:
    names = ("chair_i", "chair_s", "recall", "mean_words")
    with Client.embedded() as client:
        found = client.score_each("chair", RESPONSES[:3], REFERENCES, scores=names)
        for (name, text), one in zip(RESPONSES, found, strict=False):
            report = client.score("chair", responses={name: text}, references=REFERENCES)
            assert one.scores == {score: report.scores[score].value for score in names}


async def test_the_asynchronous_client_returns_the_same() -> None:
    async with AsyncClient.embedded() as client:
        found = await client.score_each("chair", RESPONSES, REFERENCES, scores=["chair_i"])
    assert [one.scores["chair_i"] for one in found] == CHAIR_I
    with Scorer("chair", references=REFERENCES, scores=["chair_i"]) as scored:
        many = await asyncio.gather(*[scored.score(RESPONSES) for _ in range(5)])
    assert all([one.scores for one in batch] == [one.scores for one in found] for batch in many)


def test_references_may_come_with_each_call() -> None:
    with Scorer("chair", scores=["chair_i"]) as scored:
        found = scored(["A dog.", "A dog.", "A dog.", None], [["dog"], ["cat"], None, ["cat"]])
        again = scored(["A dog."], [["cat"]])
    assert [one.scores["chair_i"] for one in found] == [0.0, 1.0, None, None]
    assert [one.reason for one in found][2:] == ["REFERENCE_MISSING", "RESPONSE_MISSING"]
    assert again[0].scores["chair_i"] == 1.0


def test_a_reference_that_can_not_be_read_costs_its_own_response() -> None:
    with Scorer("pope", scores=["accuracy"]) as scored:
        found = scored(["Yes.", "No.", "No."], ["yes", "perhaps", {"label": "yes"}])
    assert [one.scores["accuracy"] for one in found] == [1.0, None, 0.0]
    assert (found[1].reason, "perhaps" in found[1].detail) == ("REFERENCE_MISSING", True)


def test_several_answers_that_count_together() -> None:
    place = {"video": "v", "set": "temporal", "pair": "1"}
    records = [
        {**place, "role": "basic", "answer": "yes"},
        {**place, "role": "hallucination", "answer": "no"},
    ]
    with Scorer("video-hallucer", references=records) as scored:
        right, wrong = scored(
            [
                ("temporal/1", {"basic": "Yes", "hallucination": "No"}),
                ("temporal/1", {"basic": "Yes", "hallucination": "Yes"}),
            ]
        )
        assert (right.scores, wrong.scores) == ({"pair_accuracy": 1.0}, {"pair_accuracy": 0.0})
        with pytest.raises(InvalidInputError, match="basic, hallucination"):
            scored([("temporal/1", "Yes")])


def as_file(given: Any, folder: Path) -> Path:
    path = folder / "references.json"
    path.write_text(json.dumps(given))
    return path


@pytest.mark.parametrize("kept", ["values", "file"])
@pytest.mark.parametrize(
    "metric", ["chair", "pope", "vidhal-mcqa", "vidhal-ordering", "mementos", "tri-he"]
)
def test_scores_are_those_of_a_run_about_the_same_references(
    metric: str, kept: str, tmp_path: Path
) -> None:
    run = RUNS[metric]()
    settings = {name: run[name] for name in ("inputs", "variant") if name in run}
    with Client.embedded() as client:
        report = client.score(metric, **run)
    references = run["references"] if kept == "values" else as_file(run["references"], tmp_path)
    pairs = [
        (item.id.partition("#")[0], getattr(item.item, "response", None)) for item in report.items
    ]
    with Scorer(metric, references=references, **settings) as scored:
        found = scored(pairs)
    (name,) = found[0].scores
    assert [(one.outcome, str(one.reason)) for one in found] == [
        (item.outcome, str(item.reason)) for item in report.items
    ]
    own = [item.scores.get(name) for item in report.items]
    assert [one.scores[name] for one in found if one.outcome is Outcome.SCORED] == [
        score
        for item, score in zip(report.items, own, strict=True)
        if item.outcome is Outcome.SCORED
    ] or own == [None] * len(own)


def test_calls_without_references_or_with_too_few_are_refused() -> None:
    with Scorer("chair") as scored:
        with pytest.raises(InvalidInputError, match="references"):
            scored([("1", "A dog.")])
        with pytest.raises(InvalidInputError, match="2 responses, but 1"):
            scored(["A dog.", "A cat."], [["dog"]])


def test_a_pickled_copy_scores_the_same() -> None:
    with (
        Scorer("chair", references=REFERENCES, scores=["chair_i"]) as scored,
        pickle.loads(pickle.dumps(scored)) as copy,
    ):
        assert copy(RESPONSES) == scored(RESPONSES)


def test_many_threads_share_one() -> None:
    with Scorer("chair", references=REFERENCES, scores=["chair_i"]) as scored:
        outcomes = run_in_threads(lambda: [o.scores["chair_i"] for o in scored(RESPONSES)], 8)
    assert outcomes == [CHAIR_I] * 8


@pytest.mark.parametrize("deadline", ["1", "x", [1], True, 0, -1, float("nan")])
def test_a_deadline_that_is_no_number_of_seconds_is_refused(deadline: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Scorer("chair", deadline=deadline)
    assert str(caught.value) == f"deadline={deadline!r} is not a number of seconds above 0"


WRONG_CALLS: Mapping[str, tuple[object, object]] = {
    'response 0 ("x") is not a pair of a reference\'s id and a response': (["x"], None),
    'response 1 ({"a": 1}) is not a pair': ([("1", "a dog"), {"a": 1}], None),
    "the responses are of type str": ("x", [["dog"]]),
    "the responses are of type dict": ({"1": "a dog"}, [["dog"]]),
    "the responses are of type NoneType": (None, [["dog"]]),
    "the responses are of type generator": ((text for text in ["a dog"]), [["dog"]]),
    "the references are of type int": (["a dog"], 5),
    "the references are of type dict": (["a dog"], {"1": ["dog"]}),
}


@pytest.mark.parametrize("said", WRONG_CALLS)
def test_what_is_no_list_of_responses_is_refused(said: str) -> None:
    responses: Any
    references: Any
    responses, references = WRONG_CALLS[said]
    with Scorer("chair") as scorer, pytest.raises(InvalidInputError) as refused:
        scorer(responses, references)
    assert str(refused.value).startswith(said)
    assert "; give " in str(refused.value)
    with pytest.raises(InvalidInputError) as refused:
        Reward("chair")(responses, references)
    assert str(refused.value).startswith(said)
