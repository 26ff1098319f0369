"""Prompts that make VidHal's captions, and that ask how good they are.

Choong et al., 2024, sections 3.2, 3.3 and the supplement's "Caption Quality Scoring". The aspects
and criteria are the paper's; the wording is ours, and the paper's examples in the prompt are left
out. To repeat the paper's captions, replace the prompts by its Figures 16 to 29.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

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
CRITERIA = ("realism", "ordering", "relevance")
"""What the quality of captions is about."""

_ANCHOR = """The notes below describe a video. Write one sentence of at most 25 words that \
says what happens in it. Use only what the notes say; leave out, where you can, what is not \
about {aspect}.

Notes:
{notes}

Reply with the sentence alone."""
_WRONG = """The sentence below describes a video correctly. Write {count} sentences that describe \
it wrongly.

What may be wrong: {aspect}. Keep everything else: persons, places, style and length.
- Each sentence is more wrong than the one before: the first is close to what happens, the last is \
far from it, or the opposite.
- Each sentence could be true of some other video, and is not true of this one.
- No sentence says the same as another.

Correct sentence: {anchor}

Reply with a JSON list of {count} texts, from the least to the most wrong."""
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
_YES_NO = "Answer with yes or no only."
_LIST = re.compile(r"\[.*\]", re.DOTALL)


class QualityQuestion(NamedTuple):
    """A yes/no question about the captions of a video."""

    criterion: str
    """One of :data:`CRITERIA`."""
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
        known = ", ".join(each for each in ASPECTS if "/" not in each)
        raise ValueError(f"the aspect is {aspect!r:.60}; choose from {known}")
    return ASPECTS.get(f"{name}/{part}", ASPECTS[name])


def anchor_prompt(notes: str, aspect: str) -> str:
    """Return the prompt for the correct caption of a video."""
    return _ANCHOR.format(notes=notes, aspect=aspect)


def wrong_prompt(anchor: str, aspect: str, count: int) -> str:
    """Return the prompt for wrong captions of a video."""
    return _WRONG.format(anchor=anchor, aspect=aspect, count=count)


def read_sentence(reply: str) -> str:
    """Return the one sentence of a reply.

    Raises:
        ValueError: The reply is empty, or has several lines.
    """
    text = reply.strip().strip("\"'“”").strip()
    if not text or "\n" in text:
        raise ValueError(f"the reply is not one sentence: {reply[:80]!r}")
    return text


def read_wrong(reply: str, anchor: str, count: int) -> list[str]:
    """Return the wrong captions of a reply, from the least to the most wrong.

    Raises:
        ValueError: The reply is not a list of that many texts, or two captions are equal.
    """
    found = _LIST.search(reply)
    try:
        values = json.loads(found[0]) if found else None
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"the reply is not a JSON list of texts: {reply[:80]!r}")
    captions = [value.strip() for value in values]
    if len(captions) != count or not all(captions):
        raise ValueError(f"the reply has {len(captions)} captions, not {count}")
    if len({text.casefold() for text in (anchor, *captions)}) <= count:
        raise ValueError("two captions are equal")
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
            yield _question("realism", f"{number + 1}/{place}", text)
            if place > 1:
                text = _QUALITY["relevance"][number].format(
                    caption=caption, anchor=anchor, aspect=aspect
                )
                yield _question("relevance", f"{number + 1}/{place}", text)
        for place in range(2, len(captions)):
            better, worse = captions[place - 1], captions[place]
            text = _QUALITY["ordering"][number].format(anchor=anchor, better=better, worse=worse)
            yield _question("ordering", f"{number + 1}/{place}-{place + 1}", text)


def _question(criterion: str, prompt: str, text: str) -> QualityQuestion:
    return QualityQuestion(criterion, prompt, f"{text}\n{_YES_NO}")
