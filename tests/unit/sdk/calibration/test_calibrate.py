"""Calibration of whole runs: what labels say is what corrected scores become."""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from support.comparison_runs import chair_run, pope_run
from support.pages import Page
from support.running import here, read_rows

from hallujudge.metrics.calibration.result import Calibration, ScoreEstimate
from hallujudge.sdk import Client
from hallujudge.sdk.calibration import (
    CalibrateOptions,
    calibrate,
    read_calibration,
    write_calibration,
)
from hallujudge.sdk.calibration.show import page_of
from hallujudge.sdk.errors import ArchiveError, InvalidInputError, UnsupportedError
from hallujudge.sdk.report.calibrated import calibration_sentences
from hallujudge.sdk.runs import read_run
from hallujudge.sdk.schemas import calibration_schema


def labels_file(
    path: Path, folder: Path, wrong: Callable[[str, int, bool], bool], *, share: float = 1.0
) -> Path:
    """Label the mentions of a random share of a run's captions."""
    chosen = random.Random(5)
    lines = []
    for row in read_rows(folder / "items.jsonl"):
        spans = row["evidence"]["hallucinated_spans"]
        if chosen.random() < share:
            for index, span in enumerate(row["evidence"]["mentioned_spans"]):
                truth = wrong(row["id"], index, span in spans)
                label = "not_supported" if truth else "supported"
                lines.append({"item": row["id"], "claim": index, "label": label, "annotator": "a"})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    chair_run(folder, 0.4, images=120)
    return folder


def calibrated(folder: Path, labels: Path) -> Calibration:
    return calibrate(folder, CalibrateOptions(labels=(labels,)))


def test_labels_that_agree_change_nothing(folder: Path, tmp_path: Path) -> None:
    labels = labels_file(tmp_path / "l.jsonl", folder, lambda _, __, verdict: verdict)
    found = calibrated(folder, labels)
    assert list(found.scores) == ["chair_i", "chair_s"]
    for score in found.scores.values():
        assert score.raw is not None
        assert score.corrected is not None
        assert score.corrected.value == pytest.approx(score.raw.value)
        assert score.recommended == "ppi++"
    assert found.accuracy.sensitivity.value == found.accuracy.specificity.value == 1
    assert found.kappa == 1
    assert found.sampled_by == "item"


def test_scores_become_those_of_full_labels(folder: Path, tmp_path: Path) -> None:
    """A label is wrong of every other rejected mention: both scores are halved."""

    def wrong(item: str, _: int, verdict: bool) -> bool:
        return verdict and int(item) % 2 == 0

    found = calibrated(folder, labels_file(tmp_path / "l.jsonl", folder, wrong))
    rows = read_rows(folder / "items.jsonl")
    even = [row for row in rows if int(row["id"]) % 2 == 0]
    hallucinated = sum(row["statistics"]["hallucinated"] for row in even)
    mentioned = sum(row["statistics"]["mentioned"] for row in rows)
    captions = sum(row["statistics"]["captions_with_hallucination"] for row in even)
    for name, expected in (("chair_i", hallucinated / mentioned), ("chair_s", captions / 120)):
        score = found[name]
        assert score.corrected is not None
        assert score.corrected.value == pytest.approx(expected)
        assert score.run_low == score.run_high == pytest.approx(expected)


def test_a_sample_of_captions_estimates_all(folder: Path, tmp_path: Path) -> None:
    def wrong(_: str, index: int, __: bool) -> bool:
        return index == 1

    found = calibrated(folder, labels_file(tmp_path / "l.jsonl", folder, wrong, share=0.4))
    score = found["chair_i"]
    assert score.corrected is not None
    assert score.run_low is not None
    assert score.run_high is not None
    # 96 captions have two mentions, 24 have one.
    assert score.run_low <= 96 / 216 <= score.run_high
    assert score.corrected.value == pytest.approx(96 / 216, abs=0.05)
    assert "No plan says how the labels were drawn" in found.notes[0]


def test_labels_of_single_mentions_do_not_correct_captions(folder: Path, tmp_path: Path) -> None:
    lines = [
        {"item": row["id"], "claim": 0, "label": "supported"}
        for row in read_rows(folder / "items.jsonl")
    ]
    path = tmp_path / "l.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    found = calibrated(folder, path)
    assert (found.sampled_by, found["chair_s"].corrected) == ("claim", None)
    assert found["chair_s"].recommended == "raw"
    assert "Whole items were not drawn" in found["chair_s"].reason


