"""``hallujudge build references``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import click

from hallujudge.sdk.archives.chair_references import read_coco
from hallujudge.sdk.cli.app import ExitCode, build_app, examples, input_option, output_option
from hallujudge.sdk.cli.options import Instances, refuse_input
from hallujudge.sdk.cli.output import write_file
from hallujudge.sdk.errors import InvalidInputError


@build_app.command(
    "references",
    epilog=examples(
        "hallujudge build references --instances instances_val2014.json \\",
        "    --captions captions_val2014.json -o objects.json",
    ),
)
def build_references(
    *,
    instances: Instances = None,
    captions: Annotated[
        list[Path] | None, input_option(metavar="FILE", help="COCO's captions_*.json; repeatable.")
    ] = None,
    out: Annotated[
        Path, output_option("--out", "-o", metavar="FILE", help="File of references to write.")
    ],
) -> ExitCode:
    """CHAIR: objects of images, from COCO's annotation files."""
    paths = [*(instances or ()), *(captions or ())]
    if not paths:
        raise InvalidInputError(
            "give --instances, --captions, or both as the published script does"
        )
    refuse_input(out, *paths)
    objects = read_coco(paths)
    # A line for each image, so that files can be compared and searched.
    lines = (f"{json.dumps(image)}: {json.dumps(names)}" for image, names in objects.items())
    write_file(out, "{\n" + ",\n".join(lines) + "\n}\n")
    click.echo(f"objects of {len(objects):,} images written to {out}")
    return ExitCode.OK
