"""Rewards: their range, guards and weights, gathered calls, and what each trainer calls."""

from __future__ import annotations

import asyncio
import doctest
import math
import pickle
import re
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
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
    gathered = Gathered(odd)
    for call in (
        lambda: WeightedReward([(odd, 1.0)])(texts, texts),
        lambda: trl_reward(odd, references="r")(texts, r=texts),
        lambda: gathered.many(texts, texts),
    ):
        with pytest.warns(RuntimeWarning, match="returned nan for responses, which have no rew"):
            assert call() == [None, None, None, 0.5]
    gathered.close()


@pytest.mark.parametrize("rewards", [["0.5"], 0.5, [[0.5]]])
def test_a_reward_that_is_no_number_is_named(rewards: Any) -> None:
    with pytest.raises(InvalidInputError, match="return a list with a number for each response"):
        WeightedReward([(lambda *_: rewards, 1.0)])(["A cat."], [["cat"]])


@pytest.mark.parametrize(
    "adapter",
    [
        partial(trl_reward, references="r"),
        partial(swift_reward, references="r"),
        verl_reward,
        partial(openrlhf_reward, tensor=list),
    ],
)
def test_what_an_unscored_response_gets_is_a_number(adapter: Any) -> None:
    with pytest.raises(InvalidInputError, match="unscored=nan; give a number"):
        adapter(len, unscored=math.nan)


def test_a_response_that_one_guard_refuses_gets_the_lowest_reward_of_all_parts() -> None:
    few = Reward("chair", "chair_i", min_words=3, low=-1.0)
    recall = Reward("chair", "recall", low=-2.0)
    mixed = WeightedReward([(few, 0.75), (recall, 0.25)])
    texts = ["", "A cat.", "A cat is on a sofa."]
    lowest = 0.75 * -1.0 + 0.25 * -2.0
    assert mixed(texts, CAT[:3]) == [lowest, lowest, 0.75 * 0.0 + 0.25 * 1.0]
    assert mixed.low == lowest
    nested = WeightedReward(
        [(mixed, 1.0), (lambda given, _: [float(len(one)) for one in given], 1)]
    )
    assert nested(texts[:2], CAT[:2]) == [lowest / 2, (lowest + 6) / 2]
    unknown = WeightedReward([(few, 1.0), (lambda given, _: [None] * len(given), 1.0)])
    assert unknown(texts, CAT[:3]) == [-1.0, -1.0, None]


def test_refused_responses_are_not_scored_by_any_part() -> None:
    few = Reward("chair", "chair_i", min_words=3, references={"1": ["cat"]})
    recall = Reward("chair", "recall", references={"1": ["cat"]})
    mixed = WeightedReward([(few, 0.5), (recall, 0.5)])
    # The id that is unknown would be an error if its response were scored.
    assert mixed([("2", "A cat.")]) == [0.0]
    assert mixed([("1", "A cat is here.")]) == [1.0]


WRONG = ["cat, couch", {"a": 1}, [1, 2], 5, b"cat"]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_a_reference_that_can_not_be_read_is_said_once(wrong: object) -> None:
    reward = Reward("chair", "chair_i")
    said = rf"can't score 1 of 2 responses, such as number 1 with {re.escape(repr(wrong))} in"
    with pytest.warns(RuntimeWarning, match=said):
        assert reward(TEXTS[:2], [["cat"], wrong]) == [1.0, None]
    assert reward(TEXTS[:2], [["cat"], wrong]) == [1.0, None]
    reward.scorer.close()


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_a_batch_of_references_that_can_not_be_read_is_an_error(wrong: object) -> None:
    reward = Reward("chair", "chair_i", min_words=2)
    called = trl_reward(reward, references="shown")
    said = rf"2 of 2 responses.* {re.escape(repr(wrong))} in the column 'shown'"
    with pytest.raises(InvalidInputError, match=said):
        called(completions=[*TEXTS[:2], ""], shown=[wrong] * 3, prompts=[])
    assert called(completions=TEXTS[:2], shown=[None] * 2, prompts=[]) == [None, None]
    assert called(completions=[""], shown=[wrong], prompts=[]) == [0.0]
    reward.scorer.close()


@pytest.mark.parametrize("label", [True, 1, "perhaps", ["yes"]])
def test_a_label_that_is_not_an_answer_is_said(label: object) -> None:
    reward = Reward("pope", "accuracy")
    called = swift_reward(reward, references="label")()
    with pytest.raises(InvalidInputError, match="in the column 'label': labels are neither yes"):
        called(["Yes.", "No."], label=[label, label])
    with pytest.warns(RuntimeWarning, match=re.escape(f"number 1 with {label!r}")):
        assert called(["Yes.", "No."], label=["yes", label]) == [1.0, None]


