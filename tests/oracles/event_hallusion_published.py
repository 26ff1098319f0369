"""EventHallusion's printed numbers, computed plainly from their definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def starts_with(text: str | None) -> str | None:
    """Return the word whose letters a text starts with."""
    for word in ("yes", "no"):
        if text is not None and text.lower().startswith(word):
            return word
    return None


def counts(archive: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return the counts of each split, and over all."""
    names = ("asked", "right", "unparsed", "judged", "approved", "undecided")
    table = {split: dict.fromkeys(names, 0) for split in (*archive, "overall")}
    for split, videos in archive.items():
        for video in videos.values():
            for row in (table[split], table["overall"]):
                for question in video["qa"]:
                    said = starts_with(question["prediction"])
                    row["asked"] += 1
                    row["unparsed"] += said is None
                    row["right"] += said == question["answer"].lower().rstrip(".")
                if "judgement" in video:
                    said = starts_with(video["judgement"].replace("*", ""))
                    row["judged"] += 1
                    row["undecided"] += said is None
                    row["approved"] += said == "yes"
    return table
