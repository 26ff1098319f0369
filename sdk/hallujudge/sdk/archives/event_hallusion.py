"""Answers, descriptions and judgements for EventHallusion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, TypeGuard

from hallujudge.metrics.event_hallusion import SPLITS, EventHallusionItem, EventQuestion

from ..errors import ArchiveError
from .inputs import InputOptions, ItemSource, Reader, References, Responses
from .joins import refuse
from .records import (
    Record,
    canonical_id,
    fields_of,
    no_records,
    optional_text,
    read_records,
    text_of,
)
from .table_files import structured

_Video: TypeAlias = "tuple[str, Mapping[str, object]]"
_DESCRIPTION_KEYS = ("desc", "description", "response")
_JUDGEMENT_KEYS = ("judgement", "judgment")
_ANSWER_KEYS = ("prediction", "response")
# What a description is compared with: in this split the unexpected event, else what happens.
_EVENT_KEYS = {"interleave": "unexpected"}


def read_event_hallusion(
    responses: Responses,
    references: References | None,
    options: InputOptions,
    group_by: tuple[str, ...],
) -> ItemSource:
    """Read videos of the released layout (split -> id -> video), or one record for each video.

    Args:
        responses: The archive; a video has ``qa`` (``question``, ``answer``, ``prediction``), and
            may have ``desc`` and ``judgement``.
        references: Must be None, since videos carry their labels.
        options: How the archive is read.
        group_by: Fields to group by.

    Raises:
        ArchiveError: A video can't be read, has no split, is a duplicate, or has a label that is
            neither yes nor no.
    """
    if references is not None:
        raise ArchiveError(
            "EventHallusion's videos carry their labels as 'answer'; leave the references out"
        )
    keys = tuple(key for key in group_by if key != "split")
    items = [_item(record, options, keys) for record in _videos(responses)]
    if not items:
        raise no_records(responses, "predictions", "video")
    _check(items)
    return ItemSource(count=len(items), make=lambda: iter(items), notes=_notes(items))


def _videos(responses: Responses) -> Iterator[Record]:
    """Yield one record for each video; in the layouts by split with its split."""
    for record in read_records(responses):
        held = list(_splits(record.values))
        if not held:
            yield record
        for split, videos in held:
            for key, video in videos:
                values = {"id": key, **video, "split": split}
                place = f"{record.place}, {key!r}"
                yield Record(values=values, position=record.position, place=place)


def _splits(values: Mapping[str, object]) -> Iterator[tuple[object, Iterator[_Video]]]:
    """Yield the splits that a record holds, each with its videos; a video holds none.

    A split is an object id -> video, as released, or a list of videos.
    """
    if "qa" in values:
        return
    videos = {key: video for key, video in values.items() if isinstance(video, Mapping)}
    if videos and len(videos) == len(values) - ("id" in values):
        yield values.get("id"), iter(videos.items())
    listed = values.get("text")
    if values.get("id") in SPLITS and _are_records(listed):
        yield values["id"], _numbered(listed)
    for split in SPLITS:
        if _are_records(found := values.get(split)):
            yield split, _numbered(found)


def _numbered(videos: Sequence[Mapping[str, object]]) -> Iterator[_Video]:
    return ((str(number), video) for number, video in enumerate(videos))


def _item(record: Record, options: InputOptions, group_by: tuple[str, ...]) -> EventHallusionItem:
    values = record.values
    identifier = canonical_id(values.get(options.id_key or "id"), record.place)
    described = (options.text_key,) if options.text_key else _DESCRIPTION_KEYS
    split = _split(record)
    return EventHallusionItem(
        id=identifier,
        group_id=optional_text(record, ("video", "group_id")) or identifier,
        fields=fields_of(group_by, values),
        split=split,
        questions=tuple(_questions(record)),
        response=_first_text(record, described),
        judgement=_first_text(record, _JUDGEMENT_KEYS),
        event=_event(record, split),
    )


def _event(record: Record, split: str) -> str:
    """Return what happens in a video, as the released prompt has it; empty if unknown."""
    about = structured(record.values.get("event_info"))
    found = about.get(_EVENT_KEYS.get(split, "caption")) if isinstance(about, Mapping) else None
    found = record.values.get("event") if found is None else found
    return found if isinstance(found, str) else ""


def _split(record: Record) -> str:
    split = record.values.get("split")
    if isinstance(split, str) and split.strip().casefold() in SPLITS:
        return split.strip().casefold()
    raise ArchiveError(
        f"{record.place}: the split is {split!r:.60}; give 'split' as one of {', '.join(SPLITS)}"
    )


def _questions(record: Record) -> Iterator[EventQuestion]:
    asked = structured(record.values.get("qa"))
    if asked is None:
        return
    if not _are_records(asked):
        raise ArchiveError(
            f"{record.place}: 'qa' must be a list of objects with 'question', 'answer' (the label) "
            f"and 'prediction'; found {asked!r:.60}"
        )
    for index, values in enumerate(asked):
        place = f"{record.place}, question {index + 1}"
        entry = Record(values=values, position=index, place=place)
        yield EventQuestion(
            question=optional_text(entry, ("question",)),
            label=_label(entry),
            response=_first_text(entry, _ANSWER_KEYS),
        )


def _are_records(value: object) -> TypeGuard[Sequence[Mapping[str, object]]]:
    return isinstance(value, (list, tuple)) and all(isinstance(entry, Mapping) for entry in value)


def _label(entry: Record) -> str:
    return optional_text(entry, ("answer", "label")).strip().rstrip(".").casefold()


def _first_text(record: Record, keys: Sequence[str]) -> str | None:
    """Return the text of the first key that a record has; None if there is none."""
    return next((text_of(record, key) for key in keys if key in record.values), None)


def _check(items: Sequence[EventHallusionItem]) -> None:
    seen: set[str] = set()
    twice = [item.id for item in items if item.id in seen or seen.add(item.id)]  # type: ignore[func-returns-value]  # add() is called for its effect
    if twice:
        raise refuse("duplicate videos", twice, "Remove the duplicates")
    wrong = [
        f"{item.id} ({question.label!r:.40})"
        for item in items
        for question in item.questions
        if question.label not in ("yes", "no")
    ]
    if wrong:
        raise refuse("labels are neither yes nor no", wrong, "Correct 'answer' of these questions")


def _notes(items: Sequence[EventHallusionItem]) -> tuple[str, ...]:
    """Return a note if descriptions were not judged."""
    open_ones = sum(item.response is not None and item.judgement is None for item in items)
    if not open_ones:
        return ()
    return (
        f"{open_ones} of {len(items)} descriptions have no judgement and do not count in "
        "description_accuracy",
    )


READERS: Mapping[str, Reader] = {"event-hallusion": read_event_hallusion}
"""Metric -> its archive reader."""
