"""Clients that were used before a fork: they score in the child, or say why they can't."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.messages import expected_message
from support.scripted_llm import ScriptedLlm
from support.sizes import further, sized

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no forks")

# Prints what each child says, or that it did not end. Every child ends with its interpreter, which
# also runs destructors, or as multiprocessing ends it.
FORKS = """
import asyncio, multiprocessing, os, sys, threading, time
from hallujudge.sdk import AsyncClient, Client
from hallujudge.sdk.errors import HallujudgeError

RUN = {"responses": {"1": "A dog on a sofa."}, "references": {"1": ["couch"]}}
server, face = sys.argv[1:3]
kind = AsyncClient if face == "async" else Client

def opened():
    return kind(server) if server != "embedded" else kind.embedded()

def score(client):
    report = client.score("chair", **RUN)
    return (asyncio.run(report) if face == "async" else report).chair_i

def close(client):
    done = client.close()
    if done is not None:
        asyncio.run(done)

def work(client, kind):
    try:
        print(kind, score(client or opened()), flush=True)
        if client is not None:
            close(client)
    except HallujudgeError as err:
        print(kind, type(err).__name__, err, flush=True)

def by_multiprocessing(*arguments):
    child = multiprocessing.get_context("fork").Process(target=work, args=arguments)
    child.start()
    child.join(15)
    if child.is_alive():
        print("does not end", flush=True)
        child.kill()

def by_fork(*arguments):
    child = os.fork()
    if not child:
        work(*arguments)
        sys.exit()
    killer = threading.Timer(15, os.kill, (child, 9))
    killer.start()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    killer.cancel()
    if code:
        print("ended with", code, flush=True)

client = opened()
print("parent", score(client), flush=True)
for start in (by_multiprocessing, by_fork):
    start(client, "same")
    start(None, "new")
print("parent", score(client), flush=True)
close(client)
"""

# A data loader's workers score one by one, while another thread of the parent is in a call.
BUSY = """
import multiprocessing, threading
from hallujudge.sdk import Client

client = Client.embedded()
reached, go_on = threading.Event(), threading.Event()

def caption(number):
    report = client.score("chair", responses={"1": "A dog."}, references={"1": ["dog"]})
    return report.chair_i

def stays(batch):
    reached.set()
    go_on.wait()

calls = {"responses": {"1": "A dog."}, "references": {"1": ["dog"]}, "on_batch": stays}
busy = threading.Thread(target=client.score, args=("chair",), kwargs=calls)
busy.start()
reached.wait()
with multiprocessing.get_context("fork").Pool(2) as workers:
    print(workers.map_async(caption, range(6)).get(80))
go_on.set()
busy.join()
print(caption(0))
client.close()
"""

# The judge's connection, its limits and the verdict cache are those of the parent's loop.
JUDGED = """
import multiprocessing, sys
from hallujudge.sdk import Client

settings = {"llm.url": sys.argv[1], "llm.model": "m", "verdict_cache": sys.argv[2]}
client = Client.embedded(settings)
GRAPHS = [{"image_id": 1, "triplets": [["dog", "on", "sofa"]]}]

def judged(relation):
    row = {"image_id": 1, "question": "What?", "claims": [["dog", relation, "sofa"]]}
    report = client.score("tri-he", responses=[row], references=GRAPHS, options={"judge": "llm"})
    return report.coverage.unscored

print(judged("on"))
child = multiprocessing.get_context("fork").Pool(1)
print(child.map_async(judged, ["on", "under"]).get(80))
child.terminate()
print(judged("beside"))
client.close()
"""

ITEMS = """
import multiprocessing, sys
from hallujudge.metrics import ChairItem, ItemResult, Outcome
from hallujudge.sdk.runs import RunItem, RunItems

def item(number):
    made = ChairItem(id=str(number), response="A dog.", reference_objects=())
    result = ItemResult(
        id=str(number), group_id="", outcome=Outcome.UNSCORED, reason="RESPONSE_MISSING"
    )
    return RunItem(item=made, result=result)

COUNT = 24_000
items = RunItems()
for start in range(0, COUNT, 50):
    items.add([item(number) for number in range(start, start + 50)])

def wrong(seed):
    numbers = [20_000 + 37 * number * seed % 4_000 for number in range(int(sys.argv[1]))]
    return sum(items[number].id != str(number) for number in numbers)

with multiprocessing.get_context("fork").Pool(3) as workers:
    print(workers.map_async(wrong, (1, 3, 7)).get(80))
"""

SCORES = "test_a_client_of_this_process_scores_after_a_fork"
REFUSES = "test_a_client_of_a_server_refuses_to_score_after_a_fork"
LOCK = """
import os, sys
from pathlib import Path
from hallujudge.sdk.runs import RunFolder

run = RunFolder(Path(sys.argv[1]))
ends, parent = os.pipe()
if not (child := os.fork()):
    os.close(parent)
    os.read(ends, 1)
    os._exit(0)
run.close()
with RunFolder(Path(sys.argv[1])):
    print("free")
os.close(parent)
os.waitpid(child, 0)
"""


def run(script: str, *arguments: str | Path) -> list[str]:
    """Returns the lines that a script prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("face", ["sync", further(SCORES, "async")])
def test_a_client_of_this_process_scores_after_a_fork(face: str) -> None:
    children = ["same 0.5", "new 0.5"] * 2
    assert run(FORKS, "embedded", face) == ["parent 0.5", *children, "parent 0.5"]


@pytest.mark.parametrize("face", ["async", further(REFUSES, "sync")])
def test_a_client_of_a_server_refuses_to_score_after_a_fork(server: str, face: str) -> None:
    before, *children, after = run(FORKS, server, face)
    assert (before, after) == ("parent 0.5", "parent 0.5")
    assert [line.split()[:2] for line in children] == [
        ["same", "UnsupportedError"],
        ["new", "UnsupportedError"],
    ] * 2
    for line in children:
        assert expected_message("sdk.backends.channel:start-processes-with-spawn") in line


def test_workers_score_while_the_parent_is_in_a_call() -> None:
    assert run(BUSY) == ["[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]", "0.0"]


def test_judges_and_the_verdict_cache_work_after_a_fork(tmp_path: Path) -> None:
    llm = ScriptedLlm()
    stop = llm.in_thread()
    try:
        lines = run(JUDGED, llm.url, tmp_path / "verdicts.sqlite")
    finally:
        stop()
    assert lines == ["0", "[0, 0]", "0"]
    # The child found the parent's verdict in the cache.
    assert llm.chats == 3


def test_forked_processes_read_the_items_of_a_report() -> None:
    assert run(ITEMS, str(sized(700, 3_000))) == ["[0, 0, 0]"]


def test_a_fork_does_not_keep_the_lock_of_a_run(tmp_path: Path) -> None:
    assert run(LOCK, tmp_path) == ["free"]
