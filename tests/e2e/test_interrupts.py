"""Ctrl-C and SIGTERM: one line that says so, the documented exit code, and nothing lost."""

from __future__ import annotations

import io
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.running import BIN, errors_of, here, read_rows, unmeasured
from support.sizes import further, sized
from support.threads import eventually

SCORE = ("score", "chair", "-r", "good.jsonl", "-R", "references.json", "-o")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    images = range(30)
    (tmp_path / "references.json").write_text(json.dumps({n: ["dog", "couch"] for n in images}))
    captions = ({"image_id": n, "caption": "A dog on a couch next to a cat."} for n in images)
    (tmp_path / "good.jsonl").write_text("".join(json.dumps(row) + "\n" for row in captions))
    return tmp_path


READING = {
    "report": ("report", "run", "-f", "html"),
    "compare": ("compare", "run", "run2"),
    "leaderboard": ("leaderboard", "run", "run2"),
    "inspect": ("archive", "inspect", "good.jsonl"),
    "score": (*SCORE, "out"),
    "score all": ("score", "all", ".", "-o", "out"),
}


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")]
)
@pytest.mark.parametrize("command", READING)
def test_a_command_that_is_stopped_while_it_reads_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, number: int, name: str
) -> None:
    monkeypatch.chdir(folder)
    assert here(*SCORE, "run", "--quiet").returncode == 0
    shutil.copytree(folder / "run", folder / "run2")

    def stopping(opened: Callable[..., Any]) -> Callable[..., Any]:
        def stopped(path: Any, *args: Any, **kwargs: Any) -> Any:
            if str(path).endswith(("good.jsonl", "items.jsonl", "report.json")):
                signal.raise_signal(number)
            return opened(path, *args, **kwargs)

        return stopped

    # The one that `Path.open` calls, and the one for archives that are opened once.
    monkeypatch.setattr(io, "open", stopping(io.open))
    monkeypatch.setattr(io, "FileIO", stopping(io.FileIO))
    done = here(*READING[command])
    assert done.stderr.splitlines()[-1] == f"error: stopped by {name}"
    assert "Traceback" not in done.stderr
    assert done.returncode == 1


IMPORTING = """
import sys

module = sys.argv.pop(1)
assert module not in sys.modules, module

class Interrupted:
    def find_spec(self, name, path, target=None):
        if name == module:
            sys.meta_path.remove(self)
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from hallujudge.sdk.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["hallujudge.sdk.cli.output", "dataclasses", "asyncio.events"])
def test_ctrl_c_while_a_command_is_imported_says_so(module: str) -> None:
    command = [sys.executable, "-c", IMPORTING, module, "score", "chair", "--help"]
    # Measuring coverage imports some of these modules before the command does.
    env = unmeasured()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert (done.returncode, done.stderr) == (1, "error: stopped by Ctrl-C\n")


LONG = sized(10_000, 30_000)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captions that take many seconds to score: a run is stopped long before its end."""
    caption = "A man with a dog, a cat and a surfboard near the table. " * 40
    path = tmp_path_factory.mktemp("long") / "captions.jsonl"
    with path.open("w") as stream:
        for n in range(LONG):
            stream.write(
                json.dumps({"image_id": n % 30, "n": n, "caption": caption + str(n)}) + "\n"
            )
    return path


STOPPED = "test_a_run_that_is_stopped_keeps_what_is_done"


@pytest.mark.parametrize(
    ("remote", "number", "name"),
    [
        (False, signal.SIGINT, "Ctrl-C"),
        (True, signal.SIGTERM, "SIGTERM"),
        further(STOPPED, True, signal.SIGINT, "Ctrl-C"),
        further(STOPPED, False, signal.SIGTERM, "SIGTERM"),
    ],
)
def test_a_run_that_is_stopped_keeps_what_is_done(
    folder: Path, long: Path, server: str, remote: bool, number: int, name: str
) -> None:
    process = subprocess.Popen(
        [
            *(BIN / "hallujudge", "score", "chair", "--responses", long),
            *("--references", folder / "references.json", "--out", folder / "out"),
            "--allow-duplicates",
            *(("--server", server) if remote else ()),
        ],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=unmeasured() | {"COLUMNS": "200"},
    )
    items = folder / "out" / "items.partial.jsonl"
    assert eventually(lambda: items.exists() and items.stat().st_size > 0)
    process.send_signal(number)
    errors = errors_of(process)
    assert process.returncode == 1, errors
    assert f"stopped by {name}" in errors
    assert "Traceback" not in errors
    kept = read_rows(items)
    assert 0 < len(kept) < LONG
    assert f"{len(kept)} of {LONG} items" in errors
    assert not (folder / "out" / "report.json").exists()
