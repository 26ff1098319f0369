"""Errors about archives name the file; one record without an image costs that record only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hallujudge.sdk import Client, InputOptions
from hallujudge.sdk.cli import main
from hallujudge.sdk.errors import ArchiveError

Row = Mapping[str, Any]


def answer(number: int, **more: Any) -> dict[str, Any]:
    return {
        "question_id": number,
        "image": f"{number}.jpg",
        "text": f"Is there a dog {number}?",
        "label": "yes",
        "answer": "yes",
        **more,
    }


def without(row: Row, key: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != key}


def score(metric: str, file: Path, **options: Any) -> Any:
    with Client.embedded() as client:
        return client.score(metric, responses=file, inputs=InputOptions(**options))


def lines(folder: Path, rows: Sequence[Row]) -> Path:
    file = folder / "answers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


ROWS = [answer(1), without(answer(2), "image"), answer(3)]


def test_a_record_without_an_image_can_be_left_unscored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = lines(tmp_path, ROWS)
    with pytest.raises(ArchiveError, match=r"answers\.jsonl line 2: no image or video.*skip_bad"):
        score("pope", file)
    report = score("pope", file, skip_bad=True)
    assert (report.coverage.scored, report.coverage.unscored) == (2, 1)
    assert report.accuracy == 1
    assert main(["score", "pope", "-r", str(file), "-o", str(tmp_path / "run")]) == 2
    assert "--skip-bad" in capsys.readouterr().err


def test_the_same_of_a_benchmark_of_bundles(tmp_path: Path) -> None:
    rows = [
        {
            "id": str(n),
            "video": f"{n}.mp4",
            "Question": "?",
            "Correct Answer": "ab",
            "Model Answer": "ab",
        }
        for n in range(3)
    ]
    file = lines(tmp_path, [*rows[:2], without(rows[2], "video")])
    with pytest.raises(ArchiveError, match="no image or video"):
        score("vidhalluc-tsh", file)
    assert score("vidhalluc-tsh", file, skip_bad=True).coverage.scored == 2


def test_no_record_with_an_image_needs_none(tmp_path: Path) -> None:
    report = score("pope", lines(tmp_path, [without(row, "image") for row in ROWS]))
    assert report.coverage.scored == 3


@pytest.mark.parametrize(
    ("metric", "row"),
    [
        ("amber", {"id": 1, "image": "1.jpg", "response": "Yes", "type": "existence"}),
        ("infact", {"question_id": "q1", "video": "1.mp4", "operator": "base", "response": "A"}),
        ("event-hallusion", {"id": "entire_001", "question": "Is it?", "prediction": "Yes."}),
        ("elv-halluc", {"video_id": 1, "model_response": "Yes.", "aspect": "object"}),
        ("pope", answer(1, label=None)),
    ],
)
def test_errors_about_labels_name_the_file(metric: str, row: Row, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"answers\.jsonl"):
        score(metric, lines(tmp_path, [row]))
