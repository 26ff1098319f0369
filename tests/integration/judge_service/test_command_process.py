"""Commands whose standard output or error is closed, full or not read, as a user starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.running import BIN
from support.sizes import further
from support.threads import PATIENCE

_DISK_FULL = "error: No space left on device: check the disk and where output goes\n"
_COMMAND, _SERVER = f"{BIN}/hallujudge", f"{BIN}/hallujudge-server"
# A short text stays in the buffer until the process ends; a long one does not.
_PRINTING = [f"{_COMMAND} --version", f"{_COMMAND} config show", f"{_SERVER} --help"]
_SHORT, _LONG, _OTHER = _PRINTING
_MISTAKES = [f"{_COMMAND} --no-such-option", f"{_SERVER} --no-such-option"]
_FULL = "test_a_full_disk_below_standard_output_is_one_line"
_UNREAD = "test_output_that_nobody_reads_ends_a_command_without_a_word"
_CLOSED = "test_a_closed_output_or_a_full_error_file_changes_nothing_else"
_MISTAKE = "test_a_mistake_has_its_exit_code_whatever_takes_the_words"


def _run(line: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", line],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        cwd=cwd,
        env={**os.environ, **more},
    )


@pytest.mark.parametrize(
    ("command", "buffering"),
    [
        *((command, "") for command in _PRINTING),
        further(_FULL, f"{sys.executable} -m hallujudge.judge_service --version", ""),
        further(_FULL, _SHORT, "1"),
    ],
)
def test_a_full_disk_below_standard_output_is_one_line(
    tmp_path: Path, command: str, buffering: str
) -> None:
    run = _run(f"{command} >/dev/full", tmp_path, PYTHONUNBUFFERED=buffering)
    assert (run.returncode, run.stderr) == (1, _DISK_FULL)


@pytest.mark.parametrize("command", [_SHORT, _LONG, further(_UNREAD, _OTHER)])
def test_output_that_nobody_reads_ends_a_command_without_a_word(
    tmp_path: Path, command: str
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        run = subprocess.run(
            command.split(),
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
        )
    finally:
        os.close(writer)
    assert (run.returncode, run.stderr) == (1, "")


@pytest.mark.parametrize(
    ("command", "where"),
    [
        (_SHORT, "<&- >&- 2>&-"),
        (_OTHER, "2>/dev/full"),
        *(further(_CLOSED, command, "<&- >&- 2>&-") for command in (_LONG, _OTHER)),
        *(further(_CLOSED, command, "2>/dev/full") for command in (_SHORT, _LONG)),
    ],
)
def test_a_closed_output_or_a_full_error_file_changes_nothing_else(
    tmp_path: Path, command: str, where: str
) -> None:
    run = _run(f"{command} {where}", tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert bool(run.stdout) == (where == "2>/dev/full")


@pytest.mark.parametrize(
    ("command", "where"),
    [
        (_MISTAKES[0], ">/dev/full"),
        (_MISTAKES[0], ">&- 2>/dev/full"),
        (_MISTAKES[1], "2>&-"),
        further(_MISTAKE, _MISTAKES[0], "2>&-"),
        further(_MISTAKE, _MISTAKES[1], ">/dev/full"),
        further(_MISTAKE, _MISTAKES[1], ">&- 2>/dev/full"),
    ],
)
def test_a_mistake_has_its_exit_code_whatever_takes_the_words(
    tmp_path: Path, command: str, where: str
) -> None:
    run = _run(f"{command} {where}", tmp_path)
    assert run.returncode == 2
    assert run.stdout == ""
    assert ("no-such-option" in run.stderr) == (where == ">/dev/full")
    assert "Exception" not in run.stderr


def test_standard_output_is_no_place_for_the_errors_of_a_server_without_standard_error(
    tmp_path: Path,
) -> None:
    run = _run(f"{BIN}/hallujudge-server --config nowhere.toml 2>&-", tmp_path)
    assert (run.returncode, run.stdout, run.stderr) == (2, "", "")


_THREADS = """
import os, sys
from hallujudge.sdk.cli import main
sys.argv = ["hallujudge", "metrics", "list"]
code = main()
import numpy
numpy.ones((300, 300)) @ numpy.ones((300, 300))
print(code, len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs Linux")
def test_a_command_computes_with_one_thread_whatever_the_machine_has() -> None:
    command = [sys.executable, "-c", _THREADS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 1"
