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
from functools import partial
from inspect import Parameter, signature
from itertools import zip_longest
from operator import attrgetter
from sys import intern
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from google.protobuf.descriptor import (
    Descriptor,
    EnumDescriptor,
    FieldDescriptor,
    OneofDescriptor,
)
from msgspec import Struct, structs

from .fields import (
    Codec,
    Convert,
    Field,
    Kind,
    MalformedError,
    is_same,
    list_codec,
    located,
    map_codec,
    rows_codec,
    scalar_map_codec,
    scalars_codec,
    tuple_codec,
    value_reader,
    wrapped_codec,
    writer_of,
)

SCALARS: Mapping[type, frozenset[int]] = {
    str: frozenset({FieldDescriptor.CPPTYPE_STRING}),
    bytes: frozenset({FieldDescriptor.CPPTYPE_STRING}),
    bool: frozenset({FieldDescriptor.CPPTYPE_BOOL}),
    float: frozenset({FieldDescriptor.CPPTYPE_DOUBLE}),
    int: frozenset(
        {
            FieldDescriptor.CPPTYPE_INT32,
            FieldDescriptor.CPPTYPE_INT64,
            FieldDescriptor.CPPTYPE_UINT32,
            FieldDescriptor.CPPTYPE_UINT64,
        }
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
        if (known := self._built.get(key)) is not None:
            return known
        with self._building:
            # A value may hold values of its own type, whose converter is needed before it is built.
            return self._built.get(key) or self._begun.get(key) or self._made(key, descriptor)

    def _made(self, key: tuple[Any, str], descriptor: Descriptor) -> Codec:
        self._begun[key] = Codec(
            lambda value, message: self._built[key].write(value, message),
            lambda message: self._built[key].read(message),
        )
        try:
            # Set only when whole: another thread that needs it meanwhile waits for it.
            made = self._built[key] = self._build(key[0], descriptor)
        finally:
            del self._begun[key]
        return made

    def _build(self, value_type: Any, descriptor: Descriptor) -> Codec:
        if get_origin(value_type) is tuple:
            # Python finds an attribute faster by a text that is interned.
            names = [intern(field.name) for field in descriptor.fields]
            elements = zip_longest(get_args(value_type), descriptor.fields)
            if not all(theirs and is_plain(hint, theirs) for hint, theirs in elements):
                raise MismatchError(
                    f"{value_type} and the message {descriptor.name} have different fields"
                )
            return tuple_codec(names)
        if len(members_of(value_type)) > 1:
            (oneof,) = descriptor.oneofs
            union = self._union("", value_type, oneof)
            return Codec(union.write, union.read)
        fields = self.fields(value_type, descriptor)
        is_flat = issubclass(value_type, Struct) and all(map(is_same, fields))
        return Codec(
            writer_of(fields), value_reader(value_type, fields), structs.asdict if is_flat else None
        )

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
        ours = [field for field in fields_of(value_type) if field.name not in without]
        fields = {field.name: self._field(field, descriptor) for field in ours}
        known = [field for field in fields.values() if field is not None]
        covered = {*without}.union(*(field.members or (field.name,) for field in known))
        only_message = {*descriptor.fields_by_name} - covered
        if only_message or len(known) < len(fields):
            only_value = [name for name, field in fields.items() if field is None]
            raise MismatchError(
                f"{value_type.__name__} and the message {descriptor.name} differ: only the value "
                f"has {_listed(only_value)}; only the message has {_listed(only_message)}"
            )
        return tuple(known)

    def _field(self, field: Parameter, descriptor: Descriptor) -> Field | None:
        """Return how a field is sent, or None if the message lacks it."""
        if (oneof := _oneof_of(field.name, descriptor)) is not None:
            return self._union(field.name, field.annotation, oneof)
        if (theirs := descriptor.fields_by_name.get(field.name)) is None:
            return None
        name, hint = intern(field.name), without_none(field.annotation)
        if is_plain(field.annotation, theirs):
            # -0.0 is empty too, and differs from the default.
            empty = theirs.has_presence or hint is float
            return Field(name, Kind.OPTIONAL if theirs.has_presence else Kind.HELD, empty=empty)
        if is_repeated(theirs):
            codec = self.many(hint, theirs)
            return Field(name, Kind.HELD, codec.write, codec.read, empty=False)
        if (values := wrapped_list(theirs)) is not None:
            codec = wrapped_codec(self.many(hint, values))
        elif theirs.message_type is not None:
            codec = self.of(hint, theirs.message_type)
        elif get_origin(hint) is Literal:
            return Field(name, read=_literal_reader(field))
        elif theirs.enum_type is not None:
            return Field(name, Kind.HELD, *_enum_numbers(field, theirs.enum_type))
        else:
            raise MismatchError(
                f"{name} is {field.annotation} in the value, and not in the message"
            )
        return Field(
            name,
            Kind.MESSAGE,
            codec.write,
            codec.read,
            required=field.default is Parameter.empty,
            optional=may_be_none(field.annotation),
        )

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
            return scalar_map_codec(name)
        if theirs.message_type is None:
            _check_scalar(arguments[0] if get_origin(hint) is tuple else hint, theirs)
            return scalars_codec(name)
        if (by_hand := self._built.get((hint, theirs.message_type.name))) is not None:
            return by_hand
        if get_origin(hint) is tuple:
            return list_codec(name, self.of(arguments[0], theirs.message_type))
        return self._rows(name, arguments[1], theirs.message_type)

    def _rows(self, name: str, inner: Any, row: Descriptor) -> Codec:
        """Return the converter of a mapping that is sent as repeated rows, which keep its order."""
        first, *others = row.fields
        key, scalar = intern(first.name), without_none(inner) in SCALARS
        if not is_plain(str, first) or (
            scalar and [is_plain(inner, other) for other in others] != [True]
        ):
            raise MismatchError(f"{row.name} is not a row of {inner}")
        if scalar:
            only = others[0]
            return rows_codec(name, key, intern(only.name), _scalar_reader(only))
        keyed = key in {field.name for field in fields_of(inner)}
        fields = self.fields(inner, row, without=() if keyed else (key,))
        write = writer_of([field for field in fields if field.name != key])
        return rows_codec(name, key, write, value_reader(inner, fields))

    def _union(self, name: str, hint: Any, oneof: OneofDescriptor) -> Field:
        """Return a field that holds one of several classes: each has a member of a oneof."""
        bare = without_none(hint)
        classes = set(self._unions.get(bare, members_of(bare)))
        rows = [(intern(m.name), *self._member(m, classes)) for m in oneof.fields]
        if {cls for _, cls, _, _ in rows} != classes:
            raise MismatchError(f"{oneof.full_name} has other members than the value")
        writers = {cls: (member, fill) for member, cls, fill, _ in rows}
        readers = {member: convert for member, _, _, convert in rows}
        needed, optional = self._needs.get(oneof.full_name, "is missing"), may_be_none(hint)

        def write(content: Any, message: Any) -> None:
            kind = type(content)
            known = writers.get(kind) or next(filter(None, map(writers.get, kind.__mro__)), None)
            if known is None:
                raise MalformedError(f"{kind.__name__} can't be sent")
            member, fill = known
            place = getattr(message, member)
            if isinstance(place, str):
                # A text, or a class with one field, which is sent as its content.
                setattr(message, member, fill(content))
            else:
                place.SetInParent()
                fill(content, place)

        def read(message: Any) -> Any:
            member = message.WhichOneof(oneof.name)
            if member is not None:
                return located(readers[member], getattr(message, member), member)
            if optional:
                return None
            raise MalformedError(needed, name and oneof.name)

        return Field(name, Kind.UNION, write, read, members=tuple(readers))

    def _member(self, theirs: FieldDescriptor, classes: Iterable[Any]) -> tuple[Any, Any, Convert]:
        """Return the class of a member, what writes or returns its content, and its reader."""
        kind = theirs.message_type
        for cls in classes:
            if kind is not None and cls.__name__ == kind.name:
                return cls, *self.of(cls, kind)[:2]
            if kind is None and cls is str:
                return cls, str, str
            only = () if kind is not None else [field.name for field in fields_of(cls)]
            if len(only) == 1:
                # A class with one field is sent as its content.
                return cls, attrgetter(*only), partial(_made_of, cls, *only)
        raise MismatchError(f"{theirs.full_name} is not a member of the value's union")


# Fields that have another form in their message


def _enum_numbers(field: Parameter, known: EnumDescriptor) -> tuple[Mapping[str, int], Convert]:
    """Return the numbers of an enum's members by name, and the reader of a number.

    Raises:
        MismatchError: The members have different names.
    """
    hint = without_none(field.annotation)
    zero, *others = known.values
    prefix = zero.name.removesuffix("UNSPECIFIED")
    numbers = {value.name.removeprefix(prefix): value.number for value in others}
    if zero.number or prefix == zero.name or numbers.keys() != hint.__members__.keys():
        raise MismatchError(f"enum {hint.__name__} and its message have different members")
    members = {number: hint[name] for name, number in numbers.items()}

    def read(number: int) -> Any:
        try:
            return members[number]
        except KeyError:
            raise MalformedError(f"{number} is not a known {known.name}") from None

    # A member that a later release adds is read as None.
    return numbers, members.get if may_be_none(field.annotation) else read


def _literal_reader(field: Parameter) -> Convert:
    """Return the reader of a text with few possible values."""
    literals = get_args(without_none(field.annotation))

    def read(text: str) -> Any:
        if not text and field.default is not Parameter.empty:
            return field.default
        if text not in literals:
            raise MalformedError(f"{text!r} is not one of {', '.join(literals)}")
        return text

    return read


def _scalar_reader(theirs: FieldDescriptor) -> Convert:
    """Return a function that reads a scalar field of a message."""
    name, get = theirs.name, attrgetter(theirs.name)

    def read(message: Any) -> Any:
        # A non-empty field is present; HasField takes longer than this test.
        return content if (content := get(message)) or message.HasField(name) else None

    return read if theirs.has_presence else get


def _made_of(cls: Any, name: str, content: Any) -> Any:
    return cls(**{name: content})


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
    if entry is None or not entry.GetOptions().map_entry:
        return None
    return entry.fields_by_name["value"]


def is_plain(hint: Any, field: FieldDescriptor) -> bool:
    """Return whether both sides hold the same scalar."""
    if is_repeated(field) or may_be_none(hint) != field.has_presence:
        return False
    return _is_scalar(without_none(hint), field)


def wrapped_list(field: FieldDescriptor) -> FieldDescriptor | None:
    """Return the field ``values`` of a message that is an optional list, or None."""
    message = field.message_type
    if message is None or [inner.name for inner in message.fields] != ["values"]:
        return None
    return message.fields[0]


def _oneof_of(name: str, descriptor: Descriptor) -> OneofDescriptor | None:
    """Return the oneof of a name, or with a member of this name."""
    theirs = descriptor.fields_by_name.get(name)
    found = theirs.containing_oneof if theirs else descriptor.oneofs_by_name.get(name)
    # An optional field has a oneof of its own.
    return found if found is not None and len(found.fields) > 1 else None


def _is_scalar(hint: Any, field: FieldDescriptor) -> bool:
    if not isinstance(hint, type) or field.cpp_type not in SCALARS.get(hint, ()):
        return False
    # Both have one type in C++.
    return (hint is bytes) == (field.type == FieldDescriptor.TYPE_BYTES)


def _check_scalar(hint: Any, theirs: FieldDescriptor) -> None:
    if not _is_scalar(hint, theirs):
        raise MismatchError(f"{theirs.full_name} does not hold {hint}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
