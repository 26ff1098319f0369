"""The callers of a fault schedule, and what must hold whatever happens to the server.

Every caller repeats what failed in a way that a client may repeat, as the SDK does, until each of
its items is answered. What a server must never do is collected in ``Books.problems``.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import grpc
from support.fault_judge import owner_of
from support.fault_schedule import CALLERS, EVERYBODY, Work
from support.fault_world import OUTPUT, World

from hallujudge.judge.v1 import jobs_pb2, jobs_pb2_grpc
from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.judge_service.errors import (
    CancelledError,
    InvalidInputError,
    OutputError,
    OverloadedError,
    UnauthenticatedError,
    UnavailableError,
)
from hallujudge.judge_service.llm.failures import CONFIGURATION_REASONS
from hallujudge.judge_service.settings.connection import Connection, Secret
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto
from hallujudge.judge_service.wire.errors import error_from_rpc
from hallujudge.metrics.chair import ChairItem
from hallujudge.metrics.framework.claims import Triplet
from hallujudge.metrics.tri_he import TriHeItem
from hallujudge.sdk import AsyncClient, ScoreSpec, Timeouts

__all__ = ["Books", "Caller"]

_SPECS = {
    "tri-he": ScoreSpec(metric="tri-he", options={"judge": "llm", "extractor": "given"}),
    "chair": ScoreSpec(metric="chair"),
}
_SCENE = (Triplet("man", "riding", "horse"),)
_TRIPLETS = [["man", "riding", "horse"]]
# The next life of a server has another address.
_AT_ONCE_AGAIN = Timeouts(reconnect_timeout=0.5)
_BATCH = 3
_PAUSE = 0.02
# What a client calls again after; everything else is the server's fault or the caller's own.
_REPEATED = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)
_FINISHED = (
    jobs_pb2.JobState.JOB_STATE_DONE,
    jobs_pb2.JobState.JOB_STATE_FAILED,
    jobs_pb2.JobState.JOB_STATE_CANCELLED,
)
# Reasons that concern all calls of a caller, once the judge has failed some.
_GENERAL = frozenset({"JUDGE_CIRCUIT_OPEN", "JUDGE_QUOTA_EXHAUSTED", "JUDGE_SERVER_ERROR"})


class _RevokedError(Exception):
    """The key of the caller was revoked."""


class Books:
    """What the callers know, together.

    Attributes:
        problems: What must not happen, and did.
        settled: Claims with a verdict that a caller has got.
        excused: How often more than once a claim may be paid for: its call was in flight when the
            server was killed, or when its caller left.
        jobs: The request ids that each caller used.
    """

    def __init__(self, world: World, keys: dict[str, str]) -> None:
        self.world = world
        self.keys = keys
        self.problems: list[str] = []
        self.settled: set[str] = set()
        self.excused: Counter[str] = Counter()
        self.jobs: dict[str, dict[str, str]] = {name: {} for name in CALLERS}
        world.on_death = self.look_at_disk

    def excuse(self, claims: Sequence[str]) -> None:
        """Allow another call for claims whose caller leaves: a reply may be on its way."""
        self.excused.update(set(claims))

    def look_at_disk(self) -> None:
        """Look at the disk between two lives: what has a verdict there is never paid for again."""
        judge, world = self.world.judge, self.world
        if world.cache_troubled:
            self.excused.update(judge.sent_in_life)
        else:
            self.excused.update(judge.sent_in_life - self.settled - set(self._stored()))

    def _stored(self) -> list[str]:
        with self.world.database("jobs") as file:
            try:
                rows = file.execute(
                    "SELECT result FROM hallujudge_job_items WHERE scored"
                ).fetchall()
            except Exception:  # there are no jobs yet
                return []
        results = [pb.ItemResult.FromString(row[0]) for row in rows]
        return [claim for result in results for claim in _claims_of(result)]

    def check(self, holds: bool, problem: str) -> None:
        """Note a problem unless something holds."""
        if not holds:
            self.problems.append(problem)


class Caller:
    """Does one piece of work until it is done.

    Args:
        books: What the callers know.
        work: The work.
        number: Its number in the schedule.
    """

    def __init__(self, books: Books, work: Work, number: int) -> None:
        self._books = books
        self._world = books.world
        self._work = work
        self._name = f"{work.caller}-{number}"
        self._metadata = (("authorization", f"Bearer {books.keys[work.caller]}"),)
        self._spec = spec_to_proto(_SPECS[work.metric])
        self._items = {
            item.id: item for item in (self._item(n, claim) for n, claim in enumerate(work.claims))
        }
        self.answered: Counter[str] = Counter()
        self.unscored = 0

    def _item(self, number: int, claim: str) -> pb.Item:
        name = f"{self._name}-{number}"
        if self._work.metric == "chair":
            text = f"A dog and a cat, {claim}."
            return item_to_proto(ChairItem(id=name, response=text, reference_objects=("dog",)))
        claims = (Triplet("man", "has", claim),)
        return item_to_proto(TriHeItem(id=name, claims=claims, reference_triplets=_SCENE))

    async def run(self) -> None:
        """Do the work; return when every item is answered, or no caller waits for them."""
        await asyncio.sleep(self._work.begins)
        try:
            await getattr(self, f"_{self._work.kind}")()
        except _RevokedError:
            self._books.excuse(self._work.claims)
            self._items.clear()

    @property
    def _left(self) -> list[pb.Item]:
        return [item for name, item in self._items.items() if not self.answered[name]]

    @property
    def _judge(self) -> Any:
        return pb_grpc.JudgeServiceStub(self._world.channel)

    @property
    def _jobs(self) -> Any:
        return jobs_pb2_grpc.ScoringJobServiceStub(self._world.channel)

    async def _again(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Return the result of a call, which is repeated while it fails as calls may."""
        while True:
            await self._world.serving.wait()
            life = self._world.life
            try:
                return await call()
            except grpc.RpcError as err:
                if not life.is_ending:
                    # The error ends the run's other calls, whose replies may be on their way.
                    self._books.excuse(self._work.claims)
                if self._is_revoked and err.code() is grpc.StatusCode.UNAUTHENTICATED:
                    raise _RevokedError from err
                if not _is_grpcs_own(err, is_ending=life.is_ending):
                    self._check_failure(err)
            except asyncio.CancelledError:
                # gRPC cancels the calls of a channel that is closed, and nothing cancels this task
                # while the world lasts.
                if asyncio.current_task().cancelling():  # type: ignore[union-attr]
                    raise
            await asyncio.sleep(_PAUSE)

    @property
    def _is_revoked(self) -> bool:
        """Whether the key is revoked, or is just being revoked."""
        return self._work.caller in self._world.revoking

    def _check_failure(self, error: grpc.RpcError) -> None:
        """Check that a call failed in a way that it may."""
        known = error_from_rpc(error, target="server")
        early = known.reason in CONFIGURATION_REASONS and self._world.judge.rejected_early
        waited = known.reason == "JUDGE_NO_PROGRESS" and bool(self._world.judge.failed)
        self._books.check(
            error.code() in _REPEATED or early or waited, f"{self._name}: {error.code()} {known!r}"
        )
        self._check_private(str(known), "an error")

    async def _unary(self) -> None:
        async def call() -> None:
            request = pb.ScoreRequest(spec=self._spec, items=self._left)
            response = await self._judge.Score(request, metadata=self._metadata)
            self._got(response.results, [item.id for item in request.items])

        await self._again(call)

    async def _stream(self, pause: float = 0.0) -> None:
        await self._again(lambda: self._streamed(pause))

    async def _slow(self) -> None:
        """Read the first results of a stream late."""
        await self._stream(pause=0.3)

    async def _streamed(self, pause: float) -> None:
        expected = [item.id for item in self._left]
        call = self._judge.ScoreStream(self._requests(), metadata=self._metadata)
        await asyncio.sleep(pause)
        async for response in call:
            if response.WhichOneof("message") == "batch":
                names = [result.id for result in response.batch.results]
                self._got(response.batch.results, expected[: len(names)])
                del expected[: len(names)]
        self._books.check(not expected, f"{self._name}: a stream ended without {expected}")

    async def _requests(self) -> AsyncIterator[pb.ScoreStreamRequest]:
        yield pb.ScoreStreamRequest(spec=self._spec, results_only=True)
        left = self._left
        for start in range(0, len(left), _BATCH):
            batch = pb.ItemBatch(items=left[start : start + _BATCH])
            yield pb.ScoreStreamRequest(batch=batch)

    async def _run(self) -> None:
        """Score into a folder by the SDK, which goes on where it was deleted or broke off."""
        folder = self._world.folder / f"{OUTPUT}{self._name}"
        run = {
            "responses": [
                {"image_id": name, "question": "", "claims": [["man", "has", claim]]}
                for name, claim in zip(self._items, self._work.claims, strict=True)
            ],
            "references": [{"image_id": name, "triplets": _TRIPLETS} for name in self._items],
            "options": {"judge": "llm"},
            "folder": folder,
        }
        while not (folder / "report.json").exists():
            await self._world.serving.wait()
            await self._ran(run)
            # gRPC keeps the connection of a closed channel while an error refers to its call.
            gc.collect()
            await asyncio.sleep(_PAUSE)
        rows = [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]
        for row in rows:
            self.answered[row["id"]] += 1
            self.unscored += row["outcome"] != "scored"

    async def _ran(self, run: dict[str, Any]) -> None:
        """Run once, to the end or to a failure after which a run may go on."""
        connection = Connection(api_key=Secret(self._books.keys[self._work.caller]))
        life = self._world.life
        client = AsyncClient(life.address, timeouts=_AT_ONCE_AGAIN, connection=connection)
        try:
            async with client:
                await client.score("tri-he", resume=True, **run)
            return
        except UnauthenticatedError as err:
            if self._is_revoked:
                raise _RevokedError from err
            self._books.problems.append(f"{self._name}: {err!r}")
        except (UnavailableError, OverloadedError):
            pass
        except CancelledError as err:
            # By gRPC, in the very moment of a stop.
            self._books.check(life.is_ending, f"{self._name}: {err!r}")
        except InvalidInputError as err:
            early = err.reason in CONFIGURATION_REASONS and self._world.judge.rejected_early
            self._books.check(early, f"{self._name}: {err!r}")
        except OutputError as err:
            deleted = "was deleted, moved or replaced" in str(err)
            self._books.check(deleted, f"{self._name}: {err!r}")
        self._books.excuse(self._work.claims)

    async def _vanish(self) -> None:
        """Leave a stream in its middle."""
        stream = asyncio.create_task(self._stream())
        await asyncio.wait({stream}, timeout=self._work.leaves)
        stream.cancel()
        await asyncio.gather(stream, return_exceptions=True)
        self._books.excuse(self._work.claims)
        self._items.clear()

    async def _job(self) -> None:
        created = await self._created()
        job: jobs_pb2.Job = await self._again(lambda: self._watched(created.id))
        early = job.problem in CONFIGURATION_REASONS and self._world.judge.rejected_early
        if self._is_revoked and job.problem == "KEY_INVALID":
            raise _RevokedError
        if job.state == jobs_pb2.JobState.JOB_STATE_FAILED and early and not job.scored:
            self._items.clear()
            return
        self._books.check(
            job.state == jobs_pb2.JobState.JOB_STATE_DONE, f"{self._name}: the job ended as {job}"
        )
        self._books.check(
            job.scored + job.unscored == len(self._items), f"{self._name}: a job lost items: {job}"
        )
        page = jobs_pb2.ListJobResultsRequest(job_id=created.id)
        found = await self._again(lambda: self._jobs.ListJobResults(page, metadata=self._metadata))
        self._got([one.result for one in found.results], list(self._items))

    async def _created(self) -> jobs_pb2.Job:
        """Create a job with a part of the items, and add the others."""
        items, name = list(self._items.values()), f"request {self._name}"
        first = jobs_pb2.CreateJobRequest(
            spec=self._spec, items=items[:_BATCH], request_id=name, more=len(items) > _BATCH
        )
        made = await self._again(lambda: self._jobs.CreateJob(first, metadata=self._metadata))
        job: jobs_pb2.Job = made.job
        self._books.jobs[self._work.caller][name] = job.id
        if first.more:
            rest = jobs_pb2.AddJobItemsRequest(job_id=job.id, position=_BATCH, items=items[_BATCH:])
            await self._again(lambda: self._jobs.AddJobItems(rest, metadata=self._metadata))
        return job

    async def _watched(self, job_id: str) -> jobs_pb2.Job:
        job = jobs_pb2.Job()
        watch = jobs_pb2.WatchJobRequest(job_id=job_id)
        async for response in self._jobs.WatchJob(watch, metadata=self._metadata):
            job = response.job
            self._check_private(str(job), "a job")
            if job.problem:  # what it met ended the other calls of its chunk
                self._books.excuse(self._work.claims)
        self._books.check(job.state in _FINISHED, f"{self._name}: a watch ended with {job}")
        return job

    async def _cancel(self) -> None:
        """Create a job, and cancel it."""
        job = await self._created()
        cancel = jobs_pb2.CancelJobRequest(job_id=job.id)
        job = (await self._again(lambda: self._jobs.CancelJob(cancel, metadata=self._metadata))).job
        self._books.check(job.state in _FINISHED, f"{self._name}: not cancelled: {job}")
        self._books.excuse(self._work.claims)
        self._items.clear()

    def _got(self, results: Sequence[pb.ItemResult], expected: Sequence[str]) -> None:
        """Take results."""
        books, names = self._books, [result.id for result in results]
        books.check(names == expected, f"{self._name}: got {names} instead of {expected}")
        for result in results:
            self.answered[result.id] += 1
            self._check_private(str(result), "a result")
            books.check(result.outcome != pb.Outcome.OUTCOME_UNSPECIFIED, f"no outcome: {result}")
            if result.outcome == pb.Outcome.OUTCOME_SCORED:
                books.settled.update(_claims_of(result))
            else:
                self.unscored += 1
                books.check(bool(result.reason), f"unscored without a reason: {result}")
                self._check_reason(result)

    def _check_reason(self, result: pb.ItemResult) -> None:
        """Check that the caller's own budget, or the judge's failure, is why there is no score."""
        judge, world, caller = self._world.judge, self._world, self._work.caller
        (verdict,) = result.tri_he.claims
        claim, reason = verdict.triplet.object, verdict.reason
        if reason == "JUDGE_BUDGET_EXHAUSTED":
            own = caller != CALLERS[0] or "spending" in world.troubled
            self._books.check(own, f"{self._name} has no budget: {result}")
            return
        asked = {one for one in judge.failed if owner_of(one) in (EVERYBODY, caller)}
        explained = claim in judge.failed or (reason in _GENERAL and bool(asked))
        self._books.check(explained, f"{self._name}: nothing explains {result}")

    def _check_private(self, text: str, what: str) -> None:
        others = [name for name in CALLERS if name != self._work.caller]
        seen = [name for name in others if f"of {name}" in text or f"{name}-" in text]
        self._books.check(not seen, f"{self._name}: {what} is of {seen}: {text}")

    async def check_jobs(self) -> None:
        """Check that the caller sees its own jobs, and no other's."""
        caller, books = self._work.caller, self._books
        if self._is_revoked:
            return
        listed = (
            await self._jobs.ListJobs(jobs_pb2.ListJobsRequest(), metadata=self._metadata)
        ).jobs
        books.check(
            {job.request_id: job.id for job in listed} == books.jobs[caller],
            f"{caller} has {books.jobs[caller]}, and sees {listed}",
        )
        for job_id in itertools.chain(
            *(ids.values() for c, ids in books.jobs.items() if c != caller)
        ):
            request = jobs_pb2.GetJobRequest(job_id=job_id)
            try:
                await self._jobs.GetJob(request, metadata=self._metadata)
                books.problems.append(f"{caller} sees another's job {job_id}")
            except grpc.RpcError as err:
                books.check(err.code() is grpc.StatusCode.NOT_FOUND, f"{caller}: {err!r}")

    def check_answers(self) -> None:
        """Check that every item was answered once."""
        wrong = [name for name in self._items if self.answered[name] != 1]
        self._books.check(not wrong, f"{self._name}: not answered once: {wrong}")


def _is_grpcs_own(error: grpc.RpcError, *, is_ending: bool) -> bool:
    """Whether gRPC ended a call by itself; the SDK repeats such calls too.

    A server that ends cancels calls that no method has got yet, and a client that writes just when
    its call or connection ends fails in its own core.
    """
    text = error.details() if isinstance(error, grpc.aio.AioRpcError) else ""
    cancelled = is_ending and error.code() is grpc.StatusCode.CANCELLED
    return cancelled or text == "Internal error from Core"


def _claims_of(result: pb.ItemResult) -> list[str]:
    return [claim.triplet.object for claim in result.tri_he.claims]
