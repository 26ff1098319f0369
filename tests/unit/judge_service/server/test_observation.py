"""The server's check of itself, and its access log: a line for each call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.clocks import Clock
from support.messages import expected_message

from hallujudge.judge_service.engine import Engine, ScoreSpec, ScoringSession
from hallujudge.judge_service.errors import OutputError
from hallujudge.judge_service.observe import CallRecord
from hallujudge.judge_service.server.observation import AccessLog, SelfCheck, access_line
from hallujudge.metrics import Item, ItemResult, Outcome


class WrongEngine(Engine):
    """An engine whose scores are wrong, fail, or never come; without a way they are right."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    async def open(self, spec: ScoreSpec) -> ScoringSession:
        session = await super().open(spec)
        inner = session.score

        async def score(items: Sequence[Item]) -> list[ItemResult]:
            if not self.how:
                return await inner(items)
            if self.how == "fails":
                raise ValueError("what a user wrote")
            if self.how == "hangs":
                await asyncio.Event().wait()
            return [ItemResult(id="1", group_id="1", outcome=Outcome.SCORED)]

        session.score = score  # type: ignore[method-assign]  # the point of the stand-in
        return session


def check_of(engine: Engine, *, limit: float = 60.0, clock: Clock | None = None) -> SelfCheck:
    return SelfCheck(engine, interval=10, limit=limit, clock=clock or Clock(100.0))


async def test_a_server_that_scores_as_it_should_is_well() -> None:
    check = check_of(Engine())
    assert await check.check() == ""
    assert check.ready() == check.alive() == ""


@pytest.mark.parametrize(
    ("how", "limit", "problem"),
    [
        ("lies", 60.0, "is None, not"),
        ("fails", 60.0, "failed: ValueError"),
        ("hangs", 0.01, "longer than 0.01 s"),
    ],
)
async def test_a_wrong_or_late_score_is_a_problem(how: str, limit: float, problem: str) -> None:
    check = check_of(WrongEngine(how), limit=limit)
    assert problem in await check.check()
    assert problem in check.ready()
    assert "what a user wrote" not in check.ready()
    # It may be busy for a moment; only a lasting problem asks for a restart.
    assert check.alive() == ""


async def test_a_server_without_a_good_score_for_long_needs_a_restart() -> None:
    clock = Clock(100.0)
    check = check_of(Engine(), limit=5, clock=clock)
    clock.now += 40
    assert check.alive() == ""
    clock.now += 40
    assert "80 s" in check.alive()
    assert check.ready()
    await check.check()
    assert check.alive() == ""


def test_a_draining_server_is_alive_but_not_ready() -> None:
    check = check_of(Engine())
    check.draining = True
    assert check.alive() == ""
    assert "draining" in check.ready()


async def test_changes_are_told_once() -> None:
    engine = WrongEngine("lies")
    check = SelfCheck(engine, interval=0.001, limit=60)
    told: list[bool] = []
    changed = asyncio.Event()

    def tell(well: bool) -> None:
        told.append(well)
        changed.set()

    running = asyncio.ensure_future(check.run(tell))
    await changed.wait()
    changed.clear()
    engine.how = ""
    await changed.wait()
    running.cancel()
    assert told == [False, True]


async def test_an_event_loop_that_stands_still_needs_a_restart() -> None:
    clock = Clock(100.0)
    check = check_of(Engine(), clock=clock)
    running = asyncio.ensure_future(check.run(lambda _: None))
    await asyncio.sleep(0)
    clock.now += 10
    assert check.alive() == ""
    clock.now += 10
    assert "the event loop has not run for 20 s" in check.alive()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert check.alive() == ""


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
        expected_message("judge_service.server.observation:the-access-log-loses-lines-no-space")
    ]


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"log\.access"):
        AccessLog(str(tmp_path / "none" / "access.jsonl"))
