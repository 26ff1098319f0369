"""Properties of CHAIR that hold for any captions."""

from __future__ import annotations

import random
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from hallujudge.metrics import ChairMetric, IntervalSettings, ItemResult, Outcome, Report, Tally

OBJECTS = ("dog", "cat", "couch", "person", "bus", "cake")


class Found(NamedTuple):
    word: str
    object: str
    start: int
    end: int


captions = st.lists(st.sampled_from(OBJECTS), max_size=8)
references = st.frozensets(st.sampled_from(OBJECTS), max_size=5)
metrics = st.builds(
    ChairMetric,
    variant=st.sampled_from(ChairMetric.variant_names()),
    count=st.sampled_from(ChairMetric.options[0].choices),
    matcher=st.just("m"),
    graph=st.just("g"),
)


def result(
    metric: ChairMetric, identifier: int, names: list[str], reference: frozenset[str]
) -> ItemResult:
    mentions = [Found(name, name, 0, 1) for name in names]
    scored = metric.score_caption(" ".join(names), mentions, reference)
    return ItemResult(
        id=str(identifier),
        group_id=str(identifier),
        outcome=Outcome.SCORED,
        statistics=scored.statistics,
        scores=scored.scores,
        evidence=scored.evidence,
    )


def report(metric: ChairMetric, results: list[ItemResult]) -> Report:
    tally = Tally(metric)
    for each in results:
        tally.add(each)
    return tally.finish(IntervalSettings(), version="1")


@given(metrics, st.lists(st.tuples(captions, references), max_size=12), st.randoms())
def test_bounds_and_order(
    metric: ChairMetric,
    pairs: list[tuple[list[str], frozenset[str]]],
    shuffler: random.Random,
) -> None:
    results = [result(metric, index, *pair) for index, pair in enumerate(pairs)]
    whole = report(metric, results)
    for name in ("chair_i", "chair_s", "recall"):
        score = whole[name]
        assert score.value is None or 0 <= score.value <= 1
        if score.ci_low is not None and score.ci_high is not None:
            assert 0 <= score.ci_low <= score.ci_high <= 1
    shuffler.shuffle(results)
    assert report(metric, results) == whole


@given(metrics, captions, references)
def test_one_item_is_its_own_mean(
    metric: ChairMetric, names: list[str], reference: frozenset[str]
) -> None:
    item = result(metric, 1, names, reference)
    whole = report(metric, [item])
    assert {name: score.value for name, score in whole.scores.items()} == item.scores


@given(metrics, captions, references)
def test_naming_a_true_object_never_raises_chair(
    metric: ChairMetric, names: list[str], reference: frozenset[str]
) -> None:
    before = result(metric, 1, names, reference).scores
    for true in reference:
        after = result(metric, 1, [*names, true], reference).scores
        assert (after["chair_i"] or 0) <= (before["chair_i"] or 0)
        assert after["chair_s"] == before["chair_s"]
        assert (after["recall"] or 0) >= (before["recall"] or 0)
