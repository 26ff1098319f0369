"""Object HalBench: words of given objects and of answers."""

from __future__ import annotations

from typing import Any

import pytest

from hallujudge.metrics import ItemResult, Report
from hallujudge.metrics.object_halbench import ObjectHalBenchItem
from hallujudge.sdk import Client, ScoreSpec

METRIC = "object-halbench"


def item(number: int, response: str | None, **more: Any) -> ObjectHalBenchItem:
    given = {"reference_objects": ("person",), **more}
    return ObjectHalBenchItem(id=str(number), response=response, **given)


def score(items: list[ObjectHalBenchItem], **options: str) -> tuple[Report, list[ItemResult]]:
    results: list[ItemResult] = []
    variant = options.pop("variant", "published")
    spec = ScoreSpec(metric=METRIC, variant=variant, options=options)
    with Client.embedded() as client:
        report = client.score_items(spec, items, on_batch=lambda b: results.extend(b.results))
    return report, results


def words_of(result: ItemResult) -> list[tuple[str, str, bool]]:
    mentions = result.evidence.mentions  # type: ignore[union-attr]  # CHAIR's evidence
    return [(m.word, m.object, m.hallucinated) for m in mentions]


def test_given_words_count_as_the_table_has_them() -> None:
    named = ("man", "person", "kitchen table", "toilet", "seat", "table")
    report, [result] = score([item(1, "A man sits at a kitchen table.", predicted_objects=named)])
    assert words_of(result) == [
        ("man", "person", False),
        ("person", "person", False),
        ("toilet", "toilet", True),
        ("table", "dining table", True),
    ]
    assert report.scores["chair_i"].value == 0.5
    assert report.totals["words"] == 7


def test_corrected_finds_words_inside_of_given_objects() -> None:
    named = ("Men", "kitchen table", "table", "brick wall")
    _, [result] = score([item(1, "Men at a table.", predicted_objects=named)], variant="corrected")
    assert [found[1:] for found in words_of(result)] == [
        ("person", False),
        ("dining table", True),
        ("dining table", True),
    ]


def test_own_words_count_each_time_in_the_singular_of_wordnet() -> None:
    # "Men" is a noun of its own in WordNet, so that the script does not count it.
    text = "Men and women at a coffee table with remote controls and a wine glass."
    _, [result] = score([item(1, text)], objects="words")
    assert words_of(result) == [
        ("woman", "person", False),
        ("coffee table", "dining table", True),
        ("remote control", "remote", True),
        ("wine glass", "wine glass", True),
    ]


def test_refined_leaves_out_answers_without_a_word() -> None:
    items = [
        item(1, "A dog.", predicted_objects=("dog",)),
        item(2, "A view.", predicted_objects=("view",)),
    ]
    report, _ = score(items)
    assert report.scores["chair_s"].value == 0.5
    assert report.scores["chair_s_refined"].value == 1.0


def test_no_answer_with_a_word_has_no_refined_score() -> None:
    report, [result] = score([item(1, "A view.", predicted_objects=())])
    assert report.scores["chair_s"].value == 0.0
    assert report.scores["chair_s_refined"].value is None
    assert report.scores["chair_i"].value is None
    assert result.scores["chair_s_refined"] is None


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"predicted_objects": None}, "KEYWORDS_MISSING"),
        ({"predicted_objects": ("dog",), "reference_objects": None}, "REFERENCE_MISSING"),
    ],
)
def test_what_is_missing_is_unscored(given: dict[str, Any], reason: str) -> None:
    report, [result] = score([item(1, "A dog.", **given)])
    assert (result.reason, report.coverage.unscored) == (reason, 1)


def test_objects_are_placed_in_the_answer() -> None:
    text = "Two dogs sit on a sofa near a dog."
    _, [result] = score([item(1, text, predicted_objects=("dog", "couch"))])
    spans = [(m.start, m.end) for m in result.evidence.mentions]  # type: ignore[union-attr]
    assert [text[start:end] for start, end in spans] == ["dogs", ""]
