"""Items as a run saves them: lines of ``items.jsonl``, and the items of its HTML page.

The items of one metric are saved for the page as MessagePack, in a tenth of the time of protobuf
messages. msgspec reads values back by the types of their fields. It can't distinguish the members
of a union, as in claims; those items are saved as messages.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from hallujudge.metrics import AnswersItem, Item, ItemResult, Outcome, Report
from hallujudge.metrics.framework.fast_values import maker_of
from hallujudge.metrics.framework.file_schemas import schema_of
from hallujudge.metrics.framework.results import JsonValue

from ..errors import ArchiveError
from ..report.page import HtmlPage, Images, PageAbout
from ..report.page.page_parts import KEPT_PAGE_ITEMS, MOST_PAGE_ITEMS
from .manifest import JOURNAL

if TYPE_CHECKING:
    from msgspec import Raw
    from msgspec.json import Encoder

    from .manifest import Manifest
    from .score_run import SaveOptions


_ItemT = TypeVar("_ItemT", bound=Item)

_WHOLE, _UNSCORED = {int}, Outcome.UNSCORED
_LINE = (
    *("id", "group_id", "outcome", "reason", "detail", "fields", "question_hash", "reference_hash"),
    *("scores", "statistics", "response", "response_sha256", "evidence"),
)
"""The keys of a line, in their order; :meth:`ItemResult.head` has the first of them."""
# The fields of a result in the order of a row; `_row` and `_result_of` depend on it.
_NAMES = (
    *("id", "group_id", "outcome", "reason", "detail", "question_hash", "reference_hash"),
    *("statistics", "scores", "evidence", "fields"),
)
# The first byte of a batch: saved as MessagePack values or as protobuf messages.
_VALUES, _MESSAGES = b"v", b"m"
_SIZE_BYTES = 4
# A damaged journal must not decompress to more than this.
_MOST_BYTES = 1 << 30


def item_lines(
    pairs: Iterable[tuple[Item, ItemResult]], statistics: tuple[str, ...], *, keep_text: bool
) -> bytes:
    """Return a line for each item, with everything that its report is computed from.

    Args:
        pairs: The scored items with their results.
        statistics: Names of the results' statistics.
        keep_text: Whether responses are written; otherwise their SHA-256 is.

    Raises:
        ValueError: A statistic or score is not a finite number.
    """
    # All results live until their lines are encoded, as _KnownJson needs it.
    held, known, lines = list(pairs), _KnownJson(statistics), []
    # Its values are encoded in two thirds of the time of a dict.
    line, absent = _line_type()
    for item, result in held:
        key = id(result.scores), id(result.statistics), id(result.evidence)
        scores, numbers, evidence = known.made.get(key) or known.parts(key, result)
        said = response_of(item)
        why, own = (absent, absent), result.fields
        if result.outcome is _UNSCORED:
            # The detail may quote the response.
            why = result.reason, result.detail if keep_text else ""
        lines.append(
            line(
                *(result.id, result.group_id, result.outcome, *why),
                # Sorted, since protobuf maps have no order.
                (dict(sorted(own.items())) if len(own) > 1 else own) if own else absent,
                result.question_hash or absent,
                result.reference_hash or absent,
                scores,
                numbers,
                said if keep_text else absent,
                absent if keep_text else _hashed(said),
                evidence,
            )
        )
    return _encoder().encode_lines(lines)


@cache
def _line_type() -> tuple[Callable[..., object], object]:
    """Return the class of lines, with its fields in their order, and the value of absent ones."""
    # Imported here because only runs that write lines need it.
    from msgspec import UNSET, defstruct

    fields = [(name, object, UNSET) for name in _LINE]
    return defstruct("ItemLine", fields, gc=False), UNSET


class _KnownJson:
    """JSON of what many items of a batch share, since equal answers have one outcome.

    Args:
        names: Names of the results' statistics.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        # By identity: the results live as long as their batch.
        self._known: dict[int, object] = {}
        self.made: dict[tuple[int, int, int], tuple[object, object, object]] = {}
        """What :meth:`parts` returned of results that repeat, by the identity of their parts."""

    def parts(self, key: tuple[int, int, int], result: ItemResult) -> tuple[object, object, object]:
        """Return the scores, the statistics and the evidence of a result.

        Args:
            key: The identity of these three.
            result: The result.

        Raises:
            ValueError: A number is not finite.
        """
        made = (*self._numbers(result), self._evidence(result))
        if dict not in map(type, made):
            self.made[key] = made
        return made

    def _evidence(self, result: ItemResult) -> object:
        if (evidence := result.evidence) is None:
            return {}
        return self._again(id(evidence)) or self._first(id(evidence), evidence.to_json())

    def _again(self, key: int) -> object:
        """Return what another item has too, as JSON from the second time on; None if it is new."""
        known = self._known.get(key)
        if type(known) is dict:
            # What one item alone has is encoded with its line, which is faster.
            known = self._known[key] = _raw(known)
        return known

    def _first(self, key: int, value: dict[str, Any]) -> object:
        self._known[key] = value
        return value

    def _numbers(self, result: ItemResult) -> tuple[object, object]:
        numbers, scores = result.statistics, result.scores
        known, own = self._again(id(numbers)), self._again(id(scores))
        if known is not None and own is not None:
            return own, known
        # A set of types takes half the time of a loop, and most metrics count.
        whole = set(map(type, numbers)) == _WHOLE
        _refuse_infinite(result, () if whole else numbers)
        plain = numbers if whole else [n if type(n) is int else _plain(n) for n in numbers]
        named = dict(zip(self._names, plain, strict=bool(numbers)))
        return own or self._first(id(scores), dict(scores)), self._first(id(numbers), named)


