"""VidHal's analyses, and the order found by questions about pairs."""

from __future__ import annotations

import pytest

from hallujudge.metrics.answers.orders import PairAnswer, PairQuestion
from hallujudge.metrics.vidhal.order_analyses import (
    QualityVote,
    caption_quality,
    frame_reliance,
    human_agreement,
    input_order_sensitivity,
    model_consensus,
    transitive_inconsistency,
)


def test_transitive_inconsistency() -> None:
    ends = PairQuestion("A", "C")
    answers = {
        "v1": [PairAnswer(question=ends, chosen="C")],
        "v2": [PairAnswer(question=ends, chosen="A")],
        "v3": [PairAnswer(question=PairQuestion("A", "B"), chosen="B")],
        "v4": [],
    }
    orders = dict.fromkeys(answers, ("A", "B", "C"))
    found = transitive_inconsistency(orders, answers)
    # 1 of 4 videos, and 1 of the 2 whose end pair was asked.
    assert (found.rate, found.videos, found.n) == (0.25, ("v1",), 2)
    assert (found.rate_of_asked, found.videos_of_run) == (0.5, 4)
    found = transitive_inconsistency(orders, answers, ends_only=False)
    assert found.rate == 0.5
    assert found.rate_of_asked == pytest.approx(2 / 3)
    invalid = transitive_inconsistency({**orders, "v5": ()}, answers)
    assert (invalid.rate, invalid.rate_of_asked) == (0.2, 0.5)
    assert (found.videos, found.n) == (("v1", "v3"), 3)
    assert transitive_inconsistency({}, {}).rate is None


def test_sensitivity_to_the_display_order() -> None:
    scores = {"A, B": {"v1": 1.0, "v2": 0.0}, "B, A": {"v1": 1.0, "v2": 1.0}}
    answers = {"A, B": {"v1": (1,), "v2": (2,)}, "B, A": {"v1": (1,), "v2": (1,)}}
    found = input_order_sensitivity(scores, answers)
    assert (found.mean, found.std, found.spread, found.same_answer) == (0.75, 0.25, 0.5, 0.5)
    with pytest.raises(ValueError, match="v2"):
        input_order_sensitivity({"A, B": {"v1": 1.0}, "B, A": {"v1": 1.0, "v2": 1.0}})


def test_consensus() -> None:
    correct = {
        "a": {"1": True, "2": True, "3": False},
        "b": {"1": True, "2": False, "3": False},
        "c": {"1": False, "2": False, "3": False},
    }
    found = model_consensus(correct)
    assert found.pairs == {("a", "b"): 0.5, ("a", "c"): 0, ("b", "c"): 0}
    assert found.models == {"a": 0.25, "b": 0.25, "c": 0}


def test_reliance_on_one_frame() -> None:
    video = {"1": (1, 2, 3), "2": (1, 2, 3), "3": (2, 1, 3), "4": (3, 2, 1)}
    frame = {"1": (1, 2, 3), "2": (2, 1, 3), "3": (2, 1, 3), "4": (3, 1, 2)}
    found = frame_reliance(video, frame)
    assert (found.overall, found.correct, found.incorrect, found.n) == (0.5, 0.5, 0.5, 4)
    choices = frame_reliance({"1": (1,), "2": (2,)}, {"1": (1,), "2": (3,)})
    assert (choices.correct, choices.incorrect) == (1, 0)


def test_caption_quality() -> None:
    def votes(video: str, *answers: tuple[str, str | None]) -> list[QualityVote]:
        return [
            QualityVote(video=video, judge=f"j{n}", criterion=kind, prompt="1", answer=answer)
            for n, (kind, answer) in enumerate(answers)
        ]

    rows = [
        *votes("v1", ("realism", "yes"), ("realism", "no"), ("ordering", "yes")),
        *votes("v1", ("relevance", "yes"), ("relevance", None)),
        *votes("v2", ("realism", "yes"), ("ordering", "yes"), ("relevance", "yes")),
        *votes("v3", ("realism", "yes")),
    ]
    table = caption_quality(rows)
    assert list(table) == ["v2", "v1", "v3"]
    assert table["v1"] == {
        "realism": 0.5,
        "ordering": 1,
        "relevance": 0.5,
        "total": 2,
        "unread": 1,
    }
    assert table["v3"]["total"] is None
    with pytest.raises(ValueError, match="beauty"):
        caption_quality(votes("v", ("beauty", "yes")))


def test_human_agreement() -> None:
    choices = {"v1": [True, True, False], "v2": [True, False], "v3": [True]}
    found = human_agreement(choices, {"v1": "action", "v2": "action", "v3": "order"})
    assert found.videos["v2"] == 0.5
    assert found.misaligned == ("v2",), "half is not a majority"
    assert found.mean == pytest.approx((2 / 3 + 0.5 + 1) / 3)
    assert found.groups["order"] == 1
    with pytest.raises(ValueError, match="v4"):
        human_agreement({"v4": []})
