"""A run that asks a model a benchmark's questions, and writes an archive that can be scored."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hallujudge.judge_service import __version__
from hallujudge.judge_service.engine.streams import RunProgress
from hallujudge.judge_service.llm.ask_once import run_bounded
from hallujudge.judge_service.llm.budget import Budget
from hallujudge.judge_service.llm.client import ChatClient
from hallujudge.judge_service.llm.estimate import Estimate, PlannedCall, estimate_calls
from hallujudge.judge_service.settings.loading import ResolvedSettings, load_settings
from hallujudge.judge_service.stopping import begun, cancel_all
from hallujudge.metrics.framework.json_values import schema_of
from hallujudge.metrics.framework.results import JsonValue
from hallujudge.sdk.archives.stored_files import refuse_schema
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.media.media_files import MediaFolder
from hallujudge.sdk.media.video_frames import FrameSettings, Sampling
from hallujudge.sdk.runs.folder_guards import tidied_replies
from hallujudge.sdk.runs.progress_bar import Progress
from hallujudge.sdk.runs.run_inputs import described_file

from .asked_benchmarks import Benchmark, benchmark_of
from .first_checks import checked_parameters, notes_on_archive, shown_parameters, waits_if_asked
from .inquiries import Inquiries, read_inquiries
from .outcomes import Answered, AskedFiles, AskResult, put_outcome
from .replies import Asker
from .shown_media import ShownMedia
from .text_calls import text_client

# As often as progress is drawn: what changes in between is not seen.
_TICK_SECONDS = 1.0
_URL = "llm.url, the base address of its server (such as http://localhost:8000/v1)"
# A run of the first records is tried before one of all. Calls' keys have the hashes of images.
_MAY_DIFFER = ("release", "images", "limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRun:
    """What is asked, of which model, and where the answers go."""

    benchmark: str
    """Name of the metric, such as ``pope``."""
    out: str | Path
    """The archive to write, a file of JSON lines."""
    images: str | Path
    """Folder of the images and videos."""
    references: str | Path | Sequence[str | Path] = ()
    """Files of questions; none for a benchmark that asks the same about every image."""
    options: str | Path | None = None
    """File of the display orders of captions, for VidHal."""
    protocol: str = ""
    """How questions are asked; empty for the benchmark's default."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Step -> text that replaces its prompt; the last step is ``answer``."""
    prompt_preset: str = ""
    """Name of a prompt that the benchmark's paper prints, in place of ours; empty for ours."""
    frames: str = "uniform:16"
    """Which frames of videos are sent, as ``Sampling`` of ``sdk.media.video_frames`` reads it."""
    frame_format: str = "jpeg"
    """How frames are sent: ``jpeg`` or ``png``."""
    combine_frames: bool = False
    """Whether all frames of a question are sent as one picture."""
    conditions: Sequence[str] = ()
    """Conditions to ask under, such as INFACT's operators; none for those with a folder."""
    limit: int | None = None
    """Records of the files to ask about at most; None for all."""
    temperature: float = 0.0
    """Temperature; 0 always takes the most likely token."""
    max_tokens: int | None = None
    """Tokens of a reply at most, its thought included; None for the benchmark's own limit."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    """More parameters of the requests, such as ``{"seed": 7}``."""
    model: Mapping[str, object] = field(default_factory=dict)
    """Settings of the model, with the names of a judge's: ``llm.url``, ``llm.model``, ...; what
    is not given comes from the environment and the settings file."""
    replies: str | Path | None = None
    """File that keeps replies, which several runs may share; None for one next to the archive."""
    bad_labels: bool = False
    """Whether questions are asked too whose archive scoring would refuse, as for a bad label."""
    overwrite: bool = False
    """Whether an archive of other questions or settings is replaced."""
    wait: float = 0.0
    """Seconds to wait for a server that is starting; a later outage is waited for anyway."""

    def within(self, calls: int, cost: float) -> AskRun:
        """Return the run with the budget that calls of earlier runs have left."""
        # The budget may come from the environment, and must not start again for each benchmark.
        judges = load_settings(dict(self.model)).judges
        left: dict[str, object] = {}
        if judges.max_calls >= 0:
            left["max_calls"] = max(0, judges.max_calls - calls)
        if judges.max_cost >= 0:
            left["max_cost"] = max(0.0, judges.max_cost - cost)
        return replace(self, model={**self.model, **left})

    @property
    def files(self) -> AskedFiles:
        """The files that the run writes."""
        shared = None if self.replies is None else Path(self.replies)
        return AskedFiles(archive=Path(self.out), shared=shared)


def ask(run: AskRun, progress: Progress | None = None) -> AskResult:
    """Ask a model, outside an event loop; see :func:`ask_async`."""
    return asyncio.run(ask_async(run, progress))


async def ask_async(run: AskRun, progress: Progress | None = None) -> AskResult:
    """Ask a model a benchmark's questions, and write its archive.

    A run that was stopped goes on where it stopped: replies are kept as they arrive. A question
    that can't be asked or has no whole answer is written with its reason.

    Args:
        run: What is asked.
        progress: Counts questions; None shows nothing.

    Raises:
        ArchiveError: The files of questions can't be read.
        InvalidInputError: A setting can't be used, the model does not exist or rejects the key, or
            the archive exists and has other settings.
        UnavailableError: The model answered no call for a long time.
        OutputError: A file can't be written.
    """
    # Reading hashes files and lists the folder, which takes long on a network's disk.
    prepared = await asyncio.to_thread(_Prepared.of, run)
    prepared.check_output()
    await asyncio.to_thread(prepared.archive_notes)
    progress = progress or Progress(0)
    progress.total = len(prepared.inquiries.asked)
    outcomes: list[Answered | None] = [None] * progress.total
    # A file that several runs share may be in use.
    own = contextlib.nullcontext() if run.replies else tidied_replies(run.files.replies)
    async with own, prepared.asker() as (asker, client):
        ticking = begun(_ticking(client, progress))
        try:

            async def work(place: int) -> None:
                outcome = await asker.ask(prepared.inquiries.asked[place])
                outcomes[place] = outcome
                progress.scored(1, outcome.response is None)
                progress.waits(_state(client))

            workers = min(client.settings.all_concurrency, max(1, progress.total))
            # One call shows whether key, model and prompt are right, before many are paid for.
            left = iter(range(progress.total))
            for place in left:
                with waits_if_asked():
                    await work(place)
                # A question without its image asks nothing, so that it shows nothing of the model.
                if client.statistics.calls or client.statistics.reused:
                    break
            await run_bounded(left, work, workers)
        finally:
            await cancel_all(ticking)
        statistics, budget = client.statistics, client.budget
    done = [outcome for outcome in outcomes if outcome is not None]
    await asyncio.to_thread(prepared.write, done, asker)
    reasons = [(o, i) for o, i in zip(done, prepared.inquiries.asked, strict=True) if o.reason]
    return AskResult(
        archive=run.files.archive,
        questions=len(done),
        unanswered=Counter(outcome.reason for outcome, _ in reasons),
        # Reversed, so that the first example of each reason stays.
        examples={o.reason: f"{i.key}: {o.detail}" for o, i in reversed(reasons)},
        calls=statistics.calls,
        cost=budget.spent if isinstance(budget, Budget) else 0.0,
        reused=statistics.reused,
        max_tokens=prepared.max_tokens,
    )


def check_asking(run: AskRun) -> tuple[str, ...]:
    """Read and check the files and settings of a run, without calling the model.

    Returns:
        What a user should know before the first call.

    Raises:
        HallujudgeError: See :func:`ask_async`.
    """
    prepared = _Prepared.of(run)
    prepared.check_output()
    return prepared.archive_notes()


def estimate_asking(run: AskRun) -> Estimate:
    """Return the number of calls, tokens and the cost of a run, without calling the model.

    Raises:
        HallujudgeError: See :func:`ask_async`.
    """
    return asyncio.run(_estimate(run))


async def _estimate(run: AskRun) -> Estimate:
    prepared = await asyncio.to_thread(_Prepared.of, run)

    async def calls(asker: Asker) -> AsyncIterator[PlannedCall]:
        for inquiry in prepared.inquiries.asked:
            for call in await asker.plan(inquiry):
                yield call

    # An estimate leaves no file behind.
    async with prepared.asker(keeps=False) as (asker, client):
        return await estimate_calls(client.settings.model, client, calls(asker))


def _state(client: ChatClient) -> RunProgress:
    took = client.statistics.usage
    return RunProgress(
        answers=client.statistics.answered,
        tokens=took.prompt_tokens + took.completion_tokens,
        cost=took.cost,
        reused=client.statistics.reused,
        waiting=client.waiting,
    )


async def _ticking(client: ChatClient, progress: Progress) -> None:
    """Say what is waited for, also while no question is answered."""
    while True:
        await asyncio.sleep(_TICK_SECONDS)
        progress.waits(_state(client))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """A run whose files were read."""

    run: AskRun
    benchmark: Benchmark
    inquiries: Inquiries
    folder: MediaFolder
    frames: FrameSettings
    parameters: dict[str, JsonValue]
    inputs: Mapping[str, dict[str, JsonValue]]
    settings: ResolvedSettings

    @classmethod
    def of(cls, run: AskRun) -> _Prepared:
        """Read the files of a run.

        Raises:
            HallujudgeError: A file can't be read, or an option can't be used.
        """
        benchmark = benchmark_of(run.benchmark, run.protocol, run.prompts, run.prompt_preset)
        parameters = checked_parameters(run.parameters)
        settings = load_settings(dict(run.model))
        # A batch file is written or read without a server.
        offline = settings.judges.batch.requests or settings.judges.batch.replies
        missing = [] if settings.judges.llm.url or offline else [_URL]
        missing += [] if settings.judges.llm.model else ["llm.model, its name there"]
        if missing:
            raise InvalidInputError(f"no model to ask is named: set {' and '.join(missing)}")
        folder = MediaFolder(Path(run.images))
        given = run.references
        sources = [Path(given)] if isinstance(given, (str, Path)) else list(map(Path, given))
        inquiries = read_inquiries(
            benchmark,
            sources,
            folder,
            options=None if run.options is None else Path(run.options),
            conditions=run.conditions,
            limit=run.limit,
        )
        files = {f"references.{n}" if n > 1 else "references": p for n, p in enumerate(sources, 1)}
        if run.options is not None:
            files["options"] = Path(run.options)
        frames = FrameSettings(
            sampling=Sampling(run.frames),
            format=run.frame_format,
            combined=run.combine_frames,
        )
        return cls(
            run=run,
            benchmark=benchmark,
            inquiries=inquiries,
            folder=folder,
            frames=frames,
            parameters=parameters,
            inputs={name: described_file(path) for name, path in files.items()},
            settings=settings,
        )

    def archive_notes(self) -> tuple[str, ...]:
        """Return what scoring will lack.

        Raises:
            ArchiveError: Scoring would refuse the archive, and the run does not allow that.
        """
        partly = self.run.limit is not None or bool(self.run.conditions)
        if self.run.bad_labels:
            return ()
        return notes_on_archive(self.benchmark, self.inquiries, partly=partly)

    @property
    def max_tokens(self) -> int:
        """Tokens of a reply at most."""
        return self.run.max_tokens or self.benchmark.asking.max_tokens

    def how(self, shown: ShownMedia) -> str:
        """Return how the questions were asked, for signatures, by what was shown."""
        parts = ["chat", self.benchmark.protocol.name]
        if shown.had_videos:
            parts.append(self.frames.label)
        elif self.frames.combined:
            parts.append("combined")
        if shown.had_sounds:
            parts.append("audio")
        if self.run.temperature:
            parts.append(f"temp={self.run.temperature:g}")
        parts += shown_parameters(self.parameters)
        return ",".join([*parts, f"max={self.max_tokens}"])

    @contextlib.asynccontextmanager
    async def asker(self, *, keeps: bool = True) -> AsyncIterator[tuple[Asker, ChatClient]]:
        """Yield what asks the model, and the client that it uses.

        Args:
            keeps: Whether the file of replies is created.
        """
        run = self.run
        shown = ShownMedia(self.benchmark, self.folder, self.frames, self.inquiries.shared_ends)
        async with text_client(
            self.settings, run.files.replies, run.temperature, keeps=keeps, wait=run.wait
        ) as (client, store):
            asker = Asker(
                self.benchmark,
                client,
                store,
                shown,
                max_tokens=self.max_tokens,
                parameters=self.parameters,
            )
            await asker.recall_limits(keeps=keeps)
            yield asker, client

    def manifest(self) -> dict[str, JsonValue]:
        """Return what decides what is asked, and how."""
        return {
            "schema": schema_of("asked"),
            "release": __version__,
            "benchmark": self.benchmark.name,
            "model": self.settings.judges.llm.model,
            "protocol": self.benchmark.protocol.name,
            "frames": self.frames.label,
            "temperature": self.run.temperature,
            "max_tokens": self.max_tokens,
            "parameters": self.parameters,
            "prompts": {
                step: {
                    "sha256": template.digest,
                    "messages": [{"role": r, "content": text} for r, text in template.parts],
                }
                for step, template in self.benchmark.templates.items()
            },
            "inputs": dict(self.inputs),
            "images": str(Path(self.run.images).resolve()),
            "conditions": list(self.run.conditions),
            "limit": self.run.limit,
        }

    def check_output(self) -> None:
        """Refuse to replace an archive of other questions or settings.

        Raises:
            InvalidInputError: There is one, or the folder does not exist.
            VersionMismatchError: A newer release wrote it.
        """
        files = self.run.files
        if files.archive.suffix != ".jsonl":
            raise InvalidInputError(f"out is {files.archive}; the archive is a .jsonl file")
        # SQLite makes the file of replies, but not its folder.
        files.archive.parent.mkdir(parents=True, exist_ok=True)
        read = {str(one["path"]) for one in self.inputs.values()}
        if str(files.archive.resolve()) in read:
            raise InvalidInputError(f"{files.archive} is the file of questions; name another file")
        if self.run.overwrite or not files.archive.exists():
            return
        try:
            found = json.loads(files.manifest.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            # An archive without a readable manifest is taken for one of other questions.
            found = None
        before = found if isinstance(found, dict) else {}
        refuse_schema(before, "asked", str(files.manifest))
        now = self.manifest()
        # Replies that were not cut off are the same with more tokens.
        if isinstance(limit := before.get("max_tokens"), int) and limit < self.max_tokens:
            before["max_tokens"] = self.max_tokens
        differing = [n for n in now if n not in _MAY_DIFFER and before.get(n) != now[n]]
        if differing:
            raise InvalidInputError(
                f"{files.archive} exists, and was not asked in this way (other "
                f"{', '.join(differing)}); pass AskRun(overwrite=True), or name another file"
            )

    def write(self, outcomes: Sequence[Answered], asker: Asker) -> None:
        """Write the archive, the reasons and the manifest.

        Args:
            outcomes: The outcomes, in the order of the questions.
            asker: What asked.

        Raises:
            OutputError: A file can't be written.
        """
        how = self.how(asker.shown)
        about: dict[str, JsonValue] = {
            "benchmark": self.benchmark.name,
            "model": self.settings.judges.llm.model,
            "prompts": self.benchmark.prompt_hashes,
            "how": how,
        }
        if self.parameters:
            about["parameters"] = self.parameters
        for record in self.inquiries.records:
            record["asked"] = about
        reasons = []
        for inquiry, outcome in zip(self.inquiries.asked, outcomes, strict=True):
            put_outcome(inquiry, outcome)
            if outcome.reason:
                reasons.append({"id": inquiry.key, **outcome.unanswered})
        counts = Counter(outcome.reason for outcome in outcomes if outcome.reason)
        manifest = {
            **self.manifest(),
            "how": how,
            "questions": len(outcomes),
            "unanswered": dict(counts),
            "replied": asker.models,
            "usage": asker.usage.to_json(),
        }
        self.run.files.write(self.inquiries.records, reasons, manifest)
