"""All results of a job, page by page, as one stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

from google.rpc import error_details_pb2

from hallujudge.judge.v1 import jobs_pb2 as pb

from .context import CallFailedError, HttpContext

__all__ = ["all_results"]


async def all_results(
    call: Callable[..., Any], raws: AsyncGenerator[bytes, None], context: HttpContext
) -> AsyncGenerator[pb.JobResult | pb.ListJobResultsResponse, None]:
    """Yield the results from the requested position on, then the position after the last one.

    Each page is a call of its own, so that no result is held longer than a client of gRPC holds it.

    Args:
        call: Returns a page.
        raws: The request, in JSON.
        context: The call's context.
    """
    seen: list[bytes] = []
    page = await call(_kept(raws, seen), context)
    while True:
        for result in page.results:
            yield result
        if page.last or not page.results:
            yield pb.ListJobResultsResponse(next_position=page.next_position, last=page.last)
            return
        request = json.loads(seen[0]) | {"position": page.next_position}
        page = await _patiently(call, json.dumps(request).encode(), context)


async def _patiently(call: Callable[..., Any], raw: bytes, context: HttpContext) -> Any:
    """Call, and wait for as long as a limit of the caller's key asks for."""
    while True:
        try:
            return await call(_once(raw), context)
        except CallFailedError as err:
            if (seconds := _retry_after(err)) is None:
                raise
        await asyncio.sleep(seconds)


def _retry_after(error: CallFailedError) -> float | None:
    retry = error_details_pb2.RetryInfo()
    if not any(detail.Unpack(retry) for detail in error.status.details):
        return None
    return float(retry.retry_delay.ToNanoseconds() / 1e9)


async def _kept(
    raws: AsyncGenerator[bytes, None], seen: list[bytes]
) -> AsyncGenerator[bytes, None]:
    async for raw in raws:
        seen.append(raw)
        yield raw


async def _once(raw: bytes) -> AsyncGenerator[bytes, None]:
    yield raw
