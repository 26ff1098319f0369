"""VidHal's captions and their quality, by a language model.

From what is known about a video, a model writes the correct caption (the anchor), and then captions
that are wrong about one aspect, each more than the one before. The quality of the captions is
asked of further models; ``hallujudge analyze --votes`` ranks videos by it.

The prompts follow Choong et al., 2024, sections 3.2, 3.3 and the supplement's "Caption Quality
Scoring". The aspects and criteria are the paper's; the wording is ours, and the paper's examples in
the prompt are left out. To repeat the paper's captions, replace the prompts by its Figures 16 to
29.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from hallujudge.metrics.errors import choose_from
from hallujudge.sdk.archives.record_values import id_under, optional_text
from hallujudge.sdk.archives.records import Record, read_records
from hallujudge.sdk.errors import ArchiveError

from .replies import NoReplyError
from .text_calls import TextModel, listed

ASPECTS: Mapping[str, str] = MappingProxyType(
    {
        "attribute": "a property of an object: its size, shape, colour, number or state",
        "attribute/size": "the size of an object or a person, or how it changes",
        "attribute/shape": "the shape of an object, or how it changes",
        "attribute/color": "the colour of an object, or how it changes",
        "attribute/count": "how many objects or persons there are",
        "attribute/state_change": "the state of an object, and how it changes during the video",
        "object": "which objects take part in what happens, or how they interact",
        "object/object_recognition": "which objects take part in what happens",
        "object/object_interaction": "how objects interact with other objects or persons",
        "action": "what a person, an animal or a thing does: its movements and behaviour",
        "direction": "in which direction something moves, or which way it faces",
        "order": "in which order the events happen",
    }
)
"""Aspect, or aspect and sub-aspect -> what may be wrong in a caption."""

_ANCHOR_PROMPT = """The notes below describe a video. Write one sentence of at most 25 words that \
says what happens in it. Use only what the notes say; leave out, where you can, what is not \
about {aspect}.

Notes:
{notes}

Reply with the sentence alone."""
_WRONG_PROMPT = """The sentence below describes a video correctly. Write {count} sentences that \
describe it wrongly.

What may be wrong: {aspect}. Keep everything else: persons, places, style and length.
- Each sentence is more wrong than the one before: the first is close to what happens, the last is \
far from it, or the opposite.
- Each sentence could be true of some other video, and is not true of this one.
- No sentence says the same as another.

Correct sentence: {anchor}

