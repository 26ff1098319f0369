"""Records that can't be read: all of an archive are found at once, and may be left unscored.

A reader stops at the first bad record. The archive is then read again with :func:`finding`, where
each block ``with noted(record)`` notes what is wrong with its record and goes on.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NamedTuple

from msgspec import structs

from hallujudge.metrics import Item
from hallujudge.metrics.answers.answer_items import UNANSWERED

from ..errors import ArchiveError

SKIP = "leave them unscored with InputOptions(skip_bad=True)"
"""What else to do about bad records, for messages."""


@contextmanager
def without_skip() -> Iterator[None]:
    """Leave out of errors that bad records may be left unscored, where that can't be chosen."""
    try:
        yield
    except ArchiveError as err:
        said = str(err).removesuffix(f", or {SKIP}").removesuffix(f". Or {SKIP}")
        raise ArchiveError(said, reason=err.reason, metadata=err.metadata) from err


# How many bad records an error lists.
_LISTED = 10
RESPONSE_KEY = "response_key"
"""In the metadata of an error about a response alone: the key that has it."""


class BadRecord(NamedTuple):
    """A record that can't be read."""

    position: int
    """Its position in the archive."""
    place: str
    """Its file and line, for messages."""
    problem: str
    """What is wrong with it, with its place."""
    response_key: str = ""
    """The key of its response, if only that is wrong."""

    def renamed(self, names: Mapping[str, str]) -> BadRecord:
        """Return it with other names of files."""
        place, problem = self.place, self.problem
        for path, name in names.items():
            place, problem = place.replace(path, name), problem.replace(path, name)
        return self._replace(place=place, problem=problem)


@dataclass(slots=True)
class BadRecords:
    """The bad records of an archive."""

    by_position: dict[int, BadRecord] = field(default_factory=dict)
    """Position in the archive -> a record that a reader can't use."""
    unreadable: dict[str, BadRecord] = field(default_factory=dict)
    """Place -> a record that is not even an object."""
    total: int = 0
    """How many records were looked at."""

    @property
    def all(self) -> list[BadRecord]:
        """All of them, in the order of the archive."""
        return sorted((*self.by_position.values(), *self.unreadable.values()))

    def rename(self, names: Mapping[str, str]) -> None:
        """Name files as the user did.

        Args:
            names: Path of a temporary copy -> the name that the user gave.
        """
        self.by_position = {n: bad.renamed(names) for n, bad in self.by_position.items()}
        self.unreadable = {place: bad.renamed(names) for place, bad in self.unreadable.items()}

    def error(self) -> ArchiveError:
        """Return an error that lists the first ones, and their number."""
        found = self.all
        if len(found) == 1:
            return ArchiveError(f"{found[0].problem}. Or {SKIP}")
        return ArchiveError(
            f"{len(found):,} records can't be used: {self._listed()}. Correct them, or {SKIP}",
            metadata={"count": str(len(found))},
        )

    def _listed(self) -> str:
        # Each problem has a next step of its own after a semicolon.
        shown = [bad.problem.partition("; ")[0] for bad in self.all[:_LISTED]]
        more = len(self.all) - len(shown)
        return "; ".join([*shown, *[f"and {more:,} more"] * bool(more)])

    def note(self) -> str:
        """Return a note on those that were left unscored."""
        return f"bad records are unscored ({len(self.all):,} in all): {self._listed()}"

    def add(self, others: BadRecords) -> bool:
        """Add bad records; return whether any is new, or is bad without its response too."""
        before = dict(self.by_position), len(self.unreadable)
        for position, bad in others.by_position.items():
            # Bad again after its response was left out: nothing of it can be used.
            again = position in self.by_position
            self.by_position[position] = bad._replace(response_key="") if again else bad
        self.unreadable |= others.unreadable
        return before != (self.by_position, len(self.unreadable))

    def repaired(self, position: int, values: Mapping[str, object]) -> Mapping[str, object] | None:
        """Return the values of a record without a bad response; None if all of it is bad."""
        bad = self.by_position.get(position)
        if bad is None:
            return values
        if bad.response_key not in values:
            return None
        # A variant may count null answers as wrong, but not what could not be read.
        return {**values, bad.response_key: None, UNANSWERED: bad.problem}

    def lost(self, kept: Container[int]) -> list[BadRecord]:
        """Return the records that can't be repaired.

        Args:
            kept: The positions of the others.
        """
        whole = (bad for bad in self.by_position.values() if bad.position not in kept)
        return sorted((*self.unreadable.values(), *whole))


# Readers many calls below note bad records, and none of the calls between needs to know.
_FINDING: ContextVar[tuple[BadRecords, bool] | None] = ContextVar("finding", default=None)


@contextmanager
def finding(found: BadRecords, *, unreadable: bool = False) -> Iterator[None]:
    """Note bad records within, instead of raising their errors.

    Args:
        found: Where they are noted.
        unreadable: Whether what is not even an object is noted too: only responses are read.
    """
    token = _FINDING.set((found, unreadable))
    try:
        yield
    finally:
        _FINDING.reset(token)


def finds_unreadable() -> bool:
    """Return whether records are noted that are not even objects."""
    known = _FINDING.get()
    return known is not None and known[1]


class noted:  # noqa: N801  # it is used like a function
    """Note an error about a record where bad records are looked for; raise it elsewhere.

    Args:
        position: The record's position in the archive; negative for a part of a record.
        place: Its place.
    """

    __slots__ = ("_place", "_position")

    def __init__(self, position: int, place: str) -> None:
        self._position = position
        self._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, _: TracebackType | None
    ) -> bool:
        return isinstance(err, ArchiveError) and note_bad(err, self._position, self._place)


def note_bad(err: ArchiveError, position: int, place: str) -> bool:
    """Note an error about a record where bad records are looked for; return whether they are.

    Args:
        err: The error.
        position: The record's position in the archive; negative for a part of a record.
        place: Its place.
    """
    if position < 0 or (known := _FINDING.get()) is None:
        return False
    bad = BadRecord(position, place, str(err), err.metadata.get(RESPONSE_KEY, ""))
    # The first problem of a record is shown; later ones may follow from it.
    known[0].by_position.setdefault(position, bad)
    return True


class Unreadable(dict[str, object]):
    """Stands for a record that is not an object, such as a line that is not JSON.

    Args:
        problem: What is wrong, with its place.
    """

    def __init__(self, problem: str) -> None:
        super().__init__()
        self.problem = problem


def note_unreadable(problem: ArchiveError, position: int, place: str) -> None:
    """Note a record that is not an object, where bad records are looked for.

    Raises:
        ArchiveError: They are not looked for.
    """
    if (known := _FINDING.get()) is None or not known[1]:
        raise problem
    known[0].unreadable.setdefault(place, BadRecord(position, place, str(problem)))


def unscored_item(like: Item, bad: BadRecord) -> Item:
    """Return an item for a record that can't be read, of which there is nothing to score.

    Args:
        like: Another item of its metric.
        bad: The record.
    """
    values: dict[str, Any] = {"id": bad.place, "group_id": bad.place}
    for each in structs.fields(like):
        if each.required and each.name != "id":
            values[each.name] = "" if each.type is str else None
    return type(like)(**values)
