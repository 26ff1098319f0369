"""The questions of a benchmark as they are put to a model, and the archive that they become."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hallujudge.judge_service.llm.chat_replies import THOUGHT_KEYS
from hallujudge.metrics.answers.closed_questions import ClosedQuestions, Keys, SetFiles
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.framework.asking import CHOOSE_ONE, CHOOSING, OwnAsking, Shown, is_name
from hallujudge.metrics.framework.json_values import well_formed
from hallujudge.sdk.archives.answer_records import Fault, remedies_of
from hallujudge.sdk.archives.answers import listed_questions
from hallujudge.sdk.archives.formats import read_format
from hallujudge.sdk.archives.joins import read_mapping
from hallujudge.sdk.archives.json_files import named, read_json, read_values
from hallujudge.sdk.archives.question_files import by_columns, held_by, options_of, unfolded
from hallujudge.sdk.archives.record_values import choose_key
from hallujudge.sdk.archives.records import Record, no_records, read_records
from hallujudge.sdk.archives.set_files import parts_of, set_in, split_of_file
from hallujudge.sdk.errors import ArchiveError, InvalidInputError
from hallujudge.sdk.media.media_files import MediaFolder, is_address, path_of_address, shared_ends

from .asked_benchmarks import Benchmark

# Without a declaration a record is known by its own keys alone.
_UNDECLARED = Keys(response=(), label=(), id=(), media=(), options=())
# What a record that also has an answer says of it, besides the response.
_OF_ANSWERS = frozenset({"thought", *THOUGHT_KEYS, "steps", "unanswered"})


def _said_of_answers(declared: ClosedQuestions) -> Iterator[str]:
    """Yield the keys of verdicts on answers."""
    for name in (*declared.verdicts, declared.verdict):
        yield from declared.keys.fields.get(name, ())


@dataclass(slots=True, kw_only=True)
class Inquiry:
    """A question on its way to an answer."""

    key: str
    """What messages call it: the id of its record, and what tells it apart there."""
    slots: Mapping[str, str]
    """Slots of the prompts."""
    options: Mapping[str, str]
    """The shown options; empty if there are none."""
    media: str | None
    """Name of the image or video; None if the model is to see none."""
    address: str = ""
    """Path of an address of it, which may end in its name too; empty without."""
    sound: str = ""
    """Name of the file whose sound the model is to hear; empty if it is to hear none."""
    condition: str
    """The condition, such as a degraded video's operator; empty if there is one."""
    into: dict[str, object]
    """The record of the archive, or the part of one, that the response goes into."""
    response: str
    """Key of the response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiries:
    """All questions of a run."""

    asked: Sequence[Inquiry]
    """The questions, in the order of the files."""
    records: Sequence[dict[str, object]]
    """The records of the archive, which the answers are put into."""

    @property
    def shared_ends(self) -> Container[str]:
        """Ends of paths that several names of images, videos and sounds have."""
        names = (name for one in self.asked for name in (one.media, one.address, one.sound))
        return shared_ends(filter(None, names))


def read_inquiries(
    benchmark: Benchmark,
    sources: Sequence[Path],
    folder: MediaFolder,
    *,
    options: Path | None = None,
    conditions: Sequence[str] = (),
    limit: int | None = None,
) -> Inquiries:
    """Return the questions of files, or of every image of the folder.

    Args:
        benchmark: What is asked.
        sources: Files of questions; none for a benchmark that asks the same of each image.
        folder: Images and videos.
        options: File of the shown orders, for benchmarks that need one.
        conditions: Conditions to ask under; none for those that there are folders of.
        limit: Records at most.

    Raises:
        ArchiveError: A file can't be read, or lacks questions or ids.
        InvalidInputError: Files are missing, or not used by the benchmark.
    """
    maker = _Maker(benchmark, folder, conditions)
    if not sources and not benchmark.asking.of_media:
        raise InvalidInputError(
            f"{benchmark.name} needs its file of questions; give it with references=…"
        )
    records = _records(benchmark, sources, folder)
    if options is not None or needs_options(benchmark):
        records = _with_options(benchmark, records, options)
    for count, record in enumerate(records):
        if limit is not None and count >= limit:
            break
        maker.add(record)
    maker.refuse_unknown_conditions()
    if not maker.asked:
        if not sources:
            raise ArchiveError(
                f"{folder.root}: no images; give the folder that has them, or a file of questions"
            )
        raise no_records(sources[0], "question")
    maker.refuse_without_questions()
    return Inquiries(asked=maker.asked, records=maker.records)


def _records(
    benchmark: Benchmark, sources: Sequence[Path], folder: MediaFolder
) -> Iterator[Record]:
    declared = benchmark.declared
    if not sources:
        key = benchmark.asking.id[0]
        # This key holds names of files; other ids have no suffix.
        with_suffix = key == "image_name"
        for position, media in enumerate(folder.all()):
            name = media.name if with_suffix else Path(media.name).stem
            yield Record({key: name, "image": media.name}, position, media.name)
        return
    for source in sources:
        if declared is None:
            yield from _plain_records(benchmark.asking, source)
        else:
            yield from _declared_records(declared, source, is_alone=len(sources) == 1)


def _declared_records(
    declared: ClosedQuestions, source: Path, *, is_alone: bool
) -> Iterator[Record]:
    """Yield the questions of a file in a form in which the benchmark is released."""
    if declared.set_files is not None:
        for part in parts_of(declared, source):
            records = unfolded(declared, part.records, "label")
            yield from (_of_set(declared, record, part.name) for record in records)
        return
    if metric_of(declared).overrides("listed") and _is_list(source):
        yield from listed_questions(declared, source.stem, read_json(source))
        return
    # A file alone needs no split: it tells apart the questions of several files.
    splits = None if is_alone else declared.split_files
    split = split_of_file(splits, source) if splits is not None else ""
    for record in unfolded(declared, read_records(read_format(source).source), "label"):
        yield from by_columns(declared, _marked(record, splits, split))


def _is_list(source: Path) -> bool:
    """Return whether a file holds no records, but names of files by what they show."""
    content = read_format(source).source
    first = next(iter(read_values(content)), None) if isinstance(content, Path) else None
    held = first.value if first is not None else None
    return (
        isinstance(held, Mapping)
        and bool(held)
        and all(isinstance(value, Mapping) for value in held.values())
        and not any(isinstance(inner, str) for value in held.values() for inner in value.values())
    )


def _of_set(declared: ClosedQuestions, record: Record, name: str) -> Record:
    """Return a record with its set, without which its answer could not be scored."""
    sets = declared.set_files
    assert sets is not None, "asked only then"
    marked = _marked(record, sets, name)
    keys = declared.keys.fields.get(sets.field, (sets.field,))
    if not any(set_in(sets, str(marked.values[key])) for key in keys if key in marked.values):
        remedy = remedies_of(declared)[Fault.NO_SET]
        raise ArchiveError(f"{record.place}: {Fault.NO_SET}. {remedy}")
    return marked


def _marked(record: Record, files: SetFiles | None, name: str) -> Record:
    """Return a record with the set or split that its file's name says."""
    if not name or files is None or files.field in record.values:
        return record
    return record._replace(values={**record.values, files.field: name})


