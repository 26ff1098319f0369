"""Mementos' scores, groups, bounds and analyses on numbers worked out by hand."""

from __future__ import annotations

import math
import statistics
from typing import NamedTuple

import pytest

from hallujudge.judge_service.wire import convert as _convert
from hallujudge.metrics import IntervalSettings, ItemResult, Outcome, Report, Tally
from hallujudge.metrics.errors import OptionError, UnknownVariantError
from hallujudge.metrics.mementos import (
    KeywordEvidence,
    MatchedKeyword,
    MementosEvidence,
    MementosItem,
    MementosMetric,
    NearKeyword,
    keyword_scores,
)
from hallujudge.studies.analysis.mementos import (
    BehaviorPairs,
    ScoredSequence,
    companions,
    hallucination_correlation,
    recall_by_length,
    snowballing,
)


class Counts(NamedTuple):
    hits: int
    wrong: int
    missed: int


def metric(**options: str) -> MementosMetric:
    return MementosMetric(
        matcher="m", object_graph="o", behavior_graph="b", extractor="rules", **options
    )


def report(*sequences: tuple[Counts, Counts], unscored: int = 0, **options: str) -> Report:
    measured = metric(**options)
    tally = Tally(measured, ("domain",))
    for index, counts in enumerate(sequences):
        made = measured.score_description(*counts)
        statistics, scores = made.statistics, made.scores
        tally.add(
            ItemResult(
                id=str(index), group_id=str(index), outcome=Outcome.SCORED, statistics=statistics,
                scores=scores, fields={"domain": "ab"[index % 2]},
            )
        )  # fmt: skip
    for index in range(unscored):
        tally.add(
            ItemResult(
                id=f"u{index}", group_id=f"u{index}", outcome=Outcome.UNSCORED, reason="R",
                fields={"domain": "a"},
            )
        )  # fmt: skip
    return tally.finish(IntervalSettings(), version="0")


def test_means_over_sequences_and_pooled() -> None:
    sequences = ((Counts(1, 0, 1), Counts(2, 2, 0)), (Counts(3, 1, 0), Counts(0, 4, 4)))
    means = report(*sequences)
    assert means.object_recall == pytest.approx((0.5 + 1.0) / 2)
    assert means.object_precision == pytest.approx((1.0 + 0.75) / 2)
    assert means.behavior_f1 == pytest.approx((2 * 0.5 / 1.5 + 0.0) / 2)
    pooled = report(*sequences, average="pooled")
    assert pooled.object_recall == pytest.approx(4 / 5)
    assert pooled.behavior_precision == pytest.approx(2 / 8)
    assert pooled.behavior_f1 == pytest.approx(4 / (4 + 6 + 4))
    assert means.groups["domain"]["a"]["object_recall"].value == 0.5


