"""Responses without ids, whose order the caller states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas
import polars
import pytest

from hallujudge.sdk import Client
from hallujudge.sdk.errors import ArchiveError, InvalidInputError

CAPTIONS = ["A cat and a dog.", "A cat.", "A dog in a.jpg"]
OBJECTS = [["cat"], ["cat"], ["dog"]]
ANSWERS = [
    {"question": "Is there a cat?", "answer": "Yes.", "label": "yes"},
    {"question": "Is there a dog?", "answer": "No.", "label": "yes"},
]


def score(metric: str, responses: Any, references: Any = None, ids: str = "position") -> Any:
    with Client.embedded() as client:
        return client.score(metric, responses=responses, references=references, ids=ids)


@pytest.mark.parametrize("made", [list, pandas.DataFrame, polars.DataFrame])
def test_answers_need_no_ids(made: Any) -> None:
    report = score("pope", made(ANSWERS))
    assert report.accuracy == 0.5
    assert [item.id for item in report.items] == ["1", "2"]


@pytest.mark.parametrize("made", [list, pandas.Series, polars.Series])
def test_captions_belong_to_the_objects_in_their_place(made: Any) -> None:
    report = score("chair", made(CAPTIONS), OBJECTS)
    named = dict(zip("123", CAPTIONS, strict=True)), dict(zip("123", OBJECTS, strict=True))
    wanted = score("chair", *named, ids="")
    assert report.scores == wanted.scores
    assert [item.scores["chair_i"] for item in report.items] == [0.5, 0.0, 0.0]


def test_records_of_captions(tmp_path: Path) -> None:
    rows = [{"caption": text} for text in CAPTIONS]
    report = score("chair", rows, OBJECTS)
    assert report.coverage.scored == 3
    assert (report.save(tmp_path / "run") / "items.jsonl").read_text().count("\n") == 3


@pytest.mark.parametrize(
    ("responses", "references", "ids", "error", "said"),
    [
        (CAPTIONS, OBJECTS[:2], "position", ArchiveError, "3 responses and 2 references"),
        (CAPTIONS, OBJECTS, "order", InvalidInputError, "ids is 'order'"),
        ({"1": "A cat."}, OBJECTS[:1], "position", ArchiveError, "responses: .* a mapping"),
        (CAPTIONS, "objects.json", "position", ArchiveError, "references: .* a file"),
        (
            [{"id": 7, "caption": "A cat."}],
            OBJECTS[:1],
            "position",
            ArchiveError,
            "record 1 has an id, 7",
        ),
    ],
)
def test_what_has_ids_or_no_order_is_refused(
    responses: Any, references: Any, ids: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        score("chair", responses, references, ids)


def test_texts_without_ids_are_told_what_to_give() -> None:
    with pytest.raises(ArchiveError, match="ids='position'"):
        score("chair", CAPTIONS[:2], OBJECTS, "")
