"""Answers or claims, scene graphs and human scores for Tri-HE."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from hallujudge.metrics.framework.claims import Triplet, TripletError, reference_of, triplet_of
from hallujudge.metrics.framework.metric import InputOption
from hallujudge.metrics.framework.results import Picture
from hallujudge.metrics.tri_he import TriHeItem

from ..errors import ArchiveError
from ..media.media_files import MediaError, MediaFolder
from ..media.pictures import PictureFinder, hash_of_all
from .archive_keys import refuse_other_texts
from .bad_records import noted
from .chair_references import object_names
from .inputs import (
    DeclaredInputs,
    InputOptions,
    ItemSource,
    Reader,
    ReaderInput,
    References,
    Responses,
    uses,
)
from .joins import IdCheck, numbering, refuse
from .json_files import named, shown
from .record_fields import fields_of
from .record_values import (
    ID_FLAG,
    TEXT_FLAG,
    USUAL_SCORE_KEYS,
    canonical_id,
    choose_key,
    human_scores,
    id_under,
    optional_text,
    response_text,
    structured,
)
from .records import Record, first_record, read_records
from .shown_pictures import unshown

_ID_KEYS = ("image_id", "id", "image")
_TEXT_KEYS = ("response", "answer", "text", "output", "prediction", "caption")
_QUESTION_KEYS = ("question", "prompt")
_OWN_ID_KEYS = ("question_id", "item_id")
_CLAIMS = "claims"
_TRIPLETS = ("reference_triplets", "triplets")
# Tri-HE's own file has the objects of a scene under all_object or object.
_OBJECTS = ("reference_objects", "objects", "all_object", "object")


def read_tri_he(given: ReaderInput) -> ItemSource:
    """Return answers, or claims extracted from them, with the scene graphs of their images.

    Read are records with ``image_id``, ``question`` and ``response`` or ``claims``, and Tri-HE's
    own file: its answers are those under the option ``model_key``, and with ``claims_only``
    its claims those under the same with ``_triplets`` behind it.

    Raises:
        ArchiveError: See :func:`read_items`; also if a triplet does not have three parts.
    """
    return _Answers(given).checked()


READERS: Mapping[str, Reader] = {"tri-he": read_tri_he}
"""Metric -> its archive reader."""
INPUTS: Mapping[str, DeclaredInputs] = {
    "tri-he": uses(
        "id_key",
        "allow_unknown",
        "allow_duplicates",
        own=(
            InputOption(
                name="model_key",
                kind="text",
                meaning="Key of the model's answers in Tri-HE's own file.",
            ),
            InputOption(
                name="human_keys",
                kind="texts",
                named="human_key",
                meaning="Key of human scores; repeatable, one per annotator.",
            ),
            InputOption(
                name="claims_only",
                kind="set",
                named="claims",
                meaning="Whether the archive must hold claims; nothing is extracted.",
            ),
            InputOption(
                name="images", kind="folder", meaning="Folder of the images, for --judge sees."
            ),
        ),
    )
}
"""Metric -> what its reader takes."""


MAPPED_KEYS = frozenset(
    (*_QUESTION_KEYS, *_OWN_ID_KEYS, _CLAIMS, *_TRIPLETS, *_OBJECTS, *USUAL_SCORE_KEYS)
)
"""Keys that may be mapped, those of id and response apart."""


def reference_ids(references: References) -> list[str]:
    """Return the image ids of scene graphs, before any answer is known."""
    return [identifier for identifier, _ in _scene_records(references)]


class _Scene(NamedTuple):
    triplets: tuple[Triplet, ...]
    objects: tuple[str, ...]


class _Answer(NamedTuple):
    image_id: str
    question: str
    record: Record

    @property
    def key(self) -> str:
        """Return the key of an answer: its own id, or its image and question."""
        own = next((k for k in _OWN_ID_KEYS if k in self.record.values), None)
        if own is not None:
            return canonical_id(self.record.values[own], self.record.place)
        return f"{self.image_id}: {self.question}" if self.question else self.image_id


def _image_of(answer: _Answer) -> object:
    """Return the name of an answer's image: its own key, or the id, as COCO's numbers are."""
    return answer.record.values.get("image") or answer.image_id


class _Answers:
    """An archive of answers, read once to check and once to score."""

    def __init__(self, given: ReaderInput) -> None:
        self._responses = given.responses
        self._scenes = None if given.references is None else _read_scenes(given.references)
        self._options = given.options
        self._group_by = given.group_by
        self._human_keys = tuple(given.options.own.get("human_keys", ()))
        folder = given.options.own.get("images")
        self._shown = None if folder is None else PictureFinder(MediaFolder(Path(str(folder))))
        self._id_key, self._text_key = self._find_keys()

    def checked(self) -> ItemSource:
        """Return the items after checking every id and triplet."""
        ids = IdCheck()
        unknown: dict[str, None] = {}
        met: set[str] = set()
        shown, faults = list[str](), dict[str, str]()
        given = 0
        if self._shown is not None:
            self._shown.expect(map(_image_of, self._answers()))
        for record in _flat(self._responses, self._options):
            with noted(record.position, record.place):
                answer = self._answer(record)
                ids.add(answer.key)
                given += self._claims(answer) is not None
                # For their errors alone: both are read again with the item.
                self._text(answer)
                human_scores(record, self._human_keys)
                if self._scene(answer) is None:
                    unknown[answer.image_id] = None
                else:
                    met.add(answer.image_id)
                if self._shown is not None:
                    shown.append(self._digest(answer, faults))
        by = f"by their own id ({', '.join(_OWN_ID_KEYS)}) or by image and question"
        ids.refuse_duplicates(f"duplicate answers, {by}", self._options, self._all_keys)
        self._refuse_unknown(list(unknown), met)
        if faults and not self._options.allow_unknown:
            raise unshown(faults)
        notes = tuple(self._notes(met, given, len(ids)))
        digest = hash_of_all(shown) if self._shown is not None else ""
        return ItemSource(count=len(ids), make=self._items, notes=notes, shown_sha256=digest)

    def _digest(self, answer: _Answer, faults: dict[str, str]) -> str:
        """Return the hash of an answer's image; note why there is none."""
        assert self._shown is not None, "there is a folder"
        try:
            return self._shown.digest(_image_of(answer))
        except MediaError as err:
            faults[answer.image_id] = str(err)
            return ""

    def _pictures(self, answer: _Answer) -> tuple[Picture, ...]:
        if self._shown is None:
            return ()
        try:
            return self._shown.pictures(_image_of(answer))
        except MediaError:
            # The check has noted why, and the user allows answers without an image.
            return ()

    def _all_keys(self) -> Iterator[str]:
        return (answer.key for answer in self._answers())

    def _refuse_unknown(self, unknown: list[str], met: set[str]) -> None:
        if not unknown or self._options.allow_unknown:
            return
        hint = ""
        if not met:
            some = named(list(islice(self._scenes or (), 3)))
            hint = f" None of the images is in the references, whose images look like {some}."
        raise refuse(
            "images without a scene graph",
            unknown,
            "Give their scene graphs, or pass InputOptions(allow_unknown=True) to leave them "
            f"unscored.{hint}",
        )

    def _notes(self, met: set[str], given: int, total: int) -> Iterator[str]:
        """Yield notes on scene graphs without an answer, given claims, and the data's own answers.

        Args:
            met: Images that have an answer.
            given: Answers with claims.
            total: All answers.
        """
        scenes, own = self._scenes or {}, self._options.own
        if missing := [image for image in scenes if image not in met]:
            yield f"{len(missing)} of {len(scenes)} scene graphs have no answer: {named(missing)}"
        if given and not own.get("claims_only"):
            yield f"{given} of {total} answers contain claims, which are judged as they are"
        first = next(_flat(self._responses, self._options), None)
        keys = () if first is None or own.get("model_key") is not None else first.values
        models = {key.removesuffix("_triplets") for key in keys if key.endswith("_triplets")}
        if others := sorted(models - {"answer"}):
            yield (
                "the answers under 'answer' are scored, which are Tri-HE's own; name a model with "
                f"InputOptions(own=dict(model_key=…)), one of {named(others)}"
            )

    def _scene(self, answer: _Answer) -> _Scene | None:
        """Return the scene graph of an answer's image; None if unknown images are allowed."""
        if self._scenes is not None:
            return self._scenes.get(answer.image_id)
        absent = all(answer.record.values.get(name) is None for name in _TRIPLETS)
        return None if absent and self._options.allow_unknown else _scene_of(answer.record)

    def _items(self) -> Iterator[TriHeItem]:
        unique = numbering(self._options)
        for answer in self._answers():
            scene = self._scene(answer)
            yield TriHeItem(
                id=unique(answer.key),
                group_id=answer.image_id,
                fields=fields_of(self._group_by, answer.record.values),
                question=answer.question,
                response=self._text(answer),
                claims=self._claims(answer),
                reference_triplets=None if scene is None else scene.triplets,
                reference_objects=() if scene is None else scene.objects,
                human_scores=human_scores(answer.record, self._human_keys),
                pictures=self._pictures(answer),
            )

    def _answers(self) -> Iterator[_Answer]:
        return map(self._answer, _flat(self._responses, self._options))

    def _answer(self, record: Record) -> _Answer:
        image_id = id_under(record, self._id_key, "the image id")
        return _Answer(image_id, optional_text(record, _QUESTION_KEYS), record)

    def _text(self, answer: _Answer) -> str | None:
        key = self._text_key
        if key is None:
            # The first record has only claims; later ones may still have a text.
            key = next((name for name in _TEXT_KEYS if name in answer.record.values), None)
        return None if key is None else response_text(answer.record, key)

    def _claims(self, answer: _Answer) -> tuple[Triplet, ...] | None:
        value = structured(answer.record.values.get(_CLAIMS))
        if value is None:
            return None
        place = f"{answer.record.place}, {_CLAIMS}"
        return _triplets_in(value, place, "a list of triplets", triplet_of)

    def _find_keys(self) -> tuple[str, str | None]:
        first = first_record(_flat(self._responses, self._options), self._responses, "answer")
        identifier = choose_key(first, self._options.id_key, _ID_KEYS, "the image id", ID_FLAG)
        has_claims = _CLAIMS in first.values
        if self._options.own.get("claims_only") and not has_claims:
            found = ", ".join(sorted(first.values))
            raise ArchiveError(
                f"{first.place}: no key {_CLAIMS!r} for the claims; found {found}. In Tri-HE's own "
                "file they are under K_triplets, where K is the value of "
                "InputOptions(own=dict(model_key=…))"
            )
        text_keys = [key for key in _TEXT_KEYS if key in first.values]
        if has_claims and not text_keys and self._options.text_key is None:
            return identifier, None
        flag = f"{TEXT_FLAG}; images of Tri-HE's own file have a list 'instance' of them"
        text = choose_key(first, self._options.text_key, _TEXT_KEYS, "the response", flag)
        # In Tri-HE's own file, the user may name the model, whose answers are beside GPT-4V's.
        if "model_key" not in self._options.own:
            answers = _flat(self._responses, self._options)
            refuse_other_texts(answers, text, _TEXT_KEYS, self._options)
        # Scenes belong to images, out of which the answers were taken.
        image = next(read_records(self._responses))
        if isinstance(image.values.get("instance"), list) and self._scenes is None:
            choose_key(image, None, _TRIPLETS, "the scene graph")
        return identifier, text


