"""Rewards: their range, guards and weights, gathered calls, and what each trainer calls."""

from __future__ import annotations

import asyncio
import doctest
import math
import pickle
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.threads import run_in_threads

from hallujudge.sdk import rewards
from hallujudge.sdk.errors import HallujudgeError, InvalidInputError
from hallujudge.sdk.rewards import (
    Gathered,
    Reward,
    WeightedReward,
    openrlhf_reward,
    swift_reward,
    trl_reward,
    verl_reward,
)

TEXTS = ["A cat.", "A cat and a dog.", "A dog.", "A view.", ""]
CAT = [["cat"]] * len(TEXTS)


@pytest.fixture(scope="module")
def reward() -> Iterator[Reward]:
    made = Reward("chair", "chair_i")
    yield made
    made.scorer.close()


def test_examples() -> None:
    result = doctest.testmod(rewards)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_higher_is_better_and_nothing_to_judge_is_none(reward: Reward) -> None:
    assert reward(TEXTS, CAT) == [1.0, 0.5, 0.0, None, None]
    assert reward(["A cat.", "A cat."], [None, ["cat"]]) == [None, 1.0]
    assert reward([], []) == []


def test_the_range_of_a_reward() -> None:
    spread = Reward("chair", "chair_i", low=-1.0, high=3.0)
    assert spread(TEXTS[:3], CAT[:3]) == [3.0, 1.0, -1.0]
    turned = Reward("chair", "chair_i", direction="higher")
    assert turned(TEXTS[:3], CAT[:3]) == [0.0, 0.5, 1.0]
    recall = Reward("chair", "recall")
    assert recall(["A dog.", "A cat."], CAT[:2]) == [0.0, 1.0]
    words = Reward("chair", "mean_words", direction="higher", limits=(0, 4))
    assert words(["A cat.", "A cat and a dog and a bird."], CAT[:2]) == [0.5, 1.0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"score": "mean_words"},
        {"score": "mean_words", "direction": "higher"},
        {"score": "chair_i", "limits": (1, 0)},
        {"score": "chair_i", "low": 1.0, "high": 0.0},
        {"score": "chair_i", "low": math.nan},
        {"score": "chair_i", "pattern": "("},
        {"score": "no_such_score"},
        {"variant": "odd"},
    ],
)
def test_a_wrong_configuration_fails_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(HallujudgeError):
        Reward("chair", **wrong)


def test_guards_give_the_lowest_reward() -> None:
    guarded = Reward(
        "chair",
        "chair_i",
        min_words=3,
        max_repetition=0.2,
        pattern="<think>.*</think>(?P<response>.*)",
    )
    texts = [
        "<think>dog dog</think>A cat sits.",
        "A cat sits.",
        "<think></think>A cat.",
        "<think></think>" + "A cat sits here. " * 5,
    ]
    assert guarded(texts, CAT[:4]) == [1.0, 0.0, 0.0, 0.0]


@given(st.lists(st.tuples(st.floats(0, 1) | st.none(), st.floats(0, 1)), max_size=5))
def test_weights_are_a_weighted_mean(rows: list[tuple[float | None, float]]) -> None:
    def first(*_: object) -> list[float | None]:
        return [row[0] for row in rows]

    def second(*_: object) -> list[float | None]:
        return [row[1] for row in rows]

    mixed = WeightedReward([(first, 3.0), (second, 1.0)])
    assert mixed([""] * len(rows)) == [
        None if a is None else pytest.approx(0.75 * a + 0.25 * b) for a, b in rows
    ]


def test_a_number_that_is_none_never_leaves_a_reward() -> None:
    def odd(responses: Sequence[str], references: object = None) -> list[float | None]:
        return [float(text) for text in responses]

    texts = ["nan", "inf", "-inf", "0.5"]
    assert WeightedReward([(odd, 1.0)])(texts, texts) == [None, None, None, 0.5]
    assert trl_reward(odd, references="r")(texts, r=texts) == [None, None, None, 0.5]
    gathered = Gathered(odd)
    assert gathered.many(texts, texts) == [None, None, None, 0.5]
    gathered.close()


def test_weights_must_be_above_zero() -> None:
    for parts in ([], [(len, 0.0)], [(len, math.nan)]):
        with pytest.raises(InvalidInputError):
            WeightedReward(parts)  # type: ignore[arg-type]


class Counted:
    """A reward that keeps the batches it was called with: a number is its own reward."""

    def __init__(self) -> None:
        self.batches: list[Sequence[str]] = []

    def __call__(
        self,
        responses: Sequence[Any],
        references: Sequence[object] | None = None,
    ) -> list[float | None]:
        self.batches.append(list(responses))
        return [float(text) for text in responses]


