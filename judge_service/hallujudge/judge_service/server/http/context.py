"""What the door and the methods see of an HTTP request: the same as of a gRPC call."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, TypeAlias

import grpc
from google.rpc import status_pb2

__all__ = ["CallFailedError", "HttpContext"]

_Metadata: TypeAlias = "tuple[tuple[str, str | bytes], ...]"

_DETAILS = "grpc-status-details-bin"


class CallFailedError(Exception):
    """A call ended with a status that is not OK.

    Args:
        status: The status.
    """

    def __init__(self, status: status_pb2.Status) -> None:
        super().__init__(status.message)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpContext:
    """Takes the place of gRPC's context.

    It has those methods of ``grpc.aio.ServicerContext`` that this server uses.
    """

    metadata: Sequence[tuple[str, str]]
    """The request's headers."""
    address: str
    """The client, in gRPC's notation."""
    certificate: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    """What the client's certificate says of it."""
    raws: AsyncGenerator[bytes, None] | None = None
    """What the client sends to a method with one message."""

    def reading(self, raws: AsyncGenerator[bytes, None]) -> HttpContext:
        """Return the context of a call that reads its message here."""
        return replace(self, raws=raws)

    async def read(self) -> Any:
        """Return the call's message as bytes, or gRPC's mark of the end."""
        assert self.raws is not None, "the messages of this call are read elsewhere"
        async with aclosing(self.raws) as raws:
            return await anext(raws, grpc.aio.EOF)

    def invocation_metadata(self) -> Sequence[tuple[str, str]]:
        """Return the request's headers."""
        return self.metadata

    def peer(self) -> str:
        """Return the client's address."""
        return self.address

    def auth_context(self) -> Mapping[str, Sequence[bytes]]:
        """Return what is known of the client by its certificate."""
        return self.certificate

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: _Metadata = ()
    ) -> NoReturn:
        """End the call.

        Raises:
            CallFailedError: Always.
        """
        packed = dict(trailing_metadata).get(_DETAILS, b"")
        if isinstance(packed, bytes) and packed:
            raise CallFailedError(status_pb2.Status.FromString(packed))
        raise CallFailedError(status_pb2.Status(code=code.value[0], message=details))
