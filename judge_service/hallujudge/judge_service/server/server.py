"""Lifecycle of the server: start, serve, drain on a signal, and stop."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import grpc

from hallujudge.metrics.errors import BenchmarkError
from hallujudge.metrics.families import add_benchmarks

from ..access import use_standing
from ..access.spending import Ledger
from ..engine import Engine
from ..engine.judge_factory import JudgeFactory
from ..engine.judge_options import read_small_models
from ..engine.resources import Offers, Resources
from ..errors import HallujudgeError, InvalidInputError, MissingExtraError
from ..jobs.job_service import JobService
from ..judges.judge_checks import check_answer
from ..llm.vllm import VllmServer, vllm_server
from ..matchers import SMALL_JUDGES
from ..matchers.model_folders import find_model, find_tokenizer
from ..observe import begin_recording
from ..settings.connection import with_port
from ..settings.judge_settings import JudgeSettings, MatcherDownloads
from ..settings.loading import ResolvedSettings, child_environment, spending_path, state_folder
from ..settings.server_settings import ServerSettings
from ..state_files import make_private, warn_of_readers
from ..stopping import MARGIN_SECONDS, Grace, begun, cancel_all, in_daemon_thread
from ..tenancy import MemoryBudget
from ..threads import use_scheduler
from .authentication import describes_itself, is_loopback, new_authenticator, server_credentials
from .connections import raise_file_limit
from .jobs_servicer import job_service, jobs_address, with_verdict_cache
from .known_databases import refuse_foreign_folders, refuse_lost_databases, remember_database
from .logs import open_again
from .observation import Observation, observe
from .services import SERVICE_NAMES, HealthServicer, Methods, Services, bind, new_server
from .workers import Workers, started

if TYPE_CHECKING:
    from .http import HttpListener

try:
    from grpc_health.v1 import health, health_pb2_grpc
    from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc
except ModuleNotFoundError as err:
    raise MissingExtraError.of("the server", "server") from err

_LOG = logging.getLogger(__name__)

# SIGHUP comes when a terminal closes; Windows has none.
_SIGNALS = (signal.SIGTERM, signal.SIGINT, *filter(None, [getattr(signal, "SIGHUP", None)]))
# For what follows the drain: closing files, and stopping a vLLM server.
_EXIT_SECONDS = 15.0
# New objects before cycles are looked for, and how many such times before older ones are, too.
# Longer rounds (50,000, 50, 1,000) made no small call faster.
_CYCLES = (50_000, 10, 10)
# How long a thread may hold the interpreter lock while the event loop waits; the default is 5 ms.
_SWITCH_SECONDS = 0.001
# How long calls that the server ended may take before gRPC cancels what is left of them.
_ENDING_SECONDS = 8.0
# For the last lines of logs and traces. Together with the other parts it must stay below
# _EXIT_SECONDS, after which the process is killed.
_LOG_SECONDS = 4.0
# gRPC's own grace period. It is practically endless, because this server ends calls itself, with
# an error that clients understand.
_NO_END_SECONDS = 1e6


class RunningServer:
    """A server that is listening.

    Attributes:
        port: The port.
        address: The host and the port for clients.
    """

    def __init__(
        self,
        server: grpc.aio.Server,
        checks: HealthServicer,
        services: Services,
        port: int,
        observation: Observation,
        http: HttpListener | None = None,
    ) -> None:
        self._server = server
        self._services = services
        self._checks = checks
        self._http = http
        self.port = port
        self.address = with_port(services.settings.host, port)
        self._observation = observation
        self._watch: asyncio.Task[None] | None = None

    @property
    def http_address(self) -> str:
        """The host and the port of HTTP with JSON, or an empty text."""
        return self._http.address if self._http is not None else ""

    @property
    def metrics_address(self) -> str:
        """The host and the port of the metrics page, or an empty text."""
        page = self._observation.page
        return page.address if page is not None else ""

    def watch(self) -> None:
        """Check the server regularly, and publish the result as its health."""
        if self._services.settings.self_check_seconds:
            self._watch = begun(self._observation.check.run(self._checks.update))

    async def stop(
        self,
        grace: float | None = None,
        hurry: asyncio.Event | None = None,
        *,
        margin: float = MARGIN_SECONDS,
    ) -> None:
        """Reject new calls, wait for running ones to finish, then stop.

        Shutdown always completes: a part that does not end in time is logged and abandoned.

        Args:
            grace: Maximum wait, in seconds; by default the setting ``drain_seconds``.
            hurry: Ends the wait when it is set.
            margin: How long each part may take to end after the wait, in seconds.
        """
        grace = self._services.settings.drain_seconds if grace is None else grace
        period = Grace(grace, hurry, margin=margin)
        self._observation.check.draining = True
        if self._watch is not None:
            self._watch.cancel()
        self._checks.drain()
        parts: dict[str, Awaitable[None]] = {"gRPC": self._end_grpc(period)}
        if self._http is not None:
            parts["HTTP"] = self._http.stop(period)
        if (jobs := self._services.jobs) is not None:
            jobs.drain()
            parts["the runner of jobs"] = jobs.close(period)
        await asyncio.gather(*(period.end(name, part) for name, part in parts.items()))
        watch = {"the watch of connections": self._services.connections.end}
        endings = watch | self._observation.endings()
        last = Grace(0, margin=min(margin, _LOG_SECONDS))
        # Apart: a collector that is not reached keeps no access log from its last lines.
        await asyncio.gather(
            *(last.end(name, in_daemon_thread(ending)) for name, ending in endings.items())
        )

    async def _end_grpc(self, period: Grace) -> None:
        await self._services.calls.refuse()
        stopping = begun(self._server.stop(_NO_END_SECONDS))
        await period.wait(stopping)
        if not stopping.done():
            self._services.calls.stop()
            await asyncio.wait({stopping}, timeout=_ENDING_SECONDS)
        if not stopping.done():
            await self._server.stop(None)
        await stopping


async def start(
    settings: ServerSettings,
    engine: Engine | None = None,
    jobs: JobService | None = None,
    workers: Workers | None = None,
) -> RunningServer:
    """Start a server.

    Args:
        settings: The settings.
        engine: Scores items; by default an engine with default settings.
        jobs: Jobs that the same engine scores, if the server keeps any.
        workers: Worker processes for scoring without models; by default this process does it.

    Raises:
        InvalidInputError: The server cannot listen on the address, would serve every caller from
            other machines, or can't use a file of keys or certificates.
    """
    authenticator, credentials = new_authenticator(settings), server_credentials(settings.tls)
    engine = engine or Engine(
        Resources(offers=Offers.of(settings.offered), memory=_memory(settings))
    )
    observation = observe(settings, engine, workers, jobs)
    services = Services(
        settings=settings,
        authenticator=authenticator,
        engine=engine,
        jobs=jobs,
        recorder=observation.recorder,
        workers=workers,
    )
    server = new_server(services)
    methods: Any = Methods()
    services.register(methods)
    checks = HealthServicer(SERVICE_NAMES)
    health_pb2_grpc.add_HealthServicer_to_server(checks, methods)
    if describes_itself(settings, settings.host):
        names = (*SERVICE_NAMES, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(  # type: ignore[no-untyped-call]
            reflection.aio.ReflectionServicer(names), methods
        )
    methods.add_to(server, services.interceptors(), named=("Check",))
    listener = None
    try:
        port = bind(server, settings, credentials)
        listener = _http(services)
        # Before the first call: a server that can't open its jobs must not start to serve.
        if jobs is not None:
            await begun(_started(jobs, services))
    except HallujudgeError:
        if listener is not None:
            await listener.stop(Grace(0))
        for ending in observation.endings().values():
            ending()
        raise
    await server.start()
    if listener is not None:
        listener.begin()
    services.connections.begin({port, listener.port} if listener is not None else {port})
    return RunningServer(server, checks, services, port, observation, listener)


def _http(services: Services) -> HttpListener | None:
    """Return the listener for HTTP, if the settings have a port for it."""
    if services.settings.http.port < 0:
        return None
    from .http import HttpListener

    return HttpListener(services)


async def _started(jobs: JobService, services: Services) -> None:
    """Start jobs in a task whose context is that of all jobs: who records and knows callers."""
    begin_recording(services.recorder)
    use_scheduler(services.scheduler)
    use_standing(services.authenticator.current)
    await jobs.start()


async def serve(resolved: ResolvedSettings, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP, then drain.

    Args:
        resolved: The settings of the server and its judges.
        announce: Called in a thread with the address when the server accepts calls.

    Raises:
        HallujudgeError: The server cannot listen on the address, or a judge cannot be started.
    """
    settings = resolved.server
    try:
        add_benchmarks(settings.outside, alone=True)
    except BenchmarkError as err:
        raise InvalidInputError(f"benchmarks: {err}") from err
    # Refuse bad files before starting a judge, which takes minutes.
    new_authenticator(settings)
    await asyncio.to_thread(refuse_foreign_folders, resolved)
    await asyncio.to_thread(refuse_lost_databases, resolved)
    if server_credentials(settings.tls) is None and not is_loopback(settings.host):
        _LOG.warning(
            "keys and responses are readable on their way: set tls.cert and tls.key, or let only a "
            "proxy with TLS reach %s:%d",
            settings.host,
            settings.port,
        )
    raise_file_limit()
    # Busy threads then delay the event loop by a millisecond at most.
    sys.setswitchinterval(_SWITCH_SECONDS)
    shutdown = Shutdown(settings.drain_seconds)
    shutdown.listen()
    async with _judges(resolved, shutdown) as resources, started(settings) as workers:
        if not shutdown.stopping.is_set():
            engine = Engine(resources)
            remember = partial(remember_database, resolved, Path(jobs_address(resolved)))
            jobs = job_service(resolved, engine, workers, remember)
            running = await start(settings, engine, jobs, workers)
            try:
                await _announced(resolved, running, announce)
                await shutdown.stopping.wait()
            except BaseException:
                shutdown.hurry.set()
                raise
            finally:
                # A process that ends while gRPC's threads work may end with a fault of memory.
                await running.stop(hurry=shutdown.hurry)
    shutdown.ignore()


