"""Errors as HTTP: status, headers, and JSON in the form of the Connect protocol."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf import json_format
from google.rpc import error_details_pb2, status_pb2

if TYPE_CHECKING:
    from google.protobuf.any_pb2 import Any as Packed
    from google.protobuf.message import Message


HTTP_STATUSES: Mapping[str, int] = {
    "CANCELLED": 499,
    "UNKNOWN": 500,
    "INVALID_ARGUMENT": 400,
    "DEADLINE_EXCEEDED": 504,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 400,
    "ABORTED": 409,
    "OUT_OF_RANGE": 400,
    "UNIMPLEMENTED": 501,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DATA_LOSS": 500,
    "UNAUTHENTICATED": 401,
}
"""gRPC status -> HTTP status, as the Connect protocol defines it."""
# HTTP has a status of its own for this INVALID_ARGUMENT.
_BY_REASON: Mapping[str, int] = {"MESSAGE_TOO_LARGE": 413}
_NAMES = {code.value[0]: code.name for code in grpc.StatusCode}
_DETAILS: tuple[type[Message], ...] = (
    error_details_pb2.ErrorInfo,
    error_details_pb2.BadRequest,
    error_details_pb2.RetryInfo,
)


def http_status(status: status_pb2.Status) -> int:
    """Return the HTTP status of an error."""
    info = _detail(status, error_details_pb2.ErrorInfo())
    return _BY_REASON.get(info.reason) or HTTP_STATUSES[name_of(status)]


def error_headers(status: status_pb2.Status) -> list[tuple[str, str]]:
    """Return the headers by which clients know when to retry or how to authenticate."""
    headers = []
    retry = _detail(status, error_details_pb2.RetryInfo())
    if retry.HasField("retry_delay"):
        seconds = math.ceil(retry.retry_delay.ToNanoseconds() / 1e9)
        headers.append(("retry-after", str(seconds)))
    if name_of(status) == "UNAUTHENTICATED":
        # HTTP requires this header with 401 (RFC 9110, section 11.6.1).
        headers.append(("www-authenticate", "Bearer"))
    return headers


def error_body(status: status_pb2.Status) -> bytes:
    """Return an error as JSON. Each detail is packed, and readable under ``debug``."""
    body: dict[str, Any] = {"code": _connect_name(status), "message": status.message}
    if status.details:
        body["details"] = [_shown(detail) for detail in status.details]
    return json.dumps(body, ensure_ascii=False).encode()


def _shown(detail: Packed) -> dict[str, Any]:
    # The Connect protocol uses base64 without padding.
    value = base64.b64encode(detail.value).decode().rstrip("=")
    shown: dict[str, Any] = {"type": detail.type_url.rpartition("/")[2], "value": value}
    for kind in _DETAILS:
        if shown["type"] == kind.DESCRIPTOR.full_name:
            shown["debug"] = json_format.MessageToDict(kind.FromString(detail.value))
    return shown


def _detail(status: status_pb2.Status, message: Any) -> Any:
    for detail in status.details:
        if detail.Unpack(message):
            break
    return message


def name_of(status: status_pb2.Status) -> str:
    """Return the name of an error's status code."""
    return _NAMES.get(status.code, "UNKNOWN")


def _connect_name(status: status_pb2.Status) -> str:
    name = name_of(status)
    # The Connect protocol spells this code with one l.
    return "canceled" if name == "CANCELLED" else name.lower()


class CallFailedError(Exception):
    """A call ended with a status that is not OK.

    Args:
        status: The status.
    """

    def __init__(self, status: status_pb2.Status) -> None:
        super().__init__(status.message)
        self.status = status
