"""Calibration of real captions by what people marked in them (HAT)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hallujudge.judge_service.extractors.rules.rule_extractors import RuleKeywordExtractor
from hallujudge.labels.human_labels import match_labels, read_labels
from hallujudge.labels.labelled_claims import Sample, sampling_of
from hallujudge.labels.verdicts import read_verdicts
from hallujudge.metrics.calibration.prediction_powered import prediction_powered
from hallujudge.sdk import Client
from hallujudge.sdk.calibration import CalibrateOptions, calibrate
from hallujudge.sdk.runs import read_run

SAMPLES, LABELS = 500, 50


@pytest.fixture(scope="module")
def captions(goldens: Path) -> Path:
    return goldens / "hat" / "captions.jsonl"


@pytest.fixture(scope="module")
def folder(captions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CHAIR's run, with objects of the five reference captions as references."""
    rows = [json.loads(line) for line in captions.read_text(encoding="utf-8").splitlines()]
    extractor = RuleKeywordExtractor()
    with Client.embedded() as client:
        report = client.score(
            "chair",
            responses={row["id"]: row["caption"] for row in rows},
            references={
                row["id"]: sorted(
                    {o.text for text in row["references"] for o in extractor.extract(text).objects}
                )
                for row in rows
            },
            variant="corrected",
        )
    return report.save(tmp_path_factory.mktemp("hat"))


def test_all_labels_give_the_share_that_people_marked(folder: Path, captions: Path) -> None:
    found = calibrate(folder, CalibrateOptions(labels=(captions,)))
    rows = [json.loads(line) for line in captions.read_text(encoding="utf-8").splitlines()]
    truth = sum(row["contains_hallucination"] for row in rows) / len(rows)
    score = found["chair_s"]
    assert score.raw is not None
    assert score.corrected is not None
    assert score.corrected.value == score.run_low == score.run_high == pytest.approx(truth)
    assert score.raw.value < truth / 2
    assert score.labels == len(rows)
    assert found.sampled_by == "item"


def test_fifty_labels_hold_the_share_of_all(folder: Path, captions: Path) -> None:
    """In 93 to 97 % of 500 redraws, the interval for the run holds the share over all captions."""
    run = read_run(folder)
    items = list(read_verdicts(run))
    labels = match_labels(read_labels(captions), items)
    score = next(score for score in run.metric.scores if score.name == "chair_s")
    [column] = (column for column in run.metric.judged if "chair_s" in column.scores)
    sampling = sampling_of(items, labels, None)
    sample = Sample.of(run.metric, score, column, items, sampling)
    assert sample is not None
    truth = float(sample.claims.labels.mean())
    rng = np.random.default_rng(0)
    held, errors = 0, []
    for _ in range(SAMPLES):
        known = np.full(len(items), np.nan)
        drawn = rng.choice(len(items), LABELS, replace=False)
        known[drawn] = sample.claims.labels[drawn]
        found = prediction_powered(replace(sample.claims, labels=known), sample.effects)
        assert found is not None
        held += found.run_low <= truth <= found.run_high
        errors.append(found.value - truth)
    assert 0.93 <= held / SAMPLES <= 0.97
    # The raw share is 22 points too low.
    assert abs(np.mean(errors)) < 0.01
