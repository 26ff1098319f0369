"""Inputs of odd kinds: each is refused with one sentence that blames the right thing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.messages import expected_message
from support.running import assert_refused, here

from hallujudge.sdk.archives.json_files import named

CAPTIONS = [{"image_id": n, "caption": "A dog on a couch."} for n in range(3)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps(row) for row in CAPTIONS]
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    (tmp_path / "r.json").write_text(json.dumps({str(n): ["dog"] for n in range(3)}))
    (tmp_path / "utf32.jsonl").write_text("\n".join(lines), encoding="utf-32")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    many = {str(n): [f"thing{n}x{k}" for k in range(9)] for n in range(9)}
    (tmp_path / "many.json").write_text(json.dumps(many))
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty").mkdir()
    (tmp_path / "inf.toml").write_text("[server]\nport = 1e400\n")
    (tmp_path / "latin.toml").write_bytes(b"\xff[")
    run = {"release": "1", "signature": "s", "inputs": {}, "settings": {}, "run": {}, "format": 1}
    (tmp_path / "manifest.json").write_text(json.dumps(run))
    (tmp_path / "esc.jsonl").write_text('{"image_id": "\\u001b[31mred\\nx", "caption": "A dog."}')
    return tmp_path


CHAIR = ("score", "chair", "-o", "o", "-r", "c.jsonl", "-R", "r.json")
RESPONSES = ("score", "chair", "-o", "o", "-R", "r.json", "-r")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((*RESPONSES, "utf32.jsonl"), "utf32.jsonl: UTF-32 text; save it as UTF-8"),
        ((*RESPONSES, "manifest.json"), "give the responses that it was made from"),
        ((*RESPONSES, "esc.jsonl"), r"without a reference: \x1b[31mred\nx (1 in all)"),
        ((*CHAIR, "--graph", "empty"), "graph file empty: Is a directory; give a graph file"),
        ((*CHAIR, "--workers", "99999999"), "--workers is 99999999; give 0 (automatic), or"),
        ((*CHAIR, "--ray-address", "x"), "--ray-address is 'x', but the engine is local; set"),
        (("score", "chair", "-r", "c.jsonl", "-R", "r.json", "-o", "loop"), "loop"),
        (("compare", "empty", "loop"), "empty: not a run"),
        (("compare", "loop", "empty"), "loop: no such folder"),
        (("gate", "loop", "--max", "chair_i=1"), "loop: no such folder"),
        (("rescore", "empty", "--variant", "x", "-o", "loop"), "empty: not a run"),
        (("merge", "loop", "-o", "m"), "loop: no such folder"),
        (("build", "pope", "--objects", "loop", "-o", "loop"), "loop"),
        (("build", "references", "--instances", "loop", "-o", "loop"), "loop"),
        (("serve", "--config", "inf.toml"), "port (from file inf.toml) is inf; give a number"),
        (("serve", "--config", "latin.toml"), "is not TOML: it is not UTF-8 text; correct it"),
        (
            ("keys", "create", "a", "--scope", "score", "--expires", "2001-01-01", "--file", "k"),
            "which is past; give a later end",
        ),
        (("build", "references", "--instances", "deep.json", "-o", "x"), "it is nested too deeply"),
        (("build", "pope", "--objects", "many.json", "-o", "x", "--images", "-1"), "is negative"),
        (
            ("score", "pope", "-r", "c.jsonl", "--parser", "a", "--variant", "b", "-o", "o"),
            "--parser and --variant are one option; give one of them",
        ),
    ],
)
def test_it_is_refused(folder: Path, given: tuple[str, ...], said: str) -> None:
    done = here(*given)
    assert (done.returncode in (1, 2), done.stdout) == (True, "")
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (folder / "o" / "report.json").exists()


def test_references_without_any_id(folder: Path) -> None:
    (folder / "amber.jsonl").write_text(json.dumps({"id": 7, "response": "A dog."}))
    (folder / "annotations.json").write_text(
        json.dumps([{"id": "1", "type": "generative", "truth": ["dog"], "hallu": []}])
    )
    done = here("score", "amber", "-r", "amber.jsonl", "-R", "annotations.json", "-o", "o")
    assert_refused(done, "answers are to questions that the references lack: 7")
    assert expected_message("sdk.archives.joins:no-answer-could-be-joined") in done.stderr


def test_listed_values_are_short_and_have_one_line() -> None:
    assert named(["a\nb", "c"]) == r"a\nb, c"
    assert named(["x" * 100_000]) == "x" * 500 + "…"
