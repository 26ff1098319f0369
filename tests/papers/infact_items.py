"""INFACT's items; no script is public, so that most figures are those of plain oracles here."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from papers.paper_items import Items
from support.qa_samples import infact_lines, infact_means, infact_questions

from hallujudge.asking.video.frame_operators import (
    NoiseSettings,
    draw_noise,
    draw_shuffle,
    frame_order,
)
from hallujudge.asking.video.text_operators import (
    CaptionSettings,
    SubtitleSettings,
    corrupted,
    draw_captions,
    draw_corruption,
    read_subtitles,
)
from hallujudge.judge_service.llm.prompt_templates import ASKED, paper_prompt, read_confidence
from hallujudge.metrics.framework.agreement import pearson
from hallujudge.metrics.framework.papers import published_rows
from hallujudge.metrics.infact import InfactMetric
from hallujudge.metrics.infact.operators import (
    EVIDENCE_CORRUPTION,
    TEMPORAL,
    VISUAL_DEGRADATION,
    AuditedCase,
    label_audit,
    taxonomy_means,
)
from hallujudge.sdk import Client

ITEMS = Items("INFACT")
QUESTIONS = infact_questions(96)


@cache
def scored() -> Any:
    with Client.embedded() as client:
        return client.score("infact", responses=infact_lines(QUESTIONS))


def is_right(question: dict[str, Any], operator: str) -> bool:
    return bool(question["runs"][operator] == question["label"])


def resist_rate(operator: str) -> float:
    """Return RR by section 3.4: right under the operator, of those right in Base."""
    base = [each for each in QUESTIONS if is_right(each, "base")]
    return sum(is_right(each, operator) for each in base) / len(base)


def temporal(operator: str, *, sensitive: bool = True) -> float:
    """Return TSS by section 3.4: no longer the label, of those right in Base."""
    base = [q for q in QUESTIONS if is_right(q, "base") and q["order_sensitive"] is sensitive]
    return sum(not is_right(each, operator) for each in base) / len(base)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def accuracy(operator: str) -> float:
    return mean([float(is_right(each, operator)) for each in QUESTIONS])


@ITEMS.is_made(60, "3.4", "Base and Text-only", "own", [accuracy("base"), accuracy("text_only")])
def _base(_: Path) -> list[float]:
    return [scored().base_accuracy, scored().text_only]


_OPERATORS = (*EVIDENCE_CORRUPTION, *VISUAL_DEGRADATION)


@ITEMS.is_made(
    61, "3.4", "RR of six operators, and means II and III", "own",
    [*map(resist_rate, _OPERATORS), mean([*map(resist_rate, VISUAL_DEGRADATION)]),
     mean([*map(resist_rate, EVIDENCE_CORRUPTION)])],
)  # fmt: skip
def _resist(_: Path) -> list[float]:
    found = scored()
    means = [found.rr_visual_degradation, found.rr_evidence_corruption]
    return [*(found[f"rr_{name}"].value for name in _OPERATORS), *means]


@ITEMS.is_made(
    62, "3.4", "TSS of order-sensitive questions", "own",
    [*map(temporal, TEMPORAL), mean([*map(temporal, TEMPORAL)])],
)  # fmt: skip
def _temporal(_: Path) -> list[float]:
    return [*(scored()[f"tss_{name}"].value for name in TEMPORAL), scored().tss]


@ITEMS.is_made(
    63, "T2, T3", "means and Avg Score of a row", "printed", [0.794, 0.763, 0.012, 0.523]
)
def _average(_: Path) -> list[float]:
    # PLLaVA-13B, faithfulness: the paper averages the modes as it prints them.
    row = (0.782, 0.678, 0.922, 0.777, 0.813, 0.699, 0.010, 0.014)
    found = infact_means(dict(zip((*_OPERATORS, *TEMPORAL), row, strict=True)))
    names = ("rr_evidence_corruption", "rr_visual_degradation", "tss", "average")
    return [round(found[name] or 0, 3) for name in names]


@ITEMS.is_made(
    64, "A2", "TSS of the other questions", "own",
    mean([temporal(name, sensitive=False) for name in TEMPORAL]),
)  # fmt: skip
def _insensitive(_: Path) -> float:
    return float(scored().tss_order_insensitive)


@ITEMS.is_made(65, "F5", "dimensions from the leaves of the taxonomy", "own", [True, True])
def _taxonomy(_: Path) -> list[bool]:
    leaves = {each["category"]: 0.5 for each in QUESTIONS}
    found = taxonomy_means(leaves)
    return [len(leaves) == 24, {found["faithfulness"], found["factuality"]} == {0.5}]


@ITEMS.is_made(66, "F4", "correlation of Base and reliability, by its formula", "own", 0.8660)
def _reliability(_: Path) -> float | None:
    return pearson([0.4, 0.5, 0.6], [0.52, 0.56, 0.57]) and pearson([1, 2, 3], [1, 3, 3])


def wrong_with(low: float, high: float) -> float:
    said = [
        each["confidence"]
        for each in QUESTIONS
        if not is_right(each, "base") and each["confidence"] is not None
    ]
    return mean([float(low <= value <= high) for value in said])


@ITEMS.is_made(
    67, "A.4", "confidence of wrong answers: from 0.7, and up to 0.4", "own",
    [wrong_with(0.7, 1.0), wrong_with(0.0, 0.4)],
)  # fmt: skip
def _overconfidence(_: Path) -> list[float]:
    return [scored().overconfident_share, scored().knowledge_gap_share]


@ITEMS.is_made(68, "A.4", "the confidence run is asked and read", "own", [True, ("B", 0.8)])
def _confidence(_: Path) -> list[Any]:
    # Asked of a server, and scored: tests/e2e/test_prompt_presets.py.
    asked = "confidence" in paper_prompt("infact-a4", "infact", ASKED).text
    return [asked, read_confidence("B, 80%")]


@ITEMS.is_made(69, "A3, A4", "audit by three people: the majority", "own", [0.75, 2 / 3])
def _audit(_: Path) -> list[float | None]:
    cases = [("A", ("A", "A", "B")), ("A", ("B", "B", "A")), ("A", ("A", "A", "A"))]
    given = [AuditedCase(label, choices) for label, choices in cases]
    found = label_audit([*given, AuditedCase("A", (None, None, "A"))])
    return [found.answerability, found.label_preservation]


@ITEMS.is_made(
    70, "A.5", "shuffle is a permutation, reverse the inversion", "own", [True, True, True]
)
def _order(_: Path) -> list[bool]:
    times, unit = list(range(40)), Fraction(1, 25)
    shuffled = list(frame_order("shuffle", draw_shuffle(Random(1)), times, unit))
    turned = list(frame_order("reverse", {}, times, unit))
    return [sorted(shuffled) == times, shuffled != times, turned == times[::-1]]


@ITEMS.is_made(71, "A.5", "noise of bounded strength", "own", [20.0, 60])
def _noise(_: Path) -> list[float]:
    # What it does to frames, blur and bitrates: tests/unit/asking/video.
    found = draw_noise(Random(1), NoiseSettings())
    return [found["sigma"], found["limit"]]


@ITEMS.is_made(72, "A.5", "captions 4:1; subtitles shifted by 0.5 to 2 s", "printed", [4, 1, True])
def _texts(_: Path) -> list[Any]:
    class Info:
        seconds = 20.0

    settings = CaptionSettings(misleading=("The door closes.",))
    shown = draw_captions(Random(1), Info(), settings)["captions"]  # type: ignore[arg-type]  # its length is all that is read
    kinds = [each["kind"] for each in shown]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "v.srt"
        path.write_text("1\n00:00:05,000 --> 00:00:06,000\nHello there, all of you\n")
        parameters = draw_corruption(Random(1), SubtitleSettings())
        [cue] = corrupted(read_subtitles(path), parameters).cues
    shift = abs(cue.start - 5000)
    return [kinds.count("irrelevant"), kinds.count("misleading"), 500 <= shift <= 2000]


@ITEMS.is_made(73, "T2, T3", "published rows: cells", "printed", 112)
def _rows(_: Path) -> int:
    return sum(len(row.scores) for row in published_rows(InfactMetric))
