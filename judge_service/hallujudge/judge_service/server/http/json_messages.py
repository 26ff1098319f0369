"""Protobuf messages as JSON: parsed, written, and checked for the field that does not fit.

protobuf's own parser names the field that does not fit for some problems only. Python's encoder
holds the interpreter until its text is complete, a second for a large response; the messages in a
large one are therefore written one by one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar, TypeVar

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from ...errors import InvalidInputError, Violation
from ...threads import check_wanted, in_thread
from ...wire.codec import SCALARS, is_repeated, map_value
from ...wire.errors import shortened
from ..request_reader import TooManyFieldsError

_T = TypeVar("_T")

# Reading or writing this much takes a millisecond; more is done in a thread.
_SHORT_BYTES = 4_000
# Work of more than about a tenth of a second does not delay shorter work in threads.
_THREAD_BYTES = 256_000
# The service's own messages have less than a tenth of this depth.
_MAX_DEPTH = 50
# A parser quotes what it read, which may be the whole body.
_MAX_PROBLEM = 300
# Writing this much takes two milliseconds.
_WHOLE_BYTES = 16_000

_TEXTS = (FieldDescriptor.CPPTYPE_STRING,)
_NUMBERS = (*SCALARS[int], *SCALARS[float], FieldDescriptor.CPPTYPE_FLOAT)
_MAX_NAME = 80


class JsonForm:
    """Messages of one method as JSON, in the mapping that protobuf defines.

    Args:
        parse: The parser of the binary form, from which the message's type is taken.
    """

    # An object with one number takes 230 bytes, and has two of the characters that are counted.
    field_bytes: ClassVar[int] = 400

    def __init__(self, parse: Callable[[bytes], Any] | None) -> None:
        self._type: type[Message] = parse.__self__  # type: ignore[union-attr]  # FromString

    builds = True

    def count(self, raw: bytes, most: int) -> int:
        """Return an upper bound of the number of values, which includes commas in texts.

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
        return await worked(partial(_read, raw, self._type), len(raw))


async def to_json(message: Message) -> bytes:
    """Return a message as one line of JSON."""
    return await worked(partial(json_text, message), 3 * message.ByteSize())


async def worked(work: Callable[[], _T], size: int) -> _T:
    """Return the result of work, which is done in a thread if it takes long.

    Args:
        work: The work.
        size: The bytes that it reads or writes.
    """
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


# The parser names each step on its way to the fault, and adds a full stop at each.
_STEPS = re.compile(r"^(?:Failed to (?:load JSON|parse \w+ field): )+")


def _explained(text: str, kind: type[Message], said: str) -> InvalidInputError:
    """Return the error for a parser's message, with the field that does not fit."""
    said = shortened(_STEPS.sub("", said).rstrip("."), _MAX_PROBLEM)
    try:
        value = json.loads(text)
    except RecursionError:
        return _malformed("the body is nested too deeply")
    except ValueError:
        return _malformed(f"the body is not JSON: {said}")
    misfit = find_misfit(value, kind.DESCRIPTOR)  # type: ignore[arg-type]  # the only kind there is
    if misfit is None:
        return _malformed(said)
    if not misfit.field:
        return _malformed(f"the message {misfit.description}")
    return _malformed(f"{misfit.field} {misfit.description}", misfit)


def _malformed(problem: str, misfit: Violation | None = None) -> InvalidInputError:
    return InvalidInputError(
        f"{problem}; /openapi.json describes the messages",
        reason="MALFORMED_MESSAGE",
        violations=(misfit,) if misfit is not None else (),
    )


def json_text(message: Message) -> bytes:
    """Return a message as one line of JSON; keys are sorted, so that equal messages are equal.

    Python's encoder blocks other threads until its text is complete, which takes a second for a
    large response. The messages in a large one are therefore written one by one.
    """
    return "".join(_one(message)).encode()


def _pieces(message: Message) -> Iterator[str]:
    """Yield the text of a message, with nested messages as pieces of their own."""
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
    return field.message_type is not None and map_value(field) is None


def _take_over(rest: Message, field: FieldDescriptor, value: Any) -> None:
    # A map is repeated too.
    if is_repeated(field):
        getattr(rest, field.name).MergeFrom(value)
    else:
        setattr(rest, field.name, value)


def find_misfit(value: Any, descriptor: Descriptor) -> Violation | None:
    """Return the first field that does not fit, or None if the problem is a different one.

    protobuf's own parser names the field for some problems only.

    Args:
        value: The parsed JSON.
        descriptor: The type of the message.
    """
    return next(_in_message(value, descriptor, ""), None)


def _in_message(value: Any, descriptor: Descriptor, path: str) -> Iterator[Violation]:
    if not isinstance(value, dict):
        only = [field for field in descriptor.fields if is_repeated(field)]
        is_list = isinstance(value, list) and len(only) == len(descriptor.fields) == 1
        expected = f'{{"{only[0].json_name}": […]}}' if is_list else "an object"
        yield _violation(path, expected, value)
        return
    known = {name: field for field in descriptor.fields for name in (field.name, field.json_name)}
    members: dict[str, str] = {}
    for name, part in value.items():
        place = f"{path}.{name[:_MAX_NAME]}" if path else name[:_MAX_NAME]
        field = known.get(name)
        if field is None:
            problem = f"is not a field; the fields are {', '.join(sorted(_names(descriptor)))}"
            yield Violation(field=place, description=problem)
            continue
        oneof = field.containing_oneof
        if oneof is not None and (other := members.setdefault(oneof.name, name)) != name:
            yield Violation(field=place, description=f"is set together with {other}; set only one")
        if part is not None:
            yield from _in_field(part, field, place)


def _in_field(value: Any, field: FieldDescriptor, path: str) -> Iterator[Violation]:
    if (entry := map_value(field)) is not None:
        if not isinstance(value, dict):
            yield _violation(path, "an object", value)
            return
        for key, part in value.items():
            yield from _in_value(part, entry, f"{path}[{key[:_MAX_NAME]}]")
    elif is_repeated(field):
        if not isinstance(value, list):
            yield _violation(path, "a list", value)
            return
        for number, part in enumerate(value):
            yield from _in_value(part, field, f"{path}[{number}]")
    else:
        yield from _in_value(value, field, path)


def _in_value(value: Any, field: FieldDescriptor, path: str) -> Iterator[Violation]:
    if field.message_type is not None:
        yield from _in_message(value, field.message_type, path)
    elif field.cpp_type in _TEXTS and not isinstance(value, str):
        yield _violation(path, "text", value)
    elif field.cpp_type == FieldDescriptor.CPPTYPE_BOOL and not isinstance(value, bool):
        yield _violation(path, "true or false", value)
    elif field.cpp_type in _NUMBERS and not _is_number(value):
        yield _violation(path, "a number", value)


def _is_number(value: Any) -> bool:
    if isinstance(value, str):  # large integers, and numbers that JSON does not have
        try:
            float(value)
        except ValueError:
            return False
        return True
    return isinstance(value, int | float) and not isinstance(value, bool)


def _violation(path: str, expected: str, value: Any) -> Violation:
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    found = "null" if value is None else kinds.get(type(value), "a number")
    return Violation(field=path, description=f"must be {expected}, not {found}")


def _names(descriptor: Descriptor) -> Iterator[str]:
    return (field.json_name for field in descriptor.fields)
