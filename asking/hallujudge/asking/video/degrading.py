"""Makes degraded videos for INFACT: what is drawn for a file, and the file made from it.

Each operator draws its parameters from a seed, the file's name and its own name, so that neither
other files nor their order matter. The parameters alone make the file: a manifest has all of them.

Compression to a share of the bitrate (mode II) encodes a video again, in two passes (Yang et al.,
2026, appendix A.5): about 15.19 % of the original bitrate stays. The first pass only
measures how hard each frame is to encode; one pass alone misses the bitrate of short videos.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from hashlib import file_digest, sha256
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import av
import numpy as np
import PIL

from hallujudge.metrics.framework.json_values import schema_of
from hallujudge.metrics.infact.operators import BASE, OPERATORS
from hallujudge.sdk.errors import ArchiveError, InvalidInputError, UnsupportedError
from hallujudge.sdk.media.frame_colours import frame_of, rgb_of
from hallujudge.sdk.media.video_files import VideoInfo, probe, read_frames

from .frame_operators import (
    BlurSettings,
    FrameChange,
    NoiseSettings,
    Parameters,
    Step,
    blur,
    draw_blur,
    draw_noise,
    draw_shuffle,
    draw_steps,
    noise,
    reorder,
)
from .text_operators import (
    CaptionSettings,
    SubtitleSettings,
    captions,
    checked_letters,
    corrupted,
    draw_captions,
    draw_corruption,
    plain_text,
    read_subtitles,
)
from .video_writer import STILLS, Encoding, VideoWriter, write_temporary, write_whole
from .vision_attack import AttackSettings, EncoderEnsemble, attack_versions, fingerprint

KEPT_SHARE = 0.1519
"""Share of the bitrate that stays: 2.83 GB became 0.43 GB."""
# What sharing platforms do is not published; this preset is the slowest that is quick enough.
_PRESET = "superfast"
# Encoders miss low bitrates of short videos. Another attempt aims as much lower as this one missed.
_TOLERANCE = 0.02
_ATTEMPTS = 4
# FFmpeg passes whole kilobits a second to x264, so that less would be no bitrate at all.
_LEAST_BITS = 1_000
# What the measurements of a few hundred frames take.
_MORE_ROOM = 1 << 16


def compression_parameters(info: VideoInfo, share: float) -> Parameters:
    """Return the bitrate that a video gets."""
    return {"share": share, "bit_rate": max(_LEAST_BITS, round(info.bit_rate * share))}


def compress(info: VideoInfo, target: Path, parameters: Parameters) -> Encoding:
    """Write a video that has a given bitrate, as close as the encoder comes.

    Returns:
        How the written file was encoded.

    Raises:
        ArchiveError: A frame can't be decoded.
        OutputError: The file can't be written.
        UnsupportedError: The encoder refuses the video.
    """
    wanted = aim = parameters["bit_rate"]
    found: dict[int, float] = {}
    with TemporaryDirectory(prefix="hallujudge-") as folder:
        log = Path(folder) / "pass.log"
        _measure(info, Path(folder), _pass(1, log, aim))
        # An aim that was tried before would give the same bytes.
        while aim not in found and len(found) < _ATTEMPTS:
            try:
                _encode(info, target, _pass(2, log, aim))
            except UnsupportedError:
                # x264 refuses less than its own estimate of the least: an attempt before stays.
                if not found:
                    raise
                break
            found[aim] = probe(target).bit_rate
            if abs(found[aim] / wanted - 1) <= _TOLERANCE:
                break
            aim = _next_aim(found, wanted)
        closest = min(found, key=lambda tried: abs(found[tried] - wanted))
        # The file is that of the last attempt, which need not be the closest.
        if closest != [*found][-1]:
            _encode(info, target, _pass(2, log, closest))
    return Encoding(options={"preset": _PRESET, "passes": "2"}, bit_rate=closest)


def _measure(info: VideoInfo, folder: Path, encoding: Encoding) -> None:
    """Measure how hard each frame is to encode.

    Raises:
        ArchiveError: A frame can't be decoded.
        OutputError: The disk of temporary files is full.
        UnsupportedError: The encoder refuses the video.
    """
    try:
        # Under the video's own name, which an error of the encoder shows.
        _encode(info, folder / info.path.with_suffix(".mp4").name, encoding)
    except UnsupportedError:
        # The encoder writes its measurements itself, and does not say why it could not.
        written = sum(path.stat().st_size for path in folder.iterdir())
        write_temporary(folder / "room", bytes(written + _MORE_ROOM))
        raise


def _next_aim(found: Mapping[int, float], wanted: int) -> int:
    """Return the bitrate to ask for after some attempts, asked for -> found."""
    # Rates rise with what is asked for, but not in proportion: between two attempts the aim is
    # interpolated, and scaled only if all missed to one side.
    below = max(((rate, aim) for aim, rate in found.items() if rate < wanted), default=None)
    above = min(((rate, aim) for aim, rate in found.items() if rate >= wanted), default=None)
    if below and above:
        share = (wanted - below[0]) / (above[0] - below[0])
        return max(_LEAST_BITS, round(below[1] + share * (above[1] - below[1])))
    aim, rate = [*found.items()][-1]
    return max(_LEAST_BITS, round(aim * wanted / rate))


def _encode(info: VideoInfo, target: Path, encoding: Encoding) -> None:
    with VideoWriter(target, info, encoding) as writer:
        for frame in read_frames(info.path):
            writer.write(frame)


def _pass(number: int, log: Path, bit_rate: int) -> Encoding:
    # A colon would end the path, as in names of drives.
    options = {"preset": _PRESET, "flags": f"+pass{number}", "stats": str(log)}
    return Encoding(options=options, bit_rate=bit_rate)


PROCEDURAL = "procedural_counterfactual"
"""The operator that is not a condition of a question, but makes videos of wrong procedures."""
MADE = tuple(name for name in OPERATORS if name not in (BASE, "text_only"))
"""The operators that make videos."""
ENCODING = Encoding()
"""How frames are encoded, unless noted otherwise."""
# Adversarial noise is a last bit here and there, which a lower quality would remove.
_FINE = Encoding(options={"preset": "ultrafast", "crf": "10"})

# Frames with new noise have little in common with the frame before. Encoded alone they take less
# time and fewer bytes, and keep more of the noise (deviation 10.4 of 11.3; as usual, 10.2).
_NOISY = Encoding(options={"preset": "ultrafast", "crf": "20", "g": "1"})
# Raised when an operator makes other bytes from the same parameters.
_OPERATORS_VERSION = "3"


@dataclass(frozen=True, slots=True, kw_only=True)
class DegradeSettings:
    """What operators draw from."""

    seed: int = 0
    noise: NoiseSettings = field(default_factory=NoiseSettings)
    """Gaussian noise."""
    blur: BlurSettings = field(default_factory=BlurSettings)
    """Motion blur."""
    kept_share: float = KEPT_SHARE
    """Compression: share of the bitrate that stays."""
    captions: CaptionSettings = field(default_factory=CaptionSettings)
    """Caption injection, without misleading lines."""
    misleading: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Caption injection: video -> lines that mislead about it."""
    written: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Caption injection: video -> how a language model wrote its lines, for the manifest."""
    corruption: SubtitleSettings = field(default_factory=SubtitleSettings)
    """Subtitle corruption."""
    subtitles: Mapping[str, Path] = field(default_factory=dict)
    """Subtitle corruption: video -> its subtitles."""
    attack: AttackSettings = field(default_factory=AttackSettings)
    """Adversarial noise."""
    encoders: tuple[Path, ...] = ()
    """Adversarial noise: folders of vision encoders."""
    steps: Mapping[str, Sequence[Step]] = field(default_factory=dict)
    """Procedures: video -> its steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """A file to make."""

    source: Path
    """The video."""
    name: str
    """Its path among the videos, by which it is known."""
    operator: str
    folder: Path
    """Where the file is written."""
    settings: DegradeSettings | None = None
    """What to draw from; None for a file that a manifest describes."""
    described: Mapping[str, Any] = field(default_factory=dict)
    """Its line in a manifest from which it is made again; empty for a new file."""

    @property
    def target(self) -> Path:
        """The video to write."""
        return self.folder / Path(self.name).with_suffix(".mp4")


