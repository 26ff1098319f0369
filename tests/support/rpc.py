"""Helpers for gRPC calls."""

from __future__ import annotations

from typing import Any

import grpc
from grpc_health.v1 import health_pb2_grpc
from grpc_status import rpc_status


def refused(call: grpc.RpcError) -> tuple[grpc.StatusCode, str]:
    """Return the status code, and the reason of the only ErrorInfo."""
    from google.rpc import error_details_pb2

    status = rpc_status.from_call(call)  # type: ignore[arg-type]  # every RpcError is a Call
    assert status is not None
    infos = [
        detail for detail in status.details if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR)
    ]
    assert len(infos) == 1
    info = error_details_pb2.ErrorInfo.FromString(infos[0].value)
    assert info.domain == "hallujudge"
    return call.code(), info.reason


def health_stub(channel: object) -> Any:
    """The health service's stub, whose type stubs lack its methods."""
    return health_pb2_grpc.HealthStub(channel)  # type: ignore[arg-type]  # both kinds of channel


def raw_call(channel: grpc.aio.Channel, method: str, kind: str = "unary_unary") -> Any:
    """Return a call of a method that sends and receives bytes."""
    return getattr(channel, kind)(method)
