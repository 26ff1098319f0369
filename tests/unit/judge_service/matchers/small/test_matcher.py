"""The small judge: premises, claims and long texts, with a model of words."""

from __future__ import annotations

from support.word_matchers import GRAPH, WordPairs, judged, query, small

from hallujudge.metrics.framework.claims import Part, Triplet, Verdict


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
    assert len(model.pairs) == 10, "two sentences of five words beside a claim of four"
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
    assert model.pairs[0] == ("man riding horse horse horse horse horse", "man riding horse.")
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
    assert "3 tokens with the prompt; the model reads 3" in verdict.detail


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