def _flat(responses: Responses, options: InputOptions) -> Iterator[Record]:
    """Yield records of answers; in Tri-HE's own file they are nested within images."""
    for record in read_records(responses):
        instances = record.values.get("instance")
        if not isinstance(instances, list):
            _refuse_model_key(record, options)
            yield record
            continue
        for index, instance in enumerate(instances):
            place = f"{record.place}, instance[{index}]"
            values = _instance(instance, record, options, place)
            # An image of several answers is not left out as a bad record.
            yield Record(values=values, position=-1, place=place)


def _refuse_model_key(record: Record, options: InputOptions) -> None:
    if (model := options.own.get("model_key")) is not None:
        raise ArchiveError(
            f"{record.place}: InputOptions(own=dict(model_key={model!r})) is for Tri-HE's "
            "own file, whose "
            "images hold a list 'instance'; name the key of the text with InputOptions(text_key=…)"
        )


def _instance(
    instance: object, image: Record, options: InputOptions, place: str
) -> dict[str, object]:
    if not isinstance(instance, Mapping):
        raise ArchiveError(f"{place}: expected a JSON object")
    key = options.own.get("model_key") or "answer"
    claims = f"{key}_triplets"
    if key not in instance and not (options.own.get("claims_only") and claims in instance):
        raise _no_answers(instance, key, place)
    values: dict[str, object] = {**instance, "image_id": id_under(image, "id", "the image id")}
    values["response"] = instance.get(key)
    # Claims are extracted from a file given as answers, even if it also holds claims.
    if options.own.get("claims_only") and claims in instance:
        values[_CLAIMS] = instance[claims]
    if "triplets" in image.values:
        values |= {name: image.values.get(name) for name in ("triplets", "all_object", "object")}
    return values


