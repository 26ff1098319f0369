"""Real answers and captions in the layouts of other tools, scored as the direct commands do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from oracles import vlmevalkit_pope as oracle
from support.archive_samples import (
    CAPTION_LAYOUTS,
    PLAIN_MAP,
    QUESTION_LAYOUTS,
    Caption,
    Question,
    write_table,
)

from hallujudge.metrics import Report
from hallujudge.metrics.answers.yes_no import YES_NO_PARSERS
from hallujudge.sdk import Client, InputOptions, score_all

SPLITS = ("adversarial", "popular", "random")
TABLE = {"Overall": "f1", "acc": "accuracy", "precision": "precision", "recall": "recall"}


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@cache
def questions(goldens: Path) -> tuple[Question, ...]:
    """The three splits, one after the other: question ids begin again in each."""
    found = []
    for split in SPLITS:
        name = f"llava-1.5-7b_coco_{split}_greedy.answers.jsonl"
        answers = {row["question_id"]: row["text"] for row in rows_of(goldens / "pope" / name)}
        found += [
            Question(
                id=row["question_id"],
                category=split,
                image=row["image"],
                text=row["text"],
                label=row["label"],
                answer=answers[row["question_id"]],
            )
            for row in rows_of(goldens / "pope" / f"coco_{split}.questions.jsonl")
        ]
    return tuple(found)


@cache
def captions(goldens: Path) -> tuple[Caption, ...]:
    folder = goldens / "chair"
    objects = json.loads((folder / "coco_reference_objects.json").read_text())
    path = folder / "pope_short_caption_instructblip.captions.json"
    rows, decoder, text = [], json.JSONDecoder(), path.read_text(encoding="utf-8")
    while text := text.lstrip():
        row, end = decoder.raw_decode(text)
        rows += row if isinstance(row, list) else [row]
        text = text[end:]
    return tuple(
        Caption(
            image_id=row["image_id"],
            text=row["text"],
            objects=tuple(objects[str(row["image_id"])]),
        )
        for row in rows
    )


def scored(metric: str, path: Path, **more: Any) -> Report:
    with Client.embedded() as client:
        return client.score(metric, responses=path, keep_items=False, **more)


def values(report: Report) -> dict[str, float | None]:
    return {name: score.value for name, score in report.scores.items()}


@cache
def wanted_scores(goldens: Path) -> dict[str, Any]:
    """Return counts over the three files, from the published scores of each."""
    found = json.loads((goldens / "pope" / "expected_scores.json").read_text())
    total: dict[str, Any] = {
        name: sum(row[name] for row in found.values()) for name in ("n", "tp", "fp", "tn", "fn")
    }
    return total


@pytest.mark.parametrize(
    "layout", [name for name in QUESTION_LAYOUTS if not name.startswith("VLM")]
)
def test_answers_have_the_published_scores(goldens: Path, tmp_path: Path, layout: str) -> None:
    path = QUESTION_LAYOUTS[layout](tmp_path, questions(goldens))
    key_map = PLAIN_MAP if layout.startswith("plain") else {}
    report = scored("pope", path, inputs=InputOptions(key_map=key_map))
    wanted = wanted_scores(goldens)
    found = values(report)
    assert report.coverage.items == wanted["n"] == 9000
    assert found["accuracy"] == pytest.approx((wanted["tp"] + wanted["tn"]) / 9000, rel=1e-12)
    assert found["precision"] == pytest.approx(
        wanted["tp"] / (wanted["tp"] + wanted["fp"]), rel=1e-12
    )
    assert found["recall"] == pytest.approx(wanted["tp"] / (wanted["tp"] + wanted["fn"]), rel=1e-12)
    assert found["yes_ratio"] == pytest.approx((wanted["tp"] + wanted["fp"]) / 9000, rel=1e-12)


@pytest.mark.parametrize("layout", [name for name in QUESTION_LAYOUTS if name.startswith("VLM")])
def test_vlmevalkits_table_is_exact(goldens: Path, tmp_path: Path, layout: str) -> None:
    path = QUESTION_LAYOUTS[layout](tmp_path, questions(goldens))
    report = scored("pope", path, variant="vlmevalkit")
    table = oracle_table(questions(goldens))
    lines = {"Overall": report.scores, **report.groups["category"]}
    assert lines.keys() == table.keys()
    for split, wanted in table.items():
        for theirs, ours in TABLE.items():
            value = lines[split][ours].value
            assert value is not None
            assert 100 * value == pytest.approx(wanted[theirs], rel=1e-12), (split, ours)


def oracle_table(known: Sequence[Question]) -> dict[str, dict[str, float]]:
    read = YES_NO_PARSERS["vlmevalkit"]
    rows = [
        oracle.Row(q.category, q.label.capitalize(), read(q.answer or "") or "unknown")
        for q in known
    ]
    return oracle.table(rows)


@pytest.mark.parametrize("layout", CAPTION_LAYOUTS)
def test_captions_have_the_published_scores(goldens: Path, tmp_path: Path, layout: str) -> None:
    with_objects, write = CAPTION_LAYOUTS[layout]
    path = write(tmp_path, captions(goldens))
    references = None if with_objects else goldens / "chair" / "coco_reference_objects.json"
    found = values(scored("chair", path, references=references))
    expected = json.loads((goldens / "chair" / "expected_scores.json").read_text())
    wanted = expected["pope_short_caption_instructblip"]
    for name in ("chair_i", "chair_s", "recall"):
        assert found[name] == pytest.approx(wanted[name], rel=1e-12), name


def test_llavas_files_are_joined(goldens: Path, tmp_path: Path) -> None:
    """Answers by id, LLaVA's question file with categories, and one file of labels for each."""
    asked, answers = [], []
    for number, q in enumerate(questions(goldens)):
        text = f"{q.text}\nAnswer the question using a single word or phrase."
        row = {"question_id": number, "image": q.image, "text": text, "category": q.category}
        asked.append(row)
        answers.append({"question_id": number, "prompt": text, "text": q.answer, "model_id": "m"})
    for name, rows in (("questions.jsonl", asked), ("answers.jsonl", list(reversed(answers)))):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    labels = [goldens / "pope" / f"coco_{split}.questions.jsonl" for split in SPLITS]
    report = scored(
        "pope", tmp_path / "answers.jsonl", references=[tmp_path / "questions.jsonl", *labels]
    )
    wanted = wanted_scores(goldens)
    assert values(report)["accuracy"] == (wanted["tp"] + wanted["tn"]) / 9000
    published = json.loads((goldens / "pope" / "expected_scores.json").read_text())
    for split in SPLITS:
        wanted_f1 = published[f"llava-1.5-7b_coco_{split}_greedy"]["f1"]
        assert report.groups["category"][split]["f1"].value == pytest.approx(wanted_f1, rel=1e-12)


