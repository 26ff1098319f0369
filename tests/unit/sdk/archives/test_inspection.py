"""What archives are, how many items they have, what they lack and which command scores them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from support.archive_samples import CAPTION_LAYOUTS, CAPTIONS, QUESTION_LAYOUTS, QUESTIONS, packed
from support.archive_values import write_lines
from support.keyed_archives import ARCHIVES, MADE
from support.messages import expected_message

from hallujudge.metrics import AnswersItem
from hallujudge.sdk.archives import ArchiveSummary, inspect_archives, read_items
from hallujudge.sdk.archives.layouts import archive_readers
from hallujudge.sdk.cli import main


def one(path: Path | str) -> ArchiveSummary:
    (summary,) = inspect_archives([path])
    return summary


@pytest.mark.parametrize("layout", QUESTION_LAYOUTS)
def test_answers_are_counted(tmp_path: Path, layout: str) -> None:
    known = (*QUESTIONS, replace(QUESTIONS[0], id=99, text="Is there a cat?", answer=""))
    summary = one(QUESTION_LAYOUTS[layout](tmp_path, known))
    assert summary.metrics == ("pope",)
    assert summary.records == len(known)
    assert summary.duplicate_count == 0
    assert expected_message("sdk.cli.app:hallujudge-score-pope-responses") in summary.command
    tool = layout.split()[0]
    if tool == "plain":
        assert summary.layout == ""
        assert "--map id=uid --map response=model_output" in summary.command
        return
    assert tool.casefold() in summary.layout.casefold()
    assert summary.failures == 3
    assert summary.missing == 1


@pytest.mark.parametrize("layout", CAPTION_LAYOUTS)
def test_captions_are_counted(tmp_path: Path, layout: str) -> None:
    with_objects, write = CAPTION_LAYOUTS[layout]
    summary = one(write(tmp_path, CAPTIONS))
    assert summary.metrics == ("chair",)
    assert (summary.records, summary.ids) == (3, ("42", "7", "391895"))
    assert ("-R objects.json" in summary.command) is not with_objects


@pytest.mark.parametrize(
    "name",
    [
        "amber, alone",
        *MADE,
        "hallusion-bench",
        "vidhalluc-bqa",
        "video-hallucer, flat",
    ],
)
def test_plain_records_of_a_declared_benchmark_are_known(tmp_path: Path, name: str) -> None:
    metric, records, _ = ARCHIVES[name]
    summary = one(write_lines(tmp_path / "answers.jsonl", records))
    assert summary.metrics == (metric,)
    assert f"score {metric} " in summary.command


def test_the_keys_that_decide_are_named(tmp_path: Path) -> None:
    summary = one(packed(QUESTION_LAYOUTS["lmms-eval B2"](tmp_path, QUESTIONS), "gz"))
    assert summary.layout == expected_message(
        "sdk.archives.layouts.harnesses:an-lmms-eval-sample-file-of-task"
    )
    assert summary.why == ("doc_id", "pope_accuracy")
    assert summary.task == "pope"


def test_no_url_that_is_not_read_shows_its_password() -> None:
    (summary,) = inspect_archives(["ftp://ana:secret@h/x.jsonl?token=secret"])
    assert summary.path == "ftp://***@h/x.jsonl?token=***"
    assert "secret" not in str(summary)


def test_duplicates_and_cut_off_responses_are_counted(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "response": "Yes", "label": "yes", "finish_reason": "length"},
        {"id": 1, "response": "No", "label": "no", "finish_reason": "stop"},
        {"response": "No", "label": "no"},
    ]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows))
    summary = one(path)
    assert (summary.duplicates, summary.duplicate_count) == (("1",), 1)
    assert (summary.without_id, summary.truncated) == (1, 1)


def test_models_come_from_folders_and_records(tmp_path: Path) -> None:
    for model in ("llava", "qwen"):
        QUESTION_LAYOUTS["VLMEvalKit json"](tmp_path / model, QUESTIONS)
    QUESTION_LAYOUTS["lmms-eval A"](tmp_path, QUESTIONS)
    QUESTION_LAYOUTS["Inspect AI eval"](tmp_path, QUESTIONS)
    models = {summary.model for summary in inspect_archives([tmp_path])}
    assert models == {"llava/model", "qwen/model", "llava", "mockllm/model"}


def test_the_model_of_evalscope_is_its_folder_under_predictions(tmp_path: Path) -> None:
    """The layout of evalscope 1.14: DATE_TIME/predictions/MODEL/BENCHMARK_SUBSET.jsonl."""
    folder = tmp_path / "20261102_101500" / "predictions" / "m"
    folder.mkdir(parents=True)
    (folder / "pope_adversarial.jsonl").write_text('{"id": 1, "response": "Yes", "label": "yes"}\n')
    for given in (tmp_path, folder.parents[1], folder.parent):
        assert {summary.model for summary in inspect_archives([given])} == {"m"}


UNREAD = {
    "model_POPE.pkl": (b"\x80\x04\x95", "a Python pickle, which could run code"),
    "weights.dat": (b"\0\1\2\3" * 99, "binary data of an unknown format"),
    "utf32.json": ("[]".encode("utf-32"), "UTF-32 text; save it as UTF-8"),
    "empty.jsonl": (b"", "the file is empty"),
    "list.json": (b"[]", "no records; give a record for each response"),
    "header.csv": (b"id,response,label\n", "no records; give a record for each response"),
    "cut.jsonl": (b'{"doc_id": 1}\n{"doc_id', ""),
}


@pytest.mark.parametrize("name", [name for name, (_, said) in UNREAD.items() if said])
def test_what_cannot_be_read_says_why(tmp_path: Path, name: str) -> None:
    data, said = UNREAD[name]
    (tmp_path / name).write_bytes(data)
    assert said in one(tmp_path / name).problem


def test_one_bad_file_does_not_stop_the_rest(tmp_path: Path) -> None:
    for name, (data, _) in UNREAD.items():
        (tmp_path / name).write_bytes(data)
    QUESTION_LAYOUTS["lmms-eval C"](tmp_path, QUESTIONS)
    summaries = inspect_archives([tmp_path, tmp_path / "nowhere.jsonl"])
    assert sum(not summary.problem for summary in summaries) == 2, "samples and results"
    assert "No such file" in summaries[-1].problem


QA = [{"question": "Is he cooking?", "answer": "No.", "prediction": "No."}]
VIDEO = {"id": "entire_001", "split": "entire", "qa": QA, "description": "A man.", "judgement": ""}
PAIR = {
    name: {"video": "1.mp4", "answer": "yes", "predict": "Yes"}
    for name in ("basic", "hallucination")
}


CLIP = {"Choices": {"A": "a"}, "Correct Answer": "A", "Model Answer": "A"}
ORDER = {"video": "v", "Correct Answer": "AB", "Model Answer": "AB"}


@pytest.mark.parametrize(
    ("content", "metric"),
    [
        ({"0": [{"q": "?", "a": {"c": "Yes"}}], "1": []}, "vidhalluc-bqa"),
        ({"0": {"c": CLIP}}, "vidhalluc-mcq"),
        ([{"id": "c", **CLIP}], "vidhalluc-mcq"),
        ({"0": ORDER}, "vidhalluc-tsh"),
        ([{"gt_caption": "A dog.", "generated_objs": ["dog"]}], "openchair"),
        (VIDEO, "event-hallusion"),
        ([VIDEO], "event-hallusion"),
        ({**VIDEO, "qa": json.dumps(QA)}, "event-hallusion"),
        ({"entire": [VIDEO]}, "event-hallusion"),
        ({"set": "temporal", **PAIR}, "video-hallucer"),
        ([PAIR], "video-hallucer"),
        ({"temporal": [PAIR], "fact_detect": [PAIR]}, "video-hallucer"),
    ],
)
def test_rows_of_video_benchmarks_have_their_family(
    tmp_path: Path, content: object, metric: str
) -> None:
    path = tmp_path / "answers.json"
    path.write_text(json.dumps(content))
    assert one(path).metrics == (metric,)


def test_pairs_in_the_cells_of_a_table_are_named_and_read(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    with path.open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["set", *PAIR])
        rows.writerow(["temporal", *map(json.dumps, PAIR.values())])
    assert one(path).metrics == ("video-hallucer",)
    [item] = read_items("video-hallucer", path, None)
    assert isinstance(item, AnswersItem)
    assert [answer.response for answer in item.answers] == ["Yes", "Yes"]


def test_a_list_of_other_questions_is_not_of_a_video(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    path.write_text(json.dumps({"id": 1, "qa": ["Is it?"]}))
    assert one(path).layout == ""


def test_the_summary_of_a_run_is_explained(tmp_path: Path) -> None:
    QUESTION_LAYOUTS["lmms-eval C"](tmp_path, QUESTIONS)
    (results,) = [s for s in inspect_archives([tmp_path]) if s.path.endswith("results.json")]
    assert "no responses" in results.layout
    assert results.command == ""
    assert "--log_samples" in results.next_step


def test_advice_is_in_the_words_of_who_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python callers get arguments; the command line names its options."""
    # The option of another tool is what both give to that tool.
    advice = [reader.remedy.replace("--log_samples", "") for reader in archive_readers()]
    assert any(advice)
    assert [text for text in advice if "--" in text] == []
    path = write_lines(tmp_path / "nouns.jsonl", [{"id": 1, "nouns": ["dog"]}])
    assert one(path).next_step == expected_message(
        "sdk.archives.layouts.benchmarks:give-it-with-inputoptions-nouns-beside-answers"
    )
    for format in ("table", "json"):
        main(["archive", "inspect", str(path), "--format", format])
        assert (
            expected_message(
                "sdk.archives.layouts.benchmarks:give-it-with-nouns-file-beside-answers"
            )
            in capsys.readouterr().out
        )