def _plain_records(asking: OwnAsking, source: Path) -> Iterator[Record]:
    """Yield records; also of a list of ids, and of an object id -> objects or record."""
    content = read_format(source).source
    if not isinstance(content, Path):
        yield from read_records(content)
        return
    first = next(iter(read_values(source)), None)
    key = asking.id[0]
    if first is not None and isinstance(first.value, (str, int)):
        for position, placed in enumerate(read_values(source)):
            place = f"{source} line {placed.line}"
            if not isinstance(placed.value, (str, int)):
                raise ArchiveError(f"{place}: expected an id like those before it")
            yield Record({key: placed.value}, position, place)
        return
    held = first.value if first is not None else None
    if (
        isinstance(held, Mapping)
        and held
        and all(
            isinstance(value, list) or (asking.inside and isinstance(value, Mapping))
            for value in held.values()
        )
    ):
        for position, (name, value) in enumerate(read_mapping(source, "questions").items()):
            values = value if isinstance(value, Mapping) else {}
            yield Record({**values, key: name}, position, f"{source}, {name!r}")
        return
    yield from read_records(source)


def needs_options(benchmark: Benchmark) -> bool:
    """Return whether a benchmark needs a file of the shown options."""
    tables = benchmark.declared.tables if benchmark.declared is not None else ()
    return any(table.name == "options" and table.required for table in tables)


