"""A disk that fills: no further call to a model is sent, and what was paid for is used again."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.pictures import png
from support.qa_samples import write_lines
from support.running import BIN, ServerProcess, unmeasured
from support.sizes import further
from support.small_disk import SmallDisk, small_disk
from support.threads import eventually
from support.tri_he_samples import SCENE

from hallujudge.sdk import Client

AT_ONCE = 8
CALLS = 200
LIMIT = {"HALLUJUDGE_LLM_MAX_CONCURRENCY": str(AT_ONCE)}
DISK = 400 << 10


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", DISK) as made:
        yield made


def slow(number: int, body: llm.Body) -> llm.Reply:
    return replace(llm.by_scene_graph(number, body), delay=0.02)


@pytest.fixture
def judge() -> Iterator[llm.ScriptedLlm]:
    made = llm.ScriptedLlm(slow)
    stop = made.in_thread()
    yield made
    stop()


def answers() -> list[dict[str, Any]]:
    return [
        {"image_id": "1", "question": f"{n}?", "claims": [["man", "has", f"hat {n}"]]}
        for n in range(CALLS)
    ]


def graphs() -> list[dict[str, Any]]:
    return [{"image_id": "1", "triplets": SCENE}]


def ran(disk: SmallDisk, *command: object) -> subprocess.CompletedProcess[str]:
    """Run the command line with files on a disk."""
    return subprocess.run(
        [BIN / "hallujudge", *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=disk.limit,
        env={**unmeasured(), "PYTHONDONTWRITEBYTECODE": "1", **LIMIT},
    )


def kept(path: Path) -> int:
    with closing(sqlite3.connect(path)) as file:
        return int(file.execute("SELECT count(*) FROM answers").fetchone()[0])


def score(folder: Path, disk: SmallDisk, judge: llm.ScriptedLlm) -> Sequence[object]:
    return (
        *("score", "tri-he", "--claims", write_lines(folder / "answers.jsonl", answers())),
        *("--references", write_lines(folder / "graphs.jsonl", graphs()), "--judge", "llm"),
        *("--llm-url", judge.url, "--llm-model", "m"),
        *("--out", disk.folder / "out"),
    )


def ask(folder: Path, disk: SmallDisk, judge: llm.ScriptedLlm) -> Sequence[object]:
    images = folder / "images"
    images.mkdir(exist_ok=True)
    (images / "a.png").write_bytes(png(1))
    questions = [
        {"question_id": n, "image": "a.png", "text": f"Is there a hat {n}?", "label": "no"}
        for n in range(CALLS)
    ]
    return (
        *llm.ask(judge, "pope", "-R", write_lines(folder / "questions.jsonl", questions)),
        *("--images", images, "-o", disk.folder / "answers.jsonl"),
    )


def asked_slowly(_number: int, _body: llm.Body) -> llm.Reply:
    return replace(llm.completion("No."), delay=0.02)


@pytest.mark.parametrize(
    ("command", "replies", "step", "more"),
    [
        (score, "out/verdicts.sqlite", slow, ("--resume",)),
        further(
            "test_a_run_on_a_full_disk_pays_for_no_call_that_follows",
            *(ask, "answers.replies.sqlite", asked_slowly, ()),
        ),
    ],
)
def test_a_run_on_a_full_disk_pays_for_no_call_that_follows(
    tmp_path: Path,
    disk: SmallDisk,
    judge: llm.ScriptedLlm,
    command: Any,
    replies: str,
    step: llm.Step,
    more: Sequence[str],
) -> None:
    judge.steps = (step,)
    line = command(tmp_path, disk, judge)
    run = ran(disk, *line)
    assert run.returncode == 1, run.stderr
    assert "so no further call is sent and paid for" in run.stderr
    assert "Traceback" not in run.stderr
    paid, has = judge.chats, kept(disk.folder / replies)
    # Those of which the first could not be kept, and those that were sent before it was tried.
    assert paid - has <= 2 * AT_ONCE
    disk.grow()
    again = subprocess.run([BIN / "hallujudge", *map(str, [*line, *more])], check=False)
    assert again.returncode == 0
    assert judge.chats == CALLS + paid - has


def test_a_job_on_a_full_disk_sends_no_call_until_there_is_room(
    tmp_path: Path, judge: llm.ScriptedLlm
) -> None:
    with small_disk(tmp_path / "disk", 4 << 20) as disk:
        data = ("--data-folder", str(disk.folder), "--workers", "1")
        asked = ("--llm-url", judge.url, "--llm-model", "m")
        server = ServerProcess(*data, *asked, **LIMIT)
        with Client(server=server.address) as client:
            options = {"judge": "llm"}
            job = client.submit("tri-he", responses=answers(), references=graphs(), options=options)
            assert eventually(lambda: judge.chats >= 3 * AT_ONCE)
            disk.fill(server.process.pid)
            assert eventually(lambda: "no item of a job is begun" in server.errors_so_far())
            sent, refused = judge.chats, server.errors_so_far().count("can't be used")
            assert eventually(lambda: server.errors_so_far().count("can't be used") > refused + 2)
            assert judge.chats <= sent + AT_ONCE
            disk.grow(server.process.pid)
            done = client.wait_for_job(job.id)
        assert server.stop()[0] == 0
    assert done.scored == CALLS
    assert judge.chats == CALLS
