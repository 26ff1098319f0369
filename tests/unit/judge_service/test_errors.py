"""Descriptions of content that could not be read do not name Python's errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.messages import expected_message

from hallujudge.judge_service.errors import fault_of
from hallujudge.metrics.framework.results import Outcome


@pytest.mark.parametrize(
    ("read", "told"),
    [
        (lambda: json.loads("{"), "it is not JSON: expecting property name"),
        (lambda: json.loads("[" * 100_000), "it is nested too deeply"),
        (lambda: dict[str, str]()["schema"], "it has no 'schema'"),
        (lambda: float("high"), "'high' is not a number"),
        (lambda: int("high"), "'high' is not a number"),
        (lambda: Outcome("maybe"), "'maybe' is not a known value"),
        (lambda: format("3", ",.1%"), "a value in it is of another kind than expected"),
        (lambda: b"\xff".decode(), "it is not UTF-8 text"),
        (lambda: len(3), "a value in it is of another kind than expected"),  # type: ignore[arg-type]
    ],
)
def test_faults_are_plain(read: Callable[[], Any], told: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, RecursionError)) as caught:
        read()
    assert fault_of(caught.value).startswith(told)


def test_a_message_of_our_own_is_kept() -> None:
    assert fault_of(ValueError("its hash is another")) == expected_message(
        "judge_service.engine.judge_quality:its-hash-is-another"
    )
