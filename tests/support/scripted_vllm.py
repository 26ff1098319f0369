"""A program that stands in for ``vllm``: ``scripted_vllm.py serve MODEL --port N``."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

# As a program it knows its own folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support import scripted_llm as llm


def _ended_by(text: str) -> llm.Step:
    def step(number: int, body: llm.Body) -> llm.Reply:
        if text in llm.prompt_of(body):
            os._exit(9)
        return llm.by_scene_graph(number, body)

    return step


def main(arguments: Sequence[str]) -> int:
    """Act as ``vllm serve``: print the arguments, become healthy, serve, stop.

    As ``vllm bench serve`` it writes a result with 50 requests a second and its arguments.

    The environment decides how it behaves: STAND_IN_FAIL (exit at once so many times, counted in
    the file STAND_IN_COUNT), STAND_IN_READY (seconds until healthy), STAND_IN_CHILD (start a child
    that ignores SIGTERM and write its id there), STAND_IN_STUBBORN (ignore SIGTERM), STAND_IN_PATHS
    (write the paths of all requests there), STAND_IN_ERROR (answer calls with that status),
    STAND_IN_FATAL (end at calls whose prompt has that text).
    """
    environ = os.environ
    if arguments[0] == "bench":
        given = dict(pairwise(arguments))
        result = {"request_throughput": 50.0, "arguments": list(arguments)}
        path = Path(given["--result-dir"], given["--result-filename"])
        path.write_text(json.dumps(result))
        return 0
    print("called with", json.dumps(list(arguments)), flush=True)
    if count_file := environ.get("STAND_IN_COUNT"):
        with Path(count_file).open("a+") as stream:
            stream.write("x")
            stream.seek(0)
            starts = len(stream.read())
        if starts <= int(environ.get("STAND_IN_FAIL", "0")):
            print("out of memory, or so", flush=True)
            return 3
    if child_file := environ.get("STAND_IN_CHILD"):
        pid = os.fork()
        if not pid:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(3600)
            os._exit(0)
        Path(child_file).write_text(str(pid))
    if environ.get("STAND_IN_STUBBORN"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    given = dict(pairwise(arguments))
    port, socket = int(given.get("--port", 0)), given.get("--uds", "")

    async def serve() -> None:
        ready, status = float(environ.get("STAND_IN_READY", "0")), environ.get("STAND_IN_ERROR")
        step = llm.always(llm.error(int(status), "no such thing")) if status else llm.by_scene_graph
        if fatal := environ.get("STAND_IN_FATAL"):
            step = _ended_by(fatal)
        model = arguments[1]
        at = llm.ScriptedLlm(step, ready_after=ready, model=model, port=port, socket=socket)
        async with at as server:
            while True:
                await asyncio.sleep(0.02)
                if file := environ.get("STAND_IN_PATHS"):
                    Path(file).write_text("\n".join(server.paths))

    asyncio.run(serve())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
