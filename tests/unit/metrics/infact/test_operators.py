"""INFACT's taxonomy and the means over it."""

from __future__ import annotations

import pytest
from support.qa_samples import infact_means

from hallujudge.metrics.infact.operators import (
    OPERATORS,
    TAXONOMY,
    AuditedCase,
    Overconfidence,
    label_audit,
    level_of,
    taxonomy_means,
    undefined_note,
)


def test_the_taxonomy() -> None:
    leaves = {d: sum(len(names) for names in levels.values()) for d, levels in TAXONOMY.items()}
    assert leaves == {"faithfulness": 12, "factuality": 12}
    assert level_of("1.1 Entity Recognition") == "static entities & attributes"
    assert level_of("spatio-temporal continuity reasoning") == "physical knowledge"
    assert level_of("something else") == ""
    means = taxonomy_means(
        {
            "Entity Recognition": 0.5,
            "unique entity counting": 1.0,
            "Scene Text Recognition": None,
            "Action Recognition": 0.25,
        }
    )
    assert means["faithfulness/static entities & attributes"] == 0.75
    assert means["faithfulness/dynamic actions & motions"] == 0.25
    assert means["faithfulness"] == 0.5
    assert means["factuality"] is None
    assert len(means) == 2 + 6 + 24
    with pytest.raises(ValueError, match="juggling"):
        taxonomy_means({"juggling": 1.0})


@pytest.mark.parametrize(
    ("missing", "note"),
    [
        ((), ""),
        (
            ("gaussian_noise", "compression"),
            "No value: rr_visual_degradation, average. They are means over operators, and no "
            "base-right question has a parsed answer under gaussian_noise, compression.",
        ),
        (
            ("caption_injection", "reverse"),
            "No value: rr_evidence_corruption, tss, average. They are means over operators, and no "
            "base-right question has a parsed answer under caption_injection, reverse. tss counts "
            "order-sensitive questions only.",
        ),
    ],
)
def test_operators_without_a_base_right_answer_are_named(
    missing: tuple[str, ...], note: str
) -> None:
    asked = {f"asked_{name}": float(name not in missing) for name in OPERATORS}
    assert undefined_note({"runs": 2.0, "right_base": 1.0, **asked}) == note


def test_without_a_right_answer_to_the_clean_video_no_operator_is_named() -> None:
    nothing = {"runs": 2.0, "right_base": 0.0} | {f"asked_{name}": 0.0 for name in OPERATORS}
    assert undefined_note(nothing) == (
        "No value: rr_visual_degradation, rr_evidence_corruption, tss, average. No question has a "
        "right answer to the clean video."
    )
    assert undefined_note({**nothing, "runs": 0.0}) == ""


def test_modes_need_every_operator() -> None:
    full = dict.fromkeys(("gaussian_noise", "motion_blur", "compression"), 0.6)
    found = infact_means({**full, "shuffle": 0.2, "reverse": 0.4})
    assert found["rr_visual_degradation"] == pytest.approx(0.6)
    assert found["tss"] == pytest.approx(0.3)
    assert found["rr_evidence_corruption"] is None
    assert found["average"] is None


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
