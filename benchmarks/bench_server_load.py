"""Load and fairness of a server, as ratios within one run.

Load: 1, 8, 32 and 128 clients call ``Score`` with one caption, and a bare grpc.aio server that
returns the bytes it gets, in turns. Poisson: the same calls arrive at random, at 50, 80 and 95 % of
what 32 clients got just before, and a call's time begins when it is due. Streams: four at a time,
of 20 batches of 256 captions each, to a server without worker processes and one with two, in turns.
Fairness: a client that calls ``Score`` with one caption, and health, alone and beside another key's
client that floods the server with messages of 1,000 captions. Attacks: health, alone and beside
clients that send hostile messages: millions of empty items, packed and plain, a deep nest of
groups, the longest text to extract and the largest synonym graph. An echo, asked in turns, shows
what the machine itself adds. The servers, the flood and the attackers have processes of their own.
Processor time is printed beside throughput: it shows what idle cores would do where other work uses
them as well.

Run with: python benchmarks/bench_server_load.py [--rounds 5] [--calls 400] [--flooders 1 4]
[--workers 2] [--parts load poisson streams fairness attacks]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import needs
from arguments import Arguments

needs.packages("grpc_health")

import grpc  # noqa: E402
from grpc_health.v1 import health_pb2  # noqa: E402

from hallujudge.judge.v1 import judge_service_pb2 as pb  # noqa: E402
from hallujudge.judge_service.access import Scope  # noqa: E402
from hallujudge.judge_service.access.key_store import create_key  # noqa: E402
from hallujudge.judge_service.engine import InlineGraph, ScoreSpec  # noqa: E402
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto  # noqa: E402
from hallujudge.metrics import ChairItem  # noqa: E402

Call: TypeAlias = Callable[[], Awaitable[object]]

SCORE = "/hallujudge.judge.v1.JudgeService/Score"
_EXTRACT = "/hallujudge.judge.v1.JudgeService/Extract"
_STREAM = "/hallujudge.judge.v1.JudgeService/ScoreStream"
ECHO_METHOD = "/echo.Echo/Echo"
_ATTACKERS = 4
_HEALTH = "/grpc.health.v1.Health/Check"
_CLIENTS = (1, 8, 32, 128)
PARTS = ("load", "poisson", "streams", "fairness", "attacks")
# Clients whose calls, one after another, show how many calls a second a server can answer.
_CAPACITY_CLIENTS = 32
_SHARES = (0.5, 0.8, 0.95)
_FLOOD_ITEMS = 1_000
_STREAMS = 4
_BATCH_ITEMS = 256
_WARM_UP = 50
_OPTIONS = (("grpc.use_local_subchannel_pool", 1),)


def captions(items: int, first: int = 0) -> Iterator[pb.Item]:
    """Yield so many captions; their ids count from the first one's."""
    text = "A dog and a cat sit on a couch next to a person with a laptop, image {}."
    for n in range(first, first + items):
        item = ChairItem(id=str(n), response=text.format(n), reference_objects=("dog", "couch"))
        yield item_to_proto(item)


def score(items: int) -> bytes:
    """Return a request with so many captions."""
    spec = spec_to_proto(ScoreSpec(metric="chair"))
    return pb.ScoreRequest(spec=spec, items=captions(items)).SerializeToString()


def stream(batches: int) -> list[bytes]:
    """Return the messages of a stream, in which no id comes twice."""
    messages = [pb.ScoreStreamRequest(spec=spec_to_proto(ScoreSpec(metric="chair")))]
    for number in range(batches):
        items = captions(_BATCH_ITEMS, number * _BATCH_ITEMS)
        messages.append(pb.ScoreStreamRequest(batch=pb.ItemBatch(items=items)))
    return [message.SerializeToString() for message in messages]


class _Echo(grpc.GenericRpcHandler):
    def service(self, handler_call_details: object) -> Any:  # noqa: ARG002 - serves every method
        async def same(request: bytes, context: object) -> bytes:  # noqa: ARG001
            return request

        return grpc.unary_unary_rpc_method_handler(same)


