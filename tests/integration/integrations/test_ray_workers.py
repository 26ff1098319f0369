"""Runs on a local Ray cluster of two workers, some of which die: the bytes of one process."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from support import ray_run
from support import scripted_llm as llm
from support.qa_samples import write_lines
from support.threads import eventually
from support.toll import Toll, verdicts

from hallujudge.sdk import Client, InputOptions
from hallujudge.sdk.errors import InvalidInputError, UnavailableError

COUNT = 6_000
IMAGES, CLAIMS = 10, 20
FILES = ("items.jsonl", "report.json", "report.html")

needs_ray = pytest.mark.skipif(
    find_spec("ray") is None, reason="Ray is missing: pip install hallujudge[ray]"
)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("archive")
    texts = ("A dog on a sofa.", "A cat and a dog.", None, "Two people near a table.")
    rows = [{"image_id": n, "caption": texts[n % 4]} for n in range(COUNT)]
    (folder / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "objects.json").write_text(json.dumps({str(n): ["dog"] for n in range(COUNT)}))
    return folder / "captions.jsonl", folder / "objects.json"


@dataclass
class Judged:
    """A run of Tri-HE that is judged by two servers, of whose two workers one was killed."""

    folder: Path
    toll: Toll = field(default_factory=Toll)
    claims: Path = Path()
    graphs: Path = Path()
    urls: str = ""
    homes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Image -> servers that its prompts went to until the worker was killed."""

    def write(self) -> None:
        facts = [(f"{n}", [["man", "in", f"image {n}"]]) for n in range(IMAGES)]
        graphs = [{"image_id": image, "triplets": scene} for image, scene in facts]
        rows = [
            {"image_id": str(n), "question": f"{k}?", "claims": [["man", "has", f"hat {n}-{k}"]]}
            for n in range(IMAGES)
            for k in range(CLAIMS)
        ]
        self.claims = write_lines(self.folder / "claims.jsonl", rows)
        self.graphs = write_lines(self.folder / "graphs.jsonl", graphs)

    def note_homes(self, server: llm.ScriptedLlm) -> None:
        for headers, body in zip(server.headers, server.requests, strict=True):
            image = re.search(r"hat (\d+)-", llm.prompt_of(body))
            assert image is not None
            self.homes[image[1]].add(headers["host"].rpartition(":")[0])


def kill(worker: int) -> None:
    """Kill a worker, and wait until it is gone."""
    os.kill(worker, signal.SIGKILL)
    assert eventually(lambda: not Path(f"/proc/{worker}").exists())


@dataclass
class Runs:
    """Two runs on one cluster."""

    captions: Path
    judged: Judged


