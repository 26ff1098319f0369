"""Our services, and what stands before each of their calls, over gRPC and over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hallujudge.judge.v1 import (
    jobs_pb2,
    jobs_pb2_grpc,
    judge_service_pb2,
    judge_service_pb2_grpc,
)

from ..access.turns import Turns
from ..observe.recorder import Recorder
from .admission import Admission
from .call_clock import CallTimes, RunningCalls
from .door import Door
from .interceptors import GuardInterceptor
from .jobs_servicer import JobsServicer
from .observed import ObservingInterceptor
from .offload import OffloadInterceptor
from .requests import Form, ProtobufForm
from .servicer import JudgeServicer
from .workers.pool import WorkerPool

if TYPE_CHECKING:
    import grpc

    from ..engine import Engine
    from ..jobs.service import JobService
    from ..settings.server import ServerSettings

__all__ = ["SERVICE_NAMES", "Services"]

SERVICE_NAMES = tuple(
    file.services_by_name[name].full_name
    for file, name in (
        (judge_service_pb2.DESCRIPTOR, "JudgeService"),
        (jobs_pb2.DESCRIPTOR, "ScoringJobService"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Our services. Limits are shared by all that they are registered at."""

    settings: ServerSettings
    """The settings of the server."""
    engine: Engine
    """Scores items."""
    jobs: JobService | None
    """Keeps jobs; None: there are none."""
    recorder: Recorder
    """Where calls are recorded."""
    door: Door
    """Tells who calls."""
    workers: WorkerPool | None = None
    """Score what needs no model; None: this process does it."""
    turns: Turns = field(default_factory=Turns)
    """How callers share the processor."""
    admission: Admission = field(init=False)
    """The limits of concurrent calls."""
    calls: RunningCalls = field(init=False)
    """The calls that are running."""

    def __post_init__(self) -> None:
        settings = self.settings
        admission = Admission(
            running=settings.max_running_calls, waiting=settings.max_waiting_calls
        )
        times = CallTimes(
            first_message=settings.first_message_seconds,
            idle=settings.idle_seconds,
            total=settings.max_call_seconds,
        )
        object.__setattr__(self, "admission", admission)
        object.__setattr__(self, "calls", RunningCalls(times))

    def interceptors(
        self, form: Callable[[Callable[[bytes], Any] | None], Form] = ProtobufForm
    ) -> Sequence[grpc.aio.ServerInterceptor]:
        """Return what wraps the methods, the outermost first.

        Args:
            form: How messages are written.
        """
        memory = self.engine.resources.memory
        wraps: list[grpc.aio.ServerInterceptor] = [
            GuardInterceptor(self.door, self.admission, memory, self.calls, self.turns, form)
        ]
        # Records are read by logs, metrics and traces alone.
        if type(self.recorder) is not Recorder:
            wraps.insert(0, ObservingInterceptor(self.recorder))
        if self.workers is not None:
            wraps.append(OffloadInterceptor(self.workers, self.settings, raw=form is ProtobufForm))
        return wraps

    def register(self, server: Any) -> None:
        """Register the methods at a server of gRPC, or at what takes its place."""
        judge = JudgeServicer(self.engine, self.settings)
        judge_service_pb2_grpc.add_JudgeServiceServicer_to_server(judge, server)
        jobs = JobsServicer(self.jobs, self.settings)
        jobs_pb2_grpc.add_ScoringJobServiceServicer_to_server(jobs, server)