def test_labels_of_whole_captions_correct_captions_alone(folder: Path, tmp_path: Path) -> None:
    rows = read_rows(folder / "items.jsonl")[:40]
    path = tmp_path / "l.jsonl"
    lines = [{"item": row["id"], "label": "supported"} for row in rows]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    found = calibrated(folder, path)
    assert (found.sampled_by, found.labels) == ("item", 40)
    assert found["chair_i"].reason == "No claim that counts in it is labelled."
    corrected = found["chair_s"].corrected
    assert corrected is not None
    assert corrected.value == 0


def test_labels_chosen_by_their_verdict_are_recognised(folder: Path, tmp_path: Path) -> None:
    lines = [
        {"item": row["id"], "claim": 1, "label": "not_supported"}
        for row in read_rows(folder / "items.jsonl")
        if row["statistics"]["hallucinated"]
    ]
    path = tmp_path / "l.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    found = calibrated(folder, path)
    assert found["chair_i"].recommended == "raw"
    assert "no random sample" in found["chair_i"].reason
    assert any("differ from its verdicts on all claims" in note for note in found.notes)
    assert any("No other claim is labelled" in note for note in found.notes)


def test_error_rates_that_do_not_fit_the_run_correct_nothing(folder: Path, tmp_path: Path) -> None:
    """All rejected mentions were labelled, and a tenth of the others."""

    def wrong(item: str, _: int, verdict: bool) -> bool:
        return verdict and int(item) % 3 == 0

    everything = labels_file(tmp_path / "all.jsonl", folder, wrong).read_text(encoding="utf-8")
    rejected = {
        (row["id"], place)
        for row in read_rows(folder / "items.jsonl")
        for place, span in enumerate(row["evidence"]["mentioned_spans"])
        if span in row["evidence"]["hallucinated_spans"]
    }
    lines = [json.loads(line) for line in everything.splitlines()]
    others = [line for line in lines if (line["item"], line["claim"]) not in rejected]
    chosen = [line for line in lines if (line["item"], line["claim"]) in rejected] + others[::10]
    path = tmp_path / "l.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in chosen), encoding="utf-8")
    score = calibrated(folder, path)["chair_i"]
    assert (score.recommended, score.rogan_gladen) == ("raw", None)
    assert "finds no share that fits their error rates" in score.reason


@pytest.mark.parametrize("agree", [False, True])
def test_annotators_who_disagree_have_a_note(folder: Path, tmp_path: Path, agree: bool) -> None:
    lines = [
        {
            "item": row["id"],
            "claim": 0,
            "annotator": who,
            "label": "supported" if yes else "not_supported",
        }
        for place, row in enumerate(read_rows(folder / "items.jsonl"))
        for at, who in enumerate("abc")
        for yes in [place % 2 == 0 if agree else (place + at) % 2 == 0]
    ]
    path = tmp_path / "l.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    found = calibrated(folder, path)
    assert found.alpha is not None
    told = [note for note in found.notes if "annotators agree too little" in note]
    if agree:
        assert found.alpha == pytest.approx(1)
        assert told == []
    else:
        assert found.alpha < 0
        assert f"alpha {found.alpha:.2f}; 0.667 is the usual minimum, 0 is chance" in told[0]


def test_a_few_labels_are_too_few(folder: Path, tmp_path: Path) -> None:
    labels = labels_file(tmp_path / "l.jsonl", folder, lambda *_: False, share=0.05)
    found = calibrated(folder, labels)
    assert found["chair_i"].recommended == "raw"
    assert "labels say too little; label at least 20" in found["chair_i"].reason
    assert found.method.startswith("raw/n=")


def test_the_signature_names_labels_and_method(folder: Path, tmp_path: Path) -> None:
    labels = labels_file(tmp_path / "l.jsonl", folder, lambda _, __, verdict: verdict)
    found = calibrated(folder, labels)
    assert (
        found.signature
        == f"{found.run_signature}|calibrated:ppi++/n=216/labels@{found.labels_sha256[:8]}"
    )
    again = calibrated(folder, labels)
    assert again == found


