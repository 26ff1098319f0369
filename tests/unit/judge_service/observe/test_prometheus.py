"""Metrics count what is recorded, and their labels stay few."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from hallujudge.judge_service.access import Caller, acting_as
from hallujudge.judge_service.observe import CallRecord, WorkerState, key_label
from hallujudge.judge_service.observe.prometheus import (
    OTHER,
    BoundedLabel,
    MetricsRecorder,
    Readings,
    new_registry,
)
from hallujudge.judge_service.tenancy import JudgeCall, JudgeState

KEY = Caller(id="key:k1", name="Ada", key_id="k1")


@pytest.fixture
def registry() -> CollectorRegistry:
    states = [
        JudgeState(model="m", running=2, waiting=1, limit=8, circuit_open=False),
        JudgeState(model="m", running=1, waiting=0, limit=8, circuit_open=True),
    ]
    return new_registry(
        Readings(
            memory_held=lambda: 7,
            memory_limit=9,
            running_limit=64,
            waiting_limit=256,
            judges=lambda: states,
            well=lambda: True,
            check_seconds=lambda: 0.001,
            workers=lambda: WorkerState(busy=2, waiting=3, deaths=1),
            dropped_lines=lambda: {"server": 5},
        )
    )


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, labels)


def test_a_key_has_its_newest_name(registry: CollectorRegistry) -> None:
    recorder = MetricsRecorder(registry)
    for name in ("ana", "Ana B."):
        recorder.call_ended(CallRecord(method="Score", key="k1", key_name=name))
    recorder.call_ended(CallRecord(method="Score", key="anonymous"))
    infos = [
        sample.labels
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "hallujudge_key_info"
    ]
    assert infos == [{"key": "k1", "name": "Ana B."}]


def test_a_call_waits_runs_and_ends(registry: CollectorRegistry) -> None:
    recorder = MetricsRecorder(registry)
    call = CallRecord(method="Score", key="k1")
    recorder.call_begun(call, ())
    recorder.call_waits(call)
    assert value(registry, "hallujudge_waiting_calls", key="k1") == 1
    recorder.call_runs(call)
    assert value(registry, "hallujudge_waiting_calls", key="k1") == 0
    assert value(registry, "hallujudge_running_calls", method="Score") == 1
    recorder.call_ended(call)
    assert value(registry, "hallujudge_running_calls", method="Score") == 0
    assert value(registry, "hallujudge_calls_total", method="Score", status="OK") == 1
    assert value(registry, "hallujudge_key_calls_total", key="k1", status="OK") == 1
    assert value(registry, "hallujudge_wait_seconds_count") == 1


def test_a_call_that_ends_while_it_waits_leaves_the_queue(registry: CollectorRegistry) -> None:
    recorder = MetricsRecorder(registry)
    call = CallRecord(method="Score", key="k1", status="CANCELLED")
    recorder.call_waits(call)
    recorder.call_ended(call)
    assert value(registry, "hallujudge_waiting_calls", key="k1") == 0
    assert value(registry, "hallujudge_running_calls", method="Score") is None
    assert value(registry, "hallujudge_wait_seconds_count") == 1


def test_a_call_without_a_known_caller_counts_as_unknown(registry: CollectorRegistry) -> None:
    recorder = MetricsRecorder(registry)
    recorder.call_ended(CallRecord(method="Score", status="UNAUTHENTICATED"))
    labels = {"key": "unknown", "status": "UNAUTHENTICATED"}
    assert value(registry, "hallujudge_key_calls_total", **labels) == 1


def test_items_count_by_outcome_and_reason(registry: CollectorRegistry) -> None:
    recorder = MetricsRecorder(registry)
    recorder.items_scored("pope", {"": 1, "RESPONSE_MISSING": 1, "made up": 1})
    assert value(registry, "hallujudge_items_total", metric="pope", outcome="scored") == 1
    assert value(registry, "hallujudge_items_total", metric="pope", outcome="unscored") == 2
    for reason in ("RESPONSE_MISSING", "other"):
        labels = {"metric": "pope", "reason": reason}
        assert value(registry, "hallujudge_unscored_items_total", **labels) == 1
    assert b"made up" not in generate_latest(registry)


def test_the_state_of_workers(registry: CollectorRegistry) -> None:
    assert value(registry, "hallujudge_workers_busy") == 2
    assert value(registry, "hallujudge_worker_tasks_waiting") == 3
    assert value(registry, "hallujudge_worker_deaths") == 1


def test_judge_calls_count_for_their_model_and_key(registry: CollectorRegistry) -> None:
    recorder = MetricsRecorder(registry)
    with acting_as(KEY):
        recorder.judge_called(
            JudgeCall(
                model="m",
                outcome="answered",
                seconds=0.3,
                prompt_tokens=100,
                cached_tokens=60,
                completion_tokens=5,
                cost=0.02,
            )
        )
        recorder.budget_refused()
    recorder.looked_up("cache")
    recorder.fell_back("llm", "JUDGE_TIMEOUT")
    assert value(registry, "hallujudge_judge_calls_total", model="m", outcome="answered") == 1
    assert value(registry, "hallujudge_judge_tokens_total", model="m", kind="cached") == 60
    assert value(registry, "hallujudge_judge_cost_total", model="m") == 0.02
    assert value(registry, "hallujudge_key_cost_total", key="k1") == 0.02
    assert value(registry, "hallujudge_key_judge_calls_total", key="k1") == 1
    assert value(registry, "hallujudge_key_refused_judge_calls_total", key="k1") == 1
    assert value(registry, "hallujudge_cache_lookups_total", found="cache") == 1
    labels = {"judge": "llm", "reason": "JUDGE_TIMEOUT"}
    assert value(registry, "hallujudge_fallbacks_total", **labels) == 1


def test_the_state_is_read_when_metrics_are_fetched(registry: CollectorRegistry) -> None:
    assert value(registry, "hallujudge_memory_bytes") == 7
    assert value(registry, "hallujudge_dropped_log_lines", log="server") == 5
    assert value(registry, "hallujudge_judge_running_calls", model="m") == 3
    assert value(registry, "hallujudge_judge_calls_limit", model="m") == 16
    assert value(registry, "hallujudge_judge_circuit_open", model="m") == 1
    assert value(registry, "process_resident_memory_bytes")


def test_values_beyond_the_bound_share_one_label() -> None:
    label = BoundedLabel(3)
    assert {label(f"key-{number}") for number in range(100)} == {"key-0", "key-1", "key-2", OTHER}
    assert label("key-1") == "key-1"


def test_a_long_value_is_cut() -> None:
    assert len(BoundedLabel(1)("x" * 20_000_000)) == 80


def test_only_ids_of_keys_tell_callers_apart() -> None:
    def label(id: str, key_id: str = "") -> str:
        return key_label(Caller(id=id, name="<script>", key_id=key_id))

    assert label("key:k1", "k1") == "k1"
    assert label("peer:ipv4:10.0.0.7") == label("peer:ipv4:10.0.0.8") == "anonymous"
    assert label("certificate:any name at all") == "certificate"
