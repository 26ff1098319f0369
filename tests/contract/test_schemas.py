"""The shipped JSON Schemas accept what every metric writes, and reject anything else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from support import scripted_llm as llm
from support.metric_runs import RUNS, SCENE
from support.tri_he_samples import judge_step

from hallujudge.metrics import ItemResult, Report
from hallujudge.sdk import Client
from hallujudge.sdk.schemas import calibration_schema, item_schema, judge_card_schema, report_schema


def scored(client: Client, metric: str, **arguments: Any) -> tuple[Report, list[ItemResult]]:
    results: list[ItemResult] = []
    report = client.score(metric, on_batch=lambda batch: results.extend(batch.results), **arguments)
    return report, results


def written(value: Report | ItemResult) -> Any:
    """What a reader of the file gets."""
    return json.loads(json.dumps(value.to_json()))


def check(report: Report, results: list[ItemResult]) -> None:
    Draft202012Validator(report_schema()).validate(written(report))
    validator = Draft202012Validator(item_schema())
    for result in results:
        validator.validate(written(result))


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client.embedded() as client:
        yield client


def test_schemas_are_valid() -> None:
    for schema in (report_schema(), item_schema(), calibration_schema(), judge_card_schema()):
        assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
        Draft202012Validator.check_schema(schema)


def test_a_run_of_every_metric_is_here() -> None:
    from hallujudge.metrics.families import metric_names

    assert sorted(RUNS) == sorted(metric_names())


@pytest.mark.parametrize("metric", RUNS)
def test_what_a_metric_writes_is_valid(client: Client, metric: str) -> None:
    report, results = scored(client, metric, **RUNS[metric]())
    assert results
    check(report, results)


def test_what_language_models_judge_is_valid() -> None:
    server = llm.ScriptedLlm(judge_step)
    stop = server.in_thread()
    claims = [["man", "riding", "horse"], ["cat", "REFUSE", "horse"], ["dog", "near", "horse"]]
    try:
        with Client.embedded({"llm.url": server.url, "llm.model": "tiny"}) as client:
            report, results = scored(
                client,
                "tri-he",
                responses=[
                    {"image_id": 1, "claims": claims},
                    {"image_id": 1, "question": "And?", "claims": claims[1:2]},
                ],
                references={"1": SCENE},
                options={"judge": "llm", "extractor": "given"},
            )
    finally:
        stop()
    assert report.coverage.unscored == 1
    check(report, results)


@pytest.mark.parametrize(
    ("metric", "option", "said"),
    [("hallusion-bench", "correctness", "correct"), ("event-hallusion", "judgements", "yes")],
)
def test_evidence_of_a_judge_of_answers_is_valid(metric: str, option: str, said: str) -> None:
    server = llm.ScriptedLlm(llm.completion_of_odd(said))
    stop = server.in_thread()
    try:
        with Client.embedded({"llm.url": server.url, "llm.model": "tiny"}) as client:
            run = RUNS[metric]()
            report, results = scored(client, metric, **run | {"options": {option: "llm"}})
    finally:
        stop()
    assert any("judging" in written(result)["evidence"] for result in results)
    check(report, results)


def broken_item(line: dict[str, Any], change: str) -> dict[str, Any]:
    if change == "extra key":
        return {**line, "surprise": 1}
    if change == "missing key":
        return {key: value for key, value in line.items() if key != "outcome"}
    if change == "unknown outcome":
        return {**line, "outcome": "maybe"}
    if change == "reason of a scored item":
        return {**line, "reason": "NO_CLAIMS", "detail": ""}
    if change == "unscored without reason":
        return {**line, "outcome": "unscored"}
    return {**line, "evidence": {**line["evidence"], "mentioned": [["dog"]]}}


@pytest.mark.parametrize(
    "change",
    [
        "extra key",
        "missing key",
        "unknown outcome",
        "reason of a scored item",
        "unscored without reason",
        "broken evidence",
    ],
)
def test_a_broken_item_is_not_valid(client: Client, change: str) -> None:
    _, results = scored(client, "chair", **RUNS["chair"]())
    validator = Draft202012Validator(item_schema())
    line = written(results[0])
    assert validator.is_valid(line)
    assert not validator.is_valid(broken_item(line, change))


def test_a_broken_report_is_not_valid(client: Client) -> None:
    report, _ = scored(client, "chair", **RUNS["chair"]())
    validator = Draft202012Validator(report_schema())
    content = written(report)
    for broken in (
        {key: value for key, value in content.items() if key != "signature"},
        {**content, "scores": {"chair_i": 0.5}},
        {**content, "coverage": {**content["coverage"], "items": -1}},
        {**content, "surprise": 1},
    ):
        assert not validator.is_valid(broken)
