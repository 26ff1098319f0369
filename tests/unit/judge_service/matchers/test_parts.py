"""The part of a triplet that a verdict names as wrong."""

from __future__ import annotations

from support.word_matchers import GRAPH, WordEncoder, judged, published, query

from hallujudge.judge_service.matchers.cosine_matcher import PartRule
from hallujudge.judge_service.matchers.matcher_interface import ClaimQuery
from hallujudge.judge_service.matchers.vectors import VectorStore
from hallujudge.metrics.framework.claims import ClaimVerdict, Part, Triplet, Verdict


def test_parts_follow_the_papers_definition() -> None:
    found = judged(
        published(support_above=0.9),
        query("cat", "riding", "horse"),
        query("man", "riding", "cat"),
        query("MAN", "under", "tree"),
        query("cat", "eats", "fish"),
        query("Cats eat fish."),
    )
    assert [verdict.part for verdict in found] == [
        Part.SUBJECT,
        Part.OBJECT,
        Part.RELATION,
        Part.SUBJECT,
        None,
    ]
    listed = ClaimQuery(claim=Triplet("cat", "on", "sky"), references=GRAPH, objects=("Cat",))
    assert judged(published(), listed)[0].part is Part.RELATION
    none = judged(published(parts="none", support_above=0.9), query("cat", "riding", "horse"))
    assert none[0].part is None


def test_near_names_count_as_the_same_object() -> None:
    store = VectorStore(WordEncoder(), 100)
    wrong = ClaimVerdict(triplet=Triplet("old man", "x", "tree"), verdict=Verdict.NOT_SUPPORTED)
    claim = query("old man", "x", "tree")
    assert PartRule(store, 0.5).with_parts([claim], [wrong])[0].part is Part.RELATION
    assert PartRule(store, 0.9).with_parts([claim], [wrong])[0].part is Part.SUBJECT
