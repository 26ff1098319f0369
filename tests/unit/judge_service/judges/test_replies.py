"""Claims in chunks, one for each call."""

from __future__ import annotations

import json
import math

import pytest
from support.llm_judges import item

from hallujudge.judge_service.judges.questions import (
    SENTENCE_CHOICES,
    TRIPLET_CHOICES,
    questions_of,
)
from hallujudge.judge_service.judges.replies import ReadAnswer, read_choice, read_keyed
from hallujudge.judge_service.llm.chat_replies import ChatReply, TokenChoice, parse_reply
from hallujudge.metrics.framework.claims import Triplet


def test_chunks_are_of_nearly_equal_length() -> None:
    many = tuple(Triplet("a", "b", str(n)) for n in range(21))
    sizes = [len(q.claims) for q in questions_of(item(*many), claims_per_call=20)]
    assert sizes == [10, 11]


def reply(content: str, **fields: object) -> ChatReply:
    return ChatReply(content=content, finish_reason="stop", **fields)  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize(
    "content",
    [
        "supported",
        " supported\n",
        "Supported.",
        "SUPPORTED",
        '"supported"',
        "**supported**",
        '{"verdict": "supported"}',
        '{"verdict":"Supported"}\n',
        "`supported`",
        "```\nsupported\n```",
        '<think>Is it object1?</think>\n```json\n{"verdict": "supported"}\n```',
        "<think>object1?</think><|begin_of_box|>supported<|end_of_box|>",
        "supported<|im_end|>",
        "<think>object1?</think>supported<end_of_turn></s>",
    ],
)
def test_a_choice_with_wrapping_is_the_choice(content: str) -> None:
    assert read_choice(reply(content), TRIPLET_CHOICES).choice == "supported"


@pytest.mark.parametrize(
    "content",
    ["<|begin_of_box|>supported<|end_of_box|>", '```json\n{"verdict": "supported"}\n```'],
)
def test_marks_around_a_choice_are_dropped_after_a_thought_alone(content: str) -> None:
    thought = ChatReply(content=content, thought="Is it object1?")
    assert read_choice(thought, TRIPLET_CHOICES).choice == "supported"
    assert read_choice(reply(content), TRIPLET_CHOICES).reason == "REPLY_OUT_OF_CHOICE"


@pytest.mark.parametrize(
    "content",
    [
        "",
        " ",
        "yes",
        "not supported",
        "not_supported",
        "I would not call it supported",
        "supported object1",
        "supported, because the lamp is there",
        "unsupported",
        "supported\nobject1",
        "object",
        "object3",
        "object 1",
        "relations",
        '["supported"]',
        '{"answer": "supported"}',
        '{"verdict": "supported", "verdict": "object1"}',
        '{"verdict": ["supported"]}',
        '{"verdict": null}',
        '{"verdict": "supported", "note": "x"}',
        '{"verdict": "supported"',
        "null",
        "1",
        "My answer is 'yes'",
        "sup\u200bported",
        "ѕupported",
        "{" * 100_000,
    ],
)
def test_anything_else_is_not_a_verdict(content: str) -> None:
    read = read_choice(reply(content), TRIPLET_CHOICES)
    assert read.choice == ""
    assert read.reason == "REPLY_OUT_OF_CHOICE"
    assert len(read.detail) < 300


def test_sentences_have_different_choices() -> None:
    assert read_choice(reply("not_supported"), SENTENCE_CHOICES).choice == "not_supported"
    assert read_choice(reply("object1"), SENTENCE_CHOICES).choice == ""


def test_refused_and_cut_off_answers_are_none() -> None:
    refused = ChatReply(content="supported", refusal="I can't help with that")
    assert read_choice(refused, TRIPLET_CHOICES).reason == "JUDGE_REFUSED"
    filtered = ChatReply(content="", finish_reason="content_filter")
    assert read_choice(filtered, TRIPLET_CHOICES).reason == "JUDGE_REFUSED"
    cut = ChatReply(content="supported", finish_reason="length")
    assert read_choice(cut, TRIPLET_CHOICES).reason == "REPLY_TRUNCATED"
    assert [one.reason for one in read_keyed(cut, 2, TRIPLET_CHOICES)] == ["REPLY_TRUNCATED"] * 2


def test_keyed_answers_go_to_their_claims_whatever_their_order() -> None:
    read = read_keyed(reply('{"2": "object1", "1": "supported"}'), 2, TRIPLET_CHOICES)
    assert [one.choice for one in read] == ["supported", "object1"]


