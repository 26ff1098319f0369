"""Pairs of answers of VideoHallucer: a folder with a file for each set, or one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from hallujudge.metrics.video_hallucer import (
    BASIC,
    HALLUCINATION,
    SETS,
    VideoHallucerItem,
    VideoHallucerRun,
)

from ..errors import ArchiveError
from .inputs import InputOptions, ItemSource, Reader, References, Responses
from .joins import Faults
from .json_files import read_values
from .records import TEXT_FLAG, Record, choose_key, fields_of, read_records, text_of

_ANSWER_KEYS = ("predict", "prediction", "model_prediction", "response", "output")
_ALIASES = {
    "obj_rel": "object_relation",
    "semantic": "semantic_detail",
    "fact": "external_factual",
    "nonfact": "external_nonfactual",
    "factdet": "fact_detect",
    **{name: name for name in SETS},
}
"""Names of sets in file names, including those of the released script."""
# The pipeline sets these fields itself.
_OWN_FIELDS = frozenset({"set", "kind"})


class _Part(NamedTuple):
    """Records of one set."""

    name: str
    """The set; empty if each record names its own."""
    records: Iterator[Record]


def read_video_hallucer(
    responses: Responses,
    references: References | None,
    options: InputOptions,
    group_by: tuple[str, ...],
) -> ItemSource:
    """Return the pairs of all sets.

    Args:
        responses: A folder with a JSON file for each set, such as ``temporal.json``; one such file;
            an object set -> pairs; or records of pairs with the key ``set``.
        references: Must be None, since pairs carry their labels.
        options: How the archive is read.
        group_by: Fields to group by.

    Raises:
        ArchiveError: See :func:`read_items`; also if a set is unknown or appears in two files,
            a pair lacks a question, or a label is neither yes nor no.
    """
    if references is not None:
        raise ArchiveError("VideoHallucer's files hold their labels; leave the references out")
    items = _Gathering(options, group_by).read(_parts(responses))
    return ItemSource(count=len(items), make=lambda: iter(items))


def _parts(responses: Responses) -> Iterator[_Part]:
    if isinstance(responses, Mapping):
        yield from _sets_of(responses, "the archive")
    elif not isinstance(responses, (str, Path)):
        yield _Part("", read_records(responses))
    elif Path(responses).is_dir():
        yield from _folder(Path(responses))
    else:
        yield from _file(Path(responses))


def _folder(folder: Path) -> Iterator[_Part]:
    files = sorted(folder.glob("*.json"))
    if not files:
        raise ArchiveError(f"{folder}: no JSON file; give the folder with a file for each set")
    first: dict[str, Path] = {}
    for file in files:
        name = _set_in(file.stem)
        if not name:
            raise ArchiveError(
                f"{file}: the name must begin with one of the sets {', '.join(SETS)}; rename it"
            )
        if name in first:
            raise ArchiveError(
                f"{first[name]} and {file} both have the set {name}; give the files of one model"
            )
        first[name] = file
        yield _Part(name, _pairs_in(file))


def _file(path: Path) -> Iterator[_Part]:
    first = next(islice(read_values(path), 1), None)
    content = None if first is None else first.value
    if isinstance(content, Mapping) and not {BASIC, HALLUCINATION} & content.keys():
        yield from _sets_of(content, str(path))
    else:
        yield _Part(_set_in(path.stem), _pairs_in(path))


def _pairs_in(path: Path) -> Iterator[Record]:
    """Yield pairs; the general record reader would parse them as id -> record."""
    for position, placed in enumerate(read_values(path)):
        place = f"{path} line {placed.line}"
        if not isinstance(placed.value, Mapping):
            raise ArchiveError(
                f"{place}: expected a pair (a JSON object); found {placed.value!r:.60}"
            )
        yield Record(values=placed.value, position=position, place=place)


def _sets_of(content: Mapping[str, object], place: str) -> Iterator[_Part]:
    for key, held in content.items():
        name = _set_in(key)
        # A list of pairs, or an object id -> pair.
        pairs = list(held.values()) if isinstance(held, Mapping) else held
        if not name or not isinstance(pairs, Sequence) or isinstance(pairs, str):
            raise ArchiveError(
                f"{place}: {key!r:.60} is not a set with a list of pairs; sets are "
                f"{', '.join(SETS)}"
            )
        yield _Part(name, read_records(pairs))


def _set_in(text: str) -> str:
    """Return the set that a name begins with; empty if there is none.

    Files are named after their set, or the set and the model: ``fact_detect``, ``obj_rel_LLaVA``.
    """
    name = text.casefold().replace("-", "_")
    found = [alias for alias in _ALIASES if name == alias or name.startswith(f"{alias}_")]
    return _ALIASES[max(found, key=len)] if found else ""


class _Gathering:
    """Builds items from pairs and collects faults by kind."""

    def __init__(self, options: InputOptions, group_by: tuple[str, ...]) -> None:
        self._options = options
        self._group_by = tuple(key for key in group_by if key not in _OWN_FIELDS)
        self._faults = Faults(_REMEDIES)
        self._counts: dict[str, int] = {}
        self._text_key: str | None = None

    def read(self, parts: Iterator[_Part]) -> list[VideoHallucerItem]:
        """Return all pairs.

        Raises:
            ArchiveError: A pair can't be used; the message names all pairs with the same fault.
        """
        items = [
            item
            for part in parts
            for record in part.records
            if (item := self._item(part.name, record)) is not None
        ]
        self._faults.check()
        if not items:
            raise ArchiveError("the archive of answers has no pairs; give a record for each pair")
        return items

    def _item(self, part: str, record: Record) -> VideoHallucerItem | None:
        given = record.values.get("set")
        name = _set_in(given) if isinstance(given, str) else part
        if not name:
            self._faults.add(_NO_SET, record.place)
            return None
        number = self._counts[name] = self._counts.get(name, -1) + 1
        identifier = f"{name}/{number}"
        runs = self._runs(identifier, record.values)
        if runs is None:
            return None
        return VideoHallucerItem(
            id=identifier,
            # Some questions are duplicates with the halves of a video in the other order.
            group_id=min(run.video for run in runs.values()) or identifier,
            fields=fields_of(self._group_by, record.values),
            set_name=name,
            kind=_text(record.values.get("type")),
            runs=runs,
        )

    def _runs(
        self, identifier: str, pair: Mapping[str, object]
    ) -> dict[str, VideoHallucerRun] | None:
        runs = {}
        for role in (BASIC, HALLUCINATION):
            held = pair.get(role)
            if not isinstance(held, Mapping):
                self._faults.add(_NO_QUESTION, f"{identifier} ({role})")
                return None
            runs[role] = self._run(Record(values=held, position=0, place=identifier))
            if runs[role].label not in ("yes", "no"):
                self._faults.add(_BAD_LABEL, f"{identifier} ({role}: {runs[role].label:.40})")
                return None
        return runs

    def _run(self, record: Record) -> VideoHallucerRun:
        self._text_key = self._text_key or choose_key(
            record, self._options.text_key, _ANSWER_KEYS, "the answer", TEXT_FLAG
        )
        return VideoHallucerRun(
            response=text_of(record, self._text_key),
            label=_text(record.values.get("answer")).strip().rstrip(".").casefold(),
            question=_text(record.values.get("question")),
            video=_text(record.values.get("video")),
        )


_NO_SET = "pairs have no set"
_NO_QUESTION = "pairs lack a question"
_BAD_LABEL = "labels ('answer') are neither yes nor no"
_REMEDIES = {
    _NO_SET: f"Name the file after its set, or give each pair the key 'set': {', '.join(SETS)}",
    _NO_QUESTION: "Write each pair as an object with 'basic' and 'hallucination'",
    _BAD_LABEL: "Correct these labels",
}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def folder_files(folder: Path) -> tuple[Path, ...]:
    """Return the files of a folder that are named after a set."""
    return tuple(file for file in sorted(folder.glob("*.json")) if _set_in(file.stem))


READERS: Mapping[str, Reader] = {"video-hallucer": read_video_hallucer}
"""Metric -> its archive reader."""
