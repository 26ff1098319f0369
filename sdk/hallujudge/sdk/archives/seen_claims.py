"""Responses about pictures or videos, or their claims with verdicts, for seen claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from hallujudge.metrics.framework.claims import (
    SEEN_CHOICES,
    ClaimParts,
    Sentence,
    TripletError,
    triplet_of,
)
from hallujudge.metrics.framework.json_values import well_formed
from hallujudge.metrics.framework.metric import InputOption
from hallujudge.metrics.seen_claims import SeenClaim, SeenClaimsItem

from ..errors import ArchiveError
from ..media.media_files import IMAGE_SUFFIXES, VIDEO_SUFFIXES, MediaError
from ..media.pictures import hash_of_all
from .archive_keys import refuse_other_texts
from .bad_records import noted
from .inputs import DeclaredInputs, ItemSource, Reader, ReaderInput, References, uses
from .joins import IdCheck, numbering
from .json_files import named, shown
from .record_fields import fields_of
from .record_values import (
    ID_FLAG,
    TEXT_FLAG,
    canonical_id,
    choose_key,
    optional_text,
    response_text,
    structured,
)
from .records import Record, Records, first_record, read_records
from .shown_pictures import (
    IMAGE_KEYS,
    OWN_ID_KEYS,
    PicturesOfIds,
    ShownRecords,
    pictures_of_ids,
    unshown,
)

_TEXT_KEYS = ("response", "answer", "text", "output", "prediction", "caption", "description")
_QUESTION_KEYS = ("question", "prompt")
_CLAIMS = "claims"
_CLAIM, _VERDICT = "claim", "verdict"


def read_seen_claims(given: ReaderInput) -> ItemSource:
    """Return responses with their pictures, or claims that came with verdicts.

    Read are records with ``image`` (or ``video``, ``image_id`` …) and ``response`` or ``claims``.
    A claim is a list of three texts, a sentence, or an object with ``claim`` and ``verdict``. The
    references, if there are any, say which picture a response is about, id -> picture, or where the
    objects of pictures are.

    Raises:
        ArchiveError: A file or picture can't be read, or ids are missing, duplicate or unknown.
        InvalidInputError: The folder of pictures can't be read.
    """
    return _Responses(given).checked()


READERS: Mapping[str, Reader] = {"seen-claims": read_seen_claims}
"""Metric -> its archive reader."""
INPUTS: Mapping[str, DeclaredInputs] = {
    "seen-claims": uses(
        "id_key",
        "allow_unknown",
        "allow_duplicates",
        own=(
            InputOption(
                name="images",
                kind="folder",
                meaning="Folder of the pictures and videos.",
            ),
            InputOption(
                name="fetch",
                named="fetch-images",
                kind="text",
                meaning="Hosts to fetch pictures from, or public.",
            ),
            InputOption(
                name="frames",
                kind="set",
                meaning="Frames of videos, which the metric's option of this name sets.",
            ),
            InputOption(
                name="moments",
                kind="set",
                meaning="Frames of moments, which the metric's option of this name sets.",
            ),
            InputOption(
                name="views",
                kind="set",
                meaning="Crops of objects, which the metric's option of this name sets.",
            ),
        ),
    )
}
"""Metric -> what its reader takes."""
MAPPED_KEYS = frozenset((*IMAGE_KEYS, *_QUESTION_KEYS, *OWN_ID_KEYS, _CLAIMS))
"""Keys that may be mapped, those of id and response apart."""


def reference_ids(references: References) -> list[str]:
    """Return the ids of a file of pictures, before any response is known."""
    return list(pictures_of_ids(references).pictures or ())


def _is_file_name(value: object) -> bool:
    """Return whether an id is a picture's own name; a number may be that of a line."""
    return isinstance(value, str) and Path(value).suffix.lower() in IMAGE_SUFFIXES | VIDEO_SUFFIXES


