"""Tables of an analysis."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from hallujudge.sdk import Analysis, AnalysisTable
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.report.analysis_tables import Spread
from hallujudge.sdk.report.table_pages import Cell
from hallujudge.studies.analysis.analyzed_run import checked_options

ROWS = tuple({"k": number, "share": number / 100} for number in range(100))
LONG = AnalysisTable(name="long", source="a paper", rows=ROWS)


def test_a_long_table_is_cut_only_where_several_are_shown() -> None:
    found = Analysis(runs=(), tables=(LONG, AnalysisTable(name="short", source="", rows=ROWS[:9])))
    first, second = found.page().grids
    assert (len(first.rows), len(first.values), len(second.rows)) == (40, 100, 9)
    assert first.title == "long (a paper; the first 40 of 100 rows: --table long shows all)"
    (alone,) = found.only(["long"]).page().grids
    assert (len(alone.rows), alone.title) == (100, "long (a paper)")


@pytest.mark.parametrize(
    ("tables", "said"),
    [((LONG,), "choose from long"), ((), "leave --table out to see why")],
)
def test_an_unknown_table_is_named_with_those_there_are(
    tables: tuple[AnalysisTable, ...], said: str
) -> None:
    with pytest.raises(InvalidInputError, match=f"no table has the name 'x'; {said}"):
        Analysis(runs=(), tables=tables).only(["x"])


def test_files_of_a_table_have_all_rows() -> None:
    files = Analysis(runs=(), tables=(LONG,)).files()
    assert files["long.csv"].splitlines()[-1] == "99,0.99"
    assert r"99 & 0.9900 \\" in files["long.tex"]


SPREAD_ROWS = tuple(
    {"model": model, "k": k, "a": k / 10 + at, "c": None if at else k / 100, "n": 7 + at}
    for at, model in enumerate(("llava", "blip"))
    for k in (1, 2)
)
SIDE_BY_SIDE = Spread(column="k", values=("a", "c"), headings=("HR_A", "HR_C(cat)"))


def test_values_of_a_column_become_columns_as_in_the_paper() -> None:
    table = AnalysisTable(name="t", source="s", rows=SPREAD_ROWS, spread=SIDE_BY_SIDE)
    grid = table.grid()
    assert grid.over == ("", "HR_A", "HR_A", "HR_C(cat)", "HR_C(cat)", "")
    assert grid.headings == ("model", "@1", "@2", "@1", "@2", "n")
    assert grid.keys == ("model", "a@1", "a@2", "c@1", "c@2", "n")
    assert grid.values == (
        ("llava", 0.1, 0.2, 0.01, 0.02, 7),
        ("blip", 1.1, 1.2, None, None, 8),
    )
    files = Analysis(runs=(), tables=(table,)).files()
    assert files["t.csv"].splitlines()[0] == "model,a@1,a@2,c@1,c@2,n"
    assert r"\multicolumn{2}{c}{HR\_A}" in files["t.tex"]


def test_values_have_rows_of_their_own_where_the_paper_has_two_tables() -> None:
    spread = Spread(column="k", values=("a", "c"), headings=("first", "second"), rows="by")
    grid = AnalysisTable(name="t", source="s", rows=SPREAD_ROWS, spread=spread).grid()
    assert grid.keys == ("by", "model", "@1", "@2", "n")
    assert grid.over == ()
    assert [row[:2] for row in grid.values] == [
        *(("first", "llava"), ("first", "blip"), ("second", "llava"), ("second", "blip")),
    ]
    assert grid.values[0] == ("first", "llava", 0.1, 0.2, 7)


def test_scores_become_columns_by_their_names() -> None:
    rows: tuple[Mapping[str, Cell], ...] = tuple(
        {"domain": "comics", "measure": name, "value": value, "n": 3}
        for name, value in (("recall", 0.1), ("f1", 0.2))
    )
    spread = Spread(column="measure", values=("value", "n"), headings=("by", "n"), mark="")
    table = AnalysisTable(name="t", source="s", rows=rows, spread=spread)
    grid = table.grid()
    assert grid.headings == ("domain", "recall", "f1", "recall", "f1")
    assert grid.values == (("comics", 0.1, 0.2, 3, 3),)
    before = Analysis(runs=(), tables=(table,))
    assert Analysis.from_json(before.to_json(), "analysis.json").tables == (table,)


def test_scores_keep_their_names_in_headings() -> None:
    row = {"p_ti": 0.1, "chair_i": 0.2, "hr_c_n": 3, "base_accuracy": 0.4}
    grid = AnalysisTable(name="t", source="s", rows=(row,)).grid()
    assert grid.headings == ("p_ti", "chair_i", "hr_c_n", "base accuracy")


def test_columns_of_texts_name_rows_wherever_they_are() -> None:
    rows: tuple[dict[str, str | float], ...] = tuple(
        {"model": model, "judge": "nli", "k": 1, "r": 0.25, "answers": 9} for model in "ab"
    )
    spread = Spread(column="model", values=("r",), headings=("r",), rows="value", mark="")
    grid = AnalysisTable(name="t", source="", rows=rows, spread=spread).grid()
    assert grid.headings == ("value", "judge", "a", "b", "k", "answers")
    assert grid.values == (("r", "nli", 0.25, 0.25, 1, 9),)


def test_a_table_without_the_column_stays_as_it_is() -> None:
    spread = Spread(column="model", values=("r",), headings=("r",), rows="value", mark="")
    grid = AnalysisTable(name="t", source="", rows=({"judge": "nli", "r": 0.5},), spread=spread)
    assert grid.grid().values == (("nli", 0.5),)


def test_a_missing_row_leaves_a_cell_empty() -> None:
    table = AnalysisTable(name="t", source="s", rows=SPREAD_ROWS[1:], spread=SIDE_BY_SIDE)
    assert table.grid().values[0] == ("llava", 0.2, None, 0.02, None, 7)


def test_a_stored_analysis_is_shown_as_before() -> None:
    table = AnalysisTable(name="t", source="s", rows=SPREAD_ROWS, spread=SIDE_BY_SIDE)
    before = Analysis(runs=(), tables=(table,))
    after = Analysis.from_json(before.to_json(), "analysis.json")
    assert after.tables == before.tables
    assert before.to_json()["analyses"]["t"]["rows"] == [*SPREAD_ROWS]


def test_an_option_of_other_runs_is_named_with_its_value() -> None:
    with pytest.raises(
        InvalidInputError, match=r"pairs \(given 'pairs.jsonl'\); theirs have no options"
    ):
        checked_options({"pairs": Path("pairs.jsonl")}, [])