async def echo() -> None:
    """Serve echoes until the process ends."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_Echo(),))
    print(f"echo at 127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}", flush=True)
    await server.start()
    await server.wait_for_termination()


async def flood(address: str, key: str, flooders: int) -> None:
    """Send messages of 1,000 captions, several at a time, until the process ends."""
    raw, told = score(_FLOOD_ITEMS), False
    async with channel(address) as to:
        call: Any = to.unary_unary(SCORE)

        async def one() -> None:
            nonlocal told
            while True:
                await call(raw, metadata=_bearer(key))
                if not told:
                    told = True
                    print("flooding", flush=True)

        await asyncio.gather(*(one() for _ in range(flooders)))


def hostile() -> list[tuple[str, bytes, grpc.Compression]]:
    """Return messages that hurt a server that parses them before it counts."""
    plain, packed = grpc.Compression.NoCompression, grpc.Compression.Gzip
    graph = InlineGraph(name="x", text=_graph(), layout="json")
    spec = ScoreSpec(metric="chair", graphs={"objects": graph})
    text = ("A dog near a cat sees a man. " * 20_000)[:500_000]
    extract = pb.ExtractRequest(spec=spec_to_proto(ScoreSpec(metric="mementos")), texts=[text])
    return [
        (SCORE, b"\x12\x00" * 8_000_000, packed),
        (SCORE, b"\x12\x00" * 8_000_000, plain),
        (SCORE, b"\x0b" * 5_000_000 + b"\x0c" * 5_000_000, packed),
        (_EXTRACT, extract.SerializeToString(), plain),
        (SCORE, pb.ScoreRequest(spec=spec_to_proto(spec)).SerializeToString(), plain),
    ]


def _graph() -> str:
    """Return a synonym graph of nearly the largest size."""
    return json.dumps({f"root{n}": [f"word{n}a", f"word{n}b"] for n in range(45_000)})


async def attack(address: str, key: str) -> None:
    """Send hostile messages, several at a time, until the process ends."""
    messages, told = hostile(), False
    async with channel(address) as to:

        async def one(first: int) -> None:
            nonlocal told
            for number in itertools.count(first):
                method, raw, packing = messages[number % len(messages)]
                call: Any = to.unary_unary(method)
                with suppress(grpc.aio.AioRpcError):
                    await call(raw, metadata=_bearer(key), compression=packing)
                if not told:
                    told = True
                    print("attacking", flush=True)

        await asyncio.gather(*map(one, range(_ATTACKERS)))


@contextmanager
def process(*command: str | Path, **environment: str) -> Iterator[tuple[int, str]]:
    """Run a process; yield its number and the last word of its first line."""
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    try:
        assert started.stdout is not None
        yield started.pid, started.stdout.readline().rpartition(" ")[2].strip()
    finally:
        started.kill()
        started.wait()


@asynccontextmanager
async def channel(address: str) -> AsyncIterator[grpc.aio.Channel]:
    """A channel with a connection of its own."""
    async with grpc.aio.insecure_channel(address, options=_OPTIONS) as opened:
        yield opened


def _bearer(key: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {key}"),)


async def timed(call: Call, count: int) -> list[float]:
    """Call in turn; return the seconds of each call."""
    seconds = []
    for _ in range(count):
        begun = time.perf_counter()
        await call()
        seconds.append(time.perf_counter() - begun)
    return seconds


def share(seconds: list[float], part: float) -> float:
    """Return a quantile in milliseconds."""
    return sorted(seconds)[min(len(seconds) - 1, int(part * len(seconds)))] * 1e3


async def load(calls: dict[str, list[Call]], pids: dict[str, int], rounds: int, count: int) -> None:
    """Measure each server with 1, 8 and 32 clients, in turns, and print ratios."""
    for clients in _CLIENTS:
        rates: dict[str, list[float]] = {name: [] for name in calls}
        seconds: dict[str, list[float]] = {name: [] for name in calls}
        used: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(rounds):
            for name, of in calls.items():
                begun, before = time.perf_counter(), processor_time(pids[name])
                each = await asyncio.gather(
                    *(timed(call, max(1, count // clients)) for call in of[:clients])
                )
                flat = [one for some in each for one in some]
                used[name].append((processor_time(pids[name]) - before) / len(flat) * 1e6)
                rates[name].append(len(flat) / (time.perf_counter() - begun))
                seconds[name] += flat
        score_rate, echo_rate = (statistics.median(rates[name]) for name in ("score", "echo"))
        # The least disturbed round: other work makes a call take more processor time too.
        score_used, echo_used = (min(used[name]) for name in ("score", "echo"))
        print(
            f"{clients:3} clients: score {score_rate:6.0f}/s, echo {echo_rate:6.0f}/s, "
            f"{echo_rate / score_rate:.2f} times below echo; "
            f"p99 {share(seconds['score'], 0.99):.1f} ms, "
            f"echo's {share(seconds['echo'], 0.99):.1f}; "
            f"processor time {score_used:.0f} us, echo's {echo_used:.0f}, "
            f"{score_used / echo_used:.2f} times"
        )


async def arriving(call: Call, rate: float, count: int, seed: int) -> tuple[list[float], int]:
    """Call at random moments, whether or not earlier calls have ended.

    Args:
        call: The call.
        rate: Calls a second, on average.
        count: How many calls.
        seed: Chooses the moments.

    Returns:
        The seconds of each answered call since it was due, and how many calls were refused.
    """
    between, begun, due = random.Random(seed), time.perf_counter(), 0.0

    async def one(due: float) -> float | None:
        try:
            await call()
        except grpc.aio.AioRpcError:
            return None
        return time.perf_counter() - begun - due

    running = []
    for _ in range(count):
        due += between.expovariate(rate)
        await asyncio.sleep(max(0.0, begun + due - time.perf_counter()))
        running.append(asyncio.create_task(one(due)))
    ended = await asyncio.gather(*running)
    answered = [seconds for seconds in ended if seconds is not None]
    return answered, count - len(answered)


async def poisson(calls: dict[str, list[Call]], rounds: int, count: int) -> None:
    """Measure calls that arrive at random, in turns, and print their times."""
    capacity: dict[str, list[float]] = {name: [] for name in calls}
    closed: dict[str, list[float]] = {name: [] for name in calls}
    opened: dict[tuple[float, str], list[float]] = {}
    refused = 0
    for number in range(rounds):
        for name, of in calls.items():
            begun = time.perf_counter()
            of_each = max(1, count // _CAPACITY_CLIENTS)
            each = (timed(call, of_each) for call in of[:_CAPACITY_CLIENTS])
            flat = [one for some in await asyncio.gather(*each) for one in some]
            capacity[name].append(len(flat) / (time.perf_counter() - begun))
            closed[name] += flat
            for part in _SHARES:
                found, lost = await arriving(of[0], part * capacity[name][-1], count, number)
                opened.setdefault((part, name), []).extend(found)
                refused += lost
    for name, rates in capacity.items():
        print(
            f"{name}: {_CAPACITY_CLIENTS} clients get {statistics.median(rates):.0f}/s with "
            f"p50 {share(closed[name], 0.5):.1f}, p99 {share(closed[name], 0.99):.1f} ms; at random"
        )
        for part in _SHARES:
            of_part = opened[part, name]
            if not of_part:
                print(f"  at {part:.0%} of that: no call was answered")
                continue
            p50, p99 = (share(of_part, place) for place in (0.5, 0.99))
            print(f"  at {part:.0%} of that: p50 {p50:.1f}, p99 {p99:.1f} ms")
    print(f"refused: {refused}")


def processor_time(pid: int) -> float:
    """Return the processor time of a process, in seconds."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def children_of(pid: int) -> list[int]:
    """Return the processes that a process started, and those that they started."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found += [child, *children_of(child)]
    return found


async def streams(servers: dict[str, tuple[int, str]], key: str, rounds: int, batches: int) -> None:
    """Measure streams to each server, in turns, and print the ratio."""
    raws = stream(batches)
    seconds: dict[str, list[float]] = {name: [] for name in servers}
    used: dict[str, list[tuple[float, float]]] = {name: [] for name in servers}
    async with AsyncExitStack() as stack:
        calls: dict[str, Any] = {
            name: (await stack.enter_async_context(channel(address))).stream_stream(_STREAM)
            for name, (_, address) in servers.items()
        }

        def spent(name: str) -> tuple[float, float]:
            pid = servers[name][0]
            return processor_time(pid), sum(map(processor_time, children_of(pid)))

        async def one(name: str) -> int:
            given = (raw for raw in raws)
            return len([None async for _ in calls[name](given, metadata=_bearer(key))])

        for number in range(rounds + 1):
            for name in servers:
                begun, before = time.perf_counter(), spent(name)
                await asyncio.gather(*(one(name) for _ in range(_STREAMS)))
                taken, after = time.perf_counter() - begun, spent(name)
                if number:  # the first one warms up
                    seconds[name].append(taken)
                    used[name].append((after[0] - before[0], after[1] - before[1]))
    items = _STREAMS * batches * _BATCH_ITEMS
    rates = {name: items / statistics.median(taken) for name, taken in seconds.items()}
    for name, rate in rates.items():
        own, workers = (
            statistics.median(row[place] for row in used[name]) / items * 1e6 for place in (0, 1)
        )
        print(
            f"streams, {name} workers: {rate:6.0f} items/s, {rate / rates['1']:.2f} times one "
            f"process; processor time of an item: server {own:.1f} us, workers {workers:.1f} us"
        )


async def fairness(address: str, key: str, other: str, flooders: list[int], count: int) -> None:
    """Measure a small call and health, alone and beside a flood."""
    async with channel(address) as to:
        raw, ask = score(1), health_pb2.HealthCheckRequest().SerializeToString()
        small: Any = to.unary_unary(SCORE)
        health: Any = to.unary_unary(_HEALTH)
        calls: dict[str, Call] = {
            "score": lambda: small(raw, metadata=_bearer(key)),
            "health": lambda: health(ask),
        }
        alone = {name: share(await timed(call, count), 0.95) for name, call in calls.items()}
        for number in flooders:
            command = (sys.executable, __file__, "--flood", address, other, str(number))
            with process(*command):
                for name, call in calls.items():
                    beside = share(await timed(call, count), 0.95)
                    print(
                        f"{name} beside {number} flooding: p95 {beside:.1f} ms, "
                        f"alone {alone[name]:.1f} ms, {beside / alone[name]:.1f} times"
                    )


async def attacks(address: str, echo_address: str, key: str, count: int) -> None:
    """Measure health alone and beside attackers, and an echo in turns with it."""
    async with channel(address) as to, channel(echo_address) as echo_to:
        ask = health_pb2.HealthCheckRequest().SerializeToString()
        health: Any = to.unary_unary(_HEALTH)
        echoing: Any = echo_to.unary_unary(ECHO_METHOD)

        async def told(when: str) -> None:
            seconds: dict[str, list[float]] = {"health": [], "echo": []}
            for _ in range(count):
                seconds["health"] += await timed(lambda: health(ask), 1)
                seconds["echo"] += await timed(lambda: echoing(ask), 1)
            print(f"{when}: load {os.getloadavg()[0]:.1f}", end="")
            for name, each in seconds.items():
                parts = (share(each, part) for part in (0.5, 0.95, 0.99, 1.0))
                print(f"; {name} p50 {next(parts):.1f}, p95 {next(parts):.1f}, ", end="")
                print(f"p99 {next(parts):.1f}, longest {next(parts):.1f} ms", end="")
            print()

        await told("alone")
        with process(sys.executable, __file__, "--attack", address, key):
            await told(f"beside {_ATTACKERS} attackers")


async def measure(given: argparse.Namespace, folder: Path) -> None:
    """Run all measurements."""
    keys = folder / "keys.json"
    scopes = [Scope.SCORE, Scope.EXTRACT]
    one, other = (create_key(keys, name, scopes=scopes) for name in ("one", "other"))
    command = (
        Path(sys.executable).parent / "hallujudge",
        *("serve", "--port", "0", "--keys-file", str(keys), "--workers"),
    )
    state = {"XDG_STATE_HOME": str(folder), "HALLUJUDGE_JOBS_DATABASE": "off"}
    with (
        process(*command, str(given.workers), **state) as server,
        process(*command, "1", **state) as alone,
        process(sys.executable, __file__, "--echo") as echoes,
    ):
        address, echo_address = server[1], echoes[1]
        if {"load", "poisson"} & set(given.parts):
            await compare(server, echoes, one, given)
        if "streams" in given.parts:
            await streams(
                {"1": alone, str(given.workers): server}, one, given.rounds, given.batches
            )
        if "fairness" in given.parts:
            await fairness(address, one, other, given.flooders, given.calls)
        if "attacks" in given.parts:
            await attacks(address, echo_address, other, given.calls)


async def compare(
    server: tuple[int, str], echoes: tuple[int, str], key: str, given: argparse.Namespace
) -> None:
    """Measure calls with one caption beside those of an echo."""
    raw, pids = score(1), {"score": server[0], "echo": echoes[0]}
    async with channel(server[1]) as to, channel(echoes[1]) as echo_to:
        scoring: Any = to.unary_unary(SCORE)
        echoing: Any = echo_to.unary_unary(ECHO_METHOD)
        calls: dict[str, list[Call]] = {
            "score": [lambda: scoring(raw, metadata=_bearer(key))] * max(_CLIENTS),
            "echo": [lambda: echoing(raw, metadata=_bearer(key))] * max(_CLIENTS),
        }
        for of in calls.values():
            await timed(of[0], _WARM_UP)
        if "load" in given.parts:
            await load(calls, pids, given.rounds, given.calls)
        if "poisson" in given.parts:
            await poisson(calls, given.rounds, given.calls)


def main() -> None:
    """Run the benchmark, or one of its processes."""
    parser = Arguments(__doc__)
    parser.size("--rounds", 5, smoke=1)
    parser.size("--calls", 400, smoke=40)
    parser.size("--batches", 20, smoke=2, help="of 256 captions, in a stream")
    parser.size("--flooders", [1, 4], smoke=[1])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--parts", nargs="*", default=PARTS)
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--flood", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--attack", nargs=2, help=argparse.SUPPRESS)
    given = parser.given()
    if given.echo:
        asyncio.run(echo())
    elif given.attack:
        asyncio.run(attack(*given.attack))
    elif given.flood:
        address, key, flooders = given.flood
        asyncio.run(flood(address, key, int(flooders)))
    else:
        with tempfile.TemporaryDirectory() as name:
            asyncio.run(measure(given, Path(name)))


if __name__ == "__main__":
    main()