def make(making: Making) -> dict[str, Any]:
    """Make a file, and return its line of the manifest.

    Raises:
        ArchiveError: The video or its subtitles can't be read.
        InvalidInputError: The settings do not fit the video.
        OutputError: The file can't be written.
    """
    info = probe(making.source)
    source_hash = hash_of(making.source)
    if making.described and making.described["source_sha256"] != source_hash:
        raise ArchiveError(f"{making.source} is not the video that the manifest names")
    parameters = making.described.get("parameters") or _drawn(making, info)
    files, encoding = _OPERATORS[making.operator](making, info, parameters)
    made = probe(making.target)
    return {
        "schema": schema_of("degraded"),
        "operator": making.operator,
        "video": making.name,
        "source": str(making.source),
        "source_sha256": source_hash,
        "settings": settings_of(making),
        "parameters": parameters,
        "encoding": encoding.to_json(),
        "files": {
            path.relative_to(making.folder).as_posix(): hash_of(path)
            for path in (making.target, *files)
        },
        "frames": made.frames,
        "bit_rate_share": round(made.bit_rate / info.bit_rate, 4),
        "pictures": {"source": _picture(info), "made": _picture(made)},
        "libraries": libraries(making.operator),
    }


def _picture(info: VideoInfo) -> dict[str, Any]:
    """Return how a video is stored and shown, so that a manifest says what was kept."""
    return {**info.picture.to_json(), "rate": str(info.rate), "hidden_frames": info.hidden}


