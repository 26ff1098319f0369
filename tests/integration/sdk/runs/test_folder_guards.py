"""A run that is refused before its first item leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import scripted_llm as llm

from hallujudge.sdk import Client, read_run
from hallujudge.sdk.cli import main
from hallujudge.sdk.errors import HallujudgeError, OutputError
from hallujudge.sdk.runs.folder_guards import FolderLock, tidied

NOWHERE = "localhost:1"
CAPTIONS, OBJECTS = {"1": "A dog."}, {"1": ["dog"]}


def refused(out: Path, server: str = NOWHERE) -> None:
    client = Client(server)
    with client, pytest.raises(HallujudgeError):
        client.score("chair", responses=CAPTIONS, references=OBJECTS, folder=out)


def test_a_server_that_is_not_there_leaves_no_folder(tmp_path: Path) -> None:
    refused(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    refused(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_complete_run_stays(tmp_path: Path) -> None:
    with Client.embedded() as client:
        client.score("chair", responses=CAPTIONS, references=OBJECTS, folder=tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    client = Client(NOWHERE)
    with client, pytest.raises(HallujudgeError):
        client.score("chair", responses={"1": "A cat."}, references=OBJECTS, folder=tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert read_run(tmp_path).report.coverage.items == 1


def test_a_judge_that_rejects_the_key_leaves_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = llm.ScriptedLlm(llm.always(llm.error(401)))
    stop = server.in_thread()
    (tmp_path / "answers.jsonl").write_text('{"id": "1", "response": "A man rides a horse."}\n')
    (tmp_path / "graphs.json").write_text('{"1": [["man", "riding", "horse"]]}')
    command = ["score", "tri-he", "-r", str(tmp_path / "answers.jsonl")]
    command += ["-R", str(tmp_path / "graphs.json"), "--judge", "llm", "--llm-url", server.url]
    assert main([*command, "--llm-model", "m", "-o", str(tmp_path / "out")]) != 0
    stop()
    assert "401" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_another_run_in_the_folder_keeps_its_files(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    (tmp_path / "items.partial.jsonl").touch()
    with pytest.raises(OutputError), tidied(tmp_path):
        FolderLock(tmp_path)
    lock.release()
    assert (tmp_path / "items.partial.jsonl").exists()


def test_scored_items_are_kept(tmp_path: Path) -> None:
    def stopped() -> None:
        (tmp_path / "items.partial.jsonl").write_text("{}\n")
        raise OutputError("the disk is full")

    with pytest.raises(OutputError), tidied(tmp_path):
        stopped()
    assert (tmp_path / "items.partial.jsonl").exists()