@pytest.fixture(scope="module")
def runs(archive: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    folder = tmp_path_factory.mktemp("ray")
    judged = Judged(folder)
    judged.write()
    # One server under two names is two servers to the judge.
    server = llm.ScriptedLlm(judged.toll.step)
    stop = server.in_thread()
    judged.urls = f"{server.url},{server.url.replace('127.0.0.1', 'localhost')}"
    arguments = (*archive, folder / "captions", judged.claims, judged.graphs, folder / "judged")
    judged.toll.allowed = 60
    process = subprocess.Popen(
        [sys.executable, ray_run.__file__, *arguments, judged.urls],
        stderr=subprocess.PIPE,
        text=True,
    )
    toll = judged.toll

    def reach(step: Callable[[], bool]) -> None:
        reached = eventually(lambda: process.poll() is not None or step())
        assert process.poll() is None, process.communicate()[1]
        assert reached, f"{toll.paid.total()} calls are paid, {len(toll.held)} are held"

    try:
        # Each step may take long where other processes keep the cores busy.
        reach((folder / "captions").exists)
        reach((folder / "captions" / "report.json").exists)
        reach(lambda: bool(toll.held))
        reach(lambda: verdicts(folder / "judged") == toll.paid.total())
        judged.note_homes(server)
        kill(ray_run.ray_workers(process.pid)[0])
        # The worker's last calls may not have been read yet. Paid now, they would be paid again
        # when another worker repeats them.
        server.read_all_sent()
        judged.toll.allowed = IMAGES * CLAIMS
        judged.toll.drop()
        told = process.communicate()[1]
        assert process.returncode == 0, told
        yield Runs(folder / "captions", judged)
    finally:
        judged.toll.drop()
        if process.poll() is None:
            process.kill()
            process.communicate()
        stop()


@needs_ray
def test_a_run_on_ray_survives_its_workers(
    runs: Runs, archive: tuple[Path, Path], tmp_path: Path
) -> None:
    with Client.embedded() as client:
        client.score(
            "chair", responses=archive[0], references=archive[1], folder=tmp_path, html=True
        )
    for name in FILES:
        assert (runs.captions / name).read_bytes() == (tmp_path / name).read_bytes()


@needs_ray
def test_no_call_of_a_worker_that_died_is_paid_twice(runs: Runs, tmp_path: Path) -> None:
    judged = runs.judged
    out = judged.folder / "judged"
    assert judged.toll.paid.total() == len(judged.toll.paid) == IMAGES * CLAIMS
    settings = {
        "llm.url": judged.urls,
        "llm.model": "m",
        "verdict_cache": str(out / "verdicts.sqlite"),
    }
    with Client.embedded(settings) as client:
        client.score(
            "tri-he",
            responses=judged.claims,
            references=judged.graphs,
            folder=tmp_path,
            inputs=InputOptions(own={"claims_only": True}),
            options={"judge": "llm", "extractor": "given"},
        )
    assert judged.toll.paid.total() == IMAGES * CLAIMS
    for name in FILES[:2]:
        assert (out / name).read_bytes() == (tmp_path / name).read_bytes()


@needs_ray
def test_an_images_prompts_go_to_one_server_from_all_workers(runs: Runs) -> None:
    assert len(runs.judged.homes) > 1
    assert all(len(home) == 1 for home in runs.judged.homes.values())


def test_only_local_scoring_goes_to_ray(archive: tuple[Path, Path], tmp_path: Path) -> None:
    with Client.embedded() as client:
        for change, said in (
            ({"engine": "spark"}, "engine is 'spark'; choose from local, ray"),
            ({"engine": "ray", "on_batch": lambda _batch: None}, "engine is ray: on_batch needs"),
        ):
            with pytest.raises(InvalidInputError, match=said):
                client.score(
                    "chair",
                    responses=archive[0],
                    references=archive[1],
                    folder=tmp_path,
                    **change,
                )


class UnstartedRay(ModuleType):
    """Stands for the module ``ray`` of a machine on which its processes do not start in time."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.asked = 0

    def is_initialized(self) -> bool:
        return False

    def init(self, **_settings: object) -> None:
        self.asked += 1
        # As Ray does.
        raise Exception("The current node timed out during startup.")


@pytest.mark.parametrize(
    ("address", "said", "asked"),
    [
        ("", "Ray can't be started on this machine: The current node timed out", 1),
        ("127.0.0.1:{port}", "the Ray cluster at '127.0.0.1:[0-9]+' can't be used", 0),
        ("ray://127.0.0.1:{port}", "the Ray cluster at 'ray://127.0.0.1:[0-9]+' can't be used", 0),
    ],
)
def test_a_cluster_that_is_not_there_is_said_at_once(
    archive: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    address: str,
    said: str,
    asked: int,
) -> None:
    module = UnstartedRay()
    monkeypatch.setitem(sys.modules, "ray", module)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with socket.socket() as closed:
        # Bound and not listening: no other process gets the port, and nothing answers at it.
        closed.bind(("127.0.0.1", 0))
        where = address.format(port=closed.getsockname()[1])
        with Client.embedded() as client, pytest.raises(UnavailableError, match=said):
            client.score(
                "chair",
                responses=archive[0],
                references=archive[1],
                folder=tmp_path,
                engine="ray",
                ray_address=where,
            )
    assert module.asked == asked