def _no_answers(instance: Mapping[str, object], key: str, place: str) -> ArchiveError:
    if f"{key}_triplets" in instance:
        return ArchiveError(
            f"{place}: no answers under {key!r}, only its claims ({key}_triplets); give the file "
            "with InputOptions(own=dict(claims_only=True))"
        )
    # An instance's other keys are names of models.
    others = sorted(set(instance) - {"question", "triplet"})
    return ArchiveError(
        f"{place}: no answers under {key!r}; name the model with "
        f"InputOptions(own=dict(model_key=…)), one of {', '.join(others) or 'none here'}"
    )


def _read_scenes(references: References) -> dict[str, _Scene]:
    """Map image ids to scene graphs."""
    scenes: dict[str, _Scene] = {}
    duplicates: list[str] = []
    for identifier, record in _scene_records(references):
        if identifier in scenes:
            duplicates.append(identifier)
        scenes[identifier] = _scene_of(record)
    if duplicates:
        raise refuse(
            "duplicate images in the references", duplicates, "Merge the entries of each image"
        )
    if not scenes:
        raise ArchiveError(
            f"{references}: the references hold no scene graph; give triplets by image id"
        )
    return scenes


def _scene_records(references: References) -> Iterator[tuple[str, Record]]:
    if isinstance(references, Mapping):
        yield from _by_id(references, "references")
        return
    for record in read_records(references):
        if _is_by_id(record.values):
            yield from _by_id(record.values, record.place)
            continue
        key = choose_key(record, None, _ID_KEYS, "the image id")
        yield canonical_id(record.values[key], record.place), record


