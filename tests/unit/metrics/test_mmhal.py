"""MMHal-Bench: ratings in reviews, types by place, and what unscored answers could change."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from hallujudge.metrics import Report
from hallujudge.metrics.mmhal import BENCHMARK, TYPES
from hallujudge.sdk import Client, InputOptions
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.errors import ArchiveError


def parsed(review: str, variant: str) -> str | None:
    answer = BENCHMARK.trial.answers[0]
    return (
        BENCHMARK.variant(variant).parse(structs.replace(answer, fields={"review": review})).value
    )


@pytest.mark.parametrize(
    ("review", "published", "corrected"),
    [
        ("Rating: 4", "4", "4"),
        ("RATING: 6, very informative", "6", "6"),
        ("Rating: 2/6", "2", "2"),
        ("Rating: 4.", "4", "4"),
        ("- Rating: 5\n- Rating: 5", "5", "5"),
        ("Rating: 10", "1", None),
        ("Rating: 3.5", "3", None),
        ("Overrating: 2", "2", None),
        ("**Rating:** 4", None, "4"),
        ("Rating : 4", None, "4"),
        ("Rating:4", None, "4"),
        ("Rating:  4", None, "4"),
        ("Rating:\r\n4", None, "4"),
        ("Rating: 4\nOn reflection, Rating: 2", None, "2"),
        ("Rating: 2, so no. Rating: 12", None, "2"),
        ("4 out of 6", None, None),
        ("Rating: 7", None, None),
        ("Rating: ٤", None, None),
        ("", None, None),
    ],
)
def test_ratings_are_read_as_the_script_does_and_as_they_are_meant(
    review: str, published: str | None, corrected: str | None
) -> None:
    assert (parsed(review, "published"), parsed(review, "corrected")) == (published, corrected)


def record(number: int, **more: Any) -> dict[str, Any]:
    return {
        "question_type": TYPES[number % 8],
        "image_id": f"image {number}",
        "image_content": ["Cap", "Hydrant"],
        "question": "What color is the cap?",
        "gt_answer": "It is yellow.",
        "model_answer": "Yellow.",
        **more,
    }


def scored(records: list[Any], variant: str = "published", **own: Any) -> Report:
    with Client.embedded() as client:
        return client.score(
            "mmhal", responses=records, variant=variant, inputs=InputOptions(own=own)
        )


def completion(text: str | None) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "choices": [{"message": {"role": "assistant", "content": text}}]}


def test_unreadable_reviews_are_zero_or_unscored_and_missing_ones_are_unscored() -> None:
    given = [completion(text) for text in ("Rating: 6", "no idea", "", None)]
    records = [record(n) for n in range(4)]
    published = scored(records, reviews=given)
    assert published.scores["average_score"].value == 2
    assert published.scores["hallucination_rate"].value == 2 / 3
    assert published.scores["unreadable_rate"].value == 2 / 3
    assert published.coverage.reasons == {"VERDICT_NULL": 1}
    corrected = scored(records, "corrected", reviews=given)
    assert corrected.scores["average_score"].value == 6
    assert corrected.coverage.reasons == {"NO_VERDICT": 2, "VERDICT_NULL": 1}
    bounds = corrected.coverage.bounds["average_score"]
    assert (bounds.best, bounds.worst) == (6, 1.5)


def test_one_failed_review_leaves_its_answer_unscored() -> None:
    given = [completion("Rating: 6"), {"error": {"code": 500, "message": "overloaded"}}]
    report = scored([record(n) for n in range(2)], reviews=given)
    assert report.coverage.reasons == {"VERDICT_NULL": 1}
    assert report.scores["average_score"].value == 6


def test_types_follow_the_place_or_the_record() -> None:
    records = [record(n, review="Rating: 6" if n == 1 else "Rating: 0") for n in (1, 0)]
    published, corrected = (
        scored(records, variant).groups["type"] for variant in ("published", "corrected")
    )
    assert published["attribute"]["average_score"].value == 6
    assert corrected["attribute"]["average_score"].value == 0


def test_records_after_the_last_question_have_no_type_in_published() -> None:
    records = [record(n, review="Rating: 6") for n in range(98)]
    with Client.embedded() as client:
        report = client.score("mmhal", responses=records)
    by_type = report.groups["type"]
    assert sum(by_type[kind]["average_score"].n for kind in TYPES) == 96
    assert report.scores["average_score"].n == 98


@pytest.mark.parametrize("count", [1, 97])
def test_another_number_of_answers_is_scored_and_noted(count: int) -> None:
    source = read_items("mmhal", [record(n, rating=3) for n in range(count)], None)
    assert len(source) == count
    [note] = [note for note in source.notes if "96" in note]
    assert str(count) in note


def test_reviews_belong_to_their_ids_in_any_order() -> None:
    records = [record(n) for n in range(3)]
    ratings = {f"image {n}": f"Rating: {n}" for n in (2, 0, 1)}
    listed = [{"image_id": key, "review": text} for key, text in ratings.items()]
    for given in (ratings, listed):
        source = read_items("mmhal", records, None, options=InputOptions(own={"reviews": given}))
        found = [item.answers[0].fields["review"] for item in source]  # type: ignore[attr-defined]  # answers
        assert found == ["Rating: 0", "Rating: 1", "Rating: 2"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["Rating: 1"], ["1 for 2", "reviews"]),
        (["Rating: 1", {"score": 4}], ["chat completion", "score"]),
        (["Rating: 1", ["Rating: 4"]], ["chat completion", "Rating: 4"]),
        ({"image 0": "Rating: 1", "0": "Rating: 2"}, ["0", "the archive lacks"]),
    ],
    ids=["fewer", "other keys", "a list", "unknown ids"],
)
def test_reviews_that_cannot_be_used_are_refused(given: Any, said: list[str]) -> None:
    options = InputOptions(own={"reviews": given})
    with pytest.raises(ArchiveError) as caught:
        read_items("mmhal", [record(0), record(1)], None, options=options)
    assert [part for part in said if part not in str(caught.value)] == []


def test_a_rating_alone_is_a_review() -> None:
    records = [record(n, rating=value) for n, value in enumerate((6, 3.0, "0"))]
    report = scored(records)
    assert report.scores["average_score"].value == 3
    assert report.scores["informativeness"].value == pytest.approx(1 / 3)


def test_an_empty_review_of_a_record_is_unreadable_and_not_missing() -> None:
    records = [record(0, review=""), record(1, review=None), record(2, review="Rating: 4")]
    published = scored(records)
    assert published.scores["average_score"].value == 2
    assert published.coverage.reasons == {"VERDICT_NULL": 1}


def test_numbers_are_ratings_wherever_they_are() -> None:
    records = [record(0), record(1), record(2)]
    report = scored(records, reviews=[6, 3.0, 0])
    assert report.scores["average_score"].value == 3
    assert scored([record(0, review=5)]).scores["average_score"].value == 5


def test_objects_of_a_table_are_those_of_a_list() -> None:
    listed = scored([record(0, review="Rating: 4")])
    cell = scored([record(0, review="Rating: 4", image_content='["Cap", "Hydrant"]')])
    assert cell.signature == listed.signature, "with the hash of the references"
    assert scored([record(0, review="Rating: 4", image_content="[sic")]).signature != cell.signature


def test_ratings_that_only_corrected_reads_are_noted() -> None:
    """Judges often write the rating in bold, which the released script counts as 0."""
    report = scored([record(n, review=f"**Rating:** {n}") for n in (3, 5)])
    assert report.scores["average_score"].value == 0
    assert "can parse 2 of 2 answers (100.0%) that published can't" in report.notes[1]
    assert "with them average_score is 4.0000, not 0.0000" in report.notes[1]
