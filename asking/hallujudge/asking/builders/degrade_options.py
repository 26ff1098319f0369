"""Options of ``hallujudge build infact``: which videos are degraded, how, and where they go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hallujudge.metrics.infact.operators import OPERATORS
from hallujudge.sdk.archives.joins import read_mapping
from hallujudge.sdk.cli.app import input_option, metric_option, output_option, statistics_option
from hallujudge.sdk.cli.options import Estimate, Temperature, WriterOptions
from hallujudge.sdk.cli.parameters import argument
from hallujudge.sdk.errors import ArchiveError, InvalidInputError, MissingExtraError

from .written_captions import CaptionWriter

if TYPE_CHECKING:
    from ..video.degrading import DegradeSettings
    from ..video.frame_operators import Step
    from ..video.text_operators import CaptionKind

# As hallujudge.asking.video.degrading has them, which needs PyAV.
PROCEDURAL = "procedural_counterfactual"
"""The operator that cuts videos at the boundaries of steps."""
# The clean video is there already, and text_only shows none.
_MADE = (*(name for name in OPERATORS if name not in ("base", "text_only")), PROCEDURAL)
_SUBTITLES = (".srt", ".vtt")


@dataclass(frozen=True, slots=True, kw_only=True)
class DegradeOptions:
    """Which videos are degraded, how, and where the new ones go."""

    videos: Annotated[
        list[Path] | None,
        argument(metavar="[VIDEO]...", help="Videos, or folders of videos."),
    ] = None
    manifest: Annotated[
        list[Path] | None,
        input_option("--manifest", metavar="FILE", help="Manifest to make again; repeatable."),
    ] = None
    subtitles: Annotated[
        Path | None,
        input_option("--subtitles", metavar="DIR", help="Subtitles by the names of videos."),
    ] = None
    misleading: Annotated[
        Path | None,
        input_option("--misleading", metavar="FILE", help="JSON: video -> misleading lines."),
    ] = None
    references: Annotated[
        Path | None,
        input_option(
            "--references", "-R", metavar="FILE", help="Questions; a model misleads about each."
        ),
    ] = None
    steps: Annotated[
        Path | None,
        input_option("--steps", metavar="FILE", help="JSON: video -> steps with start and end."),
    ] = None
    encoder: Annotated[
        list[Path] | None,
        input_option("--encoder", metavar="DIR", help="Vision encoder to attack; repeatable."),
    ] = None
    operator: Annotated[
        list[str] | None,
        metric_option(
            "--operator", metavar="NAME", help="Operator; repeatable; default: all possible."
        ),
    ] = None
    sigma: Annotated[float, metric_option("--sigma", min=0, max=255, help="Noise, of 255.")] = 20.0
    blur_shortest: Annotated[
        int, metric_option("--blur-shortest", min=1, max=255, help="Shortest blur, in pixels.")
    ] = 7
    blur_longest: Annotated[
        int, metric_option("--blur-longest", min=1, max=255, help="Longest blur, in pixels.")
    ] = 21
    # Appendix A.5 of the paper; it gives no strength of the other operators.
    kept_bitrate: Annotated[
        float,
        metric_option("--kept-bitrate", min=0.001, max=1, help="Share of the bitrate that stays."),
    ] = 0.1519
    captions: Annotated[
        str, metric_option("--captions", metavar="NAME", help="mixed, irrelevant, misleading.")
    ] = "mixed"
    prompt: Annotated[
        Path | None,
        metric_option("--prompt", metavar="FILE", help="Own prompt for misleading lines."),
    ] = None
    font: Annotated[
        Path | None, metric_option("--font", metavar="FILE", help="Font of captions, TrueType.")
    ] = None
    character_errors: Annotated[
        float,
        metric_option("--character-errors", min=0, max=1, help="Share of wrong characters."),
    ] = 0.1
    epsilon: Annotated[
        float, metric_option("--epsilon", min=0, max=255, help="Adversarial noise, of 255.")
    ] = 8.0
    attack_steps: Annotated[
        int, metric_option("--attack-steps", min=1, max=1000, help="Steps of MI-FGSM.")
    ] = 10
    seed: Annotated[int, statistics_option("--seed", help="Seed of all that is drawn.")] = 0
    writer: WriterOptions
    temperature: Temperature = 0.0
    estimate: Estimate = False
    out: Annotated[
        Path, output_option("--out", "-o", metavar="DIR", help="Folder of the new videos.")
    ]
    workers: Annotated[
        int, output_option("--workers", min=0, help="Processes; 0: one for each core.")
    ] = 0
    resume: Annotated[bool, output_option("--resume", help="Keep what is made already.")] = False
    overwrite: Annotated[
        bool, output_option("--overwrite", help="Replace what is made already.")
    ] = False

    def check(self) -> None:
        """Refuse values that exclude each other, and packages that are missing.

        Raises:
            InvalidInputError: Options exclude each other, or a value is unknown.
            MissingExtraError: A package is missing.
            ArchiveError: The font is not a file.
        """
        if self.resume and self.overwrite:
            raise InvalidInputError("--resume and --overwrite exclude each other; give one of them")
        with MissingExtraError.unless_installed("hallujudge build infact", "video"):
            import av  # noqa: F401 - their absence is reported here
            import PIL  # noqa: F401
        kind = self.kind
        if self.blur_longest < self.blur_shortest:
            raise InvalidInputError(
                f"--blur-longest {self.blur_longest} is less than --blur-shortest "
                f"{self.blur_shortest}"
            )
        if self.font is not None and not self.font.is_file():
            raise ArchiveError(f"--font {self.font} is not a file; give a TrueType font")
        self.captioning.check(is_again=bool(self.manifest), kind=kind, only_estimate=self.estimate)

    @property
    def kind(self) -> CaptionKind:
        """Which captions are drawn.

        Raises:
            InvalidInputError: They are unknown.
        """
        from ..video.text_operators import CAPTION_KINDS

        for known in CAPTION_KINDS:
            if known == self.captions:
                return known
        raise InvalidInputError(
            f"--captions {self.captions!r:.60}: choose {', '.join(CAPTION_KINDS)}"
        )

    @property
    def captioning(self) -> CaptionWriter:
        """What asks a language model for lines that mislead."""
        return CaptionWriter(
            references=self.references,
            prompt=self.prompt,
            model=self.writer.settings(),
            temperature=self.temperature,
        )

    def settings(
        self, videos: Mapping[str, Path], procedures: Mapping[str, Procedure]
    ) -> DegradeSettings:
        """Return the settings of operators.

        Args:
            videos: Name -> video.
            procedures: Name -> what is done in the video.
        """
        from ..video.degrading import DegradeSettings
        from ..video.frame_operators import BlurSettings, NoiseSettings
        from ..video.text_operators import CaptionSettings, SubtitleSettings
        from ..video.vision_attack import AttackSettings

        return DegradeSettings(
            seed=self.seed,
            noise=NoiseSettings(sigma=self.sigma),
            blur=BlurSettings(shortest=self.blur_shortest, longest=self.blur_longest),
            kept_share=self.kept_bitrate,
            captions=CaptionSettings(kind=self.kind, font=self.font),
            misleading=_misleading(self.misleading, videos),
            corruption=SubtitleSettings(errors=self.character_errors),
            subtitles=_subtitles(self.subtitles, videos),
            attack=AttackSettings(epsilon=self.epsilon, steps=self.attack_steps),
            encoders=tuple(self.encoder or ()),
            steps={name: procedure.steps for name, procedure in procedures.items()},
        )

    def known_operators(self) -> list[str]:
        """Return the names of the operators that were asked for, as they are known.

        Raises:
            InvalidInputError: An operator is unknown.
        """
        asked = self.operator or ()
        names = [name.strip().lower().replace("-", "_").replace(" ", "_") for name in asked]
        for name, given in zip(names, asked, strict=True):
            if name not in _MADE:
                raise InvalidInputError(f"--operator {given!r:.60}: choose from {', '.join(_MADE)}")
        return list(dict.fromkeys(names))


def usable_operators(asked: Sequence[str], settings: DegradeSettings) -> list[str]:
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
        return [name for name in _MADE if name not in lacking]
    for name in asked:
        if name in lacking:
            raise InvalidInputError(f"--operator {name} needs {lacking[name]}")
    return list(asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """What is done in a video."""

    task: str
    """Its name."""
    steps: tuple[Step, ...]


def procedures_of(path: Path | None, videos: Mapping[str, Path]) -> dict[str, Procedure]:
    """Return what is done in videos, from a file of their steps."""
    if path is None:
        return {}
    return {name: _procedure(path, name, value) for name, value in _by_video(path, videos).items()}


def _procedure(path: Path, name: str, value: Any) -> Procedure:
    from ..video.frame_operators import Step

    with ArchiveError.of_content(
        f"{path}: the steps of {name!r:.60} are not a list of [start, end] in seconds",
        "give such a list, or an object with task and steps",
    ):
        steps, task = value, ""
        if isinstance(value, Mapping):
            steps, task = value["steps"], str(value.get("task") or "")
        found = tuple(Step(start=float(start), end=float(end)) for start, end in steps)
    return Procedure(task=task, steps=found)


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
        places = (folder / name, folder / video.name) if folder is not None else (video,)
        files = [place.with_suffix(suffix) for place in places for suffix in _SUBTITLES]
        if path := next((file for file in files if file.is_file()), None):
            found[name] = path
    if folder is not None and not found:
        raise ArchiveError(
            f"--subtitles {folder} has none of the videos' names with {' or '.join(_SUBTITLES)}"
        )
    return found