def _by_id(content: Mapping[str, object], where: str) -> Iterator[tuple[str, Record]]:
    for position, (key, value) in enumerate(content.items()):
        values = value if isinstance(value, Mapping) else {"triplets": value}
        place = f"{where}[{key!r}]"
        yield canonical_id(key, place), Record(values=values, position=position, place=place)


def _is_by_id(values: Mapping[str, object]) -> bool:
    """Return whether a record is a whole file, image id -> list of triplets."""
    # A record has one of these keys, a file by ids none.
    known = values.keys() & {*_ID_KEYS, *_TRIPLETS}
    return bool(values) and not known and all(isinstance(v, list) for v in values.values())


def _scene_of(record: Record) -> _Scene:
    key = next((name for name in _TRIPLETS if name in record.values), None)
    if key is None:
        raise ArchiveError(
            f"{record.place}: no scene graph: tried {', '.join(_TRIPLETS)}; found "
            f"{', '.join(sorted(record.values)) or 'none'}. Add the image's triplets to the "
            "answers, or give a file with references=…"
        )
    value, place = structured(record.values[key]), f"{record.place}, {key}"
    return _Scene(_triplets_in(value, place, "a list", reference_of), _objects_of(record))


def _triplets_in(
    value: object, place: str, what: str, make: Callable[[object], Triplet]
) -> tuple[Triplet, ...]:
    """Return the triplets of a list.

    Raises:
        ArchiveError: It is not the list that is expected, or an entry is not a triplet.
    """
    if not isinstance(value, list | tuple):
        raise ArchiveError(f"{place}: expected {what}, found {shown(value)}")
    triplets = []
    for index, entry in enumerate(value):
        try:
            triplets.append(make(entry))
        except TripletError as err:
            raise ArchiveError(f"{place}[{index}]: {err}") from err
    return tuple(triplets)


def _objects_of(record: Record) -> tuple[str, ...]:
    objects: dict[str, None] = {}
    for key in _OBJECTS:
        if (value := structured(record.values.get(key))) is not None:
            objects |= dict.fromkeys(object_names(value, f"{record.place}, {key}"))
    return tuple(objects)
