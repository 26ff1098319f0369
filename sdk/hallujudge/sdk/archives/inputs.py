"""Input and output of archive readers: options, items and slices of an archive."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeGuard

from msgspec import Struct

from hallujudge.metrics import Item
from hallujudge.metrics.answers.closed_questions import ClosedQuestions
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.families import FAMILIES, benchmark_named, benchmarks_of
from hallujudge.metrics.framework.metric import InputOption

from ..errors import InvalidInputError
from .json_lines import Mark, Marks, Span
from .local_files import is_plain, open_binary

Responses: TypeAlias = "str | Path | Mapping[str, object] | Iterable[object]"
"""A file, folder, pattern or URL (``-`` is standard input), a mapping id -> text, records, or a
table of pandas, polars or pyarrow."""
References: TypeAlias = "str | Path | Mapping[str, object] | Iterable[object]"
"""A file, a mapping id -> reference, records, or a table of pandas, polars or pyarrow."""


def are_paths(source: object) -> TypeGuard[list[str | Path]]:
    """Return whether an archive is given as a list of several files."""
    return (
        isinstance(source, list)
        and bool(source)
        and all(isinstance(path, (str, Path)) for path in source)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """Options for reading and joining archives."""

    id_key: str | None = None
    """Key of the id; None to try the usual keys."""
    text_key: str | None = None
    """Key of the response's text; None to try the usual keys."""
    key_map: Mapping[str, str] = field(default_factory=dict)
    """Common key -> key of the archive, or path into objects such as ``doc.answer``; the common
    keys are ``id``, ``response``, ``label``, ``question``, ``image``, ``category``,
    ``reference_objects`` and every other key that the metric reads."""
    allow_unknown: bool = False
    """Whether responses without a reference become unscored instead of stopping the run."""
    drop_unknown: bool = False
    """Whether the labels dropped the questions that they lack, as RePOPE's did, so that responses
    to these are left out with a note; a variant or the name of a file may say so too."""
    allow_duplicates: bool = False
    """Whether every response of a duplicate id is scored instead of stopping the run."""
    encoding: str = ""
    """Code of the files that are not UTF-8, such as ``gb18030``; none is guessed."""
    skip_bad: bool = False
    """Whether records that can't be read become unscored instead of stopping the run."""
    drop_equal_duplicates: bool = False
    """Whether copies of a record are left out, such as those that pad the last batch of several
    GPUs; records that share only an id still stop the run."""
    allow_missing: bool = False
    """Whether references without a response become unscored instead of stopping the run."""
    own: Mapping[str, Any] = field(default_factory=dict)
    """What only the metric's own reader takes, by name, such as ``id_map`` for CHAIR; ``hallujudge
    score METRIC --help`` lists them."""
    join: str = "auto"
    """For POPE: how answers find their questions: ``id``, ``text`` (image and question text),
    ``order``, or ``auto``: by id, and by text where answers have none; never by order."""


class DeclaredInputs(Struct, frozen=True, kw_only=True):
    """What a metric's reader takes of the options for reading an archive."""

    used: frozenset[str] = frozenset(InputOptions.__slots__) - {"own"}
    """Names of the options that all readers share, of which this one uses some."""
    own: tuple[InputOption, ...] = ()
    """Options of this reader alone."""

    def refuse_unused(self, metric: str, options: InputOptions) -> None:
        """Refuse an option that would change nothing.

        Raises:
            InvalidInputError: There is one; the message names it.
        """
        default = InputOptions()
        for name in InputOptions.__slots__:
            value = getattr(options, name)
            if name not in ("own", *self.used) and value != getattr(default, name):
                raise InvalidInputError(
                    f"{metric} does not use InputOptions({name}={value!r:.60}); leave it out"
                )
        known = [option.name for option in self.own]
        for name in options.own:
            if name not in known:
                raise InvalidInputError(
                    f"{metric} does not use InputOptions(own=dict({name}=…)); "
                    + choose_from(name, known)
                )

    def used_of(self, options: InputOptions) -> InputOptions:
        """Return those of some options that the reader uses."""
        return InputOptions(**{name: getattr(options, name) for name in ("own", *self.used)})


