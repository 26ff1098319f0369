"""VidHalluc: embedded equals remote, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.running import here

TEXTS = ["Yes", "No.", "", None, "AC", "running", "我不知道", "x" * 600_000, "Action B, action A"]
CHOICES = {"B": "running on a track", "A": "running", "D": "sitting", "C": "skiing"}


def archives(task: str) -> Mapping[str, Any]:
    """Return option -> content of its file."""
    if task == "bqa":
        clips = {f"c{n}": text for n, text in enumerate(TEXTS) if text is not None}
        answered = {"0": [{"q": "?", "a": clips}], "1": [], "2": [{"q": "?"}], "4": []}
        labels = {f"c{n}": ("Yes", "No")[n % 2] for n in range(3)}
        return {"-r": answered, "-R": {key: [{"q": "?", "a": labels}] for key in "0123"}}
    if task == "sth":
        said = [
            "Scene change: Yes, Locations: from a hall to a road.",
            "no",
            "Yes.",
            "",
            "我不知道",
        ]
        truth = {"Scene change": "Yes", "Locations": "From a kitchen to a road."}
        place = {"model": "a hall", "truth": "a kitchen", "similarity": 0.875}
        return {
            "-r": {str(n): text for n, text in enumerate(said)},
            "-R": {str(n): truth for n in range(len(said) + 1)},
            "--similarities": [place],
        }
    asked = {"Question": "Which?", "video": "v"}
    if task == "tsh":
        labelled = {**asked, "Correct Answer": "BA"}
        return {"-r": {str(n): {**labelled, "Model Answer": t} for n, t in enumerate(TEXTS)}}
    clip = {"Question": "Which?", "Choices": CHOICES, "Correct Answer": "BA"}
    return {"-r": {str(n): {"c": {**clip, "Model Answer": t}} for n, t in enumerate(TEXTS)}}


@pytest.mark.parametrize("variant", ["published", "corrected"])
@pytest.mark.parametrize("task", ["bqa", "mcq", "tsh", "sth"])
def test_files_are_equal(server: str, tmp_path: Path, task: str, variant: str) -> None:
    given: list[str | Path] = []
    for option, content in archives(task).items():
        path = tmp_path / f"{option}.json"
        path.write_text(json.dumps(content))
        given += [option, path]
    outputs = []
    for name, where in (("embedded", ()), ("remote", ("--server", server))):
        out = tmp_path / name
        run = here(
            *("score", f"vidhalluc-{task}", *given, "--variant", variant, "--out", out),
            *("--format", "json,html", *where),
        )
        assert run.returncode in (0, 3), run.stderr
        files = ("report.json", "items.jsonl", "report.html")
        outputs.append([(out / file).read_bytes() for file in files] + [run.stdout])
    assert outputs[0] == outputs[1]
