"""Matchers over stand-in models: retention, texts, parts, splitting, caching. No model needed."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import tri_he_published as oracle

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.judges.matcher import MatcherJudge
from hallujudge.judge_service.judges.values import Judge, JudgeRequestItem
from hallujudge.judge_service.matchers import ClaimMatcher, ClaimQuery, MatcherSettings
from hallujudge.judge_service.matchers.cosine import MAX_CLAIM_CHARS, CosineMatcher
from hallujudge.judge_service.matchers.nli import NliMatcher, hypothesis, premises
from hallujudge.judge_service.matchers.parts import PartRule
from hallujudge.judge_service.matchers.texts import claim_text, reference_text
from hallujudge.judge_service.matchers.vectors import VectorStore, length_batches
from hallujudge.metrics.framework.claims import ClaimVerdict, Part, Verdict
from hallujudge.metrics.framework.triplets import Sentence, Triplet, reference_of

GRAPH = tuple(
    reference_of(text)
    for text in ("(man, riding, horse)", "(dog, under, tree)", "(sky, is, blue)", "(bus, is,red)")
)


class WordEncoder:
    """Vectors of words: texts that share words are near each other. It counts what it is asked."""

    label = "words"
    size = 64

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        return np.stack([self._vector(text) for text in texts]).astype(np.float32)

    def _vector(self, text: str) -> Any:
        words = sorted(text.lower().replace(".", " ").split())
        row = np.full(self.size, 1e-3)
        for word in words:
            # A direction of its own for each word, so that no two cosines are equal by chance.
            seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8])
            row += np.random.default_rng(seed).normal(size=self.size)
        return row / np.linalg.norm(row)


class WordEntailment:
    """Entails what shares all its words with the premise; one token for each word."""

    label = "word-nli@0"

    def __init__(self, room: int = 12) -> None:
        self.room = room
        self.pairs: list[tuple[str, str]] = []

    def lengths(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        self.pairs += pairs
        for premise, text in pairs:
            assert sum(self.lengths([premise, text])) <= self.room, "a premise was not split"
        return [self._share(premise, text) for premise, text in pairs]

    def _share(self, premise: str, text: str) -> float:
        words = set(text.lower().strip(".").split())
        return len(words & set(premise.lower().replace(".", " ").split())) / len(words)


def published(encoder: WordEncoder | None = None, **changes: Any) -> CosineMatcher:
    chosen = MatcherSettings(**changes)
    store = VectorStore(encoder or WordEncoder(), chosen.cached_vectors)
    return CosineMatcher(chosen, store, "words@0/words")


def nli(model: WordEntailment, **changes: Any) -> NliMatcher:
    chosen = MatcherSettings(protocol="nli", nli_model="m", **changes)
    return NliMatcher(chosen, VectorStore(WordEncoder(), 100), "words@0/words", model)


def query(*claim: str, references: tuple[Triplet, ...] | None = GRAPH) -> ClaimQuery:
    parts = Triplet(*claim) if len(claim) == 3 else Sentence(*claim)
    return ClaimQuery(claim=parts, references=references)


def judged(matcher: ClaimMatcher, *queries: ClaimQuery) -> list[ClaimVerdict]:
    return asyncio.run(matcher.judge(queries))


def test_texts_are_the_released_ones() -> None:
    assert claim_text(Triplet("Lamp (old)", "turned on", "a, b")) == "Lamp (old) turned on a, b"
    assert reference_text(Triplet("Lamp (old)", "is", "a, b")) == "Lamp old is a b."
    assert reference_text(GRAPH[3]) == "bus isred."
    assert claim_text(Triplet("a\ud800", "b", "c")) == "a� b c".replace("�", "�" * 3)


WORDS = st.sampled_from(
    ["man", "dog", "horse", "tree", "sky", "bus", "riding", "under", "is", "blue", "red", "old"]
)
PARTS = st.builds(" ".join, st.lists(WORDS, min_size=1, max_size=3))
TRIPLETS = st.tuples(PARTS, PARTS, PARTS)


@settings(max_examples=60, deadline=None)
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


@pytest.mark.parametrize("matcher", [published(), nli(WordEntailment())], ids=["published", "nli"])
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
    asked = query("old man", "x", "tree")
    assert PartRule(store, 0.5).told([asked], [wrong])[0].part is Part.RELATION
    assert PartRule(store, 0.9).told([asked], [wrong])[0].part is Part.SUBJECT


def test_each_distinct_text_is_embedded_once() -> None:
    encoder = WordEncoder()
    matcher = published(encoder)
    queries = [query("man", "riding", "horse"), query("cat", "eats", "fish")] * 50
    first = judged(matcher, *queries)
    assert len(encoder.asked) == len(set(encoder.asked))
    before = len(encoder.asked)
    assert judged(matcher, *queries) == first
    assert len(encoder.asked) == before, "a second call finds every vector"


def test_the_cache_is_bounded_and_can_be_off() -> None:
    for limit in (0, 3):
        encoder = WordEncoder()
        store = VectorStore(encoder, limit)
        texts = [f"text {number}" for number in range(10)]
        assert set(store.vectors(texts)) == set(texts)
        assert len(store._kept) == limit
        store.vectors(texts[-3:])
        assert len(encoder.asked) == 10 + (3 if limit == 0 else 0)


def test_batches_are_of_equal_length_and_bounded() -> None:
    lengths = [5, 3, 5, 5, 900, 3]
    batches = length_batches(lengths, tokens=10)
    assert batches == [[1, 5], [0, 2], [3], [4]]
    assert length_batches([]) == []
    assert length_batches([0, 0]) == [[0, 1]]


def test_more_claims_than_a_round_come_back_in_order() -> None:
    queries = [query("man", "riding", "horse"), query("cat", "eats", f"fish{1}")] * 1300
    found = judged(published(), *queries)
    assert [v.triplet for v in found] == [q.claim for q in queries]


def test_premises_are_packed_in_order_and_none_is_lost() -> None:
    sentences = {3: "a b.", 5: "c d.", 8: "e f g h i j.", 9: "k."}
    lengths = {key: len(text.split()) for key, text in sentences.items()}
    packed = premises(sentences, lengths, 4)
    assert [p.made_of for p in packed] == [(3, 5), (8,), (9,)]
    assert packed[0].text == "a b. c d."
    assert [p.made_of for p in premises(sentences, lengths, 0)] == [(3,), (5,), (8,), (9,)]
    assert premises({}, {}, 5) == []


def test_nli_holds_claims_against_retained_sentences() -> None:
    model = WordEntailment(room=100)
    right, wrong = judged(
        nli(model), query("man", "riding", "horse"), query("dog", "eats", "two fish")
    )
    assert right.verdict is Verdict.SUPPORTED
    assert right.score == 1
    assert right.references == (GRAPH[0],)
    assert wrong.verdict is Verdict.NOT_SUPPORTED
    assert wrong.part is Part.OBJECT
    assert ("man riding horse.", "man riding horse.") in model.pairs
    assert hypothesis(Sentence("Is it red?")) == "Is it red?"


def test_nli_splits_long_premises_and_takes_the_best_piece() -> None:
    graph = tuple(Triplet("man", "riding", f"horse number {n}") for n in range(20))
    model = WordEntailment(room=15)
    verdict = judged(nli(model), query("man", "riding", "number 17", references=graph))[0]
    assert verdict.verdict is Verdict.SUPPORTED
    assert verdict.score == 1
    assert len(model.pairs) == 10, "two sentences of five words beside a claim of four"
    assert graph[17] in verdict.references
    assert len(verdict.references) == 2


def test_nli_without_room_for_a_sentence_is_unscored() -> None:
    model = WordEntailment(room=5)
    verdict = judged(nli(model), query("man", "riding", "horse"))[0]
    assert (verdict.verdict, verdict.reason) == (Verdict.UNSCORED, "CLAIM_TOO_LONG")
    assert "6 tokens; the model reads 5" in verdict.detail


def test_nli_label_names_both_models_and_thresholds() -> None:
    matcher = nli(WordEntailment(), entail_above=0.7)
    assert matcher.label == (
        "nli/word-nli@0/retain-words@0/words/keep>0.5/top3/entail>0.7/parts-objects"
    )
    assert matcher.name == "matcher:nli/word-nli"


def test_a_matcher_is_a_judge() -> None:
    judge = MatcherJudge(published())
    assert isinstance(judge, Judge)
    items = [
        JudgeRequestItem(
            id="1", claims=(Triplet("man", "riding", "horse"),), reference_triplets=GRAPH
        ),
        JudgeRequestItem(id="2", claims=(), reference_triplets=GRAPH),
        JudgeRequestItem(
            id="3",
            claims=(Triplet("cat", "eats", "fish"), Triplet("", " ", "")),
            reference_triplets=GRAPH,
        ),
    ]
    found = asyncio.run(judge.judge(items))
    assert [len(item.verdicts) for item in found] == [1, 0, 2]
    assert found[2].asked[0].answered == 1
    assert found[2].asked[0].declined[0].reason == "CLAIM_EMPTY"
    identity = judge.identity
    assert identity.kind == "matcher"
    assert ("matcher_support_above", "0.6") in identity.parameters


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"protocol": "best"}, "protocol"),
        ({"backend": "gpu"}, "backend"),
        ({"parts": "some"}, "parts"),
        ({"keep_above": 1.5}, "keep_above"),
        ({"support_above": float("nan")}, "support_above"),
        ({"entail_above": -0.1}, "entail_above"),
        ({"top": 0}, "top"),
        ({"threads": -1}, "threads"),
        ({"cached_vectors": -1}, "cached_vectors"),
        ({"protocol": "nli"}, "nli_model"),
    ],
)
def test_settings_are_checked(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInputError, match=field) as caught:
        MatcherSettings(**changes)
    assert [violation.field for violation in caught.value.violations] == [field]
