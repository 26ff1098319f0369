"""A small archive of EventHallusion in the released layout."""

from __future__ import annotations

from typing import Any

__all__ = ["VIDEOS", "archive"]


def _video(said: list[tuple[str, str | None]], judgement: str | None = "Yes.") -> dict[str, Any]:
    made: dict[str, Any] = {
        "category": "daily",
        "qa": [{"question": "Is it so?", "answer": f"{y}.", "prediction": t} for y, t in said],
        "desc": "A man walks a dog.",
        "event_info": {"caption": "A man walks a dog.", "unexpected": "The dog falls."},
    }
    return made if judgement is None else {**made, "judgement": judgement}


def archive(rows: dict[str, list[tuple[list[tuple[str, str | None]], str | None]]]) -> Any:
    """Return an archive: split -> id -> video, from labels, answers and judgements."""
    return {
        split: {f"{split}_{n}": _video(*row) for n, row in enumerate(videos)}
        for split, videos in rows.items()
    }


VIDEOS = archive(
    {
        "entire": [
            ([("No", "No. It is not."), ("No", "Not sure")], "**Yes**. It is."),
            ([("No", "So the answer is no.")], ""),
            ([("No", None)], "I can't tell."),
        ],
        "interleave": [([("Yes", "yes, it does")], "No, it is not."), ([("Yes", " No.")], None)],
        "misleading": [([], "Nothing fits."), ([], None)],
    }
)
"""Answers and judgements that the variants parse differently; the last video has nothing."""
