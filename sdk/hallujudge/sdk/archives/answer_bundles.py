"""Bundles of answers: records that hold several, or that belong together, alone or in sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from string import ascii_uppercase
from typing import NamedTuple

from hallujudge.metrics.answers.closed_questions import (
    Answer,
    AnswersItem,
    ClosedQuestions,
    SetFiles,
)

from ..errors import ArchiveError
from .archive_files import value_at
from .inputs import InputOptions, ItemSource, References, Responses
from .joins import Faults, read_mapping, refuse
from .json_files import read_values
from .question_files import label_of
from .records import (
    ID_FLAG,
    TEXT_FLAG,
    Record,
    canonical_id,
    choose_key,
    fields_of,
    optional_text,
    read_records,
    shown,
    text_of,
)
from .table_files import structured


class _Part(NamedTuple):
    """Records of one set."""

    name: str
    """The set; empty if each record names its own."""
    records: Iterator[Record]


def read_bundles(
    declared: ClosedQuestions,
    responses: Responses,
    references: References | None,
    options: InputOptions,
    group_by: tuple[str, ...],
) -> ItemSource:
    """Return bundles of answers, however the archive holds them.

    Args:
        declared: The benchmark.
        responses: A folder with a JSON file for each set, one such file, an object set -> records,
            or records that name their set.
        references: What answers leave out, by the key that joins them; None without.
        options: How the archive is read.
        group_by: Fields to group by.

    Raises:
        ArchiveError: A set is unknown or appears in two files, a record lacks an answer, or a label
            is not one of the benchmark's.
    """
    items = _Bundles(declared, references, options, group_by).read(_parts(declared, responses))
    return ItemSource(count=len(items), make=lambda: iter(items))


def folder_files(declared: ClosedQuestions, folder: Path) -> tuple[Path, ...]:
    """Return the files of a folder that are named after a set of a benchmark."""
    if (sets := declared.set_files) is None:
        return ()
    return tuple(file for file in sorted(folder.glob("*.json")) if _set_in(sets, file.stem))


def _parts(declared: ClosedQuestions, responses: Responses) -> Iterator[_Part]:
    sets = declared.set_files
    if sets is None:
        yield _Part("", read_records(responses))
    elif isinstance(responses, Mapping):
        yield from _sets_of(sets, responses, "the archive")
    elif not isinstance(responses, (str, Path)):
        yield _Part("", read_records(responses))
    elif Path(responses).is_dir():
        yield from _folder(declared, sets, Path(responses))
    else:
        yield from _file(declared, sets, Path(responses))


def _folder(declared: ClosedQuestions, sets: SetFiles, folder: Path) -> Iterator[_Part]:
    first: dict[str, Path] = {}
    for file in sorted(folder.glob("*.json")):
        name = _set_in(sets, file.stem)
        if not name:
            raise ArchiveError(
                f"{file}: the name must begin with one of the sets {_known(sets)}; rename it"
            )
        if name in first:
            raise ArchiveError(
                f"{first[name]} and {file} both have the {sets.field} {name}; give the files of "
                "one model"
            )
        first[name] = file
        yield _Part(name, _records_in(declared, file))


def _file(declared: ClosedQuestions, sets: SetFiles, path: Path) -> Iterator[_Part]:
    first = next(islice(read_values(path), 1), None)
    content = None if first is None else first.value
    if isinstance(content, Mapping) and not any(name in content for name in declared.bundle.names):
        yield from _sets_of(sets, content, str(path))
    else:
        yield _Part(_set_in(sets, path.stem), _records_in(declared, path))


def _records_in(declared: ClosedQuestions, path: Path) -> Iterator[Record]:
    """Yield records; the general record reader would parse them as id -> record."""
    for position, placed in enumerate(read_values(path)):
        place = f"{path} line {placed.line}"
        if not isinstance(placed.value, Mapping):
            names = " and ".join(map(repr, declared.bundle.names))
            raise ArchiveError(
                f"{place}: expected an object with {names}; found {shown(placed.value)}"
            )
        yield Record(values=placed.value, position=position, place=place)


def _sets_of(sets: SetFiles, content: Mapping[str, object], place: str) -> Iterator[_Part]:
    for key, held in content.items():
        name = _set_in(sets, key)
        # A list of records, or an object id -> record.
        records = list(held.values()) if isinstance(held, Mapping) else held
        if not name or not isinstance(records, Sequence) or isinstance(records, str):
            raise ArchiveError(
                f"{place}: {key!r:.60} is not a {sets.field} with a list of records; known: "
                f"{_known(sets)}"
            )
        yield _Part(name, read_records(records))


def _known(sets: SetFiles) -> str:
    return ", ".join(dict.fromkeys(sets.names.values()))


def _set_in(sets: SetFiles, text: str) -> str:
    """Return the set that a name begins with; empty if there is none.

    Files are named after their set, or the set and the model: ``fact_detect``, ``obj_rel_LLaVA``.
    """
    name = text.casefold().replace("-", "_")
    found = [alias for alias in sets.names if name == alias or name.startswith(f"{alias}_")]
    return sets.names[max(found, key=len)] if found else ""


class _Entry(NamedTuple):
    """One answer of a bundle."""

    bundle: str
    """Id of the bundle."""
    name: str
    """Name of the answer within it."""
    fields: Mapping[str, str]
    """Declared fields of the item."""
    outer: Mapping[str, object]
    """The record."""
    inner: Record
    """The answer, which may be the record itself."""


class _Bundles:
    """Builds items from records, and collects faults by kind."""

    def __init__(
        self,
        declared: ClosedQuestions,
        references: References | None,
        options: InputOptions,
        group_by: tuple[str, ...],
    ) -> None:
        self._declared = declared
        self._keys = declared.keys
        self._bundle = declared.bundle
        self._options = options
        self._questions = known_questions(declared, references, options)
        self._tables = {
            table.name: read_mapping(options.own[table.name], table.name)
            for table in declared.tables
            if table.name in options.own
        }
        # Fields of answers differ within an item.
        of_answers = {*declared.seen, *declared.bundle.name}
        self._own = [name for name in declared.keys.fields if name not in of_answers]
        self._group_by = tuple(key for key in group_by if key not in self._own)
        self._faults = Faults(_remedies(declared))
        self._counts: dict[str, int] = {}
        self._chosen: tuple[str, str] | None = None
        self._joined: set[str] = set()

    def read(self, parts: Iterator[_Part]) -> list[AnswersItem]:
        """Return all bundles, in the order of their first answers.

        Raises:
            ArchiveError: A record can't be used; the message names all with the same fault.
        """
        gathered: dict[str, list[_Entry]] = {}
        for part in parts:
            for record in part.records:
                for entry in self._entries(part.name, self._with_question(record)):
                    gathered.setdefault(entry.bundle, []).append(entry)
        # Answers without their question lack more, which would be the wrong error.
        self._faults.check()
        first = next(iter(gathered.values()), None)
        if first is not None and self._chosen is None:
            self._chosen = self._choose(first[0].inner)
        for key in self._silent() if self._options.allow_missing else ():
            for entry in self._unanswered(key):
                gathered.setdefault(entry.bundle, []).append(entry)
        items = [self._item(entries) for entries in gathered.values()]
        if not self._options.allow_missing:
            self._faults.add(_SILENT, *self._silent())
        self._faults.check()
        if not items:
            raise ArchiveError(f"the archive of answers has no {self._declared.unit}; give some")
        return items

    def _silent(self) -> list[str]:
        """Return the questions without an answer."""
        return [key for key in self._questions if key not in self._joined]

    def _unanswered(self, key: str) -> Iterator[_Entry]:
        """Yield the entries of a question without an answer."""
        assert self._chosen is not None, "chosen by the first record"
        response, _ = self._chosen
        values = {name: v for name, v in self._questions[key].items() if name != response}
        yield from self._entries("", self._with_tables(Record(values, 0, key)))

    def _with_question(self, record: Record) -> Record:
        """Return a record with what it leaves out, from the file of questions and the tables."""
        if self._questions:
            key = question_key(self._declared, record, self._options)
            if key not in self._questions and not self._options.allow_unknown:
                self._faults.add(_UNKNOWN, key)
            self._joined.add(key)
            known = self._questions.get(key, {})
            record = record._replace(values={**known, **record.values})
        return self._with_tables(record)

    def _with_tables(self, record: Record) -> Record:
        if not self._tables:
            return record
        key = bundle_id(self._declared, record, self._options)
        more = {name: table.get(key) for name, table in self._tables.items()}
        return record._replace(values={**record.values, **more})

    def _entries(self, part: str, record: Record) -> Iterator[_Entry]:
        fields = self._fields(part, record)
        if fields is None:
            return
        if self._bundle.names:
            yield from self._named(fields, record)
        elif self._bundle.inside:
            yield from self._listed(fields, record)
        else:
            name = "_".join(place_of(self._declared, record, self._bundle.name))
            bundle = bundle_id(self._declared, record, self._options)
            inner = record._replace(values=self._mapped(record.values, {}), place=bundle)
            yield _Entry(bundle, name, fields, record.values, inner)

    def _named(self, fields: Mapping[str, str], record: Record) -> Iterator[_Entry]:
        """Yield the answers under the declared names, unless one is missing."""
        sets = self._declared.set_files
        prefix = f"{fields[sets.field]}/" if sets else ""
        number = self._counts[prefix] = self._counts.get(prefix, -1) + 1
        bundle = f"{prefix}{number}"
        first, entries = self._chosen is None, []
        for name in self._bundle.names:
            if first:
                choose_key(record, None, (name,), f"the {name} answer")
            if not isinstance(record.values.get(name), Mapping):
                self._faults.add(_NO_ANSWER, f"{bundle} ({name})")
                return
            entries.append(self._inner(bundle, name, fields, record, record.values[name]))
            self._chosen = self._chosen or self._choose(entries[0].inner)
        yield from entries

    def _listed(self, fields: Mapping[str, str], record: Record) -> Iterator[_Entry]:
        """Yield the answers of a list; a record without it is an answer itself."""
        bundle = bundle_id(self._declared, record, self._options)
        key = next((key for key in self._bundle.inside if key in record.values), None)
        if key is None:
            if not any(name in record.values for name in self._keys.response):
                choose_key(record, None, self._bundle.inside, "the list of answers")
            number = self._counts[bundle] = self._counts.get(bundle, 0) + 1
            yield self._inner(bundle, str(number), fields, record, record.values)
            return
        held = structured(record.values[key])
        if not isinstance(held, (list, tuple)) or not all(isinstance(x, Mapping) for x in held):
            raise ArchiveError(
                f"{record.place}: {key!r} must be a list of objects; found {shown(held)}"
            )
        for number, inner in enumerate(held, 1):
            yield self._inner(bundle, str(number), fields, record, inner)

    def _inner(
        self, bundle: str, name: str, fields: Mapping[str, str], record: Record, inner: object
    ) -> _Entry:
        assert isinstance(inner, Mapping), "checked before"
        values = self._mapped(inner, record.values)
        return _Entry(bundle, name, fields, record.values, Record(values, 0, bundle))

    def _fields(self, part: str, record: Record) -> dict[str, str] | None:
        """Return the declared fields that a record has; None if it has no set."""
        found = {
            name: text
            for name in self._own
            if (text := field_text(record.values, self._keys.fields[name]))
        }
        sets = self._declared.set_files
        if sets is None:
            return found
        given = found.pop(sets.field, "")
        name = _set_in(sets, given) if given else part
        if not name:
            self._faults.add(_NO_SET, record.place)
            return None
        return {sets.field: name, **found}

    def _mapped(
        self, inner: Mapping[str, object], outer: Mapping[str, object]
    ) -> Mapping[str, object]:
        """Return an answer's values with those that the user named, of itself or its record."""
        found = {}
        for name, key in self._options.key_map.items():
            value = value_at(inner, key)
            found[name] = value_at(outer, key) if value is None else value
        return {**inner, **found}

    def _item(self, entries: Sequence[_Entry]) -> AnswersItem:
        first, answers = entries[0], {}
        media = []
        for entry in entries:
            if entry.name in answers:
                self._faults.add(_TWICE, f"{entry.bundle} ({entry.name})")
            answers[entry.name] = self._answer(entry)
            outer = Record(entry.outer, 0, entry.bundle)
            own = optional_text(entry.inner, self._keys.media)
            media.append(own or optional_text(outer, self._keys.media))
        return AnswersItem(
            id=first.bundle,
            # Some questions are duplicates with the halves of a video in the other order.
            group_id=min(media) or first.bundle,
            fields={**first.fields, **fields_of(self._group_by, first.outer)},
            answers=tuple(answers.values()),
        )

    def _answer(self, entry: _Entry) -> Answer:
        record = entry.inner
        if self._chosen is None:
            self._chosen = self._choose(record)
        response_key, label_key = self._chosen
        label = label_of(self._declared, record.values.get(label_key))
        unknown = record.values.get(label_key) is None and self._options.allow_unknown
        if label is None and not unknown:
            found = shown(record.values.get(label_key))
            self._faults.add(_bad_label(self._declared), f"{record.place} ({entry.name}: {found})")
        answer = Answer(
            response=text_of(record, response_key),
            label=label or "",
            name=entry.name,
            question=optional_text(record, self._keys.question),
            options=options_of(record, self._keys.options),
            fields={
                name: field_text({**entry.outer, **record.values}, self._keys.fields[name])
                for name in self._declared.seen
            },
        )
        if self._declared.complete is None:
            return answer
        return self._declared.complete(answer, {**entry.outer, **record.values})

    def _choose(self, first: Record) -> tuple[str, str]:
        """Return the keys of response and label, by the first answer."""
        options = self._options
        for name, key in options.key_map.items():
            if first.values.get(name) is None:
                choose_key(first, key, (), name, "InputOptions(key_map=…)")
        label = "label" if "label" in options.key_map else None
        response = choose_key(first, options.text_key, self._keys.response, "the answer", TEXT_FLAG)
        others = [key for key in self._keys.label if key != response]
        return response, choose_key(first, label, others, "the label")


