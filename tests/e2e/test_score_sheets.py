"""``hallujudge label scores``: people score responses from 1 to 5, and ``analyze`` takes them."""

from __future__ import annotations

import csv
import random
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from support.messages import expected_message
from support.qa_running import tables_of
from support.qa_samples import write_lines
from support.running import assert_refused, here, read_rows

from hallujudge.sdk import analyze

SCENE = [["man", "riding", "horse"], ["horse", "is", "brown"]]
TEXTS = (
    "A man rides a horse. The horse is brown.",
    "A man rides a horse. A dog sits on a couch.",
    "A cat sits on a couch. A dog is near the couch.",
)
Row = dict[str, str]


def scored(folder: Path, seed: int, *more: str) -> Path:
    folder.mkdir()
    rng = random.Random(seed)
    texts = {str(image): rng.choice(TEXTS) for image in range(12)}
    rows = [
        {"image_id": image, "question": "What?", "response": text, "human_score": 1}
        for image, text in texts.items()
    ]
    graphs = [{"image_id": image, "triplets": SCENE} for image in texts]
    answers = write_lines(folder / "answers.jsonl", rows)
    given = ("-r", answers, "-R", write_lines(folder / "graphs.jsonl", graphs))
    ran = here("score", "tri-he", *given, "-o", folder / "out", *more)
    assert ran.returncode == 0, ran.stderr
    return folder / "out"


def sheet_of(path: Path, *arguments: str | Path) -> list[Row]:
    ran = here("label", "scores", *arguments, "--sheet", path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("Look at the image, and score each response from 1 to 5")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def filled(path: Path, rows: Sequence[Row], scores: Mapping[str, object], annotator: str) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        for row in rows:
            writer.writerow({**row, "score": scores.get(row["key"], ""), "annotator": annotator})
    return path


def test_a_sheet_mixes_the_responses_of_runs_to_drawn_images(tmp_path: Path) -> None:
    runs = [scored(tmp_path / name, seed) for seed, name in enumerate("ab")]
    rows = sheet_of(tmp_path / "s.csv", *runs, "--images", "5", "--seed", "3")
    written = [line for run in runs for line in read_rows(run / "items.jsonl")]
    images = {row["image"] for row in rows}
    wanted = {(line["id"], line["response"]) for line in written if line["group_id"] in images}
    assert len(images) == 5
    assert {(row["item"], row["response"]) for row in rows} == wanted
    assert len(rows) == len(wanted), "equal responses to a question are scored once"
    assert not any(row["score"] or row["annotator"] for row in rows)
    assert sheet_of(tmp_path / "t.csv", *reversed(runs), "-n", "5", "--seed", "3") == rows
    assert sheet_of(tmp_path / "u.csv", *runs, "-n", "5", "--seed", "4") != rows
    assert len({row["image"] for row in sheet_of(tmp_path / "v.csv", *runs)}) == 12


def test_filled_sheets_are_compared_with_the_rates(tmp_path: Path) -> None:
    runs = [scored(tmp_path / name, seed) for seed, name in enumerate("ab")]
    rows = sheet_of(tmp_path / "s.csv", *runs)
    rng = random.Random(1)
    people = {name: {row["key"]: rng.randint(1, 5) for row in rows} for name in ("ann", "bob")}
    blank = rows[0]["key"]
    del people["bob"][blank]
    given = [filled(tmp_path / f"{name}.csv", rows, of, name) for name, of in people.items()]
    flags = [word for path in given for word in ("--sheet", path)]
    names = ("--name", "model=a", "--name", "model=b")
    tables, notes = tables_of(*runs, *names, *flags)
    assert "1 row of the sheets has no score yet" in notes
    key_of = {(row["item"], row["response"]): row["key"] for row in rows}
    for model, run in zip("ab", runs, strict=True):
        rates, means, pairs = [], [], 0
        for line in read_rows(run / "items.jsonl"):
            key = key_of[line["id"], line["response"]]
            own = [of[key] for of in people.values() if key in of]
            rates.append(line["scores"]["hallu_q"])
            means.append(statistics.fmean(own))
            pairs += len(own) > 1
        found = next(row for row in tables["human_agreement"] if row["model"] == model)
        assert found["pearson"] == pytest.approx(-statistics.correlation(rates, means))
        assert found["answers"] == 12
        alphas = [row for row in tables["krippendorff_alpha"] if row["model"] == model]
        assert {row["answers"] for row in alphas} == {pairs}
    # In Python, one sheet may be given alone.
    one = analyze(runs[0], options={"sheet": given[0]})
    assert one.tables == analyze(runs[0], options={"sheet": (str(given[0]),)}).tables
    assert one["human_agreement"].rows[0]["answers"] == 12
    # Without a sheet, the scores of the archive count: all equal, so that nothing correlates.
    assert tables_of(runs[0])[0]["human_agreement"][0]["pearson"] is None
    tables, notes = tables_of(runs[0], *flags)
    assert "are in none of the runs" in notes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"score": "6"}, "off-scale"),
        ({"score": "2.5"}, "off-scale"),
        ({"score": "good"}, "off-scale"),
        ({}, "twice"),
    ],
)
def test_rows_that_are_no_scores_are_refused(
    tmp_path: Path, change: dict[str, str], words: str
) -> None:
    run = scored(tmp_path / "run", 0)
    [row, *_] = sheet_of(tmp_path / "s.csv", run)
    path = filled(tmp_path / "f.csv", [row, row], {row["key"]: change.get("score", "4.0")}, "ann")
    said = {
        "off-scale": expected_message("studies.analysis.agreement:off-scale"),
        "twice": expected_message("studies.analysis.agreement:twice"),
    }
    assert_refused(here("analyze", run, "--sheet", path), said[words])


def test_runs_and_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    run = scored(tmp_path / "run", 0, "--no-text")
    refused = here("label", "scores", run, "--sheet", tmp_path / "s.csv")
    assert_refused(refused, expected_message("studies.analysis.agreement:no-responses"))
    assert not (tmp_path / "s.csv").exists()
    (tmp_path / "o.csv").write_text("item,label\n1,supported\n")
    refused = here("analyze", run, "--sheet", tmp_path / "o.csv")
    assert_refused(refused, expected_message("studies.analysis.agreement:no-column"))
    refused = here("label", "scores", run, "--sheet", tmp_path / "s.csv", "-n", "0")
    assert_refused(refused, expected_message("studies.analysis.agreement:no-images"))
