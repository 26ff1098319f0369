"""``hallujudge build tri-he``, ``vidhal`` and ``vidhal-votes``: what a language model writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import click

# What they build with is imported when a command is called: help pages wait for none of it.
from hallujudge.asking import builders
from hallujudge.sdk.cli.app import (
    ExitCode,
    build_app,
    examples,
    input_option,
    metric_option,
    output_option,
    statistics_option,
)
from hallujudge.sdk.cli.options import Temperature, WriterOptions, checked_out, say_failed
from hallujudge.sdk.cli.output import write_file, write_lines
from hallujudge.sdk.media.media_files import MediaFolder


@build_app.command(
    "tri-he",
    epilog=examples(
        "hallujudge build tri-he --scene-graphs graphs.json --images images \\",
        "    --url http://localhost:8000/v1 --model qwen-vl -o tri-he.json",
    ),
)
def build_tri_he(
    *,
    scene_graphs: Annotated[Path, input_option(metavar="FILE", help="Scene graphs in GQA's form.")],
    images: Annotated[Path, input_option(metavar="DIR", help="Folder of the images.")],
    # At least five relations, as in section 4 of the paper.
    least_relations: Annotated[int, metric_option(min=1, help="Fewest relations of an image.")] = 5,
    count: Annotated[int | None, metric_option(min=1, help="Images to draw; default: all.")] = None,
    # Ten questions about an image, as in section 4 of the paper.
    questions: Annotated[int, metric_option(min=1, max=50, help="Questions about an image.")] = 10,
    unchecked: Annotated[
        bool, metric_option("--unchecked", help="Questions as they are written, for people.")
    ] = False,
    seed: Annotated[int, statistics_option(help="Seed of the drawn images.")] = 0,
    writer: WriterOptions,
    temperature: Temperature = 0.0,
    out: Annotated[Path, output_option("--out", "-o", help="File to write, as the released one.")],
) -> ExitCode:
    """Tri-HE: questions about images with scene graphs, and triplets."""
    checked_out(out, scene_graphs)
    scenes = builders.drawn(
        builders.read_scenes(scene_graphs, least_relations=least_relations), count, seed
    )
    folder = MediaFolder(images)

    found = builders.written(
        lambda model: builders.write_questions(
            scenes, folder, model, count=questions, checked=not unchecked
        ),
        len(scenes),
        "written",
        writer.settings(),
        out,
        temperature,
    )
    write_file(out, json.dumps(found.images, ensure_ascii=False, indent=1) + "\n")
    written = sum(len(record["instance"]) for record in found.images.values())
    click.echo(f"{written:,} questions about {len(found.images):,} images written to {out}")
    if found.rejected_questions or found.rejected_triplets:
        click.echo(
            f"note: {found.rejected_questions:,} questions and {found.rejected_triplets:,} "
            "triplets failed a check",
            err=True,
        )
    return say_failed(found.failed, len(found.images))


@build_app.command(
    "vidhal",
    epilog=examples(
        "hallujudge build vidhal -R videos.jsonl --url http://localhost:8000/v1 \\",
        "    --model llama -o annotations.json",
    ),
)
def build_vidhal(
    *,
    references: Annotated[
        Path,
        input_option("--references", "-R", metavar="FILE", help="What is known about videos."),
    ],
    writer: WriterOptions,
    temperature: Temperature = 0.0,
    # VidHal has three captions of each video (section 3.4).
    captions: Annotated[int, metric_option(min=2, max=8, help="Captions of a video.")] = 3,
    out: Annotated[Path, output_option("--out", "-o", help="Annotations to write, as JSON.")],
) -> ExitCode:
    """VidHal: captions of videos, the correct one and wrong ones by aspect."""
    checked_out(out, references)
    videos = builders.read_videos(references)

    found = builders.written(
        # The correct caption is one of them.
        lambda model: builders.write_captions(videos, model, wrong=captions - 1),
        len(videos),
        "captioned",
        writer.settings(),
        out,
        temperature,
    )
    write_file(out, json.dumps(found.rows, ensure_ascii=False, indent=1) + "\n")
    click.echo(f"captions of {len(found.rows):,} of {len(videos):,} videos written to {out}")
    return say_failed(found.failed, len(found.rows))


@build_app.command(
    "vidhal-votes",
    epilog=examples(
        "hallujudge build vidhal-votes -R annotations.json \\",
        "    --url http://localhost:8000/v1 --model llama -o votes.jsonl",
    ),
)
def build_vidhal_votes(
    *,
    references: Annotated[
        Path, input_option("--references", "-R", metavar="FILE", help="VidHal's annotations.")
    ],
    writer: WriterOptions,
    out: Annotated[Path, output_option("--out", "-o", help="Votes to write, as JSON lines.")],
) -> ExitCode:
    """VidHal: a model's votes on the quality of captions, for analyze --votes."""
    checked_out(out, references)
    videos = builders.read_videos(references, captioned=True)

    found = builders.written(
        lambda judge: builders.ask_quality(videos, judge),
        len(videos),
        "judged",
        writer.settings(),
        out,
    )
    count = write_lines(out, found.rows)
    click.echo(f"{count:,} votes on {len(videos):,} videos written to {out}")
    return say_failed(found.failed, len(found.rows))
