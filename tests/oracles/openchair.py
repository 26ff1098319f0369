"""OpenCHAIR's released evaluation of judge texts as a plain loop."""

from __future__ import annotations

from collections.abc import Sequence

NOT_OBJECTS = ["painting", "drawing", "photo", "picture", "portrait", "photograph"]


def reading(thing: str, text: str) -> str:
    """Return yes, no, unsure, ignore, or an error mark."""
    if thing in NOT_OBJECTS:
        return "ignore"
    text = text.strip().lower()
    for mark in (",", ".", ";"):
        text = text.replace(mark, "")
    words = text.replace("\n", " ").split(" ")
    if "yes" in words:
        return "yes"
    if "no" in words or "not" in words:
        return "no"
    if "unsure" in words:
        return "unsure"
    return "ERROR"


def counts(captions: Sequence[tuple[Sequence[str], Sequence[str]]]) -> dict[str, int]:
    """Return how many mentions of all captions have each reading."""
    found = {"yes": 0, "no": 0, "unsure": 0, "ignore": 0, "ERROR": 0}
    for things, texts in captions:
        for thing, text in zip(things, texts, strict=True):
            found[reading(thing, text)] += 1
    return found
