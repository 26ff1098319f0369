"""The released NLI judge with the paper's own encoder, all-mpnet-base-v2.

Its weights are not installed: ``tools/fetch_mpnet.py`` fetches them, and HALLUJUDGE_MPNET names
their folder. A workflow does so every week.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
from pathlib import Path

import pytest

from hallujudge.judge_service.matchers import ClaimQuery, MatcherSettings
from hallujudge.judge_service.matchers.matcher_models import MatcherModels
from hallujudge.metrics.framework.claims import ClaimVerdict, reference_of, triplet_of
from hallujudge.metrics.tri_he import TriHeMetric

# Of the first ten records, by sentence-transformers and a plain program after the released script.
HALLU_Q, HALLU_I = 0.6342857, 0.6345238
SCENE = ("(man, riding, horse)", "(horse, is, brown)", "(tree, behind, fence)")
CLAIMS = (["person", "on", "horse"], ["dog", "near", "horse"], ["tree", "behind", "wall"])


@pytest.fixture(scope="module")
def mpnet() -> str:
    folder = os.environ.get("HALLUJUDGE_MPNET", "")
    if not folder:
        pytest.skip("no all-mpnet-base-v2: HALLUJUDGE_MPNET does not name its folder")
    return folder


def judged(mpnet: str, cache: Path, backend: str, queries: list[ClaimQuery]) -> list[ClaimVerdict]:
    settings = MatcherSettings(model=mpnet, backend=backend, cache_folder=cache)
    return asyncio.run(MatcherModels().open(settings).judge(queries))


@pytest.mark.slow
def test_rates_of_the_first_ten_golden_records(mpnet: str, goldens: Path, tmp_path: Path) -> None:
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
    left = iter(judged(mpnet, tmp_path, "onnx", queries))
    metric, rates = TriHeMetric(judge="test"), dict[str, list[float]]()
    for answer in answers:
        scored = metric.score_answer([next(left) for _ in answer["claims"]])
        rates.setdefault(answer["image_id"], []).append(scored.scores["hallu_q"] or 0.0)
    every = [rate for of in rates.values() for rate in of]
    assert sum(every) / len(every) == pytest.approx(HALLU_Q, abs=1e-6)
    by_image = [sum(of) / len(of) for of in rates.values()]
    assert sum(by_image) / len(by_image) == pytest.approx(HALLU_I, abs=1e-6)


@pytest.mark.slow
def test_both_backends_give_equal_verdicts(mpnet: str, tmp_path: Path) -> None:
    for package in ("torch", "sentence_transformers"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install 'hallujudge[matcher]'")
    scene = tuple(map(reference_of, SCENE))
    queries = [ClaimQuery(claim=triplet_of(each), references=scene) for each in CLAIMS]
    onnx, torch = (judged(mpnet, tmp_path, backend, queries) for backend in ("onnx", "torch"))
    assert [each.verdict for each in onnx] == [each.verdict for each in torch]
    assert [each.score for each in onnx] == pytest.approx([e.score for e in torch], abs=1e-5)
