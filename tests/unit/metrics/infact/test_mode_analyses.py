"""INFACT's analyses on small cases worked out by hand."""

from __future__ import annotations

import pytest

from hallujudge.metrics.infact.mode_analyses import mode_means, overconfidence


def test_modes_need_every_operator() -> None:
    full = dict.fromkeys(("gaussian_noise", "motion_blur", "compression"), 0.6)
    found = mode_means({**full, "shuffle": 0.2, "reverse": 0.4})
    assert found.rr_visual_degradation == pytest.approx(0.6)
    assert found.tss == pytest.approx(0.3)
    assert found.rr_evidence_corruption is None
    assert found.average is None
    with pytest.raises(ValueError, match="rotate"):
        mode_means({"rotate": 1.0})


def test_overconfidence() -> None:
    wrong = [(0.9, False), (0.7, False), (0.4, False), (0.5, False), (0.9, True), (None, False)]
    found = overconfidence(wrong)
    assert (found.hallucination_like, found.knowledge_gap_like, found.other) == (3, 1, 1)
    assert (found.unanalysable, found.analysable) == (1, 5)
    assert found.overconfident_share == pytest.approx(0.6)
    with pytest.raises(ValueError, match="nan"):
        overconfidence([(float("nan"), False)])
