"""Descriptions and keywords from files: every layout read, every fault named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message

from hallujudge.metrics.mementos import MementosItem
from hallujudge.sdk.archives import InputOptions, read_items
from hallujudge.sdk.archives.mementos import parse_keyword_text
from hallujudge.sdk.errors import ArchiveError

LISTS: dict[str, Any] = {
    "reference_objects": ["dog"],
    "predicted_objects": ["dog", "cat"],
    "reference_behaviors": [],
    "predicted_behaviors": ["run"],
}
TEXT = (
    "Object list 1: [dog, toy car, house]\nAction list 1: [bark, lean backward]\n"
    "Object list 2: []\nAction list 2: [play]\n"
)
READ = {
    "reference_objects": ("dog", "toy car", "house"),
    "reference_behaviors": ("bark", "lean backward"),
    "predicted_objects": (),
    "predicted_behaviors": ("play",),
}


def items(responses: Any, references: Any = None, **options: Any) -> list[MementosItem]:
    source = read_items("mementos", responses, references, options=InputOptions(**options))
    made = list(source)
    assert len(made) == len(source)
    assert made == list(source), "an archive can be gone through twice"
    return made  # type: ignore[return-value]  # the reader of mementos makes nothing else


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("\n", "\n\n"),
        "The lists are:\n" + TEXT,
        TEXT.replace("Action", "**Action").replace(":", ":**"),
        TEXT.replace("Action", "Behavior"),
        TEXT.replace("[dog, toy car, house]", "dog, toy car, house"),
        TEXT.replace("[dog, toy car, house]", "[dog, toy car, house"),
        TEXT.replace("[dog, toy car, house]", "[dog,\n toy car,\n house]"),
        TEXT.replace("[dog, toy car, house]", "['dog', \"toy car\", house,]"),
        TEXT.replace("[]", "[ ]"),
        TEXT.replace("[dog", "tangible objects: [dog"),
        TEXT.replace("house]", "house]: three of them"),
        TEXT.replace(": [dog, toy car, house]", ":\n\n[dog, toy car,\n\nhouse]"),
        TEXT.replace(": [dog, toy car, house]", ":\n- dog\n- toy car\n- house"),
        TEXT.replace(": [dog, toy car, house]", ":\n1. dog\n2. toy car,\n3. house\n\nAll seen."),
        TEXT.replace("house]", "house]\nThat is all."),
        TEXT.rstrip(),
    ],
)
def test_keyword_texts_that_are_read(text: str) -> None:
    assert parse_keyword_text(text, place="x.txt") == READ


def test_a_second_colon_is_part_of_the_keyword() -> None:
    read = parse_keyword_text(TEXT.replace("house", "sign: stop"), place="x.txt")
    assert read["reference_objects"] == ("dog", "toy car", "sign: stop")


def test_brackets_and_quotation_marks_within_keywords() -> None:
    text = TEXT.replace("[dog, toy car, house]", r"['dog\'s bone', toy [red], box]")
    read = parse_keyword_text(text, place="x.txt")
    assert read["reference_objects"] == ("dog's bone", "toy [red]", "box")


def test_nothing_in_a_keyword_text_is_evaluated() -> None:
    read = parse_keyword_text(TEXT.replace("dog", "__import__('os').system('x')"), place="x.txt")
    assert read["reference_objects"][0] == "__import__('os').system('x')"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TEXT.replace("Action list 2: [play]\n", ""), "line 3.*Action list 2.*missing"),
        (TEXT + "Object list 2: [x]\n", "line 5.*appears twice"),
        (TEXT + "Object list 3: [x]\n", "line 5.*list 3"),
        (TEXT.replace("[]", "[cat] Object list 1: [dog]"), "line 3.*write one list per line"),
        ("", "line 1.*missing"),
        ("no lists at all", "missing"),
    ],
)
def test_keyword_texts_that_are_refused(text: str, says: str) -> None:
    with pytest.raises(ArchiveError, match=rf"x\.txt {says}" if "line" in says else says):
        parse_keyword_text(text, place="x.txt")


def test_a_folder_of_keyword_texts(tmp_path: Path) -> None:
    (tmp_path / "rw_2.txt").write_text(TEXT)
    (tmp_path / "rw_1.txt").write_bytes(TEXT.replace("\n", "\r\n").encode())
    (tmp_path / "notes.md").write_text("not keywords")
    found = items(tmp_path)
    assert [item.id for item in found] == ["rw_1", "rw_2"]
    assert found[0].reference_objects == READ["reference_objects"]
    assert items(tmp_path / "rw_2.txt")[0].predicted_behaviors == ("play",)
    (tmp_path / "rw_4.TXT").write_text(TEXT)
    assert [item.id for item in items(tmp_path)] == ["rw_1", "rw_2", "rw_4"]
    (tmp_path / "rw_3.txt").write_text("Object list 1: [a]\n")
    with pytest.raises(ArchiveError, match=r"rw_3\.txt line 1"):
        items(tmp_path)


def test_keyword_lines_and_the_items_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    run = {
        "id": "b#2", "group_id": "b", "outcome": "scored", "fields": {"model": "m"},
        "evidence": {"domain": "comics", "episode_length": 2, **LISTS},
    }  # fmt: skip
    unscored = {
        "id": "c", "outcome": "unscored", "fields": {"domain": "comics"}, "evidence": {},
    }  # fmt: skip
    lines = [{"id": "a", "domain": "robotics", **LISTS}, run, unscored]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    source = read_items("mementos", path, None, group_by=("model",))
    first, second, third = list(source)
    assert isinstance(first, MementosItem)
    assert isinstance(second, MementosItem)
    assert (first.domain, second.domain) == ("robotics", "comics")
    assert first.predicted_objects == second.predicted_objects == ("dog", "cat")
    assert second.reference_behaviors == ()
    assert second.fields == {"model": "m"}
    assert isinstance(third, MementosItem)
    assert third.predicted_objects is None
    # What the first run knew of an item, the second one knows too.
    assert (second.id, second.group_id, second.episode_length) == ("b#2", "b", 2)
    assert third.domain == "comics"


def test_a_domain_that_is_not_a_text_is_not_the_general_one() -> None:
    assert items([{"id": "a", "domain": 7, **LISTS}])[0].domain == "7"


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_table_with_semicolons_is_read(tmp_path: Path, line_end: str) -> None:
    path = tmp_path / "m.csv"
    rows = ("image;description", 'a.png;"A man, a dog; a cat."')
    path.write_bytes(line_end.join(rows).encode("utf-8-sig"))
    found = items(path, allow_unknown=True)
    assert [(item.id, item.response) for item in found] == [("a.png", "A man, a dog; a cat.")]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"id": "a", **{**LISTS, "predicted_objects": None}}, "no list predicted_objects"),
        ({"id": "a", **{**LISTS, "predicted_objects": "dog"}}, "not a list of texts"),
        ({"id": "a", **{**LISTS, "predicted_objects": [1]}}, "not a list of texts"),
        ({"name": "a", **LISTS}, "no key for the image name"),
        ({"id": "a"}, "no key for the description"),
        ({"id": "a", "episode_length": "many", **LISTS}, "episode_length"),
    ],
)
def test_keyword_lines_that_are_refused(tmp_path: Path, line: Any, says: str) -> None:
    path = tmp_path / "k.jsonl"
    path.write_text(json.dumps(line) + "\n")
    with pytest.raises(ArchiveError, match=f"line 1.*{says}"):
        items(path)


def test_descriptions_join_their_references(tmp_path: Path) -> None:
    references, responses = tmp_path / "r.csv", tmp_path / "m.csv"
    references.write_text('image_name,gt_description\na.png,"One, and\ntwo."\nb.png,\n')
    responses.write_text("image,description\nb.png,Three.\na.png,Four.\n")
    found = items(responses, references)
    assert [(i.id, i.response, i.reference) for i in found] == [
        ("b.png", "Three.", None),
        ("a.png", "Four.", "One, and\ntwo."),
    ]


def test_a_cut_character_is_read_byte_by_byte_and_said(tmp_path: Path) -> None:
    """A released file of descriptions has one, which the released script reads as Latin-1."""
    path = tmp_path / "r.csv"
    path.write_bytes(b"image_name,description\na,a caf\xc3\xa9\xef\xbc with\n")
    source = read_items("mementos", {"a": "x"}, path)
    assert expected_message("sdk.archives.table_files:line-is-not-utf") in source.notes[0]
    assert [getattr(item, "reference", "") for item in source] == ["a caféï¼ with"]


@pytest.mark.parametrize(
    ("references", "says"),
    [
        ("image_name,description\na,x\na,y\n", "duplicate image names.*a"),
        ("image_name,description\nb,x\n", "the references lack: a"),
        ("image_name,description\na,x\nb,y\n", "have no answer: b"),
        ("image_name,description\na,x,y\n", "line 2: 3 columns"),
        ('image_name,description\na,"x\n', "not CSV|2"),
        ("image_name,image_name\na,x\n", "line 1"),
        ("image_name,description\na\n", "line 2: 1 column, but the header has 2; give every row"),
        ("name,words\na,x\n", "no key for the image name.* Give it one of these names"),
        ("image_name,words\na,x\n", "no key for the description"),
        ("", "the file is empty"),
    ],
)
def test_references_that_are_refused(tmp_path: Path, references: str, says: str) -> None:
    path = tmp_path / "r.csv"
    path.write_text(references)
    with pytest.raises(ArchiveError, match=says):
        items({"a": "A dog runs."}, path)


def test_descriptions_as_references_are_not_blamed(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("image_name,description\nb,x\n")
    with pytest.raises(ArchiveError) as caught:
        items({"a": "A dog runs."}, path)
    assert expected_message("sdk.archives.readers:give-it-as-responses") not in str(caught.value)


def test_what_the_user_allows(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("image_name,description\na,x\nb,y\n")
    responses = [{"image": "a", "description": "1"}, {"image": "a", "description": "2"},
                 {"image": "z", "description": "3"}]  # fmt: skip
    found = items(responses, path, allow_duplicates=True, allow_unknown=True, allow_missing=True)
    assert [(i.id, i.group_id, i.reference) for i in found] == [
        ("a", "a", "x"), ("a#2", "a", "x"), ("z", "z", None), ("b", "", "y"),
    ]  # fmt: skip


def test_two_records_of_one_image_are_refused() -> None:
    with pytest.raises(ArchiveError, match="more than once: a"):
        items([{"id": "a", **LISTS}, {"id": "a", **LISTS}])
