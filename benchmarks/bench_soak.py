"""The memory of a server that works for a long time.

Clients call a server in turns with pauses: one caption, runs of 300 captions and of 300 questions
with a report, a run that is cancelled in its middle, a stream that says nothing, bytes that are no
message, a wrong key, health, claims for a judge as a stream and as a job, and captions over HTTP.
In the first half the server is killed and started again a few times. Each minute's line has the
calls so far and the server's memory. Claims are sent again until they are answered; what a job lost
is printed, and what the judge was paid for twice. The last line has the growth of memory in the
second half, as a line fitted by least squares.

Run with: python benchmarks/bench_soak.py [--minutes 30] [--pause 0.05] [--kills 4]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import needs
from arguments import Arguments

needs.packages("aiohttp", "grpc_health")

import aiohttp  # noqa: E402
import grpc  # noqa: E402
from bench_server_load import score  # noqa: E402
from grpc_health.v1 import health_pb2  # noqa: E402
from soak_world import Judge, Server  # noqa: E402

from hallujudge.judge.v1 import jobs_pb2, jobs_pb2_grpc  # noqa: E402
from hallujudge.judge.v1 import judge_service_pb2 as pb  # noqa: E402
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc  # noqa: E402
from hallujudge.judge_service.access import Scope  # noqa: E402
from hallujudge.judge_service.access.key_store import create_key  # noqa: E402
from hallujudge.judge_service.engine import ScoreSpec  # noqa: E402
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto  # noqa: E402
from hallujudge.metrics import ChairItem, one_answer  # noqa: E402
from hallujudge.metrics.framework.claims import Triplet  # noqa: E402
from hallujudge.metrics.tri_he import TriHeItem  # noqa: E402

Work: TypeAlias = Callable[[int], Awaitable[None]]

_SERVICE = "/hallujudge.judge.v1.JudgeService/"
_ITEMS = 300
_BATCH = 50
_CLAIMS = 20
_JUDGED = ScoreSpec(metric="tri-he", options={"judge": "llm", "extractor": "given"})
_SCENE = (Triplet("man", "riding", "horse"),)
_AGAIN = 0.5
_AT_WORK = (jobs_pb2.JobState.JOB_STATE_QUEUED, jobs_pb2.JobState.JOB_STATE_RUNNING)
# A client calls again soon after a kill, not after gRPC's own pauses of up to two minutes.
_CHANNEL = (("grpc.max_reconnect_backoff_ms", 1_000),)
FEWEST_LOOKS = 12


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


def claims(run: int) -> Iterator[Any]:
    """Yield items for the judge whose claims differ from run to run."""
    for n in range(_CLAIMS):
        claim = (Triplet("man", "has", f"hat {run}-{n}"),)
        yield TriHeItem(id=f"{run}-{n}", claims=claim, reference_triplets=_SCENE)


class Clients:
    """What the clients do; each method is one turn of one kind."""

    def __init__(
        self, channel: grpc.aio.Channel, http: aiohttp.ClientSession, server: Server, key: str
    ) -> None:
        self._stub: Any = pb_grpc.JudgeServiceStub(channel)
        self._jobs: Any = jobs_pb2_grpc.ScoringJobServiceStub(channel)
        self._http = http
        self._server = server
        self._runs = itertools.count()
        self.claims = 0
        self.lost = 0
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

    async def http(self, run: int) -> None:
        """Score one caption over HTTP."""
        item = {"id": str(run), "chair": {"response": f"A dog and a cat, {run}."}}
        item["chair"]["referenceObjects"] = {"values": ["dog"]}  # type: ignore[index]
        async with self._http.post(
            f"{self._server.http}{_SERVICE}Score",
            json={"spec": {"metric": "chair"}, "items": [item]},
            headers=dict(self._key),
        ) as response:
            response.raise_for_status()
            answered = await response.json()
        self._count([str(run)], [result["id"] for result in answered["results"]])

    async def judged(self, _run: int) -> None:
        """Score claims by the judge, again until all are answered."""
        items = list(claims(next(self._runs)))
        found: list[str] = []
        while len(found) < len(items):
            call = self._stub.ScoreStream(_requests(_JUDGED, iter(items)), metadata=self._key)
            found = []
            try:
                async for response in call:
                    found += [r.id for r in response.batch.results if _is_scored(r)]
                break
            except grpc.aio.AioRpcError as err:
                await self._failed("judged", err)
        self._count([item.id for item in items], found)
        self.claims += len(items)

    async def job(self, run: int) -> None:
        """Score claims as a job, which goes on after a kill."""
        items = list(claims(next(self._runs)))
        create = jobs_pb2.CreateJobRequest(
            request_id=f"soak {run}", spec=spec_to_proto(_JUDGED), items=map(item_to_proto, items)
        )
        made = await self._again("job", lambda: self._jobs.CreateJob(create, metadata=self._key))
        get = jobs_pb2.GetJobRequest(job_id=made.job.id)
        state = jobs_pb2.JobState.JOB_STATE_QUEUED
        while state in _AT_WORK:
            await asyncio.sleep(_AGAIN)
            got = await self._again("job", lambda: self._jobs.GetJob(get, metadata=self._key))
            state = got.job.state
        page = jobs_pb2.ListJobResultsRequest(job_id=made.job.id)
        results = await self._again(
            "job", lambda: self._jobs.ListJobResults(page, metadata=self._key)
        )
        scored = [one.result.id for one in results.results if _is_scored(one.result)]
        self._count([item.id for item in items], scored)
        self.claims += len(items)
        # A caller may have a hundred jobs at a time.
        delete = jobs_pb2.DeleteJobRequest(job_id=made.job.id)
        await self._again("job", lambda: self._jobs.DeleteJob(delete, metadata=self._key))

    async def _again(self, name: str, call: Callable[[], Awaitable[Any]]) -> Any:
        while True:
            try:
                return await call()
            except grpc.aio.AioRpcError as err:
                await self._failed(name, err)

    async def _failed(self, name: str, error: grpc.aio.AioRpcError) -> None:
        """Wait before a call is repeated, if it was the server's end that broke it off."""
        if error.code() is not grpc.StatusCode.UNAVAILABLE:
            raise error
        self.outcomes[f"{name} repeated"] += 1
        await asyncio.sleep(_AGAIN)

    def _count(self, sent: list[str], answered: list[str]) -> None:
        """Count what has no answer, or not the one that was asked for."""
        self.lost += sum((Counter(sent) - Counter(answered)).values())
        self.lost += sum((Counter(answered) - Counter(sent)).values())

    async def _stream(self, metric: str, items: Iterator[Any], leave_after: int = 0) -> None:
        responses = 0
        requests = _requests(ScoreSpec(metric=metric), items)
        call = self._stub.ScoreStream(requests, metadata=self._key)
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
            except aiohttp.ClientError as err:
                self.outcomes[f"{turn.__name__} {type(err).__name__}"] += 1
            run += 1
            await asyncio.sleep(pause)


