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

Where a pair differs in more, the difference alone is written by hand: a :class:`Codec` for a type,
a :class:`FieldShape` for a field that the message spreads over several, or :class:`Rearranged` for
a field whose content is arranged in another way first.

Converters write dictionaries: protobuf fills a nested message from a dictionary without the copy
that it makes of a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, get_args, get_origin

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from .fields import (
    Codec,
    FieldShape,
    FieldTable,
    Parts,
    Rearranged,
    Special,
    absent_of,
    each,
    each_value,
    getter,
    reader_of,
    same,
    sorted_map,
)
from .hints import (
    MismatchError,
    ValueField,
    fields_of,
    is_map,
    is_plain,
    is_repeated,
    is_scalar,
    literals_of,
    members_of,
    message_of,
    row_fields,
    without_none,
    wrapped_list,
)
from .places import MalformedError
from .scalars import enum_codec, literal_codec, pairs_codec, row_codec

__all__ = ["Codec", "Codecs", "FieldShape", "MismatchError", "Rearranged"]


class Codecs:
    """All converters, each built on first use.

    Args:
        types: Converters that are written by hand, by value type and name of the message.
        shapes: The same for single fields, by value type and name of the field.
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

    def of(self, value_type: Any, descriptor: Descriptor) -> Codec:
        """Return the converter of a value type and a message.

        Raises:
            MismatchError: Their fields differ.
        """
        key = (value_type, descriptor.name)
        if key not in self._built:
            self._built[key] = self._build(value_type, descriptor)
        return self._built[key]

    def fields(
        self, value_type: Any, descriptor: Descriptor, *, without: Iterable[str] = ()
    ) -> FieldTable:
        """Return the fields of a value and its message.

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
        rest = [field for name, field in ours.items() if name not in shapes]
        _check_names(value_type, descriptor, {field.name for field in rest}, covered)
        theirs = descriptor.fields_by_name
        plain = [field for field in rest if is_plain(field.hint, theirs[field.name])]
        return FieldTable(
            tuple(field.name for field in plain),
            tuple(field.name for field in plain if theirs[field.name].has_presence),
            tuple(
                self._special(
                    field, theirs[field.name], self._rearranged.get((value_type, field.name))
                )
                for field in rest
                if field not in plain
            ),
            tuple(shapes.items()),
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
        names = tuple(field.name for field in descriptor.fields)
        if get_origin(value_type) is tuple:
            _check_tuple(value_type, descriptor)
            return Codec(lambda value: dict(zip(names, value, strict=True)), getter(names))
        fields = self.fields(value_type, descriptor)
        if getattr(value_type, "_fields", ()) == names and _all_plain(value_type, descriptor):
            return row_codec(value_type, descriptor)
        return Codec(fields.writer(), reader_of(value_type, fields))

    def _special(
        self, field: ValueField, theirs: FieldDescriptor, rearranged: Rearranged | None
    ) -> Special:
        if rearranged is None:
            codec = self._content(field, theirs)
        else:
            inner = self._content(field._replace(hint=rearranged.hint), theirs)
            codec = Codec(
                lambda content: inner.write(rearranged.write(content)),
                lambda content: rearranged.read(inner.read(content)),
            )
        whole = theirs.message_type is not None and not is_repeated(theirs)
        return Special(field.name, codec.write, codec.read, absent_of(field) if whole else None)

    def _content(self, field: ValueField, theirs: FieldDescriptor) -> Codec:
        hint = without_none(field.hint)
        if is_map(theirs):
            return self._map(hint, theirs)
        if is_repeated(theirs):
            return self._repeated(hint, theirs)
        if (values := wrapped_list(theirs)) is not None:
            inner = self._repeated(hint, values)
            return Codec(
                lambda content: {"values": inner.write(content)},
                lambda message: inner.read(message.values),
            )
        if theirs.message_type is not None:
            return self.of(hint, theirs.message_type)
        if literals := literals_of(hint):
            return literal_codec(literals, field)
        if theirs.enum_type is not None:
            return enum_codec(field, theirs)
        raise MismatchError(f"{field.name} is {field.hint} in the value, and not in the message")

    def _repeated(self, hint: Any, theirs: FieldDescriptor) -> Codec:
        if get_origin(hint) is not tuple:
            return self._rows(hint, theirs)
        element, *_ = get_args(hint)
        if theirs.message_type is None:
            _check_scalar(element, theirs)
            return Codec(same, tuple)
        codec = self.of(element, theirs.message_type)
        return Codec(lambda content: list(map(codec.write, content)), each(codec.read))

    def _rows(self, hint: Any, theirs: FieldDescriptor) -> Codec:
        """Return the converter of a mapping that is sent as repeated rows, which keep its order."""
        row = message_of(theirs)
        key, value = row_fields(hint, row)
        if value:
            return pairs_codec(key, value, row.fields_by_name[value].has_presence)
        inner = get_args(hint)[1]
        keyed = key in {field.name for field in fields_of(inner)}
        fields = self.fields(inner, row, without=() if keyed else (key,))
        write, read, get_key = fields.writer(), each(reader_of(inner, fields)), attrgetter(key)

        def read_rows(rows: Any) -> dict[str, Any]:
            values = read(rows)
            return dict(zip(map(get_key, values if keyed else rows), values, strict=True))

        def write_rows(content: Any) -> list[Parts]:
            rows = []
            for name, part in content.items():
                row = write(part)
                row[key] = name
                rows.append(row)
            return rows

        return Codec(write_rows, read_rows)

    def _map(self, hint: Any, theirs: FieldDescriptor) -> Codec:
        """Return the converter of a map. Maps have no order on the wire; sorted, they have one."""
        content = message_of(theirs).fields_by_name["value"]
        inner = get_args(hint)[1]
        if content.message_type is None:
            _check_scalar(inner, content)
            return Codec(same, sorted_map)
        write, read = self.of(inner, content.message_type)
        return Codec(
            lambda given: {name: write(part) for name, part in given.items()}, each_value(read)
        )

    def _oneof(self, field: ValueField, descriptor: Descriptor) -> FieldShape:
        """Return the converter of a union: each class has a member of its oneof."""
        classes = self._unions.get(without_none(field.hint), members_of(field.hint))
        members = descriptor.oneofs_by_name[field.name].fields
        codecs = {m.name: self._member(m, classes) for m in members}
        names = {cls: name for name, (cls, _) in codecs.items()}
        if set(names) != set(classes) - {type(None)}:
            raise MismatchError(f"{descriptor.name}.{field.name} has other members than the value")
        writers = {name: codec.write for name, (_, codec) in codecs.items()}
        readers = {name: codec.read for name, (_, codec) in codecs.items()}
        absent = absent_of(field)

        def write(content: Any) -> Parts:
            if content is None:
                return {}
            name = names.get(type(content)) or _member_of(content, names, field)
            return {name: writers[name](content)}

        def read(message: Any) -> Any:
            name = message.WhichOneof(field.name)
            try:
                return readers[name](getattr(message, name)) if name else absent()
            except MalformedError as err:
                raise err.within(name or field.name) from None

        return FieldShape(tuple(codecs), write, read)

    def _member(self, theirs: FieldDescriptor, classes: tuple[Any, ...]) -> tuple[Any, Codec]:
        if theirs.message_type is None:
            return str, Codec(same, same)
        found = [cls for cls in classes if cls.__name__ == theirs.message_type.name]
        if not found:
            raise MismatchError(f"{theirs.full_name} is not a member of the value's union")
        return found[0], self.of(found[0], theirs.message_type)


def _member_of(content: Any, names: Mapping[Any, str], field: ValueField) -> str:
    """Return the member of a subclass."""
    for cls in type(content).__mro__:
        if cls in names:
            return names[cls]
    raise MalformedError(f"{type(content).__name__} can't be sent", field.name)


def _all_plain(value_type: Any, descriptor: Descriptor) -> bool:
    theirs = descriptor.fields_by_name
    return all(is_plain(field.hint, theirs[field.name]) for field in fields_of(value_type))


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
