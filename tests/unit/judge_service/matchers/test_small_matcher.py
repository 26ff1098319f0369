"""The small judge: scene graphs in words, premises, claims and long texts."""

from __future__ import annotations

from string import Formatter

import pytest
from support.messages import expected_message
from support.word_matchers import GRAPH, WordPairs, judged, query, small

from hallujudge.judge_service.matchers import SMALL_JUDGES, SmallPreset, preset_of
from hallujudge.judge_service.matchers.small_matcher import (
    Fact,
    Premise,
    Room,
    cut_to_fit,
    facts_of,
    hypothesis,
    packed,
)
from hallujudge.metrics.framework.claims import Part, Sentence, Triplet, Verdict


def test_nli_compares_claims_with_retained_sentences() -> None:
    model = WordPairs(limit=100)
    right, wrong = judged(
        small(model), query("man", "riding", "horse"), query("dog", "eats", "two fish")
    )
    assert right.verdict is Verdict.SUPPORTED
    assert right.score == 1
    assert right.references == (GRAPH[0],)
    assert wrong.verdict is Verdict.NOT_SUPPORTED
    assert wrong.part is Part.OBJECT
    assert ("man riding horse.", "man riding horse.") in model.pairs


def test_the_others_read_the_whole_scene_graph_and_the_objects() -> None:
    model = WordPairs(limit=100)
    verdict = judged(
        small(model, "factcg"), query("man", "riding", "horse", objects=("Dog", "lamp"))
    )[0]
    premise = "man riding horse. dog under tree. sky is blue. bus is red. There is lamp."
    assert model.pairs == [(premise, "man riding horse.")]
    assert verdict.references == (), "the whole scene graph, which the item's evidence has once"


def test_a_long_premise_is_split_and_the_best_piece_counts() -> None:
    graph = tuple(Triplet("man", "riding", f"horse number {n}") for n in range(20))
    model = WordPairs(limit=15)
    verdict = judged(small(model, "factcg"), query("man", "riding", "number 17", references=graph))[
        0
    ]
    assert verdict.verdict is Verdict.SUPPORTED
    assert verdict.score == 1
    assert len(model.pairs) == 10, "two sentences of five words and a claim of four"
    assert graph[17] in verdict.references
    assert len(verdict.references) == 2
    assert verdict.detail == ""


def test_a_sentence_that_does_not_fit_is_cut_and_the_verdict_says_so() -> None:
    graph = (Triplet("man", "riding", "horse " * 30), Triplet("dog", "under", "tree"))
    model = WordPairs(limit=10)
    verdict = judged(
        small(model, "minicheck-roberta"), query("man", "riding", "horse", references=graph)
    )[0]
    assert verdict.verdict is Verdict.SUPPORTED
    assert model.pairs[0] == (
        expected_message("metrics.framework.claims:man-riding-horse-horse-horse-horse-horse"),
        "man riding horse.",
    )
    said = "input truncated: 1 of 2 sentences of the references were cut to fit into the model's"
    assert verdict.to_json()["detail"] == f"{said} 10 tokens"
    assert "reason" not in verdict.to_json()


def test_a_huge_word_is_cut_before_it_is_tokenized() -> None:
    graph = (Triplet("man", "riding", "x" * 1_000_000),)
    model = WordPairs(limit=10)
    verdict = judged(small(model, "factcg"), query("man", "riding", "horse", references=graph))[0]
    assert len(model.pairs[0][0]) == 320
    assert "1 of 1 sentences" in verdict.detail


def test_a_claim_without_room_for_a_premise_is_unscored() -> None:
    model = WordPairs(limit=3)
    verdict = judged(small(model), query("man", "riding", "horse"))[0]
    assert (verdict.verdict, verdict.reason) == (Verdict.UNSCORED, "CLAIM_TOO_LONG")
    assert (
        expected_message(
            "judge_service.matchers.small_matcher:tokens-with-the-prompt-the-model-reads"
        )
        in verdict.detail
    )


