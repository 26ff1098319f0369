"""The further files of an archive are found in its folder; what is ambiguous is listed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message

from hallujudge.metrics.families import metric_names
from hallujudge.sdk import Client
from hallujudge.sdk.archives.example_files import write_example
from hallujudge.sdk.archives.further_files import GivenFiles
from hallujudge.sdk.cli import main
from hallujudge.sdk.comparison.overview import Overview, score_all
from hallujudge.sdk.comparison.overview_plan import Plan, plan_of
from hallujudge.sdk.errors import InvalidInputError

# AMBER's example is scored with nouns by rules, and Mementos' with the graphs of a domain.
OPTIONS = {"amber", "mementos"}


def planned(folder: Path, references: Mapping[str, Any] | None = None) -> Plan:
    return plan_of(folder, folder / "out", GivenFiles(references=references or {}))


def reasons(plan: Plan) -> dict[str, str]:
    return {Path(entry.archive).name: entry.reason for entry in plan.left_out}


@pytest.fixture(scope="module")
def every_metric(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example archive of every metric."""
    folder = tmp_path_factory.mktemp("archives") / "all"
    for metric in metric_names():
        write_example(metric, folder / metric)
    return folder


@pytest.fixture(scope="module")
def overview(every_metric: Path) -> Overview:
    with Client.embedded() as client:
        return score_all(every_metric, every_metric.with_name("out"), client=client)


def test_an_archive_of_every_metric_needs_no_option(overview: Overview) -> None:
    assert overview.left_out == ()
    assert {run.report.metric for run in overview.runs} == set(metric_names())
    # HallusionBench's example has its answers twice: with labels and judgements, and without.
    assert len(overview.runs) == len(metric_names()) + 1