def settings_of(making: Making) -> dict[str, Any]:
    """Return the settings of a file's operator, as JSON has them."""
    settings = making.settings
    if settings is None:
        return dict(making.described["settings"])
    font = settings.captions.font_name
    of_operator: Mapping[str, Callable[[], Mapping[str, Any]]] = {
        "gaussian_noise": lambda: asdict(settings.noise),
        "motion_blur": lambda: asdict(settings.blur),
        "compression": lambda: {"kept_share": settings.kept_share},
        "caption_injection": lambda: {
            "kind": settings.captions.kind,
            "misleading": list(settings.misleading.get(making.name, ())),
            "font": font,
            **({"written": made} if (made := settings.written.get(making.name)) else {}),
        },
        "subtitle_corruption": lambda: {
            **asdict(settings.corruption),
            "subtitles": str(settings.subtitles[making.name]),
            "font": font,
        },
        "adversarial_noise": lambda: {
            **asdict(settings.attack),
            "encoders": [str(folder) for folder in settings.encoders],
        },
        PROCEDURAL: lambda: {
            "steps": [[step.start, step.end] for step in settings.steps[making.name]]
        },
    }
    return {"seed": settings.seed, **of_operator.get(making.operator, dict)()}


def _seed_of(making: Making, seed: int) -> int:
    """Return where the random numbers of a file start."""
    # No name has this character, so that the parts can't run into each other.
    text = "\0".join((str(seed), making.name, making.operator))
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big")


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def libraries(operator: str) -> dict[str, str]:
    """Return the versions that decide about the bytes of a file."""
    parts = ("libavcodec", "libavformat", "libswscale")
    found = {name: ".".join(map(str, av.library_versions[name])) for name in parts}
    found |= {"av": av.__version__, "operators": _OPERATORS_VERSION}
    if operator in ("caption_injection", "subtitle_corruption"):
        found["pillow"] = PIL.__version__
    if operator == "adversarial_noise":
        found |= attack_versions()
    return found


def _drawn(making: Making, info: VideoInfo) -> Parameters:
    """Return the parameters of a file, drawn for the first time."""
    settings = making.settings
    assert settings is not None
    draw = Random(_seed_of(making, settings.seed))  # noqa: S311 - no secret
    match making.operator:
        case "gaussian_noise":
            return draw_noise(draw, settings.noise)
        case "motion_blur":
            return draw_blur(draw, settings.blur)
        case "compression":
            return compression_parameters(info, settings.kept_share)
        case "caption_injection":
            lines = settings.misleading.get(making.name, ())
            return draw_captions(draw, info, replace(settings.captions, misleading=lines))
        case "subtitle_corruption":
            path = settings.subtitles[making.name]
            return {
                "subtitles": str(path),
                "subtitles_sha256": hash_of(path),
                "font": settings.captions.font_name,
                **draw_corruption(draw, settings.corruption),
            }
        case "adversarial_noise":
            encoders = {str(folder): fingerprint(folder) for folder in settings.encoders}
            start = draw.getrandbits(63)
            return {"encoders": encoders, **asdict(settings.attack), "start": start}
        case "shuffle":
            return draw_shuffle(draw)
        case "reverse":
            return {"reversed": True}
        case _:
            return draw_steps(draw, settings.steps[making.name])