def _raw(value: object) -> Raw:
    # Imported here because only runs that write lines need it.
    from msgspec import Raw

    return Raw(_encoder().encode(value))


def signed_lines(lines: bytes, signature: str) -> bytes:
    """Return whole lines with schema and signature; the signature is known when a run ends."""
    # JSON escapes line feeds within texts. One byte is found in a quarter of the time of two.
    return _end(signature).join([line[:-1] for line in lines.split(b"\n")])


def unsigned_lines(lines: bytes, signature: str) -> bytes:
    """Return whole lines without what :func:`signed_lines` adds."""
    return lines.replace(_end(signature), b"}\n")


def _end(signature: str) -> bytes:
    schema, signed = map(_encoder().encode, (schema_of("item"), signature))
    return b',"schema":%b,"signature":%b}\n' % (schema, signed)


def response_of(item: Item) -> str | Mapping[str, str | None] | None:
    """Return an item's response; for items with several answers, name -> response."""
    if not isinstance(item, AnswersItem):
        response = getattr(item, "response", None)
        return response if isinstance(response, str) else None
    answers = item.answers
    if len(answers) > 1:
        return {answer.name: answer.response for answer in answers}
    return answers[0].response if answers else None


def _hashed(response: str | Mapping[str, str | None] | None) -> JsonValue:
    if isinstance(response, Mapping):
        return {name: _hashed(text) for name, text in response.items()}
    if response is None:
        return None
    return hashlib.sha256(response.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(number: float) -> int | float:
    """Return a whole number without its point."""
    if type(number) is int:
        return number
    return int(number) if float(number).is_integer() else number


def _refuse_infinite(result: ItemResult, statistics: Sequence[float]) -> None:
    """Refuse numbers that JSON does not have; the encoder would write null."""
    # A sum is finite only if all its parts are. Undefined scores are left out, as are zeros.
    if not math.isfinite(sum(filter(None, result.scores.values()), sum(statistics))):
        raise ValueError(f"item {result.id!r} has a score or statistic that is not finite")


def builtin_value(value: object) -> object:
    """Return a number or mapping of another library as msgspec encodes it.

    Raises:
        NotImplementedError: It is neither.
    """
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, float):
        return float(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON")


@cache
def _encoder() -> Encoder:
    # Imported here because only runs that write lines need it.
    from msgspec.json import Encoder

    return Encoder(enc_hook=builtin_value)


_fields_of = attrgetter(*_NAMES)
_result = maker_of(ItemResult, _NAMES)


class _Codec(NamedTuple):
    """How items and results are written and read."""

    write: Callable[[object], bytes]
    read: Callable[[bytes], Any]


def to_values(pairs: Sequence[tuple[Item, ItemResult]]) -> bytes | None:
    """Return items and results as MessagePack, or None if they must be saved as messages."""
    items: set[type] = {type(item) for item, _ in pairs}
    found = (result.evidence for _, result in pairs)
    kinds: set[type] = {type(evidence) for evidence in found if evidence is not None}
    if len(items) != 1 or len(kinds) > 1:
        return None
    (item_type,), evidence = items, next(iter(kinds), type(None))
    codec = _codec(item_type, evidence)
    if codec is None:
        return None
    names = f"{item_type.__name__} {evidence.__name__}\n".encode()
    return names + codec.write([(item, _row(result)) for item, result in pairs])


def _row(result: ItemResult) -> tuple[object, ...]:
    """Return the fields of a result; statistics are floats, as they are after the wire.

    The page shows the first score of an item: pairs keep their order, a mapping does not.
    """
    *before, statistics, scores, evidence, fields = _fields_of(result)
    return (*before, tuple(map(float, statistics)), tuple(scores.items()), evidence, fields)


def _result_of(row: tuple[Any, ...]) -> ItemResult:
    *before, scores, evidence, fields = row
    return _result((*before, dict(scores), evidence, fields))


def damaged_items(cause: Exception) -> ArchiveError:
    """Return the error for items that can't be read. Torn records were found by their checksum."""
    return ArchiveError(
        f"{JOURNAL} holds items that this release can't read ({cause}); score the responses again"
    )


def from_values(data: bytes) -> Iterator[tuple[Item, ItemResult]]:
    """Yield the items and results of their bytes.

    Raises:
        ArchiveError: The data is damaged, or of another release.
    """
    from msgspec import MsgspecError

    names, _, content = data.partition(b"\n")
    item, _, evidence = names.decode(errors="replace").partition(" ")
    try:
        codec = _codec(_type_named(item), _type_named(evidence))
        rows = codec.read(content) if codec is not None else ()
    except (KeyError, MsgspecError) as err:
        raise damaged_items(err) from err
    for made, values in rows:
        yield made, _result_of(values)


def _type_named(name: str) -> type:
    from hallujudge.judge_service.wire import type_named

    return type(None) if name == type(None).__name__ else type_named(name)


@cache
def _codec(item_type: type, evidence: type) -> _Codec | None:
    """Return how values of two types are written and read; None if msgspec can't read one."""
    from msgspec.msgpack import Decoder, Encoder

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
    ]
    try:
        decoder: Any = Decoder(list[tuple[item_type, row]])  # type: ignore[valid-type]
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
    if not _within(first, html=options.html) or not _are_known(pairs):
        return b""
    kept = pairs
    if not options.keep_text:
        kept = [(_without_text(item), result) for item, result in pairs]
    values = to_values(kept)
    content = _VALUES + values if values is not None else _MESSAGES + to_messages(kept)
    # Level 1 takes a third of the time of level 6 for nearly the same size.
    return zlib.compress(content, 1)


