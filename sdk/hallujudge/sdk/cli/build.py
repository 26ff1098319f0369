"""``hallujudge build references``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..archives.coco import read_coco
from ..errors import InvalidInputError
from .app import ExitCode, build_app
from .files import write_file
from .panels import examples, input_option, output_option

__all__: list[str] = []


@build_app.command(
    epilog=examples(
        "hallujudge build references --instances instances_val2014.json \\",
        "    --captions captions_val2014.json -o objects.json",
    )
)
def references(
    *,
    instances: Annotated[
        list[Path] | None,
        input_option("--instances", metavar="FILE", help="COCO's instances_*.json; repeatable."),
    ] = None,
    captions: Annotated[
        list[Path] | None,
        input_option("--captions", metavar="FILE", help="COCO's captions_*.json; repeatable."),
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
    if any(path.resolve() == out.resolve() for path in paths):
        raise InvalidInputError(f"--out {out} is one of the inputs; name another file")
    objects = read_coco(paths)
    lines = (f"{json.dumps(image)}: {json.dumps(names)}" for image, names in objects.items())
    write_file(out, "{\n" + ",\n".join(lines) + "\n}\n")
    typer.echo(f"objects of {len(objects):,} images written to {out}")
    return ExitCode.OK
