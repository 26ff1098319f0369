"""Fields of many records at once, and the names of answers within their bundles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hallujudge.metrics.answers.closed_questions import ClosedQuestions

from .answer_records import AnswerMaker, FieldWay
from .ids import canonical_id
from .inputs import InputOptions
from .joins import Faults
from .question_files import place_of, places_of
from .record_columns import Columns, fields_of_rows
from .records import Record

_NOTHING: Mapping[str, str] = {}


def fields_in(
    maker: AnswerMaker, ways: Sequence[tuple[str, FieldWay]], columns: Columns
) -> list[Mapping[str, str]]:
    """Return what :meth:`AnswerMaker.fields_of` does of each record; equal fields are one value.

    Args:
        maker: Reads one field of one record.
        ways: How the fields are read.
        columns: The records.
    """
    read = []
    for name, way in ways:
        found = columns.same_texts(way.keys)
        if found is None or (not found and way.needed):
            found = [maker.field(name, r, needed=way.needed) for r in columns.records()]
        elif way.value is not None:
            found = list(map(way.value, found or [""] * columns.size))
        read.append(found or [""] * columns.size)
    return fields_of_rows([name for name, _ in ways], read)


class AnswerNames:
    """Finds the names of answers within their bundles.

    Args:
        declared: The benchmark.
        options: How the archive is read.
        faults: Collects what is wrong.
    """

    def __init__(self, declared: ClosedQuestions, options: InputOptions, faults: Faults) -> None:
        self._declared = declared
        self._faults = faults
        self._line_keys = (options.id_key, declared.keys.id[0])
        self._line_ids: set[str] = set()

    def of_one(self, record: Record) -> str | None:
        """Return the name of a record within its bundle; None if it may not have it."""
        return self._known_name(
            "_".join(place_of(self._declared, record, self._declared.bundle.name))
        )

    def _known_name(self, name: str) -> str | None:
        if not (known := self._declared.bundle.known):
            return name
        folded = name.strip().casefold().replace("-", "_").replace(" ", "_")
        return folded if folded in known else None

    def of(self, columns: Columns) -> list[str] | None:
        """Return what :meth:`of_one` does of some records.

        None if one may have no name, or an id of its line next to that of its bundle.

        Raises:
            ArchiveError: A record lacks a part of its name.
        """
        keys = filter(None, self._line_keys)
        if "id" not in self._line_keys and columns.has_any(("id",)) and columns.has_any(keys):
            return None
        texts = places_of(self._declared, columns, self._declared.bundle.name)
        known = {text: self._known_name(text) for text in set(texts)}
        return None if None in known.values() else [known[text] or "" for text in texts]

    def check_line_id(self, record: Record) -> None:
        """Note a duplicate id of a line, in addition to the id of its bundle."""
        keys = self._line_keys
        if not any(key in record.values for key in keys):
            return
        value = record.values.get("id") if "id" not in keys else None
        if value is None:
            return
        identifier = canonical_id(value, record.place)
        if identifier in self._line_ids:
            self._faults.add("duplicate line ids", identifier)
        self._line_ids.add(identifier)