@pytest.mark.parametrize("metric", sorted({*metric_names()} - OPTIONS))
def test_the_files_found_are_those_of_the_examples_command(
    every_metric: Path, overview: Overview, metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = write_example(metric, every_metric / metric)
    monkeypatch.chdir(every_metric / metric)
    out = every_metric.with_name("alone") / metric
    words = example.command.split()
    assert main([*words[1 : words.index("--out")], "--out", str(out)]) in (0, 3)
    alone = json.loads((out / "report.json").read_text())["scores"]
    runs = [json.loads((r.folder / "report.json").read_text()) for r in overview.runs]
    assert alone in [run["scores"] for run in runs if run["metric"] == metric]


def test_scores_without_a_value_make_room_for_others(overview: Overview) -> None:
    (table,) = [grid for grid in overview.narrow_page().grids if grid.title == "amber"]
    # The only description is unscored, since its nouns are not given.
    assert "accuracy" in str(table)
    assert "chair" not in str(table)


def test_files_that_a_run_reads_are_listed_with_what_they_are(overview: Overview) -> None:
    beside = {"/".join(Path(e.archive).parts[-2:]): e.reason for e in overview.beside}
    assert beside["amber/safe_words.txt"] == "safe words of amber"
    assert beside["mmhal/reviews.json"] == "reviews of mmhal"
    assert beside["mementos/human.csv"] == "references of mementos"


@pytest.mark.parametrize(
    ("metric", "file"),
    [
        ("vidhal-mcqa", "options.json"),
        ("tri-he", "graphs.json"),
        ("vidhalluc-sth", "similarities.json"),
    ],
)
def test_a_file_is_found_by_its_keys(tmp_path: Path, metric: str, file: str) -> None:
    write_example(metric, tmp_path / metric)
    (tmp_path / metric / file).rename(tmp_path / metric / "another_name.json")
    plan = planned(tmp_path)
    assert [run.metric for run in plan.runs] == [metric]
    assert "another_name.json" in plan.runs[0].command
    assert plan.left_out == ()


@pytest.mark.parametrize(
    ("metric", "file", "what"),
    [
        ("vidhal-ordering", "options.json", "options"),
        ("tri-he", "graphs.json", "references"),
        ("chair", "objects.json", "references"),
    ],
)
def test_of_two_candidates_none_is_taken(tmp_path: Path, metric: str, file: str, what: str) -> None:
    write_example(metric, tmp_path / metric)
    shutil.copy(tmp_path / metric / file, tmp_path / metric / "older.json")
    plan = planned(tmp_path)
    assert plan.runs == ()
    (reason,) = [why for why in reasons(plan).values() if file in why]
    first, second = sorted([file, "older.json"])
    option = f"--references {metric}=FILE"
    if what != "references":
        option = f"--input {metric}.{what}=FILE"
    assert reason == expected_message(
        "sdk.archives.further_files:two-candidates", what, f"{first} or {second}", option
    )
    (command,) = [entry.command for entry in plan.left_out if entry.command]
    assert f"hallujudge score {metric} " in command
    # What is certain is in the command.
    assert what == "references" or str(tmp_path / metric / "annotations.json") in command


def test_a_file_about_the_answers_of_one_model_is_not_shared(tmp_path: Path) -> None:
    write_example("mmhal", tmp_path / "logs")
    for name in ("a.answers.json", "b.answers.json"):
        shutil.copy(tmp_path / "logs" / "answers.json", tmp_path / "logs" / name)
    (tmp_path / "logs" / "answers.json").unlink()
    plan = planned(tmp_path / "logs")
    assert plan.runs == ()
    assert set(reasons(plan)) == {"a.answers.json", "b.answers.json"}
    assert [(Path(e.archive).name, e.reason) for e in plan.beside] == [
        ("reviews.json", "reviews of mmhal")
    ]
    shared = "reviews.json may be of a.answers.json or b.answers.json"
    assert shared in reasons(plan)["b.answers.json"]
    # Display orders are the benchmark's, whichever model answers.
    write_example("vidhal-mcqa", tmp_path / "vidhal")
    shutil.copy(tmp_path / "vidhal" / "predictions.json", tmp_path / "vidhal" / "other.json")
    assert [run.metric for run in planned(tmp_path / "vidhal").runs] == ["vidhal-mcqa"] * 2


def test_nouns_of_one_models_descriptions_are_not_shared(tmp_path: Path) -> None:
    write_example("amber", tmp_path)
    for name in ("a.answers.json", "b.answers.json"):
        shutil.copy(tmp_path / "answers.json", tmp_path / name)
    (tmp_path / "answers.json").unlink()
    (tmp_path / "nouns.json").write_text('[{"id": 1, "nouns": ["man"]}, {"id": 5, "nouns": []}]')
    assert (
        "nouns.json may be of a.answers.json or b.answers.json"
        in (reasons(planned(tmp_path))["b.answers.json"])
    )


def test_references_that_are_given_decide_the_metric(tmp_path: Path) -> None:
    for metric in ("pope", "open-objects"):
        write_example(metric, tmp_path / "given")
        (tmp_path / "logs" / metric).mkdir(parents=True)
    known = {
        "pope": tmp_path / "given" / "questions.jsonl",
        "open-objects": [tmp_path / "given" / "references.jsonl"],
    }
    (tmp_path / "given" / "answers.jsonl").rename(tmp_path / "logs" / "pope" / "a.jsonl")
    (tmp_path / "given" / "captions.jsonl").rename(tmp_path / "logs" / "open-objects" / "a.jsonl")
    for metric, file in known.items():
        runs = planned(tmp_path / "logs", {metric: file}).runs
        assert (metric, metric) in {(run.model, run.metric) for run in runs}
    both = planned(tmp_path / "logs", known)
    assert [(run.model, run.metric) for run in both.runs] == [
        ("open-objects", "open-objects"),
        ("pope", "pope"),
    ]


def test_records_that_fit_several_references_are_listed(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.json").write_text('[{"id": 1, "response": "Yes, a cat."}]')
    question = {"question_id": 1, "question": "Is there a cat?", "image": "1.jpg"}
    known = {"pope": tmp_path / "pope.json", "vqa": tmp_path / "vqa.json"}
    known["pope"].write_text(json.dumps([{**question, "label": "yes"}]))
    known["vqa"].write_text(json.dumps([{**question, "direct_answers": ["cat"]}]))
    plan = planned(logs, known)
    (left,) = plan.left_out
    assert "it may be of pope or vqa, whose references all fit" in left.reason
    assert "hallujudge score pope " in left.command
    assert [run.metric for run in planned(logs, {"vqa": known["vqa"]}).runs] == ["vqa"]


def test_a_log_with_labels_of_its_own_takes_nothing_from_its_folder(tmp_path: Path) -> None:
    write_example("elv-halluc", tmp_path)
    alone = planned(tmp_path).runs
    write_example("vidhal-mcqa", tmp_path)
    write_example("pope", tmp_path / "more")
    (tmp_path / "more" / "questions.jsonl").rename(tmp_path / "questions.jsonl")
    (tmp_path / "safe_words.txt").write_text("hat\n")
    assert [run for run in planned(tmp_path).runs if run.metric == "elv-halluc"] == list(alone)


def test_further_files_are_given_by_metric_and_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_example("mmhal", tmp_path / "logs")
    given = tmp_path / "judge.json"
    (tmp_path / "logs" / "reviews.json").rename(given)
    command = ["score", "all", str(tmp_path / "logs"), "-o", str(tmp_path / "out")]
    assert main(command) == 1
    assert "--input mmhal.reviews=FILE" in " ".join(capsys.readouterr().out.split())
    assert main([*command, "--input", f"mmhal.reviews={given}"]) == 0
    for wrong in ("mmhal=x", "mmhal.reviews=", "mmhal.options=x", "nothing.reviews=x"):
        capsys.readouterr()
        assert main([*command, "--input", wrong]) == 2
        assert expected_message("sdk.cli.archive_commands:input", wrong) in capsys.readouterr().err
    with Client.embedded() as client, pytest.raises(InvalidInputError, match="mmhal does not use"):
        score_all(tmp_path / "logs", tmp_path / "out", client=client, inputs={"mmhal": {"x": "y"}})


def test_options_of_a_metric_are_given_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_example("amber", tmp_path / "logs")
    command = ["score", "all", str(tmp_path / "logs"), "-o", str(tmp_path / "out")]
    assert main(command) == 3
    assert "set --option amber.nouns=rules" in " ".join(capsys.readouterr().out.split())
    given = ["--option", "amber.nouns=rules", "--option", "amber.variant=corrected"]
    assert main([*command, *given, "--overwrite", "--format", "json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert (run["variant"], run["unscored"]) == ("corrected", 0)
    for wrong in ("amber.nouns", "amber.noun=rules", "nothing.nouns=rules", "amber.nouns=mine"):
        assert main([*command, "--option", wrong]) == 2
        assert f"--option {wrong}: " in capsys.readouterr().err


def test_a_reason_has_one_full_stop(tmp_path: Path) -> None:
    write_example("vidhal-mcqa", tmp_path / "logs")
    (tmp_path / "logs" / "options.json").unlink()
    with Client.embedded() as client:
        notes = score_all(tmp_path / "logs", tmp_path / "out", client=client).page().notes
    assert notes
    assert not [note for note in notes if ".. " in note]
