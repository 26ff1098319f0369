"""``hallujudge build seen-probes``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from hallujudge.metrics.seen_claims.probes import build_probes
from hallujudge.sdk.archives.json_files import amount
from hallujudge.sdk.cli.app import (
    ExitCode,
    build_app,
    examples,
    metric_option,
    output_option,
    statistics_option,
)
from hallujudge.sdk.cli.options import Instances, Objects
from hallujudge.sdk.cli.output import write_lines
from hallujudge.sdk.errors import InvalidInputError

from .pope import objects_of_images


@build_app.command(
    "seen-probes",
    epilog=examples(
        "hallujudge build seen-probes --instances instances_val2014.json --images 100 \\",
        "    -o probes.jsonl",
    ),
)
def build_seen_probes(
    *,
    objects: Objects = None,
    instances: Instances = None,
    per_image: Annotated[
        int, metric_option("--per-image", min=1, help="Objects of each kind for an image.")
    ] = 2,
    images: Annotated[
        int | None, metric_option("--images", min=1, help="Images to draw; default: all.")
    ] = None,
    seed: Annotated[int, statistics_option("--seed", help="Seed of the draw.")] = 0,
    out: Annotated[
        Path, output_option("--out", "-o", metavar="FILE", help="File of probes, as JSON lines.")
    ],
) -> ExitCode:
    """Probes of a judge that sees: objects that images show, and lack.

    A file of their labels is written beside them: score the probes, then give the labels to
    hallujudge judge card, which says how often the judge says yes.
    """
    if (objects is None) == (instances is None):
        raise InvalidInputError("give either --objects or --instances")
    shown = objects_of_images(objects, instances)
    try:
        probes = build_probes(shown, per_image=per_image, images=images, seed=seed)
    except ValueError as err:
        raise InvalidInputError(str(err)) from err
    if not probes:
        raise InvalidInputError("no image shows and lacks enough objects; lower --per-image")
    labels = out.with_name(f"{out.stem}.labels.jsonl")
    write_lines(out, (probe.to_json() for probe in probes))
    write_lines(labels, (label for probe in probes for label in probe.labels()))
    claims, pictures = sum(len(p.objects) for p in probes), {p.image for p in probes}
    click.echo(f"{claims:,} claims about {len(pictures):,} images written to {out}")
    if images is None and (left := [image for image in shown if image not in pictures]):
        few = amount(len(left), "image has", "images have")
        click.echo(
            f"note: {few} no claims, such as {left[0]}: fewer than {per_image} objects are named "
            "there; lower --per-image",
            err=True,
        )
    click.echo(f"their labels written to {labels}", err=True)
    return ExitCode.OK
