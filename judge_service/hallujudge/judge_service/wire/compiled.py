"""Conversion functions with one line for each field.

A converter that loops over its fields takes up to half as long again as one that names them
(``benchmarks/bench_codec.py``). So the lines are written from the fields of a pair and compiled
once, as :mod:`dataclasses` does for ``__init__``. The source contains names of fields of our own
messages, and nothing that comes from a caller or a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from textwrap import indent
from typing import Any, NamedTuple

from hallujudge.metrics.framework.slots import slots_of

from .places import MalformedError

__all__ = ["Field", "content_functions", "positions", "reader_of", "writer_of"]

_INDENT = "    "


class Field(NamedTuple):
    """How a field of a value is written and read, as source code."""

    name: str
    """Its name."""
    write: str
    """Statements that write the content ``{v}`` to the message ``{m}``."""
    read: str
    """An expression for the content that the message ``{m}`` has."""
    uses: Mapping[str, Any] = {}
    """What both use, by name."""
    located: bool = False
    """Whether its name is put in front of the place of an error."""


def writer_of(fields: Sequence[Field], **inner: Sequence[Field]) -> Callable[[Any, Any], None]:
    """Return a function that writes the fields of a value to a message.

    Args:
        fields: The fields that the message has.
        inner: Name of a message within it -> the fields that this one has.
    """
    lines = [_write(field) for field in fields]
    for name, table in inner.items():
        lines += [(False, f"{name} = message.{name}\n{name}.SetInParent()")]
        lines += [_write(field, name) for field in table]
    body = _body(lines) or "pass"
    return _compiled("value, message", body, _uses(fields, inner))


def reader_of(
    value_type: Any, fields: Sequence[Field], **inner: Sequence[Field]
) -> Callable[[Any], Any]:
    """Return a function that makes a value of a message.

    Args:
        value_type: A dataclass or a named tuple.
        fields: Its fields, in order.
        inner: Name of a message within the message -> the other fields of the value.
    """
    lines = [_read(field) for field in fields]
    for name, table in inner.items():
        lines += [(False, f"{name} = message.{name}")]
        lines += [_read(field, name) for field in table]
    names = [field.name for table in (fields, *inner.values()) for field in table]
    make, uses = _make(value_type, names)
    return _compiled("message", _body(lines) + "\n" + make, _uses(fields, inner) | uses)


def content_functions(field: Field) -> tuple[Callable[[Any, Any], None], Callable[[Any], Any]]:
    """Return functions that write and read a message with one field, whose content is the value."""
    return (
        _compiled("value, message", field.write.format(m="message", v="value"), field.uses),
        _compiled("message", f"return {field.read.format(m='message')}", field.uses),
    )


def positions(names: Sequence[str]) -> tuple[Callable[[Any, Any], None], Callable[[Any], Any]]:
    """Return functions that write and read a tuple, whose elements are fields of a message."""
    targets = "".join(f"message.{name}, " for name in names)
    return (
        _compiled("value, message", f"{targets} = value", {}),
        _compiled("message", f"return ({targets})", {}),
    )


_Line = tuple[bool, str]
"""Whether the lines stand in the block that locates errors, and the lines."""


def _write(field: Field, inner: str = "") -> _Line:
    lines = field.write.format(m=inner or "message", v=f"value.{field.name}")
    return field.located, _at(field, inner) + lines


def _read(field: Field, inner: str = "") -> _Line:
    line = f"new_{field.name} = {field.read.format(m=inner or 'message')}"
    return field.located, _at(field, inner) + line


def _at(field: Field, inner: str) -> str:
    place = f"{inner}.{field.name}" if inner else field.name
    return f"at = {place!r}\n" if field.located else ""


def _body(lines: Sequence[_Line]) -> str:
    plain = "\n".join(text for located, text in lines if not located)
    located = "\n".join(text for located, text in lines if located)
    if not located:
        return plain
    return (
        f"{plain}\ntry:\n{indent(located, _INDENT)}\n"
        "except MalformedError as err:\n    raise err.within(at) from None"
    )


def _make(value_type: type, names: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return statements that return the value, and what they use."""
    if issubclass(value_type, tuple):
        contents = "".join(f"new_{name}, " for name in names)
        return f"return make(cls, ({contents}))", {"make": tuple.__new__, "cls": value_type}
    slots = slots_of(value_type, names)
    if slots is None:
        contents = ", ".join(f"{name}=new_{name}" for name in names)
        return (
            f"try:\n    return cls({contents})\n"
            "except ValueError as err:\n    raise MalformedError(str(err)) from err"
        ), {"cls": value_type}
    lines = "\n".join(f"set_{name}(made, new_{name})" for name in names)
    uses = {f"set_{name}": slot.__set__ for name, slot in zip(names, slots, strict=True)}
    return f"made = new(cls)\n{lines}\nreturn made", uses | {
        "new": object.__new__,
        "cls": value_type,
    }


def _uses(fields: Sequence[Field], inner: Mapping[str, Sequence[Field]]) -> dict[str, Any]:
    return {
        name: used
        for table in (fields, *inner.values())
        for field in table
        for name, used in field.uses.items()
    }


def _compiled(arguments: str, body: str, uses: Mapping[str, Any]) -> Callable[..., Any]:
    source = f"def convert({arguments}):\n{indent(body, _INDENT)}"
    names: dict[str, Any] = {"MalformedError": MalformedError, **uses}
    exec(compile(source, "<converter>", "exec"), names)  # noqa: S102  # our own field names
    convert: Callable[..., Any] = names["convert"]
    return convert
