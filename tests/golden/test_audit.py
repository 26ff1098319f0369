"""Audits of real POPE answers: tools' own rules give the printed numbers, the rest adds up."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from oracles import vlmevalkit_pope as oracle
from support.archive_samples import QUESTION_LAYOUTS, Question

from hallujudge.metrics.answers.yes_no import YES_NO_PARSERS
from hallujudge.sdk.audit import Audit, AuditOptions, ScoreAudit, audit

SPLITS = ("adversarial", "popular", "random")
NAMES = {"Overall": "f1", "acc": "accuracy", "precision": "precision", "recall": "recall"}


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def answers_of(goldens: Path, split: str) -> Path:
    return goldens / "pope" / f"llava-1.5-7b_coco_{split}_greedy.answers.jsonl"


def questions(goldens: Path) -> list[Question]:
    """All splits; every ninth answer gets a full stop, and some calls failed."""
    found = []
    for split in SPLITS:
        texts = {row["question_id"]: row["text"] for row in rows_of(answers_of(goldens, split))}
        for n, row in enumerate(rows_of(goldens / "pope" / f"coco_{split}.questions.jsonl")):
            text = texts[row["question_id"]]
            answer = "Failed to obtain answer via API." if n % 101 == 7 else text
            answer = f"{text}." if n % 9 == 0 else answer
            found.append(
                Question(
                    id=row["question_id"],
                    category=split,
                    image=row["image"],
                    text=row["text"],
                    label=row["label"],
                    answer=answer,
                )
            )
    return found


def by_name(found: Audit) -> Mapping[str, ScoreAudit]:
    for score in found.scores:
        assert sum(score.shares.values(), Fraction(0)) == score.ours - score.first
    return {score.name: score for score in found.scores}


def items_add_up(found: Audit, name: str) -> None:
    totals: dict[str, Fraction] = {}
    for item in found.items():
        totals[item.cause] = totals.get(item.cause, Fraction(0)) + item.shares[name]
    shares = by_name(found)[name].shares
    assert totals == {cause: shares[cause] for cause in totals}
    assert all(cause in totals for cause, share in list(shares.items())[2:] if share)


def chair_output(goldens: Path) -> dict[str, Any]:
    """Real captions with the words that the published procedure found, in its output."""
    folder, name = goldens / "chair", "pope_short_caption_instructblip"
    objects = json.loads((folder / "coco_reference_objects.json").read_text())
    found = {row["image_id"]: row for row in rows_of(folder / f"{name}.expected.jsonl")}
    decoder, text = json.JSONDecoder(), (folder / f"{name}.captions.json").read_text("utf-8")
    sentences = []
    while text := text.lstrip():
        rows, end = decoder.raw_decode(text)
        text = text[end:]
        for row in rows if isinstance(rows, list) else [rows]:
            image = row["image_id"]
            sentences.append(
                {
                    "image_id": image,
                    "caption": row["text"],
                    "mscoco_hallucinated_words": found[image]["hallucinated"],
                    "mscoco_gt_words": objects[str(image)],
                    "mscoco_generated_words": [name for _, name in found[image]["mentioned"]],
                    "metrics": {"CHAIRs": int(bool(found[image]["hallucinated"]))},
                }
            )
    wanted = json.loads((folder / "expected_scores.json").read_text())[name]
    overall = {"CHAIRs": "chair_s", "CHAIRi": "chair_i", "Recall": "recall"}
    return {
        "sentences": sentences,
        "overall_metrics": {theirs: wanted[ours] for theirs, ours in overall.items()},
    }


def test_chairs_numbers_are_rederived_and_ours_are_the_same(goldens: Path, tmp_path: Path) -> None:
    output = chair_output(goldens)
    path = tmp_path / "chair.json"
    path.write_text(json.dumps(output))
    found = audit(path)
    for score in by_name(found).values():
        assert {cause for cause, share in score.shares.items() if share} <= {"rounding"}
        assert abs(score.shares["rounding"]) < Fraction(1, 10**12)
    assert set(by_name(found)) == {"chair_i", "chair_s", "recall"}
    # Verdicts that are turned are found again, to the item.
    turned = output["sentences"][10]
    turned["mscoco_hallucinated_words"] = [["cat", "cat"], *turned["mscoco_hallucinated_words"]]
    turned["metrics"]["CHAIRs"] = 1
    path.write_text(json.dumps(output))
    assert {(i.cause, i.row.id) for i in audit(path).items()} == {
        ("copied verdicts", str(turned["image_id"]))
    }


@pytest.mark.parametrize("split", SPLITS)
def test_popes_published_numbers_are_rederived(goldens: Path, split: str) -> None:
    answers = answers_of(goldens, split)
    wanted = json.loads((goldens / "pope" / "expected_scores.json").read_text())
    scores = wanted[f"llava-1.5-7b_coco_{split}_greedy"]
    names = ("accuracy", "precision", "recall", "f1", "yes_ratio")
    found = audit(
        answers,
        AuditOptions(
            references=(goldens / "pope" / f"coco_{split}.questions.jsonl",),
            printed=tuple(f"{name}={scores[name]:.3f}" for name in names),
        ),
    )
    assert found.harness == "llava"
    for name, score in by_name(found).items():
        assert float(score.rederived) == pytest.approx(scores[name], rel=1e-12)
        assert {cause for cause, share in score.shares.items() if share} <= {"rounding"}
        assert abs(score.shares["rounding"]) <= Fraction(1, 2000)


def test_a_lost_answer_shifts_the_labels_of_scripts_that_join_by_order(
    goldens: Path, tmp_path: Path
) -> None:
    asked = rows_of(goldens / "pope" / "coco_popular.questions.jsonl")
    answers = [row for row in rows_of(answers_of(goldens, "popular")) if row["question_id"] != 1500]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in answers))
    questions = goldens / "pope" / "coco_popular.questions.jsonl"
    found = audit(path, AuditOptions(references=(questions,)))
    read = YES_NO_PARSERS["published"]
    said = [read(row["text"]) for row in answers]
    shifted = sum(s == q["label"] for s, q in zip(said, asked, strict=False))
    accuracy = by_name(found)["accuracy"]
    assert accuracy.rederived == Fraction(shifted, 2999)
    assert accuracy.rederived == Fraction(1492, 2999)
    assert accuracy.ours == Fraction(2576, 2999)
    assert accuracy.shares["labels by order"] == accuracy.ours - accuracy.rederived
    items_add_up(found, "accuracy")


def test_vlmevalkits_table_is_rederived(goldens: Path, tmp_path: Path) -> None:
    path = QUESTION_LAYOUTS["VLMEvalKit json"](tmp_path, questions(goldens))
    rows, read = json.loads(path.read_text()), YES_NO_PARSERS["vlmevalkit"]
    said = [read(row["prediction"]) or "unknown" for row in rows]
    table = oracle.table(
        [oracle.Row(r["category"], r["answer"], s) for r, s in zip(rows, said, strict=True)]
    )
    with path.with_name("model_POPE_score.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, ["split", *NAMES])
        writer.writeheader()
        writer.writerows({"split": split, **line} for split, line in table.items())
    found = audit(path)
    scores = by_name(found)
    right = [r["answer"].lower() == s for r, s in zip(rows, said, strict=True)]
    for theirs, ours in NAMES.items():
        assert float(scores[ours].rederived) == pytest.approx(table["Overall"][theirs] / 100)
        assert scores[ours].shares["not explained"] == 0
    # Once for each category, then once for each question.
    accuracy = scores["accuracy"]
    assert accuracy.rederived.limit_denominator(9000) == accuracy.rederived
    once = Fraction(sum(right), len(rows))
    assert accuracy.shares["categories"] == once - accuracy.rederived
    failed = [row["prediction"].startswith("Failed") for row in rows]
    left = len(rows) - sum(failed)
    assert accuracy.shares["failure texts"] == Fraction(sum(right), left) - once
    assert next(c for c in found.causes if c.name == "failure texts").items == sum(failed) > 0
    items_add_up(found, "accuracy")
    items_add_up(found, "f1")


def test_lmms_evals_numbers_are_rederived(goldens: Path, tmp_path: Path) -> None:
    asked = questions(goldens)
    path = QUESTION_LAYOUTS["lmms-eval C"](tmp_path, asked)
    right = [str(q.answer).lower().strip() == q.label for q in asked]
    results = {"results": {"pope": {"pope_accuracy,none": sum(right) / len(asked)}}}
    name = path.name.replace("samples_pope.jsonl", "results.json")
    path.with_name(name).write_text(json.dumps(results))
    found = audit(path)
    accuracy = by_name(found)["accuracy"]
    assert accuracy.rederived == Fraction(sum(right), 9000)
    assert accuracy.printed is not None
    assert float(accuracy.printed.value) == sum(right) / 9000
    assert accuracy.shares["not explained"] == 0
    # The full stop that lmms-eval does not read, in right answers.
    stops = sum(str(q.answer).lower() == f"{q.label}." for q in asked)
    left = 9000 - sum(str(q.answer).startswith("Failed") for q in asked)
    assert accuracy.shares["answer parser"] == Fraction(stops, left)
    items_add_up(found, "accuracy")
