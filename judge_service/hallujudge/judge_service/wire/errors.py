"""Errors <-> gRPC status. One function each way, both read off the table of reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from ..errors import (
    DOMAIN,
    REASONS,
    CancelledError,
    DeadlineError,
    HallujudgeError,
    InternalError,
    InvalidInputError,
    NotFoundError,
    OverloadedError,
    UnavailableError,
    UnsupportedError,
    Violation,
)

if TYPE_CHECKING:
    from google.protobuf.message import Message

__all__ = ["PUSHBACK_TRAILER", "error_from_rpc", "pushback", "status_of"]

PUSHBACK_TRAILER = "grpc-retry-pushback-ms"
"""What gRPC's own retries heed; RetryInfo is for everybody else."""

_BY_CODE: dict[grpc.StatusCode, type[HallujudgeError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidInputError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.UNIMPLEMENTED: UnsupportedError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: OverloadedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineError,
    grpc.StatusCode.CANCELLED: CancelledError,
}


def status_of(error: HallujudgeError) -> status_pb2.Status:
    """The status that carries an error: one ErrorInfo, and BadRequest and RetryInfo where due."""
    code = grpc.StatusCode[REASONS[error.reason].code]
    details: list[Message] = [
        error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=error.metadata)
    ]
    if error.violations:
        details.append(
            error_details_pb2.BadRequest(
                field_violations=[
                    error_details_pb2.BadRequest.FieldViolation(
                        field=violation.field, description=violation.description
                    )
                    for violation in error.violations
                ]
            )
        )
    if error.retry_after is not None:
        delay = duration_pb2.Duration()
        delay.FromNanoseconds(int(error.retry_after * 1e9))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    return status_pb2.Status(
        code=code.value[0], message=error.message, details=[_packed(part) for part in details]
    )


def pushback(error: HallujudgeError) -> tuple[tuple[str, str], ...]:
    """The trailer that tells gRPC when to try again."""
    if error.retry_after is None:
        return ()
    return ((PUSHBACK_TRAILER, str(int(error.retry_after * 1000))),)


def error_from_rpc(error: grpc.RpcError, *, target: str) -> HallujudgeError:
    """The exception that the server raised, or the one that fits what gRPC says.

    Args:
        error: What gRPC raised.
        target: The server's address, for messages about the connection.
    """
    try:
        status = rpc_status.from_call(error)  # type: ignore[arg-type]  # every RpcError is a Call
    except ValueError:  # the details contradict the code: not one of our servers
        status = None
    if status is not None and (own := _own(status)) is not None:
        return own
    return _foreign(error, target)


def _own(status: status_pb2.Status) -> HallujudgeError | None:
    info = error_details_pb2.ErrorInfo()
    bad_request = error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    for detail in status.details:
        for message in (info, bad_request, retry):
            detail.Unpack(message)
    if info.domain != DOMAIN or info.reason not in REASONS:
        return None
    return REASONS[info.reason].error(
        status.message,
        reason=info.reason,
        metadata=info.metadata,
        violations=tuple(
            Violation(field=violation.field, description=violation.description)
            for violation in bad_request.field_violations
        ),
        retry_after=retry.retry_delay.ToNanoseconds() / 1e9
        if retry.HasField("retry_delay")
        else None,
    )


def _foreign(error: grpc.RpcError, target: str) -> HallujudgeError:
    told = isinstance(error, (grpc.Call, grpc.aio.AioRpcError))
    code = error.code() if told else grpc.StatusCode.UNKNOWN
    details = (error.details() if told else "") or ""
    kind = _BY_CODE.get(code, InternalError)
    if kind is UnavailableError:
        return UnavailableError(
            f"no Hallujudge server answers at {target!r} ({details or 'no connection'}); "
            "check the address and port, start one with 'hallujudge serve', "
            "or leave --server out to score in this process",
            metadata={"target": target},
        )
    if kind is DeadlineError:
        return DeadlineError(
            f"the server at {target!r} did not finish in the time it was given ({details}); "
            "give the client a longer timeout or stream_timeout",
            metadata={"target": target},
        )
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in details:
        return InvalidInputError(
            f"a message is too large for the server at {target!r} ({details}); send fewer or "
            "shorter items, or raise --max-message-bytes on the server",
            reason="MESSAGE_TOO_LARGE",
        )
    return kind(f"{target}: {code.name}: {details}", metadata={"target": target})


def _packed(message: Message) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed
