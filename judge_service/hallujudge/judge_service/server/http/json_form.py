"""Messages as JSON: read into the messages of the .proto files, and written from them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, TypeVar

from google.protobuf import json_format
from google.protobuf.message import Message

from ...access.turns import in_thread
from ...errors import InvalidInputError, Violation
from ...wire.errors import shortened
from ...wire.scan import TooManyFieldsError
from .misfits import find_misfit
from .writing import json_text

__all__ = ["JsonForm", "to_json"]

_T = TypeVar("_T")

# Reading or writing so much takes a millisecond; more is done in a thread.
_SHORT_BYTES = 4_000
# About a tenth of a second.
_THREAD_BYTES = 256_000
# The service's own messages are nested less than a tenth as deep.
_MAX_DEPTH = 50
_MAX_PROBLEM = 300


class JsonForm:
    """Messages of one method as JSON, in the mapping that protobuf defines.

    Args:
        parse: Builds a message of its binary form, which names the message's type.
    """

    # An object with one number is 230 bytes, and has two of the signs that are counted.
    field_bytes: ClassVar[int] = 400

    def __init__(self, parse: Callable[[bytes], Any] | None) -> None:
        self._type: type[Message] = parse.__self__  # type: ignore[union-attr]  # FromString

    builds = True

    def count(self, raw: bytes, most: int) -> int:
        """Return an upper bound of the number of values; commas in texts count as well.

        Raises:
            TooManyFieldsError: It is above ``most``.
        """
        count = raw.count(b",") + raw.count(b"{") + raw.count(b"[")
        if count > most:
            raise TooManyFieldsError(f"the message has more than {most:,} values")
        return count

    async def parse(self, raw: bytes) -> Any:
        """Return the message.

        Raises:
            InvalidInputError: The bytes are not JSON, or not a message of the method.
        """
        return await _worked(partial(_read, raw, self._type), len(raw))


async def to_json(message: Message) -> bytes:
    """Return a message as one line of JSON."""
    return await _worked(partial(json_text, message), 3 * message.ByteSize())


async def _worked(work: Callable[[], _T], size: int) -> _T:
    if size <= _SHORT_BYTES:
        return work()
    return await in_thread(work, short=size <= _THREAD_BYTES)


def _read(raw: bytes, kind: type[Message]) -> Message:
    try:
        text = raw.decode()
    except UnicodeDecodeError as err:
        raise _malformed(f"byte {err.start} of the body is not UTF-8") from None
    try:
        return json_format.Parse(text, kind(), max_recursion_depth=_MAX_DEPTH)
    except json_format.ParseError as err:
        raise _explained(text, kind, str(err)) from None


def _explained(text: str, kind: type[Message], said: str) -> InvalidInputError:
    """Return the error for what the parser said, with the field that it is about."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _malformed(f"the body is not JSON: {shortened(said, _MAX_PROBLEM)}")
    misfit = find_misfit(value, kind.DESCRIPTOR)  # type: ignore[arg-type]  # the only kind there is
    if misfit is None:
        return _malformed(shortened(said, _MAX_PROBLEM))
    if not misfit.field:
        return _malformed(f"the message {misfit.description}")
    return _malformed(f"{misfit.field} {misfit.description}", misfit)


def _malformed(problem: str, misfit: Violation | None = None) -> InvalidInputError:
    return InvalidInputError(
        f"{problem}; /openapi.json describes the messages",
        reason="MALFORMED_MESSAGE",
        violations=(misfit,) if misfit is not None else (),
    )
