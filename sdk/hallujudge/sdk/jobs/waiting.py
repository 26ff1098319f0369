"""Waiting for a job, also while its server is away."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from ..backends.reconnecting import Reconnecting
from ..errors import HallujudgeError

if TYPE_CHECKING:
    from .remote import RemoteJobs
    from .values import JobInfo, OnJobChange

__all__ = ["wait_for_job"]


async def wait_for_job(
    jobs: RemoteJobs,
    job_id: str,
    on_change: OnJobChange | None,
    target: str,
    reconnect_seconds: float,
) -> JobInfo:
    """Return a job when it is finished.

    Args:
        jobs: The jobs of the server.
        job_id: The job.
        on_change: Called with the job now and after every change.
        target: The server's address, for messages.
        reconnect_seconds: How long the server may be away.

    Raises:
        UnavailableError: The server was away for too long.
    """
    reconnecting = Reconnecting(target, reconnect_seconds)
    # The job may have changed while the server was away: it is told again after each connection.
    while True:
        try:
            async with aclosing(jobs.watch(job_id)) as changes:
                async for info in changes:
                    reconnecting.back()
                    if on_change is not None:
                        on_change(info)
                    if info.is_finished:
                        return info
        except HallujudgeError as err:
            await asyncio.sleep(reconnecting.lost(err))