def _changed(
    making: Making,
    info: VideoInfo,
    parameters: Parameters,
    *,
    change_by: Callable[[Parameters], FrameChange],
    usual: Encoding = ENCODING,
) -> tuple[list[Path], Encoding]:
    """Write a video whose frames are changed one by one."""
    change, encoding = change_by(parameters), _encoding(making, usual)
    with VideoWriter(making.target, info, encoding) as writer:
        for frame in read_frames(info.path):
            writer.write(change(frame))
    return [], encoding


def _encoding(making: Making, usual: Encoding) -> Encoding:
    described = making.described.get("encoding")
    return Encoding.from_json(described) if described else usual


def _compression(making: Making, info: VideoInfo, parameters: Parameters) -> _Made:
    return [], compress(info, making.target, parameters)


def _reordered(making: Making, info: VideoInfo, parameters: Parameters) -> _Made:
    encoding = _encoding(making, STILLS)
    reorder(info, making.target, making.operator, parameters, encoding)
    return [], encoding


def _subtitles(making: Making, info: VideoInfo, parameters: Parameters) -> _Made:
    """Write corrupted subtitles, and a video on which they are drawn."""
    path = Path(parameters["subtitles"])
    subtitles = read_subtitles(path)
    if hash_of(path) != parameters["subtitles_sha256"]:
        raise ArchiveError(f"{path} is not the file that the manifest names; give that one")
    wrong = corrupted(subtitles, parameters)
    shown = [
        {"start": cue.start / 1000, "end": cue.end / 1000, "text": text}
        for cue in wrong.cues
        if (text := plain_text(cue.text).strip())
    ]
    checked_letters((str(caption["text"]) for caption in shown), parameters["font"])
    drawn = {"captions": shown, "font": parameters["font"]}
    found = _changed(making, info, drawn, change_by=captions)
    target = making.target.with_suffix(path.suffix.lower())
    write_whole(target, wrong.to_text().encode())
    return [target], found[1]


def _attacked(making: Making, info: VideoInfo, parameters: Parameters) -> _Made:
    """Write a video with adversarial noise; as many frames are held as encoders take together."""
    encoding = _encoding(making, _FINE)
    ensemble = _ensemble(tuple(parameters["encoders"].items()))
    attack = AttackSettings(**{name: parameters[name] for name in asdict(AttackSettings())})
    with VideoWriter(making.target, info, encoding) as writer:
        frames, start = read_frames(info.path), parameters["start"]
        while held := list(islice(frames, ensemble.chunk)):
            clean = np.stack([rgb_of(frame) for frame in held])
            noisy = ensemble.attack(clean, attack, start)
            # A start of its own for each chunk, so that noise does not repeat.
            start += 1
            for pixels, frame in zip(noisy, held, strict=True):
                writer.write(frame_of(np.ascontiguousarray(pixels), frame))
    return [], encoding


# Another ensemble would hold a second set of weights in memory.
@lru_cache(maxsize=1)
def _ensemble(encoders: tuple[tuple[str, str], ...]) -> EncoderEnsemble:
    """Return the encoders of a manifest; loading them takes longer than most videos."""
    for folder, known in encoders:
        if fingerprint(Path(folder)) != known:
            raise InvalidInputError(f"{folder} is not the encoder that the manifest names")
    return EncoderEnsemble([Path(folder) for folder, _ in encoders])


_Made = tuple[list[Path], Encoding]
_OPERATORS: Mapping[str, Callable[[Making, VideoInfo, Parameters], _Made]] = {
    "gaussian_noise": partial(_changed, change_by=noise, usual=_NOISY),
    "motion_blur": partial(_changed, change_by=blur),
    "compression": _compression,
    "caption_injection": partial(_changed, change_by=captions),
    "subtitle_corruption": _subtitles,
    "adversarial_noise": _attacked,
    "shuffle": _reordered,
    "reverse": _reordered,
    PROCEDURAL: _reordered,
}
