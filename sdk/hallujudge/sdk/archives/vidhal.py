"""Choices and caption orders for VidHal, with the captions and their display order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from hallujudge.metrics.framework.claims import well_formed
from hallujudge.metrics.vidhal import VidhalItem

from ..errors import ArchiveError
from .inputs import InputOptions, ItemSource, Reader, References, Responses
from .joins import JoinCheck, answers_of, numbered, read_mapping, refuse
from .json_files import named
from .records import (
    ID_FLAG,
    TEXT_FLAG,
    Record,
    canonical_id,
    choose_key,
    fields_of,
    no_records,
    optional_text,
    read_records,
    shown,
    text_of,
)
from .table_files import structured

_VIDEO_KEYS = ("video", "video_id", "id")
_ANSWER_KEYS = ("response", "prediction", "answer", "order", "output", "text")


class _Video(NamedTuple):
    captions: tuple[str, ...]
    record: Mapping[str, object]


def read_vidhal(
    responses: Responses,
    references: References | None,
    options: InputOptions,
    group_by: tuple[str, ...],
) -> ItemSource:
    """Return answers joined with the captions of their videos and the display order.

    Raises:
        ArchiveError: See :func:`read_items`; also without a display order, or with one that does
            not fit the captions.
    """
    if options.display is None:
        raise ArchiveError(
            "VidHal's answers are letters, and the display order of the captions is missing: "
            "give its file with InputOptions(display=…) (video -> letter -> rank)"
        )
    display = _read_display(options.display)
    videos = None if references is None else _read_videos(references)
    if videos is not None:
        _check_display(display, videos)
    source = _Answers(responses, videos, display, options, group_by).checked()
    return replace(source, notes=(*_more_displays(display, videos), *source.notes))


def _read_display(source: object) -> dict[str, dict[str, int]]:
    content = read_mapping(source, "display orders")  # type: ignore[arg-type]  # checked by the caller's type
    display: dict[str, dict[str, int]] = {}
    odd: list[str] = []
    for video, letters in content.items():
        ranks = _ranks(letters)
        if ranks is None:
            odd.append(video)
        else:
            display[video] = ranks
    if odd:
        raise refuse(
            "display orders that are not a permutation of the ranks",
            odd,
            'Write each as an object letter -> rank, such as {"A": "2", "B": "1", "C": "3"}',
        )
    return display


def _ranks(letters: object) -> dict[str, int] | None:
    if not isinstance(letters, Mapping):
        return None
    try:
        ranks = {str(letter).strip(): int(str(rank)) for letter, rank in letters.items()}
    except ValueError:
        return None
    right = sorted(ranks.values()) == list(range(1, len(ranks) + 1))
    return ranks if right and len(ranks) > 1 else None


def _read_videos(references: References) -> dict[str, _Video]:
    videos: dict[str, _Video] = {}
    duplicates: list[str] = []
    for record in read_records(references):
        key = choose_key(record, None, _VIDEO_KEYS, "the video")
        video = canonical_id(record.values[key], record.place)
        if video in videos:
            duplicates.append(video)
        videos[video] = _Video(_captions(record), record.values)
    if duplicates:
        raise refuse("duplicate videos in the annotations", duplicates, "Remove the duplicates")
    if not videos:
        raise no_records(references, "annotations", "video")
    return videos


def _captions(record: Record) -> tuple[str, ...]:
    """Return captions by rank, from an object rank -> caption or a list in that order."""
    value = structured(record.values.get("captions"))
    if isinstance(value, Mapping):
        wanted = [str(rank) for rank in range(1, len(value) + 1)]
        if value and set(map(str, value)) == set(wanted):
            value = [value[rank] for rank in wanted]
    if isinstance(value, (list, tuple)) and value and all(isinstance(c, str) for c in value):
        return tuple(well_formed(caption) for caption in value)
    raise ArchiveError(
        f"{record.place}: 'captions' must be an object rank -> caption with the ranks 1 to M; "
        f"found {shown(value)}"
    )


def _check_display(display: Mapping[str, Mapping[str, int]], videos: Mapping[str, _Video]) -> None:
    missing = [video for video in videos if video not in display]
    if missing:
        raise refuse(
            "videos have no display order",
            missing,
            "Give the options file of the same release",
        )
    odd = [video for video, row in videos.items() if len(display[video]) != len(row.captions)]
    if odd:
        raise refuse(
            "videos have a display order with more or fewer letters than captions",
            odd,
            "Give the options file of the same release",
        )


def _more_displays(
    display: Mapping[str, object], videos: Mapping[str, object] | None
) -> tuple[str, ...]:
    """Return a note on display orders of videos that the annotations lack."""
    more = [video for video in display if videos is not None and video not in videos]
    if not more:
        return ()
    return (
        f"no annotations for {len(more)} of the videos with a display order: {named(more)}. "
        "Give the options file of the same release",
    )


class _Answers:
    """An archive of answers, read once to check and once to score."""

    def __init__(
        self,
        responses: Responses,
        videos: Mapping[str, _Video] | None,
        display: Mapping[str, Mapping[str, int]],
        options: InputOptions,
        group_by: tuple[str, ...],
    ) -> None:
        self._responses = responses
        self._videos = videos
        self._display = display
        self._options = options
        self._group_by = group_by
        first = next(self._records(), None)
        if first is None:
            raise no_records(responses, "answers", "answer")
        self._id_key = choose_key(first, options.id_key, _VIDEO_KEYS, "the video", ID_FLAG)
        self._text_key = choose_key(first, options.text_key, _ANSWER_KEYS, "the answer", TEXT_FLAG)

    def checked(self) -> ItemSource:
        """Return the items after checking every id."""
        check = JoinCheck("videos", self._options, self._known())
        strange: dict[str, None] = {}
        for record in self._records():
            video = self._video(record)
            check.add(video)
            if _strange_letters(text_of(record, self._text_key), self._display.get(video)):
                strange[video] = None
        check.refuse(lambda: map(self._video, self._records()))
        missing = check.missing()
        notes = (
            (f"{len(strange)} answers use letters that were not shown: {named(list(strange))}",)
            if strange
            else ()
        )
        return ItemSource(
            count=len(check) + len(missing), make=lambda: self._items(missing), notes=notes
        )

    def _known(self) -> Mapping[str, object]:
        return self._display if self._videos is None else self._videos

    def _records(self) -> Iterator[Record]:
        return answers_of(self._responses, _VIDEO_KEYS)

    def _video(self, record: Record) -> str:
        return canonical_id(record.values.get(self._id_key), record.place)

    def _items(self, missing: list[str]) -> Iterator[VidhalItem]:
        ids = map(self._video, self._records())
        names = numbered(ids) if self._options.allow_duplicates else ids
        for record, identifier in zip(self._records(), names, strict=True):
            text = text_of(record, self._text_key)
            yield self._item(self._video(record), identifier, text, record.values)
        for video in missing:
            yield self._item(video, video, None, {})

    def _item(
        self, video: str, identifier: str, text: str | None, record: Mapping[str, object]
    ) -> VidhalItem:
        known = (self._videos or {}).get(video, _Video((), {}))
        return VidhalItem(
            id=identifier,
            group_id=optional_text(
                Record(values=known.record, position=0, place=video), ("group_id",)
            )
            or video,
            response=text,
            captions=known.captions,
            display=self._display.get(video, {}),
            fields=fields_of(self._group_by, known.record, record),
        )


def _strange_letters(text: str | None, display: Mapping[str, int] | None) -> bool:
    if text is None or display is None:
        return False
    parts = [part.strip() for part in text.split(",")]
    return any(len(part) == 1 and part.isalpha() and part not in display for part in parts)


READERS: Mapping[str, Reader] = {"vidhal-mcqa": read_vidhal, "vidhal-ordering": read_vidhal}
"""Metric -> its archive reader."""
