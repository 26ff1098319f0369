"""The released NLI judge with the paper's own encoder, all-mpnet-base-v2: both backends.

Its weights are not installed: ``tools/fetch_mpnet.py`` fetches them, and HALLUJUDGE_MPNET names
their folder. A workflow does so every week. Its rates of ten golden records: ``tests/papers``.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from support.mpnet import judged_by, mpnet_folder

from hallujudge.judge_service.matchers import ClaimQuery
from hallujudge.metrics.framework.claims import reference_of, triplet_of

SCENE = ("(man, riding, horse)", "(horse, is, brown)", "(tree, behind, fence)")
CLAIMS = (["person", "on", "horse"], ["dog", "near", "horse"], ["tree", "behind", "wall"])


@pytest.mark.slow
def test_both_backends_give_equal_verdicts(tmp_path: Path) -> None:
    mpnet = mpnet_folder()
    for package in ("torch", "sentence_transformers"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install 'hallujudge[matcher]'")
    scene = tuple(map(reference_of, SCENE))
    queries = [ClaimQuery(claim=triplet_of(each), references=scene) for each in CLAIMS]
    onnx, torch = (judged_by(mpnet, tmp_path, name, queries) for name in ("onnx", "torch"))
    assert [each.verdict for each in onnx] == [each.verdict for each in torch]
    assert [each.score for each in onnx] == pytest.approx([e.score for e in torch], abs=1e-5)
