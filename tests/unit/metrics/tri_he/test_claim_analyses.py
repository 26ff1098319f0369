"""Trend, frequent pairs, prediction errors, agreement."""

from __future__ import annotations

import math
import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallujudge.metrics.framework.agreement import (
    human_agreement,
    kendall,
    krippendorff_alpha,
    pearson,
    spearman,
)
from hallujudge.metrics.framework.claims import ClaimVerdict, Part, Sentence, Triplet, Verdict
from hallujudge.metrics.tri_he import TriHeMetric
from hallujudge.metrics.tri_he.claim_analyses import (
    ClaimTable,
    JudgedAnswer,
    Scene,
    frequent_pair_rates,
    is_prediction_error,
    trend,
)

METRIC = TriHeMetric(judge="test")


def claim(
    triplet: str, right: bool, within_words: int | None = None, part: Part | None = None
) -> ClaimVerdict:
    verdict = Verdict.SUPPORTED if right else Verdict.NOT_SUPPORTED
    first, relation, second = triplet.split("-")
    return ClaimVerdict(
        triplet=Triplet(first, relation, second),
        verdict=verdict,
        within_words=within_words,
        part=part,
    )


def test_trend_counts_claims_that_end_in_time() -> None:
    answers = [
        JudgedAnswer(
            group_id="1",
            verdicts=(claim("dog-runs-x", True, 3), claim("cat-sleeps-y", False, 6)),
        )
    ]
    points = trend(ClaimTable(answers, METRIC), [1, 3, 6])
    assert [words for words, _ in points] == [1, 3, 6]
    assert [found[""].hallu_q for _, found in points] == [None, 0.0, 0.5]
    assert [found[""].claims for _, found in points] == [0, 1, 2]
    without = JudgedAnswer(group_id="1", verdicts=(claim("a-b-c", True),))
    [(_, found)] = trend(ClaimTable([without], METRIC), [5])
    assert found[""].claims == 0, "a claim without a position is left out"


def test_rates_are_the_reports() -> None:
    answers = [
        JudgedAnswer(group_id="a", verdicts=(claim("a-b-c", True), claim("a-b-c", False))),
        JudgedAnswer(group_id="a", verdicts=(claim("a-b-c", True),)),
        JudgedAnswer(group_id="b", verdicts=(claim("a-b-c", False),)),
        JudgedAnswer(group_id="c", verdicts=()),
    ]
    found = ClaimTable(answers, METRIC).rates()[""]
    assert (found.hallu_q, found.hallu_i) == (0.5, 0.625)
    assert (found.questions, found.images, found.claims) == (3, 2, 4)


PARTS = ("", "object_", "relation_")
VERDICTS = st.builds(
    ClaimVerdict,
    triplet=st.just(Triplet("a", "b", "c")),
    verdict=st.sampled_from(Verdict),
    part=st.sampled_from((None, *Part)),
    score=st.none() | st.floats(0, 1),
    judge=st.sampled_from(("matcher", "llm")),
    reason=st.sampled_from(("VERDICT_NULL", "JUDGE_TIMEOUT")),
    within_words=st.none() | st.integers(1, 30),
)
JUDGED = st.builds(
    JudgedAnswer,
    group_id=st.sampled_from("xyz"),
    verdicts=st.lists(VERDICTS, max_size=4).map(tuple),
)


