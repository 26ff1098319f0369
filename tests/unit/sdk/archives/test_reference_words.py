"""Reference objects that the synonym graph does not know."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.running import here

from hallujudge.sdk import Client
from hallujudge.sdk.archives import chair as captions
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.archives.chair_references import Objects, read_objects
from hallujudge.sdk.archives.inputs import CheckedArchive, References
from hallujudge.sdk.archives.json_files import Mark, Marks
from hallujudge.sdk.errors import ArchiveError

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
    assert notes[0].startswith("6 of 8 different reference objects are not in the graph coco: ")


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
    monkeypatch.setattr(captions, "read_objects", counted)
    checked = CheckedArchive(count=1, marks=Marks(marks=[Mark()]))
    given = (tmp_path / "c.jsonl", tmp_path / "r.json")
    source = read_items("chair", *given, checked=checked)
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
