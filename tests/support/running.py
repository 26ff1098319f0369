"""Real processes for tests: the server and the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["BIN", "ServerProcess", "cli", "read_rows"]

BIN = Path(sys.executable).parent
_ADDRESS_LINE = "hallujudge serves at "


class ServerProcess:
    """A real server in a separate process."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [BIN / "hallujudge", "serve", "--port", "0", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith(_ADDRESS_LINE):
            self.process.kill()
            raise AssertionError(f"the server said {line!r}, {self.process.communicate()}")
        self.address = line.removeprefix(_ADDRESS_LINE).strip()

    def stop(self, number: int = signal.SIGTERM, timeout: float = 120) -> tuple[int, str]:
        """Send a signal and wait; return the exit code and standard error."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            _, errors = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        return self.process.returncode, errors


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
