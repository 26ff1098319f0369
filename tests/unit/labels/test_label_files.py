"""Plans and sheets of labels: what they draw, and how it is imported and counted."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from support.calibration import labels_file
from support.comparison_runs import chair_run
from support.messages import expected_message
from support.pages import Page
from support.running import here, read_rows

from hallujudge.sdk.calibration import CalibrateOptions, calibrate
from hallujudge.sdk.runs import read_run


def test_a_plan_gives_labels_their_weight(folder: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    done = here("label", "plan", folder, "-n", "80", "--seed", "4", "--out", plan)
    assert done.returncode == 0, done.stderr
    units = json.loads(plan.read_text(encoding="utf-8"))["units"]
    assert len(units) == 80
    labels = tmp_path / "l.jsonl"
    lines = [
        # Every second label of a rejected mention disagrees.
        {"item": u["item"], "claim": u["claim"],
         "label": "not_supported" if u["stratum"] and int(u["item"]) % 2 else "supported"}
        for u in units
    ]  # fmt: skip
    labels.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    found = calibrate(folder, CalibrateOptions(labels=(labels,), plan=plan))
    rows = read_rows(folder / "items.jsonl")
    odd = sum(row["statistics"]["hallucinated"] for row in rows if int(row["id"]) % 2)
    score = found["chair_i"]
    assert found.planned
    assert found.labels == 80
    assert score.labels_alone is None
    assert score.run_low is not None
    assert score.run_high is not None
    mentioned = sum(row["statistics"]["mentioned"] for row in rows)
    assert score.run_low <= odd / mentioned <= score.run_high
    assert found.notes == ()
    labels.write_text(labels.read_text(encoding="utf-8").split("\n", 1)[1], encoding="utf-8")
    found = calibrate(folder, CalibrateOptions(labels=(labels,), plan=plan))
    assert [note.split(";")[0] for note in found.notes] == [
        expected_message("labels.labelled_claims:of-planned-units-have-no-label")
    ]


def test_a_plan_of_five_draws_five_and_says_what_that_is_worth(tmp_path: Path) -> None:
    chair_run(tmp_path / "run", 0.4)
    sheet = tmp_path / "sheet.csv"
    planned = here("label", "plan", tmp_path / "run", "-n", "5", "--sheet", sheet)
    assert planned.stdout.startswith(
        expected_message("labels.label_commands:claims-to-label-seed")
    ), planned.stderr
    assert (
        expected_message("labels.label_commands:note-with-fewer-than-labels-calibrate-reports")
        in planned.stdout
    )
    assert len(sheet.read_text(encoding="utf-8").splitlines()) == 6
    more = here("label", "plan", tmp_path / "run", "-n", "15")
    assert more.stdout.startswith(
        expected_message("labels.label_commands:claims-to-label-seed-2")
    ), more.stderr
    assert "note:" not in more.stdout


def test_a_plan_is_extended_by_what_it_draws_only(tmp_path: Path) -> None:
    chair_run(tmp_path / "run", 0.4)
    plan = tmp_path / "run" / "label-plan.json"
    first = here("label", "plan", tmp_path / "run", "-n", "5", "--by", "item", "--seed", "4")
    assert first.stdout.startswith(expected_message("labels.label_commands:items-to-label-seed")), (
        first.stderr
    )
    for option, why in (("--by claim", "draws items, not claims"), ("--seed 0", "has the seed 4")):
        refused = here("label", "plan", tmp_path / "run", "-n", "5", *option.split())
        assert refused.returncode == 2
        assert f"{plan}: the plan {why}" in refused.stderr
    more = here("label", "plan", tmp_path / "run", "-n", "5", "--by", "item", "--seed", "4")
    assert more.stdout.startswith(
        expected_message("labels.label_commands:items-to-label-seed-2")
    ), more.stderr
    more = here("label", "plan", tmp_path / "run", "-n", "5")
    assert more.stdout.startswith(
        expected_message("labels.label_commands:items-to-label-seed-3")
    ), more.stderr


def test_a_sheet_may_be_imported_while_it_is_filled_in(tmp_path: Path) -> None:
    chair_run(tmp_path / "run", 0.4)
    sheet = tmp_path / "sheet.csv"
    assert here("label", "plan", tmp_path / "run", "-n", "60", "--sheet", sheet).returncode == 0
    head, *rows = sheet.read_text(encoding="utf-8").splitlines()
    assert head == "item,claim,text,image,response,label,annotator"
    [shown, *_] = csv.DictReader([head, *rows])
    assert (shown["image"], shown["text"] in shown["response"]) == (shown["item"], True)
    half = [row[:-1] + "supported," if at < 40 else row for at, row in enumerate(rows)]
    sheet.write_text("\n".join([head, *half]), encoding="utf-8")
    done = here("label", "import", tmp_path / "run", sheet)
    assert "40 labels of 40 claims" in done.stdout, done.stderr
    assert expected_message("labels.label_commands:rows-have-no-label-yet") in done.stdout
    sheet.write_text("\n".join([head, half[0].replace(",supp", ",not_supp")]), encoding="utf-8")
    done = here("label", "import", tmp_path / "run", sheet)
    assert (
        expected_message("labels.human_labels:note-labels-contradict-an-earlier-one") in done.stdout
    ), done.stderr
    told = " ".join(here("calibrate", tmp_path / "run").stdout.split())
    assert expected_message("labels.labelled_claims:of-planned-units-have-no-label-2") in told


def test_labels_of_items_that_the_plan_did_not_draw_have_a_note(
    folder: Path, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    here("label", "plan", folder, "-n", "50", "--by", "item", "--out", plan)
    labels = labels_file(tmp_path / "l.jsonl", folder, lambda _, __, verdict: verdict)
    found = calibrate(folder, CalibrateOptions(labels=(labels,), plan=plan))
    assert (
        expected_message("labels.labelled_claims:labels-are-of-items-that-the-plan") in found.notes
    )


def test_labels_of_another_run_with_the_same_ids_have_a_note(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    chair_run(folder, 0.4)
    page = Page(read_run(folder).page())
    [own] = [run["id"] for run in page.head["runs"]]
    file = labels_file(tmp_path / "own.jsonl", folder, lambda _, __, verdict: verdict)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for run, note in ((own, False), ("0123456789abcdef", True)):
        file.write_text("".join(json.dumps({**line, "run": run}) + "\n" for line in lines))
        done = here("label", "import", folder, file)
        assert (
            expected_message("labels.label_files:labels-were-given-to-another-run") in done.stdout
        ) is note, done.stderr
