"""Errors <-> gRPC status, in both directions from the table of reasons."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from urllib.parse import unquote

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
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

PUSHBACK_TRAILER = "grpc-retry-pushback-ms"
"""The delay that gRPC's own retries use; other clients use RetryInfo."""

# A status is sent in the trailers of a call, which gRPC limits to 8 KiB in total. The message is
# sent twice: percent-encoded with up to three bytes for each byte, and in the details, which base64
# enlarges by a third. 3 * 1,000 + 4/3 * (1,000 + 1,200 + 600 + names) is below 7,200.
_MESSAGE_BYTES = 1_000
_VIOLATIONS_BYTES = 1_200
_VIOLATION_BYTES = 400
_METADATA_BYTES = 80
_METADATA_PAIRS = 6

# gRPC writes IPv6 addresses as parts of a URI.
_IPV6 = re.compile(r"ipv6:%5B[0-9A-Za-z:.%]{2,64}?%5D")

# grpc.aio says this, with INTERNAL, of a call that begins while its connection breaks.
_BROKEN = "Internal error from Core"

# Envoy answers gRPC with gRPC, in words of its own.
_ENVOY = re.compile(r"upstream (connect error|request timeout)|no healthy upstream|stream timeout")
# gRPC's core says these of answers that are not gRPC, such as a proxy's.
_HTTP_STATUS = re.compile(r"Received http2 header with status: (\d{3})")
_RESET = "Stream removed (RST_STREAM"
# The statuses with which proxies say that they got no answer; others are the proxy's own.
_UNREACHED = {
    408: "waited too long for the call",
    502: "reaches no server",
    503: "has no server to send the call to",
    504: "waited too long for the server",
}

