"""Known answers, written in the layouts of other tools, with the keys that the tools write."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from support.archive_values import (
    CAPTIONS,
    QUESTIONS,
    Caption,
    Question,
    Row,
    json_lines,
    packed,
    write_lines,
    write_table,
)
from support.inspect_samples import write_inspect_eval, write_inspect_json, write_inspect_zstd
from support.lmms_samples import chair_samples, pope_samples, write_harness, write_lmms

__all__ = [
    "CAPTIONS",
    "CAPTION_LAYOUTS",
    "QUESTIONS",
    "QUESTION_LAYOUTS",
    "Caption",
    "Question",
    "json_lines",
    "packed",
    "write_lines",
    "write_table",
]


def _kit_rows(questions: Sequence[Question]) -> list[Row]:
    """Each image and question once, with the categories that it is asked in."""
    rows: dict[tuple[str, str], Row] = {}
    for q in questions:
        row = rows.get((q.image, q.text))
        if row is not None:
            row["category"] += f",{q.category}"
            continue
        rows[q.image, q.text] = {
            "index": len(rows),
            "question": q.text,
            "answer": q.label.capitalize(),
            "category": q.category,
            "image_path": q.image,
            "prediction": q.answer,
        }
    return list(rows.values())


def _write_kit(suffix: str) -> Callable[[Path, Sequence[Question]], Path]:
    def write(folder: Path, questions: Sequence[Question]) -> Path:
        rows = _kit_rows(questions)
        path = folder / f"model/T20250102-030405/model_POPE.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(path, rows)
        return path

    return write


def _plain_rows(questions: Sequence[Question]) -> list[Row]:
    return [
        {
            "uid": f"{q.category}/{q.id}",
            "model_output": q.answer,
            "gt": q.label,
            "picture": q.image,
            "category": q.category,
        }
        for q in questions
    ]


def _write_plain(suffix: str) -> Callable[[Path, Sequence[Question]], Path]:
    def write(folder: Path, questions: Sequence[Question]) -> Path:
        path = folder / f"plain.{suffix}"
        if suffix == "jsonl":
            return write_lines(path, _plain_rows(questions))
        return write_table(path, _plain_rows(questions))

    return write


PLAIN_MAP = {"id": "uid", "response": "model_output", "label": "gt", "image": "picture"}
"""Common key -> key of the plain tables."""

QUESTION_LAYOUTS: dict[str, Callable[[Path, Sequence[Question]], Path]] = {
    **{
        f"lmms-eval {layout}": write_lmms(layout, "pope", pope_samples)
        for layout in ("A", "A'", "B1", "B2", "C")
    },
    "lm-evaluation-harness": write_harness,
    **{f"VLMEvalKit {suffix}": _write_kit(suffix) for suffix in ("xlsx", "tsv", "json")},
    "Inspect AI json": write_inspect_json,
    "Inspect AI eval": write_inspect_eval,
    "Inspect AI eval zstd": write_inspect_zstd,
    **{
        f"plain {suffix}": _write_plain(suffix)
        for suffix in ("jsonl", "json", "csv", "tsv", "xlsx", "parquet")
    },
}
"""Layout -> function that writes answers with their labels into a folder, and returns the file."""


def _sentences(captions: Sequence[Caption]) -> Row:
    entries = [
        {
            "image_id": c.image_id,
            "caption": c.text,
            "mscoco_hallucinated_words": [["cat", "cat"]],
            "mscoco_gt_words": list(c.objects),
            "mscoco_generated_words": ["dog"],
            "hallucination_idxs": [1],
            "words": ["dog"],
            "metrics": {"CHAIRs": 1, "CHAIRi": 0.5, "Recall": 1.0, "Len": 3},
        }
        for c in captions
    ]
    overall = {"CHAIRs": 0.5, "CHAIRi": 0.25, "Recall": 0.5, "Len": 0.1}
    return {"sentences": entries, "overall_metrics": overall}


def _write_json(name: str, make: Callable[[Sequence[Caption]], Any]) -> Callable[..., Path]:
    def write(folder: Path, captions: Sequence[Caption]) -> Path:
        path = folder / name
        path.write_text(json.dumps(make(captions), ensure_ascii=False), encoding="utf-8")
        return path

    return write


def _write_caption_lines(folder: Path, captions: Sequence[Caption]) -> Path:
    rows = [{"image_id": c.image_id, "caption": c.text} for c in captions]
    return write_lines(folder / "model_generated_captions.json", rows)


CAPTION_LAYOUTS: dict[str, tuple[bool, Callable[[Path, Sequence[Caption]], Path]]] = {
    **{
        f"lmms-eval {layout}": (True, write_lmms(layout, "coco_cap_chair", chair_samples))
        for layout in ("A", "A'", "B1", "B2", "C")
    },
    "CHAIR output": (True, _write_json("chair_results.json", _sentences)),
    "imgToEval": (
        False,
        _write_json(
            "model_chair.json",
            lambda captions: {
                "overall": {"Bleu_1": 0.5, "CIDEr": 0.1},
                "imgToEval": {
                    str(c.image_id): {"image_id": c.image_id, "caption": c.text, "CIDEr": 0.1}
                    for c in captions
                },
            },
        ),
    ),
    "caption list": (
        False,
        _write_json(
            "captions.json",
            lambda captions: [{"image_id": c.image_id, "caption": c.text} for c in captions],
        ),
    ),
    "caption lines": (False, _write_caption_lines),
}
"""Layout -> whether it holds the objects of the images, and the function that writes it."""
