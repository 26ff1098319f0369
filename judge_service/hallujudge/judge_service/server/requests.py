"""Requests as bytes: admitted first, then parsed."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Any

from google.protobuf.message import DecodeError

from ..access.memory import CallMemory
from ..errors import InvalidInputError

__all__ = ["RequestReader"]


class RequestReader:
    """Reads the messages of one method.

    Args:
        parse: Builds a message of the bytes.
    """

    def __init__(self, parse: Callable[[bytes], Any] | None) -> None:
        self._parse = parse

    async def only(self, raws: AsyncIterable[bytes], memory: CallMemory) -> Any:
        """Return the one message of a unary call.

        Raises:
            InvalidInputError: There is none, or it is malformed.
            OverloadedError: There is no memory for it.
        """
        async for raw in raws:
            return self._read(raw, memory)
        raise _malformed("the call has no message")

    async def each(
        self,
        raws: AsyncIterable[bytes],
        memory: CallMemory,
        pace: Callable[[], Awaitable[None]] | None = None,
    ) -> AsyncIterator[Any]:
        """Yield the messages of a stream.

        Args:
            raws: Their bytes.
            memory: What the call holds.
            pace: Waits until the caller may send another message.

        Raises:
            InvalidInputError: One is malformed.
            OverloadedError: There is no memory for it.
        """
        first = True
        async for raw in raws:
            if not first and pace is not None:
                await pace()
            first = False
            yield self._read(raw, memory)

    def _read(self, raw: bytes, memory: CallMemory) -> Any:
        memory.take(len(raw))
        if self._parse is None:
            return raw
        try:
            return self._parse(raw)
        except (DecodeError, ValueError, RecursionError):
            raise _malformed("the bytes are not a message of this method") from None


def _malformed(problem: str) -> InvalidInputError:
    return InvalidInputError(
        f"{problem}; use a client of the same release", reason="MALFORMED_MESSAGE"
    )
