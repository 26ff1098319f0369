"""RePOPE: every number of the released script, by POPE's labels and by its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.running import here

SPLITS = ("random", "popular", "adversarial")
SCORES = ("accuracy", "precision", "recall", "f1", "yes_ratio")
DRAWN = "drawn_1_coco_adversarial"


def answers(goldens: Path, run: str) -> Path:
    return goldens / ("repope" if run == DRAWN else "pope") / f"{run}.answers.jsonl"


def labels(goldens: Path, labelled: str, split: str) -> Path:
    if labelled == "pope":
        return goldens / "pope" / f"coco_{split}.questions.jsonl"
    return goldens / "repope" / f"coco_repope_{split}.json"


def expected(goldens: Path, part: str) -> Any:
    return json.loads((goldens / "repope" / "expected.json").read_text())[part]


def agree(scores: Any, wanted: Any) -> None:
    for name in SCORES:
        found = scores[name]
        value = found["value"] if isinstance(found, dict) else found
        assert value == pytest.approx(wanted[name], abs=1e-12), name


RUNS = [*(f"llava-1.5-7b_coco_{split}_greedy" for split in SPLITS), DRAWN]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("labelled", ["pope", "repope"])
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_scores_are_those_of_the_released_script(
    goldens: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    run: str,
    labelled: str,
    *,
    remote: bool,
) -> None:
    wanted = expected(goldens, "scores")[run][labelled]
    split = next(split for split in SPLITS if split in run)
    server = ("--server", request.getfixturevalue("server")) if remote else ()
    done = here(
        *("score", "pope", "--variant", "repope", "-r", answers(goldens, run)),
        *("-R", labels(goldens, labelled, split), "-o", tmp_path, "--count-empty"),
        *server,
    )
    assert done.returncode == (3 if wanted["unparsed"] else 0), done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    agree(report["scores"], wanted)
    assert [report["totals"][name] for name in ("tp", "fp", "tn", "fn", "unparsed")] == [
        wanted[name] for name in ("tp", "fp", "tn", "fn", "unparsed")
    ]
    assert report["coverage"]["items"] == wanted["questions"]
    assert report["scores"]["unparsed_rate"]["value"] == pytest.approx(
        wanted["unparsed"] / wanted["questions"], abs=1e-12
    )


def test_one_run_shows_both_labels_of_all_splits(goldens: Path, tmp_path: Path) -> None:
    given = [
        part
        for split in SPLITS
        for part in (
            *("-r", answers(goldens, f"llava-1.5-7b_coco_{split}_greedy")),
            *("-R", labels(goldens, "pope", split), "-R", labels(goldens, "repope", split)),
        )
    ]
    done = here("score", "pope", "--variant", "repope", *given, "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "815 answers are to questions that the labels dropped" in done.stderr
    found = json.loads((tmp_path / "labels.json").read_text())
    before, after = found["sets"]
    report = json.loads((tmp_path / "report.json").read_text())
    assert {name: score["value"] for name, score in report["scores"].items()} == after["scores"]
    for split in SPLITS:
        wanted = expected(goldens, "scores")[f"llava-1.5-7b_coco_{split}_greedy"]
        agree(before["groups"][split], wanted["pope"])
        agree(after["groups"][split], wanted["repope"])
        agree(report["groups"]["category"][split], wanted["repope"])
    shown = here("analyze", tmp_path, "--table", "label_changes", "-f", "json")
    rows = json.loads(shown.stdout)["analyses"]["label_changes"]["rows"]
    for row in rows:
        wanted = expected(goldens, "labels")[row["category"]]
        assert row == {
            "category": row["category"],
            "before": wanted["pope_questions"],
            "after": wanted["repope_questions"],
            "kept": wanted["kept"],
            "yes_to_no": wanted["flipped_yes_to_no"],
            "no_to_yes": wanted["flipped_no_to_yes"],
            "dropped_yes": wanted["dropped_yes"],
            "dropped_no": wanted["dropped_no"],
            "text_differs": wanted["text_differs"],
        }
    assert [row["category"] for row in rows] == list(SPLITS)


def logged(goldens: Path, tool: str) -> list[dict[str, Any]]:
    """All answers as a tool logs them: with their categories, once for all, or one by one."""
    rows: list[dict[str, Any]] = []
    for split in SPLITS:
        said = {
            row["question_id"]: row["text"]
            for row in read_lines(answers(goldens, f"llava-1.5-7b_coco_{split}_greedy"))
        }
        for row in read_lines(labels(goldens, "pope", split)):
            rows.append({**row, "category": split, "said": said[row["question_id"]]})
    if tool == "lmms-eval":
        return [
            {
                "doc_id": place,
                "doc": {
                    **{name: row[name] for name in ("question_id", "category")},
                    **{"question": row["text"], "image_source": row["image"]},
                },
                "target": row["label"],
                "filtered_resps": [row["said"]],
                "pope_accuracy": {"question_id": row["question_id"], "category": row["category"]},
            }
            for place, row in enumerate(rows)
        ]
    merged: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        known = merged.setdefault(
            (row["image"], row["text"]),
            {
                "index": len(merged),
                "question": row["text"],
                "image_path": row["image"],
                "answer": row["label"].capitalize(),
                "category": "",
                "prediction": row["said"],
            },
        )
        known["category"] += f",{row['category']}" if known["category"] else row["category"]
    return list(merged.values())


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("tool", ["lmms-eval", "vlmevalkit"])
def test_logs_of_tools_are_scored_by_both_labels(goldens: Path, tmp_path: Path, tool: str) -> None:
    log = tmp_path / "log.json"
    log.write_text(json.dumps(logged(goldens, tool)))
    given = [
        ("-R", labels(goldens, each, split)) for each in ("pope", "repope") for split in SPLITS
    ]
    done = here(
        *("score", "pope", "--variant", "repope", "-r", log, "-o", tmp_path / "out"),
        *(part for pair in given for part in pair),
    )
    assert done.returncode == 0, done.stderr
    before, after = json.loads((tmp_path / "out" / "labels.json").read_text())["sets"]
    for split in SPLITS:
        wanted = expected(goldens, "scores")[f"llava-1.5-7b_coco_{split}_greedy"]
        agree(before["groups"][split], wanted["pope"])
        agree(after["groups"][split], wanted["repope"])
