"""vLLM's CPU build, as ``serve --vllm`` starts it."""

from __future__ import annotations

import http.client
import json
import socket
from pathlib import Path
from typing import Any

from support import real_servers as real
from support.running import ServerProcess

NAME = "vLLM 0.32.0 (CPU)"
SMALL = ("--dtype", "float32", "--enforce-eager", "--max-num-seqs", "16")
"""Arguments for a small machine; the others are ours, or vLLM's own."""
VARIABLES = {"VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
"""Its environment."""


def supervising(arguments: str = "") -> dict[str, str]:
    """Return the environment of a server that starts it.

    Args:
        arguments: More of its arguments.
    """
    return {
        "HALLUJUDGE_VLLM_COMMAND": str(real.environment("vllm") / "vllm"),
        "HALLUJUDGE_VLLM_ARGUMENTS": " ".join((*SMALL, arguments)),
        **VARIABLES,
        **real.FEW_THREADS,
    }


def _command_of(process: str) -> list[str]:
    return Path(f"/proc/{process}/cmdline").read_text().split("\0")


class Supervised(ServerProcess):
    """A Hallujudge server with its own vLLM, and a way to ask that vLLM past our client."""

    def __init__(self, model: Path, arguments: str = "", **environment: str) -> None:
        super().__init__(
            *("--vllm", str(model)),
            **supervising(arguments),
            **environment,
        )
        self.model = str(model)
        self._socket = self.arguments[self.arguments.index("--uds") + 1]

    @property
    def vllm(self) -> int:
        """The process of vLLM, which leads a group of its own."""
        pid = self.process.pid
        # Others are worker processes.
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        (found,) = [int(child) for child in children if "--uds" in _command_of(child)]
        return found

    @property
    def arguments(self) -> list[str]:
        """The command line of vLLM."""
        return _command_of(str(self.vllm))

    def own(self, body: dict[str, Any]) -> real.Reply:
        """Send a request by a route of the socket that needs no key."""
        connection = _UnixConnection(self._socket)
        text = json.dumps(body | {"model": self.model})
        connection.request("POST", "/invocations", text, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        reply = real.Reply(status=answer.status, text=answer.read().decode())
        connection.close()
        return reply


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=120)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)