Reply with a JSON list of {count} texts, from the least to the most wrong."""
# Section 7.2 asks each question in three wordings and averages over them.
_QUALITY: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "realism": (
            'Could the following happen in a real video? "{caption}"',
            'Is the scene in this sentence plausible? "{caption}"',
            'Would a video of this look natural rather than absurd? "{caption}"',
        ),
        "ordering": (
            'A video shows: "{anchor}" Is "{worse}" a worse description of it than "{better}"?',
            'The truth is "{anchor}". Is "{better}" closer to it than "{worse}"?',
            'Compared with "{anchor}", does "{worse}" contain a heavier error than "{better}"?',
        ),
        "relevance": (
            'Does "{caption}" differ from "{anchor}" only in {aspect}?',
            'Is {aspect} what was changed from "{anchor}" to "{caption}"?',
            'Apart from {aspect}, do "{anchor}" and "{caption}" say the same?',
        ),
    }
)


class QualityQuestion(NamedTuple):
    """A yes/no question about the captions of a video."""

    criterion: str
    """What it is about: ``realism``, ``ordering`` or ``relevance``."""
    prompt: str
    """Its wording and its captions, such as ``1/2-3``."""
    text: str
    """The question."""


def aspect_of(aspect: str, subaspect: str = "") -> str:
    """Return what may be wrong in captions about an aspect.

    Raises:
        ValueError: The aspect is unknown.
    """
    name, part = (value.strip().casefold().replace(" ", "_") for value in (aspect, subaspect))
    name = {"event_order": "order", "event": "order"}.get(name, name)
    if name not in ASPECTS:
        known = choose_from(aspect, [each for each in ASPECTS if "/" not in each])
        raise ValueError(f"the aspect is {aspect!r:.60}; {known}")
    return ASPECTS.get(f"{name}/{part}", ASPECTS[name])


def anchor_prompt(notes: str, aspect: str) -> str:
    """Return the prompt for the correct caption of a video."""
    return _ANCHOR_PROMPT.format(notes=notes, aspect=aspect)


def wrong_prompt(anchor: str, aspect: str, count: int) -> str:
    """Return the prompt for wrong captions of a video."""
    return _WRONG_PROMPT.format(anchor=anchor, aspect=aspect, count=count)


def read_sentence(reply: str) -> str:
    """Return the one sentence of a reply.

    Raises:
        NoReplyError: The reply is empty, or has several lines.
    """
    # Models like to put a sentence into quotation marks, also where none are asked for.
    text = reply.strip().strip("\"'“”").strip()
    if not text or "\n" in text:
        raise NoReplyError("REPLY_UNPARSED", f"the reply is not one sentence: {reply[:80]!r}")
    return text


def read_wrong(reply: str, anchor: str, count: int) -> list[str]:
    """Return the wrong captions of a reply, from the least to the most wrong.

    Raises:
        NoReplyError: The reply is not a list of that many texts, or two captions are equal.
    """
    values = listed(reply)
    if values is None or not all(isinstance(value, str) for value in values):
        detail = f"the reply is not a JSON list of texts: {reply[:80]!r}"
        raise NoReplyError("REPLY_UNPARSED", detail)
    captions = [value.strip() for value in values]
    if len(captions) != count or not all(captions):
        detail = f"the reply has {len(captions)} captions, not {count}"
        raise NoReplyError("REPLY_UNPARSED", detail)
    # A set of count + 1 texts: the anchor must not be among the wrong ones either.
    if len({text.casefold() for text in (anchor, *captions)}) <= count:
        raise NoReplyError("REPLY_UNPARSED", "two captions are equal")
    return captions


def quality_questions(captions: Sequence[str], aspect: str) -> Iterator[QualityQuestion]:
    """Yield the questions about a video's captions: three wordings for each criterion.

    Realism is asked about every caption, relevance about every wrong one, and ordering about each
    wrong caption and the next worse one.

    Args:
        captions: The captions, the correct one first, the most wrong one last.
        aspect: What may be wrong in them.
    """
    anchor = captions[0]
    for number in range(3):
        for place, caption in enumerate(captions, 1):
            text = _QUALITY["realism"][number].format(caption=caption)
            yield QualityQuestion("realism", f"{number + 1}/{place}", text)
            if place > 1:
                text = _QUALITY["relevance"][number].format(
                    caption=caption, anchor=anchor, aspect=aspect
                )
                yield QualityQuestion("relevance", f"{number + 1}/{place}", text)
        for place in range(2, len(captions)):
            better, worse = captions[place - 1], captions[place]
            text = _QUALITY["ordering"][number].format(anchor=anchor, better=better, worse=worse)
            yield QualityQuestion("ordering", f"{number + 1}/{place}-{place + 1}", text)


_NOTES = ("description", "notes", "caption", "answer")
_VIDEO, _ANCHOR, _CAPTIONS = "video", "anchor", "captions"


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedVideo:
    """What is known about a video."""

    video: str
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
    # By rank: the keys of the file may come in any order.
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
    videos: Sequence[DescribedVideo], model: TextModel, *, wrong: int
) -> Built:
    """Return VidHal's annotations: each video with its captions by rank, the correct one first."""
    rows: dict[str, dict[str, Any]] = {}
    failed: dict[str, str] = {}

    async def work(video: DescribedVideo) -> bool:
        try:
            anchor = video.anchor
            if not anchor:
                anchor = read_sentence(
                    # Room for the 25 words that are asked for, and for some more.
                    await model.reply(anchor_prompt(video.notes, video.aspect), max_tokens=128)
                )
            reply = await model.reply(wrong_prompt(anchor, video.aspect, wrong))
            captions = [anchor, *read_wrong(reply, anchor, wrong)]
        except NoReplyError as err:
            failed[video.video] = str(err)
            return False
        numbered = {str(rank): text for rank, text in enumerate(captions, 1)}
        kept = {k: video.record[k] for k in ("aspect", "subaspect") if k in video.record}
        rows[video.video] = {_VIDEO: video.video, _CAPTIONS: numbered, **kept}
        return True

    await model.run(videos, work)
    # In the order of the file: replies come in any.
    return Built(rows=[rows[v.video] for v in videos if v.video in rows], failed=failed)


async def ask_quality(videos: Sequence[DescribedVideo], model: TextModel) -> Built:
    """Return a model's votes on captions; a reply that is neither yes nor no is a null."""
    votes: dict[str, list[dict[str, Any]]] = {}
    failed: dict[str, str] = {}

    async def work(video: DescribedVideo) -> bool:
        for question in quality_questions(video.captions, video.aspect):
            try:
                answer = await model.yes_or_no(question.text)
            # A question without a reply costs one vote, not the video's others.
            except NoReplyError as err:
                failed[f"{video.video} {question.criterion} {question.prompt}"] = str(err)
                continue
            votes.setdefault(video.video, []).append(
                {
                    _VIDEO: video.video,
                    "judge": model.name,
                    "criterion": question.criterion,
                    "prompt": question.prompt,
                    # Null is a vote too: section 7.2 counts all but a yes as 0.
                    "answer": answer,
                }
            )
        return video.video in votes

    await model.run(videos, work)
    rows = [vote for video in videos for vote in votes.get(video.video, ())]
    return Built(rows=rows, failed=failed)
