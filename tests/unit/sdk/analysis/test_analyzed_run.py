"""Tables of an analysis."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallujudge.sdk import Analysis, AnalysisTable
from hallujudge.sdk.analysis.analyzed_run import checked_options
from hallujudge.sdk.errors import InvalidInputError

ROWS = tuple({"k": number, "share": number / 100} for number in range(100))
LONG = AnalysisTable(name="long", source="a paper", rows=ROWS)


def test_a_long_table_is_cut_only_where_several_are_shown() -> None:
    found = Analysis(runs=(), tables=(LONG, AnalysisTable(name="short", source="", rows=ROWS[:9])))
    first, second = found.page().grids
    assert (len(first.rows), len(first.values), len(second.rows)) == (40, 100, 9)
    assert first.title == "long (a paper; the first 40 of 100 rows: --table long shows all)"
    (alone,) = found.only(["long"]).page().grids
    assert (len(alone.rows), alone.title) == (100, "long (a paper)")


def test_files_of_a_table_have_all_rows() -> None:
    files = Analysis(runs=(), tables=(LONG,)).files()
    assert files["long.csv"].splitlines()[-1] == "99,0.99"
    assert r"99 & 0.9900 \\" in files["long.tex"]


def test_an_option_of_other_runs_is_named_with_its_value() -> None:
    with pytest.raises(InvalidInputError, match=r"pairs \(given 'pairs.jsonl'\); known: none"):
        checked_options({"pairs": Path("pairs.jsonl")}, [])
