"""What lists of tokens may hold: as vLLM 0.32.0 and llama-server were seen to fill them."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from support import scripted_llm as llm

from hallujudge.judge_service.judges.questions import TRIPLET_CHOICES
from hallujudge.judge_service.judges.replies import ReadAnswer, read_choice, read_keyed
from hallujudge.judge_service.llm.chat_replies import ChatReply, parse_reply


def listed(*places: dict[str, float]) -> list[dict[str, Any]]:
    """Return tokens with log-probabilities; the first of each place is the one that was written."""
    found = []
    for place in places:
        top = [{"token": text, "logprob": logprob} for text, logprob in place.items()]
        found.append({**top[0], "top_logprobs": top})
    return found


def replied(content: str | None, *places: dict[str, float], **message: str) -> ChatReply:
    choice = {
        "message": {"content": content, **message},
        "finish_reason": "stop",
        "logprobs": {"content": listed(*places)},
    }
    return parse_reply(json.dumps({"choices": [choice]}).encode())


def read(
    content: str, *places: dict[str, float], choices: tuple[str, ...] = TRIPLET_CHOICES
) -> ReadAnswer:
    return read_choice(replied(content, *places), choices)


@pytest.mark.parametrize("ruled_out", [llm.RULED_OUT, float("-inf")])
def test_what_is_ruled_out_is_no_rival_and_not_the_least_likely(ruled_out: float) -> None:
    first = {"supported": -0.25, "relation": -2.25, "object1": ruled_out, "The": ruled_out}
    assert read("supported", first).margin == pytest.approx(2.0)
    alone = {"supported": 0.0, "sup": -4.0, "object": ruled_out, "The": ruled_out}
    found = read("supported", alone)
    assert found.margin == pytest.approx(4.0)
    assert found.probabilities == (1.0, 0.0, 0.0, 0.0)


def before_the_constraint(text: str, logprob: float, **others: float) -> dict[str, Any]:
    """Return a token that is not among the likeliest ones, as llama-server lists them."""
    top = [{"token": other, "logprob": number} for other, number in others.items()]
    return {"token": text, "logprob": logprob, "top_logprobs": top}


@pytest.mark.parametrize(
    ("tokens", "content"),
    [
        ([before_the_constraint("supported", -9.0, The=-1.0, I=-1.5, A=-2.5)], "supported"),
        (listed({"supported": -9.0, "The": -1.0, "I": -1.5}), "supported"),
        # A confident model leaves next to nothing to the others.
        ([before_the_constraint("supported", -16.0, The=-1e-6, I=-14.0)], "supported"),
        # The second token says which object, and nothing of the other choices.
        (
            [before_the_constraint("object", -9.0, The=-1.0), *listed({"1": -0.1, "2": -2.3})],
            "object1",
        ),
        # A list of one token.
        (listed({"supported": -1.2}), "supported"),
    ],
)
@pytest.mark.parametrize("begin", ["", '{"1":"'])
def test_where_choices_may_be_missing_in_the_list_nothing_is_known(
    tokens: list[dict[str, Any]], content: str, begin: str
) -> None:
    end = '"}' if begin else ""
    places = [*listed({begin: -0.1}), *tokens, *listed({end: -0.1, "x": -9.0})]
    message = {"content": f"{begin}{content}{end}"}
    choice = {"message": message, "finish_reason": "stop", "logprobs": {"content": places}}
    reply = parse_reply(json.dumps({"choices": [choice]}).encode())
    if begin:
        (found,) = read_keyed(reply, 1, TRIPLET_CHOICES)
    else:
        found = read_choice(reply, TRIPLET_CHOICES)
    assert (found.choice, found.margin, found.probabilities) == (content, None, None)
    assert found.is_listed


def test_where_a_choice_is_listed_before_a_constraint_all_is_known_as_before() -> None:
    found = read("supported", {"supported": -0.3, "The": -1.5, "I": -4.0})
    assert found.margin == pytest.approx(3.7)
    assert found.probabilities == (1.0, 0.0, 0.0, 0.0)


def test_a_written_token_that_is_ruled_out_has_no_margin() -> None:
    found = read("supported", {"supported": llm.RULED_OUT, "relation": -0.1})
    assert (found.choice, found.margin, found.probabilities) == ("supported", None, None)


@pytest.mark.parametrize(
    "place", [{"supported": 3.66, "relation": 1.5}, {"supported": -1.0, "x": 2}]
)
def test_logits_are_refused_by_name(place: dict[str, float]) -> None:
    found = read("supported", place)
    assert (found.choice, found.reason) == ("", "JUDGE_BAD_REPLY")
    assert "--logprobs-mode raw_logits" in found.detail
    keyed = replied('{"1":"supported"}', {'{"1":"': -0.1}, place, {'"}': 0.0})
    assert read_keyed(keyed, 1, TRIPLET_CHOICES)[0].reason == "JUDGE_BAD_REPLY"


def test_rounding_above_zero_is_no_logit() -> None:
    assert read("supported", {"supported": 1e-6, "relation": -2.0}).margin == pytest.approx(2.0)


@pytest.mark.parametrize("end", ["<|eot_id|>", ""])
@pytest.mark.parametrize(
    ("choices", "rest"), [(("dog", "dogs"), "s"), (("not", "not sure"), " sure")]
)
def test_a_choice_that_begins_another_is_told_apart_at_its_end(
    choices: tuple[str, str], rest: str, end: str
) -> None:
    places = (
        {choices[0]: math.log(0.9), "The": llm.RULED_OUT},
        {end: math.log(0.8), rest: math.log(0.2)},
    )
    found = read(choices[0], *places, choices=choices)
    assert found.margin == pytest.approx(math.log(4))
    assert found.probabilities == pytest.approx((0.8, 0.2))


def test_a_choice_that_begins_another_has_no_margin_without_its_end() -> None:
    # OpenAI and llama-server do not list the token that ends a reply.
    found = read("dog", {"dog": -0.1, "cat": -2.0}, choices=("dog", "dogs", "cat"))
    assert (found.choice, found.margin, found.probabilities) == ("dog", None, None)
    cat = read("cat", {"cat": -0.1, "dog": -2.1}, choices=("dog", "dogs", "cat"))
    assert cat.margin == pytest.approx(2.0)


def test_the_token_after_other_choices_does_not_count() -> None:
    found = read(
        "supported", {"supported": -0.1, "relation": -2.1}, {"<|eot_id|>": -3.0, "!": -0.1}
    )
    assert found.margin == pytest.approx(2.0)


def test_ties_go_to_neither() -> None:
    found = read("supported", {"supported": math.log(0.4), "relation": math.log(0.4), "ob": -2.0})
    assert (found.choice, found.reason) == ("", "CHOICES_TIED")
    assert found.detail == "supported and relation are equally likely"
    # Whichever of the two the server wrote.
    turned = read("relation", {"relation": math.log(0.4), "supported": math.log(0.4)})
    assert turned.reason == "CHOICES_TIED"
    longer = read("object1", {"object": -0.7, "supported": -0.7}, {"1": -0.1, "2": -2.0})
    assert longer.reason == "CHOICES_TIED"


def test_other_beginnings_of_the_same_choice_are_no_tie() -> None:
    found = read("supported", {"supported": -0.7, "sup": -0.7, "relation": -4.0})
    assert (found.choice, found.reason) == ("supported", "")


@pytest.mark.parametrize(
    "before", [" ", "\n\n", "<think>It is supported, so</think>\n", "thought: "]
)
def test_the_text_is_found_within_its_tokens(before: str) -> None:
    """llama-server trims the text, and reasoning parsers take the thought off; tokens stay."""
    place = {"supported": math.log(0.8), "relation": math.log(0.2)}
    found = read("supported", {before: -0.1}, place, {"<|eot_id|>": 0.0})
    assert found.margin == pytest.approx(math.log(4))
    assert found.probabilities == pytest.approx((0.8, 0.0, 0.0, 0.2))


def test_a_trimmed_space_within_a_token_is_not_of_the_answer() -> None:
    trimmed = replied(
        '{ "verdict":"supported"}',
        {' { "verdict":"': -0.1},
        {"supported": math.log(0.75), "relation": math.log(0.25)},
        {'"}': 0.0},
    )
    assert read_choice(trimmed, TRIPLET_CHOICES).margin == pytest.approx(math.log(3))
    one = read("supported", {" supported": math.log(0.75), " relation": math.log(0.25), "x": -9.0})
    assert one.margin == pytest.approx(math.log(3))


def test_a_thought_in_the_text_is_followed_by_a_choice_with_a_margin() -> None:
    place = {"supported": math.log(0.8), "relation": math.log(0.2)}
    found = read(
        "<think>Is it supported?</think> supported",
        {"<think>Is it supported?</think>": -0.1},
        {" ": -0.1},
        place,
    )
    assert found.margin == pytest.approx(math.log(4))


def test_the_stub_masks_as_vllm_does() -> None:
    """0.32.0: the mask comes first, its list sums to 1, and what is ruled out is at -9999.0."""
    body = {
        "structured_outputs": {"choice": list(TRIPLET_CHOICES)},
        "top_logprobs": 8,
        "max_tokens": 9,
    }
    free = {"The": 0.9, "object": 0.04, "sup": 0.05, "corruption": 0.01}
    content = json.loads(llm.drawn_from(free)(1, body).body)["choices"][0]
    tokens = content["logprobs"]["content"]
    top = {one["token"]: one["logprob"] for one in tokens[0]["top_logprobs"]}
    assert content["message"]["content"] == "supported"
    assert {text for text, logprob in top.items() if logprob == llm.RULED_OUT} == {
        "The",
        "corruption",
    }
    assert math.fsum(math.exp(each) for each in top.values()) == pytest.approx(1.0)
    unmasked = json.loads(llm.drawn_from(free)(1, {"top_logprobs": 2, "max_tokens": 1}).body)
    said = unmasked["choices"][0]
    assert (said["message"]["content"], said["finish_reason"]) == ("The", "length")
    assert len(said["logprobs"]["content"][0]["top_logprobs"]) == 2
