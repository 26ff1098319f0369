"""The server and the command line for tests, in processes of their own or in this one."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from support.threads import eventually

__all__ = [
    "BIN",
    "ServerProcess",
    "assert_refused",
    "cli",
    "errors_of",
    "here",
    "http_address",
    "peak_rss",
    "read_rows",
    "unmeasured",
]

BIN = Path(sys.executable).parent
_ADDRESS_LINE = "hallujudge serves at "


def unmeasured() -> dict[str, str]:
    """Return the environment of processes whose coverage is not measured.

    Measuring ends with a write to a database. A stop in the middle of it breaks the database, and
    so does a full disk. The measuring process reports that with a traceback of its own.
    """
    return {name: os.environ[name] for name in os.environ if not name.startswith("COVERAGE_")}


class ServerProcess:
    """A real server in a separate process."""

    before: ClassVar[Sequence[str]] = ()
    """The command that runs the server's; none by default."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        # A file, not a pipe: a pipe that is not read fills up and stops the server.
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
        # Jobs and verdicts of this server alone, unless the test names a folder.
        self._state = tempfile.TemporaryDirectory(prefix="hallujudge-state-")
        self.process = subprocess.Popen(
            [*self.before, BIN / "hallujudge", "serve", *_with_port(arguments)],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, "XDG_STATE_HOME": self._state.name, **environment},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith(_ADDRESS_LINE):
            self.process.kill()
            raise AssertionError(f"the server said {line!r}, {self._end()}")
        self.address = line.removeprefix(_ADDRESS_LINE).strip()

    def errors_so_far(self) -> str:
        """Return what the running server has written to standard error."""
        # Reading at a place leaves the one at which the server writes on.
        return os.pread(self._errors.fileno(), 1_000_000, 0).decode()

    def stop(self, number: int = signal.SIGTERM, timeout: float = 120) -> tuple[int, str]:
        """Send a signal and wait; return the exit code and standard error."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self._end(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def _end(self, timeout: float | None = None) -> tuple[int, str]:
        """Wait for the end of the process; return the exit code and standard error."""
        self.process.communicate(timeout=timeout)
        self._state.cleanup()
        with self._errors as errors:
            errors.seek(0)
            return self.process.returncode, errors.read()


def _with_port(arguments: Sequence[str]) -> Sequence[str]:
    return arguments if "--port" in arguments else ("--port", "0", *arguments)


def http_address(server: ServerProcess) -> str:
    """Return the address of HTTP of a server that listens for it; its log has it."""
    pattern = re.compile(r"HTTP with JSON at https?://(\S+)")
    assert eventually(lambda: bool(pattern.search(server.errors_so_far())))
    found = pattern.search(server.errors_so_far())
    assert found is not None
    return found[1]


def peak_rss(pid: int) -> int:
    """Return the most memory that a process has had, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmHWM")


def errors_of(process: subprocess.Popen[str], timeout: float = 120) -> str:
    """Wait for the end of a process and return its standard error; kill one that does not end."""
    try:
        return process.communicate(timeout=timeout)[1]
    finally:
        process.kill()


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the values of a JSON lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def cli(
    *arguments: str | Path, timeout: float = 600, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command line in a separate process, as a user does."""
    return subprocess.run(
        [BIN / "hallujudge", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
        cwd=cwd,
    )


def here(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process, which costs a twentieth of :func:`cli`.

    Exit code, output and files are those of a process. What only a process shows needs :func:`cli`:
    the start of the interpreter, signals, closed streams.
    """
    from hallujudge.sdk.cli import main

    given = [str(argument) for argument in arguments]
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    errors = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    with (
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        threshold = gc.get_threshold()
        try:
            code = main(given)
        finally:
            gc.set_threshold(*threshold)
    return subprocess.CompletedProcess(given, code, _written(output), _written(errors))


def assert_refused(done: subprocess.CompletedProcess[str], said: str) -> None:
    """Check that a command ended with exit code 2 and one sentence, without other output."""
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def _written(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
