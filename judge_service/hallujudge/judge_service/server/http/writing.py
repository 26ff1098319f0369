"""Messages as JSON texts, written in pieces.

Python's encoder does not let other threads work before its text is complete, which takes a second
for a large response. The messages in a large one are therefore written one by one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from ...access.turns import check_wanted
from ...wire.hints import is_map, is_repeated

__all__ = ["json_text"]

# Writing so much takes two milliseconds.
_WHOLE_BYTES = 16_000


def json_text(message: Message) -> bytes:
    """Return the JSON form of a message, in one line and with sorted keys.

    Maps have no order of their own: sorted keys make equal messages equal texts.
    """
    return "".join(_one(message)).encode()


def _pieces(message: Message) -> Iterator[str]:
    """Yield the text of a message; its repeated messages are pieces of their own."""
    rest = type(message)()
    apart: dict[str, Any] = {}
    for field, value in message.ListFields():
        if _is_apart(field):
            apart[field.json_name] = value
        else:
            _take_over(rest, field, value)
    plain = json_format.MessageToDict(rest)
    joint = "{"
    for name in sorted([*plain, *apart]):
        yield f"{joint}{json.dumps(name)}: "
        joint = ", "
        if name in plain:
            yield _dumped(plain[name])
        elif isinstance(apart[name], Message):
            yield from _one(apart[name])
        else:
            yield from _list(apart[name])
    yield "}" if joint != "{" else "{}"


def _list(messages: Any) -> Iterator[str]:
    joint = "["
    for message in messages:
        check_wanted()
        yield joint
        yield from _one(message)
        joint = ", "
    yield "]"


def _one(message: Message) -> Iterator[str]:
    if message.ByteSize() > _WHOLE_BYTES:
        yield from _pieces(message)
    else:
        yield _dumped(json_format.MessageToDict(message))


def _dumped(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _is_apart(field: FieldDescriptor) -> bool:
    return field.message_type is not None and not is_map(field)


def _take_over(rest: Message, field: FieldDescriptor, value: Any) -> None:
    if is_map(field) or is_repeated(field):
        getattr(rest, field.name).MergeFrom(value)
    else:
        setattr(rest, field.name, value)