def known_questions(
    declared: ClosedQuestions, references: References | None, options: InputOptions
) -> dict[str, Mapping[str, object]]:
    """Return the records of a file of questions by the key that joins them with answers.

    Raises:
        ArchiveError: A question has no key, or is a duplicate.
    """
    known: dict[str, Mapping[str, object]] = {}
    twice: list[str] = []
    for record in () if references is None else read_records(references):
        key = question_key(declared, record, options)
        if key in known:
            twice.append(key)
        known[key] = record.values
    if twice:
        raise refuse("duplicate questions in the references", twice, "Remove the duplicates")
    return known


def question_key(declared: ClosedQuestions, record: Record, options: InputOptions) -> str:
    """Return what joins a record with its question: the place of the answer, or of the bundle."""
    bundle = declared.bundle
    names = bundle.name if bundle.by else ()
    return "_".join((bundle_id(declared, record, options), *place_of(declared, record, names)))


def bundle_id(declared: ClosedQuestions, record: Record, options: InputOptions) -> str:
    """Return the id of a record's bundle.

    Raises:
        ArchiveError: The record has none; the message lists the tried and the found keys.
    """
    if by := declared.bundle.by:
        return "_".join(place_of(declared, record, by))
    key = choose_key(record, options.id_key, declared.keys.id, "the id", ID_FLAG)
    return canonical_id(record.values[key], record.place)


