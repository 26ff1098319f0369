"""POPE's and RePOPE's labels of the same answers: scores, what differs, and the order of models."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.qa_running import assert_refused
from support.qa_samples import write_lines
from support.running import here

from hallujudge.sdk import Client, compare
from hallujudge.sdk.analysis import analyze
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.errors import ArchiveError

NAMES = ("dog", "cat", "cup", "bowl", "car", "bus")
POPE = ("yes", "no", "yes", "no", "yes", "no")
# The third label is another one, and the last question was dropped.
REPOPE = ("yes", "no", "no", "no", "yes")


def questions(labels: Sequence[str], misspelt: str = "image") -> list[dict[str, Any]]:
    return [
        {
            "question_id": n,
            "image": f"{n // 3}.jpg",
            "text": f"Is there a {name} in the {misspelt if n == 1 else 'image'}?",
            "label": label,
        }
        for n, (name, label) in enumerate(zip(NAMES, labels, strict=False))
    ]


def answers(said: Sequence[str]) -> list[dict[str, Any]]:
    asked = questions(POPE, "imange")
    return [
        {"question_id": row["question_id"], "prompt": row["text"], "text": text}
        for row, text in zip(asked, said, strict=True)
    ]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [
        write_lines(tmp_path / "coco_random.jsonl", questions(POPE, "imange")),
        write_lines(tmp_path / "coco_repope_random.jsonl", questions(REPOPE)),
    ]


def scored(tmp_path: Path, files: Sequence[Path], name: str, said: Sequence[str]) -> Path:
    given = write_lines(tmp_path / f"{name}.jsonl", answers(said))
    references = [part for file in files for part in ("-R", file)]
    run = here("score", "pope", "-r", given, *references, "-o", tmp_path / name)
    assert run.returncode == 0, run.stderr
    assert "1 answer is to questions that the labels dropped" in run.stderr
    return tmp_path / name


def values(folder: Path, score: str = "accuracy") -> list[float]:
    found: Mapping[str, Any] = json.loads((folder / "labels.json").read_text())
    return [each["scores"][score] for each in found["sets"]]


def test_both_scores_of_the_same_answers_and_what_differs(
    tmp_path: Path, files: list[Path]
) -> None:
    folder = scored(tmp_path, files, "a", ["yes", "no", "yes", "yes", "yes", "no"])
    assert values(folder) == [pytest.approx(5 / 6), pytest.approx(3 / 5)]
    tables = analyze(folder)
    [row] = tables["label_changes"].rows
    assert [row[key] for key in ("before", "after", "kept", "yes_to_no", "dropped_no")] == [
        *(6, 5, 4, 1, 1)
    ]
    assert row["text_differs"] == 1
    assert [
        (each["id"], each["before"], each["after"]) for each in tables["changed_labels"].rows
    ] == [("2", "yes", "no"), ("5", "no", "dropped")]


def test_the_order_of_files_does_not_matter(tmp_path: Path, files: list[Path]) -> None:
    said = ["yes", "no", "yes", "yes", "yes", "no"]
    first = scored(tmp_path, files, "a", said)
    second = scored(tmp_path, files[::-1], "b", said)
    assert (first / "labels.json").read_text() == (second / "labels.json").read_text()


def test_compare_says_whether_the_order_changes(tmp_path: Path, files: list[Path]) -> None:
    one = scored(tmp_path, files, "one", ["yes", "no", "yes", "no", "no", "no"])
    other = scored(tmp_path, files, "other", ["yes", "no", "no", "no", "yes", "yes"])
    third = scored(tmp_path, files, "third", ["no", "no", "yes", "no", "no", "yes"])
    assert values(one) == [5 / 6, 3 / 5]
    assert values(other) == [4 / 6, 1.0]
    notes = " ".join(compare(one, other).notes)
    assert "The order of the runs differs by the labels of pope and repope" in notes
    assert (
        "accuracy: pope one 0.8333, other 0.6667 against repope one 0.6000, other 1.0000" in notes
    )
    notes = " ".join(compare(one, third).notes)
    assert "The order of the runs is the same by the labels of pope and repope" in notes
    ranks = {
        (row["model"], row["labels"]): row["rank"]
        for row in analyze(one, other)["label_scores"].rows
    }
    assert ranks[("one", "pope")] == ranks[("other", "repope")] == 1
    assert ranks[("one", "repope")] == ranks[("other", "pope")] == 2


def test_runs_by_one_set_of_labels_have_no_note_on_their_order(
    tmp_path: Path, files: list[Path]
) -> None:
    said = ["yes", "no", "yes", "no", "no", "no"]
    runs = [scored(tmp_path, files[1:], name, said) for name in "ab"]
    assert not any((run / "labels.json").exists() for run in runs)
    assert not any("order of the runs" in note for note in compare(*runs).notes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"image": "9.jpg"}, "9.jpg"),
        ({"text": "Is there a fork in the image?"}, "fork"),
        ({"label": "maybe"}, "maybe"),
    ],
    ids=["image", "text", "label"],
)
def test_labels_of_other_questions_are_refused(
    tmp_path: Path, files: list[Path], change: dict[str, str], said: str
) -> None:
    rows = questions(REPOPE)
    write_lines(files[1], [*rows[:-1], rows[-1] | change])
    given = write_lines(tmp_path / "a.jsonl", answers(["yes"] * 6))
    run = here("score", "pope", "-r", given, "-R", files[0], "-R", files[1], "-o", tmp_path / "a")
    assert_refused(run, said)


def test_the_variant_leaves_out_what_the_labels_lack() -> None:
    rows = answers(["yes", "no", "eyes", "no", "no", "yes"])
    with Client.embedded() as client:
        report = client.score(
            "pope", responses=rows, references=questions(REPOPE), variant="repope"
        )
    assert report.coverage.items == 5
    assert report["accuracy"].value == pytest.approx(3 / 5)
    with pytest.raises(ArchiveError, match="references lack"):
        read_items("pope", rows, questions(REPOPE))


def test_labels_that_lack_most_questions_are_refused(tmp_path: Path, files: list[Path]) -> None:
    write_lines(files[1], questions(REPOPE)[:2])
    given = write_lines(tmp_path / "a.jsonl", answers(["yes"] * 6))
    run = here("score", "pope", "-r", given, "-R", files[1], "-o", tmp_path / "a")
    assert_refused(run, "references lack")


def test_misspelt_questions_are_the_same_and_others_are_not(files: list[Path]) -> None:
    assert len(read_items("pope", answers(["yes"] * 6), files[1])) == 5
    rows = answers(["yes"] * 6)
    rows[3] |= {"prompt": "Is there a owl in the image?"}
    with pytest.raises(ArchiveError, match="owl"):
        read_items("pope", rows, files[1])
