"""INFACT's taxonomy and the means over it."""

from __future__ import annotations

import pytest

from hallujudge.metrics.infact.mode_analyses import taxonomy_means
from hallujudge.metrics.infact.operators import TAXONOMY, level_of


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
