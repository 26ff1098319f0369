"""EventHallusion's archives: the released layout, records, and what is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.event_hallusion_samples import VIDEOS
from support.messages import expected_message

from hallujudge.metrics import AnswersItem
from hallujudge.metrics.answers.closed_questions import Answer
from hallujudge.metrics.event_hallusion import DESCRIPTION
from hallujudge.sdk import Client, InputOptions, read_items
from hallujudge.sdk.errors import ArchiveError

VIDEO: dict[str, Any] = {
    "id": "a",
    "split": "Entire",
    "qa": [{"question": "Is it?", "answer": "No", "prediction": "No."}],
}


def items(given: Any, group_by: tuple[str, ...] = ()) -> list[AnswersItem]:
    return list(read_items("event-hallusion", given, None, group_by=group_by))  # type: ignore[arg-type]  # the family's items


def described(item: AnswersItem) -> Answer:
    (found,) = (each for each in item.answers if each.name == DESCRIPTION)
    return found


def test_a_file_and_its_content_give_equal_items(tmp_path: Path) -> None:
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps(VIDEOS))
    found = items(path, ("category",))
    assert found == items(VIDEOS, ("category",))
    first = found[0]
    assert (first.id, first.fields) == ("entire_0", {"split": "entire", "category": "daily"})
    assert described(first).response == "A man walks a dog."
    assert described(first).fields["judgement"] == "**Yes**. It is."
    assert [each.label for each in first.answers] == ["no", "no", "yes"]
    assert "judgement" not in described(found[4]).fields


def test_splits_may_hold_lists_of_videos(tmp_path: Path) -> None:
    listed = {
        split: [{"id": key, **video} for key, video in videos.items()]
        for split, videos in VIDEOS.items()
    }
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps(listed))
    assert items(listed) == items(VIDEOS)
    assert items(path) == items(VIDEOS)


def test_lines_may_hold_a_split_each(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    path.write_text("\n".join(json.dumps({split: held}) for split, held in VIDEOS.items()))
    assert items(path) == items(VIDEOS)


@pytest.mark.parametrize("named", [".json", ".jsonl"])
def test_videos_by_id_may_name_their_split(tmp_path: Path, named: str) -> None:
    held = {"v1": {**VIDEO, "id": "v1"}, "v2": {"split": "interleave", "qa": VIDEO["qa"]}}
    path = tmp_path / f"predictions{named}"
    lines = [held] if named == ".json" else [{key: video} for key, video in held.items()]
    path.write_text("\n".join(map(json.dumps, lines)))
    assert [item.id for item in items(path)] == ["v1", "v2"]
    assert items(path) == items(held)


def test_the_event_is_in_the_released_judges_prompt() -> None:
    about = {"caption": "A dog runs.", "unexpected": "It falls."}
    video = {**VIDEO, "desc": "A dog runs."}
    (entire,) = items([{**video, "event_info": about}])
    (other,) = items([{**video, "split": "interleave", "event_info": about}])
    (own,) = items([{**video, "event": "A cat."}])
    events = [described(each).fields["reference"] for each in (entire, other, own)]
    assert events == ["A dog runs.", "It falls.", "A cat."]


def test_a_table_holds_questions_and_events_as_text() -> None:
    cells = {"qa": json.dumps(VIDEO["qa"]), "event_info": '{"caption": "A dog runs."}'}
    video = {**VIDEO, "desc": "A dog."}
    [item] = items([{**video, **cells}])
    assert [item] == items([{**video, "event_info": {"caption": "A dog runs."}}])
    assert described(item).fields["reference"] == "A dog runs."


def test_videos_may_lack_questions_and_questions_may_have_rows_of_their_own() -> None:
    described = {"id": "a", "split": "entire", "desc": "A dog runs.", "judgement": "Yes."}
    assert [each.name for each in items([described])[0].answers] == [DESCRIPTION]
    row = {"id": "a", "split": "entire", "question": "Is it?", "answer": "No", "response": "No."}
    [item] = items([row, {**row, "question": "Does it?"}])
    assert [(each.question, each.response) for each in item.answers] == [
        ("Is it?", "No."),
        ("Does it?", "No."),
    ]


def test_records_name_their_split_and_may_share_a_video() -> None:
    (item,) = items([{**VIDEO, "video": "v1"}])
    assert (item.fields["split"], item.group_id, item.answers[0].label) == ("entire", "v1", "no")


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([VIDEO, VIDEO], r"answered more than once: a \(1\)"),
        ([{**VIDEO, "split": "other"}], r'no set that is known: record 0 \(split "other"\)'),
        ([{**VIDEO, "qa": "Is it?"}], "record 0: 'qa' must be a list"),
        ([VIDEO, {**VIDEO, "id": "b", "qa": "Is it?"}], "record 1: 'qa' must be a list"),
        (
            [{**VIDEO, "qa": [{"answer": "maybe", "prediction": "No."}]}],
            r'neither yes nor no: a \(1: "maybe"\)',
        ),
        (
            [{**VIDEO, "qa": [{"answer": "No", "prediction": 5}]}],
            "record 0: 'prediction' is a number",
        ),
        ([{"split": "entire", "qa": []}], "no key for the id: tried id; found"),
        ([], "has no videos; give some"),
    ],
)
def test_what_is_wrong_is_named(rows: list[dict[str, Any]], named: str) -> None:
    with pytest.raises(ArchiveError, match=named):
        items(rows)


def test_references_are_refused() -> None:
    with pytest.raises(
        ArchiveError, match=expected_message("sdk.archives.answers:leave-the-references-out")
    ):
        read_items("event-hallusion", [VIDEO], {"a": "b"})


def test_failed_answers_and_judgements_are_unscored_in_corrected() -> None:
    failed = {**VIDEO, "qa": [{"answer": "No", "prediction": "No response"}], "judgement": ""}
    with Client.embedded() as client:
        options = {"failure_texts": "No response"}
        published, corrected = (
            client.score("event-hallusion", responses=[failed], variant=variant, options=options)
            for variant in ("published", "corrected")
        )
    assert published.scores["question_accuracy"].value == 1, "the script parses it as no"
    assert published.scores["description_accuracy"].value == 0
    assert corrected.scores["question_accuracy"].value is None
    assert corrected.coverage.reasons == {"ANSWER_UNPARSED": 1}
    assert corrected.scores["description_unparsed_rate"].value == 1


def test_descriptions_without_a_judgement_are_noted() -> None:
    (note,) = read_items("event-hallusion", VIDEOS, None).notes
    assert note.startswith(
        expected_message("sdk.archives.event_hallusion:of-descriptions-have-no-judgement")
    )


def test_bounds_count_what_was_left_out_once() -> None:
    said = ("No.", "Perhaps", "Perhaps")
    rows = [
        {"split": "entire", "id": "a", "qa": [{"answer": "No", "prediction": t} for t in said]},
        {"split": "entire", "id": "b", "qa": [{"answer": "No", "prediction": "Perhaps"}]},
    ]
    with Client.embedded() as client:
        report = client.score("event-hallusion", responses=rows, variant="corrected")
    bound = report.coverage.bounds["question_accuracy"]
    # One right answer, two left out of its video, and an unscored video with as many questions.
    assert (bound.worst, bound.best) == (1 / 6, 6 / 6)


def test_a_description_without_a_verdict_is_not_one_that_a_judge_failed_on() -> None:
    rows = [
        {**VIDEO, "id": str(n), "desc": "A dog.", "judgement": said}
        for n, said in enumerate((None, float("nan"), "", "Yes."))
    ]
    judgements = [described(item).fields.get("judgement") for item in items(rows)]
    assert judgements == [None, None, "", "Yes."]
    assert described(items([{**VIDEO, "desc": None, "judgement": None}])[0]).response is None


@pytest.mark.parametrize("key", ["desc", "judgement"])
@pytest.mark.parametrize("value", [7, True, {"x": 1}])
def test_what_is_said_of_a_video_is_a_text(key: str, value: object) -> None:
    said = {**VIDEO, "desc": "A dog.", "judgement": "Yes.", key: value}
    with pytest.raises(ArchiveError, match=f"'{key}' must be a text; found"):
        items([said])
    answer = described(items([{**said, key: ["No."]}])[0])
    assert "No." in (answer.response, answer.fields["judgement"])


def test_questions_of_a_video_may_have_ids_and_splits_of_their_own() -> None:
    qa = [{**VIDEO["qa"][0], "question": text, "id": text, "split": "?"} for text in "ab"]
    [item] = items([{**VIDEO, "qa": qa}])
    assert (item.id, item.fields["split"], len(item.answers)) == ("a", "entire", 2)


def test_a_note_on_a_skipped_record_is_whole() -> None:
    found = read_items(
        "event-hallusion", [VIDEO, {"a": 1}], None, options=InputOptions(skip_bad=True)
    )
    assert any(note.endswith("no list of answers: tried qa") for note in found.notes)


def test_judgements_without_their_descriptions_are_noted() -> None:
    said = {"id": "a", "split": "entire", "judgement": "Yes."}
    (note,) = read_items("event-hallusion", [said], None).notes
    assert note.startswith("1 of 1 descriptions have no description: tried desc")