def test_labels_of_another_run_have_a_note(folder: Path, tmp_path: Path) -> None:
    labels = labels_file(tmp_path / "l.jsonl", folder, lambda _, __, verdict: verdict)
    lines = [json.loads(line) for line in labels.read_text(encoding="utf-8").splitlines()]
    text = "".join(f"{json.dumps(line | {'signature': 'chair|other'})}\n" for line in lines)
    labels.write_text(text, encoding="utf-8")
    assert "216 labels were given to another run" in calibrated(folder, labels).notes[-1]


def test_a_calibration_is_read_again(folder: Path, tmp_path: Path) -> None:
    labels = labels_file(tmp_path / "l.jsonl", folder, lambda *_: True, share=0.5)
    found = calibrated(folder, labels)
    path = write_calibration(tmp_path, found)
    kept = json.loads(path.read_text(encoding="utf-8"))
    Draft202012Validator(calibration_schema()).validate(kept)
    assert read_calibration(tmp_path, found.run_signature) == found
    assert read_calibration(tmp_path / "other", "s") is None
    with pytest.raises(ArchiveError, match="calibrates another run"):
        read_calibration(tmp_path, "other")
    (tmp_path / "calibration.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ArchiveError, match="not a calibration"):
        read_calibration(tmp_path, "other")


def test_other_runs_and_labels_are_refused(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "l.jsonl"
    other.write_text('{"item": "x", "label": "supported"}\n', encoding="utf-8")
    with pytest.raises(InvalidInputError, match="none of 1 labels is of a claim or item"):
        calibrated(folder, other)
    first = next(row["id"] for row in read_rows(folder / "items.jsonl") if row["evidence"])
    other.write_text(json.dumps({"item": first, "claim": 99, "label": "supported"}) + "\n")
    with pytest.raises(InvalidInputError, match=f"item '{first}' has no claim 99;.* from 0 to"):
        calibrated(folder, other)
    words = {"item": first, "claim": 0, "label": "supported", "text": "words of another run"}
    other.write_text(json.dumps(words) + "\n")
    with pytest.raises(InvalidInputError, match=r"but the label's text is 'words of another run'"):
        calibrated(folder, other)
    other.write_text(json.dumps({"item": first, "start": 900, "end": 905, "label": "supported"}))
    with pytest.raises(InvalidInputError, match=r"the words of the first one are in no claim"):
        calibrated(folder, other)
    other.write_text(json.dumps({"item": first, "claim": 0, "label": "unsure"}) + "\n")
    with pytest.raises(InvalidInputError, match="every label of this run is unsure"):
        calibrated(folder, other)
    with pytest.raises(InvalidInputError, match=r"no labels.jsonl; label claims"):
        calibrate(folder)
    pope_run(tmp_path / "pope", 0.5)
    with pytest.raises(UnsupportedError, match="scores of pope do not depend on verdicts"):
        calibrated(tmp_path / "pope", other)


@pytest.mark.parametrize(
    ("low", "told"), [(0.1, "25% narrower than"), (0.3, "50% wider than"), (0.2, "as wide as")]
)
def test_widths_are_compared_with_those_of_labels_alone(
    folder: Path, tmp_path: Path, low: float, told: str
) -> None:
    found = calibrated(folder, labels_file(tmp_path / "l.jsonl", folder, lambda _, __, v: v))
    score = replace(
        found["chair_i"],
        corrected=ScoreEstimate(value=0.4, ci_low=0.2, ci_high=0.5),
        labels_alone=ScoreEstimate(value=0.4, ci_low=low, ci_high=0.5),
    )
    sentences = page_of(replace(found, scores={"chair_i": score})).sentences
    assert f"chair_i: the interval is {told} that of the labels alone." in sentences


def test_a_changed_line_is_refused(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    copy.mkdir()
    for name in ("report.json", "items.jsonl", "manifest.json"):
        text = (folder / name).read_text(encoding="utf-8")
        copy.joinpath(name).write_text(
            text.replace('"hallucinated":1', '"hallucinated":2'), "utf-8"
        )
    labels = labels_file(tmp_path / "l.jsonl", folder, lambda *_: True)
    with pytest.raises(ArchiveError, match="hallucinated is 2, but the verdicts give 1"):
        calibrated(copy, labels)


def test_groups_are_corrected_where_labels_suffice(tmp_path: Path) -> None:
    captions = [
        {"id": n, "caption": "A dog and a cat.", "model": "one" if n % 10 else "two"}
        for n in range(60)
    ]
    with Client.embedded() as client:
        report = client.score(
            "chair", responses=captions, references={n: ["dog"] for n in range(60)},
            group_by=["model"],
        )  # fmt: skip
    report.save(tmp_path)
    labels = labels_file(tmp_path / "l.jsonl", tmp_path, lambda _, __, verdict: verdict)
    found = calibrated(tmp_path, labels)
    assert {name: list(values) for name, values in found.groups.items()} == {"model": ["one"]}
    corrected = found.groups["model"]["one"]["chair_i"].corrected
    assert corrected is not None
    assert corrected.value == pytest.approx(0.5)
    write_calibration(tmp_path, found)
    shown = here("report", tmp_path, "--format", "markdown").stdout
    [one] = re.findall(r"^\| one \|.*$", shown, re.MULTILINE)
    assert re.search(r"corrected 0\.5000 \[0\.\d+, 0\.\d+\]", one)
    # Ten labels or so say too little about a group.
    [two] = re.findall(r"^\| two \|.*$", shown, re.MULTILINE)
    assert "corrected" not in two
    table = here("report", tmp_path, "--format", "table").stdout
    assert re.search(r"^group .* corrected", table, re.MULTILINE)
    assert here("report", tmp_path, "--format", "html").returncode == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<small>corrected 0.5000 [" in page


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
    assert [note.split(";")[0] for note in found.notes] == ["1 of 80 planned units have no label"]


def test_commands_write_labels_plan_and_calibration(tmp_path: Path) -> None:
    chair_run(tmp_path / "run", 0.4)
    given = labels_file(tmp_path / "l.jsonl", tmp_path / "run", lambda _, __, verdict: verdict)
    imported = here("label", "import", tmp_path / "run", given)
    assert "108 labels of 108 claims; items labelled in full: 60;" in imported.stdout, (
        imported.stderr
    )
    done = here("calibrate", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "Scores, raw and corrected" in done.stdout
    assert "calibrated:ppi++/n=108/labels@" in done.stdout.replace("\n", "")
    shown = here("report", tmp_path / "run", "--format", "table,markdown,html").stdout
    assert shown.count("Corrected by prediction") == 2
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Corrected by prediction-powered inference, from 108 human labels" in page
    printed = here("calibrate", tmp_path / "run", "--format", "json")
    kept = (tmp_path / "run" / "calibration.json").read_text(encoding="utf-8")
    assert printed.stdout == kept
    sheet = tmp_path / "sheet.csv"
    planned = here("label", "plan", tmp_path / "run", "--by", "item", "-n", "20", "--sheet", sheet)
    assert "20 items to label, seed 0" in planned.stdout
    assert len(sheet.read_text(encoding="utf-8").splitlines()) == 21
    refused = here("label", "plan", tmp_path / "run", "--by", "page")
    assert (refused.returncode, refused.stderr) == (
        2, "error: --by 'page': choose claim or item\n",
    )  # fmt: skip


def test_a_plan_of_five_draws_five_and_says_what_that_is_worth(tmp_path: Path) -> None:
    chair_run(tmp_path / "run", 0.4)
    sheet = tmp_path / "sheet.csv"
    planned = here("label", "plan", tmp_path / "run", "-n", "5", "--sheet", sheet)
    assert planned.stdout.startswith("5 claims to label, seed 0\n"), planned.stderr
    assert "note: with fewer than 20 labels calibrate reports the raw score" in planned.stdout
    assert len(sheet.read_text(encoding="utf-8").splitlines()) == 6
    more = here("label", "plan", tmp_path / "run", "-n", "15")
    assert more.stdout.startswith("20 claims to label, seed 0\n"), more.stderr
    assert "note:" not in more.stdout


def test_a_plan_is_extended_by_what_it_draws_only(tmp_path: Path) -> None:
    chair_run(tmp_path / "run", 0.4)
    plan = tmp_path / "run" / "label-plan.json"
    first = here("label", "plan", tmp_path / "run", "-n", "5", "--by", "item", "--seed", "4")
    assert first.stdout.startswith("5 items to label, seed 4\n"), first.stderr
    for option, why in (("--by claim", "draws items, not claims"), ("--seed 0", "has the seed 4")):
        refused = here("label", "plan", tmp_path / "run", "-n", "5", *option.split())
        assert refused.returncode == 2
        assert f"{plan}: the plan {why}" in refused.stderr
    more = here("label", "plan", tmp_path / "run", "-n", "5", "--by", "item", "--seed", "4")
    assert more.stdout.startswith("10 items to label, seed 4\n"), more.stderr
    more = here("label", "plan", tmp_path / "run", "-n", "5")
    assert more.stdout.startswith("15 items to label, seed 4\n"), more.stderr


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
    assert "20 rows have no label yet" in done.stdout
    sheet.write_text("\n".join([head, half[0].replace(",supp", ",not_supp")]), encoding="utf-8")
    done = here("label", "import", tmp_path / "run", sheet)
    assert "note: 1 labels contradict an earlier one" in done.stdout, done.stderr
    told = " ".join(here("calibrate", tmp_path / "run").stdout.split())
    assert "20 of 60 planned units have no label" in told


def test_labels_of_items_that_the_plan_did_not_draw_have_a_note(
    folder: Path, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    here("label", "plan", folder, "-n", "50", "--by", "item", "--out", plan)
    labels = labels_file(tmp_path / "l.jsonl", folder, lambda _, __, verdict: verdict)
    found = calibrate(folder, CalibrateOptions(labels=(labels,), plan=plan))
    assert "70 labels are of items that the plan did not draw; they do not count." in found.notes


def test_a_judge_that_guesses_is_told_with_its_scale(folder: Path, tmp_path: Path) -> None:
    def half(item: str, _: int, __: bool) -> bool:
        return int(item) % 2 == 0

    found = calibrated(folder, labels_file(tmp_path / "l.jsonl", folder, half))
    for name, unit in (("chair_i", "claims"), ("chair_s", "items")):
        assert re.search(
            rf"tells little about {unit}, .* sensitivity 0\.\d\d and specificity 0\.\d\d sum "
            r"to [01]\.\d\d, below 1\.2, where a guess has 1 and a perfect judge 2\.",
            found[name].reason,
        )


def test_verdicts_that_no_label_contradicts_are_told(folder: Path, tmp_path: Path) -> None:
    def wrong(item: str, _: int, verdict: bool) -> bool:
        return verdict and int(item) % 2 == 0

    reason = calibrated(folder, labels_file(tmp_path / "l.jsonl", folder, wrong, share=0.5))[
        "chair_i"
    ].reason
    assert "labelled claims that the judge accepts is hallucinated. They do not show" in reason
    assert "that the judge rejects" not in reason
    everything = calibrated(folder, labels_file(tmp_path / "l.jsonl", folder, wrong))
    assert "None of" not in everything["chair_i"].reason


def test_a_raw_score_that_is_expected_to_be_nearer_is_told(folder: Path, tmp_path: Path) -> None:
    """Labels that agree leave no bias to see; labels that reject no mention show a large one."""
    agreeing = labels_file(tmp_path / "a.jsonl", folder, lambda _, __, verdict: verdict, share=0.3)
    found = calibrated(folder, agreeing)
    score = found["chair_i"]
    assert score.recommended == "ppi++"
    assert score.raw_is_nearer
    assert score.raw_error == 0
    assert "The raw score is expected to be nearer" in score.reason
    assert "it differs by 0.000" in score.reason
    ran = here("calibrate", folder, "--labels", agreeing)
    assert ran.returncode == 0, ran.stderr
    assert "The raw score is expected to be nearer" in " ".join(ran.stdout.split())
    told = " ".join(calibration_sentences(found))
    assert "expected to be nearer than the corrected one: chair_i, chair_s." in told
    (folder / "calibration.json").unlink()

    none = labels_file(tmp_path / "n.jsonl", folder, lambda _, __, ___: False, share=0.3)
    score = calibrated(folder, none)["chair_i"]
    assert not score.raw_is_nearer
    assert score.raw is not None
    assert score.raw_error == pytest.approx(score.raw.value, rel=0.1)
    assert "expected to be nearer" not in score.reason


def test_a_run_that_is_labelled_as_a_whole_prefers_no_score(folder: Path, tmp_path: Path) -> None:
    labels = labels_file(tmp_path / "l.jsonl", folder, lambda _, __, verdict: verdict)
    score = calibrated(folder, labels)["chair_i"]
    assert (score.raw_error, score.corrected_error, score.raw_is_nearer) == (0, 0, False)


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
        assert ("labels were given to another run" in done.stdout) is note, done.stderr
