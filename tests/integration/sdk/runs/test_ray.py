"""A run on a local Ray cluster of two workers, of which two die: the bytes of one process."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support import ray_run

from hallujudge.sdk import Client
from hallujudge.sdk.errors import InvalidInputError

COUNT = 6_000
FILES = ("items.jsonl", "report.json", "report.html")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("archive")
    texts = ("A dog on a sofa.", "A cat and a dog.", None, "Two people near a table.")
    rows = [{"image_id": n, "caption": texts[n % 4]} for n in range(COUNT)]
    (folder / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "objects.json").write_text(json.dumps({str(n): ["dog"] for n in range(COUNT)}))
    return folder / "captions.jsonl", folder / "objects.json"


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is missing: pip install hallujudge[ray]")
def test_a_run_on_ray_survives_its_workers(archive: tuple[Path, Path], tmp_path: Path) -> None:
    with Client.embedded() as client:
        client.score(
            "chair",
            responses=archive[0],
            references=archive[1],
            folder=tmp_path / "here",
            html=True,
        )
    script = (sys.executable, ray_run.__file__, *archive, tmp_path / "ray")
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in FILES:
        assert (tmp_path / "ray" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


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