@pytest.mark.parametrize(
    ("content", "choices", "reasons"),
    [
        ('{"1":"supported"}', ["supported", ""], ["", "REPLY_WRONG_SCHEMA"]),
        ('{"1":"yes","2":"relation"}', ["", "relation"], ["REPLY_OUT_OF_CHOICE", ""]),
        (
            '{"1":"supported","1":"object1","2":"relation"}',
            ["", "relation"],
            ["REPLY_WRONG_SCHEMA", ""],
        ),
        ('{"1":true,"2":"Supported"}', ["", ""], ["REPLY_OUT_OF_CHOICE"] * 2),
        ('{"1":"supported","2":"supported","3":"supported"}', ["", ""], ["REPLY_WRONG_SCHEMA"] * 2),
        ('["supported","supported"]', ["", ""], ["REPLY_WRONG_SCHEMA"] * 2),
        ('"supported"', ["", ""], ["REPLY_WRONG_SCHEMA"] * 2),
        ('{"1":"supported","2":"supp', ["", ""], ["REPLY_NOT_JSON"] * 2),
        ('Here: {"1":"supported","2":"supported"}', ["", ""], ["REPLY_NOT_JSON"] * 2),
        ("supported", ["", ""], ["REPLY_NOT_JSON"] * 2),
    ],
)
def test_keyed_answers_are_read_entry_by_entry(
    content: str, choices: list[str], reasons: list[str]
) -> None:
    read = read_keyed(reply(content), 2, TRIPLET_CHOICES)
    assert [one.choice for one in read] == choices
    assert [one.reason for one in read] == reasons


def supported_of(answer: ReadAnswer) -> float | None:
    """Return the probability of the first choice, ``supported``."""
    return answer.probabilities[0] if answer.probabilities else None


def tokens(*entries: tuple[str, dict[str, float]]) -> tuple[TokenChoice, ...]:
    return tuple(
        TokenChoice(text, math.log(top[text]), tuple((t, math.log(p)) for t, p in top.items()))
        for text, top in entries
    )


def test_the_margin_is_to_the_best_other_choice() -> None:
    one = tokens(("supported", {"supported": 0.7, "object": 0.2, "relation": 0.05, "The": 0.05}))
    margin = read_choice(reply("supported", tokens=one), TRIPLET_CHOICES).margin
    assert margin == pytest.approx(math.log(0.7 / 0.2))


def test_choices_that_share_a_token_part_at_the_next() -> None:
    two = tokens(("object", {"object": 0.9, "supported": 0.1}), ("1", {"1": 0.6, "2": 0.4}))
    margin = read_choice(reply("object1", tokens=two), TRIPLET_CHOICES).margin
    assert margin == pytest.approx(math.log(0.9 * 0.6) - math.log(0.9 * 0.4))


def test_an_answer_less_likely_than_another_choice_has_a_negative_margin() -> None:
    one = tokens(("relation", {"relation": 0.2, "supported": 0.8}))
    assert (read_choice(reply("relation", tokens=one), TRIPLET_CHOICES).margin or 0) < 0


def test_without_a_rival_among_the_reported_the_margin_is_a_lower_bound() -> None:
    one = tokens(("supported", {"supported": 0.9, "Yes": 0.01}))
    margin = read_choice(reply("supported", tokens=one), TRIPLET_CHOICES).margin
    assert margin == pytest.approx(math.log(0.9 / 0.01))


def test_margins_inside_json() -> None:
    parts = tokens(
        ('{"', {'{"': 1.0}),
        ("1", {"1": 1.0}),
        ('":"', {'":"': 1.0}),
        ("relation", {"relation": 0.5, "object": 0.25, "supported": 0.25}),
        ('","', {'","': 1.0}),
        ("2", {"2": 1.0}),
        ('":"supported', {'":"supported': 0.8, '":"object': 0.1, '":"relation': 0.1}),
        ('"}', {'"}': 1.0}),
    )
    content = "".join(token.text for token in parts)
    assert json.loads(content) == {"1": "relation", "2": "supported"}
    read = read_keyed(reply(content, tokens=parts), 2, TRIPLET_CHOICES)
    assert [one.choice for one in read] == ["relation", "supported"]
    assert read[0].margin == pytest.approx(math.log(2))
    assert read[1].margin == pytest.approx(math.log(8))
    assert [supported_of(one) for one in read] == [pytest.approx(0.25), pytest.approx(0.8)]


