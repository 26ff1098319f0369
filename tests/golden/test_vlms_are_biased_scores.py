"""VLMs are Biased: what is read in answers, and every number of both rules and layouts."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from support.running import here

from hallujudge.metrics import Answer
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.framework.papers import published_rows
from hallujudge.metrics.vlms_are_biased import BENCHMARK
from hallujudge.sdk import Client, Report
from hallujudge.sdk.errors import ArchiveError

RIGHT, BIASED, NEITHER, UNREAD = "right", "biased", "neither", "unread"
# The right number is 5, and the remembered one 4.
READ = {
    "the digits of two numbers are one number": ("I count 5, not 4: {5}", NEITHER, RIGHT),
    "a decimal is a number ten times as large": ("{5.0}", NEITHER, RIGHT),
    "a number in words has no digits": ("{five}", UNREAD, RIGHT),
    "the expected bias is counted": ("{4}", BIASED, BIASED),
    "digits save an answer in bold": ("**{5}**", RIGHT, RIGHT),
    "digits save a sentence": ("I count {5}.", RIGHT, RIGHT),
    "spaces in braces do no harm": ("{ 4 }", BIASED, BIASED),
    "several unequal numbers are no answer": ("5 or 4", NEITHER, UNREAD),
    "a superscript is a digit": ("{5²}", NEITHER, UNREAD),
    "digits of another script are digits": ("{٥}", NEITHER, RIGHT),
    "a refusal is wrong": ("I cannot count them.", UNREAD, UNREAD),
    "tens in words are no ones": ("{twenty-five}", UNREAD, NEITHER),
    "words with a comma are two numbers": ("twenty, five", UNREAD, UNREAD),
    "a number of hundreds is not read": ("five hundred", UNREAD, UNREAD),
}
# The right answer is no, and the remembered one yes.
WORDS = {
    "no one is not a number": ("There is no one.", UNREAD, RIGHT),
    "a full stop after the braces": ("{Yes}.", UNREAD, BIASED),
    "a sentence": ("Yes, they are equal.", UNREAD, BIASED),
    "bold": ("**{No}**", UNREAD, RIGHT),
    "plain braces": ("{No}", RIGHT, RIGHT),
}


def outcomes(text: str, label: str, bias: str) -> list[str]:
    answer = Answer(response=text, label=label, fields={"bias": bias})
    found = [variant.parse(answer) for variant in BENCHMARK.variants]
    assert found[0] == found[1], "the paper's answers are read as lmms-eval reads them"
    return [
        RIGHT
        if parsed.right
        else UNREAD
        if parsed.value is None
        else BIASED
        if "bias" in parsed.how
        else NEITHER
        for parsed in found[1:]
    ]


@pytest.mark.parametrize("surprise", READ)
def test_what_is_read_of_numbers(surprise: str) -> None:
    text, *wanted = READ[surprise]
    assert outcomes(text, "5", "4") == wanted, surprise


@pytest.mark.parametrize("surprise", WORDS)
def test_what_is_read_of_words(surprise: str) -> None:
    text, *wanted = WORDS[surprise]
    assert outcomes(text, "No", "Yes") == wanted, surprise


def test_joined_digits_may_be_right_by_luck() -> None:
    text = "1 on the left and 3 on the right"
    assert outcomes(text, "13", "12") == [RIGHT, UNREAD]
    assert outcomes(text, "12", "13") == [BIASED, UNREAD]


def test_a_truth_that_is_the_bias_counts_as_both() -> None:
    report = scored([("Logos", "{4}")], truth="4")
    assert (report.accuracy, report.bias_ratio) == (1, 1)


def scored(
    answers: list[tuple[str, str]], *, variant: str = "lmms-eval", truth: str = "5"
) -> Report:
    rows = [
        {
            "ID": str(n),
            "topic": topic,
            "ground_truth": truth,
            "expected_bias": "4",
            "response": text,
        }
        for n, (topic, text) in enumerate(answers)
    ]
    with Client.embedded() as client:
        return client.score("vlms-are-biased", responses=rows, variant=variant)


MANY = [("Logos", "{5}"), *[("Animals", "{4}")] * 3]


def test_a_big_topic_rules_the_pooled_figure_and_not_the_papers() -> None:
    pooled, paper = scored(MANY), scored(MANY, variant="paper")
    assert (pooled.accuracy, pooled.bias_ratio) == (0.25, 0.75)
    assert (paper.accuracy, paper.bias_ratio) == (0.5, 0.5)
    assert (pooled.mean_accuracy, pooled.mean_bias_ratio) == (0.5, 0.5)


def test_a_topic_without_an_answer_is_no_part_of_the_mean() -> None:
    assert scored([("Flags", "{5}")], variant="paper").accuracy == 1


@pytest.mark.parametrize(
    "text",
    ["<think>4, or 5</think>{5}", "4, as always.</think>\n{5}", "<analysis>4</analysis> {5}"],
)
def test_reasoning_is_taken_off_also_where_only_the_closing_mark_is_there(text: str) -> None:
    assert scored([("Logos", text)]).accuracy == 1


def test_empty_answers_are_wrong_and_unscored_in_the_corrected_variant() -> None:
    answers = [("Logos", ""), ("Logos", "{4}")]
    assert (scored(answers).accuracy, scored(answers).bias_ratio) == (0, 0.5)
    assert scored(answers, variant="corrected").coverage.unscored == 1


@pytest.mark.parametrize(
    "text", ["有5条", "答案是5。", "５", "{5,}", "I count 5 stripes.", "{5.0}", "{ five }"]
)
def test_the_corrected_variant_reads_a_number_in_any_writing(text: str) -> None:
    assert scored([("Logos", text)], variant="corrected").accuracy == 1


@pytest.mark.parametrize("text", ["{-5}", "{5,000}", "5,000", "15", "1.5"])
def test_the_corrected_variant_takes_no_part_of_a_number(text: str) -> None:
    assert scored([("Logos", text)], variant="corrected").accuracy == 0


def test_the_bounds_of_the_bias_know_that_an_unread_answer_may_be_biased() -> None:
    report = scored([("Logos", "{5}"), ("Logos", "4 or 5")], variant="corrected")
    bounds = report.coverage.bounds["bias_ratio"]
    assert (bounds.worst, bounds.best) == (0.5, 0)


def test_a_log_without_its_questions_says_what_they_would_give() -> None:
    log: list[dict[str, Any]] = [{"doc_id": 0, "target": "5", "response": "{5}", "label": "5"}]
    with Client.embedded() as client, pytest.raises(ArchiveError, match="references"):
        client.score("vlms-are-biased", responses=log)


# File -> its role, metric and number of records.
RECOGNISED = {
    "vlms_are_biased/drawn_1.questions.json": ("references", "vlms-are-biased", 330),
    "vlms_are_biased/drawn_1_samples_vlms_are_biased.jsonl": ("responses", "vlms-are-biased", 330),
    "vlms_are_biased/drawn_2.results.json": ("responses", "vlms-are-biased", 330),
}


LAYOUTS = {
    "a log with its questions": ("drawn_1", "drawn_1_with_doc_samples_vlms_are_biased.jsonl", ""),
    "a log without": (
        "drawn_1",
        "drawn_1_samples_vlms_are_biased.jsonl",
        "drawn_1.questions.json",
    ),
    "the authors' results": ("drawn_2", "drawn_2.results.json", ""),
}


def figures_of(goldens: Path, out: Path, layout: str, *more: str) -> tuple[Any, Any]:
    folder = goldens / "vlms_are_biased"
    draw, responses, questions = LAYOUTS[layout]
    given = ("-R", folder / questions) if questions else ()
    run = here("score", "vlms-are-biased", "-r", folder / responses, *given, "-o", out, *more)
    assert run.returncode == (3 if "corrected" in more else 0), run.stderr
    report = json.loads((out / "report.json").read_text())
    return report, json.loads((folder / "expected.json").read_text())[draw]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("variant", ["lmms-eval", "paper"])
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_both_scores_and_their_topics(
    goldens: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    layout: str,
    variant: str,
    *,
    remote: bool,
) -> None:
    server = ("--server", request.getfixturevalue("server")) if remote else ()
    report, wanted = figures_of(goldens, tmp_path, layout, "--variant", variant, *server)
    assert report["coverage"]["scored"] == wanted["items"]
    for name, value in wanted["scores"][variant].items():
        assert report["scores"][name]["value"] == pytest.approx(value, abs=1e-9)
    for name, value in wanted["scores"]["paper"].items():
        assert report["scores"][f"mean_{name}"]["value"] == pytest.approx(value, abs=1e-9)
    groups = report["groups"]["topic"]
    assert groups.keys() == wanted["scores"]["by_topic"].keys()
    for topic, scores in wanted["scores"]["by_topic"].items():
        for name, value in scores.items():
            assert groups[topic][name]["value"] == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_corrected_variant_prints_both_means(
    goldens: Path, tmp_path: Path, layout: str
) -> None:
    report, wanted = figures_of(goldens, tmp_path, layout, "--variant", "corrected")
    scores = report["scores"]
    assert scores["accuracy"]["value"] != scores["mean_accuracy"]["value"]
    assert scores["accuracy"]["value"] > wanted["scores"]["lmms-eval"]["accuracy"]
    assert report["coverage"]["unscored"] == report["coverage"]["reasons"].get(
        "ANSWER_UNPARSED", 0
    ) + report["coverage"]["reasons"].get("RESPONSE_EMPTY", 0)


def test_published_rows_are_the_means_of_the_seven_tasks() -> None:
    """The authors' page prints the tasks beside each mean."""
    tasks = {
        "sonnet-3.7": (0.0, 2.72, 13.75, 9.03, 1.79, 54.29, 34.52),
        "o4-mini": (0.18, 9.31, 14.58, 44.10, 4.76, 51.26, 17.56),
    }
    rows = {row.name: row.scores for row in published_rows(metric_of(BENCHMARK))}
    assert len(rows) == 5
    for name, found in tasks.items():
        assert rows[name] == {"mean_accuracy": pytest.approx(mean(found) / 100, abs=5e-5)}


def test_a_lower_score_is_at_its_low_limit_at_best() -> None:
    worst, best = metric_of(BENCHMARK)().ends()
    [rate] = [s.definition for s in BENCHMARK.scores if s.definition.name == "bias_ratio"]
    [biased] = {*rate.columns} - {"answered"}
    assert (worst[biased], best[biased]) == (1, 0)
