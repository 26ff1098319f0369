"""Leaderboards: ranks, groups, and items that count."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.comparison_runs import amber_run, chair_run, pope_run
from support.messages import expected_message

from hallujudge.sdk import (
    CompareOptions,
    RunReport,
    TableLayout,
    compare,
    leaderboard,
    leaderboards,
    paper_table,
)
from hallujudge.sdk.errors import ArchiveError, InvalidInputError

FAST = CompareOptions(replicates=500, names=("bad", "good", "same", "fair"))


@pytest.fixture(scope="module")
def runs() -> list[RunReport]:
    rates = ((0.95, 1), (0.05, 2), (0.06, 3), (0.5, 4))
    return [chair_run(None, wrong, seed=seed) for wrong, seed in rates]


def test_ranks_and_groups(runs: list[RunReport]) -> None:
    board = leaderboard(*runs, options=FAST)
    assert (board.score, board.direction, board.items) == ("chair_i", "lower", 60)
    assert [row.run for row in board.rows][2:] == ["fair", "bad"]
    letters = {row.run: row.groups for row in board.rows}
    assert letters == {"good": "a", "same": "a", "fair": "b", "bad": "c"}
    assert len(board.tests) == 6


def test_scores_and_intervals_are_the_reports(runs: list[RunReport]) -> None:
    board = leaderboard(*runs, score="recall", options=FAST)
    best = board.rows[0]
    report = runs[FAST.names.index(best.run)]
    score = report["recall"]
    assert (best.value, best.ci_low, best.ci_high) == (score.value, score.ci_low, score.ci_high)
    assert board.direction == "higher"
    assert best.value == max(run.recall or 0 for run in runs)


def test_tests_are_those_of_compare(runs: list[RunReport]) -> None:
    board = leaderboard(*runs[:2], options=CompareOptions(replicates=500))
    [test] = board.tests
    options = CompareOptions(replicates=500, scores=("chair_i",))
    found = compare(runs[1], runs[0], options=options)["chair_i"]
    assert (test.first, test.second) == ("run 2", "run 1")
    assert (test.difference, test.ci_low, test.p) == (found.difference, found.ci_low, found.p)


def test_equal_runs_share_rank_and_letter(runs: list[RunReport]) -> None:
    board = leaderboard(runs[0], runs[0], options=CompareOptions(replicates=500, names=("a", "b")))
    assert [(row.rank, row.groups) for row in board.rows] == [(1, "a"), (1, "a")]


def test_runs_are_ranked_over_the_items_that_all_have_scored(runs: list[RunReport]) -> None:
    holes = chair_run(None, 0.05, seed=2, missing=("0", "1"))
    board = leaderboard(runs[0], holes, options=CompareOptions(replicates=500))
    assert board.items == 58
    assert [row.unscored for row in board.rows] == [2, 0]
    assert (
        expected_message("studies.leaderboards:items-are-not-scored-in-every-run") in board.notes[0]
    )
    kept = [item.result.statistics for item in runs[0].items if item.id not in ("0", "1")]
    assert board.rows[1].value == sum(s[1] for s in kept) / sum(s[0] for s in kept)


def test_shares_of_unread_answers_are_ranked_over_all_answers() -> None:
    clear, unclear = pope_run(None, 0.9, unclear=0.1), pope_run(None, 0.9, seed=1, unclear=0.5)
    board = leaderboard(
        unclear, clear, score="unparsed_rate", options=CompareOptions(replicates=500)
    )
    assert [row.value for row in board.rows] == [clear.unparsed_rate, unclear.unparsed_rate]


@pytest.mark.parametrize(
    ("score", "said"),
    [("mean_words", "mean_words has no better end"), ("f1", "chair has no score 'f1'")],
)
def test_wrong_scores_are_refused(runs: list[RunReport], score: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        leaderboard(*runs, score=score, options=FAST)


def test_runs_without_a_commonly_scored_item_are_refused() -> None:
    first = chair_run(None, 0.2, images=2, missing=("0",))
    second = chair_run(None, 0.2, images=2, missing=("1",))
    with pytest.raises(
        InvalidInputError,
        match=expected_message("studies.leaderboards:no-item-is-scored-in-all-runs"),
    ):
        leaderboard(first, second)


def test_one_run_is_too_few(runs: list[RunReport]) -> None:
    with pytest.raises(InvalidInputError, match="at least 2"):
        leaderboard(runs[0])


def test_an_undefined_score_is_refused() -> None:
    silent = [pope_run(None, 0.9, unclear=1.0), pope_run(None, 0.9)]
    with pytest.raises(
        InvalidInputError,
        match=expected_message("studies.leaderboards:no-item-is-scored-in-all-runs"),
    ):
        leaderboard(*silent)


def test_a_run_without_the_score_is_not_ranked_and_named() -> None:
    runs = [amber_run("qqqddd", seed=1), amber_run("qqq", seed=2), amber_run("qqqddd", seed=3)]
    options = CompareOptions(replicates=200, names=("both", "answers", "more"))
    board = leaderboard(*runs, options=options)
    assert (board.score, sorted(row.run for row in board.rows)) == ("amber_score", ["both", "more"])
    assert any("not ranked: answers" in note for note in board.notes)
    named = leaderboard(*runs, score="accuracy", options=options)
    assert sorted(row.run for row in named.rows) == ["answers", "both", "more"]


@pytest.mark.parametrize(
    ("kinds", "score"), [("qqqddd", "amber_score"), ("qqq", "accuracy"), ("ddd", "chair")]
)
def test_the_first_declared_score_that_runs_have_ranks_them(kinds: str, score: str) -> None:
    runs = [amber_run(kinds, seed=1), amber_run(kinds, seed=2)]
    options = CompareOptions(replicates=200)
    board = leaderboard(*runs, options=options)
    assert (board.score, len(board.rows)) == (score, 2)
    noted = any("amber_score is undefined" in note for note in board.notes)
    assert noted == (score != "amber_score")
    shown = paper_table(*runs, layout=TableLayout(columns=("metric",)), options=options)
    assert {cell.score for cell in shown.cells} == {score}


def test_a_named_score_that_all_runs_lack_is_refused() -> None:
    runs = [amber_run("qqq", seed=1), amber_run("qqq", seed=2)]
    with pytest.raises(InvalidInputError, match="another score, such as accuracy"):
        leaderboard(*runs, score="chair")


def test_a_run_without_a_scored_item_is_named() -> None:
    runs = [chair_run(None, 0.2), chair_run(None, 0.4, seed=1)]
    silent = chair_run(None, 0.2, missing=tuple(map(str, range(60))))
    options = CompareOptions(replicates=200, names=("a", "silent", "b"))
    board = leaderboard(runs[0], silent, runs[1], options=options)
    assert [row.run for row in board.rows] == ["a", "b"]
    assert any("not ranked: silent" in note for note in board.notes)


def overview(folder: Path, runs: Mapping[tuple[str, str], float]) -> Path:
    """Write an overview of CHAIR runs: model and name -> share of wrong captions."""
    rows = []
    for (model, name), wrong in runs.items():
        chair_run(folder / model / name, wrong, seed=len(model))
        rows.append({"model": model, "name": name, "folder": f"/gone/scores/{model}/{name}"})
    (folder / "overview.json").write_text(json.dumps({"runs": rows}))
    return folder


def test_an_overview_is_ranked_by_every_metric(tmp_path: Path) -> None:
    runs = {("a", "chair"): 0.9, ("b", "chair"): 0.2, ("a", "other"): 0.2, ("b", "other"): 0.9}
    folder = overview(tmp_path, {**runs, ("a", "alone"): 0.5})
    found = leaderboards(folder, options=CompareOptions(replicates=500))
    assert {name: [row.run for row in found[name].rows] for name in found.boards} == {
        "chair": ["b", "a"],
        "other": ["a", "b"],
    }
    pair = (folder / "a/chair", folder / "b/chair")
    assert (
        found["chair"].rows
        == leaderboard(*pair, options=CompareOptions(replicates=500, names=("a", "b"))).rows
    )
    assert found.left_out == ("alone has the run of a alone",)
    page = found.page()
    ranks, tests = (grid.records() for grid in page.grids)
    assert [(row["metric"], row["rank"], row["run"]) for row in ranks] == [
        ("chair", 1, "b"),
        ("chair", 2, "a"),
        ("other", 1, "a"),
        ("other", 2, "b"),
    ]
    assert [row["metric"] for row in tests] == ["chair", "other"]
    assert "not ranked: alone has the run of a alone" in page.notes
    assert list(json.loads(found.to_text())["boards"]) == ["chair", "other"]


def test_a_metric_that_can_not_be_ranked_does_not_stop_the_others(tmp_path: Path) -> None:
    folder = overview(tmp_path, {(m, n): 0.5 for m in "ab" for n in ("chair", "broken")})
    (folder / "b/broken/report.json").unlink()
    found = leaderboards(folder, options=CompareOptions(replicates=500))
    assert list(found.boards) == ["chair"]
    assert [reason.partition(":")[0] for reason in found.left_out] == ["broken"]
    with pytest.raises(
        InvalidInputError, match=expected_message("studies.leaderboards:no-metric-has")
    ):
        leaderboards(folder, score="f1")


@pytest.mark.parametrize("content", ["[]", "{}", '{"runs": [{"model": "a"}]}', '{"runs": 3}'])
def test_a_file_that_is_not_an_overview_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "overview.json").write_text(content)
    with pytest.raises(
        ArchiveError, match=expected_message("studies.leaderboards:not-an-overview")
    ):
        leaderboards(tmp_path)
