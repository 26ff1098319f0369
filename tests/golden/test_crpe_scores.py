"""CRPE: what is read in answers, what is one question, and every number of both rules."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.prediction_tables import TABLES, Write
from support.running import here, read_rows

from hallujudge.metrics import Answer
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.crpe import BENCHMARK
from hallujudge.metrics.framework.papers import published_rows
from hallujudge.sdk import Client, InputOptions, Report
from hallujudge.sdk.archives.example_files import write_example
from hallujudge.sdk.archives.further_files import GivenFiles
from hallujudge.sdk.comparison.overview_plan import plan_of
from hallujudge.sdk.errors import ArchiveError

OPTIONS = ("cart", "cup", "cup of tea", "t-shirt")
LETTERS = "ABCD"
Q = "What is there?\nA. cart\nB. cup\nC. cup of tea\nD. t-shirt\nReply with one letter."
READ = {
    "the letter alone": ("B", "B", ("B", "B", "B")),
    "a full stop": ("B.", "B", (None, "B", "B")),
    "brackets": ("(B)", "B", (None, "B", "B")),
    "a letter and its text": ("B. cup", "B", (None, "B", "B")),
    "a small letter": ("b", "B", ("b", "B", "B")),
    "the text alone": ("cart", "A", (None, "A", "A")),
    "a sentence about the letter": ("The answer is B.", "B", (None, None, "B")),
    "a text that begins with another option": ("cup of tea", "C", (None, "B", "C")),
    "a hyphen that the filter removes": ("D. t-shirt", "D", (None, None, "D")),
    "a denial names its option": ("It is not the cart, but who knows.", "A", (None, "A", None)),
    "marks of an answer": ("<answer>B</answer>", "B", (None, "B", None)),
    "a thought": ("<think>C?</think>B", "B", (None, "B", None)),
    "a closing mark alone": ("It may be C.</think>\nB", "B", (None, None, None)),
}


@pytest.mark.parametrize("surprise", READ)
def test_what_is_read(surprise: str) -> None:
    text, label, (published, harness, corrected) = READ[surprise]
    answer = Answer(response=text, label=label, question=Q)
    found = [variant.parse(answer).value for variant in BENCHMARK.variants]
    # Thoughts and marks come off before the corrected variant reads an answer.
    assert (
        found[: 2 if "<" in text else 3]
        == [published, harness, corrected][: 2 if "<" in text else 3]
    )


def question(number: int, turn: int, category: str = "object") -> dict[str, Any]:
    lines = [f"{LETTERS[(n + turn) % 4]}. {option}" for n, option in enumerate(OPTIONS)]
    return {
        **{"question_id": 4 * number + turn, "image": f"{number}.jpg", "category": category},
        **{"text": "\n".join(["What is there?", *sorted(lines)]), "correct_option": LETTERS[turn]},
    }


QUESTIONS = [question(number, turn) for number in range(2) for turn in range(4)]


def scored(
    texts: dict[int, str], variant: str = "published", questions: Any = QUESTIONS, **inputs: Any
) -> Report:
    answers = [{"question_id": n, "text": text} for n, text in texts.items()]
    with Client.embedded() as client:
        return client.score(
            "crpe",
            responses=answers,
            references=questions,
            variant=variant,
            inputs=InputOptions(**inputs),
        )


RIGHT = {n: LETTERS[n % 4] for n in range(8)}
ONE_WRONG = {**RIGHT, 5: "D"}


def test_four_right_answers_are_a_right_question_and_lmms_eval_counts_each() -> None:
    assert scored(ONE_WRONG).accuracy == 1 / 2
    assert scored(ONE_WRONG, "lmms-eval").accuracy == 7 / 8
    assert scored(ONE_WRONG, "corrected").accuracy == 1 / 2


def test_lines_that_changed_places_change_the_released_score_alone() -> None:
    # The wrong answer stands among those to the first question, another one takes its place.
    moved = {n: ONE_WRONG[n] for n in (0, 5, 2, 3, 4, 1, 6, 7)}
    two_wrong = {**moved, 6: "A"}
    assert scored(two_wrong).accuracy == 0
    assert scored(two_wrong, "corrected").accuracy == 1 / 2
    assert scored(two_wrong, "lmms-eval").accuracy == 6 / 8


def test_the_script_prints_no_figure_of_several_categories() -> None:
    questions = [*QUESTIONS[:4], *(question(1, turn, "subject") for turn in range(4))]
    report = scored(ONE_WRONG, questions=questions)
    assert report.accuracy is None
    by_category = {name: of["accuracy"].value for name, of in report.groups["category"].items()}
    assert by_category == {"object": 1, "subject": 0}


def test_a_number_of_answers_that_is_no_multiple_of_four_has_no_released_score() -> None:
    texts = {n: RIGHT[n] for n in range(7)}
    with_gap = scored(texts, questions=QUESTIONS[:7])
    assert (with_gap.accuracy, with_gap.answer_accuracy) == (None, 1)
    corrected = scored(texts, "corrected", QUESTIONS[:7])
    assert (corrected.accuracy, corrected["accuracy"].n) == (1, 1)


def test_a_question_without_a_record_is_no_answer_that_shifts_the_others() -> None:
    texts = {n: ONE_WRONG[n] for n in range(4, 8)}
    for variant, value in (("published", 0), ("lmms-eval", 3 / 4), ("corrected", 0)):
        report = scored(texts, variant, allow_missing=True)
        assert (report.accuracy, report.coverage.unscored) == (value, 4), variant
        assert report.coverage.reasons == {"RESPONSE_MISSING": 4}
    # As for the script, seven answers are no fours.
    assert scored({n: RIGHT[n] for n in range(1, 8)}, allow_missing=True).accuracy is None


def test_an_unread_answer_leaves_its_question_out_of_the_corrected_variant() -> None:
    report = scored({**RIGHT, 6: "I cannot say."}, "corrected")
    assert (report.accuracy, report["accuracy"].n) == (1, 1)
    assert (report.unparsed_rate, report.coverage.unscored) == (1 / 8, 1)


def test_an_answer_that_is_there_twice_shifts_the_questions() -> None:
    answers = [{"question_id": n, "text": RIGHT[n]} for n in (0, 0, 1, 2, 3, 4, 5, 6)]
    with Client.embedded() as client:
        twice = client.score(
            "crpe",
            responses=answers,
            references=QUESTIONS[:7],
            inputs=InputOptions(allow_duplicates=True),
        )
    assert (twice.answer_accuracy, twice["accuracy"].n) == (1, 2)


def test_an_answer_that_is_there_twice_is_refused_unless_that_is_allowed() -> None:
    answers = [{"question_id": n, "text": RIGHT[n]} for n in (0, 0, 1, 2)]
    with Client.embedded() as client, pytest.raises(ArchiveError, match="answered more than once"):
        client.score("crpe", responses=answers, references=QUESTIONS[:4])


def test_a_category_of_long_answers_alone_has_0_where_the_script_stops() -> None:
    report = scored({n: f"({RIGHT[n]})" for n in range(4)}, questions=QUESTIONS[:4])
    assert (report.accuracy, report.unparsed_rate) == (0, 1)


def test_a_small_letter_is_wrong_in_the_released_script_alone() -> None:
    answer = Answer(response="b", label="B", question=Q)
    assert [each.parse(answer).right for each in BENCHMARK.variants] == [False, True, True]


def test_a_label_of_several_letters_makes_every_answer_wrong() -> None:
    answer = Answer(response="A", label="AB", question=Q)
    assert not BENCHMARK.variants[0].parse(answer).right


def test_an_option_pattern_in_the_stem_is_an_option_of_lmms_eval() -> None:
    asked = Q.replace("What is there?", "Which is plan B. the cat")
    answer = Answer(response="the cat", label="B", question=asked)
    assert BENCHMARK.variants[1].parse(answer).right


def test_an_empty_answer_is_wrong() -> None:
    assert scored({**RIGHT, 0: ""}).accuracy == 1 / 2
    assert scored({**RIGHT, 0: ""}, "lmms-eval").accuracy == 7 / 8


@pytest.mark.parametrize(("variant", "words"), [("published", "order"), ("lmms-eval", "each")])
def test_a_note_says_which_of_the_two_numbers_accuracy_is(variant: str, words: str) -> None:
    assert any(
        note.startswith("accuracy") and words in note for note in scored(RIGHT, variant).notes
    )


def test_a_published_row_has_the_figures_of_its_table() -> None:
    rows = {row.name: row.scores for row in published_rows(metric_of(BENCHMARK))}
    assert rows["asmv2-predicate"].items() >= {"accuracy": 0.5895}.items()


# File -> its role, metric and number of records.
RECOGNISED = {
    "crpe/drawn_1.exist.answers.jsonl": ("responses", "crpe", 240),
    "crpe/drawn_1.relation.questions.jsonl": ("references", "crpe", 312),
}


RUNS = [(draw, part) for draw in ("drawn_1", "drawn_2") for part in ("relation", "exist")]


def figures_of(goldens: Path, out: Path, draw: str, part: str, *more: str) -> tuple[Any, Any]:
    folder = goldens / "crpe"
    files = ("-r", folder / f"{draw}.{part}.answers.jsonl")
    questions = ("-R", folder / f"{draw}.{part}.questions.jsonl")
    run = here("score", "crpe", *files, *questions, "-o", out, *more)
    assert run.returncode == (3 if "corrected" in more else 0), run.stderr
    report = json.loads((out / "report.json").read_text())
    return report, json.loads((folder / "expected.json").read_text())[draw][part]


def server_of(request: pytest.FixtureRequest, *, remote: bool) -> tuple[str, ...]:
    return ("--server", request.getfixturevalue("server")) if remote else ()


@pytest.mark.parametrize(("draw", "part"), RUNS)
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_questions_are_fours_in_the_order_of_the_file(
    goldens: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    draw: str,
    part: str,
    *,
    remote: bool,
) -> None:
    server = server_of(request, remote=remote)
    report, wanted = figures_of(goldens, tmp_path, draw, part, *server)
    wanted = wanted["published"]["by_category"]
    groups = report["groups"]["category"]
    assert groups.keys() == wanted.keys()
    for category, scores in wanted.items():
        found = groups[category]["accuracy"]
        assert 100 * found["value"] == pytest.approx(scores["accuracy"], abs=1e-9)
        assert found["n"] == scores["groups"]
    alone = report["scores"]["accuracy"]["value"]
    assert (alone is None) is (len(wanted) > 1), "the script prints no figure of all categories"


@pytest.mark.parametrize(("draw", "part"), RUNS)
def test_the_choices_are_those_that_the_script_counts(
    goldens: Path, tmp_path: Path, draw: str, part: str
) -> None:
    _, wanted = figures_of(goldens, tmp_path, draw, part)
    counts: dict[str, dict[str, int]] = {c: {} for c in wanted["published"]["by_category"]}
    for row in read_rows(tmp_path / "items.jsonl"):
        [answer] = row["evidence"]["answers"]
        choice = answer["answer"] or ("" if answer["how"] == "missing" else None)
        if choice is not None:
            of = counts[row["fields"]["category"]]
            of[choice] = of.get(choice, 0) + 1
    assert counts == {c: of["choices"] for c, of in wanted["published"]["by_category"].items()}


@pytest.mark.parametrize(("draw", "part"), RUNS)
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_lmms_eval_counts_each_answer_alone(
    goldens: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    draw: str,
    part: str,
    *,
    remote: bool,
) -> None:
    server = server_of(request, remote=remote)
    report, wanted = figures_of(goldens, tmp_path, draw, part, "--variant", "lmms-eval", *server)
    wanted = wanted["lmms-eval"]
    assert report["scores"]["accuracy"]["value"] == pytest.approx(wanted["accuracy"], abs=1e-9)
    for category, scores in wanted["by_category"].items():
        found = report["groups"]["category"][category]["accuracy"]["value"]
        assert found == pytest.approx(scores["accuracy"], abs=1e-9)


@pytest.mark.parametrize(("draw", "part"), RUNS)
def test_the_corrected_variant_does_not_depend_on_the_order_of_the_file(
    goldens: Path, tmp_path: Path, draw: str, part: str
) -> None:
    report, _ = figures_of(goldens, tmp_path / "as it is", draw, part, "--variant", "corrected")
    folder = goldens / "crpe"
    lines = (folder / f"{draw}.{part}.answers.jsonl").read_text().splitlines()
    (tmp_path / "turned.jsonl").write_text("\n".join(reversed(lines)))
    files = ("-r", tmp_path / "turned.jsonl", "-R", folder / f"{draw}.{part}.questions.jsonl")
    run = here("score", "crpe", *files, "--variant", "corrected", "-o", tmp_path / "turned")
    assert run.returncode == 3, run.stderr
    turned = json.loads((tmp_path / "turned" / "report.json").read_text())
    assert turned["scores"] == report["scores"]


@pytest.mark.parametrize("write", TABLES)
def test_a_table_of_crpe_has_the_numbers_of_the_script(
    goldens: Path, tmp_path: Path, write: Write
) -> None:
    folder = goldens / "crpe"
    lines = (folder / "drawn_1.exist.questions.jsonl").read_text().splitlines()
    asked = {str(each["question_id"]): each for each in map(json.loads, lines)}
    answers = map(json.loads, (folder / "drawn_1.exist.answers.jsonl").read_text().splitlines())
    rows = [
        {
            "index": number,
            "question": asked[str(each["question_id"])]["text"],
            "category": asked[str(each["question_id"])]["category"],
            "answer": asked[str(each["question_id"])]["correct_option"],
            "prediction": each["text"],
        }
        for number, each in enumerate(answers)
    ]
    table = write(rows, tmp_path)
    assert "crpe" in here("archive", "inspect", table).stdout
    run = here("score", "crpe", "-r", table, "-o", tmp_path / "out")
    assert run.returncode in (0, 3), run.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    wanted = json.loads((folder / "expected.json").read_text())["drawn_1"]["exist"]["published"]
    [value] = [each["accuracy"] for each in wanted["by_category"].values()]
    assert 100 * report["scores"]["accuracy"]["value"] == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("name", ["crpe_{}.jsonl", "crpe_{}_questions.jsonl"])
def test_answers_to_parts_of_a_benchmark_have_the_questions_of_their_name(
    tmp_path: Path, name: str
) -> None:
    for part in ("exist", "relation"):
        write_example("crpe", tmp_path / part)
        shutil.move(tmp_path / part / "answers.jsonl", tmp_path / f"crpe_{part}_answers.jsonl")
        shutil.move(tmp_path / part / "crpe_relation.jsonl", tmp_path / name.format(part))
        (tmp_path / part).rmdir()
    plan = plan_of(tmp_path, tmp_path / "out", GivenFiles())
    found = {Path(run.archive).name: Path(str(run.references)).name for run in plan.runs}
    assert found == {
        f"crpe_{part}_answers.jsonl": name.format(part) for part in ("exist", "relation")
    }
