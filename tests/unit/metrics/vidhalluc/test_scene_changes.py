"""Where a video's scene changes, as both variants read it."""

from __future__ import annotations

import pytest

from hallujudge.metrics import Answer, AnswersItem
from hallujudge.metrics.vidhalluc import VidhallucSthMetric
from hallujudge.metrics.vidhalluc.scene_changes import places_of, points, with_similarities
from hallujudge.sdk import Client, InputOptions
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.errors import ArchiveError

TRUE = "From a hall to a road to town."


@pytest.mark.parametrize(
    ("text", "published", "corrected"),
    [
        ("Scene change: Yes, Locations: from a hall to a garden.", "yes", "yes"),
        ("Scene change: Yes, a cut, Locations: x", "yes", "yes"),
        ("Scene change: Yes. Locations: x", None, "yes"),
        ("Yes.", None, "yes"),
        ("I see no change, so: no, none", "no", "no"),
        ("**Scene change: No**", None, "no"),
        ("There is a scene change.", None, None),
        ("", None, None),
    ],
)
def test_changes(text: str, published: str | None, corrected: str | None) -> None:
    for variant, wanted in (("published", published), ("corrected", corrected)):
        metric = VidhallucSthMetric(variant=variant)
        assert metric.parse(Answer(response=text, label="yes")).value == wanted


def test_all_but_yes_is_no_only_as_released() -> None:
    unclear = Answer(response="Perhaps.", label="no")
    assert VidhallucSthMetric().parse(unclear).right
    assert not VidhallucSthMetric(variant="corrected").parse(unclear).right


@pytest.mark.parametrize(
    ("text", "published", "corrected"),
    [
        (
            "Yes, Locations: from a hall to St. Ives.",
            [("a hall", "a hall"), ("St", "a road to town")],
            [("a hall", "a hall to a road"), ("St. Ives", "town")],
        ),
        ("Yes, Locations: it goes from a hall to a garden.", [], ["a hall", "a garden"]),
        (
            "Yes; Locations: from a hall to a garden.\nThe light changes.",
            [],
            ["a hall", "a garden"],
        ),
        ("Yes, Locations: none", [], []),
    ],
)
def test_places(text: str, published: list[object], corrected: list[object]) -> None:
    answer = Answer(response=text, label="yes", fields={"locations": TRUE})
    assert [tuple(each) for each in places_of(answer, "published")] == published
    found = places_of(answer, "corrected")
    paired = corrected and isinstance(corrected[0], tuple)
    assert [tuple(each) if paired else each.said for each in found] == corrected


def test_points_begin_above_one_half() -> None:
    assert [points(each) for each in (-1.0, 0.5, 1.0)] == [0.0, 0.0, 1.0]
    assert 0.5 < points(0.75) < 0.53


def test_a_place_without_a_similarity_is_neither_right_nor_wrong() -> None:
    answer = Answer(
        response="Yes, Locations: from a hall to a garden.",
        label="yes",
        fields={"locations": "From a hall to a park."},
    )
    metric = VidhallucSthMetric()
    made = metric.score(AnswersItem(id="1", answers=(answer,)))
    assert [each.correct for each in made.evidence.answers] == [True, None, None]
    start, end = places_of(answer, "published")
    known = with_similarities(answer, {start: 1.0, end: 0.25})
    made = metric.score(AnswersItem(id="1", answers=(known,)))
    assert [each.correct for each in made.evidence.answers] == [True, True, False]


def test_without_any_similarity_descriptions_have_no_score() -> None:
    said = ["from a hall to a garden.", "no places here"]
    with Client.embedded() as client:
        report = client.score(
            "vidhalluc-sth",
            responses={f"v{n}": f"Yes, Locations: {text}" for n, text in enumerate(said)},
            references={f"v{n}": {"Scene change": "yes", "Locations": TRUE} for n in range(2)},
        )
    assert report["description_score"].value is report["overall_score"].value is None
    assert report["classification_score"].value is not None
    assert any("no known similarity" in note for note in report.notes)


@pytest.mark.parametrize("locations", [None, "", " "])
def test_a_change_without_reference_places_is_an_error(locations: str | None) -> None:
    said = {"a": "Yes, Locations: from a hall to a garden.", "b": "No, Locations: None"}
    truth: dict[str, dict[str, str | None]] = {
        "a": {"Scene change": "yes", "Locations": TRUE},
        "b": {"Scene change": "no", "Locations": locations},
    }
    assert len(read_items("vidhalluc-sth", said, truth)) == 2
    truth["a"]["Locations"] = locations
    with pytest.raises(ArchiveError, match=r"without Locations: a \(1 in all\)"):
        read_items("vidhalluc-sth", said, truth)


def test_answers_that_only_corrected_parses_are_noted() -> None:
    said = ["Scene change: No, Locations: None"] * 3 + ["**Scene change: No**"]
    truth = {"Scene change": "no", "Locations": "None"}
    responses = {f"v{n}": text for n, text in enumerate(said)}
    with Client.embedded() as client:
        notes = {
            variant: client.score(
                "vidhalluc-sth",
                variant=variant,
                responses=responses,
                references=dict.fromkeys(responses, truth),
            ).notes
            for variant in ("published", "corrected")
        }
    [note] = [each for each in notes["published"] if "can parse" in each]
    assert "corrected can parse 1 of 4 answers (25.0%) that published can't" in note
    assert not any("can parse" in each for each in notes["corrected"])


@pytest.mark.parametrize(
    "text",
    [
        *("x", "{}", "[1]", '"abc"', '["abc"]', "[" * 100_000, '[["a hall", ["a hall"], 1]]'),
        *(f'[["a hall", "a hall", {number}]]' for number in ('"z"', "NaN", "1e999", "9" * 400)),
    ],
)
def test_similarities_that_are_none_are_unknown(text: str) -> None:
    answer = Answer(
        response="Yes, Locations: from a hall to a garden.",
        label="yes",
        fields={"locations": TRUE, "similarities": text},
    )
    made = VidhallucSthMetric().score(AnswersItem(id="1", answers=(answer,)))
    assert [each.correct for each in made.evidence.answers] == [True, None, None]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), True, "0.5"])
def test_a_table_with_another_similarity_than_a_number_is_an_error(number: object) -> None:
    row = {"model": "a hall", "truth": "a hall", "similarity": number}
    inputs = InputOptions(own={"similarities": [row]})
    truth = {"a": {"Scene change": "yes", "Locations": TRUE}}
    with pytest.raises(ArchiveError, match="similarity a number"):
        read_items("vidhalluc-sth", {"a": "No"}, truth, options=inputs)