async def _announced(
    resolved: ResolvedSettings, running: RunningServer, announce: Callable[[str], None]
) -> None:
    """Do what follows the start of a server, and say where it serves."""
    # Only now: a file that a wrong setting names has been refused.
    await asyncio.to_thread(_make_private, resolved)
    # Everything loaded so far stays; scanning it again would stop the process for 50 ms.
    gc.freeze()
    # Commands hardly look for cycles. Those of failed calls would pile up in a server.
    gc.set_threshold(*_CYCLES)
    running.watch()
    if running.http_address:
        scheme = "https" if resolved.server.tls.cert else "http"
        _LOG.info("HTTP with JSON at %s://%s", scheme, running.http_address)
    if running.metrics_address:
        _LOG.info("metrics at http://%s/metrics", running.metrics_address)
    await asyncio.to_thread(announce, running.address)


class Shutdown:
    """Follows SIGTERM, SIGINT and SIGHUP, and makes sure that the process ends.

    A signal that is ignored from the start stays ignored, such as SIGHUP after ``nohup``.

    The first signal drains the server, and the second one ends the drain. If a thread still runs
    after the drain and a margin, faulthandler prints the stacks of all threads and ends the
    process. Its timer works without the interpreter lock.

    Args:
        drain_seconds: How long running calls may take to finish.
        margin: How long the process may take after that, in seconds.
    """

    def __init__(self, drain_seconds: float, margin: float = _EXIT_SECONDS) -> None:
        self._drain_seconds = drain_seconds
        self._margin = margin
        self.stopping = asyncio.Event()
        """Set by the first signal."""
        self.hurry = asyncio.Event()
        """Set by the second signal."""
        self.drain: Grace | None = None
        """The drain, from the first signal on."""

    def listen(self) -> None:
        """Begin to follow signals."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._next)

    def ignore(self) -> None:
        """Ignore further signals, which would print a traceback about a closed loop."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)

    def _next(self) -> None:
        if not self.stopping.is_set():
            _LOG.info("draining for up to %g s; a second signal ends it", self._drain_seconds)
            self.drain = Grace(self._drain_seconds, self.hurry)
            self.stopping.set()
            _end_after(self._drain_seconds + self._margin)
        elif not self.hurry.is_set():
            _LOG.info("the drain ends: running calls are cancelled")
            self.hurry.set()
            _end_after(self._margin)


