"""The fast matching against the plain one, on graphs and lists of any kind."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import mementos_published as oracle
from support.sizes import examples

from hallujudge.metrics.mementos import keyword_scores
from hallujudge.synonym_graphs import (
    KeywordVariant,
    NearMiss,
    SynonymGraph,
    compile_keywords,
    load_graph,
    parse_graph,
)

WORDS = st.sampled_from(["pick", "pick up", " pick up", "up", "go", "move", "café", "Café", "go,"])
GRAPHS = st.dictionaries(
    WORDS,
    st.dictionaries(
        st.one_of(st.just(""), WORDS), st.lists(WORDS, max_size=3), min_size=1, max_size=2
    ),
    min_size=1,
    max_size=6,
)
LISTS = st.one_of(
    st.lists(WORDS, max_size=8),
    st.lists(WORDS, max_size=8, unique=True),
    # Longer lists than those that are remembered.
    st.lists(WORDS, min_size=60, max_size=70),
)
VARIANTS: tuple[KeywordVariant, ...] = ("published", "corrected")


def released(graph: oracle.Graph) -> SynonymGraph:
    import json

    return parse_graph(json.dumps(graph), name="drawn")


@settings(max_examples=examples(400), deadline=None)
@given(graph=GRAPHS, reference=LISTS, predicted=LISTS, pairs=st.booleans())
def test_published_is_the_plain_procedure(
    graph: oracle.Graph, reference: list[str], predicted: list[str], pairs: bool
) -> None:
    fast = compile_keywords(released(graph), variant="published", pairs=pairs)
    plain = oracle.counts(reference, predicted, oracle.ReleasedGraph(graph), pairs=pairs)
    assert tuple(fast.counts(reference, predicted)) == plain
    assert tuple(fast.match(reference, predicted).counts) == plain
    assert (
        keyword_scores(fast.counts(reference, predicted), variant="published").f1
        == (oracle.scores(*plain)["f1"])
    )


@settings(max_examples=examples(400), deadline=None)
@given(graph=GRAPHS, reference=LISTS, predicted=LISTS, pairs=st.booleans())
def test_published_evidence_is_what_the_plain_procedure_did(
    graph: oracle.Graph, reference: list[str], predicted: list[str], pairs: bool
) -> None:
    found = compile_keywords(released(graph), variant="published", pairs=pairs).match(
        reference, predicted
    )
    plain = oracle.evidence(reference, predicted, oracle.ReleasedGraph(graph), pairs=pairs)
    assert found.matched == plain.matched
    assert found.hallucinated == plain.hallucinated
    assert found.missed == plain.missed


@settings(max_examples=examples(100), deadline=None)
@given(graph=GRAPHS, lists=st.lists(st.tuples(LISTS, LISTS), max_size=6), pairs=st.booleans())
def test_many_pairs_are_counted_as_each_alone(
    graph: oracle.Graph, lists: list[tuple[list[str], list[str]]], pairs: bool
) -> None:
    for variant in VARIANTS:
        matcher = compile_keywords(released(graph), variant=variant, pairs=pairs)
        alone = [matcher.match(*pair).counts for pair in lists]
        assert matcher.counts_many(lists) == alone
        assert matcher.counts_many(reversed(lists)) == alone[::-1], "what is kept changes nothing"


@settings(max_examples=examples(300), deadline=None)
@given(graph=GRAPHS, data=st.data(), pairs=st.booleans())
def test_corrected_counts_leftovers_and_nothing_else_on_a_released_graph(
    graph: oracle.Graph, data: st.DataObject, pairs: bool
) -> None:
    roots = sorted({r for ways in graph.values() for found in ways.values() for r in found})
    known = sorted({*graph, *roots})
    if not roots:
        return
    reference = data.draw(st.lists(st.sampled_from(roots), max_size=6))
    predicted = data.draw(st.lists(st.sampled_from(known), max_size=8))
    singles = {r for ways in graph.values() for r in ways.get("", [])}
    if not singles.issuperset(reference):
        return
    fast = compile_keywords(released(graph), variant="corrected", pairs=pairs)
    plain = oracle.counts(
        reference, predicted, oracle.ReleasedGraph(graph), pairs=pairs, leftovers_as_one=False
    )
    assert tuple(fast.counts(reference, predicted)) == plain


OURS = load_graph("daily_life_objects")
FORMS = st.lists(
    st.sampled_from([form for form, _ in OURS.edges] + ["zzz", "Dogs", "qq"]), max_size=9
)


@settings(max_examples=examples(300), deadline=None)
@given(reference=FORMS, predicted=FORMS)
def test_bounds_and_evidence(reference: list[str], predicted: list[str]) -> None:
    for variant in VARIANTS:
        matcher = compile_keywords(OURS, variant=variant)
        found = matcher.match(reference, predicted)
        assert found.counts == matcher.counts(reference, predicted)
        assert min(found.counts) >= 0
        assert len(found.missed) >= found.counts.missed
        assert set(found.hallucinated) <= set(predicted)
        assert set(found.missed) <= set(reference)
        for word in found.unknown:
            assert not OURS.roots_of(word)


@settings(max_examples=examples(200), deadline=None)
@given(words=FORMS)
def test_a_list_matches_itself_on_our_graphs(words: list[str]) -> None:
    for variant in VARIANTS:
        counts = compile_keywords(OURS, variant=variant).counts(words, words)
        assert (counts.wrong, counts.missed) == (0, 0)


@settings(max_examples=examples(200), deadline=None)
@given(reference=FORMS, predicted=FORMS)
@example(reference=["boy", "children"], predicted=["adult", "boy"])
def test_near_misses_are_those_of_each_pair_in_order(
    reference: list[str], predicted: list[str]
) -> None:
    matcher = compile_keywords(OURS, variant="published")
    found = matcher.match(reference, predicted)
    misses: list[NearMiss] = []
    for word in found.hallucinated:
        for keyword in found.missed:
            alone = matcher.match([keyword], [word])
            misses += alone.near
            # A keyword of several roots stands for the first one that any prediction leads to.
            misses += (NearMiss(pair.predicted, pair.reference, "root") for pair in alone.matched)
    assert found.near == tuple(misses)
