"""Cohen's kappa of two judges, and its interval."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallujudge.metrics.framework.agreement import JudgedTwice, cohen_kappa

VERDICTS = st.sampled_from(["right", "wrong", "unclear"])
PAIRS = st.lists(
    st.builds(JudgedTwice, st.sampled_from(["a", "b", "c"]), VERDICTS, VERDICTS), max_size=20
)


def pairs_of(counts: dict[tuple[str, str], int]) -> list[JudgedTwice]:
    cells = [cell for cell, count in counts.items() for _ in range(count)]
    return [JudgedTwice(str(number), *cell) for number, cell in enumerate(cells)]


def test_a_textbook_table() -> None:
    counts = {("yes", "yes"): 20, ("yes", "no"): 5, ("no", "yes"): 10, ("no", "no"): 15}
    found = cohen_kappa(pairs_of(counts))
    assert (found.n, found.agreement) == (50, 0.7)
    assert found.kappa == pytest.approx(0.4)
    assert found.ci_low is not None
    assert found.ci_high is not None
    # The textbook's standard error, 0.126, is that of a normal interval.
    assert found.ci_low == pytest.approx(0.4 - 1.96 * 0.126, abs=0.03)
    assert found.ci_high == pytest.approx(0.4 + 1.96 * 0.126, abs=0.03)


def test_clusters_that_agree_in_themselves_widen_the_interval() -> None:
    counts = {("yes", "yes"): 20, ("yes", "no"): 5, ("no", "yes"): 10, ("no", "no"): 15}
    single = pairs_of(counts)
    joined = [pair._replace(cluster=str(int(pair.cluster) // 5)) for pair in single]
    narrow, wide = cohen_kappa(single), cohen_kappa(joined)
    assert narrow.kappa == wide.kappa
    assert None not in (narrow.ci_low, wide.ci_low)
    assert wide.ci_low < narrow.ci_low  # type: ignore[operator]  # both are there


def test_kappa_is_not_defined_without_a_difference_by_chance() -> None:
    assert cohen_kappa([]).kappa is None
    same = cohen_kappa(pairs_of({("yes", "yes"): 5}))
    assert (same.agreement, same.kappa, same.ci_low) == (1.0, None, None)


@given(pairs=PAIRS)
def test_kappa_is_that_of_the_definition(pairs: list[JudgedTwice]) -> None:
    found = cohen_kappa(pairs)
    size = len(pairs)
    if not size:
        assert found.agreement is None
        return
    same = sum(pair.one == pair.other for pair in pairs) / size
    chance = (
        sum(
            sum(pair.one == verdict for pair in pairs)
            * sum(pair.other == verdict for pair in pairs)
            for verdict in ("right", "wrong", "unclear")
        )
        / size**2
    )
    assert found.agreement == pytest.approx(same)
    if chance == 1:
        assert found.kappa is None
    else:
        assert found.kappa == pytest.approx((same - chance) / (1 - chance))
        assert found.ci_low is None or -1 <= found.ci_low <= found.kappa + 1e-9  # type: ignore[operator]  # it is there
