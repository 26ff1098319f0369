"""``hallujudge build pope``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from hallujudge.metrics.pope.question_builder import SAMPLINGS, TEMPLATES, PopeBuild, build_pope

from ..archives.joins import read_mapping
from ..errors import ArchiveError, InvalidInputError
from .app import (
    ExitCode,
    build_app,
    examples,
    input_option,
    metric_option,
    output_option,
    statistics_option,
)
from .output import write_file


@build_app.command(
    "pope",
    epilog=examples(
        "hallujudge build pope --objects objects.json \\",
        "    --sampling adversarial -o questions.jsonl",
    ),
)
def build_pope_command(
    *,
    objects: Annotated[
        Path, input_option("--objects", help="JSON file: image -> the objects that it shows.")
    ],
    sampling: Annotated[
        str, metric_option("--sampling", help=f"Absent: {', '.join(SAMPLINGS)}.")
    ] = "random",
    questions: Annotated[
        int, metric_option("--questions", help="Questions about each image; even.")
    ] = 6,
    images: Annotated[
        int | None, metric_option("--images", help="Number of images to draw; default: all.")
    ] = None,
    min_objects: Annotated[
        int | None, metric_option("--min-objects", help="Fewest objects that an image shows.")
    ] = None,
    template: Annotated[
        str, metric_option("--template", help="Question with {object} and its article {a}.")
    ] = TEMPLATES[0],
    seed: Annotated[int, statistics_option("--seed", help="Seed of the draw.")] = 0,
    out: Annotated[
        Path, output_option("--out", "-o", help="File of questions to write, as JSON lines.")
    ],
) -> ExitCode:
    """POPE: balanced questions about objects in images."""
    if os.path.realpath(objects) == os.path.realpath(out):
        raise InvalidInputError(f"--out {out} is the file of objects; name another file")
    shown = _read_objects(objects)
    try:
        built = build_pope(
            shown,
            sampling=sampling,
            questions_per_image=questions,
            seed=seed,
            template=template,
            images=images,
            min_objects=min_objects,
        )
    except ValueError as err:
        raise InvalidInputError(str(err)) from err
    if not built.questions:
        few = (
            "no image has enough objects; lower --questions or --min-objects"
            if any(shown.values())
            else "no image has an object; check the file"
        )
        raise ArchiveError(f"{objects}: {few}")
    _write_questions(built, out)
    typer.echo(f"{len(built.questions)} questions written to {out}")
    if built.skipped:
        first = next(iter(built.skipped.items()))
        typer.echo(
            f"note: {len(built.skipped)} images have no questions, such as {first[0]}: {first[1]}",
            err=True,
        )
    return ExitCode.OK


def _read_objects(path: Path) -> dict[str, list[str]]:
    shown: dict[str, list[str]] = {}
    for image, names in read_mapping(path, "objects of images").items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ArchiveError(f"{path}: the objects of image {image!r} are not a list of names")
        shown[image] = [name.strip() for name in names if name.strip()]
    return shown


def _write_questions(built: PopeBuild, out: Path) -> None:
    lines = [json.dumps(row.to_json(), ensure_ascii=False) + "\n" for row in built.questions]
    write_file(out, "".join(lines))