# What comes before any reader, or is read by all.
_BY_ALL = frozenset({"text_key", "key_map", "encoding", "skip_bad", "drop_equal_duplicates"})


def uses(*names: str, own: tuple[InputOption, ...] = ()) -> DeclaredInputs:
    """Return what a reader takes besides the key of the text and a map of keys."""
    return DeclaredInputs(used=_BY_ALL | {*names}, own=own)


def inputs_of(declared: ClosedQuestions) -> DeclaredInputs:
    """Return what the reader of a benchmark takes."""
    joined = {"allow_unknown", "allow_missing"} if declared.question_files else set()
    by_text = {"join", "drop_unknown"} if declared.joins_by_text else set()
    if declared.question_files and declared.alone:
        by_text.add("allow_duplicates")
    # The places of answers name bundles otherwise.
    by_id = set() if declared.bundle.by else {"id_key"}
    options = {option.name for option in declared.options}
    own = tuple(
        # A table and an option may share a name, and their flags must not.
        InputOption(name=t.name, meaning=t.meaning, named=f"{t.name}_file" * (t.name in options))
        for t in declared.tables
    )
    return uses(*joined, *by_text, *by_id, own=own)


def family_module(metric: str) -> ModuleType | None:
    """Return the module of a metric's archive reader; None if it has none."""
    for family in FAMILIES:
        if not benchmarks_of(family):
            module = import_module(f".{family}", __package__)
            if metric in module.READERS:
                return module
    return None


def declared_inputs(metric: str) -> DeclaredInputs:
    """Return what the reader of a metric takes; everything if it declares nothing."""
    if (declared := benchmark_named(metric)) is not None:
        return inputs_of(declared)
    given: Mapping[str, DeclaredInputs] = getattr(family_module(metric), "INPUTS", {})
    return given.get(metric, DeclaredInputs())


def own_paths(metric: str, options: InputOptions, *kinds: str) -> dict[str, Any]:
    """Return the paths among the options that only a metric's own reader takes, by name.

    Args:
        metric: The metric.
        options: The options.
        kinds: Which of them: ``file``; ``folder``, of what records name.
    """
    own = declared_inputs(metric).own
    given = {option.name: options.own.get(option.name) for option in own if option.kind in kinds}
    return {name: value for name, value in given.items() if value is not None}


@cache
def own_inputs() -> Mapping[str, InputOption]:
    """Return the options that only one metric's reader takes, of all metrics, by name."""
    modules = [
        import_module(f".{family}", __package__) for family in FAMILIES if not benchmarks_of(family)
    ]
    given = [each for module in modules for each in getattr(module, "INPUTS", {}).values()]
    closed = [inputs_of(each) for family in FAMILIES for each in benchmarks_of(family)]
    return {option.name: option for each in (*given, *closed) for option in each.own}


class CheckedSlice(Struct, frozen=True, kw_only=True):
    """What one slice of an archive holds, as far as the check of the whole archive needs it."""

    start: Mark
    """Where it begins."""
    ids: Sequence[str]
    """The id of each record."""
    names: frozenset[str]
    """Names in references that the records carry."""
    marks: Marks
    """Its places; values and lines are counted from where it begins."""


class SliceReader(Protocol):
    """Reads a part of an archive. It can be sent to a process."""

    def items(self, start: Mark, size: int = 0) -> Iterator[Item]:
        """Yield the items from a mark on, of an archive that was checked.

        Args:
            start: Where to begin.
            size: How many bytes to read; 0 for all.
        """
        ...

    def check(self, start: Mark, size: int) -> CheckedSlice | None:
        """Return what a slice holds.

        Args:
            start: Where to begin.
            size: How many bytes to read.

        Returns:
            None if the slice holds an error or a value of several lines: the archive must be
            checked as a whole, which also finds the first error.
        """
        ...


