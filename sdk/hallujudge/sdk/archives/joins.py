"""Joins of responses with references: id maps, checks of ids, and errors that name them."""

from __future__ import annotations

import filecmp
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path

from hallujudge.judge_service import is_whole
from hallujudge.metrics import Item
from hallujudge.metrics.answers.answer_text import folded
from hallujudge.metrics.answers.closed_questions import AnswersItem

from ..errors import ArchiveError
from .bad_records import noted
from .inputs import InputOptions, ItemSource, are_paths
from .json_files import named, read_json
from .local_files import as_path
from .record_values import TEXT_FLAG, canonical_id
from .records import Record

# Items whose texts are compared to find references in place of responses.
_LOOKED_AT = 100


class IdCheck:
    """Finds duplicate ids, at eight bytes per id."""

    def __init__(self) -> None:
        self._hashes = array("q")

    def add(self, identifier: str) -> None:
        """Add an id."""
        self._hashes.append(hash(identifier))

    def __len__(self) -> int:
        return len(self._hashes)

    def duplicates(self, again: Callable[[], Iterable[str]]) -> list[str]:
        """Return duplicate ids, in order of their second appearance.

        Args:
            again: Returns an iterator over the ids; called only if there are duplicates.
        """
        if not (suspects := _repeated(self._hashes)):
            return []
        seen: set[str] = set()
        duplicates: dict[str, None] = {}
        for identifier in again():
            # Ids of one hash are nearly always equal, but must not be taken for it.
            if hash(identifier) in suspects:
                if identifier in seen:
                    duplicates[identifier] = None
                seen.add(identifier)
        return list(duplicates)

    def refuse_duplicates(
        self,
        what: str,
        options: InputOptions,
        again: Callable[[], Iterable[str]],
        before: str = "",
    ) -> None:
        """Refuse duplicate ids unless the options allow them.

        Args:
            what: What is wrong, such as ``duplicate ids``.
            options: The options.
            again: Returns an iterator over the ids; called only if there are duplicates.
            before: What to do first.

        Raises:
            ArchiveError: There are some.
        """
        if not options.allow_duplicates and (duplicates := self.duplicates(again)):
            remedy = (
                f"{before}keep one of each, drop copies with "
                "InputOptions(drop_equal_duplicates=True), or score each one with "
                "InputOptions(allow_duplicates=True)"
            )
            raise refuse(what, duplicates, f"{remedy[0].upper()}{remedy[1:]}")


def _repeated(hashes: array[int]) -> set[int]:
    """Return the numbers that are there more than once."""
    if not hashes:
        return set()
    if not is_whole():
        return {a for a, b in pairwise(sorted(hashes)) if a == b}
    # In a fifth of the time and of the memory.
    import numpy as np

    ordered = np.sort(np.frombuffer(hashes, dtype=np.int64))
    found: set[int] = set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())
    return found


def numbering(options: InputOptions) -> Callable[[str], str]:
    """Return what makes ids unique where duplicates are allowed: the second "42" becomes "42#2"."""
    counts: dict[str, int] = {}

    def unique(identifier: str) -> str:
        count = counts[identifier] = counts.get(identifier, 0) + 1
        return identifier if count == 1 else f"{identifier}#{count}"

    return unique if options.allow_duplicates else str


