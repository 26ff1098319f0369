"""Folders of degraded videos: many files at a time, a manifest for each operator, and resuming.

A folder has one folder for each operator, and ``base`` with the clean videos, as ``hallujudge ask``
reads them. ``manifest.jsonl`` in each has a line for each file, which is written once the file is
complete.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from hallujudge.judge_service.process_pool import DiedError
from hallujudge.judge_service.threads import can_fork, usable_cores
from hallujudge.metrics.infact.operators import BASE
from hallujudge.sdk.archives.stored_files import refuse_schema
from hallujudge.sdk.errors import ArchiveError, HallujudgeError, InvalidInputError, OutputError
from hallujudge.sdk.media.media_files import VIDEO_SUFFIXES
from hallujudge.sdk.runs.processes import Processes, Work
from hallujudge.sdk.runs.progress_bar import shown_line

from .degrading import MADE, PROCEDURAL, DegradeSettings, Making, make, settings_of
from .video_writer import Encoding, link_or_copy

MANIFEST = "manifest.jsonl"
"""Name of an operator's manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Degraded:
    """What was made."""

    made: int
    """Number of files."""
    kept: int
    """Number of files that were there."""
    failed: tuple[tuple[str, str], ...]
    """Operator and a sentence for each file that could not be made."""
    changed: tuple[str, ...]
    """Files made from a manifest whose bytes differ from it."""


def videos_of(paths: Sequence[Path], out: Path) -> dict[str, Path]:
    """Return videos by their names: the path in a given folder, or the name of a given file.

    Raises:
        ArchiveError: A path does not exist, or a folder has no videos.
        InvalidInputError: Two videos would be written to the same file.
    """
    found: dict[str, Path] = {}
    targets: dict[str, Path] = {}
    for path in paths:
        for name, video in _named(path, out):
            # Made videos are MP4 whatever the source is: a.mkv and a.mp4 would be one file.
            first = targets.setdefault(Path(name).with_suffix("").as_posix(), video)
            if first.resolve() != video.resolve():
                raise InvalidInputError(
                    f"{first} and {video} would be written to the same file; rename one of them"
                )
            found[name] = video
    if not found:
        raise ArchiveError("there are no videos; give files, or folders that have some")
    return found


def _named(path: Path, out: Path) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield path.name, path
        return
    if not path.is_dir():
        raise ArchiveError(f"{path} does not exist; give a video or a folder of videos")
    # The new videos may lie below the given folder, and are not sources.
    made = {(out / operator).resolve() for operator in (BASE, PROCEDURAL, *MADE)}
    videos = [
        video
        for video in sorted(path.rglob("*"))
        if video.suffix.lower() in VIDEO_SUFFIXES
        and video.is_file()
        and not made.intersection(video.resolve().parents)
    ]
    if not videos:
        raise ArchiveError(f"{path} has no videos ({', '.join(sorted(VIDEO_SUFFIXES))})")
    yield from ((video.relative_to(path).as_posix(), video) for video in videos)


def makings_of(
    videos: Mapping[str, Path], operators: Sequence[str], out: Path, settings: DegradeSettings
) -> list[Making]:
    """Return what is made: each operator of each video that has what it needs."""
    needed: dict[str, Mapping[str, object]] = {
        "subtitle_corruption": settings.subtitles,
        PROCEDURAL: settings.steps,
    }
    return [
        Making(
            source=video,
            name=name,
            operator=operator,
            folder=out / operator,
            settings=_own(settings, name),
        )
        for operator in operators
        for name, video in videos.items()
        if operator not in needed or name in needed[operator]
    ]


def _own(settings: DegradeSettings, name: str) -> DegradeSettings:
    """Return the settings of one video: those of thousands would be sent to every process."""
    return replace(
        settings,
        misleading=_only(settings.misleading, name),
        written=_only(settings.written, name),
        subtitles=_only(settings.subtitles, name),
        steps=_only(settings.steps, name),
    )


