"""Keywords matched over a graph: hits, near misses and unknown words."""

from __future__ import annotations

import json

import pytest

from hallujudge.synonym_graphs import (
    KeywordVariant,
    clean_word,
    compile_keywords,
    load_graph,
    maps_references,
    parse_graph,
)

WORDS = {"couch": {"": ["sofa"]}, "pick": {"": ["take"], "up": ["lift", "take"]}}


def test_the_root_that_the_reference_contains_wins() -> None:
    matcher = compile_keywords(load_graph("daily_life_objects"), variant="corrected")
    for root in ("baby", "child", "person"):
        assert matcher.counts([root], ["toddler"]).hits == 1
    assert matcher.counts(["baby"], ["person"]).hits == 0, "a kind is not its members"


@pytest.mark.parametrize("variant", ["published", "corrected"])
@pytest.mark.parametrize("lists", [(["couch"], ["sofa"]), (["sofa"], ["couch"])])
def test_graphs_of_ours_map_the_words_of_both_sides(
    variant: KeywordVariant, lists: tuple[list[str], list[str]]
) -> None:
    graph = load_graph("daily_life_objects")
    assert maps_references(graph, variant)
    matcher = compile_keywords(graph, variant=variant)
    assert matcher.counts(*lists) == matcher.match(*lists).counts == (1, 0, 0)
    # A word with several roots stands for the one that the model names, and else for the first.
    for said in ("baby", "child", "person"):
        assert matcher.counts(["toddler"], [said]).hits == 1
    long = [f"w{number}" for number in range(70)]
    assert matcher.counts([*long, *lists[0]], lists[1]) == (1, 0, 70)


def test_a_released_graph_maps_the_models_words_alone_as_published() -> None:
    graph = parse_graph(json.dumps(WORDS), name="g")
    published = compile_keywords(graph, variant="published")
    assert not maps_references(graph, "published")
    assert published.counts(["sofa"], ["couch"]) == (1, 0, 0)
    assert published.counts(["couch"], ["sofa"]) == (0, 1, 1)
    assert maps_references(graph, "corrected")
    assert compile_keywords(graph, variant="corrected").counts(["couch"], ["sofa"]) == (1, 0, 0)


def test_published_compares_words_as_they_are_written_with_any_graph() -> None:
    graph = load_graph("daily_life_objects")
    lists = (["Couch"], ["sofa"])
    assert compile_keywords(graph, variant="published").counts(*lists) == (0, 1, 1)
    assert compile_keywords(graph, variant="corrected").counts(*lists) == (1, 0, 0)


def test_unicode_forms_of_one_word_are_one_word() -> None:
    assert clean_word("cafe\u0301 table") == clean_word("  CAFÉ  table\u200b")
    matcher = compile_keywords(load_graph("general_objects"), variant="corrected")
    assert matcher.counts(["café"], ["CAFE\u0301"]).hits == 1
    assert matcher.counts(["naïve art"], ["nai\u0308ve art"]).hits == 1
    near = compile_keywords(load_graph("general_objects"), variant="published").match(
        ["naïve art"], ["nai\u0308ve art"]
    )
    assert [miss.why for miss in near.near] == ["spelling"]


def test_evidence_names_near_misses_and_unknown_words() -> None:
    matcher = compile_keywords(load_graph("daily_life_objects"), variant="corrected")
    found = matcher.match(["man", "red balloon", "sofa"], ["person", "balloon", "couch", "gizmo"])
    assert found.matched == (("couch", "sofa"),)
    assert found.missed == ("man", "red balloon")
    assert found.hallucinated == ("person", "balloon", "gizmo")
    assert ("person", "man", "direction") in found.near
    assert ("balloon", "red balloon", "word") in found.near
    assert found.unknown == ("gizmo", "red balloon")


def test_two_predictions_in_a_row_are_read_together() -> None:
    graph = parse_graph(json.dumps(WORDS), name="g")
    matcher = compile_keywords(graph, variant="published", pairs=True)
    found = matcher.match(["lift", "sofa"], ["pick", "up", "couch"])
    assert found.matched == (("pick + up", "lift"), ("couch", "sofa"))
    assert compile_keywords(graph, variant="published").counts(["lift"], ["pick", "up"]).hits == 0


def test_leftovers_count_once_as_published_and_each_when_corrected() -> None:
    graph = parse_graph(json.dumps(WORDS), name="g")
    lists = (["sofa"], ["couch", "dog", "cat", "owl"])
    assert compile_keywords(graph, variant="published").counts(*lists) == (1, 1, 0)
    assert compile_keywords(graph, variant="corrected").counts(*lists) == (1, 3, 0)


def test_a_keyword_that_is_spelt_by_one_and_taken_by_another_is_named_once() -> None:
    graph = parse_graph('{"people": {"": ["customers"]}, "customers": {"": ["x"]}}', name="g")
    lists = (["customers", "rock", "owl"], ["customers", "people", "dog"])
    published = compile_keywords(graph, variant="published")
    assert published.counts(*lists) == published.match(*lists).counts == (1, 1, 2)
    corrected = compile_keywords(graph, variant="corrected")
    assert corrected.counts(*lists) == corrected.match(*lists).counts


def test_near_misses_of_long_lists_have_an_end() -> None:
    graph = parse_graph('{"dog": ["puppy"]}', name="dogs")
    matcher = compile_keywords(graph, variant="corrected")
    reference, predicted = ([f"{side}{n} box" for n in range(400)] for side in "ab")
    found = matcher.match(reference, predicted)
    assert len(found.near) == 1000
    assert (found.near[0].predicted, found.near[0].reference) == ("b0 box", "a0 box")
    assert found.counts == (0, 400, 400)
