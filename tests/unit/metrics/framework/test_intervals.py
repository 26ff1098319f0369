"""Settings of intervals."""

from __future__ import annotations

from hallujudge.metrics import IntervalSettings


def test_confidences_that_differ_have_signatures_that_differ() -> None:
    texts = {IntervalSettings(confidence=c).text for c in (0.95, 0.95000001, 0.9999999)}
    assert len(texts) == 3
    assert "cluster-bootstrap-1000-0.95" in texts