class CheckedArchive(Struct, frozen=True, kw_only=True):
    """What is known of an archive whose bytes were checked before."""

    count: int
    """How many items it has."""
    marks: Marks
    """Places from which it can be read."""


class ItemSlices(Struct, frozen=True, kw_only=True):
    """Places of an archive from which its items can be read, without those before."""

    reader: SliceReader
    """Reads them."""
    marks: Marks
    """The places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSource:
    """Checked items of an archive; each iteration reads the archive again."""

    count: int
    """How many items there are."""
    make: Callable[[], Iterator[Item]]
    """Returns a new iterator over the items."""
    notes: tuple[str, ...] = field(default=())
    """Notes for the user that need no action."""
    about_scores: tuple[str, ...] = ()
    """Notes that concern the scores, for the report."""
    slices: ItemSlices | None = None
    """Reads from the middle; None if the archive can be read from its beginning only."""
    files: tuple[Path, ...] = ()
    """The files of responses and references, which are open."""
    asked: Mapping[str, str] = field(default_factory=dict)
    """How the model was asked, as options of a spec, if the responses say that."""
    shown_sha256: str = ""
    """Hash of the pictures that a judge is shown, for the manifest; empty without any."""
    reference_names: Callable[[], frozenset[str]] = frozenset
    """Returns the different names in references that were given apart from the responses."""

    def start_at(self, first: int) -> Iterator[Item]:
        """Yield the items from a position on."""
        if self.slices is None or not first:
            return islice(self.make(), first, None)
        mark = self.slices.marks.before(first)
        return islice(self.slices.reader.items(mark), first - mark.values, None)

    def __iter__(self) -> Iterator[Item]:
        return self.make()

    def __len__(self) -> int:
        return self.count


class ReaderInput(NamedTuple):
    """What a metric's archive reader reads, and how."""

    responses: Responses
    references: References | None
    """None where responses carry them."""
    options: InputOptions
    group_by: tuple[str, ...]
    """Keys whose values the items carry as fields."""


Reader: TypeAlias = Callable[[ReaderInput], ItemSource]
"""Reads responses and references into items that carry some fields."""

HelpedReader: TypeAlias = "Callable[[ReaderInput, CheckHelp], ItemSource]"
"""Reads the same, with less checking in this process."""


# Large enough that starting a task costs little, small enough to keep all processes busy.
_SLICE_BYTES = 1 << 21
# A longer line is not read as one, so that the archive is checked as a whole.
_LINE_BYTES = 1 << 20


class Spread(Protocol):
    """Has slices checked by several processes."""

    def check(self, reader: SliceReader, spans: Iterable[Span]) -> Iterator[CheckedSlice | None]:
        """Yield what each slice holds, in their order; None if a process can't check it."""
        ...


CheckHelp: TypeAlias = "CheckedArchive | Spread"
"""What saves this process the check of an archive: an earlier one, or other processes."""


def spans_of(path: Path, size: int = _SLICE_BYTES) -> Iterator[Span]:
    """Yield slices of whole lines; none of a packed file.

    Values and lines are counted from the beginning of each slice. Only the first slice begins with
    value 0, because the first value of an archive may be read in another way.

    Args:
        path: The archive.
        size: About how many bytes a slice has.
    """
    with open_binary(path) as file:
        end = os.fstat(file.fileno()).st_size if is_plain(file) else 0
        at = 0
        while at < end:
            file.seek(at + size)
            # A slice ends where a line does.
            file.readline(_LINE_BYTES)
            # A seek goes beyond the end of a file too.
            after = min(file.tell(), end)
            yield Span(Mark(min(at, 1), at, 1), after - at)
            at = after
