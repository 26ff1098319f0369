"""Splits of a benchmark whose files have equal ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from support.messages import expected_message
from support.qa_samples import write_lines

from hallujudge.metrics.answers.closed_questions import FileNames
from hallujudge.metrics.pope import BENCHMARK
from hallujudge.sdk import InputOptions
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.archives.answers import read_answers
from hallujudge.sdk.archives.inputs import ReaderInput
from hallujudge.sdk.archives.set_files import split_in, split_of, split_of_file
from hallujudge.sdk.errors import ArchiveError

SPLITS = BENCHMARK.split_files
assert SPLITS is not None
# The first object is in the image, and every split asks about it.
ABSENT = {"random": "car", "popular": "chair", "adversarial": "cat"}

Rows = list[dict[str, Any]]


def questions(split: str) -> Rows:
    return [
        {"question_id": n, "image": "a.jpg", "text": f"Is there a {thing}?", "label": label}
        for n, (thing, label) in enumerate((("dog", "yes"), (ABSENT[split], "no")), 1)
    ]


def answers(split: str, *replies: str) -> Rows:
    return [
        {"question_id": row["question_id"], "prompt": row["text"], "text": reply}
        for row, reply in zip(questions(split), replies or ("Yes", "No"), strict=True)
    ]


def question_files(folder: Path) -> list[Path]:
    return [write_lines(folder / f"coco_pope_{split}.json", questions(split)) for split in ABSENT]


def joined(folder: Path, files: object, **options: Any) -> list[tuple[str, str]]:
    found = read_items(
        "pope",
        files,  # type: ignore[arg-type]  # a list of paths or records
        question_files(folder),
        options=InputOptions(**options),
        metric_groups=("category",),
    )
    return sorted((item.id, item.fields["category"]) for item in found)


ALL = sorted((f"{split}:{n}", split) for split in ABSENT for n in (1, 2))


def without(rows: Iterable[dict[str, Any]], *keys: str) -> Rows:
    return [{name: value for name, value in row.items() if name not in keys} for row in rows]


WAYS: dict[str, Callable[[Path], object]] = {
    "file names": lambda folder: [
        write_lines(folder / f"m_{split}.jsonl", without(answers(split), "prompt"))
        for split in ABSENT
    ],
    "folder names": lambda folder: [
        write_lines(folder / split / "answers.jsonl", answers(split)) for split in ABSENT
    ],
    "a key": lambda _: [{**row, "split": split} for split in ABSENT for row in answers(split)],
    "questions of a file": lambda folder: [
        write_lines(folder / f"{n}.jsonl", answers(split)[::-1]) for n, split in enumerate(ABSENT)
    ],
    "equal answers": lambda _: [row for split in ABSENT for row in answers(split)],
    "image and text": lambda _: [
        {**row, "image": "a.jpg", "question_id": 100 + n}
        for n, row in enumerate(row for split in ABSENT for row in answers(split))
    ],
    "each question once": lambda _: [
        {"image": "a.jpg", "prompt": f"Is there a {thing}?", "text": "No"}
        for thing in ("dog", *ABSENT.values())
    ],
}


@pytest.mark.parametrize("way", WAYS)
def test_answers_find_their_split(tmp_path: Path, way: str) -> None:
    for split in ABSENT:
        (tmp_path / split).mkdir()
    assert joined(tmp_path, WAYS[way](tmp_path)) == ALL


def test_answers_that_may_be_of_several_splits_are_refused(tmp_path: Path) -> None:
    different = [*answers("random"), *answers("popular", "No", "No"), *answers("adversarial")]
    without_text = without(answers("random"), "prompt")
    for rows in (different, without_text):
        with pytest.raises(
            ArchiveError, match=expected_message("sdk.archives.split_files:no-certain-split")
        ):
            joined(tmp_path, rows)


def test_a_missing_split_is_named(tmp_path: Path) -> None:
    files = [write_lines(tmp_path / f"{n}.jsonl", answers(n)) for n in ("random", "popular")]
    with pytest.raises(
        ArchiveError, match=expected_message("sdk.archives.split_files:missing-split")
    ):
        joined(tmp_path, files)
    assert joined(tmp_path, files, allow_missing=True) == ALL


def test_a_file_is_given_once(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "random.jsonl", answers("random"))
    with pytest.raises(ArchiveError, match=expected_message("sdk.archives.readers:given-twice")):
        joined(tmp_path, [file, str(file)])
    copy = write_lines(tmp_path / "random copy.jsonl", answers("random"))
    with pytest.raises(ArchiveError, match="both hold the id '1'"):
        joined(tmp_path, [file, copy])


def test_question_files_without_a_split_are_refused(tmp_path: Path) -> None:
    files = [write_lines(tmp_path / f"{n}.json", questions(n)) for n in ("random", "popular")]
    files[0] = files[0].rename(tmp_path / "a.json")
    with pytest.raises(
        ArchiveError, match=expected_message("sdk.archives.split_files:no-known-split")
    ):
        read_items("pope", answers("random"), files)


def test_any_benchmark_may_have_splits(tmp_path: Path) -> None:
    """A benchmark whose answers are joined by id only, with splits of other names."""
    declared = structs.replace(
        BENCHMARK,
        keys=structs.replace(
            BENCHMARK.keys,
            response=("answer",),
            label=("label",),
            fields={"part": ("part",)},
            values={"part": FileNames({"one": "one", "two": "two"})},
        ),
        group_by=("part",),
    )
    rows = [{"id": 1, "image": "a.jpg", "question": "A dog?", "label": "yes"}]
    known = [write_lines(tmp_path / f"q_{part}.json", rows) for part in ("one", "two")]
    given: Rows = [{"id": 1, "part": part, "answer": "Yes"} for part in ("two", "one")]
    items = list(read_answers(declared, ReaderInput(given, known, InputOptions(), ("part",))))
    assert [(item.id, item.fields["part"]) for item in items] == [
        ("two:1", "two"),
        ("one:1", "one"),
    ]


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("coco_pope_random.json", "random"),
        ("pope_adv.jsonl", "adversarial"),
        ("POPE-Popular-7b.json", "popular"),
        ("randomized.json", ""),
        ("random_and_popular.json", ""),
        ("pope.json", ""),
    ],
)
def test_split_of_a_name(name: str, split: str) -> None:
    assert SPLITS is not None
    assert split_in(SPLITS, name) == split
    assert split_of_file(SPLITS, Path("popular", name)) == (split or "popular")


def test_a_key_counts_only_with_a_known_split() -> None:
    assert SPLITS is not None
    assert split_of(SPLITS, {"split": "test", "type": "popular"}) == "popular"
    assert split_of(SPLITS, {"split": "test"}) == ""
    assert split_of(SPLITS, {"category": "random,popular"}) == ""
