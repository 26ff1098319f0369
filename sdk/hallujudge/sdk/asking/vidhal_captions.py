"""VidHal's captions and their quality, by a language model.

From what is known about a video, a model writes the correct caption (the anchor), and then captions
that are wrong about one aspect, each more than the one before. The quality of the captions is
asked of further models; ``hallujudge analyze --votes`` ranks videos by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hallujudge.judge_service.llm.ask_once import run_bounded
from hallujudge.metrics.answers.yes_no import YES_NO_PARSERS
from hallujudge.metrics.vidhal.caption_prompts import (
    anchor_prompt,
    aspect_of,
    quality_questions,
    read_sentence,
    read_wrong,
    wrong_prompt,
)

from ..archives.records import Record, id_under, optional_text, read_records
from ..errors import ArchiveError
from ..progress_bar import Progress
from .text_calls import NoReplyError, TextModel

_NOTES = ("description", "notes", "caption", "answer")
_VIDEO, _ANCHOR, _CAPTIONS = "video", "anchor", "captions"


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedVideo:
    """What is known about a video."""

    video: str
    """The video."""
    aspect: str
    """What may be wrong in its captions."""
    notes: str
    """What is known; empty if there is an anchor."""
    anchor: str
    """The correct caption, if it is known."""
    captions: tuple[str, ...]
    """All captions, the correct one first, if they are known."""
    record: Mapping[str, Any]
    """The record of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a model wrote."""

    rows: Sequence[dict[str, Any]]
    """Records, in the order of the videos."""
    failed: Mapping[str, str]
    """Video, or video and question -> why there is nothing."""


def read_videos(path: Path, *, captioned: bool = False) -> list[DescribedVideo]:
    """Read what is known about videos.

    Args:
        path: Records with ``video``, ``aspect``, perhaps ``subaspect``, and an ``anchor``, a
            ``description``, or ``questions`` with their answers; or VidHal's annotations.
        captioned: Whether captions are needed.

    Raises:
        ArchiveError: A record lacks one of these, or a video appears twice.
    """
    found: dict[str, DescribedVideo] = {}
    for record in read_records(path):
        video = id_under(record, _VIDEO, "the video")
        if video in found:
            raise ArchiveError(f"{record.place}: video {video!r:.60} appears twice")
        try:
            aspect = aspect_of(
                optional_text(record, ("aspect",)), optional_text(record, ("subaspect",))
            )
        except ValueError as err:
            raise ArchiveError(f"{record.place}: {err}") from err
        captions = _captions(record)
        anchor = optional_text(record, (_ANCHOR,)).strip()
        notes = _notes(record)
        if captioned and len(captions) < 2:
            raise ArchiveError(f'{record.place}: no captions; give {{"1": …, "2": …, "3": …}}')
        if not captioned and not (anchor or notes):
            raise ArchiveError(
                f"{record.place}: nothing is known about the video; give an anchor, a description, "
                "or questions with answers"
            )
        found[video] = DescribedVideo(
            video=video,
            aspect=aspect,
            notes=notes,
            anchor=anchor,
            captions=captions,
            record=dict(record.values),
        )
    if not found:
        raise ArchiveError(f"{path}: no records; give a record for each video")
    return list(found.values())


def _captions(record: Record) -> tuple[str, ...]:
    """Return captions by their rank; empty if there are none."""
    value = record.values.get(_CAPTIONS)
    if not isinstance(value, Mapping):
        return ()
    ranks = [str(rank) for rank in range(1, len(value) + 1)]
    if set(value) != set(ranks) or not all(isinstance(text, str) for text in value.values()):
        raise ArchiveError(f"{record.place}: the captions are not texts with the ranks 1, 2, …")
    return tuple(value[rank] for rank in ranks)


def _notes(record: Record) -> str:
    """Return what is known about a video, as lines."""
    value = record.values.get("questions")
    lines = [
        f"{pair.get('question', '')} {pair.get('answer', '')}".strip()
        for pair in (value if isinstance(value, list) else ())
        if isinstance(pair, Mapping)
    ]
    if question := optional_text(record, ("question",)).strip():
        lines.append(question)
    lines.append(optional_text(record, _NOTES).strip())
    return "\n".join(f"- {line}" for line in lines if line)


async def write_captions(
    videos: Sequence[DescribedVideo], model: TextModel, *, wrong: int, progress: Progress
) -> Built:
    """Return VidHal's annotations: each video with its captions by rank, the correct one first."""
    rows: dict[str, dict[str, Any]] = {}
    failed: dict[str, str] = {}

    async def work(video: DescribedVideo) -> None:
        try:
            anchor = video.anchor
            if not anchor:
                anchor = read_sentence(
                    await model.reply(anchor_prompt(video.notes, video.aspect), max_tokens=128)
                )
            reply = await model.reply(wrong_prompt(anchor, video.aspect, wrong))
            captions = [anchor, *read_wrong(reply, anchor, wrong)]
        except NoReplyError as err:
            failed[video.video] = str(err)
        except ValueError as err:
            failed[video.video] = f"REPLY_UNPARSED: {err}"
        else:
            numbered = {str(rank): text for rank, text in enumerate(captions, 1)}
            kept = {k: video.record[k] for k in ("aspect", "subaspect") if k in video.record}
            rows[video.video] = {_VIDEO: video.video, _CAPTIONS: numbered, **kept}
        progress.scored(1, video.video in failed)

    await run_bounded(videos, work, min(model.client.settings.all_concurrency, len(videos)))
    return Built(rows=[rows[v.video] for v in videos if v.video in rows], failed=failed)


async def ask_quality(
    videos: Sequence[DescribedVideo], model: TextModel, *, progress: Progress
) -> Built:
    """Return a model's votes on captions; a reply that is neither yes nor no is a null."""
    votes: dict[str, list[dict[str, Any]]] = {}
    failed: dict[str, str] = {}

    async def work(video: DescribedVideo) -> None:
        for question in quality_questions(video.captions, video.aspect):
            try:
                reply = await model.reply(question.text, max_tokens=64)
            except NoReplyError as err:
                failed[f"{video.video} {question.criterion} {question.prompt}"] = str(err)
                continue
            votes.setdefault(video.video, []).append(
                {
                    _VIDEO: video.video,
                    "judge": model.name,
                    "criterion": question.criterion,
                    "prompt": question.prompt,
                    "answer": YES_NO_PARSERS["strict"](reply),
                }
            )
        progress.scored(1, video.video not in votes)

    await run_bounded(videos, work, min(model.client.settings.all_concurrency, len(videos)))
    rows = [vote for video in videos for vote in votes.get(video.video, ())]
    return Built(rows=rows, failed=failed)
