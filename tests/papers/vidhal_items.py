"""VidHal's items."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from papers.paper_items import Items

from hallujudge.asking.vidhal_captions import anchor_prompt, read_wrong, wrong_prompt
from hallujudge.metrics.answers.orders import PairAnswer, PairQuestion, RelativeOrdering
from hallujudge.metrics.framework.papers import published_rows
from hallujudge.metrics.vidhal import ORDERING, VidhalMcqaMetric, VidhalOrderingMetric
from hallujudge.metrics.vidhal.order_analyses import (
    QualityVote,
    caption_quality,
    frame_reliance,
    human_agreement,
    input_order_sensitivity,
    model_consensus,
    transitive_inconsistency,
)
from hallujudge.sdk import Client, InputOptions, analyze

ITEMS = Items("VidHal")


@cache
def scored(goldens: Path, task: str) -> Any:
    folder = goldens / "vidhal"
    with Client.embedded() as client:
        return client.score(
            "vidhal-mcqa" if task == "mcqa" else "vidhal-ordering",
            responses=folder / f"random_{task}.predictions.json",
            references=folder / "annotations.json",
            inputs=InputOptions(own={"options": folder / "options.json"}),
        )


@ITEMS.is_made(20, "f.1", "MCQA accuracy of the random baseline", "released", 0.349, golden=True)
def _mcqa(goldens: Path) -> float:
    return float(scored(goldens, "mcqa").accuracy)


@ITEMS.is_made(
    21, "f.2-6", "NDCG, naive and relative", "released", [0.490525, 0.501572], golden=True
)
def _ndcg(goldens: Path) -> list[float]:
    return [scored(goldens, f"{task}_ordering").ndcg for task in ("naive", "relative")]


@ITEMS.is_made(22, "f.8, F9", "HM 2→1, 3→1, 3→2", "own", [0.498, 0.517, 0.524], golden=True)
def _misalignment(goldens: Path) -> list[float]:
    found = scored(goldens, "naive_ordering")
    return [found.hm_2_1, found.hm_3_1, found.hm_3_2]


@ITEMS.is_made(23, "5.4, F8", "RR and IRR", "released", [0.18, 0.268, 0.0], golden=True)
def _regurgitation(goldens: Path) -> list[float]:
    naive, relative = (scored(goldens, f"{task}_ordering") for task in ("naive", "relative"))
    return [naive.regurgitation_rate, relative.regurgitation_rate, naive.invalid_response_rate]


@ITEMS.is_made(24, "F8", "the line Dataset Statistic", "own", [0.18, 0.18], golden=True)
def _dataset_statistic(goldens: Path) -> list[float]:
    found = analyze(scored(goldens, "naive_ordering"))
    [table] = [each for each in found.tables if each.name == "regurgitation"]
    [rate] = [row["rate"] for row in table.rows if row["line"] == "Dataset Statistic"]
    shown = json.loads((goldens / "vidhal" / "options.json").read_text("utf-8"))
    orders = Counter(tuple(sorted(of, key=of.__getitem__)) for of in shown.values())
    return [float(rate or 0), round(max(orders.values()) / orders.total(), 3)]


@ITEMS.is_made(
    25, "T2", "three tasks side by side", "released", [0.349, 0.4905, 0.5016], golden=True
)
def _three_tasks(goldens: Path) -> list[float]:
    return [_mcqa(goldens), *(round(value, 4) for value in _ndcg(goldens))]


@ITEMS.is_made(26, "F5, F6", "accuracy by aspect", "released", [0.43137, 0.29508], golden=True)
def _aspects(goldens: Path) -> list[float]:
    of = scored(goldens, "mcqa").groups["aspect"]
    return [of["order"]["accuracy"].value, of["action"]["accuracy"].value]


def end_answers(count: int, wrong: int) -> dict[str, list[PairAnswer]]:
    pair = PairQuestion("A", "C")
    return {
        f"v{n}": [PairAnswer(question=pair, chosen="C" if n < wrong else "A")] for n in range(count)
    }


@ITEMS.is_made(27, "f.7, T3", "P_TI of all 60 videos, and of the 50 asked", "own", [28 / 60, 0.56])
def _transitive(_: Path) -> list[float | None]:
    orders = {f"v{n}": ("A", "B", "C") for n in range(60)}
    found = transitive_inconsistency(orders, end_answers(50, 28))
    return [found.rate, found.rate_of_asked]


@ITEMS.is_made(28, "T3", "ask: a protocol that asks the end pair", "own", ["relative-ends", True])
def _ends(_: Path) -> list[Any]:
    # tests/e2e/test_ask_vidhal.py asks a server so, and scores what it wrote.
    assert isinstance(ORDERING.asking, tuple)
    protocol = ORDERING.asking[-1]
    return [protocol.name, protocol.ends and protocol.pairs]


@ITEMS.is_made(29, "4.1, 9.2, F34", "the third pair only if it is open", "own", [2, 3])
def _decision_tree(_: Path) -> list[int]:
    counts = []
    for prefers in ("ABC", "BAC"):
        plan = RelativeOrdering(list("ABC"))
        while plan.question is not None:
            plan.answer(min(plan.question, key=prefers.index))
        assert plan.order == tuple(prefers)
        counts.append(len(plan.answers))
    return counts


@ITEMS.is_made(30, "F7", "single-frame reliance", "own", [0.5, 0.5, 0.5])
def _frames(_: Path) -> list[float | None]:
    video = {"1": (1, 2, 3), "2": (1, 2, 3), "3": (2, 1, 3), "4": (3, 2, 1)}
    frame = {"1": (1, 2, 3), "2": (2, 1, 3), "3": (2, 1, 3), "4": (3, 1, 2)}
    found = frame_reliance(video, frame)
    return [found.overall, found.correct, found.incorrect]


@ITEMS.is_made(31, "10.1, F35", "input-order bias", "own", [0.75, 0.25])
def _input_order(_: Path) -> list[float]:
    scores = {"A, B": {"v1": 1.0, "v2": 0.0}, "B, A": {"v1": 1.0, "v2": 1.0}}
    found = input_order_sensitivity(scores)
    return [found.mean, found.std]


@ITEMS.is_made(32, "10.2, F36", "consensus: both right of those that either has", "own", [0.5, 0])
def _consensus(_: Path) -> list[float | None]:
    right = {
        "a": {"1": True, "2": True, "3": False},
        "b": {"1": True, "2": False, "3": False},
        "c": {"1": False, "2": False, "3": False},
    }
    found = model_consensus(right).pairs
    return [found["a", "b"], found["a", "c"]]


@ITEMS.is_made(33, "F3, T4", "people's agreement; half is misaligned", "own", [13 / 18, 1])
def _people(_: Path) -> list[float | None]:
    found = human_agreement({"v1": [True, True, False], "v2": [True, False], "v3": [True]})
    return [found.mean, len(found.misaligned)]


@ITEMS.is_made(34, "7.2", "caption quality: an unread vote counts 0", "own", [1.7778, 2.0])
def _quality(_: Path) -> list[float | None]:
    # "1 for positive responses, and 0 otherwise": 7, 5 and 4 of 9 are yes; 2 others are unread.
    said = {"realism": (7, 2), "ordering": (5, 0), "relevance": (4, 0)}
    votes = [
        QualityVote(video="v", judge=str(n % 3), criterion=kind, prompt=str(n // 3), answer=answer)
        for kind, (yes, unread) in said.items()
        for n, answer in enumerate(["yes"] * yes + [None] * unread + ["no"] * (9 - yes - unread))
    ]
    found = caption_quality(votes)["v"]
    return [found["total"], found["unread"]]


@ITEMS.is_made(35, "3.3, 7.2", "anchor, then hallucinated captions", "own", [True, ["B.", "C."]])
def _captions(_: Path) -> list[Any]:
    asked = "A." in wrong_prompt("A.", "action", 2) and bool(anchor_prompt("notes", "action"))
    return [asked, read_wrong('["B.", "C."]', "A.", 2)]


@ITEMS.is_made(
    36, "7.2", "the best N videos; BLIP-2's filter needs that model", "own", ["v1", "v2"]
)
def _best(_: Path) -> list[str]:
    # hallujudge build vidhal-best keeps the first N: tests/e2e/test_build_vidhal.py.
    votes = [
        QualityVote(video=video, judge="a", criterion=kind, prompt="1", answer=answer)
        for video, answers in (("v2", "yes no"), ("v1", "yes yes"), ("v3", "no no"))
        for kind in ("realism", "ordering", "relevance")
        for answer in answers.split()
    ]
    return list(caption_quality(votes))[:2]


@ITEMS.is_made(37, "T2", "published rows: cells", "printed", 42)
def _rows(_: Path) -> int:
    rows = (*published_rows(VidhalMcqaMetric), *published_rows(VidhalOrderingMetric))
    return sum(len(row.scores) for row in rows)
