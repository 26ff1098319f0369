"""The package hallujudge-client alone, at a real server."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.client_alone import ROOT, make_site, run_alone
from support.running import ServerProcess, unmeasured

from hallujudge.judge_service.engine.spec import ScoreSpec
from hallujudge.metrics.chair import ChairItem
from hallujudge.sdk import RemoteBackend
from hallujudge.sdk.backends.recovery import only
from hallujudge.sdk.errors import InvalidInputError

TRY = ROOT / "tools" / "try_client.py"
# The pid is that of the server, which ends when the first results are there.
LOST = """
import os, signal, sys
from hallujudge.sdk import Client
from hallujudge.sdk.errors import UnavailableError
address, server = sys.argv[1], int(sys.argv[2])
def end(batch):
    os.kill(server, signal.SIGKILL)
ids = [str(at) for at in range(5000)]
with Client(address) as client:
    try:
        client.score(
            "chair",
            responses=dict.fromkeys(ids, "A cat and a dog on a red sofa."),
            references=dict.fromkeys(ids, ["cat"]),
            on_batch=end,
        )
    except UnavailableError as err:
        print(err)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_site(tmp_path_factory.mktemp("site"))


@pytest.mark.slow
def test_every_call_at_a_server_equals_scoring_in_this_process(
    site: Path, server: str, tmp_path: Path
) -> None:
    """With jobs, rewards in TRL's shape, and one sentence for what the client lacks."""
    alone, inside = tmp_path / "alone.json", tmp_path / "inside.json"
    done = run_alone(site, TRY, server, alone)
    assert done.returncode == 0, done.stderr
    whole: list[str | Path] = [sys.executable, TRY, "embedded", inside]
    assert subprocess.run(whole, env=unmeasured(), check=False).returncode == 0
    found, expected = (json.loads(path.read_text()) for path in (alone, inside))
    assert len(expected) >= 26
    assert {name for name in expected if found.get(name) != expected[name]} == set()


@pytest.mark.slow
def test_a_run_whose_server_is_lost_says_how_to_outlive_it(site: Path) -> None:
    """The server that goes on would make a report of the rest alone."""
    started = ServerProcess()
    done = run_alone(site, "-c", LOST, started.address, started.process.pid)
    started.stop(signal.SIGKILL)
    assert "lost in the middle of the run" in done.stdout, done.stderr
    assert "as a job" in done.stdout
    assert "pip install hallujudge" in done.stdout


@pytest.mark.parametrize(
    ("names", "problem"), [(("recall", "chair_i"), ""), (("recal",), "batch.scores")]
)
async def test_a_stream_has_the_scores_that_it_asks_for(
    server: str, names: tuple[str, ...], problem: str
) -> None:
    backend, spec = RemoteBackend(server), ScoreSpec(metric="chair")
    items = [
        ChairItem(id="1", response="A cat and a dog.", reference_objects=("cat",)),
        ChairItem(id="2", response=None, reference_objects=("cat",)),
    ]
    header = await backend.header(spec)
    stream = backend.score_stream(spec, header, only(items), names)
    try:
        if problem:
            with pytest.raises(InvalidInputError, match=problem):
                [part async for part in stream]
            return
        (part,) = [part async for part in stream]
        scores = [dict(result.scores) for result in part.results]  # type: ignore[union-attr]
        assert scores[0] == {**scores[0], "recall": 1.0, "chair_i": 0.5}
        assert scores[1] == {**scores[1], "recall": None, "chair_i": None}
    finally:
        await stream.aclose()
        await backend.close()
