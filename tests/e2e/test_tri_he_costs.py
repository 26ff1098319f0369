"""What Tri-HE's judges cost: of runs that are resumed, merged and served, and of shared replies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.running import ServerProcess, here, read_rows
from support.tri_he_samples import TRUE, answer, flags, report_of, score

from hallujudge.sdk.errors import OutputError
from hallujudge.sdk.runs.folder import RunFolder
from hallujudge.sdk.runs.parts import Part


def shared_answers(count: int, first: int = 0) -> list[dict[str, Any]]:
    """Return answers of three claims: one that all share, and one of their own, twice."""
    numbers = range(first, first + count)
    mine = [["dog", "near", f"tree {number}"] for number in numbers]
    return [answer("1", TRUE, own, own, question=f"{own}?") for own in mine]


class Till:
    """A judge that counts what it is paid, at a price for each token."""

    def __init__(self) -> None:
        self.calls = self.tokens = 0
        self.judge: llm.Step = llm.by_scene_graph

    def step(self, number: int, body: llm.Body) -> llm.Reply:
        reply = self.judge(number, body)
        used = json.loads(reply.body)["usage"]
        self.calls += 1
        self.tokens += used["prompt_tokens"] + used["completion_tokens"]
        return reply

    def owed(self) -> dict[str, Any]:
        """Return what the report of everything that was paid so far says."""
        return {"calls": self.calls, "tokens": self.tokens, "cost": self.tokens / 1000}


def paid_by(out: Path) -> dict[str, Any]:
    """Return what a report says was paid, having compared it with the sum over its items."""
    [share] = report_of(out)["judging"]
    parts = [row["evidence"]["judging"][0] for row in read_rows(out / "items.jsonl")]
    for name in ("calls", "reused", "cost"):
        assert share[name] == pytest.approx(sum(part[name] for part in parts))
    tokens = share["prompt_tokens"] + share["completion_tokens"]
    return {"calls": share["calls"], "tokens": tokens, "cost": pytest.approx(share["cost"])}


@pytest.fixture
def till() -> Iterator[tuple[Till, llm.ScriptedLlm]]:
    counted = Till()
    server = llm.ScriptedLlm(counted.step)
    stop = server.in_thread()
    yield counted, server
    stop()


@pytest.mark.usefixtures("prices")
def test_the_cost_is_what_was_paid_and_what_is_shared_is_reused(
    tmp_path: Path, till: tuple[Till, llm.ScriptedLlm]
) -> None:
    paid, server = till
    assert score(tmp_path, shared_answers(150), *flags(server)).returncode == 0
    assert paid.calls == 151
    assert paid_by(tmp_path / "out") == paid.owed()
    # Three questions of each item, and a reply for each.
    assert report_of(tmp_path / "out")["judging"][0]["reused"] == 450 - 151
    # The same items again, with the same replies: the bytes of the first run.
    cached = ("--verdict-cache", tmp_path / "out" / "verdicts.sqlite", "--out", tmp_path / "again")
    assert score(tmp_path, shared_answers(150), *flags(server), *cached).returncode == 0
    for name in ("items.jsonl", "report.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
    # Other items, which find the reply that all share in the cache.
    cached = (*cached[:2], "--out", tmp_path / "others")
    before = paid.owed()
    assert score(tmp_path, shared_answers(5, 150), *flags(server), *cached).returncode == 0
    others = paid_by(tmp_path / "others")
    assert others["calls"] == paid.calls - before["calls"] == 5
    assert others["tokens"] == paid.tokens - before["tokens"]


@pytest.mark.usefixtures("prices")
def test_a_resumed_run_costs_what_all_its_processes_paid(
    tmp_path: Path, till: tuple[Till, llm.ScriptedLlm], monkeypatch: pytest.MonkeyPatch
) -> None:
    add, (paid, server) = RunFolder.add, till

    def stopped(self: RunFolder, part: Part) -> None:
        if self.written:
            raise OutputError("the disk is full")
        add(self, part)

    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "add", stopped)
        assert score(tmp_path, shared_answers(150), *flags(server)).returncode == 1
    # The last items find replies that were paid for in the first process and in none of its parts.
    assert score(tmp_path, shared_answers(150), *flags(server), "--resume").returncode == 0
    assert paid_by(tmp_path / "out") == paid.owed()
    assert paid.calls == 151


@pytest.mark.usefixtures("prices")
@pytest.mark.parametrize(
    ("cache", "places", "calls"),
    [
        ("", ("0", "4"), 9),  # replies of the run beside are known
        ("", ("a/0", "b/4"), 10),
        ("cache.sqlite", ("a/0", "b/4"), 9),
    ],
)
def test_a_merged_run_costs_what_its_parts_paid(
    tmp_path: Path,
    till: tuple[Till, llm.ScriptedLlm],
    cache: str,
    places: tuple[str, str],
    calls: int,
) -> None:
    paid, server = till
    shared = ("--verdict-cache", tmp_path / cache) if cache else ()
    parts = [tmp_path / place for place in places]
    for first, out in zip((0, 4), parts, strict=True):
        ran = score(tmp_path, shared_answers(4, first), *flags(server), *shared, "--out", out)
        assert ran.returncode == 0, ran.stderr
    merged = here("merge", *parts, "--out", tmp_path / "out")
    assert merged.returncode == 0, merged.stderr
    assert paid.calls == calls
    assert paid_by(tmp_path / "out") == paid.owed()


@pytest.mark.usefixtures("prices")
def test_replies_without_a_verdict_are_paid_too(
    tmp_path: Path, till: tuple[Till, llm.ScriptedLlm]
) -> None:
    paid, server = till
    paid.judge = lambda number, body: (
        llm.completion("perhaps")
        if "tree 2" in llm.prompt_of(body)
        else llm.by_scene_graph(number, body)
    )
    assert score(tmp_path, shared_answers(4), *flags(server)).returncode == 0
    assert report_of(tmp_path / "out")["judging"][0]["declined"] == {"REPLY_OUT_OF_CHOICE": 2}
    assert paid_by(tmp_path / "out") == paid.owed()


@pytest.mark.usefixtures("prices")
def test_a_served_run_costs_what_the_server_paid(
    tmp_path: Path, till: tuple[Till, llm.ScriptedLlm], monkeypatch: pytest.MonkeyPatch
) -> None:
    paid, judge = till
    for name, value in {"LLM_URL": judge.url, "LLM_MODEL": "m"}.items():
        monkeypatch.setenv(f"HALLUJUDGE_{name}", value)
    server = ServerProcess()
    try:
        remote = ("--judge", "llm", "--server", server.address)
        ran = score(tmp_path, shared_answers(150), *remote)
        assert paid_by(tmp_path / "out") == paid.owed()
        before = paid.owed()
        told = f", 151 calls, {paid.tokens:,} tokens, cost {before['cost']:.4f}, verdicts: llm 450"
        assert ran.stderr.splitlines()[-1].endswith(told)
        # What the server remembers of other items is reused.
        more = (*remote, "--out", tmp_path / "others")
        assert score(tmp_path, shared_answers(5, 150), *more).returncode == 0
    finally:
        server.stop()
    others = paid_by(tmp_path / "others")
    assert others["calls"] == paid.calls - before["calls"] == 5
