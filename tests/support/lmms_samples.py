"""Layouts of lmms-eval and lm-evaluation-harness, whose rows have the same keys."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.archive_values import Caption, Question, Row, write_lines

__all__ = ["chair_samples", "pope_samples", "write_harness", "write_lmms"]

_LATEST = "llava__v1.5"


def _pope_scores(question: Question) -> Row:
    prediction = (question.answer or "").lower().strip()
    score = {
        "question_id": str(question.id),
        "score": float(prediction == question.label),
        "prediction": prediction,
        "ground_truth": question.label,
    }
    names = ("pope_accuracy", "pope_precision", "pope_recall", "pope_f1_score", "pope_yes_ratio")
    return dict.fromkeys(names, score)


def _pope_doc(question: Question) -> Row:
    return {
        "id": str(question.id),
        "question_id": str(question.id),
        "question": question.text,
        "answer": question.label,
        "image_source": question.image,
        "category": question.category,
    }


def _chair_scores(caption: Caption) -> Row:
    score = {"answer": list(caption.objects), "pred": ["dog"], "image_id": caption.image_id}
    return dict.fromkeys(("coco_cap_chair_i", "coco_cap_chair_s", "coco_cap_chair_recall"), score)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    response: str | None
    target: str
    prompt: str
    doc: Row
    scores: Row


def pope_samples(questions: Sequence[Question]) -> list[_Sample]:
    return [
        _Sample(
            response=q.answer,
            target=q.label,
            prompt=f"{q.text}\nAnswer the question using a single word or phrase.",
            doc=_pope_doc(q),
            scores=_pope_scores(q),
        )
        for q in questions
    ]


def chair_samples(captions: Sequence[Caption]) -> list[_Sample]:
    return [
        _Sample(
            response=c.text,
            target="",
            prompt="Describe the image.",
            doc={"image_id": c.image_id},
            scores=_chair_scores(c),
        )
        for c in captions
    ]


def _hashes() -> Row:
    return {"doc_hash": "d", "prompt_hash": "p", "target_hash": "t"}


def _layout_a(samples: Sequence[_Sample]) -> Row:
    logs = [
        {
            "doc_id": number,
            "target": s.target,
            "doc": s.doc,
            "arguments": [[s.prompt, "{}"]],
            "resps": [[s.response]],
            "filtered_resps": [s.response],
            **s.scores,
        }
        for number, s in enumerate(samples)
    ]
    return {"args": {"model": "llava"}, "model_configs": {}, "logs": logs, "time": "0102_0304"}


def _layout_b1(samples: Sequence[_Sample]) -> list[Row]:
    return [
        {
            "doc_id": number,
            "doc": s.doc,
            "target": s.target,
            "arguments": {"gen_args_0": {"arg_0": s.prompt, "arg_1": {}}},
            "resps": [[s.response]],
            "filtered_resps": [s.response],
            "input": s.prompt,
            **_hashes(),
            **s.scores,
        }
        for number, s in enumerate(samples)
    ]


def _layout_b2(samples: Sequence[_Sample]) -> list[Row]:
    return [
        {
            "doc_id": number,
            "target": s.target,
            "filtered_resps": [s.response],
            "doc_hash": "d",
            **s.scores,
            "input": s.prompt,
        }
        for number, s in enumerate(samples)
    ]


def _layout_c(samples: Sequence[_Sample]) -> list[Row]:
    return [
        {
            "doc_id": number,
            "target": s.target,
            "filtered_resps": s.response,
            "token_counts": [{"output_tokens": 3}],
            "input_media": [{"type": "image"}],
            "input": s.prompt,
            **s.scores,
        }
        for number, s in enumerate(samples)
    ]


def write_lmms(
    layout: str, task: str, make: Callable[..., list[_Sample]]
) -> Callable[[Path, Sequence[Any]], Path]:
    lines = {"A'": _layout_b1, "B1": _layout_b1, "B2": _layout_b2, "C": _layout_c}

    def write(folder: Path, known: Sequence[Any]) -> Path:
        samples = make(known)
        if layout == "A":
            path = folder / f"0102_0304_llava_model_args_abcdef/{task}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(_layout_a(samples), indent=4), encoding="utf-8")
            return path
        names = {"A'": f"samples_{task}_2024-09-09T10-00-00.123.jsonl"}
        name = names.get(layout, f"{_LATEST}/20250102_030405_samples_{task}.jsonl")
        path = write_lines(folder / name, lines[layout](samples))
        summary = {"results": {task: {"alias": task}}, "configs": {}, "versions": {}}
        path.with_name("20250102_030405_results.json").write_text(json.dumps(summary))
        return path

    return write


def write_harness(folder: Path, questions: Sequence[Question]) -> Path:
    """Two filters repeat every sample."""
    rows = [
        {
            "doc_id": number,
            "doc": _pope_doc(q),
            "target": q.label,
            "arguments": {"gen_args_0": {"arg_0": q.text, "arg_1": {"until": []}}},
            "resps": [[q.answer]],
            "filtered_resps": [q.answer if chosen == "none" else "[invalid]"],
            "filter": chosen,
            "metrics": ["exact_match"],
            **_hashes(),
            "exact_match": 0.0,
        }
        for number, q in enumerate(questions)
        for chosen in ("none", "strict-match")
    ]
    return write_lines(folder / "model/samples_pope_2025-01-02T03-04-05.678.jsonl", rows)
