"""The memory of a server that works for a long time.

Clients call a server in turns with pauses: one caption, runs of 300 captions and of 300 questions
with a report, a run that is cancelled in its middle, a stream that says nothing, bytes that are no
message, a wrong key, and health. Each minute's line has the calls so far and the server's memory.
The last line has the growth in the second half, as a line fitted by least squares.

Run with: python benchmarks/bench_soak.py [--minutes 30] [--pause 0.05]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import needs

needs.packages("grpc_health")

import grpc  # noqa: E402
from bench_server_load import score  # noqa: E402
from grpc_health.v1 import health_pb2  # noqa: E402

from hallujudge.judge.v1 import judge_service_pb2 as pb  # noqa: E402
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc  # noqa: E402
from hallujudge.judge_service.access.caller import Scope  # noqa: E402
from hallujudge.judge_service.access.key_store import create_key  # noqa: E402
from hallujudge.judge_service.engine import ScoreSpec  # noqa: E402
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto  # noqa: E402
from hallujudge.metrics import ChairItem, one_answer  # noqa: E402

Work: TypeAlias = Callable[[int], Awaitable[None]]

_SERVICE = "/hallujudge.judge.v1.JudgeService/"
_ITEMS = 300
_BATCH = 50
_MIB = 1 << 20


def captions(run: int) -> Iterator[Any]:
    """Yield items whose texts differ from run to run."""
    for n in range(_ITEMS):
        text = f"A dog and a cat sit on a couch next to a laptop, run {run} image {n}."
        yield ChairItem(id=f"{run}-{n}", response=text, reference_objects=("dog", "couch"))


def questions(run: int) -> Iterator[Any]:
    """Yield questions whose ids differ from run to run."""
    for n in range(_ITEMS):
        answer = "Yes, there is." if (n + run) % 3 else "No."
        yield one_answer(id=f"{run}-{n}", response=answer, label="yes" if n % 2 else "no")


class Clients:
    """What the clients do; each method is one turn of one kind."""

    def __init__(self, channel: grpc.aio.Channel, key: str) -> None:
        self._stub: Any = pb_grpc.JudgeServiceStub(channel)
        self._key = (("authorization", f"Bearer {key}"),)
        self._raw: Any = channel.unary_unary(f"{_SERVICE}Score")
        self._health: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
        self._caption = score(1)
        self.outcomes: Counter[str] = Counter()

    async def caption(self, _run: int) -> None:
        """Score one caption."""
        await self._raw(self._caption, metadata=self._key)

    async def health(self, _run: int) -> None:
        """Ask whether the server is well."""
        await self._health(health_pb2.HealthCheckRequest().SerializeToString())

    async def nonsense(self, run: int) -> None:
        """Send bytes that are no message."""
        await self._raw(bytes([255 - run % 7]) * 2_000, metadata=self._key)

    async def wrong_key(self, run: int) -> None:
        """Guess a key."""
        await self._raw(self._caption, metadata=(("authorization", f"Bearer hj_{run:032x}"),))

    async def captions(self, run: int) -> None:
        """Score many captions, with a report."""
        await self._stream("chair", captions(run))

    async def questions(self, run: int) -> None:
        """Score many answers, with a report."""
        await self._stream("pope", questions(run))

    async def cancelled(self, run: int) -> None:
        """Leave in the middle of a run."""
        await self._stream("chair", captions(run), leave_after=2)

    async def silent(self, _run: int) -> None:
        """Open a stream, say nothing for a second, and leave."""
        call = self._stub.ScoreStream(metadata=self._key)
        await call.write(pb.ScoreStreamRequest(spec=spec_to_proto(ScoreSpec(metric="chair"))))
        await call.read()
        await asyncio.sleep(1)
        call.cancel()

    async def _stream(self, metric: str, items: Iterator[Any], leave_after: int = 0) -> None:
        responses = 0
        call = self._stub.ScoreStream(_requests(metric, items), metadata=self._key)
        async for _ in call:
            responses += 1
            if responses == leave_after:
                call.cancel()
                return

    async def work(self, turn: Work, until: float, pause: float) -> None:
        """Repeat turns of one kind until a time."""
        run = 0
        while time.monotonic() < until:
            try:
                await turn(run)
                self.outcomes[f"{turn.__name__} OK"] += 1
            except grpc.aio.AioRpcError as err:
                self.outcomes[f"{turn.__name__} {err.code().name}"] += 1
            run += 1
            await asyncio.sleep(pause)


async def _requests(metric: str, items: Iterator[Any]) -> AsyncIterator[pb.ScoreStreamRequest]:
    yield pb.ScoreStreamRequest(spec=spec_to_proto(ScoreSpec(metric=metric)))
    batch = []
    for item in items:
        batch.append(item_to_proto(item))
        if len(batch) == _BATCH:
            yield pb.ScoreStreamRequest(batch=pb.ItemBatch(items=batch))
            batch = []


@contextmanager
def server(*options: str, **environment: str) -> Iterator[tuple[str, int]]:
    """Run a server; yield its address and its process id."""
    script = str(Path(sys.executable).parent / "hallujudge")
    command = (script, "serve", "--port", "0", *options)
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    try:
        assert started.stdout is not None
        yield started.stdout.readline().rpartition(" ")[2].strip(), started.pid
    finally:
        started.terminate()
        started.wait()


def memory(pid: int) -> float:
    """Return what a process and its children hold in memory, in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    size = pages * os.sysconf("SC_PAGESIZE") / _MIB
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):
            size += sum(memory(int(child)) for child in (task / "children").read_text().split())
    return size


async def watch(pid: int, minutes: float, outcomes: Counter[str]) -> list[tuple[float, float]]:
    """Print the memory each minute; return minutes and MiB, four times a minute."""
    begun, seen = time.monotonic(), []
    while (passed := (time.monotonic() - begun) / 60) < minutes:
        seen.append((passed, memory(pid)))
        if len(seen) % 4 == 1:
            print(
                f"{passed:5.1f} min: {outcomes.total():7} calls, {seen[-1][1]:6.1f} MiB", flush=True
            )
        await asyncio.sleep(15)
    return seen


async def measure(given: argparse.Namespace, folder: Path) -> None:
    """Run the clients, and print what the server's memory did."""
    keys = folder / "keys.json"
    key = create_key(keys, "soak", scopes=[Scope.SCORE])
    with server("--keys-file", str(keys), XDG_STATE_HOME=str(folder)) as (address, pid):
        async with grpc.aio.insecure_channel(address) as channel:
            clients = Clients(channel, key)
            until = time.monotonic() + 60 * given.minutes
            turns = (
                clients.caption,
                clients.health,
                clients.nonsense,
                clients.wrong_key,
                clients.captions,
                clients.questions,
                clients.cancelled,
                clients.silent,
            )
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(watch(pid, given.minutes, clients.outcomes))
                for turn in turns:
                    group.create_task(clients.work(turn, until, given.pause))
    seen = watching.result()
    for name, count in sorted(clients.outcomes.items()):
        print(f"{name}: {count}")
    half = [(at, size) for at, size in seen if at >= given.minutes / 2]
    slope = statistics.linear_regression(*zip(*half, strict=True)).slope
    print(f"most {max(size for _, size in seen):.1f} MiB; growth {60 * slope:+.2f} MiB an hour")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--pause", type=float, default=0.05)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(measure(given, Path(name)))


if __name__ == "__main__":
    main()
