"""``hallujudge score pope`` and ``hallujudge build pope``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from hallujudge.metrics import PopeItem
from hallujudge.metrics.pope.answer_analyses import ParserComparison
from hallujudge.metrics.pope.question_builder import SAMPLINGS, TEMPLATES, PopeBuild, build_pope

from ..archives import InputOptions
from ..archives.joins import read_mapping
from ..errors import ArchiveError, InvalidInputError
from ..runs.manifest import PARSERS
from ..score_run import ScoreRun
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
from .declared_options import DeclaredBy, MetricOptions, grouped
from .output import write_file
from .run_options import AllowDuplicates, AllowMissing, Responses, RunOptions
from .score_command import ScoreCommand

# Answers are parsed in batches, so that a long archive is never in memory as a whole.
_BATCH = 4096


@score_app.command(
    epilog=examples("hallujudge score pope -r answers.jsonl -R questions.json -o results")
)
@grouped
def pope(
    *,
    responses: Responses,
    references: Annotated[
        list[str] | None,
        input_option(
            "--references",
            "-R",
            metavar="FILE",
            help="File of questions, and files of their labels; repeatable.",
        ),
    ] = None,
    join: Annotated[
        str, input_option("--join", help="Join by auto, id, text (image and question) or order.")
    ] = "auto",
    allow_missing: AllowMissing = False,
    allow_duplicates: AllowDuplicates = False,
    metric: Annotated[MetricOptions, DeclaredBy("pope", "--parser")],
    reader: Annotated[str, typer.Option("--reader", hidden=True)] = "",
    run: RunOptions,
    all_parsers: Annotated[
        bool,
        output_option("--all-parsers", help="Table of all answer parsers, also in parsers.json."),
    ] = False,
) -> ScoreCommand:
    """POPE: yes/no questions about objects."""
    inputs = InputOptions(allow_missing=allow_missing, allow_duplicates=allow_duplicates, join=join)
    command = run.of(
        ScoreRun(
            "pope",
            responses=responses,
            references=references or None,
            variant=reader or metric.variant,
            inputs=inputs,
        )
    )
    return replace(command, then=_compare_parsers) if all_parsers else command


def _compare_parsers(command: ScoreCommand) -> None:
    """Score the same answers by every parser, and print and write the table.

    Raises:
        OutputError: The table can't be written.
    """
    from hallujudge.judge_service.engine.responses import MAX_RESPONSE_CHARS

    comparison = ParserComparison()
    rest = iter(command.run.items())
    while batch := list(islice(rest, _BATCH)):
        rows = [
            (item.response, item.label)
            for item in batch
            if isinstance(item, PopeItem) and item.response is not None and item.label
            if len(item.response) <= MAX_RESPONSE_CHARS
        ]
        comparison.add([text for text, _ in rows], [label for _, label in rows])
    table = comparison.scores()
    write_file(command.out / PARSERS, json.dumps(table, indent=1, allow_nan=False) + "\n")
    if command.prints_table:
        typer.echo("\n".join(_table_lines(table)))


def _table_lines(table: Mapping[str, Mapping[str, float | None]]) -> Iterator[str]:
    """Yield the lines of a table of parser -> score -> value."""
    names = list(next(iter(table.values())))
    yield "the same answers under every parser"
    yield f"{'parser':<11}" + "".join(f"{name:>15}" for name in names)
    for parser, scores in table.items():
        cells = ("–" if (value := scores[name]) is None else f"{value:.4f}" for name in names)
        yield f"{parser:<11}" + "".join(f"{cell:>15}" for cell in cells)


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
        str, metric_option("--sampling", help=f"Absent objects: {', '.join(SAMPLINGS)}.")
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
