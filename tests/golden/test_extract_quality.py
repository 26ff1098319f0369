"""The rule extractors against human annotations.

The tables are in docs/explanation/rule-extractor-quality.md.

The floors stand a little under the figures seen, so that a rule that breaks shows and one that
moves a handful of cases does not.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from oracles.claim_reading import labelled, missed_share, read, right_share
from oracles.extraction_scores import (
    DOMAINS,
    descriptions,
    graph_scores,
    keyword_scores,
    read_annotations,
    triplet_scores,
)
from oracles.reading_sheet import draw
from oracles.rule_lists import lists, size

from hallujudge.judge_service.extractors.rules.rule_extractors import (
    RuleKeywordExtractor,
    RuleTripletExtractor,
)

_ANNOTATIONS = Path(__file__).resolve().parents[1] / "data/keywords/descriptions.jsonl"


def test_every_word_list_of_the_rules_has_a_line_of_its_evaluation() -> None:
    """After a change of a list, measure it again: ``python -m oracles.rule_lists GOLDENS``."""
    page = Path(__file__).resolve().parents[2] / "docs/explanation/rule-extractor-quality.md"
    rows = [line.split(" | ")[:2] for line in page.read_text("utf-8").splitlines()]
    lines = {row[0]: row[1] for row in rows if len(row) > 1}
    for name, words in lists().items():
        assert lines.get(f"| `{name}`") == str(size(words)), name


@pytest.mark.parametrize("half", ["dev", "held_out"])
def test_annotated_objects_that_the_answer_states_are_found(goldens: Path, half: str) -> None:
    data = json.loads((goldens / "tri_he/tri-he.json").read_text(encoding="utf-8"))
    scores = triplet_scores(data, half, RuleTripletExtractor())
    assert scores.ends.wanted > 500
    assert scores.ends.recall >= 0.96
    assert scores.ends_exact.recall >= 0.85
    assert scores.image_objects.recall >= 0.94
    assert scores.stated_triplets.recall >= 0.25
    # "It could be winter" names nothing in an image, and claims nothing since rules-3.
    assert scores.empty <= 30


@pytest.mark.parametrize(
    ("half", "right", "missed"), [("dev", 0.86, 0.17), ("held_out", 0.79, 0.24)]
)
def test_claims_of_sentences_that_a_reader_judged(half: str, right: float, missed: float) -> None:
    rows = labelled(half)
    assert len(rows) == 60
    readings = [read(row, RuleTripletExtractor().extract) for row in rows]
    assert not [claim for each in readings for claim in each.unread]
    assert right_share(readings) >= right
    assert missed_share(readings) <= missed


@pytest.mark.parametrize("half", ["dev", "held_out"])
def test_keywords_of_annotated_descriptions(half: str) -> None:
    rows = [row for row in read_annotations(_ANNOTATIONS) if row["half"] == half]
    assert len(rows) == 50
    scores = keyword_scores(rows, RuleKeywordExtractor())
    assert min(scores.objects.precision, scores.objects.recall) >= 0.93, scores.missed
    assert min(scores.behaviors.precision, scores.behaviors.recall) >= 0.90, scores.extra


@pytest.mark.parametrize("domain", DOMAINS)
def test_published_graphs_know_most_keywords(goldens: Path, domain: str) -> None:
    extractor = RuleKeywordExtractor()
    texts = [text for _, text in descriptions(goldens / "mementos", domain)]
    extracted = [extractor.extract(text) for text in texts]
    for kind in ("objects", "behaviors"):
        scores = graph_scores(goldens / "mementos", domain, kind, extracted)
        assert scores.roots_found >= 0.7 * scores.roots
        assert scores.known >= 0.75 * scores.keywords


def test_a_new_blind_reading_draws_no_response_that_was_read(goldens: Path) -> None:
    read = {drawn.text for drawn in draw(goldens, 20261122, 10)}
    assert read & {drawn.text for drawn in draw(goldens, 20261124, 8)}
    fresh = draw(goldens, 20261124, 8, read)
    assert len(fresh) == 64
    assert not read & {drawn.text for drawn in fresh}
