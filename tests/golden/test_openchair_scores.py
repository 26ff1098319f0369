"""OpenCHAIR's released script on drawn judge texts: every number and every reading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.running import here, read_rows


@pytest.fixture(scope="module")
def expected(goldens: Path) -> Any:
    return json.loads((goldens / "openchair" / "expected.json").read_text())["drawn_1"]


@pytest.fixture(scope="module")
def scored(goldens: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("openchair")
    run = here("score", "openchair", "-r", goldens / "openchair" / "drawn_1.jsonl", "--out", out)
    assert run.returncode == 0, run.stderr
    return out


def test_every_number_of_the_released_script(scored: Path, expected: Any) -> None:
    report = json.loads((scored / "report.json").read_text())
    assert report["scores"]["openchair"]["value"] == pytest.approx(expected["openchair"], abs=1e-12)
    totals = {name: report["totals"][name] for name in ("no", "unsure", "ignored", "unparsed")}
    assert totals == {
        "no": expected["no"],
        "unsure": expected["unsure"],
        "ignored": expected["ignore"],
        "unparsed": expected["error"],
    }
    assert report["totals"]["judged"] == expected["yes"] + expected["no"]
    assert report["totals"]["mentions"] == expected["objects"]
    assert report["coverage"]["scored"] == expected["captions"]


def test_every_reading_of_the_released_script(scored: Path, expected: Any) -> None:
    found = [
        [answer["answer"] or "ERROR" for answer in row["evidence"]["answers"]]
        for row in read_rows(scored / "items.jsonl")
    ]
    wanted = [[said.partition(":")[0] for said in caption] for caption in expected["answers"]]
    assert found == wanted
