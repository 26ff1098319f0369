"""``hallujudge score seen-claims``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from ..archives import InputOptions
from ..archives.json_files import amount
from ..errors import InvalidInputError
from ..runs.score_run import ScoreRun
from .app import (
    ExitCode,
    build_app,
    examples,
    input_option,
    metric_option,
    output_option,
    score_app,
    statistics_option,
)
from .declared_options import DeclaredBy, MetricOptions, ScoreCommand, grouped
from .options import Estimate, Instances, JudgeOptions, Objects, say_where_pictures_go
from .run_options import InputsOf, Responses, RunOptions


@score_app.command(
    "seen-claims",
    epilog=examples(
        "hallujudge score seen-claims -r answers.jsonl --images pictures --judge llm \\",
        "    --llm-url http://localhost:8000/v1 --llm-model qwen-vl -o results",
    ),
)
@grouped
def seen_claims(
    *,
    responses: Responses,
    references: Annotated[
        str | None,
        input_option(
            "--references", "-R", metavar="FILE", help="File of id and picture of each response."
        ),
    ] = None,
    inputs: Annotated[InputOptions, InputsOf("seen-claims")],
    metric: Annotated[MetricOptions, DeclaredBy("seen-claims")],
    estimate: Estimate = False,
    judges: JudgeOptions,
    run: RunOptions,
) -> ScoreCommand:
    """Seen claims: claims that a judge does not see in the picture."""
    settings = judges.settings(run.at.server)
    if not (run.quiet or estimate):
        say_where_pictures_go(run.at.server, metric.options, settings)
        if (hosts := inputs.own.get("fetch")) is not None:
            click.echo(f"pictures are fetched from {hosts}", err=True)
    scoring = ScoreRun(
        "seen-claims",
        responses=responses,
        references=references,
        variant=metric.variant,
        options=metric.options,
        inputs=inputs,
    )
    return run.of(scoring, settings, only_estimate=estimate)


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
    from hallujudge.metrics.seen_claims.probes import build_probes

    from .output import write_lines
    from .pope import objects_of_images

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
