"""What records show a judge: pictures, frames of videos, and crops of objects by their boxes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from hallujudge.metrics.framework.json_values import well_formed
from hallujudge.metrics.framework.results import Picture
from hallujudge.metrics.seen_claims import FRAMES, CloserLook
from hallujudge.metrics.seen_claims.claim_words import moments_in

from ..errors import ArchiveError, MissingExtraError
from ..media.fetched_pictures import PictureFetcher
from ..media.media_files import VIDEO_SUFFIXES, MediaError, MediaFolder
from ..media.pictures import Box, PictureFinder, check_boxes, moment_looks, object_looks
from ..media.video_frames import FrameSettings, Sampling, seconds_of
from .chair_references import is_coco
from .inputs import InputOptions, References
from .joins import refuse
from .json_files import named, read_json, shown
from .record_values import canonical_id, choose_key, structured
from .records import Record, read_records

BOXES = "boxes"
"""The key of a record's boxes."""
_NAME_KEYS = ("category", "name", "label", "category_name")
_COCO = ("images", "annotations", "categories")


def boxes_of(record: Record) -> tuple[Box, ...]:
    """Return the boxes of a record: objects with a name and ``bbox``, or name -> its boxes.

    Raises:
        ArchiveError: They have another form.
    """
    value, place = structured(record.values.get(BOXES)), f"{record.place}, {BOXES}"
    if value is None:
        return ()
    if isinstance(value, Mapping):
        return tuple(
            _box(str(name), each, f"{place}[{name!r:.40}]")
            for name, given in value.items()
            for each in (given if _is_list_of_lists(given) else [given])
        )
    if not isinstance(value, list | tuple):
        raise ArchiveError(f"{place}: expected a list of objects, found {shown(value)}")
    return tuple(_named_box(each, f"{place}[{at}]") for at, each in enumerate(value))


def _is_list_of_lists(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, list | tuple) for each in value)


def _named_box(value: object, place: str) -> Box:
    if not isinstance(value, Mapping):
        raise ArchiveError(f"{place}: expected a name and bbox, found {shown(value)}")
    key = next((name for name in _NAME_KEYS if isinstance(value.get(name), str)), None)
    if key is None:
        raise ArchiveError(
            f"{place}: no name of the object: tried {', '.join(_NAME_KEYS)}; found "
            f"{named(sorted(map(str, value))) or 'none'}"
        )
    return _box(value[key], value.get("bbox"), place)


def _box(name: str, value: object, place: str) -> Box:
    numbers = value if isinstance(value, list | tuple) else ()
    if len(numbers) != 4 or not all(_is_number(each) for each in numbers):
        raise ArchiveError(
            f"{place}: the box of {name!r:.40} is {shown(value)}; give [left, top, width, height] "
            "in pixels"
        )
    x, y, width, height = map(float, numbers)
    if not (x >= 0 and y >= 0 and width > 0 and height > 0):
        raise ArchiveError(
            f"{place}: the box of {name!r:.40} is {shown(value)}; left and top are at least 0, "
            "width and height above 0"
        )
    return Box(name=well_formed(name.strip()), x=x, y=y, width=width, height=height)


def _is_number(value: object) -> bool:
    # The bound refuses infinity and NaN, too.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9


def coco_boxes(references: object) -> dict[str, tuple[Box, ...]] | None:
    """Return the boxes of COCO's file of instances by image id, and by file name.

    Args:
        references: A path, or the content of a file.

    Returns:
        None if it is not such a file.

    Raises:
        ArchiveError: An entry lacks an id, a name or a box.
    """
    content, place = references, "references"
    if isinstance(references, str | Path) and is_coco(Path(references)):
        content, place = read_json(Path(references)), str(references)
    if not isinstance(content, Mapping) or not all(isinstance(content.get(k), list) for k in _COCO):
        return None
    with ArchiveError.of_content(
        f"{place}: not COCO's file of instances", "give instances_*.json as it is released"
    ):
        return dict(_coco(content, place))


def _coco(content: Mapping[str, Any], place: str) -> Iterator[tuple[str, tuple[Box, ...]]]:
    images, annotations, categories = (content[key] for key in _COCO)
    names = {each["id"]: str(each["name"]) for each in categories}
    found: dict[object, list[Box]] = {each["id"]: [] for each in images}
    for at, each in enumerate(annotations):
        # A box around a crowd shows many objects.
        if each["image_id"] in found and not each.get("iscrowd"):
            where = f"{place}, annotations[{at}]"
            found[each["image_id"]].append(_box(names[each["category_id"]], each["bbox"], where))
    for each in images:
        boxes = tuple(found[each["id"]])
        yield canonical_id(each["id"], place), boxes
        yield PurePosixPath(str(each.get("file_name", each["id"]))).name, boxes


