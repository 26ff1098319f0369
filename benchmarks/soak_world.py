"""What bench_soak.py runs: a server that is killed and started again, and a judge that counts."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import needs

needs.packages("aiohttp")

from aiohttp import web  # noqa: E402

_MIB = 1 << 20
_CLAIM = re.compile(r"hat [0-9]+-[0-9]+")
_SECONDS = 0.05


class Judge:
    """A language model's server that supports every claim; an async context manager.

    Attributes:
        paid: Calls that it answered, by claim.
    """

    def __init__(self) -> None:
        self.paid: Counter[str] = Counter()
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(app, access_log=None)

    async def __aenter__(self) -> str:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}/v1"

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        claims = _CLAIM.findall(str(body["messages"][-1]["content"]))
        await asyncio.sleep(_SECONDS)
        # Each life of the server first asks how replies can be constrained, which names no claim.
        self.paid.update(claims[-1:])
        message = {"role": "assistant", "content": "supported"}
        return web.json_response(
            {
                "id": "1",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102},
            }
        )


class Server:
    """A server with the same ports in each of its lives; a context manager.

    Args:
        options: Options of ``serve``.
        environment: Variables of its environment.

    Attributes:
        address: Where it serves gRPC.
        http: Where it serves HTTP.
    """

    def __init__(self, *options: str, **environment: str) -> None:
        port, http_port = _free_port(), _free_port()
        self.address, self.http = f"127.0.0.1:{port}", f"http://127.0.0.1:{http_port}"
        script = str(Path(sys.executable).parent / "hallujudge")
        ports = ("--port", str(port), "--http-port", str(http_port))
        self._command = (script, "serve", *ports, *options)
        self._environment = {**os.environ, **environment}

    def __enter__(self) -> Server:
        self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._life.terminate()
        self._life.wait()

    def _start(self) -> None:
        self._life: Any = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, text=True, env=self._environment
        )
        assert self._life.stdout is not None
        self._life.stdout.readline()

    async def kill(self) -> None:
        """Kill the process with ``kill -9``, and start another."""
        self._life.send_signal(signal.SIGKILL)
        await asyncio.to_thread(self._life.wait)
        self._life.stdout.close()
        await asyncio.to_thread(self._start)

    @property
    def memory(self) -> float:
        """What the process and its children hold in memory, in MiB."""
        return _memory(self._life.pid)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _memory(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except FileNotFoundError:
        return 0.0
    size = pages * os.sysconf("SC_PAGESIZE") / _MIB
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):
            size += sum(_memory(int(child)) for child in (task / "children").read_text().split())
    return size
