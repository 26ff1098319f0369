"""Small inputs of Tri-HE, and runs of the command line on them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support import scripted_llm as llm
from support.qa_samples import write_lines
from support.running import here

__all__ = ["FALSE", "SCENE", "TRUE", "answer", "flags", "judge_step", "report_of", "score"]

SCENE = [["man", "riding", "horse"], ["horse", "is", "brown"]]
TRUE, FALSE = ["man", "riding", "horse"], ["dog", "near", "horse"]


def answer(image: str, *claims: object, question: str = "What?", **more: Any) -> dict[str, Any]:
    """Return a line of a file of claims."""
    return {"image_id": image, "question": question, "claims": list(claims)} | more


def flags(server: llm.ScriptedLlm) -> tuple[str, ...]:
    """Return the options of a language model as the judge."""
    return ("--judge", "llm", "--llm-url", server.url, "--llm-model", "m")


def score(
    folder: Path,
    answers: Sequence[Any],
    *more: str | Path,
    graphs: Sequence[Any] | None = None,
    kind: str = "--claims",
) -> subprocess.CompletedProcess[str]:
    """Run ``hallujudge score tri-he`` on answers about images with the same scene graph."""
    images = {row["image_id"] for row in answers}
    given = [{"image_id": i, "triplets": SCENE} for i in sorted(images)]
    return here(
        *("score", "tri-he", kind, write_lines(folder / "answers.jsonl", answers)),
        "--references",
        write_lines(folder / "graphs.jsonl", given if graphs is None else graphs),
        *(() if "--out" in more else ("--out", folder / "out")),
        *(() if {"--out", "--resume"} & {*more} else ("--overwrite",)),
        *more,
    )


def report_of(out: Path) -> dict[str, Any]:
    """Return the report of a run."""
    content: dict[str, Any] = json.loads((out / "report.json").read_text(encoding="utf-8"))
    return content


def judge_step(_number: int, body: llm.Body) -> llm.Reply:
    """Reply as a judge that compares claims word for word, and refuses prompts with "REFUSE"."""
    if "REFUSE" in llm.prompt_of(body):
        return llm.completion(None, refusal="I'd rather not.")
    return llm.by_scene_graph(0, body)