def _only(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name: values[name]} if name in values else {}


def makings_again(manifest: Path, videos: Mapping[str, Path], out: Path) -> Iterator[Making]:
    """Yield what a manifest describes, to be made again from it alone.

    Args:
        manifest: The manifest of an operator.
        videos: Videos by name; others are where the manifest says.
        out: The folder to write.

    Raises:
        ArchiveError: The manifest is damaged, or a video is missing or another one.
    """
    for place, line in manifest_lines(manifest):
        with ArchiveError.of_content(f"{place}: not a line of a manifest", "give a whole one"):
            source = videos.get(line["video"], Path(line["source"]))
            if line["operator"] not in (*MADE, PROCEDURAL):
                raise ValueError(f"the operator is {line['operator']!r:.60}")
            _target(line["video"])
            # For its errors alone: later the place in the manifest is not known any more.
            Encoding.from_json(line["encoding"])
            known = dict(line["parameters"]), dict(line["files"]), dict(line["settings"])
        if not known[0]:
            raise ArchiveError(f"{place}: there are no parameters; give a whole manifest")
        yield Making(
            source=source,
            name=line["video"],
            operator=line["operator"],
            folder=out / line["operator"],
            described=line,
        )


def _target(name: str) -> None:
    """Check that a manifest's name of a video does not lead out of the folder."""
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise ValueError(f"the video {name!r:.80} leads out of the folder")


def degrade(makings: Sequence[Making], *, workers: int, resume: bool) -> Degraded:
    """Make files, several at a time.

    Args:
        makings: What is made.
        workers: Number of processes; 0 for as many as this process may use cores.
        resume: Whether files that a manifest in the folder lists are kept.

    Raises:
        InvalidInputError: A folder has files, and ``resume`` is not set; or they are of other
            settings.
        OutputError: A file can't be written. What is made so far is listed in the manifests.
    """
    kept = _kept(makings, resume=resume)
    left = [making for making in makings if _key(making) not in kept]
    progress = _Progress(len(left))
    failed: list[tuple[str, str]] = []
    changed: list[str] = []
    made = 0
    with shown_line(progress):
        for making, line in _results(left, workers):
            progress.done += 1
            if isinstance(line, str):
                failed.append((making.operator, line))
                progress.failed += 1
                continue
            made += 1
            # Before the line: a file that is listed is not made again by a later run.
            link_or_copy(making.source, making.folder.parent / BASE / making.name)
            _add_line(making.folder / MANIFEST, line)
            # Another release of a library may make other bytes from the same parameters.
            if making.described and line["files"] != making.described["files"]:
                changed.append(str(making.target))
    return Degraded(made=made, kept=len(kept), failed=tuple(failed), changed=tuple(changed))


def _results(makings: Sequence[Making], workers: int) -> Iterator[tuple[Making, Any]]:
    """Yield each line of the manifest, or the sentence that says why there is none."""
    count = min(workers or usable_cores(), len(makings))
    if count <= 1 or not can_fork():
        yield from ((making, _try(making)) for making in makings)
        return
    processes: Processes[None, Making, Any] = Processes(
        Work(_maker, None),
        count=count,
        preload=(__name__,),
    )
    try:
        # A long video should not keep the other processes waiting.
        yield from zip(makings, processes.results(makings, ahead=4 * count), strict=True)
    except DiedError as err:
        raise ArchiveError(
            "a process that made a video was ended twice, perhaps for want of memory; give fewer "
            "--workers, and go on with --resume"
        ) from err
    finally:
        processes.close()
        for folder in {making.target.parent for making in makings}:
            # A process that was ended could not remove its unfinished file.
            for part in folder.glob(".*.part"):
                part.unlink(missing_ok=True)


def _maker(_settings: None) -> Callable[[Making], dict[str, Any] | str]:
    """Return what makes files in a process."""
    return _try


