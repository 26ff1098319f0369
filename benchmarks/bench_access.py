"""What TLS and API keys cost, as ratios to a server with plain text and without keys.

Four servers run at the same time, one process each, and rounds take turns between them. The ratio
is of processor time, that of the server and of the client together: it does not depend on what else
the machine does. Wall-clock time is the median of a round. A round has calls that do nothing, unary
calls that extract the objects of one caption, and a stream of 20 batches of 256 captions.

Run with: python benchmarks/bench_access.py [--rounds 15] [--calls 200]
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import needs
from arguments import Arguments

needs.packages("trustme")

import trustme  # noqa: E402

from hallujudge.judge_service.access import Scope  # noqa: E402
from hallujudge.judge_service.access.key_store import create_key  # noqa: E402
from hallujudge.judge_service.tenancy import Limits  # noqa: E402
from hallujudge.metrics import ChairItem  # noqa: E402
from hallujudge.sdk import AsyncClient, Connection, ScoreSpec, Secret  # noqa: E402

_SPEC = ScoreSpec(metric="chair")
_BATCH = 256
_BATCHES = 20
_MOST_WARM_UPS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server and the way to it."""

    name: str
    """What it has."""
    address: str
    """Its address."""
    connection: Connection
    """How to connect."""
    pid: int
    """Its process."""


def item(number: int) -> ChairItem:
    """Return a caption."""
    text = f"A dog and a cat sit on a couch next to a person with a laptop, image {number}."
    return ChairItem(id=str(number), response=text, reference_objects=("dog", "couch"))


@contextmanager
def serving(name: str, folder: Path, *, tls: bool, keys: bool) -> Iterator[Served]:
    """Run a server in a process of its own."""
    arguments, ca, key = [], "", ""
    if tls:
        authority = trustme.CA()
        certificate = authority.issue_cert("127.0.0.1", "localhost")
        authority.cert_pem.write_to_path(folder / f"{name}-ca.pem")
        certificate.private_key_and_cert_chain_pem.write_to_path(folder / f"{name}.pem")
        pair = str(folder / f"{name}.pem")
        arguments += ["--tls-cert", pair, "--tls-key", pair]
        ca = str(folder / f"{name}-ca.pem")
    if keys:
        path = folder / f"{name}.json"
        # A limit that is never reached has to be counted like any other.
        limits = Limits(calls_per_minute=10**9, max_concurrency=10**6)
        key = create_key(path, "bench", scopes=[Scope.SCORE, Scope.EXTRACT], limits=limits)
        arguments += ["--keys-file", str(path)]
    process = subprocess.Popen(
        [Path(sys.executable).parent / "hallujudge", "serve", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_STATE_HOME": str(folder / name)},
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().rpartition(" ")[2].strip()
        connection = Connection(tls_ca=ca, api_key=Secret(key))
        yield Served(name=name, address=address, connection=connection, pid=process.pid)
    finally:
        process.terminate()
        process.wait()


async def empty(client: AsyncClient, calls: int) -> None:
    """Make some calls that do nothing, one after the other."""
    for _ in range(calls):
        await client.server_info()


async def unary(client: AsyncClient, calls: int) -> None:
    """Extract the objects of some captions, one call each."""
    text = item(1).response or ""
    for _ in range(calls):
        await client.extract("chair", [text])


async def stream(client: AsyncClient, _calls: int) -> None:
    """Score one stream."""
    await client.score_items(_SPEC, [item(number) for number in range(_BATCH * _BATCHES)])


_KINDS = {"empty": empty, "unary": unary, "stream": stream}


def processor_time(pid: int) -> float:
    """Return the processor time of all threads of a server, and of this process, in seconds."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return time.process_time() + sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


async def measure(servers: list[Served], rounds: int, calls: int) -> None:
    """Measure and print a line for each kind of call and each server."""
    taken: dict[tuple[str, str], list[tuple[float, float]]] = {}
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(AsyncClient(one.address, connection=one.connection))
            for one in servers
        ]
        warm_ups = min(_MOST_WARM_UPS, rounds)
        for number in range(warm_ups + rounds):
            # Each takes each place in turn.
            for place in range(len(servers)):
                at = (place + number) % len(servers)
                for kind, make in _KINDS.items():
                    begun = time.perf_counter(), processor_time(servers[at].pid)
                    await make(clients[at], calls)
                    ended = time.perf_counter(), processor_time(servers[at].pid)
                    if number >= warm_ups:
                        row = ended[0] - begun[0], ended[1] - begun[1]
                        taken.setdefault((kind, servers[at].name), []).append(row)
    for (kind, name), rows in sorted(taken.items()):
        wall = statistics.median(row[0] for row in rows)
        work, plain = (
            statistics.median(row[1] for row in taken[kind, one]) for one in (name, "plain")
        )
        print(
            f"{kind:7} {name:6} {wall * 1e3:8.1f} ms wall {work * 1e3:8.1f} ms processor   "
            f"{work / plain:.3f} times plain"
        )


def main() -> None:
    """Run the benchmark."""
    parser = Arguments(__doc__)
    parser.size("--rounds", 15, smoke=1)
    parser.size("--calls", 200, smoke=5)
    given = parser.given()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            serving("plain", folder, tls=False, keys=False) as plain,
            serving("keys", folder, tls=False, keys=True) as keys,
            serving("tls", folder, tls=True, keys=False) as tls,
            serving("both", folder, tls=True, keys=True) as both,
        ):
            asyncio.run(measure([plain, keys, tls, both], given.rounds, given.calls))


if __name__ == "__main__":
    main()