# Pictures and frames ------------------------------------------------------------------------------


# Names of POPE's, COCO's and other releases; a number is found in COCO's file names.
IMAGE_KEYS = (
    *("image", "video", "image_path", "video_path", "image_file", "file_name", "image_name"),
    *("img", "image_id", "video_id", "imageid"),
)
"""Keys of a record's picture or video."""
OWN_ID_KEYS = ("id", "question_id", "item_id")
"""Keys of a record's own id."""


class Shown(NamedTuple):
    """What a judge is shown of a response, or why there is nothing."""

    pictures: tuple[Picture, ...] = ()
    """The picture, or the frames of the video."""
    problem: str = ""
    """Why there are none, in words."""
    seconds: float | None = None
    """Length of the video, 0 if it is not known; None for pictures."""
    looks: tuple[CloserLook, ...] = ()
    """Frames of moments, or crops of objects."""


class PicturesOfIds(NamedTuple):
    """What a file of references says: which picture a response is about, and where objects are."""

    pictures: Mapping[str, object] | None = None
    """Id of a response -> its picture; None if records name their pictures."""
    boxes: Mapping[str, tuple[Box, ...]] = {}
    """Id of a response or a picture, or its file's name -> its objects."""


def pictures_of_ids(references: References) -> PicturesOfIds:
    """Return the pictures and boxes of a mapping, of records, or of COCO's file of instances.

    Args:
        references: Id -> picture; or records with an id, a picture and perhaps boxes.

    Raises:
        ArchiveError: An id or a picture is missing, or an id appears twice.
    """
    if (coco := coco_boxes(references)) is not None:
        return PicturesOfIds(None, coco)
    if isinstance(references, Mapping):
        return PicturesOfIds(
            {canonical_id(key, "references"): value for key, value in references.items()}
        )
    found: dict[str, object] = {}
    boxes: dict[str, tuple[Box, ...]] = {}
    duplicates = []
    for record in read_records(references):
        key = choose_key(record, None, (*OWN_ID_KEYS, "image_id", "video_id"), "the id")
        image = choose_key(record, None, IMAGE_KEYS, "the picture")
        identifier = canonical_id(record.values[key], record.place)
        if identifier in found:
            duplicates.append(identifier)
        found[identifier] = record.values[image]
        boxes[identifier] = boxes_of(record)
    if duplicates:
        raise refuse("duplicate ids in the references", duplicates, "Keep one picture of each")
    return PicturesOfIds(found, boxes)


