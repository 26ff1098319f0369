"""Archives of seen claims: ids, claims with verdicts, and pictures of names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.pictures import png

from hallujudge.metrics.framework.claims import Sentence, Triplet
from hallujudge.metrics.seen_claims import SeenClaim, SeenClaimsItem
from hallujudge.sdk import InputOptions
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.errors import ArchiveError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "COCO_val2014_000000000042.png").write_bytes(png(42))
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "beach.png").write_bytes(png(7))
    return tmp_path


def items_of(records: Any, folder: Path | None = None, **more: Any) -> list[SeenClaimsItem]:
    own = {} if folder is None else {"images": folder}
    references = more.pop("references", None)
    options = InputOptions(own=own, **more)
    found: list[Any] = list(read_items("seen-claims", records, references, options=options))
    return found


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"image_id": 42, "caption": "A dog."}, "COCO_val2014_000000000042.png"),
        ({"image": "COCO_val2014_000000000042.png", "text": "A dog."}, None),
        ({"file_name": "val2014/deep/beach.png", "response": "A dog."}, "deep/beach.png"),
        ({"id": "beach.png", "answer": "A dog."}, "deep/beach.png"),
        ({"question_id": 7, "image": "beach", "answer": "A dog."}, "deep/beach.png"),
    ],
)
def test_a_picture_is_found_by_the_names_of_releases(
    folder: Path, record: dict[str, object], name: str | None
) -> None:
    [item] = items_of([record], folder)
    assert item.group_id == item.pictures[0].name == (name or "COCO_val2014_000000000042.png")
    assert item.pictures[0].data in (png(42), png(7))
    assert item.pictures[0].media_type == "image/png"


def test_the_id_of_a_line_is_no_picture(folder: Path) -> None:
    with pytest.raises(ArchiveError, match="the record names no picture: tried image, video"):
        items_of([{"id": 42, "caption": "A dog."}], folder)


def test_questions_about_one_picture_are_told_apart(folder: Path) -> None:
    records = [{"image_id": 42, "question": f"{n}?", "response": "A dog."} for n in range(2)]
    assert [item.id for item in items_of(records, folder)] == ["42: 0?", "42: 1?"]
    with pytest.raises(ArchiveError, match="duplicate ids: 42: 0"):
        items_of([records[0], records[0]], folder)
    twice = items_of([records[0], records[0]], folder, allow_duplicates=True)
    assert [item.id for item in twice] == ["42: 0?", "42: 0?#2"]


def test_references_name_the_picture_of_each_response(folder: Path) -> None:
    found = items_of({"a": "A dog."}, folder, references={"a": "beach.png"})
    assert found[0].pictures[0].data == png(7)
    with pytest.raises(ArchiveError, match="no picture has the id 'b'"):
        items_of({"b": "A dog."}, folder, references={"a": "beach.png"})


def test_claims_may_have_verdicts_and_need_no_picture() -> None:
    claims: list[object] = [
        ["dog", "on", "sofa"],
        "A dog sleeps.",
        {"claim": ["dog", "is", "brown"], "verdict": "not_supported"},
        {"claim": "It smells.", "verdict": "cannot_be_seen"},
        {"claim": "It is old.", "verdict": None},
    ]
    [item] = items_of([{"image": "1.jpg", "claims": claims}])
    assert item.claims == (
        SeenClaim(claim=Triplet("dog", "on", "sofa")),
        SeenClaim(claim=Sentence("A dog sleeps.")),
        SeenClaim(claim=Triplet("dog", "is", "brown"), verdict="not_supported"),
        SeenClaim(claim=Sentence("It smells."), verdict="cannot_be_seen"),
        SeenClaim(claim=Sentence("It is old.")),
    )
    assert (item.pictures, item.problem, item.group_id) == ((), "", "1.jpg")


@pytest.mark.parametrize(
    ("claims", "problem"),
    [
        ("A dog.", "expected a list of claims"),
        ([["dog", "on"]], "it has 2 parts"),
        ([{"claim": "A dog."}], "has the keys claim and verdict; found claim"),
        ([{"claim": "A dog.", "verdict": "yes"}], 'the verdict is "yes"; write supported'),
    ],
)
def test_claims_of_another_form_are_refused(claims: object, problem: str) -> None:
    with pytest.raises(ArchiveError, match=problem):
        items_of([{"image": "1.jpg", "claims": claims}])


def test_what_has_neither_a_response_nor_claims_is_refused() -> None:
    records = [
        {"image": "1.jpg", "claims": [{"claim": "A dog.", "verdict": "supported"}]},
        {"image": "2.jpg", "note": "lost"},
    ]
    with pytest.raises(ArchiveError, match="neither a response nor claims: tried claims"):
        items_of(records)
