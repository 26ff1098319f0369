"""Converters between values and protobuf messages, made from the definitions of both.

A value (a Struct, a dataclass or a named tuple) and its message have the same field names. The
converter of a pair is built once, from type hints and the message's descriptor. It checks that
neither side has a field that the other lacks.

===========================  ==================================================================
value                        message
===========================  ==================================================================
``str``, ``bytes``, …        the same; ``T | None`` is an ``optional`` field
``Literal``                  ``string``; empty means the default
``Enum``                     an enum with the same names after a prefix; None is UNSPECIFIED
a value                      a message; absent means None or the default
``tuple[T, ...]``            a repeated field
``tuple[T, ...] | None``     a message whose only field is ``repeated … values``
``tuple[A, B]``              a message with two fields, by position
``Mapping[str, T]``          a map, or repeated rows whose first field is the key
``A | B``                    a ``oneof``, by its name or that of its first member: a class has the
                             message of its name; one with a single field may be a ``string``
===========================  ==================================================================

Only where a pair differs in more is a :class:`Codec` written by hand.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from inspect import Parameter, signature
from itertools import zip_longest
from operator import attrgetter
from sys import intern
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, OneofDescriptor
from msgspec import Struct

from .fields import (
    DEFAULT,
    Codec,
    Convert,
    Field,
    MalformedError,
    is_same,
    list_codec,
    located,
    map_codec,
    message_codec,
    rows_codec,
    scalar_reader,
    scalars_codec,
    tuple_codec,
    value_reader,
    writer_of,
)

SCALARS: Mapping[type, tuple[int, ...]] = {
    str: (FieldDescriptor.CPPTYPE_STRING,),
    bytes: (FieldDescriptor.CPPTYPE_STRING,),
    bool: (FieldDescriptor.CPPTYPE_BOOL,),
    float: (FieldDescriptor.CPPTYPE_DOUBLE,),
    int: (
        FieldDescriptor.CPPTYPE_INT32,
        FieldDescriptor.CPPTYPE_INT64,
        FieldDescriptor.CPPTYPE_UINT32,
        FieldDescriptor.CPPTYPE_UINT64,
    ),
}


class MismatchError(TypeError):
    """A value and its message have different fields."""


class Codecs:
    """All converters, each built on first use, by whichever thread comes first.

    Args:
        types: Converters that are written by hand, by the type of a value, or of what a field
            holds, and the name of the message.
        unions: The classes of a hint that does not list them, such as a protocol.
        needs: What is wrong without a member of a oneof, by its full name.
    """

    def __init__(
        self,
        *,
        types: Mapping[tuple[Any, str], Codec],
        unions: Mapping[Any, tuple[type, ...]],
        needs: Mapping[str, str],
    ) -> None:
        self._unions = unions
        self._needs = needs
        # Those that were written by hand are found like the others, and before them.
        self._built: dict[tuple[Any, str], Codec] = dict(types)
        self._begun: dict[tuple[Any, str], Codec] = {}
        # Reentrant, since building a converter builds those of its fields.
        self._building = threading.RLock()

    def of(self, value_type: Any, descriptor: Descriptor) -> Codec:
        """Return the converter of a value type and a message.

        Raises:
            MismatchError: Their fields differ.
        """
        key = (value_type, descriptor.name)
        # Without the lock, since every message asks and nearly all find it.
        if (known := self._built.get(key)) is not None:
            return known
        with self._building:
            # A value may hold values of its own type, whose converter is needed before it is built.
            if (known := self._built.get(key) or self._begun.get(key)) is not None:
                return known
            self._begun[key] = Codec(
                lambda value, message: self._built[key].write(value, message),
                lambda message: self._built[key].read(message),
            )
            try:
                # Set only when whole: another thread that needs it meanwhile waits for it.
                made = self._built[key] = self._build(value_type, descriptor)
            # Also after a mismatch: the next caller would get a converter that was never built.
            finally:
                del self._begun[key]
            return made

    def _build(self, value_type: Any, descriptor: Descriptor) -> Codec:
        if get_origin(value_type) is tuple:
            # Python finds an attribute faster by a text that is interned.
            names = [intern(field.name) for field in descriptor.fields]
            elements = zip_longest(get_args(value_type), descriptor.fields)
            # zip_longest has None where one side is longer.
            if not all(theirs and is_plain(hint, theirs) for hint, theirs in elements):
                raise MismatchError(
                    f"{value_type} and the message {descriptor.name} have different fields"
                )
            return tuple_codec(names)
        if len(members_of(value_type)) > 1:
            (oneof,) = descriptor.oneofs
            return self._union("", value_type, oneof)
        fields = self.fields(value_type, descriptor)
        row = value_type if issubclass(value_type, Struct) and all(map(is_same, fields)) else None
        return Codec(writer_of(fields), value_reader(value_type, fields), row)

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
        # The fields that another part of the message holds, such as an item's task.
        ours = [field for field in fields_of(value_type) if field.name not in without]
        fields = {field.name: self._field(field, descriptor) for field in ours}
        known = [field for field in fields.values() if field is not None]
        covered = {*without}.union(*(field.members or (field.name,) for field in known))
        only_message = {*descriptor.fields_by_name} - covered
        if only_message or len(known) < len(fields):
            # Once for a pair and with all fields, since a change of the .proto usually misses
            # several.
            only_value = [name for name, field in fields.items() if field is None]
            raise MismatchError(
                f"{value_type.__name__} and the message {descriptor.name} differ: only the value "
                f"has {_listed(only_value)}; only the message has {_listed(only_message)}"
            )
        return tuple(known)

    def _field(self, field: Parameter, descriptor: Descriptor) -> Field | None:
        """Return how a field is sent, or None if the message lacks it."""
        if (oneof := _oneof_of(field.name, descriptor)) is not None:
            codec = self._union(field.name, field.annotation, oneof)
            return Field(field.name, *codec[:2], empty=True, members=[m.name for m in oneof.fields])
        if (theirs := descriptor.fields_by_name.get(field.name)) is None:
            return None
        name, hint = intern(field.name), without_none(field.annotation)
        if is_plain(field.annotation, theirs):
            # -0.0 is empty too, and differs from the default.
            optional = theirs.has_presence
            return Field(name, optional=optional, empty=optional or hint is float)
        if is_repeated(theirs):
            return Field(name, *self.many(hint, theirs)[:2])
        if get_origin(hint) is Literal:
            return Field(name, read=_literal_reader(field))
        if theirs.enum_type is not None:
            return Field(name, *_enum_codec(field, theirs.enum_type)[:2])
        if theirs.message_type is None:
            raise MismatchError(
                f"{name} is {field.annotation} in the value, and not in the message"
            )
        values = wrapped_list(theirs)
        codec = self.many(hint, values) if values else self.of(hint, theirs.message_type)
        given = field.default if field.default is Parameter.empty else DEFAULT
        # None goes before a default: what may be None is None where its message is absent.
        absent = None if may_be_none(field.annotation) else given
        return Field(name, *message_codec(name, codec, absent)[:2], empty=True)

    def many(self, hint: Any, theirs: FieldDescriptor) -> Codec:
        """Return the converter of what a repeated field or a map holds.

        Raises:
            MismatchError: The message's field holds something else.
        """
        name, arguments = intern(theirs.name), get_args(hint)
        if (value := map_value(theirs)) is not None:
            if (kind := value.message_type) is not None:
                return map_codec(name, self.of(arguments[1], kind))
            _check_scalar(arguments[1], value)
            return map_codec(name, None)
        if theirs.message_type is None:
            _check_scalar(arguments[0] if get_origin(hint) is tuple else hint, theirs)
            return scalars_codec(name, arguments[0])
        # A field that is converted by hand is known by its whole hint.
        if (by_hand := self._built.get((hint, theirs.message_type.name))) is not None:
            return by_hand
        if get_origin(hint) is tuple:
            return list_codec(name, self.of(arguments[0], theirs.message_type))
        return self._rows(name, arguments[1], theirs.message_type)

    def _rows(self, name: str, inner: Any, row: Descriptor) -> Codec:
        """Return the converter of a mapping that is sent as repeated rows, which keep its order."""
        first, *others = row.fields
        key, scalar = intern(first.name), without_none(inner) in SCALARS
        plain = [is_plain(inner, other) for other in others] == [True]
        if not is_plain(str, first) or (scalar and not plain):
            raise MismatchError(f"{row.name} is not a row of {inner}")
        if scalar:
            only = intern(others[0].name)
            read = scalar_reader(only) if others[0].has_presence else attrgetter(only)
            return rows_codec(name, key, only, read)
        # A value may have its key as a field of its own.
        keyed = key in {field.name for field in fields_of(inner)}
        fields = self.fields(inner, row, without=() if keyed else (key,))
        write = writer_of([field for field in fields if field.name != key])
        return rows_codec(name, key, write, value_reader(inner, fields))

    def _union(self, name: str, hint: Any, oneof: OneofDescriptor) -> Codec:
        """Return the converter of one of several classes: each has a member of a oneof."""
        bare = without_none(hint)
        classes = set(self._unions.get(bare, members_of(bare)))
        found = {intern(m.name): self._member(m, classes) for m in oneof.fields}
        writers = {cls: codec.write for cls, codec in found.values()}
        if writers.keys() != classes:
            raise MismatchError(f"{oneof.full_name} has other members than the value")
        readers = {member: codec.read for member, (_, codec) in found.items()}
        needed, optional = self._needs.get(oneof.full_name, "is missing"), may_be_none(hint)

        def write(content: Any, message: Any) -> None:
            kind = type(content)
            # A subclass is sent as the class that the union names, such as a triplet with its
            # written text.
            fill = writers.get(kind) or next(filter(None, map(writers.get, kind.__mro__)), None)
            if fill is None:
                raise MalformedError(f"{kind.__name__} can't be sent")
            fill(content, message)

        def read(message: Any) -> Any:
            member = message.WhichOneof(oneof.name)
            if member is not None:
                return located(readers[member], getattr(message, member), member)
            if optional:
                return None
            raise MalformedError(needed, name and oneof.name)

        return Codec(write, read)

    def _member(self, theirs: FieldDescriptor, classes: Iterable[Any]) -> tuple[Any, Codec]:
        """Return the class of a member, what writes it to its field, and what reads the content."""
        name, kind = intern(theirs.name), theirs.message_type
        for cls in classes:
            if kind is not None and cls.__name__ == kind.name:
                inner = self.of(cls, kind)
                return cls, Codec(message_codec(name, inner).write, inner.read)
            if kind is None and (made := _content_codec(name, cls)) is not None:
                return cls, made
        raise MismatchError(f"{theirs.full_name} is not a member of the value's union")


# Fields that have another form in their message


def _enum_codec(field: Parameter, known: EnumDescriptor) -> Codec:
    """Return what writes and reads a field with the members of an enum.

    Raises:
        MismatchError: The members have different names.
    """
    hint = without_none(field.annotation)
    zero, *others = known.values
    prefix = zero.name.removesuffix("UNSPECIFIED")
    numbers = {value.name.removeprefix(prefix): value.number for value in others}
    # The zero of an enum must mean that nothing is set: proto3 can't tell 0 from a field that is
    # absent.
    if zero.number or prefix == zero.name or numbers.keys() != hint.__members__.keys():
        raise MismatchError(f"enum {hint.__name__} and its message have different members")
    members = {number: hint[name] for name, number in numbers.items()}
    name, get, optional = intern(field.name), attrgetter(field.name), may_be_none(field.annotation)

    def read(message: Any) -> Any:
        found = members.get(get(message))
        # A member that a later release adds is read as None.
        if found is None and not optional:
            raise MalformedError(f"{get(message)} is not a known {known.name}")
        return found

    # By name, because the hash of an enum member is computed in Python.
    return Codec(lambda one, message: setattr(message, name, numbers[one._name_]), read)


def _literal_reader(field: Parameter) -> Convert:
    """Return the reader of a text with few possible values."""
    literals, get = get_args(without_none(field.annotation)), attrgetter(field.name)

    def read(message: Any) -> Any:
        text = get(message)
        # An absent text is empty in proto3.
        if not text and field.default is not Parameter.empty:
            return field.default
        if text not in literals:
            raise MalformedError(f"{text!r} is not one of {', '.join(literals)}")
        return text

    return read


def _content_codec(name: str, cls: Any) -> Codec | None:
    """Return how a text or a class with one field is written, as its content, and is made of it."""
    only = [] if cls is str else [field.name for field in fields_of(cls)]
    if len(only) > 1:
        return None
    content = attrgetter(*only) if only else str
    return Codec(
        lambda value, message: setattr(message, name, content(value)),
        lambda found: cls(**dict.fromkeys(only, found)) if only else found,
    )


# What values and messages declare


def fields_of(value_type: Any) -> list[Parameter]:
    """Return the fields of a Struct, a dataclass or a named tuple, in order, with their types."""
    hints = get_type_hints(value_type)
    given = signature(value_type).parameters.values()
    return [each.replace(annotation=hints[each.name]) for each in given]


def without_none(hint: Any) -> Any:
    """Return a hint without ``| None``."""
    left = [member for member in members_of(hint) if member is not NoneType]
    return left[0] if len(left) == 1 else hint


def members_of(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, or a hint that is not a union as its only member."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def may_be_none(hint: Any) -> bool:
    """Return whether a hint allows None."""
    return NoneType in members_of(hint)


def is_repeated(field: FieldDescriptor) -> bool:
    """Return whether a message's field is repeated, maps included."""
    # protobuf 7 lacks `label`, and protobuf 5 `is_repeated`. Singular messages have no default.
    if field.message_type is not None and field.has_presence:
        return False
    return isinstance(field.default_value, list)