def _try(making: Making) -> dict[str, Any] | str:
    """Return the line of a file's manifest, or why it can't be made."""
    try:
        return make(making)
    except OutputError:
        # No other file could be written either.
        raise
    except HallujudgeError as err:
        return str(err)


def _key(making: Making) -> tuple[str, str]:
    return making.operator, making.name


def _kept(makings: Sequence[Making], *, resume: bool) -> set[tuple[str, str]]:
    """Return the operators and names of files that are made already."""
    kept: set[tuple[str, str]] = set()
    wanted = {_key(making): making for making in makings}
    for folder in {making.folder for making in makings}:
        manifest = folder / MANIFEST
        if not manifest.exists():
            continue
        if not resume:
            check_new(folder)
        _cut(manifest)
        for _, line in manifest_lines(manifest):
            key = str(line.get("operator")), str(line.get("video"))
            making = wanted.get(key)
            # A listed video that was deleted since is made again.
            if making is None or not all((folder / name).is_file() for name in line["files"]):
                continue
            if line["settings"] != settings_of(making):
                raise InvalidInputError(
                    f"{folder / key[1]} was made with other settings; give those, or replace all "
                    "videos with --overwrite"
                )
            kept.add(key)
    return kept


def check_new(folder: Path) -> None:
    """Check that an operator's folder has no videos.

    Raises:
        InvalidInputError: It has some.
    """
    if (folder / MANIFEST).exists():
        raise InvalidInputError(
            f"{folder} has videos already; go on with --resume, or replace them by --overwrite"
        )


def manifest_lines(manifest: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the lines of a manifest and their places; a last one that was cut off is left out."""
    try:
        lines = manifest.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as err:
        raise ArchiveError(f"{manifest} can't be read: {err}; give a manifest") from err
    for number, line in enumerate(lines[:-1], 1):
        place = f"{manifest}:{number}"
        with ArchiveError.of_content(f"{place}: not a line of a manifest", "give a whole one"):
            value: dict[str, Any] = dict(json.loads(line))
        refuse_schema(value, "degraded", place)
        yield place, value


def _cut(manifest: Path) -> None:
    """Remove a last line that was cut off when the disk was full, or the process was killed."""
    with manifest.open("rb+") as file:
        file.truncate(file.read().rfind(b"\n") + 1)


def _add_line(manifest: Path, line: Mapping[str, Any]) -> None:
    try:
        with manifest.open("ab") as file:
            file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
            file.flush()
            # A line says that a video is whole, so it must not be lost where the video is kept.
            os.fsync(file.fileno())
    except OSError as err:
        raise OutputError.of(manifest, err, "free space, then go on with --resume") from err


def clear(folder: Path) -> None:
    """Remove the files that an operator's manifest lists, and the manifest.

    Raises:
        OutputError: A file can't be removed.
    """
    manifest = folder / MANIFEST
    if not manifest.exists():
        return
    _cut(manifest)
    try:
        for _, line in manifest_lines(manifest):
            for name in line.get("files", ()):
                # The names come from a file, and what they name is deleted.
                _target(name)
                (folder / name).unlink(missing_ok=True)
        manifest.unlink()
    except OSError as err:
        raise OutputError.of(folder, err, "remove the folder") from err


class _Progress:
    """How many files are made."""

    is_paid = False
    """Making files costs nothing."""

    def __init__(self, total: int) -> None:
        self.done = 0
        self.failed = 0
        self._total = total
        self._started = time.monotonic()

    def line(self) -> str:
        """Return how many files are made, and the time left."""
        # With --resume there may be nothing left to make.
        share = 100 * self.done // max(self._total, 1)
        parts = [f"made {self.done:,} of {self._total:,} files ({share} %)"]
        if self.done and self.done < self._total:
            took = time.monotonic() - self._started
            left = timedelta(seconds=round(took / self.done * (self._total - self.done)))
            parts.append(f"{left} left")
        if self.failed:
            parts.append(f"{self.failed:,} failed")
        return ", ".join(parts)