def place_of(declared: ClosedQuestions, record: Record, names: Sequence[str]) -> list[str]:
    """Return the values of fields that place an answer in its benchmark.

    Raises:
        ArchiveError: The record lacks one; the message lists the tried and the found keys.
    """
    places = []
    for name in names:
        key = choose_key(record, None, declared.keys.fields[name], f"the {name}")
        places.append(canonical_id(record.values[key], record.place))
    return places


def field_text(values: Mapping[str, object], keys: Sequence[str]) -> str:
    """Return the first text, number or truth value under some keys; empty if there is none."""
    value = next((values[key] for key in keys if values.get(key) is not None), None)
    if isinstance(value, bool):
        return str(value).casefold()
    return str(value) if isinstance(value, (str, int, float)) else ""


def options_of(record: Record, keys: Sequence[str]) -> Mapping[str, str]:
    """Return choices from an object letter -> text, or a list in the order of the letters.

    Raises:
        ArchiveError: The choices have another form.
    """
    value = structured(next((record.values[key] for key in keys if key in record.values), None))
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {str(letter).strip(): str(text) for letter, text in value.items()}
    if isinstance(value, (list, tuple)) and len(value) <= len(ascii_uppercase):
        return dict(zip(ascii_uppercase, map(str, value), strict=False))
    raise ArchiveError(
        f"{record.place}: choices must be an object letter -> text or a list; found {shown(value)}"
    )


_NO_SET = "records have no set"
_NO_ANSWER = "records lack an answer"
_TWICE = "questions are answered more than once"
_UNKNOWN = "answers are to questions that the references lack"
_SILENT = "questions have no answer"


def _bad_label(declared: ClosedQuestions) -> str:
    return f"labels are neither {' nor '.join(declared.labels) or 'a text nor a number'}"


def _remedies(declared: ClosedQuestions) -> dict[str, str]:
    names = " and ".join(map(repr, declared.bundle.names))
    sets = declared.set_files
    return {
        _NO_SET: ""
        if sets is None
        else f"Name the file after its set, or give each record the key {sets.field!r}: "
        f"{_known(sets)}",
        _NO_ANSWER: f"Write each record as an object with {names}",
        _TWICE: "Remove the duplicates, or give other samples another id",
        _bad_label(declared): "Correct these labels",
        _UNKNOWN: "Give their questions, or pass InputOptions(allow_unknown=True)",
        _SILENT: "Give their answers, or pass InputOptions(allow_missing=True)",
    }
