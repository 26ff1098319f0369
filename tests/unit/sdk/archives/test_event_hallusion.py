"""EventHallusion's archives: the released layout, records, and what is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.event_hallusion_samples import VIDEOS
from support.messages import expected_message

from hallujudge.metrics.event_hallusion import EventHallusionItem
from hallujudge.sdk import Client, read_items
from hallujudge.sdk.errors import ArchiveError

VIDEO: dict[str, Any] = {
    "id": "a",
    "split": "Entire",
    "qa": [{"question": "Is it?", "answer": "No", "prediction": "No."}],
}


def items(given: Any, group_by: tuple[str, ...] = ()) -> list[EventHallusionItem]:
    return list(read_items("event-hallusion", given, None, group_by=group_by))  # type: ignore[arg-type]  # the family's items


def test_a_file_and_its_content_give_equal_items(tmp_path: Path) -> None:
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps(VIDEOS))
    found = items(path, ("category",))
    assert found == items(VIDEOS, ("category",))
    first = found[0]
    assert (first.id, first.split, first.fields) == ("entire_0", "entire", {"category": "daily"})
    assert first.response == "A man walks a dog."
    assert first.judgement == "**Yes**. It is."
    assert [q.label for q in first.questions] == ["no", "no"]
    assert found[4].judgement is None


def test_splits_may_hold_lists_of_videos(tmp_path: Path) -> None:
    listed = {
        split: [{"id": key, **video} for key, video in videos.items()]
        for split, videos in VIDEOS.items()
    }
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps(listed))
    assert items(listed) == items(VIDEOS)
    assert items(path) == items(VIDEOS)


def test_the_event_is_in_the_released_judges_prompt() -> None:
    about = {"caption": "A dog runs.", "unexpected": "It falls."}
    (entire,) = items([{**VIDEO, "event_info": about}])
    (other,) = items([{**VIDEO, "split": "interleave", "event_info": about}])
    (own,) = items([{**VIDEO, "event": "A cat."}])
    assert [each.event for each in (entire, other, own)] == ["A dog runs.", "It falls.", "A cat."]


def test_records_name_their_split_and_may_share_a_video() -> None:
    (item,) = items([{**VIDEO, "video": "v1"}])
    assert (item.split, item.group_id, item.questions[0].label) == ("entire", "v1", "no")


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([VIDEO, VIDEO], "duplicate videos: a"),
        ([{**VIDEO, "split": "other"}], "record 0: the split is 'other'"),
        ([{**VIDEO, "qa": "Is it?"}], "record 0: 'qa' must be a list"),
        ([{**VIDEO, "qa": [{"answer": "maybe"}]}], r"neither yes nor no: a \('maybe'\)"),
        (
            [{**VIDEO, "qa": [{"answer": "No", "prediction": 5}]}],
            "question 1: 'prediction' is a number",
        ),
        ([{"split": "entire"}], "record 0: null is not an id"),
        ([], "give a record for each video"),
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
