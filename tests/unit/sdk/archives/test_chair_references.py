"""Reference objects for CHAIR: COCO's annotation files, and words that the graph does not know."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message
from support.running import assert_refused, here

from hallujudge.sdk import Client, read_items
from hallujudge.sdk.archives import chair
from hallujudge.sdk.archives.chair_references import Objects, coco_number, read_coco, read_objects
from hallujudge.sdk.archives.inputs import CheckedArchive, References
from hallujudge.sdk.archives.json_lines import Mark, Marks
from hallujudge.sdk.errors import ArchiveError
from hallujudge.synonym_graphs import load_graph

IMAGES = [{"id": 40468, "file_name": "COCO_val2014_000000040468.jpg"}, {"id": 7}, {"id": 8}]
INSTANCES: dict[str, Any] = {
    "info": {"year": 2014},
    "images": IMAGES,
    "annotations": [
        {"image_id": 40468, "category_id": 1, "segmentation": [[1.0, 2.0]], "id": 1},
        {"image_id": 40468, "category_id": 2, "id": 2},
        {"image_id": 7, "category_id": 2, "id": 3},
    ],
    "categories": [{"id": 1, "name": "person"}, {"id": 2, "name": "tv"}],
}
CAPTIONS: dict[str, Any] = {
    "images": IMAGES,
    "annotations": [
        {"image_id": 40468, "caption": "A man and two puppies on a sofa."},
        {"image_id": 7, "caption": "A television."},
    ],
}


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "instances_val2014.json", tmp_path / "captions_val2014.json"]
    for path, content in zip(paths, (INSTANCES, CAPTIONS), strict=True):
        path.write_text(json.dumps(content))
    return paths


def test_both_together_are_the_union(files: list[Path]) -> None:
    assert read_coco(files[:1]) == {"40468": ["person", "tv"], "7": ["tv"], "8": []}
    assert read_coco(files[1:]) == {"40468": ["couch", "dog", "person"], "7": ["tv"], "8": []}
    union = {"40468": ["couch", "dog", "person", "tv"], "7": ["tv"], "8": []}
    assert read_coco(files) == read_coco(files[::-1]) == union


@pytest.mark.parametrize("count", [1, 2])
def test_they_are_references_and_file_names_join_numbers(files: list[Path], count: int) -> None:
    responses = [
        {"image": "COCO_val2014_000000040468.jpg", "caption": "A dog."},
        {"image": 7, "caption": "A tv."},
    ]
    references = files[0] if count == 1 else files
    items = list(read_items("chair", responses, references))
    expected = {key: tuple(value) for key, value in read_coco(files[:count]).items()}
    assert {i.id: i.reference_objects for i in items} == {  # type: ignore[attr-defined]
        key: expected[key] for key in ("40468", "7")
    }


@pytest.mark.parametrize(("given", "other"), [(0, "captions"), (1, "instances")])
def test_one_kind_of_coco_alone_is_noted(files: list[Path], given: int, other: str) -> None:
    responses = {"40468": "A dog.", "7": "A tv.", "8": "A cat."}
    [note] = read_items("chair", responses, files[given]).notes
    assert note.endswith(f"give {other}_*.json too")
    assert read_items("chair", responses, files).notes == ()


def test_the_cache_of_a_chair_script_has_a_way_to_json(tmp_path: Path) -> None:
    (tmp_path / "chair.pkl").write_bytes(b"\x80\x04\x95")
    said = expected_message("sdk.archives.formats:write-its-objects-as-json")
    with pytest.raises(ArchiveError, match=said):
        read_items("chair", {"1": "A dog."}, tmp_path / "chair.pkl")


@pytest.mark.parametrize(
    ("identifier", "number"),
    [
        ("COCO_val2014_000000040468.jpg", "40468"),
        ("val2014/COCO_val2014_000000040468", "40468"),
        ("40468", "40468"),
        ("000000040468.jpg", "40468"),
        ("val2017/000000040468.JPG", "40468"),
        ("val2017\\000000040468.png", "40468"),
        ("http://images.cocodataset.org/val2017/000000040468.jpg", "40468"),
        ("000000040468", "40468"),
        ("000000000000.jpg", "0"),
        ("123456789012.jpg", "123456789012.jpg"),
        ("00000040468.jpg", "00000040468.jpg"),
        ("0000000040468.jpg", "0000000040468.jpg"),
        ("000000040468_blurred.jpg", "000000040468_blurred.jpg"),
        ("000000040468.jpg.1", "000000040468.jpg.1"),
        ("x000000040468.jpg", "x000000040468.jpg"),
        ("\u0660" * 11 + "\u0664.jpg", "\u0660" * 11 + "\u0664.jpg"),
        ("my_COCO_image", "my_COCO_image"),
    ],
)
def test_numbers_of_file_names(identifier: str, number: str) -> None:
    assert coco_number(identifier) == number


@pytest.mark.parametrize("name", ["000000040468.jpg", "COCO_val2014_000000040468.jpg"])
def test_names_of_either_year_join_numbers_and_each_other(files: list[Path], name: str) -> None:
    [item] = read_items("chair", {name: "A dog."}, files)
    assert item.id == "40468"
    other = {"40468": ["dog"], "val2017/000000000007.jpg": ["tv"]}
    items = list(read_items("chair", {name: "A dog.", "7": "A tv."}, other))
    assert [item.id for item in items] == ["40468", "7"]


def test_two_names_of_one_image_are_refused(files: list[Path]) -> None:
    names = ["000000040468.jpg", "COCO_val2014_000000040468.jpg"]
    with pytest.raises(ArchiveError, match="duplicate image ids: 40468"):
        list(read_items("chair", dict.fromkeys(names, "A dog."), files))
    with pytest.raises(
        ArchiveError,
        match=expected_message(
            "sdk.archives.chair_references:duplicate-image-ids-in-the-references"
        ),
    ):
        list(read_items("chair", {"40468": "A dog."}, {name: ["dog"] for name in names}))


def test_a_file_of_other_ids_than_its_file_names_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "instances_mine.json"
    images = [{"id": 1, "file_name": "000000040468.jpg"}, {"id": 2, "file_name": "cat.jpg"}]
    path.write_text(json.dumps({"images": images[1:], "annotations": []}))
    assert read_coco([path]) == {"2": []}
    path.write_text(json.dumps({"images": images, "annotations": []}))
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.archives.chair_references:image-has-the-file-name-jpg-which"),
    ):
        read_coco([path])


def test_files_that_do_not_belong_together_are_refused(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "objects.json").write_text('{"7": ["tv"]}')
    with pytest.raises(
        ArchiveError,
        match=expected_message(
            "sdk.archives.chair_references:objectsjson-not-one-of-cocos-annotation-files"
        ),
    ):
        read_items("chair", {"7": "A tv."}, [files[0], tmp_path / "objects.json"])
    (tmp_path / "panoptic.json").write_text('{"images": [], "annotations": [{"image_id": 7}]}')
    with pytest.raises(
        ArchiveError,
        match=expected_message(
            "sdk.archives.chair_references:image-has-neither-caption-nor-known-category"
        ),
    ):
        read_coco([tmp_path / "panoptic.json"])


def test_lists_and_objects_under_image_ids_get_a_sentence_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "mixed.json"
    path.write_text('{"1": ["dog"], "2": {"objects": ["cat"]}, "3": {"objects": []}}')
    with pytest.raises(ArchiveError) as caught:
        read_items("chair", {"1": "A dog."}, path)
    assert str(caught.value) == (
        expected_message("sdk.archives.chair_references:the-image-ids-hold-an-object-where", path)
    )


def test_a_text_in_place_of_a_list_is_named_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mixed.json"
    path.write_text('{"1": ["dog"], "2": "cat"}')
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.archives.tri_he:image-expected-list-of-object-names"),
    ):
        read_items("chair", {"1": "A dog."}, path)


def test_the_command_writes_references_that_are_read_again(
    files: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "objects.json"
    given = ("build", "references", "--instances", files[0], "--captions", files[1])
    assert here(*given, "-o", out).stdout == expected_message(
        "asking.builders.image_objects:objects-of-images-written-to", out
    )
    assert json.loads(out.read_text()) == read_coco(files)
    assert_refused(here(*given, "-o", files[0]), "is one of the inputs; name another file")


NAMES = ["dog", "couch", "gyroscope", "quasar", "axolotl", "yurt", "zither", "dirigible"]
RESPONSES = {"1": "A dog on a sofa."}
SAID = (
    "6 of 8 different reference objects are not in the graph coco-published: 'axolotl', "
    "'dirigible', 'gyroscope', 'quasar', 'yurt' and 1 more. No caption can mention them"
)


def test_they_lower_the_recall_and_the_report_names_them() -> None:
    with Client.embedded() as client:
        report = client.score("chair", responses=RESPONSES, references={"1": NAMES})
        known = client.score("chair", responses=RESPONSES, references={"1": NAMES[:2]})
    assert report["recall"].value == 0.25
    assert report.notes[0].startswith(SAID)
    assert not any("reference objects" in note for note in known.notes)


def test_words_that_the_published_rules_miss_are_named() -> None:
    responses = {"1": "A red bus next to a lorry.", "2": "A bus and a dog.", "3": None}
    shown = {"1": ["bus"], "2": ["dog"], "3": ["bus"]}
    with Client.embedded() as client:
        published = client.score("chair", responses=responses, references=shown)
        corrected = client.score(
            "chair", responses=responses, references=shown, variant="corrected"
        )
        seen = client.score("chair", responses={"1": "Two buses."}, references={"1": ["bus"]})
    assert published.notes[0].startswith(
        "In 1 of 3 captions, the published rules miss words for objects that the images show: "
        "'bus' (1). These captions score worse"
    )
    for report in (corrected, seen):
        assert not any("rules miss words" in note for note in report.notes)


def test_the_named_words_are_those_that_the_published_rules_do_not_find() -> None:
    entries = [
        (word, row[0])
        for row in load_graph("coco-published").rows
        for word in row
        if word.isalpha() and word.islower()
    ]
    captions = {word: f"There is a {word} and a teddy bear." for word, _ in entries}
    shown = {word: [root, "teddy bear"] for word, root in entries}
    with Client.embedded() as client:
        report = client.score("chair", responses=captions, references=shown)
    lost = {item.id for item in report.items if (item.scores["recall"] or 0) < 0.75}
    assert lost == {"bus", "airbus", "minibus"}
    assert not any("rules miss words" in note for note in report.notes), "three of hundreds"
    few = {word: captions[word] for word in (*lost, "dog", "car")}
    with Client.embedded() as client:
        report = client.score("chair", responses=few, references=shown)
    words = "'airbus' (1), 'bus' (1), 'minibus' (1). These"
    assert report.notes[0].startswith("In 3 of 5 captions")
    assert words in report.notes[0]


def test_a_graph_that_knows_them_is_not_blamed(tmp_path: Path) -> None:
    graph = tmp_path / "own.json"
    graph.write_text(json.dumps({name: [name] for name in NAMES}))
    with Client.embedded() as client:
        report = client.score("chair", responses=RESPONSES, references={"1": NAMES}, graph=graph)
    assert not any("reference objects" in note for note in report.notes)


def test_a_run_that_goes_on_has_the_same_note(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"1": NAMES}))
    (tmp_path / "c.json").write_text(json.dumps(RESPONSES))
    given = ("score", "chair", "-r", tmp_path / "c.json", "-R", tmp_path / "r.json")
    out = tmp_path / "out"
    assert here(*given, "-o", out).returncode == 0
    first = (out / "report.json").read_bytes()
    assert json.loads(first)["notes"][0].startswith(SAID)
    assert here(*given, "-o", out, "--resume").returncode == 0
    assert (out / "report.json").read_bytes() == first
    with Client.embedded() as client:
        report = client.score(
            "chair", responses=tmp_path / "c.json", references=tmp_path / "r.json"
        )
        saved = report.save(tmp_path / "saved")
    assert (saved / "report.json").read_bytes() == first


def test_objects_in_the_file_of_responses_are_named_too(tmp_path: Path) -> None:
    row = {"image_id": 1, "caption": RESPONSES["1"], "objects": NAMES}
    (tmp_path / "c.jsonl").write_text(json.dumps(row))
    out, again = tmp_path / "out", tmp_path / "again"
    assert here("score", "chair", "-r", tmp_path / "c.jsonl", "-o", out).returncode == 0
    first = (out / "report.json").read_bytes()
    assert json.loads(first)["notes"][0].startswith(SAID)
    resumed = here("score", "chair", "-r", tmp_path / "c.jsonl", "-o", out, "--resume")
    assert (resumed.returncode, (out / "report.json").read_bytes()) == (0, first)
    assert here("rescore", out, "--variant", "corrected", "-o", again).returncode == 0
    notes = json.loads((again / "report.json").read_bytes())["notes"]
    assert notes[0].startswith(
        expected_message(
            "judge_service.engine.families.chair:of-different-reference-objects-are-not-in"
        )
    )


def test_objects_that_can_be_read_once_are_still_scored() -> None:
    with Client.embedded() as client:
        row = {"image_id": 1, "caption": RESPONSES["1"], "objects": iter(["dog", "couch"])}
        report = client.score("chair", responses=[row])
    assert report["recall"].value == 1.0


def test_a_run_that_goes_on_reads_the_references_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []

    def counted(given: References) -> Mapping[str, Objects]:
        read.append(given)
        return read_objects(given)

    (tmp_path / "r.json").write_text(json.dumps({"1": NAMES}))
    (tmp_path / "c.jsonl").write_text('{"image_id": 1, "caption": "A dog."}\n')
    monkeypatch.setattr(chair, "read_objects", counted)
    checked = CheckedArchive(count=1, marks=Marks(marks=[Mark()]))
    given = (tmp_path / "c.jsonl", tmp_path / "r.json")
    source = read_items("chair", *given, check=checked)
    assert source.reference_names() == frozenset(NAMES)
    assert [item.id for item in source] == ["1"]
    assert len(read) == 1


NUMBERED = {"1": ["dog", " cat ", "dog"], "2": [], "10": ["dog", " cat ", "dog"], "007": ["cup"]}


def read(path: Path, text: str | bytes) -> dict[str, Objects]:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_objects(path)


@pytest.mark.parametrize("separators", [(",", ":"), (" , ", " : "), (",\n", ":\n")])
def test_a_file_by_number_has_the_objects_of_a_mapping(
    tmp_path: Path, separators: tuple[str, str]
) -> None:
    text = json.dumps(NUMBERED, separators=separators)
    assert read(tmp_path / "r.json", text) == read_objects(NUMBERED)
    assert list(read(tmp_path / "r.json", text)) == list(NUMBERED)


def test_equal_lists_are_one_tuple(tmp_path: Path) -> None:
    known = read(tmp_path / "r.json", '{"1": ["dog"], "2": [ "dog" ], "3": ["dog", "dog"]}')
    assert known["1"] is known["2"]
    assert known["1"] is known["3"]


@pytest.mark.parametrize(
    "text",
    [
        '{"1": ["a"], "1": ["a"]}',
        '{"1": ["a"], "\\u0031": ["a"]}',
        '{"1": ["a"]}\n{"1": ["b"]}',
    ],
)
def test_an_image_that_stands_twice_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ArchiveError, match="duplicate"):
        read(tmp_path / "r.json", text)


@pytest.mark.parametrize(
    "text",
    ['{"1": ["a"]}\n{"2": ["b\\"\\ud83d"]}', '{"1": ["a"], "COCO_val2014_000000000002.jpg": []}'],
)
def test_other_files_are_read_in_the_plain_way(tmp_path: Path, text: str) -> None:
    assert list(read(tmp_path / "r.json", text)) == ["1", "2"]


@pytest.mark.parametrize("text", ['{"1": [1]}', '{"1": ["a"], "2": {}}', '{"1": [["a"]]}'])
def test_what_is_no_list_of_names_is_told_with_its_place(tmp_path: Path, text: str) -> None:
    with pytest.raises(ArchiveError, match=r"image '1'|image ids 2"):
        read(tmp_path / "r.json", text)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="not UTF-8 text"):
        read(tmp_path / "r.json", b'{"1": ["\xff"]}')
