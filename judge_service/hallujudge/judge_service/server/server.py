"""The lifecycle of the gRPC server: start, health, reflection and drain."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import grpc

from hallujudge.judge.v1 import (
    jobs_pb2,
    jobs_pb2_grpc,
    judge_service_pb2,
    judge_service_pb2_grpc,
)

from ..access.memory import MemoryBudget
from ..access.spending import Ledger
from ..access.turns import Turns, begin_turns
from ..engine import Engine
from ..engine.offers import Offers
from ..engine.resources import Resources
from ..errors import InvalidInputError, MissingExtraError
from ..observe.recorder import begin_recording
from ..settings.server import (
    ResolvedSettings,
    ServerSettings,
    child_environment,
    spending_path,
    state_folder,
)
from .admission import Admission
from .call_clock import CallTimes, RunningCalls
from .door import is_loopback, open_door
from .interceptors import GuardInterceptor
from .job_settings import job_service, with_verdict_cache
from .jobs_servicer import JobsServicer
from .observed import ObservingInterceptor
from .observing import Observation, observe
from .servicer import JudgeServicer
from .shutdown import Shutdown
from .tls import server_credentials

if TYPE_CHECKING:
    from ..engine.judge_factory import JudgeFactory
    from ..jobs.service import JobService
    from ..llm.vllm import VllmServer
    from ..observe.recorder import Recorder
    from ..settings.judges import JudgeSettings

try:
    from grpc_health.v1 import health, health_pb2, health_pb2_grpc
    from grpc_reflection.v1alpha import reflection
except ModuleNotFoundError as err:
    raise MissingExtraError.of("the server", "server") from err

__all__ = ["RunningServer", "serve", "start"]

_LOG = logging.getLogger(__name__)
_SWITCH_SECONDS = 0.001
# For calls that the server ended: until gRPC cancels what is left of them.
_ENDING_SECONDS = 2.0
_SERVICES = tuple(
    file.services_by_name[name].full_name
    for file, name in (
        (judge_service_pb2.DESCRIPTOR, "JudgeService"),
        (jobs_pb2.DESCRIPTOR, "ScoringJobService"),
    )
)
_HEALTH_NAMES = ("", *_SERVICES)
_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class RunningServer:
    """A server that is listening.

    Attributes:
        port: The port.
        address: The host and the port, as clients give them.
    """

    def __init__(
        self,
        server: grpc.aio.Server,
        checks: health.aio.HealthServicer,
        settings: ServerSettings,
        port: int,
        observation: Observation,
        calls: RunningCalls,
        jobs: JobService | None = None,
    ) -> None:
        self._server = server
        self._calls = calls
        self._checks = checks
        self._jobs = jobs
        self._settings = settings
        self.port = port
        self.address = f"{settings.host}:{port}"
        self._observation = observation
        self._watch: asyncio.Task[None] | None = None

    @property
    def metrics_address(self) -> str:
        """The host and the port of the metrics page; empty: there is none."""
        page = self._observation.page
        return page.address if page is not None else ""

    def watch(self) -> None:
        """Score a small item now and then, and report what follows as the server's health."""
        if self._settings.self_check_seconds:
            self._watch = asyncio.ensure_future(self._observation.check.run(self._tell))

    async def _tell(self, well: bool) -> None:
        for name in _HEALTH_NAMES:
            await self._checks.set(name, _SERVING if well else _NOT_SERVING)

    async def stop(self, grace: float | None = None, hurry: asyncio.Event | None = None) -> None:
        """Reject new calls, wait for running ones to finish, then stop.

        Args:
            grace: The longest wait, in seconds; None: the setting ``drain_seconds``.
            hurry: Ends the wait when it is set; None: nothing does.
        """
        grace = self._settings.drain_seconds if grace is None else grace
        self._observation.check.draining = True
        if self._watch is not None:
            self._watch.cancel()
        await self._checks.enter_graceful_shutdown()
        ends = [self._end_calls(grace, hurry or asyncio.Event())]
        if self._jobs is not None:
            self._jobs.drain()
            ends.append(self._jobs.close(grace))
        await asyncio.gather(*ends)
        await asyncio.to_thread(self._observation.close)

    async def _end_calls(self, grace: float, hurry: asyncio.Event) -> None:
        ending = asyncio.ensure_future(self._server.stop(grace + _ENDING_SECONDS))
        hurried = asyncio.ensure_future(hurry.wait())
        await asyncio.wait({ending, hurried}, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
        if hurry.is_set() and self._jobs is not None:
            self._jobs.hurry()
        if not ending.done():
            self._calls.stop()
            await asyncio.wait({ending}, timeout=_ENDING_SECONDS)
        if not ending.done():
            # A second stop would wait for the first one.
            ending.cancel()
            await asyncio.gather(ending, return_exceptions=True)
            await self._server.stop(0)
        hurried.cancel()


async def start(
    settings: ServerSettings, engine: Engine | None = None, jobs: JobService | None = None
) -> RunningServer:
    """Start a server.

    Args:
        settings: The settings.
        engine: Scores items; None: an engine of the default settings.
        jobs: Keeps jobs and scores them with the same engine; None: the server runs no jobs.

    Raises:
        InvalidInputError: The server cannot listen on the address, anybody could call it from
            other machines, or a file of keys or certificates can't be used.
    """
    door, credentials = open_door(settings), server_credentials(settings)
    engine = engine or Engine(Resources(offers=_offers(settings), memory=_memory(settings)))
    admission = Admission(running=settings.max_running_calls, waiting=settings.max_waiting_calls)
    turns, running_calls = Turns(), RunningCalls(_times(settings))
    # gRPC cancels calls above its own limit without details, so admission must reject them first.
    pending = 4 * (settings.max_running_calls + settings.max_waiting_calls) + 1000
    observation = observe(settings, engine)
    server = grpc.aio.server(
        interceptors=[
            ObservingInterceptor(observation.recorder),
            GuardInterceptor(door, admission, engine.resources.memory, running_calls, turns),
        ],
        options=[
            ("grpc.max_receive_message_length", settings.max_message_bytes),
            ("grpc.max_send_message_length", settings.max_message_bytes),
            ("grpc.server.max_pending_requests", pending),
            ("grpc.server.max_pending_requests_hard_limit", pending),
            ("grpc.so_reuseport", 0),
            # Clients ask a server at work whether it is alive; gRPC's default calls that abuse.
            ("grpc.http2.min_ping_interval_without_data_ms", 500),
            *_keepalive(settings),
        ],
    )
    judge_service_pb2_grpc.add_JudgeServiceServicer_to_server(
        JudgeServicer(engine, settings), server
    )
    jobs_pb2_grpc.add_ScoringJobServiceServicer_to_server(JobsServicer(jobs, settings), server)
    checks = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    if settings.reflection == "on" or (
        settings.reflection == "auto" and is_loopback(settings.host)
    ):
        reflection.enable_server_reflection(
            (*_SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), server
        )
    try:
        port = _bind(server, settings, credentials)
    except InvalidInputError:
        observation.close()
        raise
    await server.start()
    if jobs is not None:
        await asyncio.create_task(_started(jobs, observation.recorder, turns))
    running = RunningServer(server, checks, settings, port, observation, running_calls, jobs)
    await running._tell(True)
    return running


async def _started(jobs: JobService, recorder: Recorder, turns: Turns) -> None:
    """Start jobs in a task that records and takes turns, as the tasks that it starts do."""
    begin_recording(recorder)
    begin_turns(turns)
    await jobs.start()


def _times(settings: ServerSettings) -> CallTimes:
    return CallTimes(
        first_message=settings.first_message_seconds,
        idle=settings.idle_seconds,
        total=settings.max_call_seconds,
    )


def _keepalive(settings: ServerSettings) -> tuple[tuple[str, int], ...]:
    """Return the options by which clients that vanished are noticed."""
    milliseconds = int(settings.keepalive_seconds * 1000)
    return (
        ("grpc.keepalive_time_ms", milliseconds),
        ("grpc.keepalive_timeout_ms", milliseconds),
        # The limit that holds while data waits to be sent.
        ("grpc.http2.ping_timeout_ms", milliseconds),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    )


def _bind(
    server: grpc.aio.Server, settings: ServerSettings, credentials: grpc.ServerCredentials | None
) -> int:
    address = f"{settings.host}:{settings.port}"
    try:
        port = (
            server.add_insecure_port(address)
            if credentials is None
            else server.add_secure_port(address, credentials)
        )
    except RuntimeError as err:
        raise _cannot_listen(address) from err
    if port == 0:
        raise _cannot_listen(address)
    return port


def _cannot_listen(address: str) -> InvalidInputError:
    return InvalidInputError(
        f"cannot listen on {address}: it is in use or not an address of this machine; "
        "set another host or port (port 0 chooses a free one)"
    )


async def serve(resolved: ResolvedSettings, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT, then drain.

    Args:
        resolved: The settings of the server and its judges.
        announce: Called with the address when the server accepts calls.

    Raises:
        HallujudgeError: The server cannot listen on the address, or a judge cannot be started.
    """
    settings = resolved.server
    # Refuse bad files before a judge is started, which takes minutes.
    open_door(settings)
    if server_credentials(settings) is None and not is_loopback(settings.host):
        _LOG.warning(
            "keys and responses are readable on their way: set tls_cert and tls_key, or let only a "
            "proxy with TLS reach %s:%d",
            settings.host,
            settings.port,
        )
    # Threads that work let the event loop go on after a millisecond, not after five.
    sys.setswitchinterval(_SWITCH_SECONDS)
    shutdown = Shutdown(settings.drain_seconds)
    shutdown.listen()
    async with _judges(resolved, shutdown.stopping) as resources:
        if not shutdown.stopping.is_set():
            engine = Engine(resources)
            running = await start(settings, engine, job_service(resolved, engine))
            # What is there now stays: the garbage collector need not look at it again, for 50 ms.
            gc.freeze()
            running.watch()
            if running.metrics_address:
                _LOG.info("metrics at http://%s/metrics", running.metrics_address)
            announce(running.address)
            await shutdown.stopping.wait()
            await running.stop(hurry=shutdown.hurry)
    shutdown.ignore()


@asynccontextmanager
async def _judges(resolved: ResolvedSettings, stopping: asyncio.Event) -> AsyncIterator[Resources]:
    """Provide the judges, and run a vLLM server meanwhile if the settings name its model."""
    # Callers can't cause a download: what is offered is fetched before the first call.
    settings = replace(with_verdict_cache(resolved), matcher_download=0)
    offers = _offers(resolved.server)
    if resolved.judges.matcher_download:
        await asyncio.to_thread(_fetch, offers)
    ledger, memory = _ledger(resolved), _memory(resolved.server)
    vllm = _new_vllm(settings) if settings.vllm else None
    endpoint = None
    try:
        if vllm is not None:
            await _first(vllm.start(), stopping)
            endpoint = None if stopping.is_set() else vllm.endpoint

        def make() -> JudgeFactory:
            from ..engine.judge_factory import JudgeFactory

            return JudgeFactory(settings, resolved.keys, endpoint, ledger, memory)

        resources = Resources(make, offers=offers, memory=memory)
        try:
            resources.judges.check()
            yield resources
        finally:
            await resources.close()
    finally:
        if vllm is not None:
            await vllm.stop()
        if ledger is not None:
            ledger.close()


def _offers(settings: ServerSettings) -> Offers:
    return Offers(
        models=_names(settings.offered_models),
        vectors=_names(settings.offered_vectors),
        devices=_names(settings.offered_devices),
    )


def _memory(settings: ServerSettings) -> MemoryBudget:
    return MemoryBudget(settings.max_memory_bytes)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _fetch(offers: Offers) -> None:
    from ..matchers.models import find_model

    for name in offers.models:
        find_model(name, allow_download=True)


def _ledger(resolved: ResolvedSettings) -> Ledger | None:
    """Return what keeps the spending of keys; None: there are no keys."""
    if not resolved.server.keys_file:
        return None
    return Ledger(spending_path(resolved))


async def _first(work: Coroutine[None, None, None], stopping: asyncio.Event) -> None:
    """Run work until it is done or the server has to stop."""
    task = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(stopping.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not task.done():
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return
    await task


def _new_vllm(settings: JudgeSettings) -> VllmServer:
    from ..engine.judge_factory import vllm_server

    return vllm_server(
        settings,
        environ=child_environment(),
        data_folder=state_folder(settings),
        progress=lambda line: _LOG.info("vllm: %s", line),
    )
