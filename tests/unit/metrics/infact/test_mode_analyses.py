"""INFACT's analyses on small cases worked out by hand."""

from __future__ import annotations

import pytest

from hallujudge.metrics.infact.mode_analyses import (
    AuditedCase,
    Overconfidence,
    label_audit,
    mode_means,
)


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
    found = Overconfidence(hallucination_like=3, knowledge_gap_like=1).plus("other")
    assert found.analysable == 5
    assert found.overconfident_share == pytest.approx(0.6)
    assert found.plus("unanalysable").knowledge_gap_share == pytest.approx(0.2)
    assert Overconfidence().overconfident_share is None


def test_audits_take_a_majority_of_people() -> None:
    cases = [
        AuditedCase("a", ("a", "a", "b")),
        AuditedCase("a", ("b", "a", "b")),
        AuditedCase("a", ("a", None, None)),
        AuditedCase("a", ("a", "b", None)),
        AuditedCase("a", ("a", None)),
    ]
    found = label_audit(cases)
    assert (found.cases, found.answerable, found.preserved, found.no_majority) == (5, 3, 1, 1)
    assert found.answerability == pytest.approx(0.6)
    assert found.label_preservation == pytest.approx(1 / 3)
    assert (label_audit([]).answerability, label_audit([]).label_preservation) == (None, None)
