"""Runs that are killed: resumed, they write the same bytes, and no paid call is made twice."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import killed_run
from support import scripted_llm as llm
from support.qa_samples import write_lines
from support.running import BIN, cli, here
from support.sizes import sized
from support.threads import eventually
from support.toll import Toll, verdicts
from support.tri_he_samples import SCENE

COUNT = sized(3_000, 20_000)
# Of 512 items each: a run is killed three times at most before its end.
MOST_BATCHES = COUNT // 1_500
KILLS = sized(1, 5)
WORDS = ("dog", "cat", "man", "table", "surfboard", "red", "near", "a", "the", "with", "skateboard")
FILES = ("items.jsonl", "report.json", "report.html")


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    rng = random.Random(0)
    with (folder / "captions.jsonl").open("w") as stream:
        for number in range(COUNT):
            text = " ".join(rng.choices(WORDS, k=12)) if number % 50 else ""
            stream.write(json.dumps({"image_id": number, "caption": text}) + "\n")
    objects = {str(number): rng.sample(WORDS[:5], 2) for number in range(COUNT)}
    (folder / "objects.json").write_text(json.dumps(objects))
    return folder


def test_a_run_that_is_killed_writes_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    given = (archive / "captions.jsonl", archive / "objects.json")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    score = ("score", "chair", "-r", given[0], "-R", given[1], "-f", "html", "-q")
    undisturbed = here(*score, "-o", whole)
    rng = random.Random(7)
    for workers in sized(("2",), ("1", "2", "1")):
        batches = str(rng.randrange(1, MOST_BATCHES))
        run = subprocess.run(
            [sys.executable, killed_run.__file__, *given, parts, workers, batches], check=False
        )
        assert run.returncode == -signal.SIGKILL
        assert not (parts / "report.json").exists()
    resumed = cli(*score, "-o", parts, "--resume")
    assert resumed.returncode == undisturbed.returncode == 3
    assert resumed.stdout == undisturbed.stdout
    assert contents(parts) == contents(whole)


def test_no_call_is_paid_twice(tmp_path: Path) -> None:
    """The judge is watched over HTTP; the run is killed with calls under way."""
    toll, at_once, claims = Toll(), 4, 48 * KILLS
    answers = [
        {"image_id": "1", "question": f"{n}?", "claims": [["man", "has", f"hat {n}"]]}
        for n in range(claims)
    ]
    out = tmp_path / "out"
    command = (
        *("score", "tri-he", "--claims", write_lines(tmp_path / "answers.jsonl", answers)),
        *("-R", write_lines(tmp_path / "graphs.jsonl", [{"image_id": "1", "triplets": SCENE}])),
        *("--judge", "llm", "--llm-model", "m", "-q"),
    )
    server = llm.ScriptedLlm(toll.step)
    stop = server.in_thread()
    try:
        for _ in range(KILLS):
            toll.allowed = 40
            process = subprocess.Popen(
                [BIN / "hallujudge", *command, "--llm-url", server.url, "-o", out, "--resume"],
                env={**os.environ, "HALLUJUDGE_LLM_MAX_CONCURRENCY": str(at_once)},
                stderr=subprocess.DEVNULL,
            )
            # A reply is safe when it is in the cache; the process is killed with calls under way.
            assert eventually(lambda: len(toll.held) == at_once)
            assert eventually(lambda: verdicts(out) == toll.paid.total())
            process.kill()
            assert process.wait() == -signal.SIGKILL
            toll.drop()
        assert not (out / "report.json").exists()
        toll.allowed = claims
        run = cli(*command, "--llm-url", server.url, "-o", out, "--resume")
        assert run.returncode == 0, run.stderr
        assert toll.paid.total() == len(toll.paid) == claims
        again = here(
            *(*command, "--llm-url", server.url, "-o", tmp_path / "again"),
            *("--verdict-cache", out / "verdicts.sqlite"),
        )
        assert again.returncode == 0, again.stderr
        assert toll.paid.total() == claims
    finally:
        toll.drop()
        stop()
    for name in ("items.jsonl", "report.json"):
        assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes()


def test_a_run_whose_folder_is_deleted_stops_while_the_judge_is_asked(tmp_path: Path) -> None:
    toll, at_once, claims = Toll(), 4, 40
    answers = [
        {"image_id": "1", "question": f"{n}?", "claims": [["man", "has", f"hat {n}"]]}
        for n in range(claims)
    ]
    out = tmp_path / "out"
    command = (
        *("score", "tri-he", "--claims", write_lines(tmp_path / "answers.jsonl", answers)),
        *("-R", write_lines(tmp_path / "graphs.jsonl", [{"image_id": "1", "triplets": SCENE}])),
        *("--judge", "llm", "--llm-model", "m", "-q", "-o", out),
    )
    server = llm.ScriptedLlm(toll.step)
    stop = server.in_thread()
    try:
        toll.allowed = 20
        process = subprocess.Popen(
            [BIN / "hallujudge", *command, "--llm-url", server.url],
            env={**os.environ, "HALLUJUDGE_LLM_MAX_CONCURRENCY": str(at_once)},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert eventually(lambda: len(toll.held) == at_once)
        assert eventually(lambda: verdicts(out) == 20)
        shutil.rmtree(out)
        # One more reply, which is paid for after the folder was deleted.
        toll.allowed = 1
        toll.drop()
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 1
        assert f"{out} was deleted, moved or replaced while the run wrote to it" in errors
        assert "Traceback" not in errors
        # The loss may be noticed while that reply is on its way, or before it is asked for.
        kept, paid = verdicts(out), toll.paid.total()
        assert 20 <= kept <= paid <= 21
        toll.drop()
        toll.allowed = claims
        again = cli(*command, "--llm-url", server.url, "--resume")
        assert again.returncode == 0, again.stderr
        assert len(toll.paid) == claims
        assert toll.paid.total() == claims + paid - kept
    finally:
        toll.drop()
        stop()