def _are_known(pairs: Sequence[tuple[Item, ItemResult]]) -> bool:
    from hallujudge.judge_service.wire import has_messages

    return all(has_messages(item) for item, _ in pairs)


def to_messages(pairs: Sequence[tuple[Item, ItemResult]]) -> bytes:
    """Return items and results as protobuf messages, which keep every field of both."""
    from hallujudge.judge.v1 import judge_service_pb2 as pb
    from hallujudge.judge_service.wire.convert import item_to_proto, result_to_proto

    batch = pb.ItemBatch(items=[item_to_proto(item) for item, _ in pairs])
    outcomes = pb.ResultBatch(results=[result_to_proto(result) for _, result in pairs])
    # Without this, the order of maps differs between processes.
    items = batch.SerializeToString(deterministic=True)
    results = outcomes.SerializeToString(deterministic=True)
    return len(items).to_bytes(_SIZE_BYTES, "little") + items + results


def kept_shown(shown: bytes, first: int, *, html: bool) -> bytes:
    """Return the saved items of another run's part that this run keeps.

    Args:
        shown: What the other run kept.
        first: Position of the part's first item in this run.
        html: Whether a page was asked for.
    """
    return shown if _within(first, html=html) else b""


def _within(first: int, *, html: bool) -> bool:
    return first < (MOST_PAGE_ITEMS if html else KEPT_PAGE_ITEMS)


