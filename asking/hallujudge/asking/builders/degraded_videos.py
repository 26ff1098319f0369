"""Work of ``hallujudge build infact``: makes degraded videos by its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from hallujudge.metrics.errors import choose_from
from hallujudge.sdk.archives.joins import read_mapping
from hallujudge.sdk.archives.json_files import amount
from hallujudge.sdk.cli.app import ExitCode
from hallujudge.sdk.cli.output import write_lines
from hallujudge.sdk.errors import ArchiveError, InvalidInputError

from ..video.degraded_folders import (
    Degraded,
    check_new,
    clear,
    degrade,
    makings_again,
    makings_of,
    videos_of,
)
from ..video.degrading import MADE, PROCEDURAL, DegradeSettings, Making
from ..video.frame_operators import BlurSettings, NoiseSettings, Step
from ..video.infact_questions import procedural_questions
from ..video.text_operators import CAPTION_KINDS, CaptionSettings, SubtitleSettings
from ..video.vision_attack import AttackSettings
from .infact import DegradeOptions
from .written_captions import OPERATOR as CAPTIONS
from .written_captions import asked_questions, check_writer, say_estimate, written_lines

# Sentences about videos that were not made; more would hide the summary.
_SHOWN = 20
_KNOWN = (*MADE, PROCEDURAL)
_SUBTITLES = (".srt", ".vtt")


def build_videos(given: DegradeOptions) -> ExitCode:
    """Make degraded videos, and say what was made.

    Raises:
        InvalidInputError: Options exclude each other, or a value is unknown.
        ArchiveError: A file can't be read.
    """
    _check(given)
    asked, out = _known_operators(given.operator or ()), given.out
    found = {} if given.manifest and not given.videos else videos_of(given.videos or (), out)
    if given.manifest:
        if given.operator:
            raise InvalidInputError("--manifest has its operators; leave --operator out")
        again = [making for path in given.manifest for making in makings_again(path, found, out)]
        return _made(again, given)
    procedures = _procedures_of(given.steps, found)
    settings = _settings(given, found, procedures)
    operators = _usable_operators(asked, settings)
    left_out: Mapping[str, str] = {}
    if given.references is not None:
        # A model writes only where the user's own lines say nothing.
        unnamed = [name for name in found if name not in settings.misleading]
        questions = asked_questions(given.references, unnamed, operators)
        # Before anything is made: an estimate writes no file.
        if given.estimate:
            say_estimate(given, questions)
            return ExitCode.OK
        if not (given.resume or given.overwrite):
            # Before a model is paid for lines of a folder that would be refused.
            check_new(out / CAPTIONS)
        found_lines = written_lines(given, questions)
        misleading = {**settings.misleading, **found_lines.lines}
        settings = replace(settings, misleading=misleading, written=found_lines.made_by)
        left_out = found_lines.left_out
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


def _check(given: DegradeOptions) -> None:
    """Refuse values that are unknown or exclude each other.

    Raises:
        InvalidInputError: A value is unknown, or does not fit another one.
        ArchiveError: The font is not a file.
    """
    if given.captions not in CAPTION_KINDS:
        raise InvalidInputError(
            f"--captions {given.captions!r:.60}: {choose_from(given.captions, CAPTION_KINDS)}"
        )
    if given.blur_longest < given.blur_shortest:
        raise InvalidInputError(
            f"--blur-longest {given.blur_longest} is less than --blur-shortest "
            f"{given.blur_shortest}"
        )
    if given.font is not None and not given.font.is_file():
        raise ArchiveError(f"--font {given.font} is not a file; give a TrueType font")
    check_writer(given)


def _settings(
    given: DegradeOptions, videos: Mapping[str, Path], procedures: Mapping[str, _Procedure]
) -> DegradeSettings:
    """Return the settings of operators.

    Args:
        given: The options.
        videos: Name -> video.
        procedures: Name -> what is done in the video.
    """
    return DegradeSettings(
        seed=given.seed,
        noise=NoiseSettings(sigma=given.sigma),
        blur=BlurSettings(shortest=given.blur_shortest, longest=given.blur_longest),
        kept_share=given.kept_bitrate,
        captions=CaptionSettings(kind=given.captions, font=given.font),
        misleading=_misleading(given.misleading, videos),
        corruption=SubtitleSettings(errors=given.character_errors),
        subtitles=_subtitles(given.subtitles, videos),
        attack=AttackSettings(epsilon=given.epsilon, steps=given.attack_steps),
        encoders=tuple(given.encoder or ()),
        steps={name: procedure.steps for name, procedure in procedures.items()},
    )


def _known_operators(asked: Sequence[str]) -> list[str]:
    """Return the names of the operators that were asked for, as they are known.

    Raises:
        InvalidInputError: An operator is unknown.
    """
    names = [name.strip().lower().replace("-", "_").replace(" ", "_") for name in asked]
    for name, given in zip(names, asked, strict=True):
        if name not in _KNOWN:
            raise InvalidInputError(f"--operator {given!r:.60}: {choose_from(given, _KNOWN)}")
    return list(dict.fromkeys(names))


def _usable_operators(asked: Sequence[str], settings: DegradeSettings) -> list[str]:
    """Return the operators to apply: those that were asked for, or those with all they need.

    Raises:
        InvalidInputError: An operator lacks what it needs.
    """
    needs = {
        "subtitle_corruption": (settings.subtitles, "subtitles by --subtitles or beside videos"),
        "adversarial_noise": (settings.encoders, "encoders by --encoder"),
        PROCEDURAL: (settings.steps, "the boundaries of steps by --steps"),
    }
    lacking = {name: what for name, (given, what) in needs.items() if not given}
    if not asked:
        # Without a list, whatever is possible is made; what is named must be.
        return [name for name in _KNOWN if name not in lacking]
    for name in asked:
        if name in lacking:
            raise InvalidInputError(f"--operator {name} needs {lacking[name]}")
    return list(asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Procedure:
    """What is done in a video."""

    task: str
    """Its name."""
    steps: tuple[Step, ...]


def _procedures_of(path: Path | None, videos: Mapping[str, Path]) -> dict[str, _Procedure]:
    """Return what is done in videos, from a file of their steps."""
    found = {}
    for name, value in _by_video(path, videos).items():
        with ArchiveError.of_content(
            f"{path}: the steps of {name!r:.60} are not a list of [start, end] in seconds",
            "give such a list, or an object with task and steps",
        ):
            steps, task = value, ""
            if isinstance(value, Mapping):
                steps, task = value["steps"], str(value.get("task") or "")
            spans = tuple(Step(start=float(start), end=float(end)) for start, end in steps)
        found[name] = _Procedure(task=task, steps=spans)
    return found


def _misleading(path: Path | None, videos: Mapping[str, Path]) -> dict[str, list[str]]:
    found = {}
    for name, lines in _by_video(path, videos).items():
        given = [lines] if isinstance(lines, str) else lines
        if not isinstance(given, list) or not all(isinstance(line, str) for line in given):
            raise ArchiveError(f"{path}: the lines of {name!r:.60} are not a list of texts")
        found[name] = [line.strip() for line in given if line.strip()]
    return found


def _by_video(path: Path | None, videos: Mapping[str, Path]) -> dict[str, Any]:
    """Return the values of a file by the names of videos; keys may lack folder and suffix.

    Without a file there are none.

    Raises:
        ArchiveError: The file names none of the videos.
    """
    if path is None:
        return {}
    values = read_mapping(path, "videos")
    found = {
        name: values[key]
        for name, video in videos.items()
        # The whole path first, since several folders may have files of one name.
        for key in [next((key for key in (name, video.name, video.stem) if key in values), None)]
        if key is not None
    }
    if not found:
        keys = ", ".join(map(repr, list(values)[:3])) or "none"
        raise ArchiveError(f"{path} names none of the videos (found {keys}); name their files")
    return found


def _subtitles(folder: Path | None, videos: Mapping[str, Path]) -> dict[str, Path]:
    """Return the subtitles of videos, from a folder or from the folder of the videos."""
    if folder is not None and not folder.is_dir():
        raise ArchiveError(f"--subtitles {folder} is not a folder; give the folder of subtitles")
    found = {}
    for name, video in videos.items():
        # Subtitles that lie beside a video are its own.
        places = (folder / name, folder / video.name) if folder is not None else (video,)
        files = [place.with_suffix(suffix) for place in places for suffix in _SUBTITLES]
        if path := next((file for file in files if file.is_file()), None):
            found[name] = path
    if folder is not None and not found:
        raise ArchiveError(
            f"--subtitles {folder} has none of the videos' names with {' or '.join(_SUBTITLES)}"
        )
    return found


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
    # Files of an earlier run with other settings would be mixed with the new ones.
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
