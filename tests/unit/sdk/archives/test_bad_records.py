"""Bad records: the error lists the first ten and their number, and they may be left unscored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message

from hallujudge.metrics import ChairItem
from hallujudge.metrics.answers.closed_questions import AnswersItem
from hallujudge.sdk import Client
from hallujudge.sdk.archives import InputOptions, read_items
from hallujudge.sdk.errors import ArchiveError

SKIP = InputOptions(skip_bad=True)
CUT = '{"image_id": 0, "caption": "A c'


def captions(count: int) -> list[str]:
    rows = ({"image_id": i, "caption": "A cat.", "objects": ["cat"]} for i in range(count))
    return list(map(json.dumps, rows))


def written(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines))
    return path


def error_of(metric: str, *archives: Any, **more: Any) -> str:
    with pytest.raises(ArchiveError) as caught:
        read_items(metric, *archives, **more)
    return str(caught.value)


def test_ten_of_thirty_are_listed_with_their_number(tmp_path: Path) -> None:
    lines = captions(60)
    lines[::2] = [CUT, json.dumps({"image_id": 2, "caption": 5, "objects": []})] * 15
    path = written(tmp_path / "a.jsonl", lines)
    said = error_of("chair", path, None)
    assert said.startswith(expected_message("sdk.archives.bad_records:thirty-records"))
    assert said.count(f"{path} line ") == 10
    assert expected_message("sdk.archives.bad_records:and-twenty-more") in said


def test_one_bad_record_keeps_its_own_message(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", [*captions(3), CUT])
    said = error_of("chair", path, None)
    assert said.startswith(f"{path} line 4: the file ends")
    assert expected_message("sdk.archives.bad_records:or-leave-them") in said


def test_what_is_wrong_with_every_record_is_wrong_with_the_archive(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", [json.dumps({"image_id": 1, "caption": 5, "objects": []})])
    said = error_of("chair", path, None)
    assert expected_message("sdk.archives.bad_records:or-leave-them") not in said


def test_an_id_that_no_record_has_is_named_where_labels_may_be_the_responses() -> None:
    record = {"question_id": 0, "answer": "yes", "label": "yes", "remark": "random"}
    said = error_of("pope", [record], None, options=InputOptions(id_key="id"))
    assert said.startswith("record 0: the id is missing: tried id")


def test_bad_objects_of_captions_with_groups(tmp_path: Path) -> None:
    bad = json.dumps({"image_id": 9, "caption": "A cat.", "objects": 5, "place": "home"})
    lines = [line.replace("}", ', "place": "home"}') for line in captions(3)]
    path = written(tmp_path / "a.jsonl", [*lines, bad])
    assert error_of("chair", path, None, group_by=("place",)).startswith(f"{path} line 4: ")
    source = read_items("chair", path, None, options=SKIP, group_by=("place",))
    assert [item.id for item in source] == ["0", "1", "2", f"{path} line 4"]


def test_a_record_with_an_id_keeps_it_and_its_references(tmp_path: Path) -> None:
    bad = json.dumps({"image_id": 7, "caption": ["A", "cat"], "objects": ["cat"]})
    path = written(tmp_path / "a.jsonl", [*captions(2), bad, CUT])
    items = read_items("chair", path, None, options=SKIP)
    assert list(items)[2:] == [
        ChairItem(id="7", group_id="7", response=None, reference_objects=("cat",)),
        ChairItem(
            id=f"{path} line 4",
            group_id=f"{path} line 4",
            response=None,
            reference_objects=None,
        ),
    ]
    [note] = items.notes
    assert note.startswith(expected_message("sdk.archives.bad_records:bad-records-are-unscored"))


def test_skipped_records_are_unscored_even_if_empty_ones_count(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", [*captions(2), CUT])
    with Client.embedded() as client:
        report = client.score("chair", responses=path, inputs=SKIP, options={"count_empty": "true"})
    assert dict(report.coverage.reasons) == {"RESPONSE_MISSING": 1}
    assert report.coverage.items == 3


@pytest.mark.parametrize("bad", [{"judge_texts": ["yes"]}, {"judge_texts": False}, {"objs": []}])
def test_a_caption_whose_objects_cannot_be_read_is_unscored(
    tmp_path: Path, bad: dict[str, object]
) -> None:
    said: dict[str, object] = {
        "generated_objs": ["dog", "cat"],
        "judge_texts": ["yes", "no"],
        "gt_caption": "A dog.",
    }
    odd: dict[str, object] = (
        {**said, **bad} if "objs" not in bad else {"gt_caption": "A dog.", **bad}
    )
    records = [said, odd, {**said, "generated_objs": [], "judge_texts": []}]
    lines = [json.dumps({"id": name, **each}) for name, each in zip("abc", records, strict=True)]
    path = written(tmp_path / "a.jsonl", lines)
    with Client.embedded() as client:
        report = client.score("openchair", responses=path, inputs=SKIP)
    assert dict(report.coverage.reasons) == {"RESPONSE_MISSING": 1}
    assert (report.coverage.scored, report["openchair"].value) == (2, 0.5)


def test_questions_of_bad_answers_are_unanswered_and_others_are_an_error(tmp_path: Path) -> None:
    asked = [
        {"question_id": i, "image": f"{i}.jpg", "text": "Is there a cat?", "label": "yes"}
        for i in range(4)
    ]
    answers = [json.dumps({"question_id": i, "text": "yes"}) for i in (0, 1)]
    lines = [*answers, '{"question_id": 2', '{"question_id": {}, "text": "yes"}']
    path = written(tmp_path / "a.jsonl", lines)
    items = list(read_items("pope", path, asked, options=SKIP))
    assert [item.id for item in items] == ["0", "1", "2", "3"]
    assert [response_of(item) for item in items] == ["yes", "yes", None, None]
    lines = lines[1:]
    said = error_of("pope", written(path, lines), asked, options=SKIP)
    assert expected_message("sdk.archives.bad_records:three-questions") in said


def response_of(item: Any) -> str | None:
    assert isinstance(item, AnswersItem)
    return item.answers[0].response


def test_answers_after_a_bad_one_keep_their_place(tmp_path: Path) -> None:
    asked = [
        {"image": f"{i}.jpg", "text": f"Is there a cat {i}?", "label": "yes"} for i in range(3)
    ]
    answers = [json.dumps({"answer": text}) for text in ("yes", "no", "no")]
    answers[1] = '{"answer": "n'
    path = written(tmp_path / "a.jsonl", answers)
    options = InputOptions(skip_bad=True, join="order")
    found = [response_of(item) for item in read_items("pope", path, asked, options=options)]
    assert found == ["yes", "no", None]


def test_rows_of_a_table_with_other_columns_are_listed_together(tmp_path: Path) -> None:
    rows = ["image_id,caption,objects", '1,A cat.,"[""cat""]"', "3", "4"]
    path = written(tmp_path / "a.csv", rows)
    said = error_of("chair", path, None)
    assert expected_message("sdk.archives.bad_records:two-rows") in said
    assert len(read_items("chair", path, None, options=SKIP)) == 3


def test_labels_that_are_not_valid_are_unscored(tmp_path: Path) -> None:
    rows = [{"question_id": i, "answer": "yes", "label": "yes"} for i in range(3)]
    rows[1]["label"] = "maybe"
    assert expected_message("sdk.archives.bad_records:or-leave-them") in error_of(
        "pope", rows, None
    )
    with Client.embedded() as client:
        report = client.score("pope", responses=rows, inputs=SKIP)
    assert dict(report.coverage.reasons) == {"REFERENCE_MISSING": 1}


def test_bad_references_are_never_skipped(tmp_path: Path) -> None:
    path = written(tmp_path / "objects.jsonl", ['{"image_id": 1, "objects": ["cat"]}', CUT])
    rows = [{"image_id": 1, "caption": "A cat."}]
    assert f"{path} line 2" in error_of("chair", rows, path, options=SKIP)


def sample(number: int, **more: Any) -> dict[str, Any]:
    output = {"model": "m", "completion": "A cat."}
    return {"id": number, "epoch": 1, "input": "?", "target": "", "output": output, **more}


@pytest.mark.parametrize("without", [0, 1])
def test_a_sample_of_inspect_without_metadata_is_unscored(tmp_path: Path, without: int) -> None:
    """The live scorer gives such a sample the reason REFERENCE_MISSING."""
    samples = [sample(n, metadata={"objects": ["cat"]}) for n in range(3)]
    del samples[without]["metadata"]
    log = {"version": 2, "status": "success", "eval": {}, "samples": samples}
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    with Client.embedded() as client:
        report = client.score("chair", responses=path)
    assert dict(report.coverage.reasons) == {"REFERENCE_MISSING": 1}
    assert report.coverage.scored == 2


def test_a_sample_of_inspect_without_a_target_is_unscored(tmp_path: Path) -> None:
    samples = [sample(n, target="yes" if n else "") for n in range(3)]
    samples.reverse()
    log = {"version": 2, "status": "success", "eval": {}, "samples": samples}
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    with Client.embedded() as client:
        report = client.score("pope", responses=path)
    assert dict(report.coverage.reasons) == {"REFERENCE_MISSING": 1}
