"""``hallujudge score pope|vidhal-mcqa|vidhal-ordering|infact`` and ``hallujudge build pope``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from hallujudge.metrics.pope_build import SAMPLINGS, TEMPLATES, PopeBuild, build_pope

from ..archives import InputOptions, read_items
from ..archives._qa import read_mapping
from ..errors import ArchiveError, InvalidInputError, OutputError
from ._commands import (
    AllowDuplicates,
    AllowUnknown,
    Confidence,
    Format,
    GroupBy,
    IdKey,
    Out,
    References,
    Replicates,
    Responses,
    Seed,
    Server,
    TextKey,
    score_app,
    split_formats,
)
from ._main import ExitCode, app
from ._readers import compare_readers, forget_readers, readers_text, write_readers
from ._run import ScoreRun

__all__: list[str] = []

build_app = typer.Typer(help="Build questions to ask a model.", no_args_is_help=True)
app.add_typer(build_app, name="build")

AllowMissing = Annotated[
    bool,
    typer.Option("--allow-missing", help="Leave references without a response unscored."),
]
Display = Annotated[
    Path | None,
    typer.Option(
        "--options",
        help="File of the display order: video -> letter -> rank. Needed: without it a letter "
        "says nothing.",
    ),
]
Reading = Annotated[
    str, typer.Option("--variant", help="published (the released evaluation) or corrected (ours).")
]


@score_app.command()
def pope(
    responses: Responses,
    out: Out,
    references: References = None,
    variant: Annotated[
        str,
        typer.Option(
            "--variant",
            "--reader",
            help="How answers are read: published, opera, lmms-eval, vlmevalkit or strict.",
        ),
    ] = "published",
    join: Annotated[
        str,
        typer.Option(
            "--join",
            help="How answers find their questions: auto, id, text (image and question) or order.",
        ),
    ] = "auto",
    all_readers: Annotated[
        bool,
        typer.Option("--all-readers", help="Also show, and leave in readers.json, every reader."),
    ] = False,
    id_key: IdKey = None,
    text_key: TextKey = None,
    allow_unknown: AllowUnknown = False,
    allow_missing: AllowMissing = False,
    allow_duplicates: AllowDuplicates = False,
    group_by: GroupBy = None,
    seed: Seed = 0,
    replicates: Replicates = 1000,
    confidence: Confidence = 0.95,
    server: Server = None,
    format: Format = None,
) -> ExitCode:
    """POPE: yes/no questions about objects."""
    inputs = InputOptions(
        id_key=id_key,
        text_key=text_key,
        allow_unknown=allow_unknown,
        allow_missing=allow_missing,
        allow_duplicates=allow_duplicates,
        join=join,
    )
    run = ScoreRun(
        metric="pope",
        responses=responses,
        references=references,
        out=out,
        server=server,
        variant=variant,
        group_by=tuple(group_by or ()),
        seed=seed,
        replicates=replicates,
        confidence=confidence,
        inputs=inputs,
        formats=split_formats(format),
    )
    forget_readers(out)
    code = run.execute()
    if all_readers and code in (ExitCode.OK, ExitCode.UNSCORED):
        table = compare_readers(read_items("pope", responses, references, options=inputs))
        write_readers(out, table)
        if "table" in run.formats:
            typer.echo(readers_text(table))
    return code


def _vidhal(
    metric: str,
    responses: Path,
    out: Path,
    references: Path | None,
    variant: str,
    inputs: InputOptions,
    group_by: list[str] | None,
    interval: tuple[int, int, float],
    server: str | None,
    format: list[str] | None,
) -> ExitCode:
    seed, replicates, confidence = interval
    return ScoreRun(
        metric=metric,
        responses=responses,
        references=references,
        out=out,
        server=server,
        variant=variant,
        group_by=tuple(group_by or ()),
        seed=seed,
        replicates=replicates,
        confidence=confidence,
        inputs=inputs,
        formats=split_formats(format),
    ).execute()


@score_app.command("vidhal-mcqa")
def vidhal_mcqa(
    responses: Responses,
    out: Out,
    references: References = None,
    options: Display = None,
    variant: Reading = "published",
    id_key: IdKey = None,
    text_key: TextKey = None,
    allow_unknown: AllowUnknown = False,
    allow_missing: AllowMissing = False,
    allow_duplicates: AllowDuplicates = False,
    group_by: GroupBy = None,
    seed: Seed = 0,
    replicates: Replicates = 1000,
    confidence: Confidence = 0.95,
    server: Server = None,
    format: Format = None,
) -> ExitCode:
    """VidHal: which caption fits a video best."""
    inputs = InputOptions(
        id_key=id_key,
        text_key=text_key,
        allow_unknown=allow_unknown,
        allow_missing=allow_missing,
        allow_duplicates=allow_duplicates,
        display=options,
    )
    interval = (seed, replicates, confidence)
    return _vidhal(
        "vidhal-mcqa",
        responses,
        out,
        references,
        variant,
        inputs,
        group_by,
        interval,
        server,
        format,
    )


@score_app.command("vidhal-ordering")
def vidhal_ordering(
    responses: Responses,
    out: Out,
    references: References = None,
    options: Display = None,
    variant: Reading = "published",
    id_key: IdKey = None,
    text_key: TextKey = None,
    allow_unknown: AllowUnknown = False,
    allow_missing: AllowMissing = False,
    allow_duplicates: AllowDuplicates = False,
    group_by: GroupBy = None,
    seed: Seed = 0,
    replicates: Replicates = 1000,
    confidence: Confidence = 0.95,
    server: Server = None,
    format: Format = None,
) -> ExitCode:
    """VidHal: captions in the order of how well they fit a video."""
    inputs = InputOptions(
        id_key=id_key,
        text_key=text_key,
        allow_unknown=allow_unknown,
        allow_missing=allow_missing,
        allow_duplicates=allow_duplicates,
        display=options,
    )
    interval = (seed, replicates, confidence)
    return _vidhal(
        "vidhal-ordering",
        responses,
        out,
        references,
        variant,
        inputs,
        group_by,
        interval,
        server,
        format,
    )


@score_app.command()
def infact(
    responses: Responses,
    out: Out,
    references: References = None,
    unparsed: Annotated[
        str,
        typer.Option("--unparsed", help="What an unread answer is: unscored, or wrong."),
    ] = "unscored",
    variant: Annotated[str, typer.Option("--variant", help="paper, its one reading.")] = "paper",
    id_key: IdKey = None,
    text_key: TextKey = None,
    allow_unknown: AllowUnknown = False,
    allow_missing: AllowMissing = False,
    group_by: GroupBy = None,
    seed: Seed = 0,
    replicates: Replicates = 1000,
    confidence: Confidence = 0.95,
    server: Server = None,
    format: Format = None,
) -> ExitCode:
    """INFACT: the same questions under induced conditions."""
    return ScoreRun(
        metric="infact",
        responses=responses,
        references=references,
        out=out,
        server=server,
        variant=variant,
        options={"unparsed": unparsed},
        group_by=tuple(group_by or ()),
        seed=seed,
        replicates=replicates,
        confidence=confidence,
        inputs=InputOptions(
            id_key=id_key,
            text_key=text_key,
            allow_unknown=allow_unknown,
            allow_missing=allow_missing,
        ),
        formats=split_formats(format),
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
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text("".join(lines), encoding="utf-8", newline="\n")
    except OSError as err:
        raise OutputError(f"can't write {out}: {err.strerror or err}") from err
