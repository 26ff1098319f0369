"""Fixtures of tests with language models: a server that always says the same, and prices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support import scripted_llm as llm

_PRICES = {"LLM_PRICE_PROMPT": "1000", "LLM_PRICE_COMPLETION": "1000"}


@pytest.fixture
def yes_server() -> Iterator[llm.ScriptedLlm]:
    """A running server whose model says "Yes." to everything."""
    made = llm.ScriptedLlm(llm.saying("Yes."))
    stop = made.in_thread()
    yield made
    stop()


@pytest.fixture
def prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A price of 1/1000 for each token of a judge."""
    for name, value in _PRICES.items():
        monkeypatch.setenv(f"HALLUJUDGE_{name}", value)