def test_an_overview_of_hallusion_bench_in_vlmevalkits_layout(
    goldens: Path, tmp_path: Path
) -> None:
    """The table leaves out questions without an image, which the variant image-only counts."""
    path = goldens / "hallusion_bench" / "drawn_1.predictions.json"
    rows = json.loads(path.read_text(encoding="utf-8"))
    table = [
        {
            "index": "_".join(
                ("hb", row["category"], row["subcategory"], str(row["set_id"]),
                 str(row["figure_id"]), str(row["question_id"]))
            ).replace(row["subcategory"], "topic"),
            "question": row["question"],
            "answer": "Yes" if str(row["gt_answer"]) == "1" else "No",
            "category": row["category"],
            "l2-category": row["subcategory"],
            "prediction": row["model_prediction"],
        }
        for row in rows
        if str(row["visual_input"]) != "0"
    ]  # fmt: skip
    assert len(table) == 951
    write_table(tmp_path / "kit" / "model_HallusionBench.xlsx", table)
    with Client.embedded() as client:
        overview = score_all(
            tmp_path / "kit", tmp_path / "out", client=client, references={"hallusion-bench": path}
        )
        alone = score_all(tmp_path / "kit", tmp_path / "alone", client=client)
        direct = client.score("hallusion-bench", responses=path, variant="image-only")
    assert (overview.left_out, alone.left_out) == ((), ())
    [run], [run_alone] = overview.runs, alone.runs
    assert values(run.report) == values(direct)
    # Only the benchmark's file distinguishes edited figures from original ones.
    unknown = {"easy_pair_accuracy": None, "hard_pair_accuracy": None}
    assert values(run_alone.report) == {**values(direct), **unknown}