async def _requests(spec: ScoreSpec, items: Iterator[Any]) -> AsyncIterator[pb.ScoreStreamRequest]:
    yield pb.ScoreStreamRequest(spec=spec_to_proto(spec))
    while batch := [item_to_proto(item) for item in itertools.islice(items, _BATCH)]:
        yield pb.ScoreStreamRequest(batch=pb.ItemBatch(items=batch))


def _is_scored(result: pb.ItemResult) -> bool:
    return result.outcome == pb.Outcome.OUTCOME_SCORED


async def kill(server: Server, kills: int, minutes: float) -> None:
    """Kill the server so often in the first half, and start it again."""
    for _ in range(kills):
        await asyncio.sleep(60 * minutes / 2 / (kills + 1))
        await server.kill()
        print("killed and started again", flush=True)


async def watch(
    server: Server, minutes: float, outcomes: Counter[str]
) -> list[tuple[float, float]]:
    """Print the memory each minute; return minutes and MiB, four times a minute or more often."""
    begun, seen = time.monotonic(), []
    # Of a short run too, the second half has enough of them for a line.
    pause = min(15.0, 60 * minutes / FEWEST_LOOKS)
    shown = -1
    while (passed := (time.monotonic() - begun) / 60) < minutes:
        seen.append((passed, server.memory))
        if int(passed) > shown:
            shown = int(passed)
            print(
                f"{passed:5.1f} min: {outcomes.total():7} calls, {seen[-1][1]:6.1f} MiB", flush=True
            )
        await asyncio.sleep(pause)
    return seen


def growth(seen: list[tuple[float, float]], minutes: float) -> str:
    """Return what the last line says of the memory, by the looks at it in the second half."""
    half = [(at, size) for at, size in seen if at >= minutes / 2]
    most = f"most {max(size for _, size in seen):.1f} MiB"
    if len(half) < 2:
        return f"{most}; growth unknown: one look in the second half, so run for longer"
    slope = statistics.linear_regression(*zip(*half, strict=True)).slope
    return f"{most}; growth {60 * slope:+.2f} MiB an hour"


async def measure(given: argparse.Namespace, folder: Path) -> None:
    """Run the clients, and print what was lost and what the server's memory did."""
    keys, judge = folder / "keys.json", Judge()
    key = create_key(keys, "soak", scopes=[Scope.SCORE, Scope.JUDGE])
    async with judge as url, aiohttp.ClientSession() as http:
        asked = ("--llm-url", url, "--llm-model", "m", "--keys-file", str(keys))
        with Server(*asked, XDG_STATE_HOME=str(folder)) as server:
            async with grpc.aio.insecure_channel(server.address, options=_CHANNEL) as channel:
                clients = Clients(channel, http, server, key)
                seen = await _soak(clients, server, given)
    for name, count in sorted(clients.outcomes.items()):
        print(f"{name}: {count}")
    twice = judge.paid.total() - len(judge.paid)
    print(f"{clients.claims} claims answered by a judge; {judge.paid.total()} calls, {twice} twice")
    print(f"lost: {clients.lost}")
    print(growth(seen, given.minutes))


async def _soak(
    clients: Clients, server: Server, given: argparse.Namespace
) -> list[tuple[float, float]]:
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
        clients.http,
        clients.judged,
        clients.job,
    )
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(watch(server, given.minutes, clients.outcomes))
        group.create_task(kill(server, given.kills, given.minutes))
        for turn in turns:
            group.create_task(clients.work(turn, until, given.pause))
    return watching.result()


def main() -> None:
    """Run the benchmark."""
    parser = Arguments(__doc__)
    parser.size("--minutes", 30.0, smoke=0.05)
    parser.add_argument("--pause", type=float, default=0.05)
    parser.size("--kills", 4, smoke=1)
    given = parser.given()
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(measure(given, Path(name)))


if __name__ == "__main__":
    main()