def shown_items(data: bytes) -> Iterator[tuple[Item, ItemResult]]:
    """Yield the items and results of a batch.

    Raises:
        ArchiveError: The data is damaged, or of another release.
    """
    if not data:
        return
    try:
        content = zlib.decompressobj().decompress(data, _MOST_BYTES)
    except zlib.error as err:
        raise damaged_items(err) from err
    read = from_values if content[:1] == _VALUES else from_messages
    yield from read(content[1:])


def from_messages(content: bytes) -> Iterator[tuple[Item, ItemResult]]:
    """Yield the items and results of :func:`to_messages`.

    Raises:
        ArchiveError: The content is damaged.
    """
    from google.protobuf.message import DecodeError

    from hallujudge.judge.v1 import judge_service_pb2 as pb
    from hallujudge.judge_service.wire.convert import item_from_proto, result_from_proto

    end = _SIZE_BYTES + int.from_bytes(content[:_SIZE_BYTES], "little")
    try:
        items = pb.ItemBatch.FromString(content[_SIZE_BYTES:end]).items
        results = pb.ResultBatch.FromString(content[end:]).results
    except DecodeError as err:
        raise damaged_items(err) from err
    for item, result in zip(items, results, strict=True):
        yield item_from_proto(item), result_from_proto(result)


def _without_text(item: _ItemT) -> _ItemT:
    """Return an item without what the model wrote."""
    changes: dict[str, Any] = {}
    for entry in fields(item):
        value = getattr(item, entry.name)
        if entry.name == "response":
            changes["response"] = None
        elif entry.name == "answers":
            changes["answers"] = tuple(answer._replace(response=None) for answer in value)
        elif entry.name == "questions":
            changes["questions"] = tuple(replace(question, response=None) for question in value)
    return replace(item, **changes)


def render_page(
    report: Report,
    shown: Iterable[bytes],
    about: PageAbout | None = None,
    images: Images | None = None,
) -> str:
    """Return the page of a report.

    Args:
        report: The report.
        shown: The saved items of each part.
        about: Title, inputs and baseline.
        images: Where pictures come from; None for no pictures.
    """
    return _page_of(shown).render(report, about, images)


def page_parts(shown: Iterable[bytes]) -> Sequence[bytes]:
    """Return what a page of several runs shows of a run's items."""
    return _page_of(shown).parts()


def _page_of(shown: Iterable[bytes]) -> HtmlPage:
    page = HtmlPage()
    for part in shown:
        for item, result in shown_items(part):
            page.add(item, result)
    return page


def about_of(manifest: Manifest | None) -> PageAbout:
    """Return title and inputs of a page from a manifest: the responses' file, and the hashes."""
    if manifest is None:
        return PageAbout()
    inputs = tuple(_named_inputs(manifest.inputs))
    title = next((file for name, file, _ in inputs if name == "responses"), "")
    return PageAbout(
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
