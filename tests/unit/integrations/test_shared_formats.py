"""Reports where others read results: Every Eval Ever, the Hub's results, OpenTelemetry's events.

tools/try_harness.py checks the files of Every Eval Ever with its package, which needs Python 3.12.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import parse_eval_result_entries
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from support.collectors import collecting_logs
from support.comparison_runs import chair_run, pope_run

from hallujudge.sdk import RunReport, read_run
from hallujudge.sdk.cli import main
from hallujudge.sdk.errors import InvalidInputError, MissingExtraError, UnavailableError

MODEL = "llava-hf/llava-1.5-7b-hf"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("runs") / "chair"
    chair_run(made, 0.5, images=8, missing=("2",))
    return made


@pytest.fixture(scope="module")
def report(folder: Path) -> RunReport:
    return RunReport.of(
        read_run(folder).report, chair_run(None, 0.5, images=8, missing=("2",)).items
    )


def written(folder: Path, out: Path, *more: str) -> tuple[Path, dict[str, Any], list[Any]]:
    """Write a run for Every Eval Ever; return the file, its content and the items' rows."""
    to = ["--to", f"every-eval-ever:{out}", "--model", MODEL]
    assert main(["report", str(folder), *to, *more, "-f", "csv"]) == 0
    [file] = out.rglob("*.json")
    [rows] = out.rglob("*_samples.jsonl")
    content = json.loads(file.read_text())
    return file, content, [json.loads(line) for line in rows.read_text().splitlines()]


def test_scores_intervals_and_what_has_no_field(folder: Path, tmp_path: Path) -> None:
    file, content, rows = written(folder, tmp_path, "--dataset", "org/coco-chair")
    assert file.relative_to(tmp_path).parts[:4] == ("data", "chair", *MODEL.split("/"))
    run = read_run(folder)
    [chair_i] = [
        one
        for one in content["evaluation_results"]
        if one["metric_config"]["metric_name"] == "chair_i"
    ]
    score, details = run.report["chair_i"], chair_i["score_details"]
    assert details["score"] == score.value
    interval = details["uncertainty"]["confidence_interval"]
    assert (interval["lower"], interval["upper"]) == (score.ci_low, score.ci_high)
    assert interval["confidence_level"] == 0.95
    config = chair_i["metric_config"]
    assert (config["lower_is_better"], config["min_score"], config["max_score"]) == (True, 0, 1)
    assert config["additional_details"]["signature"] == run.signature
    bound = run.report.coverage.bounds["chair_i"]
    assert (details["details"]["unscored"], details["details"]["worst"]) == ("1", repr(bound.worst))
    assert json.loads(details["details"]["unscored_reasons"]) == {"RESPONSE_MISSING": 1}
    assert chair_i["source_data"]["hf_repo"] == "org/coco-chair"
    # An unscored item has no number, and so no row.
    assert {row["sample_id"] for row in rows} == set(map(str, range(8))) - {"2"}
    line = next(one for one in run.lines() if one["id"] == "0")
    [row] = [
        r for r in rows if r["sample_id"] == "0" and r["evaluation_result_id"].endswith("#chair_i")
    ]
    assert row["evaluation"] == {
        "score": line["scores"]["chair_i"],
        "is_correct": line["scores"]["chair_i"] == 0,
    }
    assert row["output"] == {"raw": [line["response"]]}


def test_the_same_run_gets_the_same_names(folder: Path, report: RunReport, tmp_path: Path) -> None:
    file, _, _ = written(folder, tmp_path)
    again, _, _ = written(folder, tmp_path)
    assert file == again
    report.log_to(f"every-eval-ever:{tmp_path / 'other'}", model="a/b")
    assert len(list((tmp_path / "other").rglob("*.json*"))) == 2


def test_answers_have_their_labels(tmp_path: Path) -> None:
    pope_run(tmp_path / "run", 0.8)
    _, _, rows = written(tmp_path / "run", tmp_path / "out")
    row = rows[0]
    assert row["input"]["reference"] in (["yes"], ["no"])
    assert row["answer_attribution"][0]["extracted_value"] in ("yes", "no")


