"""``hallujudge build pope``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from hallujudge.judge_service.engine.resources import read_graph
from hallujudge.metrics.pope.question_builder import SAMPLINGS, TEMPLATES, PopeBuild, build_pope
from hallujudge.sdk.archives.chair_references import read_coco
from hallujudge.sdk.archives.detected_objects import DetectedObjects, read_detections
from hallujudge.sdk.archives.joins import read_mapping
from hallujudge.sdk.archives.json_files import amount
from hallujudge.sdk.cli.app import (
    ExitCode,
    build_app,
    examples,
    input_option,
    metric_option,
    output_option,
    statistics_option,
)
from hallujudge.sdk.cli.declared_options import grouped
from hallujudge.sdk.cli.options import Instances, Objects
from hallujudge.sdk.cli.output import write_lines
from hallujudge.sdk.errors import ArchiveError, InvalidInputError
from hallujudge.sdk.runs.run_spec import graph_source
from hallujudge.synonym_graphs import SynonymGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class _Building:
    """Which questions are built, of which images."""

    objects: Objects = None
    instances: Instances = None
    detections: Annotated[
        Path | None,
        input_option(
            "--detections", metavar="FILE", help="Labels with scores, by a detector or SEEM."
        ),
    ] = None
    min_score: Annotated[
        float, input_option("--min-score", help="Lowest score of a detection that counts.")
    ] = 0.0
    graph: Annotated[
        str | None,
        input_option("--graph", metavar="NAME", help="Synonym graph that joins labels, or a file."),
    ] = None
    sampling: Annotated[
        str, metric_option("--sampling", help=f"Absent: {', '.join(SAMPLINGS)}.")
    ] = "random"
    questions: Annotated[
        # The paper: 6 questions about each of 500 images with more than 3 objects.
        int, metric_option("--questions", help="Questions about each image; even.")
    ] = 6
    images: Annotated[
        int | None, metric_option("--images", help="Number of images to draw; default: all.")
    ] = None
    min_objects: Annotated[
        int | None, metric_option("--min-objects", help="Fewest objects that an image shows.")
    ] = None
    template: Annotated[
        str, metric_option("--template", help="Question with {object} and its article {a}.")
    ] = TEMPLATES[0]
    seed: Annotated[int, statistics_option("--seed", help="Seed of the draw.")] = 0
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
        if os.path.realpath(self.out) in map(os.path.realpath, given):
            raise InvalidInputError(f"--out {self.out} is one of the inputs; name another file")
        if self.detections is None and self.min_score:
            raise InvalidInputError("--min-score is for --detections; leave it out")
        return given

    def shown(self) -> Mapping[str, list[str]]:
        """Return image -> the objects that it shows."""
        known = read_graph(graph_source(self.graph)) if self.graph is not None else None
        return objects_of_images(
            self.objects, self.instances, self.detections, self.min_score, known
        )

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
@grouped
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
    objects: Path | None,
    instances: Sequence[Path] | None,
    detections: Path | None = None,
    min_score: float = 0.0,
    graph: SynonymGraph | None = None,
) -> Mapping[str, list[str]]:
    """Return the objects of images, from whichever file was given."""
    if detections is not None:
        found = read_detections(detections, min_score=min_score, graph=graph)
        _say(found)
        return found.objects
    shown = read_coco(instances or ()) if objects is None else _read_objects(objects)
    if graph is None:
        return shown
    return {
        image: sorted({graph.root_of(name) or name for name in names})
        for image, names in shown.items()
    }


def _say(found: DetectedObjects) -> None:
    if found.below:
        click.echo(f"note: {found.below:,} detections have a lower score", err=True)
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
