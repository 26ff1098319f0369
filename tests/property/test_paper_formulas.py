"""The papers' formulas, against plain loops that were written from the papers' texts."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallujudge.metrics.answers.orders import PairAnswer, PairQuestion
from hallujudge.metrics.framework.agreement import krippendorff_alpha, pearson, spearman
from hallujudge.metrics.framework.claims import ClaimVerdict, Part, Triplet, Verdict
from hallujudge.metrics.infact.operators import TAXONOMY, AuditedCase, label_audit, taxonomy_means
from hallujudge.metrics.pope import caption_consistency, template_stability
from hallujudge.metrics.tri_he import TriHeMetric
from hallujudge.metrics.tri_he.claim_analyses import ClaimTable, JudgedAnswer, frequent_pair_rates
from hallujudge.metrics.vidhal.order_analyses import (
    frame_reliance,
    input_order_sensitivity,
    model_consensus,
    transitive_inconsistency,
)
from hallujudge.studies.analysis.mementos import (
    ScoredSequence,
    hallucination_correlation,
    recall_by_length,
    snowballing,
)

RATES = st.integers(0, 20).map(lambda number: number / 20)
PAIRS = st.lists(st.tuples(RATES, RATES), min_size=1, max_size=12)
ORDERS = st.sampled_from([*permutations("ABC")])
OBJECTS = ("cat", "dog", "cup")


def plain_pearson(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Covariance over the product of standard deviations."""
    ours, theirs = zip(*pairs, strict=True)
    if len({*ours}) < 2 or len({*theirs}) < 2:
        return None
    return statistics.correlation(ours, theirs)


@given(PAIRS)
def test_pearson_and_spearman(pairs: list[tuple[float, float]]) -> None:
    def rank(value: float, side: Sequence[float]) -> float:
        return sum(each < value for each in side) + (side.count(value) + 1) / 2

    left, right = map(list, zip(*pairs, strict=True))
    assert pearson(left, right) == pytest.approx(plain_pearson(pairs))
    ranked = [(rank(one, left), rank(other, right)) for one, other in pairs]
    assert spearman(left, right) == pytest.approx(plain_pearson(ranked))


@given(st.lists(st.lists(st.integers(1, 5), max_size=4), max_size=8))
def test_interval_alpha_is_that_of_the_coincidences(units: list[list[int]]) -> None:
    """Krippendorff 2011: each ordered pair of a unit's m scores counts 1 / (m - 1)."""
    coincidences: Counter[tuple[int, int]] = Counter()
    for unit in units:
        for one, other in permutations(range(len(unit)), 2):
            coincidences[unit[one], unit[other]] += 1 / (len(unit) - 1)  # type: ignore[assignment]  # a share
    totals: Counter[int] = Counter()
    for (one, _), count in coincidences.items():
        totals[one] += count
    every = sum(totals.values())
    observed = sum(count * (one - other) ** 2 for (one, other), count in coincidences.items())
    expected = sum(totals[a] * totals[b] * (a - b) ** 2 for a in totals for b in totals)
    found = krippendorff_alpha(units, "interval")
    if not expected:
        assert found is None
    else:
        assert found == pytest.approx(1 - (every - 1) * observed / expected)


@given(st.dictionaries(st.text(max_size=3), RATES, min_size=1, max_size=6))
def test_stability_is_mean_and_deviation_of_the_population(scores: dict[str, float]) -> None:
    found = template_stability(scores)
    assert found.mean == pytest.approx(statistics.fmean(scores.values()))
    assert found.std == pytest.approx(statistics.pstdev(scores.values()))


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("12"), st.sampled_from(OBJECTS)), st.sampled_from(["yes", "no"])
    ),
    st.fixed_dictionaries({image: st.sets(st.sampled_from(OBJECTS)) for image in "12"}),
)
def test_consistency_counts_objects(
    answers: dict[tuple[str, str], str], captions: dict[str, set[str]]
) -> None:
    found = caption_consistency([(*key, said) for key, said in answers.items()], captions)
    no = [(image, name) for (image, name), said in answers.items() if said == "no"]
    both = [(image, name) for image, name in answers if name in captions[image]]
    assert (found.denied, found.mentioned) == (len(no), len(both))
    assert found.denied_but_mentioned == len({*no} & {*both})
    assert found.mentioned_and_affirmed == len({*both} - {*no})