def test_the_label_names_models_wording_and_thresholds() -> None:
    matcher = small(WordPairs(), small_above=0.7)
    assert matcher.label == (
        "nli/word-pairs@0/words-1-retained/top3/prob>0.7/parts-objects/keep>0.5/words@0/words"
    )
    assert matcher.name == "nli/word-pairs"
    other = small(WordPairs(), "hhem")
    assert other.label.startswith("hhem/word-pairs@0/words-1-all/prob>0.5/")


def test_margins_are_distances_to_the_threshold() -> None:
    claims = query("man", "riding", "horse"), query("man", "riding", "bus stop")
    verdicts = judged(small(WordPairs(limit=99), "factcg", small_above=0.8), *claims)
    assert [verdict.score for verdict in verdicts] == [1, 0.75]
    assert [verdict.margin for verdict in verdicts] == [0.2, -0.05]
    assert [verdict.verdict for verdict in verdicts] == [Verdict.SUPPORTED, Verdict.NOT_SUPPORTED]


def fact(text: str, position: int | None = None) -> Fact:
    return Fact(text=text, position=position)


def test_references_in_words() -> None:
    graph = tuple(
        Triplet(*parts)
        for parts in (("man", "on", "bus"), ("man", "on", "bus"), ("bus", "is", "red"))
    )
    asked = query("a", "b", "c", references=graph, objects=("Man", "lamp"))
    assert facts_of(asked, characters=99) == [
        fact("man on bus.", 0), fact("bus is red.", 2), fact("There is lamp."),
    ]  # fmt: skip
    assert facts_of(asked, {2}, characters=99) == [fact("bus is red.", 2)]
    cut = facts_of(asked, {2}, characters=4)
    assert cut == [Fact(text="bus ", position=2, is_cut=True)]


def test_claims_as_sentences() -> None:
    assert hypothesis(Triplet("man", "on", "bus")) == "man on bus."
    assert hypothesis(Sentence("Is it red?")) == "Is it red?"


def test_sentences_are_packed_in_order_and_none_is_lost() -> None:
    facts = [fact("a b.", 3), fact("c d.", 5), fact("e f g h i j.", 8), fact("k.")]
    sizes = {each.text: len(each.text.split()) for each in facts}

    def made(room: Room) -> list[str]:
        return [premise.text for premise in packed(facts, sizes, sizes, room)]

    assert made(Room(tokens=4)) == ["a b. c d.", "e f g h i j.", "k."]
    assert made(Room(tokens=99, chunk=4)) == ["a b. c d.", "e f g h i j.", "k."]
    assert made(Room(tokens=99)) == ["a b. c d. e f g h i j. k."]
    assert packed(facts, sizes, sizes, Room(tokens=99))[0].positions == (3, 5, 8)
    assert packed([], {}, {}, Room(tokens=5)) == []


def test_what_does_not_fit_is_split_and_then_cut() -> None:
    premise = Premise(facts=(fact("a b.", 0), fact("c d.", 1), fact("e f g h.", 2)))
    parts = cut_to_fit(premise, lambda text: len(text.split()) <= 2)
    assert [part.text for part in parts] == ["a b.", "c d.", "e f"]
    assert [part.facts[0].is_cut for part in parts] == [False, False, True]
    assert cut_to_fit(premise, lambda text: not text) == []


@pytest.mark.parametrize("preset", SMALL_JUDGES.values(), ids=list(SMALL_JUDGES))
def test_a_template_has_a_place_for_premise_and_claim(preset: SmallPreset) -> None:
    fields = {name for _, name, _, _ in Formatter().parse(preset.template) if name}
    assert fields - {"eos"} == ({"premise", "claim"} if preset.template else set())
    assert preset.licence
    assert not preset.chunk or preset.chunk <= preset.limit
    assert preset_of(preset.name) is preset
