"""What two readings of a server show."""

from __future__ import annotations

import pytest
from support.messages import expected_message

from hallujudge.sdk.cli.top import fetch, metrics_url, parse, summarize
from hallujudge.sdk.errors import InvalidInputError, UnavailableError

PAGE = """
hallujudge_build_info{{version="1.2"}} 1.0
hallujudge_ready 1.0
hallujudge_memory_bytes 25.0
hallujudge_memory_limit_bytes 100.0
hallujudge_waiting_calls{{key="k1"}} 2.0
hallujudge_key_info{{key="k1",name="ana"}} 1.0
hallujudge_key_calls_total{{key="k1",status="OK"}} {calls}
hallujudge_key_calls_total{{key="k1",status="INTERNAL"}} 4.0
hallujudge_calls_total{{method="Score",status="OK"}} {calls}
hallujudge_items_total{{metric="chair",outcome="scored"}} {calls}
hallujudge_items_total{{metric="chair",outcome="unscored"}} 3.0
hallujudge_unscored_items_total{{metric="chair",reason="RESPONSE_EMPTY"}} 2.0
hallujudge_unscored_items_total{{metric="chair",reason="RESPONSE_MISSING"}} 1.0
hallujudge_judge_calls_limit{{model="m"}} 8.0
hallujudge_judge_circuit_open{{model="m"}} 1.0
hallujudge_judge_cost_total{{model="m"}} {calls}
hallujudge_judge_call_seconds_count{{model="m"}} 4.0
hallujudge_judge_call_seconds_sum{{model="m"}} 2.0
hallujudge_cache_lookups_total{{found="nowhere"}} 1.0
hallujudge_cache_lookups_total{{found="memory"}} 3.0
"""


def test_rates_are_those_between_two_readings() -> None:
    before, now = (parse(PAGE.format(calls=calls), at) for calls, at in ((10, 5.0), (30, 15.0)))
    found = summarize(before, now)
    assert (found.version, found.ready, found.memory) == ("1.2", True, 0.25)
    assert (found.calls, found.items) == (2.0, 2.0)
    assert (found.cost, found.cost_per_hour) == (30.0, 7200.0)
    assert found.cache_hits == 0.75
    [client], [judge], [metric] = found.clients, found.judges, found.metrics
    assert (client.key, client.name, client.waiting) == ("k1", "ana", 2)
    assert (client.calls, client.errors) == (2.0, 0.0)
    assert (judge.state, judge.limit, judge.seconds) == ("not called", 8, 0.5)
    assert (metric.scored, metric.unscored, metric.reason) == (30, 3, "RESPONSE_EMPTY")


def test_a_restarted_server_has_no_negative_rates() -> None:
    before, now = (parse(PAGE.format(calls=calls), at) for calls, at in ((1000, 5.0), (10, 15.0)))
    assert summarize(before, now).calls == 1.0


def test_one_reading_has_no_rates() -> None:
    now = parse(PAGE.format(calls=10), 5.0)
    assert summarize(now, now).calls == 0.0


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("localhost:9464", "http://localhost:9464/metrics"),
        ("https://lab.example/metrics/h", "https://lab.example/metrics/h"),
    ],
)
def test_addresses(address: str, url: str) -> None:
    assert metrics_url(address) == url


@pytest.mark.parametrize(
    "address", ["file:///etc/passwd", "ftp://host/metrics", "", "[::1", "host:99999"]
)
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(InvalidInputError, match="HOST:PORT"):
        metrics_url(address)


@pytest.mark.parametrize("text", ["<html>", "up 1", "a{b 1", ""])
def test_other_pages_are_refused(text: str) -> None:
    with pytest.raises(UnavailableError, match="check the address"):
        parse(text, 0.0)


def test_a_server_that_is_not_there_is_told() -> None:
    with pytest.raises(
        UnavailableError, match=expected_message("sdk.cli.top:start-the-server-with-metrics-port")
    ):
        fetch("http://127.0.0.1:1/metrics")
