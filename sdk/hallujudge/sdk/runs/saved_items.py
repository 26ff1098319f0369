"""Items as a run saves them for its HTML page.

The items of one metric are saved for the page as MessagePack, in a tenth of the time of protobuf
messages. msgspec reads values back by the types of their fields. It can't distinguish the members
of a union, as in claims; those items are saved as messages.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from msgspec import MsgspecError, structs
from msgspec.msgpack import Decoder, Encoder

from hallujudge.judge_service.wire import has_messages, type_named
from hallujudge.metrics import Item, ItemResult, Outcome

from .. import runs
from ..archives.inputs import InputOptions, own_paths
from ..errors import ArchiveError, InvalidInputError
from ..report import page as pages
from ..report.page import MOST_PAGE_ITEMS
from .item_lines import builtin_value
from .manifest import JOURNAL

if TYPE_CHECKING:
    from ..report.page import HtmlPage, Images, PageAbout
    from .manifest import Manifest
    from .score_run import SaveOptions


_ItemT = TypeVar("_ItemT", bound=Item)

# The fields of a result in the order of a row; `_row` and `_result_of` depend on it.
_NAMES = (
    *("id", "group_id", "outcome", "reason", "detail", "question_hash", "reference_hash"),
    *("statistics", "scores", "evidence", "fields", "traits", "kept", "thought"),
)
# The first byte of a batch: saved as MessagePack values, or as protobuf messages, which take four
# times as long.
_VALUES, _MESSAGES = b"v", b"m"
# Items that a run without a page saves for a later one. Saving one costs about 8 µs and 300 bytes,
# which a large run would waste.
_KEPT_ITEMS = 10_000
# A damaged journal must not decompress to more than this.
_MOST_BYTES = 1 << 30


# The pictures that a judge was shown, whose hashes evidence has, and the words of AMBER's table,
# which are the same 3 KB for each of its descriptions.
_NOT_SHOWN = frozenset({"pictures", "vocabulary"})

_fields_of = attrgetter(*_NAMES)


class _Codec(NamedTuple):
    """How items and results are written and read."""

    write: Callable[[object], bytes]
    read: Callable[[bytes], Any]


def _row(result: ItemResult) -> tuple[object, ...]:
    """Return the fields of a result; statistics are floats, as they are after the wire.

    The page shows the first score of an item: pairs keep their order, a mapping does not.
    """
    *before, statistics, scores, evidence, fields, traits, kept, _ = _fields_of(result)
    numbers, pairs = tuple(map(float, statistics)), tuple(scores.items())
    return (*before, numbers, pairs, evidence, fields, traits, kept)


def _result_of(row: tuple[Any, ...]) -> ItemResult:
    *before, scores, evidence, fields, traits, kept = row
    found = (*before, dict(scores), evidence, fields, traits, kept)
    return ItemResult(**dict(zip(_NAMES, found, strict=False)))


def _from_values(data: bytes) -> Iterator[tuple[Item, ItemResult]]:
    """Yield the items and results of their bytes.

    Raises:
        KeyError: They are of a type that this release does not know.
        MsgspecError: The data is damaged.
    """
    names, _, content = data.partition(b"\n")
    item, _, evidence = names.decode(errors="replace").partition(" ")
    codec = _codec(_type_named(item), _type_named(evidence))
    for made, values in codec.read(content) if codec is not None else ():
        yield made, _result_of(values)


def _type_named(name: str) -> type:
    return type(None) if name == type(None).__name__ else type_named(name)


@cache
def _codec(item_type: type, evidence: type) -> _Codec | None:
    """Return how values of two types are written and read; None if msgspec can't read one."""
    row: Any = tuple[
        str,
        str,
        Outcome,
        str,
        str,
        str,
        str,
        tuple[float, ...],
        tuple[tuple[str, float | None], ...],
        evidence | None,  # type: ignore[valid-type]  # a type that is known here only
        dict[str, str],
        dict[str, int],
        tuple[float, ...],
    ]
    try:
        decoder: Any = Decoder(list[tuple[item_type, row]])  # type: ignore[valid-type]
    # msgspec raises it for a union whose members it can't tell apart.
    except TypeError:
        return None
    # Mappings from a server may have another order.
    return _Codec(Encoder(enc_hook=builtin_value, order="deterministic").encode, decoder.decode)


