"""The versions that signatures name."""

from __future__ import annotations

from hallujudge.judge_service.extractors.rules.rule_extractors import (
    LABEL,
    OBJECTS_LABEL,
    RuleNounExtractor,
)


def test_nouns_and_objects_have_versions_of_their_own() -> None:
    assert (LABEL, RuleNounExtractor().label, OBJECTS_LABEL) == ("rules-3", "rules-3", "objects-2")
