"""Comparisons of runs: joins, coverage, findings, and what is refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest
from support.comparison_runs import chair_run, pope_run
from support.messages import expected_message
from support.running import here, read_rows

from hallujudge.sdk import (
    Client,
    CompareOptions,
    GateLimits,
    RunFolder,
    RunReport,
    changed_items,
    compare,
    gate,
    leaderboard,
    recompute,
)
from hallujudge.sdk.calibration import calibrate, write_calibration
from hallujudge.sdk.comparison.page_comparisons import page_of_two
from hallujudge.sdk.errors import ArchiveError, InvalidInputError

FAST = CompareOptions(replicates=500)


@pytest.fixture(scope="module")
def better() -> RunReport:
    return chair_run(None, 0.2, seed=1)


@pytest.fixture(scope="module")
def worse() -> RunReport:
    return chair_run(None, 0.8, seed=2)


def test_a_worse_run_is_found_in_the_scores_own_direction(
    better: RunReport, worse: RunReport
) -> None:
    found = compare(better, worse, options=FAST)
    rate = found["chair_i"]
    assert (rate.direction, rate.finding) == ("lower", "worse")
    assert rate.difference == pytest.approx((worse.chair_i or 0) - (better.chair_i or 0))
    assert (rate.ci_low or 0) > 0
    assert found["recall"].finding == "worse"
    assert compare(worse, better, options=FAST)["chair_i"].finding == "better"
    assert "run 2 is" in " ".join(str(found).split())


def test_a_folder_and_its_report_compare_alike(tmp_path: Path, better: RunReport) -> None:
    chair_run(tmp_path / "b", 0.8, seed=2)
    better.save(tmp_path / "a")
    folders = compare(tmp_path / "a", tmp_path / "b", options=FAST)
    reports = compare(better, chair_run(None, 0.8, seed=2), options=FAST)
    assert folders.pairs[0].differences == reports.pairs[0].differences
    assert [run.name for run in folders.runs] == ["a", "b"]
    assert folders["chair_i"].first == recompute(tmp_path / "a").chair_i


def test_p_values_are_corrected_for_all_tests(better: RunReport, worse: RunReport) -> None:
    other = chair_run(None, 0.25, seed=3)
    all_scores = compare(better, worse, other, options=FAST)
    assert all_scores.tests == 8, "four scores of two runs against the first"
    one = compare(better, worse, options=replace(FAST, scores=("chair_i",)))
    assert one.tests == 1
    assert one["chair_i"].p_corrected == one["chair_i"].p
    assert (all_scores["chair_i"].p_corrected or 0) > (all_scores["chair_i"].p or 1)


def test_items_that_are_unscored_in_one_run_are_left_out_and_counted(better: RunReport) -> None:
    holes = chair_run(None, 0.8, seed=2, missing=("3", "4"))
    [pair] = compare(better, holes, options=FAST).pairs
    assert (pair.coverage.compared, pair.coverage.unscored_second) == (58, 2)
    rest = [item.result for item in better.items if item.id not in ("3", "4")]
    hallucinated = sum(result.statistics[1] for result in rest)
    assert pair["chair_i"].first == hallucinated / sum(result.statistics[0] for result in rest)
    assert "2 unscored in run 2 only" in str(compare(better, holes, options=FAST))


def test_the_share_of_unread_answers_counts_the_answers_that_other_scores_leave_out() -> None:
    clear, unclear = pope_run(None, 0.9), pope_run(None, 0.9, unclear=0.3)
    found = compare(clear, unclear, options=FAST)
    assert found["unparsed_rate"].first == 0
    assert found["unparsed_rate"].second == unclear.unparsed_rate
    assert found["unparsed_rate"].finding == "worse"
    scored = [item for item in unclear.items if not item.reason]
    right = [item.scores["accuracy"] for item in scored]
    assert found["accuracy"].second == sum(value or 0 for value in right) / len(right)
    assert found["accuracy"].clusters <= 40


def test_items_of_one_run_only_are_counted() -> None:
    found = compare(chair_run(None, 0.2), chair_run(None, 0.2, first=20), options=FAST)
    coverage = found.pairs[0].coverage
    assert (coverage.compared, coverage.only_first, coverage.only_second) == (40, 20, 20)


def test_changed_items_say_what_changed(better: RunReport, worse: RunReport) -> None:
    changes = list(changed_items(better, worse))
    [pair] = compare(better, worse, options=FAST).pairs
    assert len(changes) == pair.changed_items > 0
    by_score = {each.score: each for each in pair.changes}
    new = [change for change in changes if change.scores.get("chair_s") == (0.0, 1.0)]
    assert len(new) == by_score["chair_s"].newly_wrong
    change = new[0]
    assert change.change == "worse"
    assert change.statistics["hallucinated"] == (0, 1)
    assert change.evidence["hallucinated"][0] == []
    assert isinstance(change.responses[1], str)


def test_an_item_that_became_unscored_changed() -> None:
    [change] = changed_items(chair_run(None, 0.2), chair_run(None, 0.2, missing=("7",)))
    assert (change.id, change.change) == (
        "7",
        expected_message("sdk.comparison.item_pairs:unscored-in-the-second-run"),
    )
    assert change.reasons == ("", "RESPONSE_MISSING")
    [back] = changed_items(chair_run(None, 0.2, missing=("7",)), chair_run(None, 0.2))
    assert back.change == expected_message("sdk.comparison.item_pairs:unscored-in-the-first-run")


def test_a_frame_has_a_row_for_each_difference(better: RunReport, worse: RunReport) -> None:
    pytest.importorskip("pandas")
    frame = compare(better, worse, options=FAST).to_pandas()
    assert list(frame["score"]) == ["chair_i", "chair_s", "recall", "mean_words"]


def test_a_notebook_shows_a_table(better: RunReport, worse: RunReport) -> None:
    found = compare(better, worse, options=FAST)
    html = methodcaller("_repr_html_")(found)
    assert html.startswith('<div class="hallujudge"><style>')
    assert "<h1>chair (published): comparison</h1>" in html


def test_runs_that_were_scored_in_other_ways_are_refused(better: RunReport) -> None:
    other = chair_run(None, 0.2, variant="corrected")
    with pytest.raises(InvalidInputError, match=r"variant \(var\) published and corrected"):
        compare(better, other, options=FAST)
    with pytest.raises(
        InvalidInputError,
        match=expected_message("sdk.comparison.compared_runs:the-metrics-are-chair-and-pope"),
    ):
        compare(better, pope_run(None, 0.9), options=FAST)


def test_another_release_is_refused_unless_allowed(better: RunReport, worse: RunReport) -> None:
    old = replace(worse, signature=worse.signature.replace("|v:", "|v:0."))
    with pytest.raises(InvalidInputError, match=r"release \(v\) .*allow=v"):
        compare(better, old, options=FAST)
    found = compare(better, old, options=replace(FAST, allow=("v",)))
    assert any("differ in v" in note for note in found.notes)


def test_margins_of_unknown_meaning_are_noted(better: RunReport, worse: RunReport) -> None:
    def judged(run: RunReport, more: str) -> RunReport:
        judge = f"|judge:m,top_logprobs=8,constraint=json_schema{more}|ci:"
        return replace(run, signature=run.signature.replace("|ci:", judge))

    new = ",masked=yes"
    found = compare(judged(better, new), judged(worse, ""), options=FAST)
    (note,) = [each for each in found.notes if "margins" in each]
    assert note.startswith(
        "The signature of run 2 does not say whether its judge's margins are among"
    )
    for marks in (("", ""), (new, new)):
        found = compare(judged(better, marks[0]), judged(worse, marks[1]), options=FAST)
        assert not any("margins" in each for each in found.notes)


def test_runs_without_a_common_item_are_refused(better: RunReport) -> None:
    with pytest.raises(
        InvalidInputError,
        match=expected_message("sdk.comparison.item_pairs:no-item-id-is-in-all-runs"),
    ):
        compare(better, chair_run(None, 0.2, first=1000), options=FAST)


def test_runs_without_a_commonly_scored_item_are_refused() -> None:
    first = chair_run(None, 0.2, images=2, missing=("0",))
    second = chair_run(None, 0.2, images=2, missing=("1",))
    with pytest.raises(
        InvalidInputError,
        match=expected_message("sdk.comparison.differences:no-item-is-scored-in-both"),
    ):
        compare(first, second, options=FAST)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (CompareOptions(scores=("f1",)), "chair has no score 'f1'; choose from chair_i"),
        (CompareOptions(names=("a",)), "1 name for 2 runs"),
        (CompareOptions(names=("a", "a")), "two runs have the name 'a'"),
        (CompareOptions(replicates=1), "replicates is 1"),
    ],
)
def test_wrong_options_are_refused(
    better: RunReport, worse: RunReport, options: CompareOptions, said: str
) -> None:
    with pytest.raises(InvalidInputError, match=said):
        compare(better, worse, options=options)


def test_one_run_is_too_few(better: RunReport) -> None:
    with pytest.raises(InvalidInputError, match="at least 2"):
        compare(better)


def test_folders_that_are_not_runs_are_refused(tmp_path: Path, better: RunReport) -> None:
    with pytest.raises(ArchiveError, match="no such folder"):
        compare(better, tmp_path / "none")
    (tmp_path / "partial").mkdir()
    (tmp_path / "partial" / "manifest.json").touch()
    with pytest.raises(
        ArchiveError, match=expected_message("sdk.cli.viewer:the-run-is-not-complete")
    ):
        compare(better, tmp_path / "partial")
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        ArchiveError, match=expected_message("sdk.runs.stored_runs:not-run-it-has-no-reportjson")
    ):
        compare(better, tmp_path / "empty")


def test_a_run_that_stopped_or_is_under_way_is_told_apart(
    tmp_path: Path, better: RunReport
) -> None:
    better.save(tmp_path / "a")
    (tmp_path / "b").mkdir()
    for name, now in (
        ("journal.bin", "journal.partial.bin"),
        ("items.jsonl", "items.partial.jsonl"),
    ):
        (tmp_path / "b" / now).write_bytes((tmp_path / "a" / name).read_bytes())
    with pytest.raises(
        ArchiveError,
        match=expected_message(
            "sdk.runs.stored_runs:not-complete-items-are-scored", len(better.items)
        ),
    ):
        compare(better, tmp_path / "b")
    with (
        RunFolder(tmp_path / "b"),
        pytest.raises(
            ArchiveError, match=expected_message("sdk.runs.stored_runs:the-run-is-under-way")
        ),
    ):
        compare(better, tmp_path / "b")


def test_an_earlier_run_is_compared_while_a_newer_one_is_under_way(
    tmp_path: Path, better: RunReport, worse: RunReport
) -> None:
    better.save(tmp_path / "a")
    (tmp_path / "a" / "journal.partial.bin").touch()
    notes = compare(worse, tmp_path / "a").notes
    assert any(
        expected_message("sdk.comparison.differences:newer-run-into-the-folder-of-is") in note
        for note in notes
    )


def test_a_run_is_not_compared_with_itself(tmp_path: Path, better: RunReport) -> None:
    better.save(tmp_path / "a")
    with pytest.raises(InvalidInputError, match="/a is given twice"):
        compare(tmp_path / "a", tmp_path / "b" / ".." / "a")


def test_an_id_that_appears_twice_is_refused(tmp_path: Path, better: RunReport) -> None:
    better.save(tmp_path / "a")
    items = tmp_path / "a" / "items.jsonl"
    items.write_text(items.read_text() + items.read_text())
    with pytest.raises(InvalidInputError, match="item '0' appears twice"):
        compare(tmp_path / "a", better)


def test_an_item_of_another_image_is_refused(tmp_path: Path, better: RunReport) -> None:
    better.save(tmp_path / "a")
    items = tmp_path / "a" / "items.jsonl"
    rows = read_rows(items)
    rows[5]["group_id"] = "6"
    items.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(
        InvalidInputError,
        match=expected_message("sdk.comparison.compared_runs:item-belongs-to-in-and-to"),
    ):
        compare(tmp_path / "a", better, options=CompareOptions(names=("a", "b")))


def test_folders_with_equal_names_get_the_names_of_their_parents(tmp_path: Path) -> None:
    for model in ("llava", "minigpt"):
        chair_run(tmp_path / model / "chair", 0.3, seed=len(model))
    found = compare(tmp_path / "llava/chair", tmp_path / "minigpt/chair", options=FAST)
    assert [run.name for run in found.runs] == ["llava/chair", "minigpt/chair"]


def test_a_report_without_its_items_is_refused(better: RunReport) -> None:
    empty = replace(better, items=type(better.items)())
    with pytest.raises(
        InvalidInputError, match=expected_message("sdk.comparison.compared_runs:holds-of-its-items")
    ):
        compare(better, empty)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ({"id": 5}, "id is 5, not a text"),
        ({"group_id": None}, "group_id is null, not a text"),
        ({"scores": {"chair_i": "high"}}, 'scores.chair_i is "high", not a finite number'),
        ({"scores": {"chair_i": float("nan")}}, "scores.chair_i is NaN, not a finite number"),
        ({"huge": float("nan")}, "mentioned is NaN, not a finite number"),
        ({"huge": "5"}, 'mentioned is "5", not a finite number'),
        ({"huge": 1.5}, "mentioned is 1.5"),
        ({"scores": ["chair_i"]}, 'scores is \\["chair_i"\\], not an object'),
        ({"statistics": {"mentioned": 1}}, "the statistics are"),
        ({"statistics": None}, "the statistics are null"),
        ({"huge": 10**30}, "mentioned is 1000"),
        ({"outcome": "perhaps"}, 'outcome is "perhaps", not scored or unscored'),
    ],
)
def test_damaged_lines_are_refused_with_their_place(
    tmp_path: Path, better: RunReport, damage: dict[str, Any], said: str
) -> None:
    better.save(tmp_path / "a")
    items = tmp_path / "a" / "items.jsonl"
    rows = read_rows(items)
    if "huge" in damage:
        rows[4]["statistics"]["mentioned"] = damage["huge"]
    else:
        rows[4] |= damage
    items.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.runs.result_files:line-not-line-of-items-jsonl", said),
    ):
        compare(tmp_path / "a", better, options=FAST)


def asked(folder: Path | None, questions: list[str]) -> RunReport:
    """Return a POPE run that answers questions; the ids are positions."""
    rows = [{"question_id": n, "text": text, "label": "yes"} for n, text in enumerate(questions)]
    answers = [{"question_id": n, "answer": "yes"} for n in range(len(rows))]
    with Client.embedded() as client:
        return client.score(
            "pope", responses=answers, references=rows, folder=folder, keep_items=folder is None
        )


def test_ids_that_name_other_questions_are_told(tmp_path: Path) -> None:
    given = ["Is there a dog?", "Is there a cup?", "Is there a tie?"]
    asked(tmp_path / "random", given)
    asked(tmp_path / "popular", [*given[:2], "Is there a bus?"])
    note = (
        "1 of 3 items ask another question in popular than in random: the runs are not over the "
        "same data, and their difference compares different questions."
    )
    pair = (tmp_path / "random", tmp_path / "popular")
    assert note in compare(*pair, options=FAST).notes
    assert note in page_of_two(*pair)
    assert note in leaderboard(*pair).notes
    again = compare(
        asked(None, given), tmp_path / "random", options=replace(FAST, names=("a", "b"))
    )
    assert not any("another question" in each for each in again.notes)


def calibrated_run(folder: Path, wrong: float, seed: int) -> None:
    """Score captions and label them all as the verdicts have it, but for every fourth image."""
    chair_run(folder, wrong, seed=seed, images=80)
    lines = []
    for row in read_rows(folder / "items.jsonl"):
        spans = row["evidence"]["hallucinated_spans"]
        for index, span in enumerate(row["evidence"]["mentioned_spans"]):
            truth = span in spans and int(row["id"]) % 4 != 0
            label = "not_supported" if truth else "supported"
            lines.append({"item": row["id"], "claim": index, "label": label})
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "labels.jsonl").write_text(text, encoding="utf-8")
    write_calibration(folder, calibrate(folder))


def test_corrected_differences_stand_beside_raw_ones(tmp_path: Path) -> None:
    for name, wrong, seed in (("one", 0.9, 1), ("two", 0.1, 2)):
        calibrated_run(tmp_path / name, wrong, seed)
    found = compare(tmp_path / "one", tmp_path / "two")
    for run in found.runs:
        assert re.search(r"\|labels:[0-9a-f]{8}\|calibrated:ppi\+\+/n=\d+$", run.signature)
    [pair] = found.pairs
    assert [each.score for each in pair.corrected] == ["chair_i", "chair_s"]
    for each in pair.corrected:
        raw = pair[each.score]
        assert each.difference == pytest.approx(each.second - each.first)
        assert raw.difference is not None
        # Labels take a quarter of the hallucinations of both runs away.
        assert abs(each.difference) < abs(raw.difference)
        assert each.ci_low < each.difference < each.ci_high < 0
        assert each.finding == "better"
    shown = here("compare", tmp_path / "one", tmp_path / "two", "--format", "markdown").stdout
    assert (
        expected_message("sdk.comparison.results:corrected-by-human-labels-two-against-one")
        in shown
    )


def test_a_run_against_itself_differs_by_nothing(tmp_path: Path) -> None:
    for name in ("one", "two"):
        calibrated_run(tmp_path / name, 0.5, 1)
    [pair] = compare(tmp_path / "one", tmp_path / "two").pairs
    for each in pair.corrected:
        assert each.difference == 0
        # The errors are the same, so that what is left of the interval is its skewness.
        assert -0.02 < each.ci_low <= 0 <= each.ci_high < 0.02
        assert each.finding == "none"


def test_both_runs_must_be_calibrated(tmp_path: Path) -> None:
    calibrated_run(tmp_path / "one", 0.5, 1)
    chair_run(tmp_path / "two", 0.5, seed=2, images=80)
    found = compare(tmp_path / "one", tmp_path / "two")
    assert found.pairs[0].corrected == ()
    assert not any("calibrated:" in run.signature for run in found.runs)


def test_runs_with_other_labels_or_with_labels_in_one_alone_are_named(tmp_path: Path) -> None:
    calibrated_run(tmp_path / "one", 0.5, 1)
    calibrated_run(tmp_path / "same", 0.5, 1)
    calibrated_run(tmp_path / "two", 0.1, 2)
    chair_run(tmp_path / "plain", 0.5, seed=2, images=80)

    def noted(*names: str) -> bool:
        notes = compare(*(tmp_path / name for name in names), options=FAST).notes
        found = [note for note in notes if "(labels)" in note]
        assert all(name in note for name in names for note in found)
        return bool(found)

    assert noted("one", "two")
    assert noted("one", "plain")
    assert not noted("one", "same")
    ranked = leaderboard(tmp_path / "one", tmp_path / "plain", options=FAST)
    assert any("plain none" in note for note in ranked.notes)
    checked = gate(tmp_path / "one", baseline=tmp_path / "plain", limits=GateLimits(max_unscored=0))
    assert any("plain none" in note for note in checked.notes)
