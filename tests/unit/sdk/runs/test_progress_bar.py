"""What a run prints of its progress, by a clock that the test sets."""

from __future__ import annotations

import gzip
import io
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from support.clocks import Clock
from support.messages import expected_message
from support.terminals import Terminal
from support.threads import eventually

from hallujudge.judge_service.engine.spec import ScoreSpec
from hallujudge.judge_service.engine.streams import RunProgress
from hallujudge.metrics.framework.report import JudgeShare
from hallujudge.sdk import ScoreRun
from hallujudge.sdk.archives.local_files import open_binary, watching_reads
from hallujudge.sdk.cli import main
from hallujudge.sdk.runs.progress_bar import (
    PLAIN_SECONDS,
    PlainLines,
    Progress,
    Reading,
    shown_progress,
)
from hallujudge.sdk.runs.run_inputs import PreparedRun


@pytest.fixture
def clock() -> Clock:
    return Clock(100.0)


def test_everything_known_is_told(clock: Clock) -> None:
    progress = Progress(100_000, clock)
    assert progress.line() == "scored 0 of 100,000 (0 %), 0/s"
    clock.now += 2
    progress.scored(10_000, 0)
    assert progress.line() == "scored 10,000 of 100,000 (10 %), 5,000/s, 0:18 left"
    clock.now += 98
    progress.scored(10_000, 1_200)
    progress.waits(RunProgress(answers=4_321, cost=1.25, waiting="judge m: no answer for 7 s"))
    assert progress.line() == (
        expected_message("judge_service.llm.call_policy:scored-of-left-unscored-calls-cost-waiting")
    )
    progress.scored(1, 0)
    assert progress.waiting == ""
    assert "4,321 calls, cost 1.2500" in progress.line()


def test_verdicts_on_items_without_a_result_are_counted(clock: Clock) -> None:
    progress = Progress(3, clock)
    progress.judged((JudgeShare(judge="llm", decided=1_000),), kept=True)
    progress.waits(RunProgress(answers=40, verdicts={"llm": 38, "fallback": 2}))
    assert progress.line().endswith("40 calls, verdicts: llm 1,038, fallback 2")
    # A server that came back counts from zero.
    progress.judged((JudgeShare(judge="llm", decided=1_050),), kept=False)
    progress.waits(RunProgress(answers=3, verdicts={"llm": 3}))
    assert progress.line().endswith("verdicts: llm 1,050")


def test_what_was_scored_before_a_run_was_resumed_is_not_in_the_rate(clock: Clock) -> None:
    progress = Progress(20_000, clock)
    progress.kept(10_000, 3)
    clock.now += 4_000
    progress.scored(2_000, 0)
    assert progress.line() == "scored 12,000 of 20,000 (60 %), 0.50/s, 4:26:40 left, 3 unscored"


def test_a_line_comes_every_ten_seconds(clock: Clock) -> None:
    written: list[str] = []
    progress = Progress(10, clock)
    lines = PlainLines(progress, written.append, clock)
    lines.tick()
    clock.now += PLAIN_SECONDS - 0.1
    lines.tick()
    assert written == []
    for count in (1, 1, 2, 2, 3):
        clock.now += PLAIN_SECONDS / 2
        lines.tick()
        assert len(written) == count
    assert written[0].startswith("scored 0 of 10")


def test_a_short_run_prints_nothing_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress(3) as progress:
        progress.scored(3, 0)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setenv("TERM", "xterm")
    with shown_progress(20) as progress:
        progress.scored(7, 2)
        progress.waits(RunProgress(answers=5, waiting="judge m"))
    written = terminal.getvalue()
    for told in ("waiting: judge m", "7/20", "2 unscored", "5 calls"):
        assert told in written


@pytest.mark.parametrize("packed", [False, True])
def test_reading_is_shown_in_bytes_of_the_largest_open_file(tmp_path: Path, packed: bool) -> None:
    content = random.Random(1).randbytes(5_000_000)
    large, small = tmp_path / "large.jsonl", tmp_path / "small.json"
    large.write_bytes(gzip.compress(content) if packed else content)
    small.write_bytes(b"{}")
    reading = Reading()
    assert reading.line() == ""
    with watching_reads(reading.opened):
        with open_binary(large) as file, open_binary(small):
            file.read(2_500_000)
            assert re.fullmatch(r"reading large\.jsonl: 3 of 5 MB \(5\d %\)", reading.line())
        assert reading.line() == ""
    with open_binary(large):
        assert reading.line() == "", "what is opened outside is not watched"


def test_nothing_is_written_while_nothing_is_read(clock: Clock) -> None:
    written: list[str] = []
    lines = PlainLines(Reading(), written.append, clock)
    clock.now += PLAIN_SECONDS
    lines.tick()
    assert written == []


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("terminal", [False, True])
def test_a_command_shows_what_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quiet: bool, terminal: bool
) -> None:
    captions = tmp_path / "captions.jsonl"
    captions.write_text('{"image_id": 1, "caption": "A dog."}\n')
    (tmp_path / "objects.json").write_text('{"1": ["dog"]}')
    shown: list[str] = []
    read = PreparedRun.of

    def of(run: ScoreRun, spec: ScoreSpec | None = None, workers: Any = None) -> PreparedRun:
        with open_binary(captions):
            # The line is due at once: its thread is let run until it has written.
            if not quiet:
                assert eventually(lambda: "reading captions.jsonl" in stream.getvalue())
        shown.append(stream.getvalue())
        return read(run, spec, workers)

    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(PreparedRun, "of", of)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr("hallujudge.sdk.runs.progress_bar.PLAIN_SECONDS", 0)
    command = ["score", "chair", "-r", str(captions), "-R", str(tmp_path / "objects.json")]
    main([*command, "-o", str(tmp_path / "out"), *(["--quiet"] if quiet else [])])
    assert ("reading captions.jsonl" in shown[0]) is not quiet
