"""Responses and references in every layout that other tools write, and keys to report groups by."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message

from hallujudge.sdk import Client
from hallujudge.sdk.archives import InputOptions, read_items
from hallujudge.sdk.cli.output import in_flags
from hallujudge.sdk.errors import ArchiveError, InvalidInputError

ROWS: list[dict[str, Any]] = [
    {"image_id": 7, "caption": "a dog"},
    {"image_id": "12", "caption": "zwei Hunde, ü"},
]
WANTED = [("7", "a dog"), ("12", "zwei Hunde, ü")]
LAYOUTS = {
    "lines": "\n".join(json.dumps(row) for row in ROWS),
    "lines with windows ends": "\r\n".join(json.dumps(row) for row in ROWS) + "\r\n",
    "lines with blank lines": "\n\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS),
    "byte order mark": "\ufeff" + json.dumps(ROWS[0]) + "\n" + json.dumps(ROWS[1]),
    "list": json.dumps(ROWS),
    "pretty list": json.dumps(ROWS, indent=4),
    "run of pretty objects": "\n".join(json.dumps(row, indent=4) for row in ROWS),
    "run without white space": "".join(json.dumps(row) for row in ROWS),
    "imgToEval": json.dumps(
        {"overall": {"Bleu_1": 0.1}, "imgToEval": {str(r["image_id"]): r for r in ROWS}}
    ),
    "imgToEval without ids inside": json.dumps(
        {"imgToEval": {str(r["image_id"]): {"caption": r["caption"]} for r in ROWS}}
    ),
    "sentences": json.dumps({"sentences": ROWS, "overall_metrics": {"CHAIRs": 0.5}}),
    "results beside settings": json.dumps({"model": "m", "results": ROWS, "seed": 1}),
    "texts by id beside settings": json.dumps(
        {"model": "m", "outputs": {str(r["image_id"]): r["caption"] for r in ROWS}}
    ),
    "texts by id under data": json.dumps(
        {"data": {str(r["image_id"]): r["caption"] for r in ROWS}}
    ),
    "LLaVA answers": "\n".join(
        json.dumps({"question_id": r["image_id"], "prompt": "p", "text": r["caption"]})
        for r in ROWS
    ),
    "id to text": json.dumps({str(r["image_id"]): r["caption"] for r in ROWS}),
    "id to text, a line for each": "\n".join(
        json.dumps({str(r["image_id"]): r["caption"]}) for r in ROWS
    ),
    "id to text, in a list": json.dumps([{str(r["image_id"]): r["caption"]} for r in ROWS]),
}


def read(text: str, folder: Path, **options: object) -> list[tuple[str, str | None]]:
    path = folder / "archive.json"
    path.write_text(text, encoding="utf-8", newline="")
    source = read_items(
        "chair",
        path,
        {"7": ["dog"], "12": []},
        options=InputOptions(**options),  # type: ignore[arg-type]  # built by the cases
    )
    items = list(source)
    assert len(items) == len(source)
    return [(item.id, item.response) for item in items]  # type: ignore[attr-defined]  # chair


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str, tmp_path: Path) -> None:
    assert read(LAYOUTS[layout], tmp_path) == WANTED


@pytest.mark.parametrize("part", ["results", "captions", "questions", "samples_of_mine"])
def test_a_record_keeps_its_parts(part: str, tmp_path: Path) -> None:
    parts = [{"id": 1, "caption": "a part"}]
    rows = [{"image": 7, "caption": "a dog", part: parts}, {"image": 12, "caption": "", part: []}]
    lines = "\n".join(map(json.dumps, rows))
    assert read(lines, tmp_path) == [("7", "a dog"), ("12", "")]


def test_a_list_of_records_under_another_name_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.archives.record_values:mine-is-list-of-records-give-file"),
    ):
        read(json.dumps({"model": "m", "mine": ROWS}), tmp_path)


def test_the_texts_of_an_object_are_named(tmp_path: Path) -> None:
    rows = [{"image_id": 7, "response": {"role": "assistant", "words": "a dog", "tokens": 3}}]
    with pytest.raises(ArchiveError) as refused:
        read(json.dumps(rows), tmp_path)
    assert str(refused.value).endswith(
        expected_message("sdk.archives.record_values:response-is-an-object-not-text-name")
    )
    options = {"key_map": {"response": "response.words"}}
    assert read(json.dumps(rows), tmp_path, **options) == WANTED[:1]


def test_keys_can_be_named(tmp_path: Path) -> None:
    text = json.dumps([{"picture": 7, "out": "a dog", "caption": "not this"}])
    assert read(text, tmp_path, id_key="picture", text_key="out") == WANTED[:1]


@pytest.mark.parametrize("text", ["12\n7\n", "12.jpg\r\n7", "\ufeff12\n7\n\n"])
def test_an_id_map_may_have_an_id_in_each_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "map.txt").write_bytes(text.encode())
    rows = [{"question_id": 1, "text": "a dog"}]
    assert read(json.dumps(rows), tmp_path, own={"id_map": tmp_path / "map.txt"}) == WANTED[:1]


def test_an_object_is_no_id_map(tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text('{"1": 7}')
    rows = [{"question_id": 1, "text": "A cat.", "objects": ["cat"]}]
    said = expected_message("sdk.archives.chair:must-be-a-list")
    with pytest.raises(ArchiveError, match=said):
        read(json.dumps(rows), tmp_path, own={"id_map": tmp_path / "map.json"})


@pytest.mark.parametrize("key", ["question_id", None])
def test_id_maps(tmp_path: Path, key: str | None) -> None:
    (tmp_path / "map.json").write_text("[12, 7]")
    rows = [{"question_id": 1, "text": "a dog"}, {"question_id": 0, "text": "zwei Hunde, ü"}]
    if key is None:
        rows = [{"text": row["text"]} for row in reversed(rows)]
    found = read(json.dumps(rows), tmp_path, own={"id_map": tmp_path / "map.json"})
    assert sorted(found) == sorted(WANTED)


def test_mappings_and_records_need_no_file() -> None:
    source = read_items("chair", {"1": "a dog", "2": None}, {"1": ["dog"], "2": ["cat"]})
    assert [(item.id, item.response) for item in source] == [("1", "a dog"), ("2", None)]  # type: ignore[attr-defined]  # chair
    rows = ({"image_id": n, "caption": "c", "objects": ["dog"], "model": "m"} for n in (1, 2))
    source = read_items("chair", rows, None, group_by=("model",))
    assert [item.fields for item in source] == [{"model": "m"}, {"model": "m"}]
    assert [item.reference_objects for item in source] == [("dog",), ("dog",)]  # type: ignore[attr-defined]  # chair


def test_a_line_without_an_id_among_ids_and_texts_is_named(tmp_path: Path) -> None:
    for line, problem in (('{"caption": "a"}', "the image id is missing"), ("7", "found a number")):
        path = tmp_path / "archive.jsonl"
        path.write_text(f'{{"7": "a dog"}}\n{{"8": null}}\n{line}\n')
        with pytest.raises(ArchiveError, match=rf"archive\.jsonl line 3: .*{problem}"):
            read_items("chair", path, {"7": ["dog"], "8": []})


def test_references_as_records(tmp_path: Path) -> None:
    path = tmp_path / "references.jsonl"
    path.write_text('{"image_id": 1, "objects": ["dog", "dog"]}\n{"image_id": 2, "objects": []}\n')
    source = read_items("chair", {"1": "a", "2": "b"}, path)
    assert [item.reference_objects for item in source] == [("dog",), ()]  # type: ignore[attr-defined]  # chair


def test_text_that_utf8_cannot_hold_is_replaced() -> None:
    source = read_items("chair", {"1": "a \ud800 dog"}, {"1": ["dog"]})
    assert next(iter(source)).response == "a \ufffd dog"  # type: ignore[attr-defined]  # chair


GROUPED: list[dict[str, Any]] = [
    {"image_id": 1, "caption": "A dog.", "model": "a", "doc": {"category": "indoor"}},
    {"image_id": 2, "caption": "A cat.", "model": "b", "doc": {"category": "outdoor"}},
    {"image_id": 3, "caption": "A cat.", "model": "a", "doc": {}},
]
GROUPED_OBJECTS = {"1": ["dog"], "2": ["dog"], "3": ["cat"]}


def test_a_key_that_no_item_has_is_refused_with_the_keys_that_exist() -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_items("chair", GROUPED, GROUPED_OBJECTS, group_by=("modle",))
    assert str(caught.value) == (
        expected_message("sdk.archives.readers:no-item-has-the-key-modle-to")
    )


def test_a_path_leads_into_objects_and_gaps_are_a_group_with_a_note() -> None:
    items = read_items("chair", GROUPED, GROUPED_OBJECTS, group_by=("doc.category",))
    assert items.notes == (
        expected_message("sdk.archives.readers:of-items-have-no-doc-category-they"),
    )
    with Client.embedded() as client:
        report = client.score(
            "chair", responses=GROUPED, references=GROUPED_OBJECTS, group_by=["doc.category"]
        )
    groups = report.groups["doc.category"]
    assert list(groups) == ["", "indoor", "outdoor"]
    assert [scores["chair_i"].value for scores in groups.values()] == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("value", [{"category": "x"}, [{"category": "x"}], [["x"]]])
def test_an_object_is_not_a_group(value: object) -> None:
    rows = [{**row, "doc": value} for row in GROUPED]
    with pytest.raises(
        InvalidInputError,
        match=expected_message("sdk.archives.record_fields:the-key-doc-to-report-groups-by"),
    ):
        read_items("chair", rows, GROUPED_OBJECTS, group_by=("doc",))


def test_keys_of_the_metric_itself_may_be_absent() -> None:
    row = {"question_id": 1, "answer": "yes", "label": "yes"}
    with Client.embedded() as client:
        assert client.score("pope", responses=[row]).groups == {}


def test_a_text_in_place_of_a_list_is_named() -> None:
    with (
        Client.embedded() as client,
        pytest.raises(
            InvalidInputError, match=expected_message("sdk.runs.score_run:group-by-is-the-tex")
        ),
    ):
        client.score("chair", responses=GROUPED, references=GROUPED_OBJECTS, group_by="model")


def test_errors_name_arguments_in_python_and_options_on_the_command_line() -> None:
    with pytest.raises(ArchiveError) as caught:
        read_items("chair", [{"id": 1, "words": "A dog."}], GROUPED_OBJECTS)
    assert str(caught.value).endswith(
        expected_message("sdk.archives.record_values:name-it-with-inputoptions-text-key")
    )
    assert in_flags(str(caught.value)).endswith(
        expected_message("sdk.archives.record_values:name-it-with-text-key")
    )


@pytest.mark.parametrize(
    ("message", "flags"),
    [
        ("pass InputOptions(allow_unknown=True) to", "pass --allow-unknown to"),
        ("say so with InputOptions(join='order')", "say so with --join order"),
        ("(InputOptions(join='text'));", "(--join text);"),
        ("see InputOptions(own=dict(human_keys=…))", "see --human-key"),
        ("with InputOptions(own=dict(claims_only=True))", "with --claims"),
        ("give a file with references=…", "give a file with --references"),
    ],
)
def test_every_form_of_an_argument_has_an_option(message: str, flags: str) -> None:
    assert in_flags(message) == flags


FAILED = [{"error": {"code": 500, "message": "x"}}, float("nan"), "nan"]


@pytest.mark.parametrize("value", FAILED, ids=["error object", "NaN", "text"])
def test_a_failed_call_is_unscored(value: object) -> None:
    archives = {
        "chair": ([{"image_id": 1, "caption": value}], {"1": ["dog"]}),
        "pope": ([{"question_id": 1, "prediction": value, "answer": "Yes", "question": "q"}], None),
        "mementos": (
            [{"image": "a", "description": value}],
            [{"image": "a", "description": "Run."}],
        ),
    }
    with Client.embedded() as client:
        for metric, (responses, references) in archives.items():
            report = client.score(metric, responses=responses, references=references)
            assert report.coverage.reasons == {"RESPONSE_FAILED": 1}, metric


OWN_LABELS: dict[str, list[dict[str, Any]]] = {
    "pope": [{"question_id": 1, "question": "Is it a dog?", "answer": "yes"}],
    "amber": [{"id": 1, "type": "discriminative-hallucination", "truth": "no", "answer": "No"}],
    "infact": [{"question_id": 1, "operator": "base", "video": "v", "question": "q", "label": "A"}],
    "vidhalluc-bqa": [{"id": "1", "text": [{"q": "Is it running?", "a": {"c": "Yes", "d": "No"}}]}],
    "mementos": [{"image_name": "1.png", "gt_description": "A dog runs."}],
    "open-objects": [{"image_id": 1, "caption": "A dog runs."}],
}
OWN_LABELS["infact"][0]["answer"] = "A"


@pytest.mark.parametrize("metric", list(OWN_LABELS))
def test_references_that_are_scored_as_responses_are_noted(metric: str, tmp_path: Path) -> None:
    path, copy, other = (tmp_path / f"{name}.json" for name in ("truth", "copy", "answers"))
    content = {row["id"]: row["text"] for row in OWN_LABELS[metric] if "text" in row}
    for file in (path, copy):
        file.write_text(json.dumps(content or OWN_LABELS[metric]))
    # A model that is right everywhere, in a file that a script of its own wrote.
    other.write_text(json.dumps(content or OWN_LABELS[metric], indent=1))
    code = "sdk.archives.joins:the-references-are-given-as-responses"
    given = ((path, path), (str(path), [path]), (copy, path))
    for responses, references in given:
        message = expected_message(code, responses)
        notes = read_items(metric, responses, references).notes
        assert any(re.match(message, note) for note in notes), responses
    perfect = read_items(metric, other, path)
    assert not any("given as responses too" in note for note in perfect.notes)
    assert len(perfect) == 1


def test_coco_captions_of_people_that_are_scored_as_responses_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "captions_val2014.json"
    rows = [{"image_id": 1, "id": 5, "caption": "A dog."}]
    path.write_text(json.dumps({"images": [{"id": 1}], "annotations": rows}))
    message = expected_message("sdk.archives.joins:the-references-are-given-as-responses", path)
    assert any(re.match(message, note) for note in read_items("chair", path, path).notes)


def test_a_file_may_have_both_responses_and_references(tmp_path: Path) -> None:
    path = tmp_path / "both.json"
    rows = [{"question_id": 1, "question": "Is it a dog?", "label": "yes", "answer": "Yes"}]
    path.write_text(json.dumps(rows))
    options = InputOptions(text_key="answer")
    assert len(read_items("pope", path, path, options=options)) == 1
    path.write_text(json.dumps([*rows, {**rows[0], "question_id": 2, "label": "no"}]))
    assert len(read_items("pope", path, path)) == 2


@pytest.mark.parametrize("key", ["question_id", "text"])
def test_numbers_and_values_that_python_can_not_write_are_a_sentence(key: str) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    record = {"question_id": 1, "text": "yes", "label": "yes"}
    for value, said in ((10**5000, "a number has too many digits"), (deep, "nested too deeply")):
        with pytest.raises(ArchiveError, match=said):
            read_items("pope", [{**record, key: value}], None)