@given(
    answers=st.lists(JUDGED, max_size=6),
    variant=st.sampled_from(("published", "corrected")),
    soft=st.sampled_from(("", "yes")),
    words=st.integers(1, 30),
)
def test_rates_equal_those_of_each_answer(
    answers: list[JudgedAnswer], variant: str, soft: str, words: int
) -> None:
    metric = TriHeMetric(judge="test", variant=variant, soft=soft)
    early = [
        JudgedAnswer(
            group_id=answer.group_id,
            verdicts=tuple(
                c for c in answer.verdicts if c.within_words and c.within_words <= words
            ),
        )
        for answer in answers
    ]
    table = ClaimTable(answers, metric)
    [(_, cut)] = trend(table, [words])
    for some, found in ((answers, table.rates()), (early, cut)):
        for part in PARTS:
            plain: dict[str, list[float]] = {}
            claims = 0
            for answer in some:
                if metric.unscored_reason(answer.verdicts) is None:
                    rate = metric.score_answer(answer.verdicts).scores[f"{part}hallu_q"]
                    plain.setdefault(answer.group_id, []).append(rate or 0.0)
                    claims += len(answer.verdicts)
            every = [rate for of in plain.values() for rate in of]
            counts = (found[part].questions, found[part].images, found[part].claims)
            assert counts == (len(every), len(plain), claims)
            means = [sum(of) / len(of) for of in plain.values()]
            for value, numbers in ((found[part].hallu_q, every), (found[part].hallu_i, means)):
                mean = sum(numbers) / len(numbers) if numbers else None
                assert value == (None if mean is None else pytest.approx(mean, abs=1e-12))
    for part, values in table.rate_of_each().items():
        for answer, value in zip(answers, values, strict=True):
            if metric.unscored_reason(answer.verdicts) is not None:
                assert value is None
            else:
                rate = metric.score_answer(answer.verdicts).scores[f"{part}hallu_q"]
                assert value == pytest.approx(rate)


def test_relation_rates_on_frequent_pairs() -> None:
    often = tuple(claim(f"Man-{word}-horse ", True) for word in "abc")
    rare = tuple(claim(f"a-r-{n}", False, part=Part.RELATION) for n in range(4))
    answers = [JudgedAnswer(group_id="1", verdicts=often + rare)]
    table = ClaimTable(answers, METRIC)
    found = frequent_pair_rates(table)
    assert found.pairs == (("man", "horse"),)
    assert found.all_pairs == 5
    assert found.original.hallu_q == pytest.approx(4 / 7)
    assert found.frequent.hallu_q == 0
    assert frequent_pair_rates(table, share=1).frequent == found.original
    synset = frequent_pair_rates(table, canonical=lambda name: name[:1].lower())
    assert synset.pairs == (("m", "h"),)
    with pytest.raises(ValueError, match="share is 0"):
        frequent_pair_rates(table, share=0)
    assert frequent_pair_rates(ClaimTable([], METRIC)).frequent.hallu_q is None


def test_prediction_errors_have_all_parts_but_not_the_pairing() -> None:
    graph = (Triplet("man", "riding", "horse"), Triplet("dog", "under", "tree"))
    scene = Scene.of(graph)
    wrong = [claim(t, False) for t in ("Dog-riding-horse", "man-eating-horse", "cat-under-tree")]
    assert [is_prediction_error(each, scene) for each in wrong] == [True, False, False]
    assert is_prediction_error(wrong[2], Scene.of(graph, ["cat"]))
    assert not is_prediction_error(claim("man-riding-horse", False), scene)
    assert not is_prediction_error(claim("dog-riding-tree", False, part=Part.SUBJECT), scene)
    assert is_prediction_error(claim("dog-riding-tree", False, part=Part.RELATION), scene)
    assert not is_prediction_error(claim("man-under-tree", True), scene)
    sentence = ClaimVerdict(triplet=Sentence("A dog."), verdict=Verdict.NOT_SUPPORTED)
    assert not is_prediction_error(sentence, scene)
    first_letters = Scene.of(graph, canonical=lambda text: text[0])
    assert is_prediction_error(claim("desk-rowing-heron", False), first_letters)


