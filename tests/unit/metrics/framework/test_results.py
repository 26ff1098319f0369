"""Unscored reasons are one enum, which results, pages and judges share."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hallujudge.judge_service.engine.responses import failure_texts
from hallujudge.judge_service.llm.failures import FailureKind
from hallujudge.metrics.framework.results import UnscoredReason

ROOT = Path(__file__).resolve().parents[4]
PAGE = "docs/reference/unscored-reasons.md"
# Rooms whose values carry reasons of claims and extractions.
ROOMS = ("judges", "matchers", "extractors")


@pytest.mark.parametrize("reason", UnscoredReason)
def test_a_reason_has_a_sentence_and_a_next_step(reason: UnscoredReason) -> None:
    assert reason.value == reason.name
    assert re.fullmatch(r"[A-Z].*\.", reason.sentence)
    assert re.fullmatch(r"[A-Z].*[.y]", reason.next_step)


@pytest.mark.parametrize("kind", FailureKind)
def test_every_failure_of_a_call_is_a_reason(kind: FailureKind) -> None:
    assert kind.value in set(UnscoredReason)


@pytest.mark.parametrize("room", ROOMS)
def test_reasons_in_code_are_members(room: str) -> None:
    folder = ROOT / "judge_service/hallujudge/judge_service" / room
    named = {
        name
        for path in folder.rglob("*.py")
        for name in re.findall(
            r"\"((?:JUDGE|REPLY|CLAIM|CLAIMS|REFERENCE|RESPONSE|EXTRACTION|NO)_[A-Z_]+)\"",
            path.read_text(encoding="utf-8"),
        )
    }
    # These are constants of modules, not reasons.
    assert {name for name in named if name not in set(UnscoredReason)} <= {"JUDGE_NAMES"}


def test_the_page_lists_every_reason_and_every_failure_text() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    rows = [f"| `{each}` | {each.sentence} | {each.next_step} |" for each in UnscoredReason]
    table = "\n".join(("| reason | what happened | what to do |", "|---|---|---|", *rows)) + "\n"
    assert table in page, table
    assert "".join(f"    {text}\n" for text in failure_texts()) in page
