"""``hallujudge build pope``: questions about objects that people, models or detectors found."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click
from msgspec import Struct

from hallujudge.judge_service.engine.resources import read_graph
from hallujudge.metrics.framework.json_values import json_kind
from hallujudge.metrics.pope.question_builder import SAMPLINGS, TEMPLATES, PopeBuild, build_pope
from hallujudge.sdk.archives.chair_references import read_coco
from hallujudge.sdk.archives.joins import read_mapping
from hallujudge.sdk.archives.json_files import amount, named, shown
from hallujudge.sdk.archives.local_files import open_text
from hallujudge.sdk.archives.record_values import canonical_id
from hallujudge.sdk.archives.records import read_records
from hallujudge.sdk.cli.app import (
    ExitCode,
    build_app,
    examples,
    input_option,
    metric_option,
    output_option,
    statistics_option,
)
from hallujudge.sdk.cli.options import Instances, Objects, refuse_input
from hallujudge.sdk.cli.output import write_lines
from hallujudge.sdk.errors import ArchiveError, InvalidInputError
from hallujudge.sdk.runs.score_run import graph_source
from hallujudge.synonym_graphs import SynonymGraph

_IMAGE_KEYS = ("image", "image_id", "file_name", "image_path", "filename", "id")
_LIST_KEYS = (
    *("objects", "labels", "detections", "instances", "segments", "segments_info"),
    *("annotations", "masks", "boxes", "classes", "pred_classes", "class_names"),
)
_LABEL_KEYS = ("label", "category_name", "class_name", "class", "category", "name")
_SCORE_KEYS = ("score", "scores", "confidence", "confidences", "probability", "pred_scores")
_CATEGORY = "category_id"
# COCO's panoptic classes: door-stuff, wall-other-merged.
_PANOPTIC = re.compile(r"(-other|-merged|-stuff)+$")


class DetectedObjects(Struct, frozen=True, kw_only=True):
    """Objects of images."""

    objects: Mapping[str, list[str]]
    """Image -> its objects by name, without duplicates."""
    below: int
    """Number of detections with a lower score than required."""
    unscored: int
    """Number of detections without a score, which are kept."""
    unknown: Mapping[str, int]
    """Labels that the synonym graph does not know -> images that show them."""


def read_detections(
    path: Path, *, min_score: float = 0.0, graph: SynonymGraph | None = None
) -> DetectedObjects:
    """Read what a model found in images.

    The file is an object image -> detections, records with an image and a list of detections, or
    one record for each detection, as COCO's results are. A detection is a label, or an object with
    a label and a score; scores may also be a list of their own next to the labels.

    Args:
        path: The file: JSON, or JSON lines.
        min_score: Detections with a lower score are left out.
        graph: Joins labels of one object; None leaves them as they are.

    Raises:
        ArchiveError: The file has another form, or a label has none of the known keys.
    """
    found: dict[str, dict[str, None]] = {}
    below = unscored = 0
    unknown: Counter[str] = Counter()
    for image, label, score in _detections(path):
        names = found.setdefault(image, {})
        if not label:
            continue
        if score is None:
            unscored += 1
        elif score < min_score:
            below += 1
            continue
        name = _PANOPTIC.sub("", label.strip()).replace("_", " ").strip()
        root = graph.root_of(name) if graph is not None else name
        # Once for each image: the note counts images, not detections.
        if root is None and name not in names:
            unknown[name] += 1
        names[root or name] = None
    if not found:
        raise ArchiveError(f"{path}: no records; give a record for each image")
    return DetectedObjects(
        objects={image: sorted(names) for image, names in found.items()},
        below=below,
        unscored=unscored,
        unknown=dict(unknown),
    )


def _detections(path: Path) -> Iterator[tuple[str, str, float | None]]:
    """Yield image, label and score of each detection; an empty label for an image without any."""
    content = _one_object(path)
    if content is None:
        for record in read_records(path):
            yield from _of_record(record.values, {}, record.place)
        return
    if isinstance(content.get("annotations"), list):
        names = {
            entry.get("id"): str(entry.get("name"))
            for entry in content.get("categories") or ()
            if isinstance(entry, Mapping)
        }
        for place, entry in enumerate(content["annotations"]):
            yield from _of_record(entry, names, f"{path}: annotation {place}")
        return
    for given, value in content.items():
        image = canonical_id(given, str(path))
        yield from _of_image(image, value, {}, f"{path}: image {image!r:.60}")


def _one_object(path: Path) -> dict[str, Any] | None:
    """Return the content of a file that is one object; None for a list, or JSON lines."""
    with open_text(path) as file:
        text = file.read()
    if not text.lstrip().startswith("{"):
        return None
    try:
        content = json.loads(text)
    # Lines of records begin with a brace, too.
    except (ValueError, RecursionError):
        return None
    # The only line of a file of records.
    return content if isinstance(content, dict) and not _key(content, _IMAGE_KEYS) else None


def _of_record(
    record: object, names: Mapping[object, str], place: str
) -> Iterator[tuple[str, str, float | None]]:
    if not isinstance(record, Mapping):
        raise ArchiveError(f"{place}: found {json_kind(record)}; give an object with an image")
    key = _key(record, _IMAGE_KEYS)
    if key is None:
        raise _no_key(place, "the image", _IMAGE_KEYS, record)
    image = canonical_id(record[key], place)
    rest = {name: value for name, value in record.items() if name != key}
    yield from _of_image(image, rest, names, place)


def _of_image(
    image: str, value: object, names: Mapping[object, str], place: str
) -> Iterator[tuple[str, str, float | None]]:
    """Yield the detections of an image, in any of the forms."""
    if isinstance(value, list):
        # An image without detections counts too: nothing was found in it.
        yield image, "", None
        for entry in value:
            yield (image, *_detection(entry, names, place))
        return
    if not isinstance(value, Mapping):
        raise ArchiveError(f"{place}: the detections are {shown(value)}; give a list of labels")
    key = _key(value, _LIST_KEYS)
    if key is None or not isinstance(value[key], list):
        yield (image, *_detection(value, names, place))
        return
    yield image, "", None
    # Labels of boxes and masks are a list of their own.
    labels = next(
        (value[k] for k in ("labels", *_LIST_KEYS) if _are_labels(value.get(k))), value[key]
    )
    scores = _scores(value, len(labels), place)
    for entry, score in zip(labels, scores, strict=True):
        label, own = _detection(entry, names, place)
        yield image, label, own if score is None else score


def _are_labels(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], (str, Mapping))


def _scores(value: Mapping[str, Any], count: int, place: str) -> Sequence[float | None]:
    key = _key(value, _SCORE_KEYS)
    if key is None or not isinstance(value[key], list):
        return [None] * count
    if len(value[key]) != count:
        raise ArchiveError(
            f"{place}: {count} labels have {len(value[key])} {key}; give one score for each label"
        )
    return [_number(score, place) for score in value[key]]


def _detection(entry: object, names: Mapping[object, str], place: str) -> tuple[str, float | None]:
    """Return the label and the score of a detection; None without a score."""
    if isinstance(entry, str):
        return entry, None
    if not isinstance(entry, Mapping):
        raise ArchiveError(f"{place}: the detection is {shown(entry)}; give its label")
    score = _key(entry, _SCORE_KEYS)
    value = None if score is None else _number(entry[score], place)
    if name := names.get(entry.get(_CATEGORY)):
        return name, value
    label = _key(entry, _LABEL_KEYS)
    if label is None or not isinstance(entry[label], str):
        hint = "; map numbers of categories to names first" if _CATEGORY in entry else ""
        raise _no_key(place, "the label", _LABEL_KEYS, entry, hint)
    return entry[label], value


def _number(value: object, place: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise ArchiveError(f"{place}: the score is {shown(value)}; give a number")


def _key(record: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    return next((key for key in keys if key in record), None)


def _no_key(
    place: str, what: str, tried: Sequence[str], record: Mapping[str, Any], hint: str = ""
) -> ArchiveError:
    found = named(sorted(record)) or "none"
    return ArchiveError(
        f"{place}: no key for {what}: tried {', '.join(tried)}; found {found}{hint}"
    )


# The command --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Building:
    """Which questions are built, of which images."""

    objects: Objects = None
    instances: Instances = None
    detections: Annotated[
        Path | None, input_option(metavar="FILE", help="Labels with scores, by a detector or SEEM.")
    ] = None
    min_score: Annotated[float, input_option(help="Lowest score of a detection that counts.")] = 0.0
    graph: Annotated[
        str | None, input_option(metavar="NAME", help="Synonym graph that joins labels, or a file.")
    ] = None
    sampling: Annotated[str, metric_option(help=f"Absent: {', '.join(SAMPLINGS)}.")] = "random"
    questions: Annotated[
        # The paper: 6 questions about each of 500 images with more than 3 objects.
        int, metric_option("--questions", help="Questions about each image; even.")
    ] = 6
    images: Annotated[int | None, metric_option(help="Number of images to draw; default: all.")] = (
        None
    )
    min_objects: Annotated[
        int | None, metric_option(help="Fewest objects that an image shows.")
    ] = None
    template: Annotated[str, metric_option(help="Question with {object} and its article {a}.")] = (
        TEMPLATES[0]
    )
    seed: Annotated[int, statistics_option(help="Seed of the draw.")] = 0
    out: Annotated[
        Path, output_option("--out", "-o", help="File of questions to write, as JSON lines.")
    ]

    def inputs(self) -> list[Path]:
        """Return the files that were given.

        Raises:
            InvalidInputError: They are of several kinds, or one is the output.
        """
        files = (self.objects, *(self.instances or ()), self.detections)
        given = [path for path in files if path is not None]
        # Several files of instances are one kind: any other file besides makes it one too many.
        if len(given) != max(1, len(self.instances or ())):
            raise InvalidInputError("give one of --objects, --instances and --detections")
        refuse_input(self.out, *given)
        # Only detections have scores.
        if self.detections is None and self.min_score:
            raise InvalidInputError("--min-score is for --detections; leave it out")
        return given

    def shown(self) -> Mapping[str, list[str]]:
        """Return image -> the objects that it shows."""
        known = read_graph(graph_source(self.graph)) if self.graph is not None else None
        if self.detections is not None:
            found = read_detections(self.detections, min_score=self.min_score, graph=known)
            _say(found)
            return found.objects
        shown = objects_of_images(self.objects, self.instances)
        if known is None:
            return shown
        # A set: labels of one root are one object.
        return {
            image: sorted({known.root_of(name) or name for name in names})
            for image, names in shown.items()
        }

    def built(self, shown: Mapping[str, list[str]]) -> PopeBuild:
        """Return the questions about images.

        Raises:
            InvalidInputError: An option has no such value.
        """
        try:
            return build_pope(
                shown,
                sampling=self.sampling,
                questions_per_image=self.questions,
                seed=self.seed,
                template=self.template,
                images=self.images,
                min_objects=self.min_objects,
            )
        except ValueError as err:
            raise InvalidInputError(str(err)) from err


@build_app.command(
    "pope",
    epilog=examples(
        "hallujudge build pope --objects objects.json \\",
        "    --sampling adversarial -o questions.jsonl",
    ),
)
def build_pope_command(given: _Building) -> ExitCode:
    """POPE: balanced questions about objects in images."""
    inputs, shown = given.inputs(), given.shown()
    built = given.built(shown)
    if not built.questions:
        few = (
            "no image has enough objects; lower --questions or --min-objects"
            if any(shown.values())
            else "no image has an object; check the file"
        )
        raise ArchiveError(f"{inputs[0]}: {few}")
    write_lines(given.out, (row.to_json() for row in built.questions))
    click.echo(f"{len(built.questions)} questions written to {given.out}")
    if built.skipped:
        image, why = next(iter(built.skipped.items()))
        count = amount(len(built.skipped), "image has", "images have")
        click.echo(f"note: {count} no questions, such as {image}: {why}", err=True)
    return ExitCode.OK


def objects_of_images(
    objects: Path | None, instances: Sequence[Path] | None
) -> Mapping[str, list[str]]:
    """Return the objects of images, from whichever file was given."""
    return read_coco(instances or ()) if objects is None else _read_objects(objects)


def _say(found: DetectedObjects) -> None:
    if found.below:
        click.echo(f"note: {found.below:,} detections have a lower score", err=True)
    # Where nothing is left out, it does not matter which detections lack a score.
    if found.unscored and found.below:
        click.echo(f"note: {found.unscored:,} detections have no score, and count", err=True)
    if found.unknown:
        most = max(found.unknown, key=lambda name: found.unknown[name])
        click.echo(
            f"note: the graph does not know {len(found.unknown):,} labels, which stay as they are; "
            f"the most frequent is {most!r:.60}, in {found.unknown[most]:,} images",
            err=True,
        )


def _read_objects(path: Path) -> dict[str, list[str]]:
    shown: dict[str, list[str]] = {}
    for image, names in read_mapping(path, "objects of images").items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ArchiveError(f"{path}: the objects of image {image!r} are not a list of names")
        shown[image] = [name.strip() for name in names if name.strip()]
    return shown