def map_value(field: FieldDescriptor) -> FieldDescriptor | None:
    """Return the field with the values of a map, or None for a field that is not a map."""
    entry = field.message_type
    known = {} if entry is None or not entry.GetOptions().map_entry else entry.fields_by_name
    return known.get("value")


def is_plain(hint: Any, field: FieldDescriptor) -> bool:
    """Return whether both sides hold the same scalar."""
    alike = not is_repeated(field) and may_be_none(hint) == field.has_presence
    return alike and _is_scalar(without_none(hint), field)


def wrapped_list(field: FieldDescriptor) -> FieldDescriptor | None:
    """Return the field ``values`` of a message that is an optional list, or None."""
    inner = [] if field.message_type is None else field.message_type.fields
    return inner[0] if [one.name for one in inner] == ["values"] else None


def _oneof_of(name: str, descriptor: Descriptor) -> OneofDescriptor | None:
    """Return the oneof of a name, or with a member of this name."""
    theirs = descriptor.fields_by_name.get(name)
    found = theirs.containing_oneof if theirs else descriptor.oneofs_by_name.get(name)
    # An optional field has a oneof of its own.
    return found if found is not None and len(found.fields) > 1 else None


def _is_scalar(hint: Any, field: FieldDescriptor) -> bool:
    known = isinstance(hint, type) and field.cpp_type in SCALARS.get(hint, ())
    # Texts and bytes have one type in C++.
    return known and (hint is bytes) == (field.type == FieldDescriptor.TYPE_BYTES)


def _check_scalar(hint: Any, theirs: FieldDescriptor) -> None:
    if not _is_scalar(hint, theirs):
        raise MismatchError(f"{theirs.full_name} does not hold {hint}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