@pytest.mark.parametrize(
    ("counts", "published", "corrected"),
    [
        (Counts(0, 0, 2), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        (Counts(0, 3, 0), (0.0, 0.0, 0.0), (None, 0.0, None)),
        (Counts(0, 0, 0), (0.0, 0.0, 0.0), (None, None, None)),
        (Counts(0, 1, 1), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    ],
)
def test_shares_of_nothing(
    counts: Counts, published: tuple[float, ...], corrected: tuple[float | None, ...]
) -> None:
    for variant, expected in (("published", published), ("corrected", corrected)):
        found = keyword_scores(counts, variant=variant)
        assert (found.recall, found.precision, found.f1) == expected


def test_undefined_scores_are_left_out_of_the_mean() -> None:
    both = (Counts(1, 0, 0), Counts(0, 2, 0)), (Counts(1, 0, 0), Counts(1, 0, 0))
    found = report(*both, variant="corrected")
    assert found.scores["behavior_recall"].n == 1
    assert found.behavior_recall == 1.0
    assert found.behavior_precision == 0.5


def test_bounds_say_what_unscored_items_could_change() -> None:
    found = report((Counts(1, 1, 1), Counts(1, 0, 0)), unscored=1)
    bound = found.coverage.bounds["object_recall"]
    assert (bound.best, bound.worst) == (0.75, 0.25)
    pooled = report((Counts(1, 1, 1), Counts(1, 0, 0)), unscored=1, average="pooled")
    bound = pooled.coverage.bounds["object_recall"]
    assert (bound.best, bound.worst) == (0.75, 0.25)


def test_signature_and_refusals() -> None:
    assert str(metric().signature) == (
        "mementos|var:published|match:m|objects:o|behaviors:b|domain:items|extract:rules|"
        "avg:sequences"
    )
    with pytest.raises(UnknownVariantError):
        metric(variant="other")
    with pytest.raises(OptionError):
        metric(average="median")


# Analyses -----------------------------------------------------------------------------------------


def sequence(
    domain: str, objects: float | None, behaviors: float | None, length: int = 1
) -> ScoredSequence:
    scores = {"object_recall": objects, "behavior_recall": behaviors}
    return ScoredSequence(domain=domain, scores=scores, episode_length=length)


def test_correlation_by_domain() -> None:
    pairs = [(0.1, 0.3), (0.4, 0.2), (0.9, 0.8), (0.5, 0.5)]
    found = hallucination_correlation(
        [sequence("a", x, y) for x, y in pairs]
        + [sequence("b", 0.5, 1.0), sequence("a", None, 1.0)]
    )
    x_mean, y_mean = (sum(column) / 4 for column in zip(*pairs, strict=True))
    top = sum((x - x_mean) * (y - y_mean) for x, y in pairs)
    bottom = math.sqrt(
        sum((x - x_mean) ** 2 for x, _ in pairs) * sum((y - y_mean) ** 2 for _, y in pairs)
    )
    assert [(c.domain, c.measure, c.n) for c in found] == [("a", "recall", 4), ("b", "recall", 1)]
    assert found[0].value == pytest.approx(top / bottom)
    assert found[1].value is None


def test_correlation_of_what_never_varies_is_undefined() -> None:
    found = hallucination_correlation([sequence("a", 0.1, y) for y in (0.1, 0.2, 0.3)])
    assert found[0].value is None


def test_recall_against_episode_length() -> None:
    found = recall_by_length(
        [sequence("a", 1.0, 0.5, 2), sequence("a", 0.0, None, 2), sequence("a", 0.2, 0.1, 9)]
    )
    assert [(p.episode_length, p.object_recall, p.behavior_recall, p.n) for p in found] == [
        (2, 0.5, 0.5, 2),
        (9, 0.2, 0.1, 1),
    ]


def test_companions() -> None:
    pairs = BehaviorPairs([["grab", "pull"], ["grab", "pull"], ["grab", "lift"], ["walk"]])
    assert pairs.share("pull", "grab") == pytest.approx(2 / 3)
    assert pairs.companions("grab", 1) == ("pull",)
    one = ScoredSequence(
        domain="a", scores={}, true_behaviors=("grab",), hallucinated_behaviors=("pull", "fly")
    )
    none = ScoredSequence(domain="b", scores={}, true_behaviors=("walk",))
    found = companions([one, none], pairs, k=1)
    assert [(c.domain, c.value, c.n) for c in found] == [("a", 0.5, 2), ("b", None, 0)]
    assert found[0].expected == pytest.approx(2 / 7)
    again = ScoredSequence(
        domain="a",
        scores={},
        true_behaviors=("grab", "pull"),
        hallucinated_behaviors=("pull", "fly"),
    )
    (twice,) = companions([again], pairs, k=1)
    assert (twice.value, twice.expected, twice.n) == (0.0, 0.0, 1)


EVIDENCE = MementosEvidence(
    domain="comics",
    extractor="rules-3",
    episode_length=3,
    objects=KeywordEvidence(
        reference=("sofa", "man"),
        predicted=("couch", "person", "gizmo"),
        matched=(MatchedKeyword("couch", "sofa"),),
        hallucinated=("person", "gizmo"),
        missed=("man",),
        unknown=("gizmo",),
        near=(NearKeyword("person", "man", "direction"),),
        predicted_spans=((2, 7), (8, 14), (15, 20)),
    ),
    behaviors=KeywordEvidence(
        reference=("pick up",), predicted=("lift",), matched=(MatchedKeyword("lift", "pick up"),)
    ),
)


def test_items_and_evidence_cross_the_wire() -> None:
    items = (
        MementosItem(id="1", response="a", reference="b", domain="comics", episode_length=0),
        MementosItem(
            id="2", group_id="g", fields={"domain": "x"}, reference_objects=(),
            predicted_objects=("a", "é"), reference_behaviors=("pick up",), predicted_behaviors=(),
        ),
        MementosItem(id="3"),
    )  # fmt: skip
    for item in items:
        assert _convert.item_from_proto(_convert.item_to_proto(item)) == item
    for evidence in (EVIDENCE, MementosEvidence()):
        result = ItemResult(
            id="1", group_id="1", outcome=Outcome.SCORED, statistics=(1.0,), evidence=evidence
        )
        assert _convert.result_from_proto(_convert.result_to_proto(result)) == result


def test_snowballing_is_the_line_of_least_squares() -> None:
    points = [(1, 1.0), (2, 0.5), (2, 0.75), (4, 0.25), (5, 0.5), (7, 0.0)]
    sequences = [
        ScoredSequence(domain="d", scores={"object_recall": recall}, episode_length=length)
        for length, recall in points
    ]
    (found,) = snowballing(sequences)
    slope, intercept = statistics.linear_regression(*zip(*points, strict=True))
    center = statistics.fmean(length for length, _ in points)
    moved = [(x - center) * (y - intercept - slope * x) for x, y in points]
    spread = sum((x - center) ** 2 for x, _ in points)
    error = math.sqrt(sum(each**2 for each in moved) * 6 / 4) / spread
    assert (found.domain, found.measure, found.n) == ("d", "object_recall", 6)
    assert found.slope == pytest.approx(slope)
    assert found.ci_low == pytest.approx(slope - statistics.NormalDist().inv_cdf(0.975) * error)
    assert found.ci_high == pytest.approx(slope + statistics.NormalDist().inv_cdf(0.975) * error)


def test_snowballing_needs_two_lengths() -> None:
    same = [
        ScoredSequence(domain="d", scores={"behavior_recall": recall}, episode_length=3)
        for recall in (0.5, 1.0)
    ]
    (found,) = snowballing(same)
    assert (found.slope, found.ci_low, found.n) == (None, None, 2)
    unknown = ScoredSequence(domain="d", scores={"object_recall": None}, episode_length=3)
    assert snowballing([unknown]) == []