def _end_after(seconds: float) -> None:
    faulthandler.dump_traceback_later(seconds, exit=True, file=_watchdog_output())


def _watchdog_output() -> IO[bytes]:
    """Return standard error such that a write never waits; the null device if there is none.

    A blocked write would keep the process, which is what the watchdog is there to end.
    """
    try:
        own = sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return Path(os.devnull).open("wb")
    return os.fdopen(open_again(own), "wb", buffering=0)


@asynccontextmanager
async def _judges(resolved: ResolvedSettings, shutdown: Shutdown) -> AsyncIterator[Resources]:
    """Provide the judges, with a vLLM server if the settings name a model for it."""
    stopping = shutdown.stopping
    # Callers must not cause downloads: every offered model is fetched before the first call.
    settings = replace(with_verdict_cache(resolved), matcher=MatcherDownloads())
    offers = Offers.of(resolved.server.offered)
    if resolved.judges.matcher.download:
        await asyncio.to_thread(_fetch, offers, settings)
    ledger, memory = await asyncio.to_thread(_ledger, resolved), _memory(resolved.server)
    vllm = _new_vllm(settings) if settings.vllm.model else None
    endpoint = None
    try:
        if vllm is not None:
            # The start takes minutes, and a signal must not wait for it.
            await _first(vllm.start(), stopping)
            endpoint = None if stopping.is_set() else vllm.endpoint

        def make() -> JudgeFactory:
            return JudgeFactory(settings, resolved.keys, endpoint, ledger, memory)

        resources = Resources(make, offers=offers, memory=memory)
        try:
            resources.judges.check()
            if endpoint is not None:
                await _first(_ask_once(resources.judges), stopping)
            yield resources
        finally:
            await resources.close()
    finally:
        if vllm is not None:
            await vllm.stop()
        if ledger is not None:
            if shutdown.drain is not None:  # another program's lock may end in it
                writing = begun(ledger.written())
                await shutdown.drain.wait(writing)
                await cancel_all(writing)
            await asyncio.to_thread(ledger.close)


