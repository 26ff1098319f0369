"""A run's folder is enough: its report can be recomputed from items.jsonl, for every metric."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from support.messages import expected_message
from support.metric_runs import RUNS
from support.running import here
from support.terminals import Terminal

from hallujudge.metrics import ChairItem, ItemResult, Outcome
from hallujudge.sdk import Client, RunReport, read_run, recompute
from hallujudge.sdk.archives.example_files import example_archives
from hallujudge.sdk.cli.viewer import find_runs
from hallujudge.sdk.errors import (
    ArchiveError,
    InvalidInputError,
    MissingExtraError,
    NotFoundError,
    OutputError,
)
from hallujudge.sdk.runs import RunItem, RunItems
from hallujudge.sdk.schemas import item_schema


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client.embedded() as client:
        yield client


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]


def scored(client: Client, metric: str = "chair", **more: Any) -> RunReport:
    return client.score(metric, **{**RUNS[metric](), **more})


@pytest.mark.parametrize("metric", RUNS)
def test_a_report_is_recomputed_from_its_items(client: Client, tmp_path: Path, metric: str) -> None:
    report = scored(client, metric)
    report.save(tmp_path)
    again = recompute(tmp_path)
    assert again.scores == report.scores
    assert again.groups == report.groups
    assert again.coverage == report.coverage
    assert again.totals == report.totals


@pytest.mark.parametrize("metric", RUNS)
def test_lines_hold_everything_and_are_valid(client: Client, tmp_path: Path, metric: str) -> None:
    report = scored(client, metric)
    validator = Draft202012Validator(item_schema())
    for keep_text in (True, False):
        report.save(tmp_path, keep_text=keep_text, overwrite=True)
        for line in lines(tmp_path):
            validator.validate(line)
            assert line["signature"] == report.signature
            assert ("response" in line) is keep_text
            assert ("response_sha256" in line) is not keep_text


def test_groups_can_be_chosen_anew(client: Client, tmp_path: Path) -> None:
    report = scored(client, "pope")
    report.save(tmp_path)
    assert list(report.groups) == ["model"]
    assert recompute(tmp_path, group_by=[]).groups == {}


def test_items_of_another_run_are_refused(client: Client, tmp_path: Path) -> None:
    scored(client).save(tmp_path / "one")
    scored(client, variant="corrected").save(tmp_path / "two")
    (tmp_path / "two" / "items.jsonl").replace(tmp_path / "one" / "items.jsonl")
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.runs.result_files:itemsjsonl-line-the-signature-differs-from"),
    ):
        recompute(tmp_path / "one")


def test_a_run_without_texts_keeps_hashes_of_responses(client: Client, tmp_path: Path) -> None:
    scored(client).save(tmp_path, keep_text=False)
    text = (tmp_path / "items.jsonl").read_text()
    assert "A dog on a sofa." not in text
    hashes = [line["response_sha256"] for line in lines(tmp_path)]
    known = [hashlib.sha256(text.encode()).hexdigest() for text in ("A dog on a sofa.", "A view.")]
    assert hashes == [known[0], None, known[1]]


def test_a_report_never_overwrites_what_it_was_made_from(client: Client, tmp_path: Path) -> None:
    source = tmp_path / "items.jsonl"
    source.write_text('{"image_id": 1, "caption": "A dog."}\n')
    report = client.score("chair", responses=source, references={"1": ["dog"]})
    before = source.read_bytes()
    with pytest.raises(
        InvalidInputError, match=expected_message("sdk.runs.folder:is-read-by-this-run-and-would")
    ):
        report.save(tmp_path)
    assert source.read_bytes() == before


def test_reports_hold_their_items(client: Client) -> None:
    report = scored(client)
    assert [item.id for item in report.items] == ["1", "2", "3"]
    assert report.items[0].response == "A dog on a sofa."
    assert report.items[-1].scores == report.items[2].scores
    assert [item.id for item in report.items[1:]] == ["2", "3"]
    assert report.items[1].reason == "RESPONSE_MISSING"
    with pytest.raises(IndexError):
        report.items[3]


def test_items_are_found_by_id(client: Client) -> None:
    items = scored(client).items
    assert items["2"] == items[1]
    asked: list[object] = ["2", "9", items[0]]
    assert [each in items for each in asked] == [True, False, True]
    with pytest.raises(
        NotFoundError, match=expected_message("sdk.runs.run_report:no-item-has-the-id")
    ):
        items["9"]
    with pytest.raises(
        NotFoundError, match=expected_message("sdk.runs.run_report:the-report-holds-no-items")
    ):
        scored(client, keep_items=False).items["1"]


def test_an_id_of_two_items_is_not_guessed() -> None:
    result = ItemResult(id="1", group_id="1", outcome=Outcome.UNSCORED, reason="RESPONSE_MISSING")
    items = RunItems.of(
        [RunItem(item=ChairItem(id="1", response=None, reference_objects=()), result=result)] * 2
    )
    with pytest.raises(
        InvalidInputError, match=expected_message("sdk.runs.run_report:two-items-have-the-id")
    ):
        items["1"]


def test_wrong_items_of_captions_and_answers(client: Client) -> None:
    captions = {"1": "A dog.", "2": "A dog and a cat.", "3": None}
    report = client.score(
        "chair", responses=captions, references={key: ["cat"] for key in captions}
    )
    assert [entry.id for entry in report.wrong()] == ["1", "2"]
    answers = scored(client, "pope")
    assert [entry.scores["accuracy"] for entry in answers.wrong()] == [0.0]
    with pytest.raises(
        InvalidInputError,
        match=expected_message("sdk.comparison.compared_runs:holds-of-its-items-score-with-keep"),
    ):
        scored(client, keep_items=False).wrong()


def test_large_runs_keep_their_items_in_a_file(client: Client) -> None:
    count = 20_500
    captions = {str(n): f"A dog and a cat, {n}." for n in range(count)}
    report = client.score(
        "chair",
        responses=captions,
        references={key: ["dog"] for key in captions},
    )
    assert len(report.items) == count
    assert [item.id for item in report.items] == list(captions)
    assert report.items["20300"] == report.items[20_300]
    for position in (0, 19_999, 20_000, 20_300, -1):
        item = report.items[position]
        assert item.response == captions[item.id]
        assert item.id == list(captions)[position]
        assert item.evidence is not None


def test_items_need_not_be_kept(client: Client, tmp_path: Path) -> None:
    report = scored(client, keep_items=False)
    assert report == scored(client)
    assert len(report.items) == 0
    with pytest.raises(
        InvalidInputError,
        match=expected_message("sdk.comparison.compared_runs:holds-of-its-items-score-with-keep"),
    ):
        report.save(tmp_path)


def test_reports_are_shown_and_become_tables(client: Client) -> None:
    report = scored(client, "pope")
    assert "accuracy" in str(report)
    assert max(map(len, str(report).splitlines())) <= 80
    assert "accuracy" in methodcaller("_repr_html_")(report)
    items = report.items_to_pandas()
    assert {"id", "response", "outcome", "statistics.tp"} <= {*items.columns}
    assert {"fields.model", "reason", "group_id", "scores.accuracy"} <= {*items.columns}
    assert list(items["id"]) == ["0", "1", "2"]
    assert list(items["response"]) == ["Yes", "no", "Not sure"]
    assert list(items["outcome"]) == ["scored", "scored", "unscored"]
    assert list(items["statistics.tp"]) == [1, 0, 0]
    assert items["evidence"][0]["answers"][0]["label"] == "yes"
    scores = report.to_pandas()
    assert list(scores) == ["group_by", "group", "score", "value", "ci_low", "ci_high", "n"]
    assert list(scores["score"])[: len(report.scores)] == list(report.scores)
    assert set(scores["group"]) == {"", "m"}
    assert r"\toprule" in report.latex
    assert report.markdown.startswith("### pope (")
    assert report.csv.startswith("group_by,group,score,value")


def test_tables_without_pandas_say_what_to_install(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = scored(client, "pope")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        ImportError,
        match=expected_message(
            "metrics.framework.report:to-pandas-needs-pandas-pip-install-pandas"
        ),
    ):
        report.to_pandas()
    with pytest.raises(
        MissingExtraError,
        match=expected_message("judge_service.errors:needs-the-extra-tables-pip-install"),
    ):
        report.items_to_pandas()


def test_items_become_a_parquet_file(client: Client, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    report = scored(client, "pope")
    held = parquet.read_table(report.items_to_parquet(tmp_path / "new" / "held.parquet"))
    stored = parquet.read_table(read_run(report.save(tmp_path / "run")).items_to_parquet())
    assert stored.equals(held)
    assert stored["id"].to_pylist() == ["0", "1", "2"]
    assert stored["scores.accuracy"].to_pylist()[2] is None
    assert json.loads(stored["evidence"].to_pylist()[0])["answers"][0]["label"] == "yes"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["held.parquet"]


def test_hostile_responses_fit_into_a_parquet_file(client: Client, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    report = client.score("chair", responses={"=1+1": "A dog \ud800."}, references={"=1+1": []})
    table = parquet.read_table(report.items_to_parquet(tmp_path / "items.parquet"))
    assert table["id"].to_pylist() == ["=1+1"]
    assert table["response"].to_pylist() == ["A dog \ufffd."]


@pytest.mark.parametrize("key", ["Causes", "Form", "Group_id", "Model Answer"])
def test_half_characters_of_a_record_are_stored(client: Client, tmp_path: Path, key: str) -> None:
    records = json.loads(example_archives()["haven"].files["eval_result.json"])
    report = client.score("haven", responses=[{**records[0], key: "half \ud800"}, *records[1:]])
    report.save(tmp_path / "run")
    assert "half \ufffd" in (tmp_path / "run" / "items.jsonl").read_text("utf-8")


def test_a_parquet_file_that_can_not_be_written(client: Client, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="can't write"):
        scored(client).items_to_parquet(tmp_path / "file" / "items.parquet")


@pytest.mark.parametrize("to_folder", [False, True])
def test_progress_is_shown_when_it_is_asked_for(
    client: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    to_folder: bool,
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    silent = scored(client, folder=tmp_path / "silent" if to_folder else None)
    assert terminal.getvalue() == ""
    told = scored(client, folder=tmp_path / "told" if to_folder else None, progress=True)
    assert "3/3" in terminal.getvalue()
    assert told.scores == silent.scores
    assert capsys.readouterr().out == ""


def _put(content: Any, field: str, value: object) -> None:
    *path, last = field.split(".")
    for key in path:
        content = content[key]
    content[last] = value


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scores.chair_i.value", float("nan")),
        ("scores.chair_s.ci_low", float("-inf")),
        ("scores.recall.n", 10**400),
        ("coverage.scored", float("nan")),
        ("coverage.bounds.chair_i.worst", "x"),
        ("totals.mentioned", [1]),
        ("settings.graph", float("nan")),
    ],
)
def test_a_damaged_value_of_a_report_is_named(
    client: Client, tmp_path: Path, field: str, value: object
) -> None:
    scored(client).save(tmp_path)
    told = _damaged(tmp_path / "report.json", field, value)
    with pytest.raises(ArchiveError) as caught:
        read_run(tmp_path)
    assert told in str(caught.value)


def test_every_command_names_a_number_that_is_none(client: Client, tmp_path: Path) -> None:
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    for folder in (a, b):
        scored(client).save(folder)
    told = _damaged(Path(a) / "report.json", "scores.chair_i.value", float("nan"))
    commands = (
        *(["report", a], ["report", a, "--format", "html"], ["compare", a, b]),
        *(["gate", b, "--baseline", a, "--max-regression", "chair_i=0.1"], ["leaderboard", a, b]),
    )
    for command in commands:
        ended = here(*command)
        assert ended.returncode in (1, 2), command
        assert told in ended.stderr.replace("\n", " "), command
    assert told in find_runs(tmp_path)[0].problem


def _damaged(path: Path, field: str, value: object) -> str:
    """Change a value of a report, and return how errors begin."""
    content = json.loads(path.read_text())
    _put(content, field, value)
    path.write_text(json.dumps(content))
    return f"{path}: not a report of hallujudge: {field} is "


def test_a_report_whose_values_are_not_numbers_is_refused(client: Client, tmp_path: Path) -> None:
    scored(client).save(tmp_path)
    path = tmp_path / "report.json"
    content = json.loads(path.read_text())
    content["scores"]["chair_i"]["value"] = "high"
    path.write_text(json.dumps(content))
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.runs.result_files:not-report-of-hallujudge-high-is-not"),
    ):
        read_run(tmp_path)
