"""``hallujudge build infact``, and its commands for questions and people's audit."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from hallujudge.sdk.cli.app import (
    ExitCode,
    build_app,
    examples,
    input_option,
    metric_option,
    output_option,
    statistics_option,
)
from hallujudge.sdk.cli.options import Estimate, Temperature, WriterOptions
from hallujudge.sdk.cli.output import write_file, write_lines
from hallujudge.sdk.cli.parameters import argument
from hallujudge.sdk.errors import InvalidInputError, MissingExtraError

from .. import builders


@dataclass(frozen=True, slots=True, kw_only=True)
class DegradeOptions:
    """Which videos are degraded, how, and where the new ones go."""

    videos: Annotated[
        list[Path] | None,
        argument(metavar="[VIDEO]...", help="Videos, or folders of videos."),
    ] = None
    manifest: Annotated[
        list[Path] | None, input_option(metavar="FILE", help="Manifest to make again; repeatable.")
    ] = None
    subtitles: Annotated[
        Path | None, input_option(metavar="DIR", help="Subtitles by the names of videos.")
    ] = None
    misleading: Annotated[
        Path | None, input_option(metavar="FILE", help="JSON: video -> misleading lines.")
    ] = None
    references: Annotated[
        Path | None,
        input_option(
            "--references", "-R", metavar="FILE", help="Questions; a model misleads about each."
        ),
    ] = None
    steps: Annotated[
        Path | None, input_option(metavar="FILE", help="JSON: video -> steps with start and end.")
    ] = None
    encoder: Annotated[
        list[Path] | None, input_option(metavar="DIR", help="Vision encoder to attack; repeatable.")
    ] = None
    operator: Annotated[
        list[str] | None,
        metric_option(metavar="NAME", help="Operator; repeatable; default: all possible."),
    ] = None
    sigma: Annotated[float, metric_option(min=0, max=255, help="Noise, of 255.")] = 20.0
    blur_shortest: Annotated[
        int, metric_option(min=1, max=255, help="Shortest blur, in pixels.")
    ] = 7
    blur_longest: Annotated[int, metric_option(min=1, max=255, help="Longest blur, in pixels.")] = (
        21
    )
    # Appendix A.5 of the paper; it gives no strength of the other operators.
    kept_bitrate: Annotated[
        float, metric_option(min=0.001, max=1, help="Share of the bitrate that stays.")
    ] = 0.1519
    captions: Annotated[
        str, metric_option(metavar="NAME", help="mixed, irrelevant, misleading.")
    ] = "mixed"
    prompt: Annotated[
        Path | None, metric_option(metavar="FILE", help="Own prompt for misleading lines.")
    ] = None
    font: Annotated[
        Path | None, metric_option(metavar="FILE", help="Font of captions, TrueType.")
    ] = None
    character_errors: Annotated[
        float, metric_option(min=0, max=1, help="Share of wrong characters.")
    ] = 0.1
    epsilon: Annotated[float, metric_option(min=0, max=255, help="Adversarial noise, of 255.")] = (
        8.0
    )
    attack_steps: Annotated[int, metric_option(min=1, max=1000, help="Steps of MI-FGSM.")] = 10
    seed: Annotated[int, statistics_option(help="Seed of all that is drawn.")] = 0
    writer: WriterOptions
    temperature: Temperature = 0.0
    estimate: Estimate = False
    out: Annotated[
        Path, output_option("--out", "-o", metavar="DIR", help="Folder of the new videos.")
    ]
    workers: Annotated[int, output_option(min=0, help="Processes; 0: one for each core.")] = 0
    resume: Annotated[bool, output_option("--resume", help="Keep what is made already.")] = False
    overwrite: Annotated[
        bool, output_option("--overwrite", help="Replace what is made already.")
    ] = False

    def check(self) -> None:
        """Refuse switches that exclude each other.

        Raises:
            InvalidInputError: Both were given.
        """
        if self.resume and self.overwrite:
            raise InvalidInputError("--resume and --overwrite exclude each other; give one of them")


# What they build with is imported when a command is called: help pages wait for none of it.


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
        list[Path], input_option(metavar="FILE", help="A model's answers; repeatable.")
    ],
    solved_by: Annotated[
        int | None, metric_option(min=1, help="Right models; default: more than half.")
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
    cases: Annotated[int, metric_option(min=1, help="Questions for each operator.")] = 200,
    annotators: Annotated[int, metric_option(min=1, help="Sheets to write.")] = 3,
    seed: Annotated[int, statistics_option(help="Seed of sample and orders.")] = 0,
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