@given(st.lists(st.tuples(ORDERS, st.booleans()), min_size=1, max_size=8))
def test_transitive_inconsistency_is_formula_7(
    cases: list[tuple[tuple[str, ...], bool]],
) -> None:
    """P_TI: of first and last caption of the order, the last one is chosen."""
    orders = {f"v{at}": order for at, (order, _) in enumerate(cases)}
    answers = {
        f"v{at}": [
            PairAnswer(
                question=PairQuestion(*sorted((order[0], order[2]))),
                chosen=order[2] if last else order[0],
            )
        ]
        for at, (order, last) in enumerate(cases)
    }
    found = transitive_inconsistency(orders, answers)
    assert found.rate == pytest.approx(sum(last for _, last in cases) / len(cases))


@given(st.lists(st.tuples(RATES, RATES, RATES), min_size=1, max_size=6))
def test_input_order_is_the_spread_of_means(rows: list[tuple[float, float, float]]) -> None:
    names = ("A, B, C", "B, A, C", "C, B, A")
    scores = {
        name: {f"v{at}": row[place] for at, row in enumerate(rows)}
        for place, name in enumerate(names)
    }
    means = [statistics.fmean(row[place] for row in rows) for place in range(3)]
    found = input_order_sensitivity(scores)
    assert [found.scores[name] for name in names] == pytest.approx(means)
    assert found.std == pytest.approx(statistics.pstdev(means), abs=1e-12)
    assert found.spread == pytest.approx(max(means) - min(means), abs=1e-12)


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=10))
def test_reliance_is_the_overlap_of_right_and_of_wrong_choices(
    choices: list[tuple[int, int]],
) -> None:
    video = {f"v{at}": (one,) for at, (one, _) in enumerate(choices)}
    frame = {f"v{at}": (other,) for at, (_, other) in enumerate(choices)}
    found = frame_reliance(video, frame)
    for value, kept in (
        (found.overall, choices),
        (found.correct, [each for each in choices if each[0] == 1]),
        (found.incorrect, [each for each in choices if each[0] != 1]),
    ):
        same = [one == other for one, other in kept]
        assert value == (pytest.approx(sum(same) / len(same)) if same else None)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=10))
def test_consensus_is_shared_right_answers(rows: list[tuple[bool, bool]]) -> None:
    right = {
        model: {f"v{at}": row[place] for at, row in enumerate(rows)}
        for place, model in enumerate("ab")
    }
    either = sum(one or other for one, other in rows)
    expected = sum(one and other for one, other in rows) / either if either else None
    assert model_consensus(right).pairs["a", "b"] == expected


@given(st.lists(st.tuples(st.integers(1, 4), RATES, RATES), min_size=3, max_size=14))
def test_mementos_trends_are_least_squares(rows: list[tuple[int, float, float]]) -> None:
    sequences = [
        ScoredSequence(
            domain="daily_life",
            scores={"object_recall": one, "behavior_recall": other},
            episode_length=length,
        )
        for length, one, other in rows
    ]
    (correlation,) = hallucination_correlation(sequences)
    assert correlation.value == pytest.approx(plain_pearson([row[1:] for row in rows]))
    for point in recall_by_length(sequences):
        members = [row for row in rows if row[0] == point.episode_length]
        assert point.n == len(members)
        assert point.behavior_recall == pytest.approx(statistics.fmean(m[2] for m in members))
    (found,) = [each for each in snowballing(sequences) if each.measure == "behavior_recall"]
    lengths = [row[0] for row in rows]
    if len({*lengths}) < 2:
        assert found.slope is None
        return
    slope, start = statistics.linear_regression(lengths, [row[2] for row in rows])
    assert found.slope == pytest.approx(slope, abs=1e-12)
    # HC1: squared residuals weigh squared distances from the mean length.
    mean, count = statistics.fmean(lengths), len(rows)
    around = sum((length - mean) ** 2 for length in lengths)
    moved = sum(((x - mean) * (y - start - slope * x)) ** 2 for x, _, y in rows)
    error = math.sqrt(moved * count / (count - 2)) / around
    assert found.ci_high is not None
    assert found.ci_high - slope == pytest.approx(1.959964 * error, abs=1e-6)


