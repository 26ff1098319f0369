"""The entailment matcher: premises, hypotheses and long texts."""

from __future__ import annotations

from support.word_matchers import GRAPH, WordEntailment, judged, nli, query

from hallujudge.judge_service.matchers.nli import hypothesis, premises
from hallujudge.metrics.framework.claims import Part, Verdict
from hallujudge.metrics.framework.triplets import Sentence, Triplet


def test_premises_are_packed_in_order_and_none_is_lost() -> None:
    sentences = {3: "a b.", 5: "c d.", 8: "e f g h i j.", 9: "k."}
    lengths = {key: len(text.split()) for key, text in sentences.items()}
    packed = premises(sentences, lengths, 4)
    assert [p.made_of for p in packed] == [(3, 5), (8,), (9,)]
    assert packed[0].text == "a b. c d."
    assert [p.made_of for p in premises(sentences, lengths, 0)] == [(3,), (5,), (8,), (9,)]
    assert premises({}, {}, 5) == []


def test_nli_compares_claims_with_retained_sentences() -> None:
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
