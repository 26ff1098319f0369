"""Files of questions and images, and the run that asks a scripted model about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hallujudge.asking import AskRun

from .pictures import png
from .scripted_llm import ScriptedLlm


def run_of(server: ScriptedLlm, folder: Path, metric: str, *files: Path) -> AskRun:
    """Return a run over files of questions, with the images of a folder."""
    return AskRun(
        benchmark=metric,
        references=files,
        images=folder / "images",
        out=folder / "answers.jsonl",
        model={"llm.url": server.url, "llm.model": "m"},
    )


def images(folder: Path, *names: str) -> None:
    """Write images, each different from the others."""
    for seed, name in enumerate(names):
        path = folder / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(seed))


def written(path: Path, value: Any) -> Path:
    """Write a value as JSON, and return the file."""
    path.write_text(json.dumps(value))
    return path
