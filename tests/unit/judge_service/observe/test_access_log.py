"""The access log: one line for each call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.messages import expected_message

from hallujudge.judge_service.errors import OutputError
from hallujudge.judge_service.observe.access_log import AccessLog, access_line
from hallujudge.judge_service.observe.recorder import CallRecord


def record(**fields: object) -> CallRecord:
    call = CallRecord(method="Score", request_id="r1", key="k1", key_name="ana", **fields)  # type: ignore[arg-type]  # by the tests
    call.scored, call.unscored = 2, 1
    return call


def test_a_line_says_who_asked_for_what_and_how_it_ended() -> None:
    line = json.loads(access_line(record(metric="chair", seconds=0.25, trace_id="ab")))
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "request_id": "r1",
        "key": "k1",
        "key_name": "ana",
        "peer": "",
        "method": "Score",
        "metric": "chair",
        "items": 3,
        "scored": 2,
        "unscored": 1,
        "seconds": 0.25,
        "waited_seconds": 0.0,
        "status": "OK",
        "trace_id": "ab",
    }


def test_error_texts_are_in_it_only_if_asked_and_cut() -> None:
    call = record(error='response "A dog." ' + "x" * 20_000_000)
    assert "A dog." not in access_line(call)
    line = access_line(call, errors=True)
    assert "A dog." in line
    assert len(line) < 2000


def test_a_value_cannot_add_a_line() -> None:
    line = access_line(record(peer='unix:a\n{"status": "OK"}\r\x1b[31m', error="b\nc"), errors=True)
    assert line.isprintable()
    assert json.loads(line)["peer"].startswith("unix:a\n")


def test_lines_are_written_when_it_is_closed(tmp_path: Path) -> None:
    log = AccessLog(str(tmp_path / "access.jsonl"))
    for _ in range(100):
        log.call_ended(record())
    log.close()
    assert len((tmp_path / "access.jsonl").read_text(encoding="utf-8").splitlines()) == 100


def test_a_full_disk_is_told_once_and_stops_no_call(caplog: pytest.LogCaptureFixture) -> None:
    log = AccessLog("/dev/full")
    for _ in range(3):
        log.call_ended(record())
    log.close()
    assert [message.getMessage() for message in caplog.records] == [
        expected_message("judge_service.observe.access_log:the-access-log-loses-lines-no-space")
    ]


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="access_log"):
        AccessLog(str(tmp_path / "none" / "access.jsonl"))