def _memory(settings: ServerSettings) -> MemoryBudget:
    return MemoryBudget(settings.limits.max_memory_bytes)


def _fetch(offers: Offers, settings: JudgeSettings) -> None:
    listed = read_small_models(settings.small.models)
    local = [model for judge, model in listed.items() if judge in SMALL_JUDGES]
    for name in (*offers.models, *local):
        find_model(name, allow_download=True)
    for preset in SMALL_JUDGES.values():
        if preset.tokenizer and (preset.name in listed or preset.model in offers.models):
            find_tokenizer(preset.tokenizer, allow_download=True)


def _make_private(resolved: ResolvedSettings) -> None:
    """Take other users' access to what this server keeps."""
    keys, tls_key = resolved.server.access.keys_file, resolved.server.tls.key
    jobs, cache = jobs_address(resolved), with_verdict_cache(resolved).verdict_cache
    named = (keys, cache, "" if "://" in jobs else jobs)
    files = [spending_path(resolved), *(Path(name) for name in named if name)]
    make_private(state_folder(resolved.judges), files)
    if tls_key:
        warn_of_readers(Path(tls_key))


def _ledger(resolved: ResolvedSettings) -> Ledger | None:
    """Return the ledger of what API keys spend, if there are keys."""
    if not resolved.server.access.keys_file:
        return None
    path = spending_path(resolved)
    ledger = Ledger(path)
    remember_database(resolved, path, ledger.database_id)
    return ledger


async def _first(work: Coroutine[None, None, None], stopping: asyncio.Event) -> None:
    """Run a coroutine until it is done or the server has to stop."""
    task = begun(work)
    waiting = begun(stopping.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if task.done():
        await task
    await cancel_all(task)


async def _ask_once(judges: JudgeFactory) -> None:
    """Ask the judge that this process started, before it is said to serve."""
    if trouble := await check_answer(judges.llm()):
        _LOG.warning("vllm: its first reply has no verdict: %s", trouble)


def _new_vllm(settings: JudgeSettings) -> VllmServer:
    return vllm_server(
        settings,
        environ=child_environment(),
        data_folder=state_folder(settings),
        progress=lambda line: _LOG.info("vllm: %s", line),
    )
