"""VideoHallucer: embedded equals remote, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.running import here

from hallujudge.metrics.video_hallucer import SETS

TEXTS = ["Yes", "No.", "", None, "Yes and no", "我不知道", "x" * 600_000, "no, it is not"]


@pytest.mark.parametrize("variant", ["published", "corrected"])
def test_files_are_equal(server: str, tmp_path: Path, variant: str) -> None:
    answers = tmp_path / "answers"
    answers.mkdir()
    for shift, name in enumerate(SETS):
        pairs = [
            {
                "basic": {"video": f"{n}.mp4", "answer": "yes", "predict": text},
                "hallucination": {
                    "video": f"{n}.mp4",
                    "answer": "no",
                    "predict": TEXTS[(n + shift) % len(TEXTS)],
                },
                "type": "ab"[n % 2],
            }
            for n, text in enumerate(TEXTS)
        ]
        (answers / f"{name}.json").write_text(json.dumps(pairs))
    outputs = []
    for name, where in (("embedded", ()), ("remote", ("--server", server))):
        run = here(
            *("score", "video-hallucer", "--responses", answers, "--variant", variant),
            *("--out", tmp_path / name, "--format", "json,html", *where),
        )
        assert run.returncode == 3, run.stderr
        files = ("report.json", "items.jsonl", "report.html")
        outputs.append([(tmp_path / name / file).read_bytes() for file in files] + [run.stdout])
    assert outputs[0] == outputs[1]
    # Only the released parser finds an answer in "Yes and no".
    assert (b"Unparsed: published" in outputs[0][0]) is (variant == "corrected")
