"""Keys that no text shows."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.llm.client import ChatSettings
from hallujudge.judge_service.llm.http import Endpoint
from hallujudge.judge_service.settings.connection import Secret


def test_a_secret_is_never_shown() -> None:
    endpoint = Endpoint(url="http://h/v1", key=Secret(" sk-abc\n"))
    settings = ChatSettings(endpoint=endpoint, model="m")
    shown = [repr(endpoint), str(settings), f"{endpoint.key}", f"{endpoint.key!s:>20}"]
    assert not any("sk-abc" in text for text in shown)
    assert endpoint.key.reveal() == "sk-abc"
    assert endpoint.key == Secret("sk-abc")
    assert not Secret("")
    with pytest.raises(TypeError, match="pickled"):
        __import__("pickle").dumps(endpoint.key)
