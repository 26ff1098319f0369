"""``hallujudge build infact``, and its commands for questions and people's audit."""

from __future__ import annotations

import csv
import io
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
from hallujudge.sdk.cli.declared_options import grouped
from hallujudge.sdk.cli.output import write_file, write_lines
from hallujudge.sdk.cli.parameters import argument
from hallujudge.sdk.errors import InvalidInputError, MissingExtraError

from .degrade_options import DegradeOptions

Questions = Annotated[
    Path, input_option("--references", "-R", metavar="FILE", help="Questions with labels.")
]


@build_app.command(
    "infact",
    epilog=examples(
        "hallujudge build infact videos -R questions.jsonl --model llama \\",
        "    --url http://localhost:8000/v1 -o degraded",
    ),
)
@grouped
def build_infact(given: DegradeOptions) -> ExitCode:
    """INFACT: degraded videos, by the operators of modes II to IV.

    Operators: gaussian_noise, motion_blur, compression, caption_injection, subtitle_corruption,
    adversarial_noise, shuffle, reverse and procedural_counterfactual.
    """
    given.check()
    with MissingExtraError.unless_installed("hallujudge build infact", "video"):
        build = builders.build_videos
    return build(given)


@build_app.command(
    "infact-questions",
    epilog=examples(
        "hallujudge build infact-questions -R questions.jsonl \\",
        "    --text-only llama.jsonl --text-only qwen.jsonl -o kept.jsonl",
    ),
)
def build_infact_questions(
    *,
    references: Questions,
    text_only: Annotated[
        list[Path],
        input_option("--text-only", metavar="FILE", help="A model's answers; repeatable."),
    ],
    solved_by: Annotated[
        int | None,
        metric_option("--solved-by", min=1, help="Right models; default: more than half."),
    ] = None,
    out: Annotated[Path, output_option("--out", "-o", help="File of questions to write.")],
) -> ExitCode:
    """INFACT: questions that can't be answered without the video."""
    with MissingExtraError.unless_installed("hallujudge build infact-questions", "video"):
        read, filtered = builders.read_questions, builders.needing_video
    questions = read(references)
    kept = filtered(questions, text_only, solved_by)
    write_lines(out, [question.record for question in kept.questions])
    click.echo(
        f"{len(kept.questions):,} of {len(questions):,} questions written to {out}; "
        f"{len(kept.solved):,} are answered without the video"
    )
    if kept.unanswered:
        click.echo(f"note: {kept.unanswered:,} have no answer, and are kept", err=True)
    return ExitCode.OK


@build_app.command(
    "infact-audit",
    epilog=examples("hallujudge build infact-audit degraded -R questions.jsonl -o audit"),
)
def build_infact_audit(
    *,
    places: Annotated[
        list[Path], argument(metavar="PLACE...", help="Folder of videos; filled sheets.")
    ],
    references: Annotated[
        Path | None,
        input_option("--references", "-R", metavar="FILE", help="Questions with labels."),
    ] = None,
    # Appendix A.3: 200 cases for each operator, and three annotators.
    cases: Annotated[
        int, metric_option("--cases", min=1, help="Questions for each operator.")
    ] = 200,
    annotators: Annotated[int, metric_option("--annotators", min=1, help="Sheets to write.")] = 3,
    seed: Annotated[int, statistics_option("--seed", help="Seed of sample and orders.")] = 0,
    out: Annotated[
        Path, output_option("--out", "-o", help="Folder of sheets; or file for analyze --audit.")
    ],
) -> ExitCode:
    """INFACT: sheets for people's audit; filled ones become one file."""
    with MissingExtraError.unless_installed("hallujudge build infact-audit", "video"):
        read, collected = builders.read_questions, builders.collected
    if all(place.is_file() for place in places):
        count = write_lines(out, collected(places))
        click.echo(f"choices of {len(places)} people in {count:,} cases written to {out}")
        return ExitCode.OK
    if len(places) > 1 or references is None:
        raise InvalidInputError(
            "give one folder of degraded videos with --references, or the filled sheets alone"
        )
    sheets = builders.audit_sheets(
        read(references), places[0], cases=cases, annotators=annotators, seed=seed
    )
    for number, sheet in enumerate(sheets, 1):
        write_file(out / f"annotator_{number}.csv", sheet)
    # Options take a line each within a row.
    rows = sum(1 for _ in csv.DictReader(io.StringIO(sheets[0], newline="")))
    click.echo(f"{len(sheets)} sheets of {rows:,} questions written to {out}")
    return ExitCode.OK
