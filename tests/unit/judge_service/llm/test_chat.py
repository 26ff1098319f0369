"""Which names of models in replies stand for the model that was asked for."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.llm.known_judge import is_asked_model


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ("", "gpt-4o"),
        ("gpt-4o", "gpt-4o"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4-0613", "gpt-4"),
        ("llama3:latest", "llama3"),
        ("openai/gpt-4o", "gpt-4o"),
        ("Llama-3.3-70B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"),
    ],
)
def test_the_same_model(told: str, asked: str) -> None:
    assert is_asked_model(told, asked)


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ("gpt-4o-mini", "gpt-4o"),
        ("gpt-4", "gpt-4o"),
        ("gpt-4-32k", "gpt-4"),
        ("llama3:8b", "llama3"),
    ],
)
def test_another_model(told: str, asked: str) -> None:
    assert not is_asked_model(told, asked)
    assert is_asked_model(told, asked, (told,))
    assert is_asked_model(told, asked, ("*",))
