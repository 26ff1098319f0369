"""Converters between values and protobuf messages, made from the definitions of both.

A value (a dataclass or a named tuple) and its message have the same field names. The converter of
a pair is built once, from type hints and the message descriptor. It checks that neither side has a
field that the other lacks.

===========================  ==================================================================
value                        message
===========================  ==================================================================
``str``, ``int``, …          the same; ``T | None`` is an ``optional`` field
``Literal``                  ``string``; empty means the default
``Enum``                     an enum with the same names after a prefix; None is UNSPECIFIED
a value                      a message; absent means None or the default
``tuple[T, ...]``            a repeated field
``tuple[T, ...] | None``     a message whose only field is ``repeated … values``
``tuple[A, B]``              a message with two fields, by position
``Mapping[str, T]``          a map, or repeated rows whose first field is the key
``A | B``                    a ``oneof`` of the same name; members by the names of the classes
===========================  ==================================================================

Only where a pair differs in more is something written by hand: a :class:`Codec` for a type, a
:class:`FieldShape` for a field that the message spreads over several, or :class:`Rearranged` for a
field whose content is rearranged first.

Converters write to messages in place, because protobuf copies a nested message that is passed to a
constructor.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Literal, get_args, get_origin

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from . import fields as kinds
from .field_loops import reader_of, row_functions, writer_of
from .fields import (
    Codec,
    Field,
    FieldShape,
    Kind,
    MalformedError,
    MismatchError,
    Rearranged,
    ScalarCodec,
    ValueField,
    enum_numbers,
    fields_of,
    is_map,
    is_plain,
    is_repeated,
    is_scalar,
    members_of,
    message_of,
    row_fields,
    without_none,
    wrapped_list,
)

_SCALARS = (Kind.SCALAR, Kind.NUMBER, Kind.OPTIONAL)


class Codecs:
    """All converters, each built on first use, by whichever thread comes first.

    Args:
        types: Converters that are written by hand, by value type and name of the message.
        shapes: Converters of single fields, by value type and name of the field.
        rearranged: Fields that are rearranged, by value type and name of the field.
        unions: The classes of a hint that does not list them, such as a protocol.
    """

    def __init__(
        self,
        *,
        types: Mapping[tuple[Any, str], Codec],
        shapes: Mapping[tuple[Any, str], FieldShape],
        rearranged: Mapping[tuple[Any, str], Rearranged],
        unions: Mapping[Any, tuple[type, ...]],
    ) -> None:
        self._shapes = shapes
        self._rearranged = rearranged
        self._unions = unions
        self._built: dict[tuple[Any, str], Codec] = dict(types)
        self._begun: set[tuple[Any, str]] = set()
        self._building = threading.RLock()

    def of(self, value_type: Any, descriptor: Descriptor) -> Codec:
        """Return the converter of a value type and a message.

        Raises:
            MismatchError: Their fields differ.
        """
        key = (value_type, descriptor.name)
        found = self._built.get(key)
        if found is not None:
            return found
        with self._building:
            return self._built.get(key) or self._made(value_type, descriptor)

    def _made(self, value_type: Any, descriptor: Descriptor) -> Codec:
        key = (value_type, descriptor.name)
        if key in self._begun:
            # A value that holds values of its own type: they find this converter when they need it.
            return Codec(
                lambda value, message: self.of(value_type, descriptor).write(value, message),
                lambda message: self.of(value_type, descriptor).read(message),
            )
        self._begun.add(key)
        try:
            # Set only when whole: another thread that needs it meanwhile waits for it.
            self._built[key] = self._build(value_type, descriptor)
        finally:
            self._begun.remove(key)
        return self._built[key]

    def fields(
        self, value_type: Any, descriptor: Descriptor, *, without: Iterable[str] = ()
    ) -> tuple[Field, ...]:
        """Return the fields of a value and its message, in the value's order.

        Args:
            value_type: The type of the value.
            descriptor: The message.
            without: Names that are left out on both sides.

        Raises:
            MismatchError: The other fields differ.
        """
        left_out = set(without)
        ours = {field.name: field for field in fields_of(value_type) if field.name not in left_out}
        shapes = self._shapes_of(value_type, ours, descriptor)
        covered = left_out.union(*(shape.covers for shape in shapes.values()))
        _check_names(value_type, descriptor, ours.keys() - shapes.keys(), covered)
        return tuple(
            Field(name, Kind.SHAPED, shapes[name].write, shapes[name].read)
            if name in shapes
            else self._field(value_type, field, descriptor.fields_by_name[name])
            for name, field in ours.items()
        )

    def _shapes_of(
        self, value_type: Any, ours: Mapping[str, ValueField], descriptor: Descriptor
    ) -> dict[str, FieldShape]:
        oneofs = descriptor.oneofs_by_name
        known = {name: self._shapes.get((value_type, name)) for name in ours}
        return {
            name: known[name] or self._oneof(field, descriptor)
            for name, field in ours.items()
            if known[name] is not None or name in oneofs
        }

    def _build(self, value_type: Any, descriptor: Descriptor) -> Codec:
        if get_origin(value_type) is tuple:
            _check_tuple(value_type, descriptor)
            row = [kinds.scalar(field.name, Kind.SCALAR) for field in descriptor.fields]
            return Codec(*row_functions(tuple, row))
        fields = self.fields(value_type, descriptor)
        if _is_row(value_type, descriptor, fields):
            return Codec(*row_functions(value_type, fields))
        return Codec(writer_of(fields), reader_of(value_type, fields))

    def _field(self, value_type: Any, field: ValueField, theirs: FieldDescriptor) -> Field:
        how = self._rearranged.get((value_type, field.name))
        if how is not None:
            return kinds.rearranged(self._content(field._replace(hint=how.hint), theirs), how)
        return self._content(field, theirs)

    def _content(self, field: ValueField, theirs: FieldDescriptor) -> Field:
        name, hint = field.name, without_none(field.hint)
        if is_plain(field.hint, theirs):
            return kinds.scalar(name, _scalar_kind(theirs))
        if is_map(theirs):
            return self._map(name, hint, theirs)
        if is_repeated(theirs):
            return self._repeated(name, hint, theirs)
        if (values := wrapped_list(theirs)) is not None:
            return kinds.message(name, self._wrapped(hint, values), kinds.absent_of(field))
        if theirs.message_type is not None:
            return kinds.message(name, self.of(hint, theirs.message_type), kinds.absent_of(field))
        if get_origin(hint) is Literal:
            return kinds.converted(name, literal_codec(get_args(hint), field))
        if theirs.enum_type is not None:
            return kinds.converted(name, enum_codec(field, theirs))
        raise MismatchError(f"{name} is {field.hint} in the value, and not in the message")

    def _wrapped(self, hint: Any, values: FieldDescriptor) -> Codec:
        """Return the converter of a tuple and a message that has one repeated field."""
        return kinds.wrapped(self._repeated("values", hint, values))

    def _repeated(self, name: str, hint: Any, theirs: FieldDescriptor) -> Field:
        if get_origin(hint) is not tuple:
            return self._rows(name, hint, theirs)
        element, *_ = get_args(hint)
        if theirs.message_type is None:
            _check_scalar(element, theirs)
            return kinds.repeated_scalars(name)
        return kinds.repeated_messages(name, self.of(element, theirs.message_type))

    def _rows(self, name: str, hint: Any, theirs: FieldDescriptor) -> Field:
        """Return a field that holds a mapping, sent as repeated rows, which keep its order."""
        row = message_of(theirs)
        key, value = row_fields(hint, row)
        if value:
            optional = row.fields_by_name[value].has_presence
            return kinds.pairs(name, key, value, optional=optional)
        inner = get_args(hint)[1]
        keyed = key in {field.name for field in fields_of(inner)}
        fields = self.fields(inner, row, without=() if keyed else (key,))
        codec = Codec(writer_of(fields), reader_of(inner, fields))
        return kinds.keyed_rows(name, key, codec, keyed=keyed)

    def _map(self, name: str, hint: Any, theirs: FieldDescriptor) -> Field:
        content = message_of(theirs).fields_by_name["value"]
        inner = get_args(hint)[1]
        if content.message_type is None:
            _check_scalar(inner, content)
            return kinds.map_of_scalars(name)
        codec = self.of(inner, content.message_type)
        return kinds.map_of_messages(name, codec)

    def _oneof(self, field: ValueField, descriptor: Descriptor) -> FieldShape:
        """Return the converter of a union: each class has a member of its oneof."""
        classes = self._unions.get(without_none(field.hint), members_of(field.hint))
        members = descriptor.oneofs_by_name[field.name].fields
        codecs = {m.name: self._member(m, classes) for m in members}
        names = {cls: name for name, (cls, _) in codecs.items()}
        if set(names) != set(classes) - {type(None)}:
            raise MismatchError(f"{descriptor.name}.{field.name} has other members than the value")
        writers = {
            m.name: codecs[m.name][1].write
            if m.message_type is None
            else kinds.member_writer(m.name, codecs[m.name][1].write)
            for m in members
        }
        readers = {name: codec.read for name, (_, codec) in codecs.items()}
        absent = kinds.absent_of(field)

        def write(content: Any, message: Any) -> None:
            if content is not None:
                name = names.get(type(content)) or _member_of(content, names, field)
                writers[name](content, message)

        def read(message: Any) -> Any:
            name = message.WhichOneof(field.name)
            try:
                return readers[name](getattr(message, name)) if name else absent()
            except MalformedError as err:
                raise err.within(name or field.name) from None

        return FieldShape(tuple(codecs), write, read)

    def _member(self, theirs: FieldDescriptor, classes: tuple[Any, ...]) -> tuple[Any, Codec]:
        if theirs.message_type is None:
            return str, Codec(partial(_write_scalar, theirs.name), str)
        found = [cls for cls in classes if cls.__name__ == theirs.message_type.name]
        if not found:
            raise MismatchError(f"{theirs.full_name} is not a member of the value's union")
        return found[0], self.of(found[0], theirs.message_type)


def enum_codec(field: ValueField, theirs: FieldDescriptor) -> ScalarCodec:
    """Return the converter of an enum.

    Raises:
        MismatchError: The members have different names.
    """
    known = theirs.enum_type
    if known is None:
        raise MismatchError(f"{theirs.full_name} is not an enum")
    numbers = enum_numbers(without_none(field.hint), known)
    members: dict[int, enum.Enum | None] = {number: member for member, number in numbers.items()}
    # Keyed by name, because the hash of an enum member is computed in Python.
    by_name = {member.name: number for member, number in numbers.items()}

    def write(member: enum.Enum) -> int:
        return by_name[member._name_]

    if type(None) in members_of(field.hint):
        # A member that a later release adds is read as None.
        return ScalarCodec(write, members.get)

    return ScalarCodec(write, _Members(members, known.name).__getitem__)


class _Members(dict[int, Any]):
    """The members of an enum by number; a successful lookup runs no Python code."""

    def __init__(self, members: dict[int, Any], name: str) -> None:
        super().__init__(members)
        self._name = name

    def __missing__(self, number: int) -> Any:
        raise MalformedError(f"{number} is not a known {self._name}")


def literal_codec(literals: tuple[Any, ...], field: ValueField) -> ScalarCodec:
    """Return the converter of a text with few possible values."""

    def read(text: str) -> Any:
        if not text and field.default is not None:
            return field.default()
        if text not in literals:
            raise MalformedError(f"{text!r} is not one of {', '.join(literals)}")
        return text

    return ScalarCodec(lambda text: text, read)


def _member_of(content: Any, names: Mapping[Any, str], field: ValueField) -> str:
    """Return the oneof's member for a subclass of a known class."""
    for cls in type(content).__mro__:
        if cls in names:
            return names[cls]
    raise MalformedError(f"{type(content).__name__} can't be sent", field.name)


