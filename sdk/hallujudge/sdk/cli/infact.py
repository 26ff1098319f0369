"""``hallujudge build infact``, and its commands for questions and people's audit."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from hallujudge.metrics.infact.operators import OPERATORS

from ..archives.joins import read_mapping
from ..archives.json_files import amount
from ..errors import ArchiveError, InvalidInputError, MissingExtraError
from .app import (
    ExitCode,
    build_app,
    examples,
    input_option,
    metric_option,
    output_option,
    statistics_option,
)
from .declared_options import grouped
from .options import Estimate, Temperature, WriterOptions
from .output import write_file, write_lines
from .parameters import argument
from .written_captions import OPERATOR as CAPTIONS
from .written_captions import CaptionWriter

if TYPE_CHECKING:
    from ..video.degraded_folders import Degraded
    from ..video.degrading import DegradeSettings, Making
    from ..video.frame_operators import Step

# As hallujudge.sdk.video.degrading has them, which needs PyAV.
_PROCEDURAL = "procedural_counterfactual"
_MADE = (*(name for name in OPERATORS if name not in ("base", "text_only")), _PROCEDURAL)
_SUBTITLES = (".srt", ".vtt")
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
def build_infact(
    *,
    videos: Annotated[
        list[Path] | None,
        argument(metavar="[VIDEO]...", help="Videos, or folders of videos."),
    ] = None,
    manifest: Annotated[
        list[Path] | None,
        input_option("--manifest", metavar="FILE", help="Manifest to make again; repeatable."),
    ] = None,
    subtitles: Annotated[
        Path | None,
        input_option("--subtitles", metavar="DIR", help="Subtitles by the names of videos."),
    ] = None,
    misleading: Annotated[
        Path | None,
        input_option("--misleading", metavar="FILE", help="JSON: video -> misleading lines."),
    ] = None,
    references: Annotated[
        Path | None,
        input_option(
            "--references", "-R", metavar="FILE", help="Questions; a model misleads about each."
        ),
    ] = None,
    steps: Annotated[
        Path | None,
        input_option("--steps", metavar="FILE", help="JSON: video -> steps with start and end."),
    ] = None,
    encoder: Annotated[
        list[Path] | None,
        input_option("--encoder", metavar="DIR", help="Vision encoder to attack; repeatable."),
    ] = None,
    operator: Annotated[
        list[str] | None,
        metric_option(
            "--operator", metavar="NAME", help="Operator; repeatable; default: all possible."
        ),
    ] = None,
    sigma: Annotated[float, metric_option("--sigma", min=0, max=255, help="Noise, of 255.")] = 20.0,
    blur_shortest: Annotated[
        int, metric_option("--blur-shortest", min=1, max=255, help="Shortest blur, in pixels.")
    ] = 7,
    blur_longest: Annotated[
        int, metric_option("--blur-longest", min=1, max=255, help="Longest blur, in pixels.")
    ] = 21,
    kept_bitrate: Annotated[
        float,
        metric_option("--kept-bitrate", min=0.001, max=1, help="Share of the bitrate that stays."),
    ] = 0.1519,
    captions: Annotated[
        str, metric_option("--captions", metavar="NAME", help="mixed, irrelevant, misleading.")
    ] = "mixed",
    prompt: Annotated[
        Path | None,
        metric_option("--prompt", metavar="FILE", help="Own prompt for misleading lines."),
    ] = None,
    font: Annotated[
        Path | None, metric_option("--font", metavar="FILE", help="Font of captions, TrueType.")
    ] = None,
    character_errors: Annotated[
        float,
        metric_option("--character-errors", min=0, max=1, help="Share of wrong characters."),
    ] = 0.1,
    epsilon: Annotated[
        float, metric_option("--epsilon", min=0, max=255, help="Adversarial noise, of 255.")
    ] = 8.0,
    attack_steps: Annotated[
        int, metric_option("--attack-steps", min=1, max=1000, help="Steps of MI-FGSM.")
    ] = 10,
    seed: Annotated[int, statistics_option("--seed", help="Seed of all that is drawn.")] = 0,
    writer: WriterOptions,
    temperature: Temperature = 0.0,
    estimate: Estimate = False,
    out: Annotated[
        Path, output_option("--out", "-o", metavar="DIR", help="Folder of the new videos.")
    ],
    workers: Annotated[
        int, output_option("--workers", min=0, help="Processes; 0: one for each core.")
    ] = 0,
    resume: Annotated[bool, output_option("--resume", help="Keep what is made already.")] = False,
    overwrite: Annotated[
        bool, output_option("--overwrite", help="Replace what is made already.")
    ] = False,
) -> ExitCode:
    """INFACT: degraded videos, by the operators of modes II to IV.

    Operators: gaussian_noise, motion_blur, compression, caption_injection, subtitle_corruption,
    adversarial_noise, shuffle, reverse and procedural_counterfactual.
    """
    if resume and overwrite:
        raise InvalidInputError("--resume and --overwrite exclude each other; give one of them")
    with MissingExtraError.unless_installed("hallujudge build infact", "video"):
        import av  # noqa: F401 - their absence is reported here
        import PIL  # noqa: F401
    from hallujudge.judge_service.vision_attack import AttackSettings

    from ..video.degraded_folders import check_new, makings_again, makings_of, videos_of
    from ..video.degrading import DegradeSettings
    from ..video.frame_operators import BlurSettings, NoiseSettings
    from ..video.text_operators import CAPTION_KINDS, CaptionSettings, SubtitleSettings

    kind = next((known for known in CAPTION_KINDS if known == captions), None)
    if kind is None:
        raise InvalidInputError(f"--captions {captions!r:.60}: choose {', '.join(CAPTION_KINDS)}")
    if blur_longest < blur_shortest:
        raise InvalidInputError(
            f"--blur-longest {blur_longest} is less than --blur-shortest {blur_shortest}"
        )
    if font is not None and not font.is_file():
        raise ArchiveError(f"--font {font} is not a file; give a TrueType font")
    captioning = CaptionWriter(
        references=references, prompt=prompt, model=writer.settings(), temperature=temperature
    )
    captioning.check(is_again=bool(manifest), kind=kind, only_estimate=estimate)
    asked = _known_operators(operator or ())
    found = {} if manifest and not videos else videos_of(videos or (), out)
    if manifest:
        if operator:
            raise InvalidInputError("--manifest has its operators; leave --operator out")
        makings = [making for path in manifest for making in makings_again(path, found, out)]
        return _made(makings, out, workers=workers, resume=resume, overwrite=overwrite, tasks={})
    procedures = _procedures(steps, found)
    settings = DegradeSettings(
        seed=seed,
        noise=NoiseSettings(sigma=sigma),
        blur=BlurSettings(shortest=blur_shortest, longest=blur_longest),
        kept_share=kept_bitrate,
        captions=CaptionSettings(kind=kind, font=font),
        misleading=_misleading(misleading, found),
        corruption=SubtitleSettings(errors=character_errors),
        subtitles=_subtitles(subtitles, found),
        attack=AttackSettings(epsilon=epsilon, steps=attack_steps),
        encoders=tuple(encoder or ()),
        steps={name: procedure.steps for name, procedure in procedures.items()},
    )
    operators = _operators(asked, settings)
    left_out: Mapping[str, str] = {}
    if references is not None:
        unnamed = [name for name in found if name not in settings.misleading]
        questions = captioning.questions(unnamed, operators)
        if estimate:
            captioning.say_estimate(questions, out)
            return ExitCode.OK
        if not (resume or overwrite):
            check_new(out / CAPTIONS)
        captioned = captioning.write(questions, out, settings)
        settings, left_out = captioned.settings, captioned.left_out
    makings = [
        making
        for making in makings_of(found, operators, out, settings)
        if making.operator != CAPTIONS or making.name not in left_out
    ]
    tasks = {name: procedure.task for name, procedure in procedures.items()}
    return _made(
        makings,
        out,
        workers=workers,
        resume=resume,
        overwrite=overwrite,
        tasks=tasks,
        left_out=[(CAPTIONS, f"{found[name]}: {why}") for name, why in left_out.items()],
    )


def _known_operators(asked: Sequence[str]) -> list[str]:
    """Return the names of operators as they are known.

    Raises:
        InvalidInputError: An operator is unknown.
    """
    names = [name.strip().lower().replace("-", "_").replace(" ", "_") for name in asked]
    for name, given in zip(names, asked, strict=True):
        if name not in _MADE:
            raise InvalidInputError(f"--operator {given!r:.60}: choose from {', '.join(_MADE)}")
    return list(dict.fromkeys(names))


def _operators(asked: Sequence[str], settings: DegradeSettings) -> list[str]:
    """Return the operators to apply: those that were asked for, or those with all they need.

    Raises:
        InvalidInputError: An operator lacks what it needs.
    """
    needs = {
        "subtitle_corruption": (settings.subtitles, "subtitles by --subtitles or beside videos"),
        "adversarial_noise": (settings.encoders, "encoders by --encoder"),
        _PROCEDURAL: (settings.steps, "the boundaries of steps by --steps"),
    }
    lacking = {name: what for name, (given, what) in needs.items() if not given}
    if not asked:
        return [name for name in _MADE if name not in lacking]
    for name in asked:
        if name in lacking:
            raise InvalidInputError(f"--operator {name} needs {lacking[name]}")
    return list(asked)


def _made(
    makings: Sequence[Making],
    out: Path,
    *,
    workers: int,
    resume: bool,
    overwrite: bool,
    tasks: Mapping[str, str],
    left_out: Sequence[tuple[str, str]] = (),
) -> ExitCode:
    """Make files, and say what was made.

    Args:
        makings: What is made.
        out: The folder.
        workers: Number of processes.
        resume: Whether what is made already stays.
        overwrite: Whether it is removed.
        tasks: Video -> the name of what is done in it.
        left_out: Operator and a sentence for each file that can't be made.
    """
    from ..video.degraded_folders import clear, degrade
    from ..video.infact_questions import procedural_questions

    if overwrite:
        for folder in sorted({making.folder for making in makings}):
            clear(folder)
    found = degrade(makings, workers=workers, resume=resume)
    found = replace(found, failed=(*left_out, *found.failed))
    if tasks and any(making.operator == _PROCEDURAL for making in makings):
        questions = procedural_questions(out, tasks)
        write_lines(out / _PROCEDURAL / "questions.jsonl", questions)
    _say(found, out)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Procedure:
    """What is done in a video."""

    task: str
    """Its name."""
    steps: tuple[Step, ...]
    """Its steps."""


def _procedures(path: Path | None, videos: Mapping[str, Path]) -> dict[str, _Procedure]:
    if path is None:
        return {}
    return {name: _procedure(path, name, value) for name, value in _by_video(path, videos).items()}


def _procedure(path: Path, name: str, value: Any) -> _Procedure:
    from ..video.frame_operators import Step

    with ArchiveError.of_content(
        f"{path}: the steps of {name!r:.60} are not a list of [start, end] in seconds",
        "give such a list, or an object with task and steps",
    ):
        steps, task = value, ""
        if isinstance(value, Mapping):
            steps, task = value["steps"], str(value.get("task") or "")
        found = tuple(Step(start=float(start), end=float(end)) for start, end in steps)
    return _Procedure(task=task, steps=found)


def _misleading(path: Path | None, videos: Mapping[str, Path]) -> dict[str, list[str]]:
    if path is None:
        return {}
    found = {}
    for name, lines in _by_video(path, videos).items():
        given = [lines] if isinstance(lines, str) else lines
        if not isinstance(given, list) or not all(isinstance(line, str) for line in given):
            raise ArchiveError(f"{path}: the lines of {name!r:.60} are not a list of texts")
        found[name] = [line.strip() for line in given if line.strip()]
    return found


def _by_video(path: Path, videos: Mapping[str, Path]) -> dict[str, Any]:
    """Return the values of a file by the names of videos; keys may lack folder and suffix.

    Raises:
        ArchiveError: The file names none of the videos.
    """
    values = read_mapping(path, "videos")
    found = {
        name: values[key]
        for name, video in videos.items()
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
        places = (folder / name, folder / video.name) if folder is not None else (video,)
        files = [place.with_suffix(suffix) for place in places for suffix in _SUBTITLES]
        if path := next((file for file in files if file.is_file()), None):
            found[name] = path
    if folder is not None and not found:
        raise ArchiveError(
            f"--subtitles {folder} has none of the videos' names with {' or '.join(_SUBTITLES)}"
        )
    return found


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
