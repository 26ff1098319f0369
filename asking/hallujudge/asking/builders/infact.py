"""``hallujudge build infact``, and its commands for questions and people's audit."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from hallujudge.sdk.archives.json_files import amount
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

from .degrade_options import PROCEDURAL, DegradeOptions, procedures_of, usable_operators
from .written_captions import OPERATOR as CAPTIONS

if TYPE_CHECKING:
    from ..video.degraded_folders import Degraded
    from ..video.degrading import Making

_SHOWN = 20

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
    from ..video.degraded_folders import check_new, makings_again, makings_of, videos_of

    asked, out = given.known_operators(), given.out
    found = {} if given.manifest and not given.videos else videos_of(given.videos or (), out)
    if given.manifest:
        if given.operator:
            raise InvalidInputError("--manifest has its operators; leave --operator out")
        again = [making for path in given.manifest for making in makings_again(path, found, out)]
        return _made(again, given)
    procedures = procedures_of(given.steps, found)
    settings = given.settings(found, procedures)
    operators = usable_operators(asked, settings)
    left_out: Mapping[str, str] = {}
    if given.references is not None:
        unnamed = [name for name in found if name not in settings.misleading]
        captioning = given.captioning
        questions = captioning.questions(unnamed, operators)
        if given.estimate:
            captioning.say_estimate(questions, out)
            return ExitCode.OK
        if not (given.resume or given.overwrite):
            # Before a model is paid for lines of a folder that would be refused.
            check_new(out / CAPTIONS)
        captioned = captioning.write(questions, out, settings)
        settings, left_out = captioned.settings, captioned.left_out
    makings = [
        making
        for making in makings_of(found, operators, out, settings)
        if making.operator != CAPTIONS or making.name not in left_out
    ]
    return _made(
        makings,
        given,
        tasks={name: procedure.task for name, procedure in procedures.items()},
        left_out=[(CAPTIONS, f"{found[name]}: {why}") for name, why in left_out.items()],
    )


def _made(
    makings: Sequence[Making],
    given: DegradeOptions,
    *,
    tasks: Mapping[str, str] | None = None,
    left_out: Sequence[tuple[str, str]] = (),
) -> ExitCode:
    """Make files, and say what was made.

    Args:
        makings: What is made.
        given: Where, in how many processes, and what becomes of files that are there.
        tasks: Video -> the name of what is done in it.
        left_out: Operator and a sentence for each file that can't be made.
    """
    from ..video.degraded_folders import clear, degrade
    from ..video.infact_questions import procedural_questions

    if given.overwrite:
        for folder in sorted({making.folder for making in makings}):
            clear(folder)
    found = degrade(makings, workers=given.workers, resume=given.resume)
    found = replace(found, failed=(*left_out, *found.failed))
    if tasks and any(making.operator == PROCEDURAL for making in makings):
        questions = procedural_questions(given.out, tasks)
        write_lines(given.out / PROCEDURAL / "questions.jsonl", questions)
    _say(found, given.out)
    if not found.failed:
        return ExitCode.OK
    return ExitCode.UNSCORED if found.made or found.kept else ExitCode.FAILED


def _say(found: Degraded, out: Path) -> None:
    kept = f", {found.kept:,} kept" if found.kept else ""
    click.echo(f"{found.made:,} videos written to {out}{kept}")
    # A video that can't be read fails under each operator.
    operators: dict[str, list[str]] = {}
    for operator, sentence in found.failed:
        operators.setdefault(sentence, []).append(operator)
    for sentence, names in [*operators.items()][:_SHOWN]:
        click.echo(f"not made: {', '.join(names)}: {sentence}", err=True)
    if len(operators) > _SHOWN:
        click.echo(f"not made: {len(operators) - _SHOWN:,} more", err=True)
    if found.changed:
        click.echo(
            f"note: {amount(len(found.changed), 'file differs', 'files differ')} from the "
            f"manifest, such as {found.changed[0]}: compare libraries in both manifests",
            err=True,
        )


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
        from ..video.infact_questions import needing_video, read_questions

    questions = read_questions(references)
    kept = needing_video(questions, text_only, solved_by)
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
        from ..video.infact_questions import audit_sheets, collected, read_questions

    if all(place.is_file() for place in places):
        count = write_lines(out, collected(places))
        click.echo(f"choices of {len(places)} people in {count:,} cases written to {out}")
        return ExitCode.OK
    if len(places) > 1 or references is None:
        raise InvalidInputError(
            "give one folder of degraded videos with --references, or the filled sheets alone"
        )
    sheets = audit_sheets(
        read_questions(references), places[0], cases=cases, annotators=annotators, seed=seed
    )
    for number, sheet in enumerate(sheets, 1):
        write_file(out / f"annotator_{number}.csv", sheet)
    # Options take a line each within a row.
    rows = sum(1 for _ in csv.DictReader(io.StringIO(sheets[0], newline="")))
    click.echo(f"{len(sheets)} sheets of {rows:,} questions written to {out}")
    return ExitCode.OK