CLAIMS = st.tuples(st.sampled_from(OBJECTS), st.sampled_from(OBJECTS), st.integers(0, 2))


@given(st.lists(st.lists(CLAIMS, min_size=1, max_size=5), min_size=1, max_size=6))
def test_frequent_pairs_are_the_first_fifth_by_count(
    answers: list[list[tuple[str, str, int]]],
) -> None:
    """Table 4: relation rates over the claims on pairs of synsets that occur most often."""
    synsets = {"cat": "cat.n.01", "dog": "dog.n.01", "cup": "cat.n.01"}
    wrong = {0: None, 1: Part.RELATION, 2: Part.OBJECT}
    judged = [
        JudgedAnswer(
            group_id=str(at // 2),
            verdicts=tuple(
                ClaimVerdict(
                    triplet=Triplet(one, "near", other),
                    verdict=Verdict.NOT_SUPPORTED if kind else Verdict.SUPPORTED,
                    part=wrong[kind],
                )
                for one, other, kind in claims
            ),
        )
        for at, claims in enumerate(answers)
    ]
    table = ClaimTable(judged, TriHeMetric(judge="matcher"))
    found = frequent_pair_rates(table, canonical=lambda name: synsets[name])
    named = [[(synsets[a], synsets[b], kind) for a, b, kind in claims] for claims in answers]
    counts = Counter((a, b) for claims in named for a, b, _ in claims)
    ranked = sorted(counts, key=lambda pair: (-counts[pair], pair))
    first = ranked[: math.ceil(len(ranked) / 5)]
    assert found.pairs == tuple(first)
    rates: dict[str, list[float]] = {}
    for at, claims in enumerate(named):
        if kept := [kind for a, b, kind in claims if (a, b) in first]:
            rates.setdefault(str(at // 2), []).append(kept.count(1) / len(kept))
    every = [rate for of in rates.values() for rate in of]
    assert found.frequent.hallu_q == pytest.approx(statistics.fmean(every))
    assert found.frequent.hallu_i == pytest.approx(
        statistics.fmean(map(statistics.fmean, rates.values()))
    )


@given(st.lists(st.lists(st.sampled_from(["A", "B", None]), min_size=3, max_size=3), max_size=9))
def test_audits_are_majorities_of_three(choices: list[list[str | None]]) -> None:
    """Appendix A.3: answerable by two of three people; preserved if the label has most votes."""
    found = label_audit([AuditedCase(label="A", choices=each) for each in choices])
    answerable = [each for each in choices if each.count(None) < 2]
    preserved = [each for each in answerable if each.count("A") > each.count("B")]
    assert (found.cases, found.answerable) == (len(choices), len(answerable))
    assert found.preserved == len(preserved)


@given(st.data())
def test_levels_are_means_of_leaves_and_dimensions_of_levels(data: st.DataObject) -> None:
    leaves = {
        leaf: data.draw(RATES)
        for levels in TAXONOMY.values()
        for of in levels.values()
        for leaf in of
    }
    found = taxonomy_means(leaves)
    expected: dict[str, float] = {}
    for dimension, levels in TAXONOMY.items():
        means = {
            level: statistics.fmean(leaves[leaf] for leaf in of) for level, of in levels.items()
        }
        expected |= {**means, dimension: statistics.fmean(means.values())}
    values = {path.split("/")[-1]: value for path, value in found.items()}
    for name, value in expected.items():
        assert values[name] == pytest.approx(value)