def test_calls_of_many_threads_share_batches() -> None:
    counted = Counted()
    numbers = iter(range(64))
    lock = threading.Lock()
    gathered = Gathered(counted, max_size=64, max_wait=60.0)

    def one() -> float | None:
        with lock:
            mine = str(next(numbers))
        return gathered(mine, mine)

    found = run_in_threads(one, 64)
    assert sorted(found) == list(range(64))  # type: ignore[type-var]
    assert [len(batch) for batch in counted.batches] == [64], "a full batch waits no longer"
    gathered.close()


def test_a_failure_reaches_all_who_wait_and_the_next_batch_goes_on() -> None:
    calls: list[int] = []

    def failing(responses: Sequence[Any], references: object = None) -> list[float | None]:
        calls.append(len(responses))
        if len(calls) == 1:
            raise InvalidInputError("not today")
        return [1.0] * len(responses)

    gathered = Gathered(failing, max_size=2, max_wait=60.0)
    outcomes = run_in_threads(lambda: gathered("a", "b"), 2)
    assert [type(one) for one in outcomes] == [InvalidInputError] * 2
    assert run_in_threads(lambda: gathered("a", "b"), 2) == [1.0, 1.0]
    gathered.close()


async def test_a_cancelled_call_costs_the_others_of_its_batch_nothing() -> None:
    gathered = Gathered(Counted(), max_size=3, max_wait=60.0)
    first, second = (asyncio.create_task(gathered.reward(one, one)) for one in ("1", "2"))
    await asyncio.sleep(0)  # both have been handed in
    first.cancel()
    third = asyncio.create_task(gathered.reward("3", "3"))
    assert list(await asyncio.gather(second, third)) == [2.0, 3.0]
    await asyncio.to_thread(gathered.close)


def test_gathered_calls_can_be_pickled_and_closed(reward: Reward) -> None:
    gathered = Gathered(reward, max_wait=0.0)
    assert gathered("A cat.", ["cat"]) == 1.0
    copy = pickle.loads(pickle.dumps(gathered))
    assert copy("A dog.", ["cat"]) == 0.0
    for one in (gathered, copy):
        one.close()
        assert one("A dog.", ["dog"]) == 1.0
        one.close()
    with pytest.raises(InvalidInputError):
        Gathered(reward, max_size=0)


CONVERSATIONS = [
    [{"role": "assistant", "content": "A cat."}],
    [{"role": "assistant", "content": [{"type": "text", "text": "A cat and a dog."}]}],
]


def test_trl_passes_completions_and_columns(reward: Reward) -> None:
    called = trl_reward(reward, references="objects")
    columns = {"prompts": ["p"] * 2, "completion_ids": [[1]] * 2, "objects": CAT[:2]}
    assert called(completions=TEXTS[:2], **columns) == [1.0, 0.5]
    assert called(completions=CONVERSATIONS, **columns) == [1.0, 0.5]
    assert called.__name__ == "chair_i"
    awaited = trl_reward(reward, references="objects", asynchronous=True)
    assert asyncio.run(awaited(completions=TEXTS[:2], **columns)) == [1.0, 0.5]
    with pytest.raises(InvalidInputError, match="prompts"):
        called(completions=[], prompts=[])


async def test_verl_calls_for_one_response_at_a_time(reward: Reward) -> None:
    compute_score = verl_reward(reward, unscored=-1.0)
    scored = await asyncio.gather(
        *[compute_score("set", text, ["cat"], {"index": 1}) for text in TEXTS]
    )
    assert scored == [1.0, 0.5, 0.0, -1.0, -1.0]


def test_openrlhf_passes_queries_prompts_and_labels(reward: Reward) -> None:
    reward_func = openrlhf_reward(reward, tensor=tuple, unscored=0.25)
    prompts = ["Describe. "] * len(TEXTS)
    queries = [f"<s>{prompt}{text}</s>" for prompt, text in zip(prompts, TEXTS, strict=True)]
    found = reward_func(queries, prompts, CAT)
    assert found["rewards"] == found["scores"] == (1.0, 0.5, 0.0, 0.25, 0.25)
    assert found["extra_logs"]["unscored"] == (0, 0, 0, 1, 1)


def test_swift_makes_an_orm_and_calls_it_with_columns(reward: Reward) -> None:
    orm = swift_reward(reward, references="objects")(args=None)
    assert orm(TEXTS, objects=CAT, messages=[]) == [1.0, 0.5, 0.0, None, None]
    awaited = swift_reward(reward, references="objects", asynchronous=True)()
    assert asyncio.run(awaited(TEXTS, objects=CAT)) == [1.0, 0.5, 0.0, None, None]
