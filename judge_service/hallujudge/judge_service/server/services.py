"""The gRPC server and the services registered at it: scoring, jobs and health.

HTTP registers the same services, with the same interceptors, at routes of its own.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import grpc

from hallujudge.judge.v1 import jobs_pb2, jobs_pb2_grpc, judge_service_pb2, judge_service_pb2_grpc

from ..engine import Engine
from ..errors import InvalidInputError, MissingExtraError
from ..fair_queue import CpuScheduler
from ..jobs.job_service import JobService
from ..observe import Recorder
from ..settings.connection import with_port
from ..settings.server_settings import LimitSettings, ServerSettings
from .authentication import Authenticator
from .connections import ConnectionGuard, ConnectionLimits, open_file_limit
from .flow_control import Admission, RunningCalls
from .interceptors import Context, GuardInterceptor, Handler, Interceptor, within
from .jobs_servicer import JobsServicer
from .judge_servicer import JudgeServicer
from .observation import ObservingInterceptor
from .offload import OffloadInterceptor
from .request_reader import Form, ProtobufForm
from .workers import Workers

try:
    from grpc_health.v1 import health_pb2, health_pb2_grpc
except ModuleNotFoundError as err:
    raise MissingExtraError.of("the server", "server") from err

_Response = health_pb2.HealthCheckResponse

SERVICE_NAMES = tuple(
    file.services_by_name[name].full_name
    for file, name in (
        (judge_service_pb2.DESCRIPTOR, "JudgeService"),
        (jobs_pb2.DESCRIPTOR, "ScoringJobService"),
    )
)


@dataclass(frozen=True, kw_only=True)
class Services:
    """The scoring and job services. gRPC and HTTP share their limits."""

    settings: ServerSettings
    """The settings of the server."""
    engine: Engine
    """The engine that scores items."""
    jobs: JobService | None
    """The jobs, or None if the server keeps none."""
    recorder: Recorder
    """The recorder of calls."""
    authenticator: Authenticator
    """Identifies callers."""
    workers: Workers | None = None
    """Worker processes for scoring without models, or None if this process does it."""
    scheduler: CpuScheduler = field(default_factory=CpuScheduler)
    """How callers share the processor."""
    start_id: str = field(default_factory=lambda: secrets.token_hex(8))
    """Another one after each start of the server."""

    @cached_property
    def admission(self) -> Admission:
        """The limits of concurrent calls."""
        limits = self.settings.limits
        return Admission(running=limits.max_running_calls, waiting=limits.max_waiting_calls)

    @cached_property
    def calls(self) -> RunningCalls:
        """The running calls."""
        return RunningCalls(self.settings.limits)

    @cached_property
    def connections(self) -> ConnectionGuard:
        """Closes connections that are too many."""
        return ConnectionGuard(ConnectionLimits.of(self.settings.limits, open_file_limit()))

    def interceptors(
        self, form: Callable[[Callable[[bytes], Any] | None], Form] = ProtobufForm
    ) -> Sequence[Interceptor]:
        """Return the interceptors of the methods, the innermost first.

        Args:
            form: Returns how the messages of a method are encoded.
        """
        wraps: list[Interceptor] = []
        if self.workers is not None:
            # Innermost: a call is admitted and recorded before a worker gets it.
            limits, raw = self.settings.limits, form is ProtobufForm
            wraps.append(OffloadInterceptor(pool=self.workers, settings=limits, raw=raw))
        guard = GuardInterceptor(
            authenticator=self.authenticator,
            admission=self.admission,
            memory=self.engine.resources.memory,
            running=self.calls,
            connections=self.connections,
            scheduler=self.scheduler,
            form=form,
        )
        wraps.append(guard)
        # The base recorder drops every record, so that without logs and metrics none is made.
        if type(self.recorder) is not Recorder:
            wraps.append(ObservingInterceptor(self.recorder))
        return wraps

    def register(self, server: Any) -> None:
        """Register the methods at a gRPC server, or at what collects them."""
        judge = JudgeServicer(self.engine, self.settings.limits, self.start_id)
        judge_service_pb2_grpc.add_JudgeServiceServicer_to_server(judge, server)
        jobs = JobsServicer(self.jobs, self.settings.limits)
        jobs_pb2_grpc.add_ScoringJobServiceServicer_to_server(jobs, server)


class Methods:
    """Collects the methods that generated code registers at a server."""

    def __init__(self) -> None:
        self.by_service: dict[str, Mapping[str, Handler]] = {}
        """Service -> handlers by the name of the method."""

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Ignore them: the same methods are registered by name as well."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """Add the methods of a service."""
        self.by_service[service] = handlers

    def add_to(
        self,
        server: grpc.aio.Server,
        interceptors: Sequence[Interceptor],
        *,
        named: Collection[str] = (),
    ) -> None:
        """Register the methods at a gRPC server, which looks them up by the name of each call.

        gRPC's server otherwise waits for each registered method separately, and renews all these
        waits at every call: for twenty methods that took 20 microseconds. A method with a wait of
        its own is served before earlier calls of other methods.

        Args:
            server: The server.
            interceptors: What wraps the methods.
            named: Methods that keep a wait of their own.
        """
        for service, handlers in self.by_service.items():
            served = {
                name: within(interceptors, f"/{service}/{name}", handler)
                for name, handler in handlers.items()
            }
            server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, served)])
            waited = {name: handler for name, handler in served.items() if name in named}
            server.add_registered_method_handlers(service, waited)


class HealthServicer(health_pb2_grpc.HealthServicer):
    """The standard health service; all services of this server have the same health.

    The servicer of grpcio-health-checking holds a lock while it writes to a client: one client that
    does not read blocks every update for the others, and the server's shutdown. This one needs no
    lock.

    Args:
        services: The names of the services.
    """

    def __init__(self, services: Iterable[str]) -> None:
        self._services = frozenset(("", *services))
        self._well = True
        self._draining = False
        self._change = asyncio.Event()

    def update(self, well: bool) -> None:
        """Set whether the server is healthy; a draining server stays unhealthy."""
        if not self._draining:
            self._well = well
            self._wake()

    def drain(self) -> None:
        """Report the server as unhealthy from now on, and end the calls that watch it."""
        # Before the mark, after which nothing is updated any more.
        self.update(False)
        self._draining = True

    async def Check(  # noqa: N802 - a name of the wire
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> _Response:
        """Return the health of a service."""
        if request.service not in self._services:
            await context.abort(grpc.StatusCode.NOT_FOUND)
        return _Response(status=self._status())

    async def Watch(  # noqa: N802 - the same
        self,
        request: health_pb2.HealthCheckRequest,
        context: Context,  # noqa: ARG002 - gRPC passes it
    ) -> AsyncIterator[_Response]:
        """Yield the health of a service, now and after every change."""
        known, sent = request.service in self._services, None
        while True:
            change = self._change
            status = self._status() if known else _Response.SERVICE_UNKNOWN
            if status != sent:
                yield _Response(status=status)
                # Not waiting yet: it may have changed while the client read.
                sent = status
            elif self._draining:
                return
            else:
                await change.wait()

    def _status(self) -> Literal[1, 2]:
        return _Response.SERVING if self._well else _Response.NOT_SERVING

    def _wake(self) -> None:
        self._change.set()
        self._change = asyncio.Event()


def new_server(services: Services) -> grpc.aio.Server:
    """Return a server with the limits of the settings."""
    settings = services.settings
    # gRPC cancels calls above its own limit without details, so admission must reject them first.
    pending = 4 * (settings.limits.max_running_calls + settings.limits.max_waiting_calls) + 1000
    return grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", settings.limits.max_message_bytes),
            ("grpc.max_send_message_length", settings.limits.max_message_bytes),
            ("grpc.server.max_pending_requests", pending),
            ("grpc.server.max_pending_requests_hard_limit", pending),
            # By default a second server could listen at the same port and take some of the calls.
            ("grpc.so_reuseport", 0),
            ("grpc.max_allowed_incoming_connections", services.connections.limits.burst),
            # For TLS and the client's settings; gRPC's default is two minutes.
            ("grpc.server_handshake_timeout_ms", int(settings.limits.first_message_seconds * 1000)),
            # Clients ping a busy server to see if it is alive; gRPC's default forbids that.
            ("grpc.http2.min_ping_interval_without_data_ms", 500),
            *_keepalive(settings.limits),
        ],
    )


def _keepalive(settings: LimitSettings) -> tuple[tuple[str, int], ...]:
    """Return the options that detect clients that have disappeared."""
    milliseconds = int(settings.keepalive_seconds * 1000)
    return (
        ("grpc.keepalive_time_ms", milliseconds),
        ("grpc.keepalive_timeout_ms", milliseconds),
        # Applies while data is waiting to be sent.
        ("grpc.http2.ping_timeout_ms", milliseconds),
        ("grpc.keepalive_permit_without_calls", 1),
        # 0 is no limit; by default gRPC sends two pings without data and then no more.
        ("grpc.http2.max_pings_without_data", 0),
    )


def bind(
    server: grpc.aio.Server, settings: ServerSettings, credentials: grpc.ServerCredentials | None
) -> int:
    """Listen on the address of the settings, and return the port.

    Raises:
        InvalidInputError: The address cannot be listened on.
    """
    address = with_port(settings.host, settings.port)
    if not _is_free(settings.host, settings.port):
        raise _cannot_listen(address)
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


def _is_free(host: str, port: int) -> bool:
    """Return whether a socket can be bound; gRPC's own attempt would print a line of its log."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        # gRPC fails in the same way, for which there is an error.
        return True
    return any(_binds(family, place) for family, _, _, _, place in found)


def _binds(family: int, place: Any) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # The port of a server that has just ended is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError:
        return False
    return True


def _cannot_listen(address: str) -> InvalidInputError:
    return InvalidInputError(
        f"cannot listen on {address}: it is in use or not an address of this machine; "
        "set another host or port (port 0 chooses a free one)"
    )
