"""What shows the work of one server: recorders by its settings, and the page of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..observe.recorder import Recorder
from ..observe.together import Together
from ..observe.values import JobsActivity, WorkerState
from .self_check import SelfCheck

if TYPE_CHECKING:
    from ..engine import Engine
    from ..jobs.service import JobService
    from ..observe.page import MetricsPage
    from ..observe.values import JudgeState
    from ..settings.server import ServerSettings
    from .workers.pool import WorkerPool

__all__ = ["Observation", "observe"]

_CHECK_LIMIT_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What shows the work of one server."""

    recorder: Recorder
    """Where calls are recorded."""
    check: SelfCheck
    """Tells whether the server is well."""
    page: MetricsPage | None = None
    """Where metrics are read; None: nowhere."""

    def close(self) -> None:
        """Write what waits to be written, and close the page."""
        if self.page is not None:
            self.page.close()
        self.recorder.close()


def observe(
    settings: ServerSettings,
    engine: Engine,
    workers: WorkerPool | None = None,
    jobs: JobService | None = None,
) -> Observation:
    """Return what the settings ask for.

    Args:
        settings: The settings.
        engine: Scores items.
        workers: Worker processes; None: there are none.
        jobs: Keeps jobs; None: there are none.

    Raises:
        HallujudgeError: An address, a file or an extra is missing.
    """
    check = SelfCheck(engine, interval=settings.self_check_seconds, limit=_CHECK_LIMIT_SECONDS)
    parts: list[Recorder] = []
    if settings.trace_endpoint:
        from ..observe.tracing import Tracing, otlp_exporter

        parts.append(Tracing(otlp_exporter(settings.trace_endpoint), settings.trace_ratio))
    page = None
    if settings.metrics_port >= 0:
        page, recorder = _metrics(settings, engine, check, workers, jobs)
        parts.append(recorder)
    if settings.access_log:
        from ..observe.access_log import AccessLog

        parts.append(AccessLog(settings.access_log, errors=bool(settings.access_log_errors)))
    recorder = parts[0] if len(parts) == 1 else Together(parts) if parts else Recorder()
    return Observation(recorder=recorder, check=check, page=page)


def _metrics(
    settings: ServerSettings,
    engine: Engine,
    check: SelfCheck,
    workers: WorkerPool | None,
    jobs: JobService | None,
) -> tuple[MetricsPage, Recorder]:
    from ..observe.metrics import MetricsRecorder, Readings, new_registry
    from ..observe.page import MetricsPage

    def judges() -> Sequence[JudgeState]:
        factory = engine.resources.built_judges
        return factory.states() if factory is not None else ()

    memory = engine.resources.memory
    registry = new_registry(
        Readings(
            memory_held=lambda: memory.held,
            memory_limit=memory.limit or 0,
            running_limit=settings.max_running_calls,
            waiting_limit=settings.max_waiting_calls,
            judges=judges,
            well=lambda: not check.ready(),
            check_seconds=lambda: check.seconds,
            workers=lambda: WorkerState() if workers is None else workers.state,
            jobs=lambda: JobsActivity() if jobs is None else jobs.activity,
        )
    )
    recorder = MetricsRecorder(registry)
    page = MetricsPage(
        settings.metrics_host,
        settings.metrics_port,
        registry,
        alive=check.alive,
        ready=check.ready,
    )
    return page, recorder