def test_the_command_prints_a_page_or_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = QUESTION_LAYOUTS["VLMEvalKit xlsx"](tmp_path, QUESTIONS)
    assert main(["archive", "inspect", str(path)]) == 0
    page = capsys.readouterr().out
    assert expected_message("sdk.cli.app:hallujudge-score-pope-responses-out-results", path) in page
    assert "3 failure texts (unscored)" in page
    assert main(["archive", "inspect", str(tmp_path), "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["records"] == len(QUESTIONS)
    assert main(["archive", "inspect", str(tmp_path / "nowhere")]) == 1
    assert main(["archive", "inspect", str(path), "--format", "yaml"]) == 2


def test_standard_input_is_named_as_it_is_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"id": 1, "label": "yes", "response": {"text": "Yes."}}
    stream = io.TextIOWrapper(io.BytesIO(json.dumps(row).encode()))
    monkeypatch.setattr("sys.stdin", stream)
    assert main(["archive", "inspect", "-"]) == 0
    page = capsys.readouterr().out
    assert expected_message("sdk.cli.app:hallujudge-score-pope-responses-out-results-2") in page
    assert "failure texts" not in page


@pytest.mark.parametrize("own", [True, False])
def test_answers_with_objects_of_their_images_need_no_references(tmp_path: Path, own: bool) -> None:
    row = {"image_id": 1, "question": "?", "answer": "A dog.", "objs": ["dog"]}
    path = write_lines(tmp_path / "items.jsonl", [{**row, "objects": ["dog"]} if own else row])
    summary = one(path)
    assert summary.metrics == ("object-halbench",)
    assert summary.needs_references is not own
    assert ("-R objects.json" in summary.command) is not own


def test_files_without_records_are_known_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "safe_words.txt").write_text("hat\nshoe\n")
    (tmp_path / "reviews.json").write_text('["Rating: 4", "Rating: 1"]')
    (tmp_path / "notes.json").write_text('["Rating: 4"]')
    found = {Path(s.path).name: s for s in inspect_archives([tmp_path])}
    assert {name: (s.table, s.records) for name, s in found.items() if not s.problem} == {
        "safe_words.txt": ("safe_words", 2),
        "reviews.json": ("reviews", 2),
    }
    (tmp_path / "reviews.json").write_text('["Rating: 4", "Rat')
    assert one(tmp_path / "reviews.json").problem


@pytest.mark.parametrize(
    ("keys", "metrics"),
    [
        # An object is named in many files of yes/no questions.
        ({"object": "dog", "label": "no", "response": "Yes."}, ("pope",)),
        ({"object": "dog", "answer": "no", "prediction": "Yes."}, ("pope",)),
        ({"answer": "no", "output": "Yes."}, ("pope",)),
        # The text may be the question, and this its answer.
        ({"answer": "no", "text": "Is it a dog?"}, ()),
    ],
)
def test_yes_no_questions_about_an_object_are_no_other_benchmark(
    tmp_path: Path, keys: Mapping[str, str], metrics: tuple[str, ...]
) -> None:
    record = {"question_id": 1, "image": "1.jpg", "question": "Is there a dog?", **keys}
    path = write_lines(tmp_path / "answers.jsonl", [record])
    assert one(path).metrics == metrics


def test_an_object_without_its_question_is_of_dash_b(tmp_path: Path) -> None:
    record = {"question_id": "5.png", "object": "dog", "label": "no", "response": "Yes."}
    path = write_lines(tmp_path / "answers.jsonl", [record])
    assert one(path).metrics == ("dash-b",)
