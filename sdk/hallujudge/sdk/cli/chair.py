"""``hallujudge score chair`` and ``hallujudge build references``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import click

from ..archives import InputOptions
from ..errors import InvalidInputError
from ..runs.score_run import ScoreRun
from .app import (
    ExitCode,
    build_app,
    examples,
    input_option,
    output_option,
    score_app,
)
from .declared_options import DeclaredBy, MetricOptions, ScoreCommand, grouped
from .options import Instances
from .output import write_file
from .run_options import InputsOf, ObjectFiles, ObjectGraph, Responses, RunOptions


@score_app.command(
    epilog=examples("hallujudge score chair -r captions.jsonl -R objects.json -o results")
)
@grouped
def chair(
    *,
    responses: Responses,
    references: ObjectFiles = None,
    inputs: Annotated[InputOptions, InputsOf("chair")],
    graph: ObjectGraph = None,
    metric: Annotated[MetricOptions, DeclaredBy("chair")],
    run: RunOptions,
) -> ScoreCommand:
    """CHAIR: objects that captions mention and images lack."""
    return run.of(
        ScoreRun(
            "chair",
            responses=responses,
            references=references or None,
            variant=metric.variant,
            graph=graph,
            options=metric.options,
            inputs=inputs,
        )
    )


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
        list[Path] | None,
        input_option("--captions", metavar="FILE", help="COCO's captions_*.json; repeatable."),
    ] = None,
    out: Annotated[
        Path, output_option("--out", "-o", metavar="FILE", help="File of references to write.")
    ],
) -> ExitCode:
    """CHAIR: objects of images, from COCO's annotation files."""
    from ..archives.chair_references import read_coco

    paths = [*(instances or ()), *(captions or ())]
    if not paths:
        raise InvalidInputError(
            "give --instances, --captions, or both as the published script does"
        )
    if os.path.realpath(out) in map(os.path.realpath, paths):
        raise InvalidInputError(f"--out {out} is one of the inputs; name another file")
    objects = read_coco(paths)
    lines = (f"{json.dumps(image)}: {json.dumps(names)}" for image, names in objects.items())
    write_file(out, "{\n" + ",\n".join(lines) + "\n}\n")
    click.echo(f"objects of {len(objects):,} images written to {out}")
    return ExitCode.OK