def pack_shown(pairs: Sequence[tuple[Item, ItemResult]], first: int, options: SaveOptions) -> bytes:
    """Return the items and results of a batch that a page shows, with every field.

    Args:
        pairs: Items with their results.
        first: Position of the first one in the run. The page shows the first items only.
        options: Whether responses are kept, and whether a page was requested. Without one, fewer
            items are kept for a later page.

    Returns:
        The items and results, compressed; nothing beyond what the page shows.
    """
    kinds = {type(item) for item, _ in pairs}
    if not _within(first, html=options.html) or not all(map(has_messages, kinds)):
        return b""
    have_more = any(not _NOT_SHOWN.isdisjoint(kind.__struct_fields__) for kind in kinds)
    kept = without(pairs, *_NOT_SHOWN) if have_more else pairs
    if not options.keep_text:
        kept = [(_without_text(item), result) for item, result in kept]
    found = (result.evidence for _, result in kept)
    evidences: set[type] = {type(each) for each in found if each is not None}
    # A result within a result has a type that the other items do not have.
    alike = len(kinds) == 1 and len(evidences) < 2 and not any(r.thought for _, r in kept)
    evidence = next(iter(evidences), type(None))
    codec = _codec(*kinds, evidence) if alike else None
    if codec is None:
        content = _MESSAGES + runs.scored_bytes(kept)
    else:
        names = " ".join(kind.__name__ for kind in (*kinds, evidence))
        rows = [(item, _row(result)) for item, result in kept]
        content = b"%b%b\n%b" % (_VALUES, names.encode(), codec.write(rows))
    # Level 1 takes a third of the time of level 6 for nearly the same size.
    return zlib.compress(content, 1)


def kept_shown(shown: bytes, first: int, *, html: bool) -> bytes:
    """Return the saved items of another run's part that this run keeps.

    Args:
        shown: What the other run kept.
        first: Position of the part's first item in this run.
        html: Whether a page was asked for.
    """
    return shown if _within(first, html=html) else b""


def _within(first: int, *, html: bool) -> bool:
    return first < (MOST_PAGE_ITEMS if html else _KEPT_ITEMS)


def shown_items(data: bytes) -> Iterator[tuple[Item, ItemResult]]:
    """Yield the items and results of a batch.

    Raises:
        ArchiveError: The data is damaged, or of another release.
    """
    if not data:
        return
    try:
        content = zlib.decompressobj().decompress(data, _MOST_BYTES)
        # The first byte decides, so that one journal may hold parts of both kinds.
        read = _from_values if content[:1] == _VALUES else runs.scored_of
        yield from read(content[1:])
    except (zlib.error, KeyError, MsgspecError, ValueError) as err:
        # Torn records were found by their checksum.
        raise ArchiveError(
            f"{JOURNAL} holds items that this release can't read ({err}); score the responses again"
        ) from err


def without(pairs: Iterable[tuple[Item, ItemResult]], *names: str) -> list[tuple[Item, ItemResult]]:
    """Return items without the values of some fields, where they have them.

    Args:
        pairs: Items with their results.
        names: Fields that hold several values.
    """
    found: list[tuple[Item, ItemResult]] = []
    for item, result in pairs:
        none: dict[str, Any] = {name: () for name in names if getattr(item, name, ())}
        found.append((structs.replace(item, **none) if none else item, result))
    return found


def _without_text(item: _ItemT) -> _ItemT:
    """Return an item without what the model wrote."""
    changes: dict[str, Any] = {}
    for name in item.__struct_fields__:
        value = getattr(item, name)
        if name == "response":
            changes["response"] = None
        elif name == "answers":
            changes["answers"] = tuple(structs.replace(answer, response=None) for answer in value)
        elif name == "questions":
            changes["questions"] = tuple(replace(question, response=None) for question in value)
    return structs.replace(item, **changes)


def page_of(shown: Iterable[bytes]) -> HtmlPage:
    """Return the page of the saved items of a run's parts, to be rendered or taken apart."""
    page = pages.HtmlPage()
    for part in shown:
        for item, result in shown_items(part):
            page.add(item, result)
    return page


def pictures_of(manifest: Manifest | None, page: Path) -> Images:
    """Return links to the pictures that a run's judge was shown, if they are where they were.

    They are not embedded: a run of somebody else could name a folder of private pictures.

    Args:
        manifest: The run's manifest.
        page: Folder of the page.
    """
    if manifest is None:
        return pages.Images()
    # Only a folder of its reader's is one of pictures.
    options = InputOptions(own=manifest.run.get("inputs", {}))
    folders = map(str, own_paths(manifest.metric, options, "folder").values())
    known = next((folder for folder in folders if Path(folder).is_dir()), "")
    try:
        return pages.Images.of(known, page=page)
    except InvalidInputError:  # too many files: a run that was paid for gets its page all the same
        return pages.Images()


def about_of(manifest: Manifest | None) -> PageAbout:
    """Return title and inputs of a page from a manifest: the responses' file, and the hashes."""
    if manifest is None:
        return pages.PageAbout()
    inputs = tuple(_named_inputs(manifest.inputs))
    title = next((file for name, file, _ in inputs if name == "responses"), "")
    return pages.PageAbout(
        title=title,
        inputs=tuple((f"{n}: {f}", digest) for n, f, digest in inputs),
        card=str(manifest.settings.get("option.card", "")),
    )


def _named_inputs(inputs: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Yield name, file name and SHA-256 of each file; the page does not show folders."""
    for name, described in inputs.items():
        path, digest = described.get("path"), described.get("sha256")
        if isinstance(path, str) and isinstance(digest, str):
            yield name, Path(path).name, digest
