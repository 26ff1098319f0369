"""Known answers and captions, and how their rows are written."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "CAPTIONS",
    "QUESTIONS",
    "Caption",
    "Question",
    "Row",
    "json_lines",
    "packed",
    "write_lines",
    "write_table",
]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A yes/no question with its label and a model's answer."""

    id: int
    category: str
    image: str
    text: str
    label: str
    answer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """A caption with the objects of its image."""

    image_id: int
    text: str | None
    objects: tuple[str, ...]


_ANSWERS = (
    ("yes", "Yes, there is a dog."),
    ("no", "no"),
    ("yes", "No."),
    ("no", "Yes"),
    ("no", "Ich weiß es nicht – 犬"),
    ("yes", "Failed to obtain answer via API."),
)
# As in POPE, the ids begin again in each category.
QUESTIONS = tuple(
    Question(
        id=number,
        category=category,
        image=f"COCO_val2014_{number:012}.jpg",
        text=f"Is there a thing {category} {number} in the image?",
        label=label,
        answer=answer,
    )
    for category in ("random", "popular", "adversarial")
    for number, (label, answer) in enumerate(_ANSWERS, 1)
)
CAPTIONS = (
    Caption(image_id=42, text="A dog on a couch, with a cat.", objects=("dog", "couch")),
    Caption(image_id=7, text="Two\nlines about a cat.", objects=("cat",)),
    Caption(image_id=391895, text="A person – una persona – on a horse.", objects=("person",)),
)


def json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write rows as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json_lines(rows), encoding="utf-8")
    return path


def packed(path: Path, kind: str) -> Path:
    """Pack a file as ``gz`` or ``zst`` and return the new file."""
    data = path.read_bytes()
    if kind == "gz":
        data = gzip.compress(data)
    else:
        import zstandard

        data = zstandard.ZstdCompressor().compress(data)
    packed_path = path.with_name(f"{path.name}.{kind}")
    packed_path.write_bytes(data)
    return packed_path


def write_table(path: Path, rows: Sequence[Row]) -> Path:
    """Write rows as the table that the path's suffix names."""
    import pandas as pd

    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame(rows)
    if path.suffix == ".xlsx":
        frame.to_excel(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows, ensure_ascii=False, indent=4), encoding="utf-8")
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path
