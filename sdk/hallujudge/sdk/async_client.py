"""The asynchronous client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from hallujudge import metrics, sdk

from . import runs
from .backends import BatchResult, Timeouts, checked_address
from .errors import DeadlineError, MissingExtraError, UnsupportedError
from .runs.score_run import OnBatch, OnProgress, ScoreRun, called_with, graph_source, input_notes

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.found_claims import FoundClaim
    from hallujudge.judge_service.engine.spec import RunHeader, ScoreSpec
    from hallujudge.judge_service.llm.estimate import Estimate
    from hallujudge.judge_service.settings.connection import Connection
    from hallujudge.metrics import Item, ItemResult, Report

    from .archives import InputOptions, References
    from .backends import ScoringBackend, ServerInfo
    from .backends.remote import RemoteBackend
    from .runs import RunFolder, RunReport
    from .runs.response_scores import Response, ResponseScore
    from .runs.run_inputs import PreparedRun
    from .runs.scoring import RunWatch
    from .runs.server_jobs import JobInfo, OnJobChange, RemoteJobs


class AsyncClient:
    """Scores at a server, or in this process.

    Args:
        server: The server's host and port, such as ``"localhost:50051"``, or a backend that was
            constructed. To score without a server see :meth:`embedded`.
        timeouts: How long the server may take.
        connection: Certificates and API key; what it leaves out is from the environment.

    Example:
        >>> import asyncio
        >>> async def main() -> None:
        ...     async with AsyncClient.embedded() as client:
        ...         report = await client.score(
        ...             "chair", responses={"1": "A dog on a sofa."}, references={"1": ["couch"]}
        ...         )
        ...         print(report.chair_i)
        >>> asyncio.run(main())
        0.5
    """

    def __init__(
        self,
        server: str | ScoringBackend,
        *,
        timeouts: Timeouts | None = None,
        connection: Connection | None = None,
    ) -> None:
        self._backend: ScoringBackend | None = None
        # A wrong address is reported here, not by the first call, which may come hours later.
        self._address = checked_address(server) if isinstance(server, str) else "the server"
        if not isinstance(server, str):
            self._backend = server
        self._timeouts = timeouts or Timeouts()
        self._connection = connection

    @classmethod
    def embedded(cls, settings: Mapping[str, object] | None = None) -> Self:
        """Return a client that scores in this process.

        Args:
            settings: Settings of the judges by name, such as ``{"llm.url": "http://…/v1"}``, over
                those of the environment. API keys are read from the environment only.
        """
        with MissingExtraError.unless_whole("scoring in this process"):
            return cls(runs.EmbeddedBackend(settings))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def __reduce__(self) -> str:
        """Refuse to be pickled or copied: a connection belongs to one process."""
        raise TypeError(
            "a client is not pickled or copied, because its connection and its keys belong to one "
            "process; open a client there, or hand over a Scorer or a Reward, which open their own"
        )

    async def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._backend is not None:
            await self._backend.close()

    @called_with(ScoreRun)
    async def score(self, run: ScoreRun) -> RunReport:
        """Score responses against references.

        The arguments are the fields of :class:`ScoreRun`:
        ``score("chair", responses="captions.jsonl", references="objects.json")``. The report also
        holds the items: ``report.items``, ``report.save("results")``, ``report.latex``.

        Raises:
            ArchiveError: A file can't be used, or ids don't join.
            InvalidInputError: The variant, the graph or an option is invalid.
            NotFoundError: The metric or graph is unknown.
            UnavailableError: The server can't be reached.
        """
        if run.folder is not None:
            with MissingExtraError.unless_whole("a run's folder"):
                score_run_into_folder = runs.score_run_into_folder
            return await score_run_into_folder(await self._connected(), run)
        read = await _run_reader()
        with runs.shown_reading() if run.progress else nullcontext():
            prepared = read(run)
        # With ids, if their order was stated.
        run, spec, source = prepared.run, prepared.spec, prepared.items
        total, items = len(source), runs.RunItems()
        unscored, made = metrics.Outcome.UNSCORED, runs.RunItem
        bar = runs.shown_progress(total) if run.progress else nullcontext(runs.Progress(total))
        with bar as progress:

            def on_batch(batch: BatchResult) -> None:
                without = sum(result.outcome is unscored for result in batch.results)
                progress.scored(len(batch.items), without)
                if run.keep_items:
                    pairs = zip(batch.items, batch.results, strict=True)
                    items.add([made(item=item, result=result) for item, result in pairs])
                if run.on_batch is not None:
                    run.on_batch(batch)

            report = await self.score_items(
                spec, source, on_batch=on_batch, on_progress=progress.waits
            )
            progress.judged(report.judging)
            notes = await asyncio.to_thread(input_notes, spec, source)
            report = replace(report, notes=(*notes, *report.notes))
        return runs.RunReport.of(report, items, run.paths())

    async def score_items(
        self,
        spec: ScoreSpec,
        items: Iterable[Item],
        *,
        on_batch: OnBatch | None = None,
        on_progress: OnProgress | None = None,
    ) -> Report:
        """Score items that are already read.

        Args:
            spec: How they are scored.
            items: The items; read as the backend takes them.
            on_batch: Called with each batch of results, in the order of the items.
            on_progress: Called every few seconds without results, with what is waited for.
        """
        backend = await self._connected()
        header = await backend.header(spec)
        # Only the backend of this process has settings for workers.
        size = runs.batch_size(spec, local=backend.worker_settings is not None)
        batches = runs.batches_async(items, size)
        if not runs.is_whole():
            # The client alone has nothing that makes intervals, so the server's report is used.
            remote = await self._remote()
            return await remote.reported(spec, header, batches, on_batch, on_progress)
        tally = metrics.Tally(header.metric, spec.group_by)
        # Close it now rather than at garbage collection, so that stopping early stops the server.
        async with aclosing(backend.score_stream(spec, header, batches)) as parts:
            async for part in parts:
                if isinstance(part, sdk.RunProgress):
                    if on_progress is not None:
                        on_progress(part)
                    continue
                tally.add_all(part.results)
                if on_batch is not None:
                    on_batch(part)
        # Intervals of many items take seconds; a thread keeps the caller's event loop free.
        return await asyncio.to_thread(header.report, tally, spec.interval)

    async def score_into(
        self,
        folder: RunFolder,
        prepared: PreparedRun,
        watch: RunWatch | None = None,
    ) -> Report:
        """Score a run whose inputs are read into an open folder, and complete it.

        Args:
            folder: The folder.
            prepared: The run.
            watch: Receives the progress of the run.
        """
        with MissingExtraError.unless_whole("a run's folder"):
            score_into_folder = runs.score_into_folder
        return await score_into_folder(await self._connected(), prepared, folder, watch)

    async def header(self, spec: ScoreSpec) -> RunHeader:
        """Return what is known of a run before its first item: its metric, signature and notes."""
        return await (await self._connected()).header(spec)

    async def evaluate(
        self,
        spec: ScoreSpec,
        items: Sequence[Item],
        header: RunHeader | None = None,
        *,
        deadline: float | None = None,
        scores: Sequence[str] = (),
        evidence: bool = False,
    ) -> list[ItemResult]:
        """Return the result of each item, in order, without a report.

        Args:
            spec: How they are scored.
            items: The items, whose ids differ.
            header: What :meth:`header` returned for the spec; None to ask for it.
            deadline: Seconds that all may take; None for no limit.
            scores: If there are any, the results need no more than these scores of each item, which
                a server sends in a third of the time.
            evidence: With ``scores``: whether the results need everything else as well.

        Raises:
            DeadlineError: They took longer.
        """
        backend = await self._connected()
        results: list[ItemResult] = []
        try:
            async with asyncio.timeout(deadline):
                header = header or await backend.header(spec)
                first = next(runs.batches_of(items), ())
                # One batch goes without a stream; a server can't send some scores and their
                # evidence that way.
                if len(first) == len(items) and not (scores and evidence):
                    return [*await backend.evaluate(spec, header, first, scores)]
                more = (scores,) if scores else ()
                stream = backend.score_stream(spec, header, runs.batches_async(items), *more)
                async with aclosing(stream) as parts:
                    async for part in parts:
                        if isinstance(part, BatchResult):
                            results += part.results
        except TimeoutError as err:
            raise DeadlineError(
                f"{len(items) - len(results)} of {len(items)} items were not scored within "
                f"{deadline:g} seconds; raise the deadline, or look at the judge"
            ) from err
        return results

    async def score_each(
        self,
        metric: str,
        responses: Sequence[tuple[str, Response]] | Sequence[Response],
        references: References,
        *,
        scores: Sequence[str] = (),
        variant: str = "",
        graph: str | Path | Mapping[str, str] | None = None,
        options: Mapping[str, object] | None = None,
        inputs: InputOptions | None = None,
    ) -> list[ResponseScore]:
        """Return the scores of each response, in order: no folder, no intervals, no report.

        For many batches about the same references, :class:`hallujudge.sdk.Scorer` reads them once.

        Args:
            metric: The metric's name.
            responses: Pairs of a reference's id and a response; ids may repeat.
            references: As for :meth:`score`.
            scores: Names of the scores that are wanted; empty for the main score.
            variant: The metric's variant; empty for its default.
            graph: As for :meth:`score`.
            options: As for :meth:`score`.
            inputs: How references are read.
        """
        await runs.import_in_thread("hallujudge.sdk.runs.response_scores")
        run = ScoreRun(
            metric,
            responses=(),
            references=references,
            variant=variant,
            graph=graph,
            options=options,
            inputs=inputs,
        )
        spec = run.spec()
        header = await self.header(spec)
        known = await asyncio.to_thread(runs.ReferenceItems, run, header.metric, scores)
        pairs = runs.pairs_of(responses, None)
        items = known.filled(pairs, None)
        results = await self.evaluate(
            spec,
            [item for item in items if isinstance(item, metrics.Item)],
            header,
            scores=known.scores,
            evidence=True,
        )
        return known.scored(pairs, items, results)

    async def extract(
        self,
        metric: str,
        texts: Sequence[str],
        *,
        variant: str = "",
        graph: str | Path | Mapping[str, str] | None = None,
        options: Mapping[str, object] | None = None,
    ) -> list[list[FoundClaim]]:
        """Return the claims of texts without verdicts: mentions, triplets or keywords, with spans.

        Args:
            metric: The metric whose claims are wanted.
            texts: The texts.
            variant: The metric's variant; empty for its default.
            graph: As for :meth:`score`.
            options: As for :meth:`score`.
        """
        run = ScoreRun(metric, responses=(), variant=variant, graph=graph, options=options)
        return await (await self._connected()).extract(run.spec(), runs.plain(texts))

    @called_with(ScoreRun)
    async def judge(self, run: ScoreRun) -> list[ItemResult]:
        """Return verdicts on the claims of responses, without a report; for small batches.

        The arguments are those of :meth:`score`.

        Raises:
            UnsupportedError: The metric's claims are not decided by a judge.
        """
        prepared = (await _run_reader())(run)
        return await (await self._connected()).judge(prepared.spec, list(prepared.items))

    @called_with(ScoreRun)
    async def estimate(self, run: ScoreRun) -> list[Estimate]:
        """Return how many judge calls and tokens a run needs, without calling a judge.

        The arguments are those of :meth:`score`.

        Raises:
            UnsupportedError: The metric calls no paid judge, or a server scores: only
                the server knows its cache and the prices of its judges.
        """
        return await self.estimate_prepared((await _run_reader())(run))

    async def estimate_prepared(self, prepared: PreparedRun) -> list[Estimate]:
        """Return what :meth:`estimate` does, for a run whose inputs are read."""
        return await (await self._connected()).estimate(prepared.spec, list(prepared.items))

    async def normalize(
        self, words: Sequence[str], *, graph: str = "coco"
    ) -> dict[str, tuple[str, ...]]:
        """Map each word to its roots in a graph; an unknown word has none."""
        source = graph_source(graph)
        return await (await self._connected()).normalize(source, runs.plain(words))

    async def server_info(self) -> ServerInfo:
        """Return the release and the graphs of the server, or of this process."""
        return await (await self._connected()).server_info()

    @called_with(ScoreRun)
    async def submit(self, run: ScoreRun) -> JobInfo:
        """Submit a run to the server as a job, and return the job.

        The arguments are those of :meth:`score`. The same run is one job: submitting that was
        stopped goes on when it is submitted again.

        Raises:
            UnsupportedError: No server scores.
        """
        return await self.submit_prepared((await _run_reader())(run))

    async def submit_prepared(self, prepared: PreparedRun, request_id: str = "") -> JobInfo:
        """Return what :meth:`submit` does, for a run whose inputs are read.

        Args:
            prepared: The run.
            request_id: Another id makes another job of the same run.
        """
        return await runs.submit_run(await self._remote(), prepared, request_id)

    async def job(self, job_id: str) -> JobInfo:
        """Return a job of the server."""
        return (await (await self._jobs()).get(job_id)).info

    async def jobs(self, *, all_callers: bool = False) -> list[JobInfo]:
        """Return the caller's jobs at the server, the newest first.

        Args:
            all_callers: Return the jobs of all callers, which needs the scope admin.
        """
        return await (await self._jobs()).listed(all_callers=all_callers)

    async def cancel_job(self, job_id: str) -> JobInfo:
        """Cancel a job, unless it is finished; its results are kept.

        With the scope admin it may be any caller's.
        """
        return await (await self._jobs()).cancel(job_id)

    async def delete_job(self, job_id: str) -> None:
        """Delete a finished job with its results."""
        await (await self._jobs()).delete(job_id)

    async def wait_for_job(self, job_id: str, on_change: OnJobChange | None = None) -> JobInfo:
        """Wait until a job is finished, also while the server is away for a time.

        Args:
            job_id: The job.
            on_change: Called with the job now and after every change.
        """
        return await (await self._jobs()).wait(job_id, on_change)

    async def job_report(self, job_id: str) -> Report:
        """Return the report of a job that is done, as the server made it."""
        return await (await self._jobs()).report(job_id)

    async def fetch_job(
        self,
        job_id: str,
        folder: RunFolder,
        *,
        resume: bool = False,
        html: bool = False,
        watch: RunWatch | None = None,
    ) -> Report:
        """Write a job that is done into an open folder, as scoring into it would have.

        Args:
            job_id: The job.
            folder: The folder.
            resume: Whether to go on with what the folder holds of the job.
            html: Whether ``report.html`` is written.
            watch: Receives the progress.
        """
        with MissingExtraError.unless_whole("a run's folder"):
            fetch_job = runs.fetch_job
        content = await (jobs := await self._jobs()).get(job_id)
        return await fetch_job(jobs, content, folder, resume=resume, html=html, watch=watch)

    async def _jobs(self) -> RemoteJobs:
        return runs.RemoteJobs(await self._remote())

    async def _remote(self) -> RemoteBackend:
        """Return the backend of a server.

        Raises:
            UnsupportedError: This process scores.
        """
        backend = await self._connected()
        if not isinstance(backend, runs.RemoteBackend):
            raise UnsupportedError("jobs are kept by a server; give the client its host and port")
        return backend

    async def _connected(self) -> ScoringBackend:
        """Return the backend; gRPC takes long to import, so a thread imports it."""
        if self._backend is None:
            await runs.import_in_thread("hallujudge.sdk.backends.remote")
            # Another task may have connected meanwhile.
            self._backend = self._backend or runs.RemoteBackend(
                self._address, timeouts=self._timeouts, connection=self._connection
            )
        return self._backend


async def _run_reader() -> Callable[[ScoreRun], PreparedRun]:
    """Return the function that reads a run's inputs; a thread imports what it needs."""
    numpy = ("numpy",) if runs.is_whole() else ()
    await runs.import_in_thread("hallujudge.sdk.archives", "hallujudge.sdk.runs", *numpy)
    return runs.PreparedRun.of
