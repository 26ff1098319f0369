"""Options of ``hallujudge build infact``: which videos are degraded, how, and where they go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from hallujudge.sdk.cli.app import input_option, metric_option, output_option, statistics_option
from hallujudge.sdk.cli.options import Estimate, Temperature, WriterOptions
from hallujudge.sdk.cli.parameters import argument
from hallujudge.sdk.errors import InvalidInputError


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
        """Refuse switches that exclude each other.

        Raises:
            InvalidInputError: Both were given.
        """
        if self.resume and self.overwrite:
            raise InvalidInputError("--resume and --overwrite exclude each other; give one of them")