def test_tokens_that_do_not_make_the_text_give_no_margin() -> None:
    other = tokens(("nonsense", {"nonsense": 1.0}))
    assert read_choice(reply("supported", tokens=other), TRIPLET_CHOICES).margin is None
    bare = (TokenChoice("supported", -0.1, ()),)
    assert read_choice(reply("supported", tokens=bare), TRIPLET_CHOICES).margin is None


def completion(logprobs: str, usage: str = "null") -> bytes:
    """A server's answer with numbers that Python's encoder would not write."""
    message = '"message": {"content": "supported"}, "finish_reason": "stop"'
    choice = f'{{{message}, "logprobs": {logprobs}}}'
    return f'{{"choices": [{choice}], "usage": {usage}}}'.encode()


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e308", "null", "[]"]
)
def test_a_token_without_a_log_probability_gives_no_margin(number: str) -> None:
    content = f'{{"content": [{{"token": "supported", "logprob": {number}, "top_logprobs": []}}]}}'
    answer = read_choice(parse_reply(completion(content)), TRIPLET_CHOICES)
    assert (answer.choice, answer.margin) == ("supported", None)


@pytest.mark.parametrize("count", ["1e400", "-5", '"many"', "true", "1" + "0" * 400, "[1]", "NaN"])
def test_absent_counts_are_not_printed(count: str) -> None:
    usage = f'{{"prompt_tokens": {count}, "completion_tokens": 3}}'
    reply = parse_reply(completion("null", usage))
    assert (reply.content, reply.prompt_tokens, reply.completion_tokens) == ("supported", 0, 3)


def test_every_choice_has_a_probability() -> None:
    said = {"incorrect": 0.5, "cor": 0.2, "un": 0.1, "The": 0.2}
    choices = ("correct", "incorrect", "unclear")
    read = read_choice(reply("incorrect", tokens=tokens(("incorrect", said))), choices)
    assert read.probabilities == pytest.approx((0.25, 0.625, 0.125))


def test_the_probability_of_supported_is_its_share_among_the_choices() -> None:
    said = {"supported": 0.6, "Supported": 0.1, "relation": 0.1, "object": 0.1, "The": 0.1}
    read = read_choice(reply("supported", tokens=tokens(("supported", said))), TRIPLET_CHOICES)
    assert supported_of(read) == pytest.approx(0.7 / 0.9)
    wrong = tokens(("object", {"object": 0.5, "sup": 0.2, "rel": 0.1}), ("1", {"1": 0.6, "2": 0.4}))
    read = read_choice(reply("object1", tokens=wrong), TRIPLET_CHOICES)
    assert supported_of(read) == pytest.approx(0.2 / (0.5 * 0.6 + 0.5 * 0.4 + 0.2 + 0.1))


def test_what_is_not_reported_has_no_probability() -> None:
    sure = tokens(("supported", {"supported": 0.9, "Yes": 0.1}))
    assert supported_of(read_choice(reply("supported", tokens=sure), TRIPLET_CHOICES)) == 1.0
    wrong = tokens(("relation", {"relation": 0.9, "object": 0.1}))
    assert supported_of(read_choice(reply("relation", tokens=wrong), TRIPLET_CHOICES)) == 0.0
    alone = tokens(("supported", {"supported": 0.9}))
    for reported in (alone, ()):
        read = read_choice(reply("supported", tokens=reported), TRIPLET_CHOICES)
        assert (read.choice, read.probabilities) == ("supported", None)


def test_a_forced_choice_that_was_hardly_possible_has_a_probability() -> None:
    forced = (TokenChoice("supported", -9_000.0, (("The", -0.1), ("relation", -8_999.0))),)
    read = read_choice(reply("supported", tokens=forced), TRIPLET_CHOICES)
    assert supported_of(read) == pytest.approx(1 / (1 + math.e))


@pytest.mark.parametrize(
    "text",
    [
        "<think>Is it supported, or not_supported?</think> supported",
        "Is it not_supported?\n</think>\n\nsupported",
        "[THINK]not_supported?[/THINK]**supported**",
    ],
)
def test_a_thought_of_the_judge_is_no_verdict(text: str) -> None:
    read = read_choice(ChatReply(content=text), ("supported", "not_supported"))
    assert (read.choice, read.margin) == ("supported", None)
    cut = read_choice(ChatReply(content=text[: text.index("?")]), ("supported", "not_supported"))
    assert cut.choice == ""