def test_an_id_without_a_reference_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    reward = Reward("chair", "chair_i", references={"1": ["cat"]})
    for _ in range(2):
        assert reward([("1", "A cat."), ("7", "A cat.")]) == [1.0, None]
        assert reward([("7", "A cat.")]) == [None]
    [record] = caplog.records
    assert "number 1 with the id '7': no reference has the id '7'" in record.getMessage()


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (5, r"response 1 is a number, not a text \(5\)"),
        (["A cat."], "response 1 is a list, not a text"),
        ({"content": 5}, "response 1 is an object, not a text"),
        ({"content": "A cat."}, "response 1 is an object .*where one text is scored"),
        ([{"content": 5}], "response 1 is a number, not a text"),
    ],
)
def test_a_response_that_is_not_a_text_is_named(reward: Reward, response: Any, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        reward(["A cat.", response], CAT[:2])


def test_messages_are_responses_of_every_reward(reward: Reward) -> None:
    mixed = WeightedReward([(reward, 1.0)])
    every: list[Any] = [reward, mixed, reward.scorer]
    for one in every:
        found = one([*CONVERSATIONS, []], CAT[:3])
        assert [getattr(each, "scores", {}).get("chair_i", each) for each in found] in (
            [1.0, 0.5, None],
            [0.0, 0.5, None],
        )


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
    numbers = trl_reward(reward, references="objects", unscored=-1.0)
    assert numbers(completions=["", "A cat."], **columns) == [-1.0, 1.0]


async def test_verl_calls_for_one_response_at_a_time(reward: Reward) -> None:
    compute_score = verl_reward(reward, unscored=-1.0)
    scored = await asyncio.gather(
        *[compute_score("set", text, ["cat"], {"index": 1}) for text in TEXTS]
    )
    assert scored == [1.0, 0.5, 0.0, -1.0, -1.0]
    assert await compute_score("set", "A cat.", np.array(["cat"], dtype=object)) == 1.0
    with pytest.raises(InvalidInputError, match="'cat, couch' in ground_truth: "):
        await compute_score("set", "A cat.", "cat, couch")


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
    numbers = swift_reward(reward, references="objects", unscored=-1.0)()
    assert numbers(TEXTS, objects=CAT) == [1.0, 0.5, 0.0, -1.0, -1.0]
    awaited = swift_reward(reward, references="objects", asynchronous=True)()
    assert asyncio.run(awaited(TEXTS, objects=CAT)) == [1.0, 0.5, 0.0, None, None]


def test_swift_gives_what_has_no_reward_the_mean_of_its_prompts_others(reward: Reward) -> None:
    """ms-swift counts None as 0, which is the worst reward where others are positive."""
    unscored = TEXTS[3]
    texts = [TEXTS[0], unscored, TEXTS[1], unscored, TEXTS[2], unscored]
    prompts = ["prompt_0", "prompt_0", "prompt_0", "prompt_1", "prompt_2", "prompt_2"]
    columns = {"objects": [CAT[0]] * 6, "prompt_id": prompts}
    for asynchronous in (False, True):
        orm = swift_reward(reward, references="objects", asynchronous=asynchronous)()
        found = asyncio.run(orm(texts, **columns)) if asynchronous else orm(texts, **columns)
        assert found == [1.0, 0.75, 0.5, None, 0.0, 0.0]
    # Trainers of ms-swift that tell no prompts apart leave them empty.
    nameless = swift_reward(reward, references="objects")()
    assert nameless(texts[:2], objects=[CAT[0]] * 2, prompt_id=["", ""]) == [1.0, None]


@pytest.mark.parametrize(
    "text",
    [
        "<think>A dog? A horse?</think>A cat.",
        "<think>A dog?</think><answer>A cat.</answer>",
        "A dog, or a horse?\n</think>\nA cat.",
        "[THINK]A dog?[/THINK]A cat.",
    ],
)
def test_the_reward_of_a_completion_is_that_of_its_answer(text: str) -> None:
    reward = Reward("chair", "chair_i")
    plain = reward(["A cat."], [["cat"]])
    assert reward([text], [["cat"]]) == plain
    message = [{"role": "assistant", "content": text}]
    apart = [{"role": "assistant", "content": "A cat.", "reasoning_content": "A dog, a horse?"}]
    trl = trl_reward(reward, references="objects")
    found = trl(prompts=["p"] * 3, completions=[text, message, apart], objects=[["cat"]] * 3)
    assert found == [plain[0]] * 3
    thought = {"type": "thinking", "thinking": "A dog, a horse?"}
    parts = [thought, {"type": "text", "text": "A cat."}]
    assert reward([apart[0], parts], [["cat"]] * 2) == [plain[0]] * 2
    swift = swift_reward(reward, references="objects")()
    assert swift([text], objects=[["cat"]]) == plain
    openrlhf = openrlhf_reward(reward, tensor=tuple)
    assert openrlhf([f"Describe.{text}"], ["Describe."], [["cat"]])["rewards"] == tuple(plain)


def test_the_reward_of_a_thought_without_an_end_is_none() -> None:
    reward = Reward("chair", "chair_i")
    assert reward(["<think>A cat, a"], [["cat"]]) == [None]
    swift = swift_reward(reward, references="objects", unscored=0.0)()
    assert swift(["<think>A cat, a"], objects=[["cat"]]) == [0.0]