def test_the_hub_reads_its_entry(folder: Path, tmp_path: Path) -> None:
    to = ["--to", f"hf-eval-results:{tmp_path}", "--dataset", "org/coco-chair:val2014"]
    assert main(["report", str(folder), *to, "-f", "csv"]) == 0
    file = tmp_path / ".eval_results" / "chair_published.yaml"
    [entry] = parse_eval_result_entries(yaml.safe_load(file.read_text()))
    run = read_run(folder)
    assert (entry.dataset_id, entry.task_id) == ("org/coco-chair", "val2014")
    assert entry.value == run.report["chair_i"].value
    assert run.signature in entry.notes
    assert "8 items, 1 unscored" in entry.notes
    assert f"worst case {run.report.coverage.bounds['chair_i'].worst:.4f}" in entry.notes


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--to", "mlfow"], "mlflow"),
        (["--to", "every-eval-ever"], "ORG/NAME"),
        (["--to", "every-eval-ever", "--model", "llava"], "'llava'"),
        (["--to", "every-eval-ever", "--model", "a/.."], "'a/..'"),
        (["--to", "hf-eval-results"], "dataset"),
        (["--to", "hf-eval-results", "--dataset", "pope"], "'pope'"),
        (["--model", MODEL], "--to"),
    ],
)
def test_mistakes_are_named_before_anything_is_printed(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert main(["report", str(folder), *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err


def test_a_report_without_values_is_refused(tmp_path: Path) -> None:
    empty = chair_run(None, 0.5, images=1, missing=("0",))
    for place in ("every-eval-ever", "hf-eval-results"):
        with pytest.raises(InvalidInputError, match="value"):
            empty.log_to(f"{place}:{tmp_path}", model=MODEL, dataset="a/b")
    assert list(tmp_path.iterdir()) == []


def test_events_reach_a_collector(folder: Path) -> None:
    with collecting_logs() as collector:
        assert main(["report", str(folder), "--to", f"otel:{collector.address}", "-f", "csv"]) == 0
    run = read_run(folder)
    assert collector.paths == {"/v1/logs"}
    events = collector.evaluations()
    [total] = [
        one
        for one in events
        if one["gen_ai.evaluation.name"] == "chair/chair_i" and "gen_ai.response.id" not in one
    ]
    score = run.report["chair_i"]
    assert total["gen_ai.evaluation.score.value"] == score.value
    assert (total["hallujudge.ci_low"], total["hallujudge.ci_high"]) == (
        score.ci_low,
        score.ci_high,
    )
    assert total["hallujudge.signature"] == run.signature
    assert (total["hallujudge.items"], total["hallujudge.unscored"]) == (8, 1)
    [unscored] = [one for one in events if "error.type" in one]
    assert (unscored["gen_ai.response.id"], unscored["error.type"]) == ("2", "RESPONSE_MISSING")
    assert "gen_ai.evaluation.score.value" not in unscored
    lines = {one["id"]: one["scores"].get("chair_i") for one in run.lines()}
    found = {
        one["gen_ai.response.id"]: one["gen_ai.evaluation.score.value"]
        for one in events
        if one["gen_ai.evaluation.name"] == "chair/chair_i" and "gen_ai.response.id" in one
    }
    assert found == {key: value for key, value in lines.items() if value is not None}
    assert any("hallucinated" in one.get("gen_ai.evaluation.explanation", "") for one in events)


@pytest.fixture
def own_exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryLogRecordExporter]:
    """The exporter of a provider that the program sets, as applications do."""
    exporter: Any = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]  # OpenTelemetry's
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    monkeypatch.setattr("opentelemetry._logs.get_logger_provider", lambda: provider)
    yield exporter
    provider.shutdown()


def test_events_go_to_the_providers_of_the_program(
    report: RunReport, own_exporter: InMemoryLogRecordExporter
) -> None:
    report.log_to("otel", step=7, model=MODEL)
    records = [one.log_record for one in own_exporter.get_finished_logs()]
    assert {one.event_name for one in records} == {"gen_ai.evaluation.result"}
    assert {(one.attributes or {})["hallujudge.step"] for one in records} == {7}
    assert {(one.attributes or {})["hallujudge.model"] for one in records} == {MODEL}


def test_an_address_that_is_none_is_refused(report: RunReport) -> None:
    with pytest.raises(InvalidInputError, match="'localhost:4318'"):
        report.log_to("otel:localhost:4318")


def test_events_that_no_collector_takes_are_not_logged(report: RunReport) -> None:
    # Nothing listens on the port of "discard".
    with pytest.raises(UnavailableError, match=r"no collector at http://127\.0\.0\.1:9 took"):
        report.log_to("otel:http://127.0.0.1:9")


def test_events_without_opentelemetry_name_the_extra(
    report: RunReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry._logs", None)
    with pytest.raises(MissingExtraError, match="logging to OpenTelemetry needs the extra otel"):
        report.log_to("otel")
