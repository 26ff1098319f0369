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


@given(st.lists(st.tuples(captions, references), min_size=1, max_size=6))
def test_precision_and_f1_are_those_of_the_released_script_of_pai(
    pairs: list[tuple[list[str], frozenset[str]]],
) -> None:
    """PAI's ``chair.py`` sums sets of objects over all captions; it divides by zero without any."""
    metric = ChairMetric(count="objects", matcher="m", graph="g")
    found = report(metric, [result(metric, n, *pair) for n, pair in enumerate(pairs)])
    right = sum(len({*names} & shown) for names, shown in pairs)
    named = sum(len({*names}) for names, _ in pairs)
    shown = sum(len(shown) for _, shown in pairs)
    if right:
        precision, recall = right / named, right / shown
        assert found.scores["precision"].value == precision
        f1 = found.scores["f1"].value
        assert f1 is not None
        assert abs(f1 - 2 * precision * recall / (precision + recall)) < 1e-12
    by_mentions = ChairMetric(matcher="m", graph="g")
    assert {"precision", "f1"}.isdisjoint(score.name for score in by_mentions.scores)
