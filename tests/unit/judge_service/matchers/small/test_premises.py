"""Scene graphs in words, and their packing into premises."""

from __future__ import annotations

from support.word_matchers import query

from hallujudge.judge_service.matchers.small_matcher import (
    Fact,
    Premise,
    Room,
    cut_to_fit,
    facts_of,
    hypothesis,
    packed,
)
from hallujudge.metrics.framework.claims import Sentence, Triplet


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
