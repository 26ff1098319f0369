"""The released NLI judge with the paper's own encoder, whose weights HALLUJUDGE_MPNET names."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from hallujudge.judge_service.matchers import ClaimQuery, MatcherSettings
from hallujudge.judge_service.matchers.matcher_models import MatcherModels
from hallujudge.metrics.framework.claims import ClaimVerdict, reference_of, triplet_of
from hallujudge.metrics.tri_he import TriHeMetric


def mpnet_folder() -> str:
    """Return the folder of the weights; the test skips without one."""
    folder = os.environ.get("HALLUJUDGE_MPNET", "")
    if not folder:
        pytest.skip("no all-mpnet-base-v2: HALLUJUDGE_MPNET does not name its folder")
    return folder


def judged_by(
    mpnet: str, cache: Path, backend: str, queries: list[ClaimQuery]
) -> list[ClaimVerdict]:
    settings = MatcherSettings(model=mpnet, backend=backend, cache_folder=cache)
    return asyncio.run(MatcherModels().open(settings).judge(queries))


def rates_of_ten_records(mpnet: str, goldens: Path, cache: Path) -> tuple[float, float]:
    """Return Hallu_Q and Hallu_I over the first ten golden records."""
    folder = goldens / "tri_he"
    images = json.loads((folder / "tri-he.json").read_text("utf-8"))
    lines = (folder / "matcher_claims.jsonl").read_text("utf-8").splitlines()[:10]
    answers = [json.loads(line) for line in lines]
    queries = [
        ClaimQuery(
            claim=triplet_of(claim),
            references=tuple(map(reference_of, images[answer["image_id"]]["triplets"])),
            objects=tuple(images[answer["image_id"]]["all_object"]),
        )
        for answer in answers
        for claim in answer["claims"]
    ]
    left = iter(judged_by(mpnet, cache, "onnx", queries))
    metric, rates = TriHeMetric(judge="test"), dict[str, list[float]]()
    for answer in answers:
        scored = metric.score_answer([next(left) for _ in answer["claims"]])
        rates.setdefault(answer["image_id"], []).append(scored.scores["hallu_q"] or 0.0)
    every = [rate for of in rates.values() for rate in of]
    by_image = [sum(of) / len(of) for of in rates.values()]
    return sum(every) / len(every), sum(by_image) / len(by_image)
