"""Variations of layouts that tools write: labels in lists, ids with slashes, several tasks."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest
from support.archive_samples import QUESTIONS, write_lines
from support.inspect_samples import write_inspect_json
from support.messages import expected_message

from hallujudge.metrics import AnswersItem
from hallujudge.sdk import Client
from hallujudge.sdk.archives import InputOptions, inspect_archives, read_items
from hallujudge.sdk.archives.further_files import GivenFiles
from hallujudge.sdk.comparison.overview_plan import plan_of
from hallujudge.sdk.errors import ArchiveError


def answers(path: Path) -> list[tuple[str, str | None, str | None]]:
    """Return id, response and label of each item."""
    items = read_items("pope", path, None)
    return [(i.id, i.response, i.label) for i in items if isinstance(i, AnswersItem)]


def sample(number: int, **more: object) -> dict[str, object]:
    return {"doc_id": number, "target": "yes", "filtered_resps": ["Yes."], **more}


def pope_sample(number: int) -> dict[str, object]:
    score = {"question_id": number, "prediction": "no", "ground_truth": "no"}
    return {"doc_id": number, "filtered_resps": ["No."], "pope_accuracy": score}


@pytest.mark.parametrize("target", [["yes"], "['yes']", '["yes"]', " yes"])
@pytest.mark.parametrize("more", [{}, {"filter": "none"}], ids=["lmms-eval", "harness"])
def test_the_only_label_of_a_list_is_read(
    tmp_path: Path, target: object, more: dict[str, object]
) -> None:
    path = tmp_path / "samples_mine.jsonl"
    write_lines(path, [sample(1, target=target, **more)])
    assert answers(path) == [("1", "Yes.", "yes")]


def test_a_list_of_several_labels_is_no_label(tmp_path: Path) -> None:
    path = tmp_path / "samples_mine.jsonl"
    write_lines(path, [sample(1, target="['yes', 'no']")])
    with pytest.raises(
        ArchiveError, match=expected_message("sdk.archives.answers:labels-are-neither-yes-nor-no")
    ):
        answers(path)


def test_samples_whose_ids_hold_slashes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    message = {"message": {"role": "assistant", "content": "Yes"}}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "{}")
        for name in ("coco/1", "2"):
            row: dict[str, object] = {"id": name, "epoch": 1, "input": "Is it?", "target": "yes"}
            row["output"] = {"choices": [message]}
            archive.writestr(f"samples/{name}_epoch_1.json", json.dumps(row))
    assert answers(path) == [("coco/1", "Yes", "yes"), ("2", "Yes", "yes")]


def test_the_log_of_the_metric_is_chosen_beside_other_yes_no_logs(tmp_path: Path) -> None:
    write_lines(tmp_path / "samples_mme.jsonl", [sample(1)])
    write_lines(tmp_path / "samples_pope.jsonl", [pope_sample(7)])
    assert answers(tmp_path) == [("7", "No.", "no")]


def test_two_runs_of_one_task_are_named(tmp_path: Path) -> None:
    for date in ("20250101_010203", "20250102_010203"):
        for task in ("pope_adv", "pope_pop"):
            write_lines(tmp_path / f"{date}_samples_{task}.jsonl", [pope_sample(7)])
    with pytest.raises(ArchiveError) as caught:
        answers(tmp_path)
    assert "20250101_010203_samples_pope_adv.jsonl and " in str(caught.value)
    assert expected_message(
        "sdk.archives.archive_files:samples-pope-adv-jsonl-both-hold-the"
    ) in str(caught.value)


def aborted_log(folder: Path, kind: str, *, journal: bool = False) -> Path:
    """Write a whole log, and one of a run that ended with an error after its first sample.

    With ``journal``, the run was killed before it wrote its header.
    """
    whole = json.loads(write_inspect_json(folder, QUESTIONS).read_text())
    header = {key: value for key, value in whole.items() if key != "samples"} | {"status": "error"}
    path = folder / f"2026-01-02T03-04-05+00-00_pope_def.{kind}"
    sample = json.dumps(whole["samples"][0])
    if kind == "json":
        path.write_text(json.dumps({**header, "samples": whole["samples"][:1]}))
        return path
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", json.dumps(header))
        archive.writestr("samples/1_epoch_1.json", sample)
        if not journal:
            archive.writestr("header.json", json.dumps(header))
    return path


@pytest.mark.parametrize("kind", ["json", "eval"])
def test_an_aborted_log_of_a_task_that_was_run_again_is_left_out(tmp_path: Path, kind: str) -> None:
    path = aborted_log(tmp_path, kind)
    source = read_items("pope", tmp_path, None)
    assert len(source) == len(QUESTIONS)
    assert f"left out: {path}: the status of its run is 'error'" in source.notes[0]
    plan = plan_of(tmp_path, tmp_path / "out", GivenFiles())
    assert [run.archive.suffix for run in plan.runs] == [".json"]
    assert [(each.archive, path.name in each.reason) for each in plan.left_out] == [
        (str(path), True)
    ]


@pytest.mark.parametrize(
    ("kind", "journal", "status"),
    [("json", False, "error"), ("eval", False, "error"), ("eval", True, "started")],
)
def test_an_aborted_log_alone_is_scored_with_a_note(
    tmp_path: Path, kind: str, journal: bool, status: str
) -> None:
    path = aborted_log(tmp_path, kind, journal=journal)
    with Client.embedded() as client:
        report = client.score("pope", responses=path)
    assert report.coverage.items == 1
    note = f"{path}: the status of its run is '{status}', so it may lack samples"
    assert note in report.notes


def test_shards_of_several_tasks_are_joined(tmp_path: Path) -> None:
    for shard, number in (("20250101_010203", 1), ("20250102_010203", 2)):
        for task in ("pope_adv", "pope_pop"):
            write_lines(tmp_path / f"{shard}_samples_{task}.jsonl", [pope_sample(number)])
    ids = {identifier for identifier, _, _ in answers(tmp_path)}
    assert ids == {"pope_adv:1", "pope_pop:1", "pope_adv:2", "pope_pop:2"}


def test_a_packed_parquet_file_is_read(tmp_path: Path) -> None:
    parquet, table = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow").table
    parquet.write_table(
        table({"id": ["1"], "response": ["No"], "label": ["no"]}), tmp_path / "a.parquet"
    )
    packed = tmp_path / "a.parquet.gz"
    packed.write_bytes(gzip.compress((tmp_path / "a.parquet").read_bytes()))
    assert answers(packed) == [("1", "No", "no")]


SUMMARY: dict[str, object] = {"results": {"pope": {}}, "versions": {}}
TOTALS: dict[str, object] = {"results": {"pope": {"pope_accuracy,none": 0.75}}}
STARTED: dict[str, object] = {"version": 2, "status": "started", "eval": {"model": "m"}}
LOG: dict[str, object] = {"version": 2, "status": "error", "eval": {"model": "m"}, "plan": {}}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            SUMMARY,
            "is the results file of an lmms-eval or lm-evaluation-harness run, which holds totals "
            "only, no responses: give its sample files",
        ),
        (TOTALS, "is the results file of an lmms-eval"),
        (STARTED, "is an Inspect AI log without samples"),
        (LOG, "is an Inspect AI log without samples: give a log of a run that finished a sample"),
    ],
)
def test_a_file_without_responses_is_named_first(
    tmp_path: Path, content: object, said: str
) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ArchiveError) as caught:
        answers(path)
    assert str(caught.value).startswith(f"{path} {said}")
    with pytest.raises(ArchiveError, match=r"Found: .*results.json is (an?|the) "):
        answers(tmp_path)


def test_results_of_no_task_are_not_the_totals_of_a_harness(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"results": {}}))
    with pytest.raises(ArchiveError) as caught:
        answers(path)
    assert "harness" not in str(caught.value)


POPE = {"image": "1.jpg", "question": "Is there a dog?", "answer": "Yes"}


@pytest.mark.parametrize(
    ("content", "records", "said"),
    [
        ([POPE], 1, "-R questions.json --out"),
        ([{**POPE, "question_id": 1}], 1, "-R questions.json --out"),
        ([{"question": "Is there a dog?", "answer": "Yes"}], 1, "--join order"),
        ({"v_1": ["A", "B"], "v_2": ["B", "A"]}, 2, "score vidhal-ordering"),
        ([{"image": "1.jpg", "caption": "A dog."}], 1, "score METRIC --responses"),
        ([{"number": 1, "said": "A dog."}], 1, "--map"),
    ],
)
def test_the_next_step_fits_the_keys(
    tmp_path: Path, content: object, records: int, said: str
) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content))
    (found,) = inspect_archives([path])
    assert found.records == records
    assert said in f"{found.command} {found.next_step}"


def test_questions_of_hallusion_bench_are_no_duplicates(tmp_path: Path) -> None:
    place = {"category": "VD", "subcategory": "chart", "set_id": "0", "gt_answer": "1"}
    rows = [
        {
            "doc_id": n,
            "filtered_resps": ["Yes"],
            "aAcc": {**place, "figure_id": n, "question_id": 0},
        }
        for n in (1, 2)
    ]
    path = tmp_path / "samples_hallusion_bench_image.jsonl"
    write_lines(path, rows)
    (found,) = inspect_archives([path])
    assert (found.records, found.duplicate_count) == (2, 0)


def test_where_a_filter_finds_nothing_the_models_own_response_counts(tmp_path: Path) -> None:
    found = sample(1, resps=[["It is yes."]], filter="strict-match")
    lost = sample(2, resps=[["No."]], filtered_resps=["[invalid]"], filter="strict-match")
    other = sample(1, resps=[["It is yes."]], filter="flexible-extract")
    path = write_lines(tmp_path / "samples_mine.jsonl", [found, lost, other])
    assert answers(path) == [("1", "Yes.", "yes"), ("2", "No.", "yes")]


@pytest.mark.parametrize(
    ("turns", "author", "text"),
    [("conversations", "from", "value"), ("messages", "role", "content")],
)
def test_a_turn_of_a_conversation_is_the_response(
    tmp_path: Path, turns: str, author: str, text: str
) -> None:
    talk = [{author: "human", text: "Is there?"}, {author: "gpt", text: "Yes."}]
    rows: list[dict[str, object]] = [
        {"id": 1, "label": "yes", turns: talk},
        {"id": 2, "label": "no", turns: [*talk, talk[0], {author: "gpt", text: "No."}]},
    ]
    path = write_lines(tmp_path / "answers.jsonl", rows)
    (summary,) = inspect_archives([path])
    assert (
        expected_message(
            "sdk.archives.layouts.benchmarks:such-as-the-last-one-response", turns, text
        )
        in summary.next_step
    )
    with pytest.raises(
        ArchiveError,
        match=expected_message(
            "sdk.archives.layouts.benchmarks:is-list-of-conversations-name-the-turn"
        ),
    ):
        answers(path)
    last = InputOptions(key_map={"response": f"{turns}.-1.{text}"})
    items = [i for i in read_items("pope", path, None, options=last) if isinstance(i, AnswersItem)]
    assert [item.response for item in items] == ["Yes.", "No."]


def test_numbers_that_a_table_holds_as_texts_join_whole_ids(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("question_id,response\n1.0,Yes.\n007,No\n2.50,No\n")
    questions = [{"question_id": n, "text": "Is it?", "label": "no"} for n in (1, "007", "2.50")]
    assert [item.id for item in read_items("pope", path, questions)] == ["1", "007", "2.50"]


def test_semicolons_separate_columns_of_a_file_without_a_suffix(tmp_path: Path) -> None:
    path = tmp_path / "answers"
    path.write_text("id;label;response\n1;yes;Yes.\n")
    assert answers(path) == [("1", "Yes.", "yes")]


def kit_row(number: int) -> dict[str, object]:
    return {"index": number, "question": f"Q{number}?", "answer": "Yes", "prediction": "Yes"}


def inspect_row(number: int) -> dict[str, object]:
    output = {"completion": "Yes", "model": "m"}
    return {"id": number, "epoch": 1, "input": "Q?", "target": "yes", "output": output}


YES_NO_LOGS = {
    "lmms-eval": ("20250102_030405_samples_{}.jsonl", sample),
    "VLMEvalKit": ("model_{}.json", kit_row),
    "Inspect AI": ("2025-01-02T03-04-05+00-00_{}_Ab1.json", inspect_row),
}
"""Tool -> names of its files, and a record with a yes/no label, whatever the benchmark."""


def write_logs(folder: Path, tool: str, *tasks: str) -> None:
    name, row = YES_NO_LOGS[tool]
    for count, task in enumerate(tasks):
        write_lines(folder / name.format(task), [row(10 * count + number) for number in (1, 2)])


@pytest.mark.parametrize("tool", YES_NO_LOGS)
def test_yes_no_logs_of_several_benchmarks_are_not_one_run(tmp_path: Path, tool: str) -> None:
    write_logs(tmp_path, tool, "MME", "vizwiz_yesno")
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.archives.archive_files:may-be-of-different-benchmarks"),
    ) as caught:
        answers(tmp_path)
    assert "MME" in str(caught.value)
    assert "vizwiz_yesno" in str(caught.value)
    assert "hallujudge score all" in str(caught.value)


@pytest.mark.parametrize("tool", YES_NO_LOGS)
def test_the_log_that_the_metric_names_is_chosen(tmp_path: Path, tool: str) -> None:
    write_logs(tmp_path, tool, "MME", "POPE")
    assert [identifier for identifier, *_ in answers(tmp_path)] == ["11", "12"]


@pytest.mark.parametrize("tool", ["lmms-eval", "Inspect AI"])
def test_logs_of_splits_that_the_metric_names_are_joined(tmp_path: Path, tool: str) -> None:
    write_logs(tmp_path, tool, "pope-random", "pope-popular", "MME")
    ids = [identifier for identifier, *_ in answers(tmp_path)]
    assert sorted(ids) == ["pope-popular:11", "pope-popular:12", "pope-random:1", "pope-random:2"]


def test_logs_of_one_task_of_inspect_ai_are_named_by_it(tmp_path: Path) -> None:
    write_logs(tmp_path, "Inspect AI", "yes-no")
    assert [summary.task for summary in inspect_archives([tmp_path])] == ["yes-no"]


@pytest.mark.parametrize("key", ["response", "prediction", "answer"])
@pytest.mark.parametrize("mapped", ["label", "id"])
def test_a_mapped_key_leaves_the_response_where_it_is(
    tmp_path: Path, key: str, mapped: str
) -> None:
    """As logs of ms-swift and OpenCompass: only the key of the label is unusual."""
    names = {"id": "id", "label": "label", mapped: "gold"}
    row: dict[str, object] = {names["id"]: 7, key: "Yes.", names["label"]: "yes"}
    path = write_lines(tmp_path / "a.jsonl", [row])
    inputs = InputOptions(key_map={mapped: "gold"})
    (item,) = read_items("pope", path, None, options=inputs)
    assert isinstance(item, AnswersItem)
    assert (item.id, item.response, item.label) == ("7", "Yes.", "yes")


def test_a_record_without_the_mapped_response_has_none(tmp_path: Path) -> None:
    rows = [{"id": 1, "said": "Yes", "answer": "No", "label": "yes"}, {"id": 2, "label": "no"}]
    path = write_lines(tmp_path / "a.jsonl", rows)
    inputs = InputOptions(key_map={"response": "said"})
    items = list(read_items("pope", path, None, options=inputs))
    assert [getattr(item, "response", "") for item in items] == ["Yes", None]


def test_answers_with_labels_need_no_id(tmp_path: Path) -> None:
    """As LLaMA-Factory's generated_predictions.jsonl."""
    row = {"prompt": "Is there a dog?", "predict": "Yes.", "label": "yes"}
    path = write_lines(tmp_path / "generated_predictions.jsonl", [row, row])
    assert [answer[1:] for answer in answers(path)] == [("Yes.", "yes")] * 2
    (summary,) = inspect_archives([path])
    assert summary.command == expected_message(
        "sdk.cli.app:hallujudge-score-pope-responses-out-results", path
    )
    assert summary.without_id == 2


def write_ranks(folder: Path, *ids: tuple[int, ...]) -> None:
    for rank, numbers in enumerate(ids):
        rows = [{"question_id": n, "response": "Yes", "label": "yes"} for n in numbers]
        write_lines(folder / f"rank{rank}.jsonl", rows)


def test_a_pattern_joins_plain_files(tmp_path: Path) -> None:
    write_ranks(tmp_path, (1, 3), (2, 4))
    assert [answer[0] for answer in answers(tmp_path / "rank*.jsonl")] == ["1", "3", "2", "4"]
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.archives.archive_files:files-hold-records-of-no-known-tool"),
    ):
        answers(tmp_path)


def test_a_pattern_over_other_files_is_refused(tmp_path: Path) -> None:
    write_ranks(tmp_path, (1, 2), (2, 3))
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.archives.archive_files:rank-jsonl-and-rank-jsonl-both-hold"),
    ):
        answers(tmp_path / "rank*.jsonl")
    write_lines(tmp_path / "rank1.jsonl", [{"name": "x", "said": "Yes", "label": "yes"}])
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.archives.archive_files:files-hold-records-of-no-known-tool"),
    ):
        answers(tmp_path / "rank*.jsonl")