def _write_scalar(name: str, content: Any, message: Any) -> None:
    setattr(message, name, content)


def _scalar_kind(theirs: FieldDescriptor) -> Kind:
    if theirs.has_presence:
        return Kind.OPTIONAL
    is_double = theirs.cpp_type == FieldDescriptor.CPPTYPE_DOUBLE
    return Kind.NUMBER if is_double else Kind.SCALAR


def _is_row(value_type: Any, descriptor: Descriptor, fields: Iterable[Field]) -> bool:
    """Return whether a value is a named tuple of scalars, with its message's fields in order."""
    names = tuple(field.name for field in descriptor.fields)
    scalars = all(field.kind in _SCALARS for field in fields)
    return scalars and getattr(value_type, "_fields", None) == names


def _check_names(
    value_type: Any, descriptor: Descriptor, ours: set[str], covered: set[str]
) -> None:
    theirs = {field.name for field in descriptor.fields} - covered
    if ours != theirs:
        only_value = ", ".join(sorted(ours - theirs)) or "nothing"
        only_message = ", ".join(sorted(theirs - ours)) or "nothing"
        raise MismatchError(
            f"{value_type.__name__} and the message {descriptor.name} differ: only the value has "
            f"{only_value}; only the message has {only_message}"
        )


def _check_tuple(hint: Any, descriptor: Descriptor) -> None:
    elements = get_args(hint)
    if len(elements) != len(descriptor.fields) or not all(
        map(is_plain, elements, descriptor.fields)
    ):
        raise MismatchError(f"{hint} and the message {descriptor.name} have different fields")


def _check_scalar(hint: Any, theirs: FieldDescriptor) -> None:
    if not is_scalar(hint, theirs):
        raise MismatchError(f"{theirs.full_name} does not hold {hint}")
