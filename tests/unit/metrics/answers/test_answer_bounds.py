"""What an unscored bundle counts at worst and at best: like the trial item, or a ratio's limits."""

from __future__ import annotations

from msgspec import structs

from hallujudge.metrics.answers.answer_bounds import ends_of
from hallujudge.metrics.answers.answer_scores import accuracy, are_right, count_groups, share
from hallujudge.metrics.answers.closed_questions import Answer, AnswersItem, Bundling
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.dash_b import BENCHMARK as DASH_B
from hallujudge.metrics.pope import BENCHMARK as POPE


def test_an_unscored_answer_is_like_the_trial_item() -> None:
    worst, best = metric_of(POPE)().ends()
    assert (worst["tp"], best["tp"]) == (0, 1)
    # A wrong yes lowers precision, and a wrong no recall.
    assert (worst["fp"], worst["fn"]) == (1, 1)


def test_scores_of_other_questions_are_at_their_limits() -> None:
    # The trial item's label is yes.
    worst, best = metric_of(DASH_B)().ends()
    assert (worst["label_no"], best["label_no"]) == (1, 1)
    assert (worst["tn"], best["tn"]) == (0, 1)


def test_a_bundle_of_several_answers_counts_them_all() -> None:
    trial = AnswersItem(
        id="1",
        answers=tuple(Answer(name=n, response="Yes.", label="yes") for n in ("1", "2")),
    )
    pairs = share(
        "pairs",
        "right pairs / pairs",
        count_groups("right_pairs", "right pairs", are_right),
        count_groups("pairs", "pairs"),
    )
    declared = structs.replace(
        POPE, trial=trial, bundle=Bundling(name=("n",)), scores=(accuracy(), pairs)
    )
    worst, best = ends_of(declared, [each for score in declared.scores for each in score.counts])
    assert (best["right"], best["answered"], best["right_pairs"], best["pairs"]) == (2, 2, 1, 1)
    assert (worst["right"], worst["answered"], worst["right_pairs"], worst["pairs"]) == (0, 2, 0, 1)