class _Responses:
    """An archive of responses, read once to check it and once to score it."""

    def __init__(self, given: ReaderInput) -> None:
        options = given.options
        known = PicturesOfIds()
        if given.references is not None:
            known = pictures_of_ids(given.references)
        self._records = Records(lambda: read_records(given.responses))
        self._options = options
        self._group_by = given.group_by
        first = first_record(self._records, given.responses, "response")
        self._id_key = options.id_key or next((k for k in OWN_ID_KEYS if k in first.values), None)
        self._image_key = next((key for key in IMAGE_KEYS if key in first.values), None)
        # Archives of captions often have the file's name as their only id.
        if self._image_key is None and _is_file_name(first.values.get("id")):
            self._image_key = "id"
        if self._id_key is None and self._image_key is None:
            choose_key(first, None, (*OWN_ID_KEYS, *IMAGE_KEYS), "the picture", ID_FLAG)
        self._text_key = self._find_text_key(first)
        self._shown = ShownRecords(known, options, self._image_key, self._id)

    def _find_text_key(self, first: Record) -> str | None:
        found = [key for key in _TEXT_KEYS if key in first.values]
        if _CLAIMS in first.values and not found and self._options.text_key is None:
            return None
        flag = f"{TEXT_FLAG}; or give claims under {_CLAIMS!r}"
        key = choose_key(first, self._options.text_key, _TEXT_KEYS, "the response", flag)
        refuse_other_texts(self._records, key, _TEXT_KEYS, self._options)
        return key

    def checked(self) -> ItemSource:
        """Return the items after checking every id, claim and picture."""
        ids = IdCheck()
        missing: dict[str, str] = {}
        digests: list[str] = []
        if self._shown.looks_for:
            self._shown.expect(self._records)
        self._shown.check_extras(self._records)
        judged = False
        for record in self._records:
            with noted(record.position, record.place):
                identifier = self._id(record)
                ids.add(identifier)
                claims = self._claims(record)
                # A null response is an unscored item; a record without the key is a wrong archive.
                if claims is None and (self._text_key or _CLAIMS) not in record.values:
                    raise self._nothing_said(record)
                # For its errors alone: the text is read again with its item.
                self._text(record)
                judged = judged or any(each.verdict for each in claims or ())
                digests.append(self._digest(record, identifier, missing))
        ids.refuse_duplicates("duplicate ids", self._options, self._ids)
        # Verdicts that came with the claims need no picture.
        seen = self._shown.looks_for or not judged
        if seen and missing and not self._options.allow_unknown:
            raise unshown(missing)
        return ItemSource(
            count=len(ids), make=self._items, shown_sha256=hash_of_all(digests) if seen else ""
        )

    def _nothing_said(self, record: Record) -> ArchiveError:
        tried = ", ".join(filter(None, (self._text_key, _CLAIMS)))
        return ArchiveError(
            f"{record.place}: neither a response nor claims: tried {tried}; found "
            f"{named(sorted(record.values)) or 'none'}. Give every record one of them"
        )

    def _digest(self, record: Record, identifier: str, missing: dict[str, str]) -> str:
        """Return the hash of a record's picture; note why there is none."""
        try:
            return self._shown.digest(record)
        except MediaError as err:
            missing[identifier] = str(err)
            return ""

    def _items(self) -> Iterator[SeenClaimsItem]:
        unique = numbering(self._options)
        for record in self._records:
            text, claims = self._text(record), self._claims(record)
            # Moments and objects that the response or a claim names are shown more closely.
            said = (text or "", *(" ".join(each.claim) for each in claims or ()))
            found = self._shown.of(record, said)
            yield SeenClaimsItem(
                id=unique(self._id(record)),
                group_id=self._shown.group_of(record),
                fields=fields_of(self._group_by, record.values),
                question=optional_text(record, _QUESTION_KEYS),
                response=text,
                claims=claims,
                pictures=found.pictures,
                problem=found.problem,
                seconds=found.seconds,
                looks=found.looks,
            )

    def _ids(self) -> Iterator[str]:
        return map(self._id, self._records)

    def _id(self, record: Record) -> str:
        if self._id_key is not None:
            key = self._id_key if self._id_key in record.values else ""
            if not key:
                # It raises the error that names the keys of the record.
                choose_key(record, self._id_key, (), "the id", ID_FLAG)
            return canonical_id(record.values[key], record.place)
        key = self._image_key or ""
        image, question = record.values.get(key), optional_text(record, _QUESTION_KEYS)
        # A picture with several questions has a record for each, so the question is part of the id.
        name = canonical_id(self._shown.name_in(image), record.place)
        return f"{name}: {question}" if question else name

    def _text(self, record: Record) -> str | None:
        return None if self._text_key is None else response_text(record, self._text_key)

    def _claims(self, record: Record) -> tuple[SeenClaim, ...] | None:
        value = structured(record.values.get(_CLAIMS))
        if value is None:
            return None
        place = f"{record.place}, {_CLAIMS}"
        if not isinstance(value, list | tuple):
            raise ArchiveError(f"{place}: expected a list of claims, found {shown(value)}")
        return tuple(_claim_of(entry, f"{place}[{at}]") for at, entry in enumerate(value))


def _claim_of(entry: object, place: str) -> SeenClaim:
    """Return a claim: three texts, a sentence, or an object with a claim and its verdict."""
    if not isinstance(entry, Mapping):
        return SeenClaim(claim=_parts_of(entry, place))
    if not {_CLAIM, _VERDICT} <= entry.keys():
        raise ArchiveError(
            f"{place}: an object of a claim has the keys {_CLAIM} and {_VERDICT}; found "
            f"{named(sorted(map(str, entry))) or 'none'}"
        )
    said = entry[_VERDICT]
    if said is not None and said not in SEEN_CHOICES:
        raise ArchiveError(
            f"{place}: the verdict is {shown(said)}; write {', '.join(SEEN_CHOICES)} or null"
        )
    return SeenClaim(claim=_parts_of(entry[_CLAIM], place), verdict=said or "")


def _parts_of(entry: object, place: str) -> ClaimParts:
    if isinstance(entry, str):
        return Sentence(well_formed(entry.strip()))
    try:
        return triplet_of(entry)
    except TripletError as err:
        raise ArchiveError(f"{place}: {err}") from err
