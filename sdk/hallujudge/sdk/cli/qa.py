"""``hallujudge score pope|vidhal-mcqa|vidhal-ordering|infact`` and ``hallujudge build pope``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from hallujudge.metrics.pope.build import SAMPLINGS, TEMPLATES, PopeBuild, build_pope

from ..archives import InputOptions
from ..archives.qa import read_mapping
from ..errors import ArchiveError, InvalidInputError
from ..score_run import ScoreRun
from .app import ExitCode, app, score_app
from .files import write_file
from .groups import grouped
from .options import AllowDuplicates, AllowMissing, References, Responses, RunOptions
from .parsers import compare_parsers, forget_parsers, parsers_text, write_parsers

__all__: list[str] = []

build_app = typer.Typer(help="Build questions to ask a model.", no_args_is_help=True)
app.add_typer(build_app, name="build")


@score_app.command()
@grouped
def pope(
    *,
    responses: Responses,
    references: References = None,
    variant: Annotated[
        str,
        typer.Option(
            "--variant",
            "--parser",
            help="How answers are read: published, opera, lmms-eval, vlmevalkit or strict.",
        ),
    ] = "published",
    reader: Annotated[str, typer.Option("--reader", hidden=True)] = "",
    join: Annotated[
        str,
        typer.Option(
            "--join",
            help="How answers find their questions: auto, id, text (image and question) or order.",
        ),
    ] = "auto",
    all_parsers: Annotated[
        bool,
        typer.Option("--all-parsers", help="Also show, and leave in parsers.json, every parser."),
    ] = False,
    allow_missing: AllowMissing = False,
    allow_duplicates: AllowDuplicates = False,
    run: RunOptions,
) -> ExitCode:
    """POPE: yes/no questions about objects."""
    inputs = InputOptions(allow_missing=allow_missing, allow_duplicates=allow_duplicates, join=join)
    scoring = run.of(
        ScoreRun(
            "pope",
            responses=responses,
            references=references,
            variant=reader or variant,
            inputs=inputs,
        )
    )
    forget_parsers(run.out)
    code = scoring.execute()
    if all_parsers and code in (ExitCode.OK, ExitCode.UNSCORED):
        table = compare_parsers(scoring.run.items())
        write_parsers(run.out, table)
        if "table" in scoring.formats:
            typer.echo(parsers_text(table))
    return code


@dataclass(frozen=True, slots=True, kw_only=True)
class VidhalOptions:
    """Options of both VidHal tasks."""

    responses: Responses
    """File of answers."""
    references: References = None
    """File of captions."""
    options: Annotated[
        Path | None,
        typer.Option(
            "--options",
            help="File of the display order: video -> letter -> rank. Needed: without it a letter "
            "says nothing.",
        ),
    ] = None
    """File of the display order."""
    variant: Annotated[
        str,
        typer.Option("--variant", help="published (the released evaluation) or corrected (ours)."),
    ] = "published"
    """The variant."""
    allow_missing: AllowMissing = False
    """References without an answer don't stop the run."""
    allow_duplicates: AllowDuplicates = False
    """Ids that repeat don't stop the run."""


def _vidhal(metric: str, run: RunOptions, given: VidhalOptions) -> ExitCode:
    inputs = InputOptions(
        allow_missing=given.allow_missing,
        allow_duplicates=given.allow_duplicates,
        display=given.options,
    )
    return run.of(
        ScoreRun(
            metric,
            responses=given.responses,
            references=given.references,
            variant=given.variant,
            inputs=inputs,
        )
    ).execute()


@score_app.command("vidhal-mcqa")
@grouped
def vidhal_mcqa(run: RunOptions, given: VidhalOptions) -> ExitCode:
    """VidHal: which caption fits a video best."""
    return _vidhal("vidhal-mcqa", run, given)


@score_app.command("vidhal-ordering")
@grouped
def vidhal_ordering(run: RunOptions, given: VidhalOptions) -> ExitCode:
    """VidHal: captions in the order of how well they fit a video."""
    return _vidhal("vidhal-ordering", run, given)


@score_app.command()
@grouped
def infact(
    *,
    responses: Responses,
    references: References = None,
    unparsed: Annotated[
        str,
        typer.Option("--unparsed", help="What an unread answer is: unscored, or wrong."),
    ] = "unscored",
    variant: Annotated[str, typer.Option("--variant", help="paper, its one variant.")] = "paper",
    allow_missing: AllowMissing = False,
    run: RunOptions,
) -> ExitCode:
    """INFACT: the same questions under induced conditions."""
    return run.of(
        ScoreRun(
            "infact",
            responses=responses,
            references=references,
            variant=variant,
            options={"unparsed": unparsed},
            inputs=InputOptions(allow_missing=allow_missing),
        )
    ).execute()


@build_app.command("pope")
def build_pope_command(
    objects: Annotated[
        Path, typer.Option("--objects", help="JSON file: image -> the objects that it shows.")
    ],
    out: Annotated[Path, typer.Option("--out", help="File of questions to write, as JSON lines.")],
    sampling: Annotated[
        str, typer.Option("--sampling", help=f"{', '.join(SAMPLINGS)}: how absent ones are chosen.")
    ] = "random",
    questions: Annotated[
        int, typer.Option("--questions", help="Questions about each image; even.")
    ] = 6,
    images: Annotated[
        int | None, typer.Option("--images", help="Draw so many images; all of them otherwise.")
    ] = None,
    min_objects: Annotated[
        int | None, typer.Option("--min-objects", help="Least objects that an image shows.")
    ] = None,
    template: Annotated[
        str, typer.Option("--template", help="With {object} and its article {a}.")
    ] = TEMPLATES[0],
    seed: Annotated[int, typer.Option("--seed", help="What is drawn.")] = 0,
) -> ExitCode:
    """POPE: balanced questions about objects that images show and lack."""
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
        raise ArchiveError(f"{objects}: no image has enough objects; lower --questions")
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
            raise ArchiveError(f"{path}: the objects of image {image!r} are no list of names")
        shown[image] = [name.strip() for name in names if name.strip()]
    return shown


def _write_questions(built: PopeBuild, out: Path) -> None:
    lines = [json.dumps(row.to_json(), ensure_ascii=False) + "\n" for row in built.questions]
    write_file(out, "".join(lines))