class MediaCheck:
    """Counts the items with an image or a video: intervals take the others for independent.

    Args:
        keys: The tried keys; without any, nothing is noted.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._tried = ", ".join(keys)
        self.found = False
        """Whether an item has one."""
        self._without: list[tuple[int, str]] = []
        self._keys: tuple[str, ...] = ()

    def add(self, media: str, place: str, keys: Iterable[str], position: int = -1) -> None:
        """Add an item.

        Args:
            media: Its image or video; empty without one.
            place: Its place, for messages.
            keys: The keys of its record.
            position: The position of its record among the responses; negative for none.
        """
        if media:
            self.found = True
            return
        if not self._without:
            self._keys = tuple(keys)
        self._without.append((position, place))

    def notes(self, also: str = "") -> tuple[str, ...]:
        """Return a note if no item has an image or a video.

        Args:
            also: What else to do then.

        Raises:
            ArchiveError: Some have one and others do not.
        """
        if not self._without or not self._tried:
            return ()
        keys = f"tried {self._tried}; found {named(sorted(self._keys)) or 'none'}"
        if self.found:
            for position, place in self._without:
                # Where bad records are looked for, these are some.
                with noted(position, place):
                    raise ArchiveError(
                        f"{place}: no image or video, unlike other records: {keys} "
                        f"({len(self._without)} in all). Give all records one, or none: intervals "
                        "are by it"
                    )
            return ()
        return (
            f"no record has an image or a video: {keys}. Intervals take each item for independent "
            "of the others; if the key has another name, name it with InputOptions(key_map=…): "
            "image=KEY" + also,
        )


def refuse(problem: str, identifiers: list[str], remedy: str, *, reason: str = "") -> ArchiveError:
    """Return an error that names up to ten ids, and their number.

    Args:
        problem: What is wrong.
        identifiers: The ids.
        remedy: The next step.
        reason: Code of the error; empty for the usual one.
    """
    found = f"{problem}: {named(identifiers)} ({len(identifiers)} in all)"
    return ArchiveError(
        f"{found}. {remedy}",
        reason=reason,
        metadata={"count": str(len(identifiers)), "found": found},
    )


def same_files(responses: object, references: object, options: InputOptions) -> str:
    """Return what was given as responses and as references too; empty if there is no such thing.

    A copy of a file is the same file. Where the user named the key of the responses, one file may
    have both.
    """
    if options.text_key is not None or "response" in options.key_map:
        return ""
    if responses is references and references is not None:
        return str(references) if isinstance(references, (str, Path)) else "the same records"
    pairs = ((path, other) for other in _paths(references) for path in _paths(responses))
    return next((str(path) for path, other in pairs if _are_same(Path(path), Path(other))), "")


def _paths(source: object) -> Sequence[str | Path]:
    if isinstance(source, (str, Path)):
        return [source]
    return source if are_paths(source) else []


def _are_same(path: Path, other: Path) -> bool:
    """Return whether two paths name one file, or files with the same bytes."""
    # Readers say what is wrong with an absent or unreadable file; a pipe can be read only once.
    with suppress(OSError):
        if path.is_file() and other.is_file():
            return path.samefile(other) or filecmp.cmp(path, other, shallow=False)
    return path == other


def own_references(
    source: ItemSource, given: str, has_references_only: Callable[[], bool]
) -> tuple[str, ...]:
    """Return a note if references are scored as responses, which makes every score perfect.

    It is no error, because the references' own scores are the best that a metric can give.

    Args:
        source: The items of something that was given as responses and as references.
        given: Its name; empty if there is no such thing.
        has_references_only: Returns whether its layout is one of references.
    """
    if not given:
        return ()
    pairs = [pair for item in islice(source, _LOOKED_AT) for pair in _compared_texts(item)]
    # Some answers may well be those of their references, but hardly all.
    if not (all(said in known for said, known in pairs) if pairs else has_references_only()):
        return ()
    return (
        f"the references are given as responses too: {given}. Perfect scores are theirs, not a "
        f"model's. If the model's answers are in this file under another key, name it with "
        f"{TEXT_FLAG}",
    )


def _compared_texts(item: Item) -> Iterator[tuple[str, list[str]]]:
    """Yield each response of an item with the texts that it is compared with, if there are any."""
    if isinstance(item, AnswersItem):
        for answer in item.answers:
            if answer.response is not None and answer.label:
                yield folded(answer.response), [folded(answer.label)]
        return
    response, one = getattr(item, "response", None), getattr(item, "reference", None)
    captions = getattr(item, "reference_captions", None) or ()
    if known := [folded(text) for text in (one, *captions) if isinstance(text, str)]:
        yield folded(response or ""), known


class Faults:
    """Collects faults by kind, so that one error names all places with the same fault.

    Args:
        remedies: Kind of fault -> the next step.
    """

    def __init__(self, remedies: Mapping[str, str]) -> None:
        self._remedies = dict(remedies)
        self._places: dict[str, list[str]] = {}
        self._reasons: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._places)

    def add(self, problem: str, *places: str, remedy: str = "", reason: str = "") -> None:
        """Add a fault of these places; the remedy is that of its kind, unless there is another.

        Args:
            problem: The kind of fault.
            places: Where it is.
            remedy: The next step; empty for that of the kind.
            reason: Code of the error; empty for the usual one.
        """
        if places:
            self._places.setdefault(problem, []).extend(places)
        if remedy:
            self._remedies[problem] = remedy
        if reason:
            self._reasons[problem] = reason

    def check(self) -> None:
        """Raise an error for the first kind of fault.

        Raises:
            ArchiveError: There is a fault.
        """
        for problem, places in self._places.items():
            remedy = self._remedies.get(problem, "Correct these lines")
            raise refuse(problem, places, remedy, reason=self._reasons.get(problem, ""))


def read_mapping(source: str | Path | Mapping[str, object], what: str) -> Mapping[str, object]:
    """Return one JSON object, id -> value, without duplicate ids.

    Raises:
        ArchiveError: The file can't be read, is not an object, or has duplicate ids.
    """
    if isinstance(source, Mapping):
        return _by_id(source, what)
    path, wanted = as_path(source), f"{what} are an object with an entry for each id"
    try:
        content = read_json(path)
    except ArchiveError as err:
        raise ArchiveError(f"{err}; {wanted}", metadata=err.metadata) from err
    if not isinstance(content, dict) or not content:
        raise ArchiveError(f"{path}: not one JSON object; {wanted}")
    return _by_id(content, str(path))


def _by_id(content: Mapping[str, object], place: str) -> Mapping[str, object]:
    return {canonical_id(key, place): value for key, value in content.items()}


# No place in a file has so many digits.
_LONG_NUMBER = 12


class JoinCheck(IdCheck):
    """Compares the ids of answers with those of their references.

    Args:
        what: Plural noun for the ids, such as ``questions``.
        options: Options that allow duplicate, unknown or missing ids.
        known: The references' ids; None if answers carry everything.
    """

    def __init__(self, what: str, options: InputOptions, known: Mapping[str, object] | None):
        super().__init__()
        self._what = what
        self._options = options
        self._known = known
        self._unknown: dict[str, int] = {}
        self._joined = 0
        self._met: Collection[str] = ()

    def items(
        self,
        records: Iterable[Record],
        id_of: Callable[[Record], str],
        item_of: Callable[[Record, str], Item],
    ) -> ItemSource:
        """Return the items of records, which are read once to check them and once to score them.

        Args:
            records: The records, which each iteration reads again.
            id_of: Returns the id that joins a record with its reference.
            item_of: Returns the item of a record and of its own id.

        Raises:
            ArchiveError: A record can't be used, or see :meth:`refuse`.
        """

        def made() -> Iterator[Item]:
            unique = numbering(self._options)
            return (item_of(record, unique(id_of(record))) for record in records)

        for record in records:
            with noted(record.position, record.place):
                self.add(id_of(record))
                # For its errors alone: the item is made again when it is scored.
                item_of(record, "")
        self.refuse(lambda: map(id_of, records))
        return ItemSource(count=len(self), make=made)

    def add(self, identifier: str) -> None:
        """Add an answer's id."""
        self._hashes.append(hash(identifier))
        if self._known is None:
            return
        if identifier in self._known:
            self._joined += 1
        else:
            self._unknown[identifier] = self._unknown.get(identifier, 0) + 1

    @property
    def left_out(self) -> Mapping[str, int]:
        """How many answers each question has that the labels dropped, where such are left out.

        It is known once :meth:`refuse` was called, as the ids without an answer are.
        """
        # Other labels than those of a part of the questions would drop most of them.
        few = len(self._unknown) < len(self._met)
        return self._unknown if self._options.drop_unknown and few else {}

    def missing(self) -> list[str]:
        """Return the ids of references without an answer."""
        return [known for known in self._known or () if known not in self._met]

    def _counted_otherwise(self) -> str:
        """Return a hint where numbers of answers begin at another place, such as 0 and not 1."""
        # All others would find the question before or after their own.
        ids = [*self._unknown, *self.missing()[:2]]
        numbers = all(each.isdecimal() and len(each) < _LONG_NUMBER for each in ids)
        if self._what != "questions" or len(ids) != 2 or not numbers:
            return ""
        if abs(int(ids[0]) - int(ids[1])) != len(self._known or ()):
            return ""
        first = "lower" if int(ids[0]) < int(ids[1]) else "higher"
        return (
            f" The answers seem to be counted from one {first} number than the {self._what}, as "
            "from 0 and from 1; if both files have one order, set InputOptions(join='order')."
        )

    def _answered(self, again: Callable[[], Iterable[str]]) -> Collection[str]:
        """Return the references' ids that have an answer."""
        known = self._known or {}
        # Nearly always each has one, and a second copy of all ids would take much memory.
        once = not self._options.allow_duplicates or not _repeated(self._hashes)
        if once and self._joined == len(known):
            return known.keys()
        return set(filter(known.__contains__, again()))

    def refuse(self, again: Callable[[], Iterable[str]]) -> None:
        """Stop the run if ids are duplicate, unknown or missing.

        Args:
            again: Returns an iterator over the ids.

        Raises:
            ArchiveError: Such ids exist and the options do not allow them.
        """
        self.refuse_duplicates(
            f"{self._what} are answered more than once",
            self._options,
            again,
            "If they are different questions about one image or video, name the key of a "
            "question's own id with InputOptions(id_key=…); if they are repeated answers, ",
        )
        self._met = self._answered(again)
        if self._unknown and not self._options.allow_unknown and not self.left_out:
            some = named(list(islice(self._known or (), 3)))
            known = f"; the references have {some}" if some else ""
            hint = "" if self._met else f" No answer could be joined{known}."
            hint = self._counted_otherwise() or hint
            raise refuse(
                f"answers belong to {self._what} that the references lack",
                list(self._unknown),
                "Give their references, or pass InputOptions(allow_unknown=True) to leave "
                f"them unscored.{hint}",
            )
        if not self._options.allow_missing and (missing := self.missing()):
            raise refuse(
                f"{self._what} have no answer",
                missing,
                "Give their answers, or pass InputOptions(allow_missing=True) to leave them "
                "unscored",
            )