class ShownRecords:
    """Finds what records show, in a folder, in references, or in the records themselves.

    Args:
        known: What the references say.
        options: The folder, and what is shown.
        image_key: The key of a record's picture; None if no record names one.
        id_of: Returns a record's id.
    """

    def __init__(
        self,
        known: PicturesOfIds,
        options: InputOptions,
        image_key: str | None,
        id_of: Callable[[Record], str],
    ) -> None:
        self._known, self._boxes = known
        self._image_key, self._id_of = image_key, id_of
        self._frames = FrameSettings(sampling=Sampling(options.own.get("frames") or FRAMES))
        self._near = options.own.get("moments", "near") == "near"
        self._crops = options.own.get("views") == "objects"
        self._seconds_of = cache(seconds_of)
        folder, fetch = options.own.get("images"), options.own.get("fetch")
        self.looks_for = folder is not None or fetch is not None
        """Whether names are looked for in a folder, or at an address."""
        self._finder = PictureFinder(
            None if folder is None else MediaFolder(Path(str(folder))),
            self._frames,
            None if fetch is None else PictureFetcher(str(fetch)),
        )

    def expect(self, records: Iterable[Record]) -> None:
        """Learn what records name, so that no file is taken for two different names."""
        self._finder.expect(map(self._value_of, records))

    def digest(self, record: Record) -> str:
        """Return the hash of a record's picture or video, and check its boxes.

        Raises:
            MediaError: There is none, or it can't be shown.
            ArchiveError: Its boxes have another form.
        """
        value = self._shown_by(record)
        digest = self._finder.digest(value)
        if boxes := self._boxes_of(record):
            check_boxes(self._finder.pictures(value)[0], boxes)
        return digest

    def check_extras(self, records: Iterable[Record]) -> None:
        """Check that objects can be cropped, if the option views asks for it.

        Raises:
            ArchiveError: No record says where an object is.
            MissingExtraError: Pillow is not installed.
        """
        if not self._crops:
            return
        with MissingExtraError.unless_installed("cropping objects of pictures", "images"):
            import PIL  # noqa: F401
        if not any(map(self._boxes_of, records)):
            raise ArchiveError(
                "the option views is objects, and no record says where objects are; give each "
                f'record a key {BOXES!r}, such as [{{"category": "dog", "bbox": [left, top, '
                "width, height]}], or COCO's instances_*.json as references"
            )

    def of(self, record: Record, texts: Iterable[str]) -> Shown:
        """Return what a record shows, or why it shows nothing.

        Args:
            record: The record.
            texts: The response, and claims that came with it.
        """
        try:
            value = self._shown_by(record)
            pictures = self._finder.pictures(value)
            video = self._finder.video_of(value)
            if video is None:
                boxes = self._boxes_of(record)
                return Shown(pictures, looks=object_looks(pictures[0], boxes) if boxes else ())
            seconds, looks = self._moments(video.files[0], video.name, texts)
            return Shown(pictures, seconds=seconds, looks=looks)
        except MediaError as err:
            # Without a folder, names are not looked for: verdicts may have come with the claims.
            looked = self.looks_for or err.reason != "MEDIA_MISSING"
            length = 0.0 if self._names_video(record) else None
            return Shown(problem=str(err) if looked else "", seconds=length)

    def _moments(
        self, path: Path, name: str, texts: Iterable[str]
    ) -> tuple[float, tuple[CloserLook, ...]]:
        """Return a video's length, and frames of the moments that texts name."""
        # Many responses may be about one video, which would be opened for each.
        seconds = self._seconds_of(path)
        named = dict.fromkeys(moment for text in texts for moment in moments_in(text, seconds))
        if not named or not self._near:
            return seconds, ()
        return seconds, moment_looks(path, list(named), self._frames.format, name)

    def group_of(self, record: Record) -> str:
        """Return what a record's picture is called, or its id."""
        try:
            return well_formed(self._finder.name_of(self._shown_by(record)))
        except MediaError:
            # Why there is no picture is a note of the item; its group only needs a name.
            return self._id_of(record)

    def name_in(self, image: object) -> object:
        """Return what a value is called that is a picture itself; other values as they are."""
        if isinstance(image, (str, int)) and not str(image).startswith("data:"):
            return image
        try:
            return self._finder.name_of(structured(image))
        except MediaError:
            return image

    def _shown_by(self, record: Record) -> object:
        """Return what a record says of its picture: a name, or the picture itself.

        Raises:
            MediaError: It says nothing.
        """
        if self._known is not None and (identifier := self._id_of(record)) not in self._known:
            raise MediaError("MEDIA_MISSING", f"no picture has the id {identifier!r:.80}")
        found = self._value_of(record)
        if found is None or found == "":
            tried = f"tried {', '.join(IMAGE_KEYS)}"
            raise MediaError("MEDIA_MISSING", f"the record names no picture: {tried}")
        return found

    def _value_of(self, record: Record) -> object:
        known = None if self._known is None else self._known.get(self._id_of(record))
        found = known if self._known is not None else record.values.get(self._image_key or "")
        found = structured(found)
        is_number = isinstance(found, int) and not isinstance(found, bool)
        return str(found) if is_number else found

    def _names_video(self, record: Record) -> bool:
        value = self._value_of(record)
        return isinstance(value, str) and Path(value).suffix.lower() in VIDEO_SUFFIXES

    def _boxes_of(self, record: Record) -> tuple[Box, ...]:
        """Return a record's boxes, or those that the references have of it; none if not asked."""
        if not self._crops:
            return ()
        if own := boxes_of(record):
            return own
        value = self._value_of(record)
        names = [self._id_of(record)]
        if isinstance(value, str):
            # COCO's file names have no folders.
            names += [value, PurePosixPath(value).name]
        return next((self._boxes[name] for name in names if name in self._boxes), ())


def unshown(problems: Mapping[str, str]) -> ArchiveError:
    """Return an error that names what has no picture, and says why the first one has none.

    Args:
        problems: Id -> why its picture can't be shown.
    """
    return refuse(
        "pictures that can't be shown",
        list(problems),
        f"The first one: {next(iter(problems.values()))}. Give the folder of all pictures, or pass "
        "InputOptions(allow_unknown=True) to leave such responses unscored",
    )
