"""Answers that a parser cannot parse and another one can, and ends of an unscored bundle."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import structs
from support.hallusion_bench_samples import items_of, record

from hallujudge.judge_service.engine.spec import ScoreSpec
from hallujudge.metrics import Report
from hallujudge.metrics.answers.answer_scores import (
    accuracy,
    are_right,
    count,
    count_groups,
    is_right,
    share,
)
from hallujudge.metrics.answers.answers_metric import AnswersMetric
from hallujudge.metrics.answers.closed_questions import (
    Answer,
    AnswersItem,
    AnswerVariant,
    Bundling,
    ClosedQuestions,
    Keys,
    compared_by,
    one_answer,
)
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.answers.uncounted_answers import READ, ends_of, other_parsers
from hallujudge.metrics.answers.yes_no import YES_NO_PARSERS
from hallujudge.metrics.dash_b import BENCHMARK as DASH_B
from hallujudge.metrics.pope import BENCHMARK as POPE
from hallujudge.sdk import Client

_COUNTED = count("counted", "answers that count")


def benchmark(*parsers: str, unparsed: str = "wrong") -> ClosedQuestions:
    """Return a benchmark with a variant for each parser of yes and no."""
    return ClosedQuestions(
        name="toy",
        title="A toy: a toy.",
        unit="questions",
        keys=Keys(response=("response",), label=("label",)),
        variants=tuple(
            AnswerVariant(
                name=name,
                meaning=f"The parser {name}.",
                parse=compared_by(YES_NO_PARSERS[name], name),
                unparsed="wrong" if unparsed == "wrong" else "unscored",
            )
            for name in parsers
        ),
        scores=(share("accuracy", "right / all", count("right", "right", is_right), _COUNTED),),
        ranked_by=("accuracy",),
        trial=one_answer(id="1", response="Yes.", label="yes"),
    )


def notes_of(declared: ClosedQuestions, variant: str, answers: Sequence[tuple[str, str]]) -> str:
    metric = metric_of(declared)(variant=variant)
    return " ".join(metric.notes_on(metric.totals(metric.rows(*zip(*answers, strict=True)))))


@pytest.mark.parametrize("unparsed", ["wrong", "unscored"])
def test_a_note_says_what_another_variant_parses_and_its_score(unparsed: str) -> None:
    declared = benchmark("lmms-eval", "strict", unparsed=unparsed)
    answers = [("yes", "yes")] * 50 + [("Yes.", "yes")] * 30 + [("No, not.", "yes")] * 20
    note = notes_of(declared, "lmms-eval", answers)
    assert "50 of 100" in note
    assert "the variant strict" in note
    assert "0.8000" in note, "what the variant strict gives for the same answers"
    assert ("0.5000" if unparsed == "wrong" else "1.0000") in note
    assert notes_of(declared, "strict", answers) == ""


def test_a_score_that_stays_is_not_called_another() -> None:
    answers = [("yes", "yes")] * 5 + [("No, not.", "yes")] * 5
    note = notes_of(benchmark("lmms-eval", "strict"), "lmms-eval", answers)
    assert "that lmms-eval can't, which leaves accuracy at 0.5000. Compare" in note


@pytest.mark.parametrize(("unread", "noted"), [(1, True), (0, False)])
def test_less_than_one_percent_is_no_news(unread: int, noted: bool) -> None:
    answers = [("yes", "yes")] * 99 + [("Yes." if unread else "perhaps", "yes")]
    assert bool(notes_of(benchmark("lmms-eval", "strict"), "lmms-eval", answers)) is noted
    more = [("yes", "yes")] * 101 + answers
    assert notes_of(benchmark("lmms-eval", "strict"), "lmms-eval", more) == ""


def test_a_parser_that_takes_any_text_for_an_answer_parses_nothing_more() -> None:
    declared = benchmark("published", "strict")
    assert notes_of(declared, "strict", [("A photo.", "yes")] * 9) == ""


def test_answers_that_it_takes_for_the_opposite_are_noted() -> None:
    declared = benchmark("published", "strict")
    answers = [("Yes.", "yes")] * 5 + [("```\nNo.\n```", "no")] * 3 + [("A photo.", "yes")] * 2
    note = notes_of(declared, "published", answers)
    assert "strict parses 3 of 10 answers (30.0%) otherwise" in note
    assert "accuracy is 1.0000, not 0.7000" in note
    assert notes_of(declared, "strict", answers) == ""


def test_a_benchmark_with_one_variant_has_no_columns_of_others() -> None:
    assert READ not in {column.name for column in metric_of(benchmark("strict")).columns}


def pairs(said: Sequence[str]) -> list[AnswersItem]:
    """Return pairs of VideoHallucer whose second answers are given."""
    return [
        AnswersItem(
            id=str(n),
            fields={"set": "temporal"},
            answers=(
                Answer(name="basic", response="Yes.", label="yes"),
                Answer(name="hallucination", response=text, label="no"),
            ),
        )
        for n, text in enumerate(said)
    ]


def score(variant: str, texts: Sequence[str]) -> Report:
    with Client.embedded() as client:
        return client.score_items(ScoreSpec(metric="video-hallucer", variant=variant), pairs(texts))


def test_answers_of_bundles_are_counted_one_by_one() -> None:
    # "No, yes." has both words: only the released parser takes it for an answer.
    texts = ["No."] * 6 + ["No, yes."] * 4
    corrected, published = (score(name, texts) for name in ("corrected", "published"))
    [note] = [each for each in corrected.notes if "published" in each]
    assert "4 of 20" in note
    assert f"{published.pair_accuracy:.4f}" in note
    assert f"{corrected.pair_accuracy:.4f}" in note
    assert not any("corrected" in each for each in published.notes)


def test_a_variant_that_finds_no_in_unknown_is_no_witness() -> None:
    known = other_parsers(POPE, AnswersMetric.choosable_parsers(POPE))
    assert known is not None
    assert [parser.name for parser in known.parsers] == [
        *("strict", "first-word", "vlmevalkit", "lmms-eval")
    ]


def figures(correctness: str, texts: Sequence[str]) -> Report:
    """Score answers of HallusionBench by the parser that an option names, or by its labels."""
    records = [
        record(f"VD_illusion_{n}_1_0", model_prediction=text) for n, text in enumerate(texts)
    ]
    spec = ScoreSpec(metric="hallusion-bench", options={"correctness": correctness})
    with Client.embedded() as client:
        return client.score_items(spec, items_of(records))


def test_parsers_that_an_option_names_are_compared_too() -> None:
    texts = ["Yes."] * 2 + ["**Yes**"] * 2 + ["No."]
    default, strict = (figures(name, texts) for name in ("vlmevalkit", "strict"))
    assert (default.question_accuracy, strict.question_accuracy) == (0.4, 0.8)
    [note] = [each for each in default.notes if "can parse" in each]
    assert "strict can parse 2 of 5" in note
    assert "question_accuracy is 0.8000, not 0.4000" in note
    assert "the option correctness = strict" in note
    assert not any("can parse" in each for each in strict.notes)


def test_verdicts_of_files_are_not_compared_with_parsers() -> None:
    assert not any("can parse" in each for each in figures("given", ["**Yes**"] * 5).notes)


def test_an_unscored_answer_of_a_set_has_all_columns() -> None:
    report = figures("vlmevalkit", ["**Yes**", "Yes.", ""])
    assert (report.coverage.unscored, report.question_accuracy) == (1, 0.5)
    assert any("1 of 2" in each for each in report.notes)


def test_a_variant_that_parses_alike_is_not_another_parser() -> None:
    declared = benchmark("lmms-eval", "strict")
    own, other = declared.variants
    alike = structs.replace(declared, variants=(own, structs.replace(own, name="same"), other))
    note = notes_of(alike, "lmms-eval", [("Yes.", "yes")] * 9)
    assert note.startswith("Unparsed: strict can parse 9 of 9 answers")


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
