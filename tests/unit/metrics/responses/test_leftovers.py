"""Tokens of templates, repeated prompts, refusals and cut sentences."""

from __future__ import annotations

import pytest

from hallujudge.metrics.responses.leftovers import (
    Cleaned,
    cleaned,
    is_cut,
    is_refusal,
    without_cut_sentence,
)


@pytest.mark.parametrize(
    ("text", "tokens", "prompt"),
    [
        ("A cat.</s>", True, False),
        ("<s> A cat.<|im_end|>", True, False),
        ("A cat.<pad><pad><pad>", True, False),
        ("A cat.<|eot_id|>", True, False),
        ("<｜begin▁of▁sentence｜>A cat.<｜end▁of▁sentence｜>", True, False),
        ("A cat.<|im_end|>\n<|im_start|>user\nAnd a dog?", True, False),
        ("USER: <image>\nDescribe the dog in this image.\nASSISTANT: A cat.<pad>", False, True),
        (
            "A chat between a curious human and an assistant. USER: A dog? ASSISTANT: A cat.",
            False,
            1,
        ),
        ("[INST] Is there a dog? [/INST] A cat.", False, True),
        (
            "<|im_start|>user\nA dog?<|im_end|>\n<|im_start|>assistant\nA cat.<|im_end|>",
            False,
            True,
        ),
        ("user\nIs there a dog?\nassistant\nA cat.", False, True),
        ("ASSISTANT: A cat.", False, True),
    ],
)
def test_what_is_not_the_models_is_left_out(
    text: str, tokens: bool, prompt: bool
) -> None:  # a table
    assert cleaned(text) == Cleaned("A cat.", tokens, bool(prompt))


@pytest.mark.parametrize(
    "text",
    [
        "A cat.",
        "  A cat.\n",
        "A <s>dog</s> cat.",
        "A sign reads USER: guest.",
        "Two signs: USER and ASSISTANT: both are red.",
        "The answer: a cat.",
        "<b>Note:</b> a cat.",
        "A user\nand an assistant\nsit there.",
        "<think>A dog?</think>A cat.",
        "The label reads: responsemessage is a field.",
        "The tag is: [unused10]. A cat.",
    ],
)
def test_the_models_own_words_stay(text: str) -> None:
    assert cleaned(text) == Cleaned(text)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("A man rides. There is a d", "A man rides."),
        ("It is red. It has a tru", "It is red."),
        ('He says "no." Then he le', 'He says "no."'),
        ("1. A cat sits.\n2. A dog ru", "1. A cat sits.\n2. A dog ru"),
        ("A cat. It is near a sofa,", "A cat."),
        ("A dog and a b.5 car. And", "A dog and a b.5 car."),
    ],
)
def test_an_unfinished_last_sentence_is_found_and_left_out(text: str, whole: str) -> None:
    assert is_cut(text) == (text != whole)
    assert without_cut_sentence(text) == whole


@pytest.mark.parametrize(
    "text",
    [
        "A man rides.",
        "a cat on a mat",
        "A man riding a wave on a surfboard in the ocean",
        "cat, dog, tree",
        "Objects. These are there:\n- cat\n- dog",
        "1. cat\n2. dog",
        "It has **cats**",
        "Yes! (really)",
        "",
    ],
)
def test_other_ends_are_not_cut(text: str) -> None:
    assert not is_cut(text)
    assert without_cut_sentence(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "I can't help with identifying people in images.",
        "I'm sorry, but I can't assist with that.",
        "I’m sorry, but I’m unable to view images.",
        "Sorry, I cannot provide a description of this person.",
        "Unfortunately, I am unable to see the image.",
        "As an AI language model, I cannot see images.",
        "N/A",
        '"I cannot identify the people in this photo."',
    ],
)
def test_refusals_are_known(text: str) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "I see a cat that can't climb.",
        "I can see a cat.",
        "The man cannot help the dog.",
        "No, there is no dog.",
        "Not a cat.",
        "NASA's logo.",
        "In the image, a man is sorry.",
        "",
    ],
)
def test_descriptions_are_no_refusals(text: str) -> None:
    assert not is_refusal(text)
