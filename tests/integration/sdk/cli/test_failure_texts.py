"""``--failure-text``: what a user's own script writes in place of an answer is no answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.running import here

ANSWERS = (("1", "Yes."), ("2", "The call broke. yes"), ("3", "Gateway closed, no"))


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.jsonl"
    records = [{"question_id": n, "response": text, "label": "yes"} for n, text in ANSWERS]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def unscored(answers: Path, *more: str) -> dict[str, str]:
    """Return id -> reason of the unscored answers."""
    out = answers.parent / "run"
    ended = here("score", "pope", "-r", answers, "-o", out, "--overwrite", *more)
    assert ended.returncode in (0, 3), ended.stderr
    lines = map(json.loads, (out / "items.jsonl").read_text().splitlines())
    return {line["id"]: line["reason"] for line in lines if line["outcome"] == "unscored"}


def test_texts_and_files_of_texts_mark_failed_calls(answers: Path) -> None:
    listed = answers.with_name("failures.txt")
    listed.write_text("gateway closed*\n")
    texts = ("--failure-text", "the call broke. yes", "--failure-text", str(listed))
    failed = "RESPONSE_FAILED"
    assert unscored(answers) == {}
    assert unscored(answers, *texts[:2]) == {"2": failed}
    assert unscored(answers, *texts) == {"2": failed, "3": failed}


def test_a_file_that_is_no_text_is_named(answers: Path) -> None:
    packed = answers.with_name("failures.bin")
    packed.write_bytes(b"\xff\xfe\x00")
    given = ("-o", answers.parent / "run", "--failure-text", str(packed))
    ended = here("score", "pope", "-r", answers, *given)
    assert ended.returncode == 2
    assert f"--failure-text {packed}: not UTF-8 text; save it as UTF-8" in ended.stderr