# Codes of gRPC itself, or of another server; our own errors carry their reason.
_BY_CODE: dict[grpc.StatusCode, type[HallujudgeError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidInputError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.UNIMPLEMENTED: UnsupportedError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: OverloadedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineError,
    grpc.StatusCode.CANCELLED: CancelledError,
}
# What is said where a call ends without an answer of our server, and what to do.
_TOLD: dict[type[HallujudgeError], str] = {
    UnavailableError: "no Hallujudge server answers at {target!r} ({why}); check the address and "
    "port, start one with 'hallujudge serve', or score in this process, without a server",
    CancelledError: "the server at {target!r} ended the call without an answer ({why}), as a "
    "server does that stops; call again when it is back, or call another one",
    DeadlineError: "the server at {target!r} did not finish in the time it was given ({why}); "
    "give the client a longer call_timeout or stream_timeout",
}


def status_of(error: HallujudgeError) -> status_pb2.Status:
    """Return the status of an error: ErrorInfo, and BadRequest and RetryInfo where they apply.

    Texts are shortened so that the status fits into a header.
    """
    # By the reason, so that an error has the same code wherever it is reported.
    code = grpc.StatusCode[REASONS[error.reason].code]
    details: list[Message] = [
        error_details_pb2.ErrorInfo(
            reason=error.reason, domain=DOMAIN, metadata=_short_metadata(error.metadata)
        )
    ]
    if error.violations:
        details.append(_bad_request(error.violations))
    if error.retry_after is not None:
        delay = duration_pb2.Duration()
        delay.FromNanoseconds(int(error.retry_after * 1e9))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    return status_pb2.Status(
        code=code.value[0],
        message=shortened(error.message, _MESSAGE_BYTES),
        details=[_packed(part) for part in details],
    )


def shortened(text: str, max_bytes: int) -> str:
    """Return a text cut to a number of bytes; a text that was cut ends with ``…``."""
    # A lone surrogate can't be encoded; it is replaced.
    data = text.encode(errors="replace")
    if len(data) <= max_bytes:
        return data.decode()
    # A cut within a character's bytes leaves a part that no client could read.
    return data[: max_bytes - len("…".encode())].decode(errors="ignore") + "…"


def _short_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    pairs = islice(metadata.items(), _METADATA_PAIRS)
    return {name[:_METADATA_BYTES]: shortened(text, _METADATA_BYTES) for name, text in pairs}


def _bad_request(violations: Iterable[Violation]) -> error_details_pb2.BadRequest:
    """Return the first violations, as many as fit."""
    message = error_details_pb2.BadRequest()
    for violation in violations:
        row = message.field_violations.add(
            field=shortened(violation.field, _VIOLATION_BYTES),
            description=shortened(violation.description, _VIOLATION_BYTES),
        )
        if message.ByteSize() > _VIOLATIONS_BYTES:
            # Added first, because only protobuf knows what a row takes.
            message.field_violations.remove(row)
            break
    return message


def pushback(error: HallujudgeError) -> tuple[tuple[str, str], ...]:
    """Return the trailer from which gRPC's own retries take their delay."""
    if error.retry_after is None:
        return ()
    return ((PUSHBACK_TRAILER, str(int(error.retry_after * 1000))),)


def error_from_rpc(error: grpc.RpcError, *, target: str) -> HallujudgeError:
    """Return the exception that the server raised, or the one for the status of gRPC itself.

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
    # Each detail says its own type, so that unpacking fills only the message that fits.
    for detail in status.details:
        for message in (info, bad_request, retry):
            detail.Unpack(message)
    # Another service's ErrorInfo may have a reason that only looks like ours.
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
    has_status = isinstance(error, (grpc.Call, grpc.aio.AioRpcError))
    code = error.code() if has_status else grpc.StatusCode.UNKNOWN
    text = (error.details() if has_status else "") or ""
    details = _IPV6.sub(lambda found: unquote(found[0]), text)
    if (of_proxy := _of_a_proxy(code, details, target)) is not None:
        return of_proxy
    kind = _BY_CODE.get(code, InternalError)
    # The connection failed, and not the server: unlike other internal errors, it passes.
    if details == _BROKEN:
        kind = UnavailableError
    if (told := _TOLD.get(kind)) is not None:
        why = _why(details) if kind is UnavailableError else details
        return kind(told.format(target=target, why=why), metadata={"target": target})
    # gRPC refuses a message by its own limit before our server sees it.
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in details:
        return InvalidInputError(
            f"a message is too large for the server at {target!r} ({details}); send fewer or "
            "shorter items, or raise the server's setting limits.max_message_bytes",
            reason="MESSAGE_TOO_LARGE",
        )
    return kind(f"{target}: {code.name}: {details}", metadata={"target": target})


def _of_a_proxy(code: grpc.StatusCode, details: str, target: str) -> HallujudgeError | None:
    """Return the error of a proxy, or of another web server, that answers for ours; else None.

    The words are those of gRPC's core for answers that are not gRPC. nginx resets a stream that
    gets larger than its limit, and one that it waits for too long.
    """
    metadata = {"target": target}
    # Before the codes: such a reset looks like an error of our server.
    if code is grpc.StatusCode.INTERNAL and details.startswith(_RESET):
        return InternalError(
            f"a proxy on the way to {target!r} seems to have ended the call ({details}), as it "
            "does at a limit of size or time; raise its limits, such as client_max_body_size, "
            "client_body_timeout and grpc_read_timeout of nginx, or timeout of Envoy's route",
            metadata=metadata,
        )
    if code in _BY_CODE and _ENVOY.match(details):
        return UnavailableError(
            f"a proxy at {target!r} answers, but gets no answer from the server ({details}); start "
            "the Hallujudge server, correct where the proxy sends its calls, or let the proxy wait "
            "for longer (timeout of Envoy's route)",
            metadata=metadata,
        )
    if (found := _HTTP_STATUS.search(details)) is None:
        return None
    status = int(found[1])
    # The proxy's limit, which no setting of the server can raise.
    if status == 413:
        return InvalidInputError(
            f"a proxy on the way to {target!r} does not take a call of this size (HTTP 413); raise "
            "its limit, such as client_max_body_size of nginx",
            reason="MESSAGE_TOO_LARGE",
            metadata=metadata,
        )
    if status in _UNREACHED:
        return UnavailableError(
            f"a proxy at {target!r} answers, but {_UNREACHED[status]} (HTTP {status}); start the "
            "Hallujudge server, or correct where the proxy sends its calls",
            metadata=metadata,
        )
    return _BY_CODE.get(code, InternalError)(
        f"what answers at {target!r} is a proxy or web server that passes on no gRPC (HTTP "
        f"{status}); check the address, and that it passes gRPC on (grpc_pass of nginx)",
        metadata=metadata,
    )


def _why(details: str) -> str:
    """Return why gRPC has no connection, without the target, which it repeats."""
    if details.startswith("errors resolving"):
        return f"its host is not known: {details.rstrip(']').rpartition(': ')[2]}"
    return details or "no connection"


def _packed(message: Message) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed
