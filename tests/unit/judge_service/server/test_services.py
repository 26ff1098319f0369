"""The health service: what it tells, and when its streams end."""

from __future__ import annotations

from typing import Any

from grpc_health.v1 import health_pb2

from hallujudge.judge_service.server.services import HealthServicer

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
CONTEXT: Any = None


def request(service: str = "") -> health_pb2.HealthCheckRequest:
    return health_pb2.HealthCheckRequest(service=service)


async def test_a_drain_is_told_and_ends_the_streams() -> None:
    servicer = HealthServicer(["judge"])
    watch = aiter(servicer.Watch(request("judge"), CONTEXT))
    unread = aiter(servicer.Watch(request(), CONTEXT))
    assert (await anext(watch)).status == SERVING
    assert (await anext(unread)).status == SERVING
    servicer.update(False)
    assert (await anext(watch)).status == NOT_SERVING
    servicer.update(True)
    assert (await anext(watch)).status == SERVING
    servicer.drain()
    servicer.update(True)
    assert [answer.status async for answer in watch] == [NOT_SERVING]
    assert (await servicer.Check(request(), CONTEXT)).status == NOT_SERVING
    # Its client gets what is true now, not what it missed.
    assert [answer.status async for answer in unread] == [NOT_SERVING]


async def test_a_service_that_is_not_there_is_told_as_such() -> None:
    watch = aiter(HealthServicer(["judge"]).Watch(request("cook"), CONTEXT))
    assert (await anext(watch)).status == UNKNOWN
