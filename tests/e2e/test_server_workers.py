"""A server process with workers: what they inherit, and that they end with it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.running import ServerProcess
from support.threads import eventually

from hallujudge.sdk import Client

RESPONSES = {str(number): "A dog and a cat." for number in range(100)}
REFERENCES = {number: ["dog"] for number in RESPONSES}


@contextmanager
def server(**environment: str) -> Iterator[ServerProcess]:
    running = ServerProcess(HALLUJUDGE_WORKERS="2", **environment)
    try:
        with Client(running.address) as client:
            result = client.score("chair", responses=RESPONSES, references=REFERENCES)
        assert result.chair_i == 0.5
        yield running
    finally:
        running.process.kill()


def children_of(pid: int) -> list[int]:
    """Return the processes that a process started, and those that they started."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found += [child, *children_of(child)]
    return found


def is_running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_workers_have_no_secret_and_end_with_the_server() -> None:
    with server(HALLUJUDGE_LLM_API_KEY="secret-1", PGPASSWORD="secret-2") as running:
        workers = children_of(running.process.pid)
        assert len(workers) >= 2  # what workers are forked from, and a worker
        for worker in workers:
            assert b"secret" not in Path(f"/proc/{worker}/environ").read_bytes()
        code, errors = running.stop()
    assert code == 0, errors
    assert "Traceback" not in errors
    assert eventually(lambda: not any(map(is_running, workers)))


def test_workers_end_with_a_killed_server() -> None:
    with server() as running:
        workers = children_of(running.process.pid)
        assert all(map(is_running, workers))
        running.stop(signal.SIGKILL)
    assert eventually(lambda: not any(map(is_running, workers)))
