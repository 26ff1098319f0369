"""VidHal's scores over display orders."""

from __future__ import annotations

import pytest

from hallujudge.metrics import Answer
from hallujudge.metrics.answers.orders import ndcg_of
from hallujudge.metrics.vidhal import ORDERING, VidhalMcqaMetric, VidhalOrderingMetric
from hallujudge.sdk import Client, InputOptions

RIGHT = "B, A, C"


def test_totals_over_display_orders_of_every_shape() -> None:
    metric = VidhalOrderingMetric()
    said = ["A, B", "B, A, C", "B, C", "B, A, C", "A, B, C"]
    labels = ["A, B", "A, B, C", "C, B", "A, B, C", "A, B, D"]
    rows = metric.rows(said, labels)
    got = metric.totals(rows)
    assert [got["ndcg"], got["invalid"]] == pytest.approx(
        [sum(row[i] * times for row, times in rows.items()) for i in (0, 1)]
    )
    assert (got["videos"], got["commonest_order_1"]) == (5, 2)


def test_one_caption_is_in_order() -> None:
    assert ndcg_of((1,)) == 1


def test_choices_of_millions_of_videos_stay_small() -> None:
    assert VidhalMcqaMetric().folds, "whole numbers whose sums are all that counts"
    assert not VidhalOrderingMetric().folds, "the most frequent order is one of the whole table"


def test_totals_over_columns() -> None:
    metric = VidhalOrderingMetric()
    totals = metric.totals(metric.rows(["B, A, C", "B, A, C", "A, B", "C, A, B"], [RIGHT] * 4))
    assert (totals["videos"], totals["invalid"], totals["commonest_order_1"]) == (4, 1, 2)
    assert totals["ndcg"] == pytest.approx(2)


@pytest.mark.parametrize(
    ("said", "how"),
    [
        ("B, A", "published: partial"),
        ("B, B, A", "published: repeated"),
        ("B, A, D", "published: unknown"),
        ("B, A, C, D", "published: unknown"),
        (RIGHT, "published"),
    ],
)
def test_the_evidence_names_what_is_wrong_with_an_order(said: str, how: str) -> None:
    answer = Answer(response=said, label=RIGHT, options=dict.fromkeys("ABC", ""))
    parsed = ORDERING.variant("published").parse(answer)
    assert (parsed.how, parsed.right) == (how, said == RIGHT)


@pytest.mark.parametrize("variant", ["published", "corrected"])
@pytest.mark.parametrize("said", ["B, A", "the man sits", "B, A, C, D"])
def test_an_invalid_order_is_compared_as_published_only(variant: str, said: str) -> None:
    metric = VidhalOrderingMetric(variant=variant)
    totals = metric.totals(metric.rows([said], [RIGHT]))
    assert (totals["invalid"], totals["ndcg"], totals["commonest_order_1"]) == (1, 0, 0)
    assert (totals["hm_2_1"], totals["compared_2_1"]) == (0, int(variant == "published"))


def test_the_note_on_sentences_has_the_score_that_corrected_gives() -> None:
    """Many models answer in a sentence, of which the released script reads nothing."""
    orders = ["B, A, C", "C, B, A", "A, C, B"]
    rows = [{"video": f"v_{n}", "response": f"The order is: {o}."} for n, o in enumerate(orders)]
    shown = [{"video": row["video"], "captions": ["one", "two", "three"]} for row in rows]
    options = {row["video"]: {"A": 2, "B": 1, "C": 3} for row in rows}
    with Client.embedded() as client:
        published, corrected = (
            client.score(
                "vidhal-ordering",
                responses=rows,
                references=shown,
                variant=variant,
                inputs=InputOptions(own={"options": options}),
            )
            for variant in ("published", "corrected")
        )
    assert published.scores["ndcg"].value == 0
    value = corrected.scores["ndcg"].value
    assert value is not None
    assert "corrected can parse 3 of 3 answers (100.0%)" in published.notes[0]
    assert f"with them ndcg is {value:.4f}, not 0.0000" in published.notes[0]
