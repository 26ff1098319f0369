"""Rewards of captions in this process, at a server on this machine, and gathered from many threads.

    python benchmarks/bench_rewards.py [--rounds 20] [--captions 64]

Prints medians of rounds that take turns: a batch of captions scored by the engine alone, by a
``Reward`` in this process, and by one at a server, beside a plain echo of the same bytes; such
batches in eight streams at a server, and as calls of eight processes at once; then 1,024 calls for
one caption each from 64 threads, with and without gathering them into batches.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import needs
from arguments import Arguments

needs.packages("grpc_health")
import grpc  # noqa: E402
from bench_server_load import ECHO_METHOD  # noqa: E402

from hallujudge.judge.v1 import judge_service_pb2 as pb  # noqa: E402
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc  # noqa: E402
from hallujudge.judge_service.engine import Engine  # noqa: E402
from hallujudge.judge_service.engine.resources import Resources  # noqa: E402
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto  # noqa: E402
from hallujudge.metrics import ChairItem  # noqa: E402
from hallujudge.sdk import ScoreRun  # noqa: E402
from hallujudge.sdk.rewards import Gathered, Reward  # noqa: E402

NOUNS = ["dog", "cat", "man", "woman", "table", "chair", "car", "bus", "sofa", "pizza", "tree"]
OTHERS = ["a", "the", "is", "of", "on", "with", "near", "and", "very", "small", "red", "walking"]
OBJECTS = ["dog", "person", "couch", "car"]
COMMAND = Path(sys.executable).parent / "hallujudge"
WORDS = 90
THREADS = 64
BATCHES = 16


def captions(count: int) -> list[str]:
    """Return captions of the length that trained models write."""
    rng = random.Random(count)
    return [
        " ".join(rng.choice(NOUNS if n % 6 == 5 else OTHERS) for n in range(WORDS))
        for _ in range(count)
    ]


def items_of(texts: list[str], prefix: str = "") -> list[ChairItem]:
    """Return items about one image."""
    return [
        ChairItem(id=f"{prefix}{n}", response=text, reference_objects=tuple(OBJECTS))
        for n, text in enumerate(texts)
    ]


def in_turns(rounds: int, **works: Callable[[], object]) -> dict[str, float]:
    """Return the median seconds of each work; every round does all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            began = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - began)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def started(*command: str) -> tuple[subprocess.Popen[str], str]:
    """Start a server; return its process and address, which its first line ends with."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None, "a pipe"
    return process, process.stdout.readline().rsplit(" ", 1)[-1].strip()


def batches(rounds: int, count: int) -> None:
    """Print the times of a batch."""
    texts = captions(count)
    references: list[object] = [OBJECTS] * count
    items = items_of(texts)
    folder = Path(__file__).parent
    server, address = started(
        str(Path(sys.executable).parent / "hallujudge"), "serve", "--port", "0"
    )
    echo, echoes = started(sys.executable, str(folder / "bench_server_load.py"), "--echo")
    loop = asyncio.new_event_loop()
    session = loop.run_until_complete(
        Engine(Resources()).open(ScoreRun("chair", responses=()).spec())
    )
    sent = json.dumps([texts, references]).encode()
    try:
        with grpc.insecure_channel(echoes) as channel:
            call: Any = channel.unary_unary(ECHO_METHOD)
            here, there = Reward("chair", "chair_i"), Reward("chair", "chair_i", server=address)
            median = in_turns(
                rounds,
                engine=lambda: loop.run_until_complete(session.evaluate(items)),
                here=lambda: here(texts, references),
                there=lambda: there(texts, references),
                echo=lambda: call(sent),
            )
            here.scorer.close()
            there.scorer.close()
    finally:
        for process in (server, echo):
            process.terminate()
            process.wait()
        loop.close()
    for name, seconds in median.items():
        print(f"{name:7} {1000 * seconds:6.1f} ms for {count} captions of {WORDS} words")
    print(f"here / engine {median['here'] / median['engine']:.2f}")
    print(f"there / (echo + engine) {median['there'] / (median['echo'] + median['engine']):.2f}")


def streams(address: str, count: int, processes: int) -> float:
    """Return the median seconds of as many streams at once as there are processes."""
    spec = spec_to_proto(ScoreRun("chair", responses=()).spec())
    messages = [pb.ScoreStreamRequest(spec=spec, results_only=True)]
    for number in range(BATCHES):
        items = map(item_to_proto, items_of(captions(count), f"{number}-"))
        messages.append(pb.ScoreStreamRequest(batch=pb.ItemBatch(items=items)))
    with grpc.insecure_channel(address) as channel, ThreadPoolExecutor(processes) as pool:
        stub = pb_grpc.JudgeServiceStub(channel)

        def stream(_: int) -> None:
            list(stub.ScoreStream(iter(messages)))

        return in_turns(3, streams=lambda: list(pool.map(stream, range(processes))))["streams"]


def at_once(address: str, count: int, processes: int) -> float:
    """Return the median seconds until all processes have their rewards."""
    command = (sys.executable, __file__, "--caller", address, "--captions", str(count))
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    callers: list[Any] = [subprocess.Popen(command, **pipes) for _ in range(processes)]

    def round_of_calls(say: str) -> None:
        for caller in callers:
            caller.stdin.write(say)
            caller.stdin.flush()
        for caller in callers:
            caller.stdout.readline()

    round_of_calls("warm\n")
    seconds = in_turns(3, calls=lambda: round_of_calls("go\n"))["calls"]
    for caller in callers:
        caller.stdin.close()
        caller.wait()
    return seconds


def call(address: str, count: int) -> None:
    """Ask for the rewards of some batches at each line of the input."""
    reward, texts = Reward("chair", "chair_i", server=address), captions(count)
    references: list[object] = [OBJECTS] * count
    for _ in sys.stdin:
        for _ in range(BATCHES):
            reward(texts, references)
        print("done", flush=True)
    reward.scorer.close()


def throughput(count: int, processes: int) -> None:
    """Print the throughput of streams, and of as many processes with a call after another."""
    server, address = started(str(COMMAND), "serve", "--port", "0")
    try:
        seconds = {
            "streams": streams(address, count, processes),
            "processes": at_once(address, count, processes),
        }
    finally:
        server.terminate()
        server.wait()
    for name, taken in seconds.items():
        captions_a_second = processes * BATCHES * count / taken
        print(f"{processes} {name} at once: {captions_a_second:.0f} captions a second")
    print(f"processes / streams {seconds['streams'] / seconds['processes']:.2f}")


def single_calls(rounds: int, calls: int) -> None:
    """Print the times of calls for one caption each at a server."""
    server, address = started(str(COMMAND), "serve", "--port", "0")
    reward = Reward("chair", "chair_i", server=address)
    gathered = Gathered(reward)
    texts = captions(calls)
    with ThreadPoolExecutor(THREADS) as pool:
        each = partial(pool.map, lambda text: reward([text], [OBJECTS]))
        batched = partial(pool.map, lambda text: gathered(text, OBJECTS))
        median = in_turns(
            max(1, rounds // 10),
            alone=lambda: list(each(texts)),
            gathered=lambda: list(batched(texts)),
        )
    gathered.close()
    reward.scorer.close()
    server.terminate()
    server.wait()
    for name, seconds in median.items():
        print(f"{calls} calls of {THREADS} threads, {name}: {calls / seconds:.0f}/s")
    print(f"gathered is {median['alone'] / median['gathered']:.1f} times as fast")


def main() -> None:
    """Print all figures."""
    parser = Arguments(__doc__)
    parser.size("--rounds", 20, smoke=1)
    parser.size("--captions", 64, smoke=4)
    parser.size("--processes", 8, smoke=2, help="that call at once")
    parser.size("--calls", 1024, smoke=64, help="for one caption each")
    parser.add_argument("--caller", help=argparse.SUPPRESS)
    options = parser.given()
    if options.caller:
        call(options.caller, options.captions)
        return
    batches(options.rounds, options.captions)
    throughput(options.captions, options.processes)
    single_calls(options.rounds, options.calls)


if __name__ == "__main__":
    main()
