"""NaturalBench: what is read in answers, how groups are made, and every released number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.archive_samples import write_table
from support.prediction_tables import TABLES, Rows, Write
from support.qa_samples import write_lines
from support.running import here

from hallujudge.metrics import Answer
from hallujudge.metrics.naturalbench import BENCHMARK
from hallujudge.sdk import Client, Report
from hallujudge.sdk.archives import inspect_archives
from hallujudge.sdk.errors import ArchiveError

GROUP = {
    **{"Index": 0, "Question_0": "Is it red?", "Question_1": "Is it blue?"},
    **{"Image_0_Question_0": "Yes", "Image_1_Question_0": "No"},
    **{"Image_0_Question_1": "No", "Image_1_Question_1": "Yes", "Question_Type": "yes_no"},
}
LETTERS = {
    "the article is the letter A": ("It shows a kite, so B.", "A", "B"),
    "an article before the letter counts": ("A kite; the letter is B", "A", "B"),
    "both letters are the first one": ("A or B", "A", None),
    "an option's text has no letter": ("violin.", None, None),
    "a letter in brackets": ("(b)", "B", "B"),
}
WORDS = {
    "a no that is taken back": ("No, wait: yes", "no", None),
    "a yes that is taken back": ("Yes... on a second look, no", "yes", None),
    "no doubt": ("There is no doubt about it: yes", "no", None),
    "another word for no": ("Nope", None, None),
    "none": ("None", None, None),
    "not at all": ("Not at all.", None, None),
    "another word for yes": ("Yeah", None, None),
    "true": ("True", None, None),
    "a number": ("1", None, None),
    "the text of a missing prediction": ("nan", None, None),
    "both": ("yes/no", "yes", None),
    "upper case": ("NO", "no", "no"),
}


def read(text: str, kind: str) -> list[str | None]:
    answer = Answer(response=text, label="yes", name="q0_i0", fields={"type": kind})
    return [variant.parse(answer).value for variant in BENCHMARK.variants]


@pytest.mark.parametrize("surprise", LETTERS)
def test_what_is_read_of_letters(surprise: str) -> None:
    text, *wanted = LETTERS[surprise]
    assert read(text, "multiple_choice") == wanted, surprise


@pytest.mark.parametrize("surprise", WORDS)
def test_what_is_read_of_words(surprise: str) -> None:
    text, *wanted = WORDS[surprise]
    assert read(text, "yes_no") == wanted, surprise


def scored(texts: list[str], *groups: dict[str, Any], variant: str = "published") -> Report:
    answers = [{"doc_id": n, "response": text} for n, text in enumerate(texts)]
    with Client.embedded() as client:
        return client.score(
            "naturalbench", responses=answers, references=[*groups], variant=variant
        )


ALL_RIGHT = ["Yes.", "No.", "No.", "Yes."]


def test_a_group_needs_four_right_answers_and_an_image_two() -> None:
    report = scored([*ALL_RIGHT, "Yes.", "Yes.", "No.", "Yes."], GROUP, {**GROUP, "Index": 1})
    assert report.accuracy == 7 / 8
    assert (report.question_accuracy, report.image_accuracy) == (3 / 4, 3 / 4)
    assert report.group_accuracy == 1 / 2


def test_stored_answers_are_never_read_and_a_note_says_so() -> None:
    other = {**GROUP, "Image_0_Question_0": "No", "Image_1_Question_0": "Yes"}
    published, corrected = (
        scored(ALL_RIGHT, other, variant=variant) for variant in ("published", "corrected")
    )
    assert published.group_accuracy == 1
    assert any("never reads: 1" in note for note in published.notes)
    assert corrected.accuracy == 1 / 2


def test_an_unread_answer_is_wrong_and_leaves_its_group_out_of_the_corrected_variant() -> None:
    texts, groups = [*ALL_RIGHT, "Nope", *ALL_RIGHT[1:]], (GROUP, {**GROUP, "Index": 1})
    published, corrected = (
        scored(texts, *groups, variant=variant) for variant in ("published", "corrected")
    )
    assert (published.accuracy, published.unparsed_rate) == (7 / 8, 1 / 8)
    assert (corrected.accuracy, corrected.coverage.unscored) == (1, 1)
    assert corrected.unparsed_rate == 1 / 8


def test_an_incomplete_group_is_an_error() -> None:
    with pytest.raises(ArchiveError, match="q1_i1"):
        scored(ALL_RIGHT[:3], GROUP)


@pytest.mark.parametrize("kind", [int, str, float])
def test_groups_in_another_order_than_their_index_are_refused(kind: type) -> None:
    numbers = map(kind, (10, 2))
    with pytest.raises(ArchiveError, match="order of Index"):
        scored([*ALL_RIGHT, *ALL_RIGHT], *({**GROUP, "Index": n} for n in numbers))


def test_a_list_of_texts_is_joined_with_its_groups_and_with_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "outputs.json"
    file.write_text('["Yes.", "No.", "No.", "Yes."]')
    with Client.embedded() as client:
        report = client.score("naturalbench", responses=file, references=[GROUP])
        assert report.group_accuracy == 1
        with pytest.raises(ArchiveError, match="NaturalBench's answers"):
            client.score("chair", responses=file, references={"1": ["dog"]})


def test_a_record_that_names_no_combination_is_not_placed_by_its_order() -> None:
    rows = [{"Index": 0, "Question_Type": "yes_no", "answer": "yes", "response": "Yes."}] * 4
    with Client.embedded() as client, pytest.raises(ArchiveError, match="combination"):
        client.score("naturalbench", responses=rows)


# File -> its role, metric and number of records.
RECOGNISED = {
    "naturalbench/drawn_1.outputs.json": ("responses", "naturalbench", 480),
    "naturalbench/drawn_1.questions.json": ("references", "naturalbench", 120),
    "naturalbench/drawn_2_samples_naturalbench.jsonl": ("responses", "naturalbench", 400),
}


LAYOUTS = {
    "a list of texts": ("drawn_1", "drawn_1.outputs.json", "drawn_1.questions.json"),
    "a log with its questions": ("drawn_2", "drawn_2_with_doc_samples_naturalbench.jsonl", ""),
    "a log without": (
        "drawn_2",
        "drawn_2_samples_naturalbench.jsonl",
        "drawn_2.questions.json",
    ),
}
SCORES = ("accuracy", "question_accuracy", "image_accuracy", "group_accuracy")


def figures_of(goldens: Path, out: Path, layout: str, *more: str) -> tuple[Any, Any]:
    folder = goldens / "naturalbench"
    draw, responses, questions = LAYOUTS[layout]
    given = ("-R", folder / questions) if questions else ()
    run = here("score", "naturalbench", "-r", folder / responses, *given, "-o", out, *more)
    assert run.returncode == (3 if "corrected" in more else 0), run.stderr
    report = json.loads((out / "report.json").read_text())
    return report, json.loads((folder / "expected.json").read_text())[draw]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_scores_are_those_of_the_released_script(
    goldens: Path, tmp_path: Path, request: pytest.FixtureRequest, layout: str, *, remote: bool
) -> None:
    server = ("--server", request.getfixturevalue("server")) if remote else ()
    report, wanted = figures_of(goldens, tmp_path, layout, *server)
    wanted = wanted["scores"]
    totals = report["totals"]
    assert [totals["groups"], totals["answers"], totals["unparsed"]] == [
        wanted["groups"],
        wanted["answers"],
        wanted["unread"],
    ]
    for name in SCORES:
        assert report["scores"][name]["value"] == pytest.approx(wanted[name], abs=1e-9)
        for kind, scores in wanted["by_type"].items():
            found = report["groups"]["type"][kind][name]["value"]
            assert found == pytest.approx(scores[name], abs=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_stored_answers_are_said_never_to_be_read(
    goldens: Path, tmp_path: Path, layout: str
) -> None:
    report, wanted = figures_of(goldens, tmp_path, layout)
    stored = wanted["surprises"]["stored_answers_never_read"]
    groups = len(stored["groups_with_other_stored_answers"])
    assert any(f"never reads: {groups}" in note for note in report["notes"])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_unread_answers_of_the_corrected_variant_have_no_effect_on_other_groups(
    goldens: Path, tmp_path: Path, layout: str
) -> None:
    report, wanted = figures_of(goldens, tmp_path, layout, "--variant", "corrected")
    assert report["scores"]["group_accuracy"]["value"] > wanted["scores"]["group_accuracy"]
    assert report["totals"]["answered"] == 4 * report["coverage"]["scored"]


def table_rows(goldens: Path) -> Rows:
    """Return the drawn answers, four to a group, in the order of the groups."""
    groups = json.loads((goldens / "naturalbench" / "drawn_1.questions.json").read_text())
    said = json.loads((goldens / "naturalbench" / "drawn_1.outputs.json").read_text())
    places = [(question, image) for question in (0, 1) for image in (0, 1)]
    return [
        {
            "index": 4 * number + place,
            "question": group[f"Question_{question}"],
            "answer": group[f"Image_{image}_Question_{question}"],
            "type": group["Question_Type"],
            "prediction": said[4 * number + place],
        }
        for number, group in enumerate(groups)
        for place, (question, image) in enumerate(places)
    ]


def test_a_missing_prediction_of_a_table_is_wrong(tmp_path: Path) -> None:
    names = ("index", "question", "answer", "type", "prediction")
    said = ("Yes.", "No.", "No.", None)
    labels = ("Yes", "No", "No", "Yes")
    rows = [
        dict(zip(names, (n, "Is it red?", label, "yes_no", text), strict=True))
        for n, (label, text) in enumerate(zip(labels, said, strict=True))
    ]
    table = write_lines(tmp_path / "predictions.jsonl", rows)
    run = here("score", "naturalbench", "-r", table, "-o", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    scores = json.loads((tmp_path / "out" / "report.json").read_text())["scores"]
    assert [scores[name]["value"] for name in ("accuracy", "unparsed_rate")] == [0.75, 0.25]


@pytest.mark.parametrize("write", TABLES)
def test_a_table_of_naturalbench_has_the_numbers_of_the_script(
    goldens: Path, tmp_path: Path, write: Write
) -> None:
    table = write(table_rows(goldens), tmp_path)
    # Most of its labels are yes or no, as POPE's are.
    assert "naturalbench" in here("archive", "inspect", table).stdout
    run = here("score", "naturalbench", "-r", table, "-o", tmp_path / "out")
    assert run.returncode in (0, 3), run.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    wanted = json.loads((goldens / "naturalbench" / "expected.json").read_text())["drawn_1"]
    for name in ("accuracy", "question_accuracy", "image_accuracy", "group_accuracy"):
        found, value = report["scores"][name]["value"], wanted["scores"][name]
        assert found == pytest.approx(value, abs=1e-9), name


@pytest.mark.parametrize("more", [{}, {"extracted": "Yes", "score": 1}])
@pytest.mark.parametrize("kind", ["yes_no", "multiple_choice"])
def test_a_type_beside_a_category_of_amber_makes_no_naturalbench_of_it(
    tmp_path: Path, kind: str, more: dict[str, object]
) -> None:
    row = {"index": 1, "question": "Is it red?", "answer": "yes", "prediction": "Yes"}
    row |= {"category": "discriminative-attribute-state", "type": kind, **more}
    path = tmp_path / "model_AMBER.tsv"
    write_table(path, [row, {**row, "index": 2}])
    [summary] = inspect_archives([path])
    assert summary.metrics == ("amber",)


@pytest.mark.parametrize("doc", [True, False])
def test_the_command_of_a_log_names_questions_only_where_it_lacks_them(
    tmp_path: Path, *, doc: bool
) -> None:
    sample: dict[str, object] = {"doc_id": 0, "target": "Yes", "filtered_resps": "Yes."}
    sample["naturalbench_G_ACC"] = {"id": "0", "score": 1}
    asked = {"Index": "0", "Question": "Red?", "Answer": "Yes", "Question_Type": "yes_no"}
    lines = [sample | ({"doc": asked} if doc else {})]
    [summary] = inspect_archives([write_lines(tmp_path / "log.jsonl", lines)])
    assert summary.metrics == ("naturalbench",)
    assert ("-R questions.json" in summary.command) is not doc
