"""INFACT's taxonomy and the means over it."""

from __future__ import annotations

import pytest

from hallujudge.metrics.infact.mode_analyses import taxonomy_means
from hallujudge.metrics.infact.operators import OPERATORS, TAXONOMY, level_of, undefined_note


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