def _with_options(
    benchmark: Benchmark, records: Iterable[Record], options: Path | None
) -> Iterator[Record]:
    if not needs_options(benchmark):
        raise InvalidInputError(f"{benchmark.name} does not use AskRun(options=…); leave it out")
    if options is None:
        raise InvalidInputError(
            f"{benchmark.name} needs the display order of its captions; give AskRun(options=…)"
        )
    shown = read_mapping(options, "display orders")
    for record in records:
        key = choose_key(record, None, _id_keys(benchmark), "the id")
        # Keys of a JSON object are texts, ids may be numbers.
        found = shown.get(str(record.values[key]))
        if found is None:
            raise ArchiveError(
                f"{options}: no display order of {record.values[key]!r:.60}; give the file of the "
                "same release"
            )
        yield record._replace(values={**record.values, "options": found})


def _id_keys(benchmark: Benchmark) -> tuple[str, ...]:
    return (*benchmark.asking.id, *_keys_of(benchmark).id)


def _keys_of(benchmark: Benchmark) -> Keys:
    return _UNDECLARED if benchmark.declared is None else benchmark.declared.keys


class _Maker:
    """Makes inquiries and records of the archive, by the declaration."""

    def __init__(
        self, benchmark: Benchmark, folder: MediaFolder, conditions: Sequence[str]
    ) -> None:
        self._benchmark = benchmark
        self._asking = benchmark.asking
        self._declared = declared = benchmark.declared
        self._keys = keys = _keys_of(benchmark)
        self._folder = folder
        self._given = conditions
        self._ids = _id_keys(benchmark)
        of_question = (*keys.question, *keys.asked) if declared else ("question",)
        self._question = (*benchmark.asking.question, *dict.fromkeys(of_question))
        # The number of a question is none of an image.
        own = [key for key in self._ids if keys.own_media and key != "question_id"]
        usual = ("image", "video", "file_name", "image_id", "video_id")
        named_apart = [key for key in keys.media if key not in self._ids]
        self._media = (*named_apart, *usual, *own)
        self._response = benchmark.asking.response or (*keys.response, "response")[0]
        self._of_other_answers = {
            *_OF_ANSWERS.difference(self._question, *keys.fields.values()),
            *(_said_of_answers(declared) if declared else ()),
        }
        self.asked: list[Inquiry] = []
        self.records: list[dict[str, object]] = []
        self._without_question: list[ArchiveError] = []
        self._possible: dict[str, None] = {}
        if conditions and benchmark.conditions is None:
            raise InvalidInputError(
                f"{benchmark.name} is not asked under conditions; leave {named(conditions)} out"
            )

    def add(self, record: Record) -> None:
        """Add the questions of a record."""
        for out, key in self._records_of(record):
            self.asked.append(self._inquiry(record, out, key))
            self.records.append(out)

    def refuse_unknown_conditions(self) -> None:
        """Refuse conditions that no record is asked under.

        Raises:
            InvalidInputError: There is one.
        """
        unknown = [name for name in self._given if name not in self._possible]
        if unknown and self._possible:
            raise InvalidInputError(
                f"no question is asked under the condition {named(unknown)}; "
                + choose_from(unknown[0], self._possible)
            )

    def refuse_without_questions(self) -> None:
        """Refuse a file without questions; one record without one is left unanswered.

        Raises:
            ArchiveError: No record has a question.
        """
        if self._without_question and len(self._without_question) == len(self.asked):
            raise self._without_question[0]

    def _records_of(self, record: Record) -> Iterator[tuple[dict[str, object], str]]:
        """Yield the records of the archive that a record of the questions becomes."""
        own, values = self._benchmark.asking, record.values
        id_key = choose_key(record, None, self._ids, "the id") if self._needs_id(record) else ""
        key = str(values.get(id_key, record.place))
        if own.inside and own.inside in values:
            held = values[own.inside]
            for number, inner in enumerate(held if isinstance(held, list) else [], 1):
                if isinstance(inner, Mapping):
                    question = _text(inner, self._question)
                    yield (
                        {id_key: values[id_key], "question": question},
                        f"{key}, question {number}",
                    )
            return
        kept = {name: value for name, value in values.items() if self._keeps(name)}
        if own.kept is not None:
            question = _text(values, self._question)
            asked = {"question": question} if question is not None else {}
            kept = {
                id_key: values[id_key],
                **asked,
                **{n: values[n] for n in own.kept if n in values},
            }
        field = self._benchmark.condition_field
        for condition in self._conditions(values):
            where = {field: condition} if field else {}
            yield {**kept, **where}, f"{key} ({condition})" if condition else key

    def _needs_id(self, record: Record) -> bool:
        """Return whether a record must have an id: pairs and figures are known by other fields."""
        bundle = self._declared.bundle if self._declared is not None else None
        by_fields = bundle is not None and bool(bundle.by)
        return not by_fields or any(key in record.values for key in self._ids)

    def _keeps(self, name: str) -> bool:
        """Return whether a key of a question belongs into the archive, as no other model's does."""
        declared = self._declared
        if declared is None:
            return True
        verdicts = {key for field in declared.verdicts for key in declared.keys.fields[field]}
        return name not in verdicts

    def _conditions(self, values: Mapping[str, object]) -> tuple[str, ...]:
        conditions = self._benchmark.conditions
        if conditions is None:
            return ("",)
        possible = conditions(values)
        self._possible |= dict.fromkeys(possible)
        if self._given:
            return tuple(name for name in possible if name in self._given)
        return tuple(
            name
            for name in possible
            # Without a list of conditions, those are asked whose folder of videos exists.
            if name == self._benchmark.base_condition or self._folder.inner(name) is not None
        )

    def _inquiry(self, record: Record, out: dict[str, object], key: str) -> Inquiry:
        values = {**record.values, **out}
        question = _text(values, self._question)
        more = self._shown(record, values)
        if question is None and "question" not in more.slots and self._benchmark.needs_question:
            self._without_question.append(self._no_question(record))
        # Of a record that also has answers under the key of another one, or of another model.
        for name in self._keys.response:
            if name not in self._question and name not in self._keys.label:
                out.pop(name, None)
        # The same of what it says of such answers: verdicts would pass for ones on the new answer.
        for name in (*self._of_other_answers, *self._held_keys(record)):
            out.pop(name, None)
        keys = self._keys.question
        if question and self._declared is not None and not any(name in out for name in keys):
            out[keys[0]] = question
        options = more.options
        if options is None:
            options = options_of(record._replace(values=values), self._keys.options)
        shown, field = shown_options(options), self._benchmark.condition_field
        media = None if more.media is None else (*more.media, *self._media)
        return Inquiry(
            key=key,
            slots={
                # JSON may hold lone surrogates, which can't be sent.
                "question": well_formed(question or ""),
                "options": shown,
                # With its line break, so that a question without options has no empty line.
                CHOOSING: "\n" + CHOOSE_ONE.replace("{{options}}", shown) if shown else "",
                **more.slots,
            },
            options=options,
            media=None if media is None else self._media_of(values, media),
            address=self._path_of_address(values, media or self._media),
            sound=more.sound,
            condition=str(out.get(field, "")) if field else "",
            into=out,
            response=self._response,
        )

    def _held_keys(self, record: Record) -> Iterable[str]:
        """Return the keys under which a record holds answers of another model."""
        try:
            held = held_by(self._declared, record) if self._declared is not None else None
        except ArchiveError:
            return ()
        return held.keys if held is not None else ()

    def _no_question(self, record: Record) -> ArchiveError:
        """Return the error of a record whose question is absent or not a text."""
        try:
            choose_key(record, None, self._question, "the question")
        except ArchiveError as err:
            return err
        return ArchiveError(f"{record.place}: its question is not a text; correct it")

    def _shown(self, record: Record, values: Mapping[str, object]) -> Shown:
        try:
            return self._asking.shown(values)
        except ValueError as err:
            # What is wrong, what to do about it, and perhaps an example.
            fault, remedy, *_ = (*err.args, "Correct its options")
            raise ArchiveError(f"{record.place}: {fault}. {remedy}") from err

    def _media_of(self, values: Mapping[str, object], keys: Sequence[str]) -> str:
        found = [str(name) for key in keys if is_name(name := values.get(key))]
        # No address is called. Where a record has one, its file is named by another key, or the id.
        return next((name for name in found if not is_address(name)), (*found, "")[0])

    def _path_of_address(self, values: Mapping[str, object], keys: Sequence[str]) -> str:
        """Return host and path of an address: files are often saved under its last part."""
        found = [name for key in keys if isinstance(name := values.get(key), str)]
        return next((path for name in found if (path := path_of_address(name))), "")


def _text(values: Mapping[str, object], keys: Sequence[str]) -> str | None:
    """Return the first text under some keys; None without one."""
    return next((text for key in keys if isinstance(text := values.get(key), str)), None)


def shown_options(options: Mapping[str, str]) -> str:
    """Return options as prompts show them: a line for each."""
    return "\n".join(f"{letter}. {well_formed(text)}" for letter, text in options.items())