def test_correlations() -> None:
    assert pearson([1, 2, 3], [2, 4, 6]) == pytest.approx(1)
    assert pearson([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert pearson([0, 0, 1, 1], [0, 1, 0, 1]) == pytest.approx(0)
    # The textbook example of IQ and hours of television.
    iq = [106, 100, 86, 101, 99, 103, 97, 113, 112, 110]
    hours = [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]
    assert spearman(iq, hours) == pytest.approx(-29 / 165)
    assert spearman([1, 1, 2], [1, 2, 3]) == pytest.approx(0.8660254)
    assert pearson([1], [1]) is None
    assert pearson([1, 1], [1, 2]) is None
    with pytest.raises(ValueError, match="2 scores"):
        pearson([1, 2], [1])
    with pytest.raises(ValueError, match="finite"):
        pearson([1, float("nan")], [1, 2])


def plain_tau(left: list[float], right: list[float]) -> float | None:
    """Kendall's tau-b as defined: every pair is looked at."""
    signs = [
        ((a > b) - (a < b), (c > d) - (c < d))
        for (a, c), (b, d) in combinations(zip(left, right, strict=True), 2)
    ]
    untied = [sum(one != 0 for one, _ in signs), sum(other != 0 for _, other in signs)]
    if not all(untied):
        return None
    return sum(one * other for one, other in signs) / math.sqrt(untied[0] * untied[1])


def test_kendall_of_known_examples() -> None:
    # The example of scipy.stats.kendalltau's documentation.
    assert kendall([12, 2, 1, 12, 2], [1, 4, 7, 1, 0]) == pytest.approx(-0.47140452079103173)
    # No ties: 6 concordant and 4 discordant pairs of 10.
    assert kendall([1, 2, 3, 4, 5], [3, 1, 2, 5, 4]) == pytest.approx(0.4)
    assert kendall([1], [1]) is None
    assert kendall([1, 1], [1, 2]) is None
    with pytest.raises(ValueError, match="2 scores"):
        kendall([1, 2], [1])


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 5) | st.floats(0, 1)), max_size=30),
)
def test_kendall_agrees_with_a_look_at_every_pair(pairs: list[tuple[float, float]]) -> None:
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    expected = plain_tau(left, right)
    assert kendall(left, right) == (None if expected is None else pytest.approx(expected))


def test_agreement_with_a_scale_that_runs_the_other_way_is_positive() -> None:
    rates, people = {"a": 0.0, "b": 0.5, "c": 1.0}, {"a": 5, "b": 2, "c": 1}
    same, opposite = (human_agreement(rates, people, opposite=way) for way in (False, True))
    for name in ("pearson", "spearman", "kendall"):
        assert getattr(opposite, name) == pytest.approx(-getattr(same, name))
        assert getattr(opposite, name) > 0.9


def test_human_agreement_joins_by_id() -> None:
    found = human_agreement({"a": 0.1, "b": 0.5, "c": None, "d": 0.9}, {"b": 3, "a": 1, "c": 2})
    assert found.pearson == pytest.approx(1)
    assert found.n == 2


# Krippendorff (2011), section D: four observers, twelve units.
OBSERVERS = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
)
UNITS = [[rating for rating in unit if rating is not None] for unit in zip(*OBSERVERS, strict=True)]


@pytest.mark.parametrize(
    ("level", "alpha"),
    [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)],
)
def test_alpha_of_the_published_example(level: str, alpha: float) -> None:
    found = krippendorff_alpha(UNITS, level)  # type: ignore[arg-type]  # names from the table
    assert found == pytest.approx(alpha, abs=5e-4)


def test_ratings_without_an_alpha() -> None:
    assert krippendorff_alpha([[-1, 1], [1, 1], [2, 2]], "ratio") is None
    assert krippendorff_alpha([[0, 1], [1, 1], [2, 2]], "ratio") is not None
    assert krippendorff_alpha([[1e-200, 2e-200], [3e-200, 1e-200]], "interval") is None


def test_alpha_agrees_with_the_package() -> None:
    package = pytest.importorskip("krippendorff", reason="the package krippendorff is absent")
    draw = random.Random(3)
    for level in ("nominal", "ordinal", "interval"):
        units = [[draw.randint(1, 5) for _ in range(3)] for _ in range(40)]
        columns = [list(map(float, rater)) for rater in zip(*units, strict=True)]
        theirs = package.alpha(reliability_data=columns, level_of_measurement=level)
        assert krippendorff_alpha(units, level) == pytest.approx(theirs)


def test_alpha_where_there_is_nothing_to_say() -> None:
    assert krippendorff_alpha([[1], [2]]) is None
    assert krippendorff_alpha([[1, 1], [1, 1]]) is None
    assert krippendorff_alpha([["a", "a"], ["b", "b"]]) == 1
    with pytest.raises(ValueError, match="not a finite number"):
        krippendorff_alpha([["a", "b"]], "interval")
    with pytest.raises(ValueError, match="unknown level"):
        krippendorff_alpha([[1, 2]], "best")  # type: ignore[arg-type]  # wrong on purpose
