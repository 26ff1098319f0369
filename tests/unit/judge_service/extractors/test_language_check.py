"""Responses in a language that the extractors and graphs cannot read."""

from __future__ import annotations

import pytest
from support.messages import expected_message

from hallujudge.judge_service.extractors.language_check import (
    language_problem,
)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("一只猫坐在沙发上", "not Latin"),
        ("Кошка на диване", "not Latin"),
        ("고양이가 소파에 앉아 있다", "not Latin"),
        ("قطة على الأريكة", "not Latin"),
        (
            "The picture shows a street with many people. 左边有一辆红色的公共汽车，右边有一只狗。",
            "not Latin",
        ),
        ("Ein Hund sitzt auf dem Sofa.", "German"),
        ("Der Hund schläft", "German"),
        ("Un chat sur un canapé.", "French"),
        ("Uma mulher com um cachorro.", "Portuguese"),
        ("Un hombre con una pelota en la calle.", "Spanish"),
        ("Kot siedzi na kanapie obok psa.", "Polish"),
        ("Con chó trên ghế.", "Vietnamese"),
        (
            "paka anakaa mweupe juu ya kiti cha rangi nyekundu karibu na meza kubwa",
            "none of its 13 words",
        ),
    ],
)
def test_other_languages_are_recognised(text: str, named: str) -> None:
    problem = language_problem(text)
    assert problem is not None
    assert named in problem


@pytest.mark.parametrize(
    "text",
    [
        "A cat.",
        "a cat",
        "",
        "123",
        "🐶🐱",
        "Yes",
        "Los Angeles skyline",
        "van driving man",
        "bear den",
        "A café on the Champs-Élysées in Rio de Janeiro.",
        "cat, dog, car, bus, person, chair, table, cup, bowl, fork, knife, spoon, bed",
        "The sign says 停止 and a man waits.",
        'A sign over the shop reads "北京烤鸭店" and two men wait.',
    ],
)
def test_english_and_short_texts_pass(text: str) -> None:
    assert language_problem(text) is None


def test_only_the_beginning_is_read() -> None:
    assert (
        language_problem(
            expected_message("judge_service.engine.families.tri_he:dog-sits-on-the-grass") * 200
            + "猫" * 100_000
        )
        is None
    )
