"""The cosine matcher: the published procedure, thresholds and order, and the wrong parts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import tri_he_published as oracle
from support.sizes import examples
from support.word_matchers import GRAPH, WordEncoder, WordPairs, judged, published, query, small

from hallujudge.judge_service.matchers import ClaimMatcher, ClaimQuery, VectorStore
from hallujudge.judge_service.matchers.cosine_matcher import MAX_CLAIM_CHARS, PartRule
from hallujudge.metrics.framework.claims import ClaimVerdict, Part, Triplet, Verdict, reference_of

WORDS = st.sampled_from(
    ["man", "dog", "horse", "tree", "sky", "bus", "riding", "under", "is", "blue", "red", "old"]
)


PARTS = st.builds(" ".join, st.lists(WORDS, min_size=1, max_size=3))


TRIPLETS = st.tuples(PARTS, PARTS, PARTS)


@settings(max_examples=examples(60), deadline=None)
@given(
    claims=st.lists(TRIPLETS, min_size=1, max_size=6),
    graph=st.lists(TRIPLETS, min_size=1, max_size=8),
)
def test_published_is_the_plain_procedure(
    claims: list[tuple[str, str, str]], graph: list[tuple[str, str, str]]
) -> None:
    written = [f"({', '.join(triplet)})" for triplet in graph]
    references = tuple(reference_of(text) for text in written)
    found = judged(published(), *(query(*claim, references=references) for claim in claims))
    encoder = WordEncoder()
    for verdict, claim in zip(found, claims, strict=True):
        answer, score = oracle.judge_claim(encoder.encode, claim, oracle.reference_texts(written))
        assert verdict.score == pytest.approx(score, abs=2e-6)
        if abs(score - 0.6) > 1e-5:
            assert (verdict.verdict is Verdict.SUPPORTED) == (answer == "yes")


def test_verdicts_say_what_decided_them() -> None:
    right, wrong = judged(
        published(), query("man", "riding", "horse"), query("cat", "eats", "fish")
    )
    assert right.verdict is Verdict.SUPPORTED
    assert right.references == (GRAPH[0],)
    assert right.margin == pytest.approx((right.score or 0) - 0.6)
    assert right.part is None
    assert wrong.verdict is Verdict.NOT_SUPPORTED
    assert len(wrong.references) == 3
    assert wrong.judge == "matcher:published/words"


@pytest.mark.parametrize("matcher", [published(), small(WordPairs())], ids=["published", "small"])
def test_what_cannot_be_judged_is_unscored_with_reason(matcher: ClaimMatcher) -> None:
    found = judged(
        matcher,
        query("man", "riding", "horse", references=None),
        query("man", "riding", "horse", references=()),
        query(" ", "", ""),
        query("x" * (MAX_CLAIM_CHARS + 1)),
        query("man", "riding", "horse"),
    )
    assert [verdict.reason for verdict in found] == [
        "REFERENCE_MISSING",
        "REFERENCE_MISSING",
        "CLAIM_EMPTY",
        "CLAIM_TOO_LONG",
        "",
    ]
    assert all(v.verdict is Verdict.UNSCORED and v.detail for v in found[:4])
    assert found[4].verdict is Verdict.SUPPORTED
    assert judged(matcher) == []


def test_thresholds_decide_and_stand_in_the_label() -> None:
    claim = query("man", "near", "horse")
    assert judged(published(), claim)[0].verdict is Verdict.SUPPORTED
    strict = published(support_above=0.99, keep_above=0.9, top=1)
    assert judged(strict, claim)[0].verdict is Verdict.NOT_SUPPORTED
    assert strict.label == "published/words@0/words/keep>0.9/top1/sup>0.99/parts-objects"
    assert strict.settings["matcher_support_above"] == "0.99"
    assert judged(published(top=1), query("cat", "eats", "fish"))[0].references[1:] == ()


def test_equal_triplets_written_differently_are_not_mixed_up() -> None:
    plain = (Triplet("bus", "is", "red"),)
    slip = (reference_of("(bus, is,red)"),)
    assert plain == slip
    found = judged(
        published(),
        query("bus", "is", "red", references=plain),
        query("bus", "is", "red", references=slip),
    )
    assert found[0].score != found[1].score


def test_more_claims_than_a_round_come_back_in_order() -> None:
    queries = [query("man", "riding", "horse"), query("cat", "eats", f"fish{1}")] * 1300
    found = judged(published(), *queries)
    assert [v.triplet for v in found] == [q.claim for q in queries]


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
