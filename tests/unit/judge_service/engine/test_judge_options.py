"""The table of small judges, and the settings of their models."""

from __future__ import annotations

from pathlib import Path

from hallujudge.judge_service.engine.judge_options import (
    ALL_SMALL_JUDGES,
    JUDGE_NAMES,
    small_judge_table,
)

ROOT = Path(__file__).resolve().parents[4]


def test_each_small_judge_says_what_is_known_of_it() -> None:
    assert set(ALL_SMALL_JUDGES) == set(JUDGE_NAMES) - {"matcher", "llm", "router"}
    rows = small_judge_table().splitlines()[2:]
    assert len(rows) == len(ALL_SMALL_JUDGES)
    for row, preset in zip(rows, ALL_SMALL_JUDGES.values(), strict=True):
        assert f"`{preset.name}`" in row
        assert preset.licence in row
        assert preset.measured in row
        assert row.count("|") == 6


def test_the_page_has_the_table() -> None:
    page = (ROOT / "docs/how-to/judge-with-a-small-model.md").read_text(encoding="utf-8")
    assert small_judge_table() in page
