"""ChartHal: which items have a mark, by file, parser and meaning, and every released figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.choice_judge import blocks_of, scripted
from support.qa_samples import write_lines
from support.running import ServerProcess, here, read_rows

from hallujudge.metrics import AnswersItem, Report
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.charthal import BENCHMARK
from hallujudge.metrics.framework.papers import published_rows
from hallujudge.sdk import Client
from hallujudge.sdk.archives import read_items


def record(number: int = 1, *, at: str = "desc/irrel", **more: Any) -> dict[str, Any]:
    kind, _, relation = at.partition("/")
    return {
        **{"id": f"{number}_0", "figure_path": f"images/{number}.jpg"},
        **{"q_type": kind, "q_relation": relation, "question": "What is the red line?"},
        **{"ref_answer": "There is no red line.", "response": "No red line.", **more},
    }


def marks(**more: Any) -> list[str | None]:
    """Return the marks of an item by each variant."""
    [item] = read_items("charthal", [record(**more)], None)
    assert isinstance(item, AnswersItem)
    return [variant.parse(item.answers[0]).value for variant in BENCHMARK.variants]


def scored(records: list[dict[str, Any]], variant: str = "published") -> Report:
    with Client.embedded() as client:
        return client.score("charthal", responses=records, variant=variant)


@pytest.mark.parametrize(
    ("score", "text", "published", "evaluated", "corrected"),
    [
        (1, "Score: 1", "1", "1", "1"),
        (0, "**Score:** 0", "0", "0", "0"),
        # True, false, 1.0 and 0.0 equal a mark; texts equal none.
        (True, "Score: 1", "1", "1", "1"),
        (0.0, "score 0.", "0", "0", "0"),
        (-0.0, "Score: 0", "0", "0", "0"),
        (10**400, "Score: 1", None, "1", "1"),
        (float("nan"), "", None, None, None),
        ("1", "Score: 1", None, "1", "1"),
        ("-", "Score: 0\nIt is judged as asked.", None, "0", "0"),
        # Rounded, halves to even: a mark between 0 and 1 is none.
        (1, "Score: 0.6", "1", "1", None),
        (0, "Score: 0.5", "0", "0", None),
        (7, "Score: 7", None, None, None),
        (10, "10/10", None, None, None),
        (10, "Score: 99", None, None, None),
        # Another number comes first.
        (4, "The chart has 4 series. So the mark is 1.", None, None, None),
        (1, "The chart has 1 series. So the score: 0", "1", "0", "0"),
        # A score on the fourth line is not found.
        (-1, "Read.\nCompared.\nWeighed.\nScore: 1", None, None, "1"),
        (0, "Score: 0\nOn reflection, Score: 1", "0", "0", "1"),
        (-1, "Request failed after: timeout", None, None, None),
        (1, "", "1", None, "1"),
        (1, "Well done.", "1", None, "1"),
    ],
)
def test_marks_are_read_by_each_rule(
    score: object, text: str, published: str | None, evaluated: str | None, corrected: str | None
) -> None:
    assert marks(score=score, eval_resp=text) == [published, evaluated, corrected]


def test_an_item_without_a_score_is_an_exception_unless_its_text_is_read() -> None:
    assert marks(eval_resp="Score: 1") == [None, "1", "1"]
    assert scored([record(), record(2, score=1)]).coverage.reasons == {"VERDICT_NULL": 1}


def test_exceptions_leave_every_denominator_and_that_is_said() -> None:
    given = [1, 0, 7, "1"]
    report = scored([record(n, score=mark) for n, mark in enumerate(given)])
    assert (report.scores["accuracy"].value, report.scores["accuracy"].n) == (0.5, 2)
    assert report.scores["exception_rate"].value == 0.5
    [note] = [note for note in report.notes if "leave the denominator" in note]
    assert note.startswith("2 of 4 answers have no mark of 0 or 1")
    assert note.endswith("counted as 0, accuracy is 0.2500, not 0.5000")


def test_a_part_of_the_benchmark_has_a_score_where_the_script_stops() -> None:
    records = [record(1, score=1), record(2, at="open/normal", score=7)]
    groups = scored(records).groups
    assert groups["q_type_q_relation"]["desc/irrel"]["accuracy"].value == 1.0
    assert groups["q_type_q_relation"]["open/normal"]["accuracy"].value is None
    assert groups["q_relation"]["normal"]["accuracy"].value is None


def test_an_answer_that_is_empty_has_its_mark() -> None:
    assert scored([record(score=0, response="")]).scores["accuracy"].value == 0.0


def test_the_published_row_is_that_of_the_released_results_not_of_the_readme() -> None:
    [row] = published_rows(metric_of(BENCHMARK))
    assert row.scores == {"accuracy": pytest.approx(337 / 1062, abs=1e-12)}


# File -> its role, metric and number of records.
RECOGNISED = {
    "charthal/drawn_1.eval.json": ("responses", "charthal", 300),
}


DRAWS = ("drawn_1", "drawn_2")
EXACT = 1e-9


def report_of(file: Path, out: Path, *more: str) -> Any:
    run = here("score", "charthal", "-r", file, "-o", out, *more)
    assert run.returncode == 3, run.stderr
    return json.loads((out / "report.json").read_text())


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_scores_are_those_of_the_released_script(
    goldens: Path, tmp_path: Path, request: pytest.FixtureRequest, draw: str, *, remote: bool
) -> None:
    server = ("--server", request.getfixturevalue("server")) if remote else ()
    report = report_of(goldens / f"charthal/{draw}.eval.json", tmp_path, *server)
    known = json.loads((goldens / "charthal/expected.json").read_text())[draw]
    wanted, accuracy = known["scores"], report["scores"]["accuracy"]
    assert 100 * accuracy["value"] == pytest.approx(wanted["overall_score"], abs=EXACT)
    assert report["coverage"]["items"] == wanted["total_queries"]
    assert report["coverage"]["unscored"] == wanted["exceptions"]
    assert report["totals"]["right"] == wanted["total_correct"]
    assert accuracy["n"] == wanted["total_queries"] - wanted["exceptions"]
    for field, key in (
        ("q_type", "by_type"),
        ("q_relation", "by_relation"),
        ("q_type_q_relation", "by_type_relation"),
    ):
        groups = report["groups"][field]
        found = {n.replace("/", "_"): 100 * g["accuracy"]["value"] for n, g in groups.items()}
        assert found == pytest.approx(wanted[key], abs=EXACT), field
    as_0 = known["surprises"]["exceptions_leave_the_denominator"][
        "overall_score_if_they_counted_as_0"
    ]
    [note] = [note for note in report["notes"] if "leave the denominator" in note]
    assert f"counted as 0, accuracy is {as_0 / 100:.4f}" in note


@pytest.mark.parametrize("draw", DRAWS)
def test_the_texts_marks_are_the_scores_that_the_released_parser_wrote(
    goldens: Path, tmp_path: Path, draw: str
) -> None:
    file = goldens / f"charthal/{draw}.eval.json"
    report = report_of(file, tmp_path, "--variant", "evaluated")
    items = json.loads(file.read_text())
    marks = [each["score"] for each in items.values() if type(each.get("score")) is int]
    others = [each for each in items.values() if type(each.get("score")) is not int]
    # The others were changed after the parser wrote them, and their texts state marks.
    marks += [int("1" in each["eval_resp"]) for each in others]
    counted = [mark for mark in marks if mark in (0, 1)]
    accuracy = report["scores"]["accuracy"]
    assert accuracy["n"] == len(counted)
    assert accuracy["value"] == pytest.approx(sum(counted) / len(counted), abs=EXACT)


def charts(*responses: str) -> list[dict[str, Any]]:
    return [
        {
            **{"id": f"{n}_0", "figure_path": f"{n}.jpg", "q_type": "desc", "q_relation": "irrel"},
            **{"question": f"What is line {n}?", "ref_answer": "There is no such line."},
            **{"response": text, "eval_resp": "Score: 0.6", "score": 1},
        }
        for n, text in enumerate(responses)
    ]


def test_a_judge_marks_answers_whatever_the_file_says(tmp_path: Path) -> None:
    records = charts("There is none.", "About 5.", "")

    def step(_number: int, body: llm.Body) -> llm.Reply:
        return llm.completion("1" if "There is none." in llm.prompt_of(body) else "0")

    with scripted(step) as server:
        run = here(
            *("score", "charthal", "-r", write_lines(tmp_path / "answers.jsonl", records)),
            *("--variant", "corrected", "--judgements", "llm", "-o", tmp_path / "out"),
            *("--llm-url", server.url, "--llm-model", "m"),
        )
    assert run.returncode == 3, run.stderr
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert (report["scores"]["accuracy"]["value"], report["scores"]["accuracy"]["n"]) == (0.5, 2)
    assert report["coverage"]["reasons"] == {"RESPONSE_EMPTY": 1}
    prompt = llm.prompt_of(server.requests[0])
    assert all(text in prompt for text in ("What is line", "There is no such line.", "RESPONSE"))
    assert "Score: 0.6" not in prompt


# Response -> what a judge writes of it.
WRITTEN = {
    "There is none.": "**Verdict**\nScore: 1",
    "None is drawn.": "Score: 0.6",
    "About 5.": "score - 0",
    "About 7.": "The chart has 4 series. So the mark is 1.",
    "About 8.": "It is right.",
}


def test_marks_are_read_in_what_a_judge_writes(tmp_path: Path) -> None:
    def step(_number: int, body: llm.Body) -> llm.Reply:
        # A choice is not asked for.
        assert "structured_outputs" not in body
        return llm.completion(WRITTEN[blocks_of(body)["RESPONSE"]])

    file = write_lines(tmp_path / "answers.jsonl", charts(*WRITTEN))
    given = ("score", "charthal", "-r", file, "--variant", "evaluated", "--judgements", "llm")
    with scripted(step) as server:
        flags = ("--llm-url", server.url, "--llm-model", "m")
        cache = ("--verdict-cache", tmp_path / "verdicts.sqlite")
        run = here(*given, *flags, *cache, "-o", tmp_path / "out")
        assert run.returncode == 3, run.stderr
        here(*given, *flags, *cache, "-o", tmp_path / "again")
        assert server.chats == len(WRITTEN)
        remote = ServerProcess(*flags)
        try:
            here(*given, "--server", remote.address, "-o", tmp_path / "there")
        finally:
            remote.stop()
    rows = (tmp_path / "out/items.jsonl").read_bytes()
    assert rows == (tmp_path / "again/items.jsonl").read_bytes()
    report, there = (
        json.loads((tmp_path / name / "report.json").read_text()) for name in ("out", "there")
    )
    assert (report["scores"], report["signature"]) == (there["scores"], there["signature"])
    accuracy = report["scores"]["accuracy"]
    assert (accuracy["value"], accuracy["n"]) == (pytest.approx(2 / 3), 3)
    assert report["coverage"]["reasons"] == {"NO_VERDICT": 2}
    assert "charthal-score-1@" in report["signature"]
    _, second, *_, last = read_rows(tmp_path / "out/items.jsonl")
    assert second["evidence"]["answers"][0]["how"] == "text: 'Score: 0.6'"
    assert last["detail"] == "the judge's text 'It is right.' has no verdict"


def test_an_estimate_of_texts_measures_no_choices(tmp_path: Path) -> None:
    archive = tmp_path / "eval.jsonl"
    write_lines(archive, [record()])
    flags = ("--variant", "evaluated", "--judgements", "llm", "--llm-model", "tiny", "--estimate")
    with scripted(llm.saying("Score: 1")) as server:
        given = ("-r", archive, "-o", tmp_path / "out", "--llm-url", server.url)
        run = here("score", "charthal", *given, *flags)
    assert run.stdout.startswith("llm: 1 calls")
    assert "choice_share" not in run.stdout
