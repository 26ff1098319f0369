"""Populations of clusters whose true scores are known, for every metric family.

Real ones come from the golden files: 8,000 captions of four models (CHAIR), 9,000 answers of a
model (POPE), 300 pairs of keyword lists (Mementos), the random baseline of VidHal, and two models'
answers about 397 videos (EventHallusion). HallusionBench, VideoHallucer and AMBER have drawn
answers to their own questions. What the golden files do not have by item is drawn from fixed seeds,
and :func:`populations` says how.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import needs
import numpy as np

from hallujudge.judge_service.engine.registry import open_pipeline
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.judge_service.engine.spec import ScoreSpec
from hallujudge.metrics import (
    Answer,
    AnswersItem,
    ChairMetric,
    ClaimVerdict,
    InfactMetric,
    Item,
    Metric,
    Part,
    TriHeMetric,
    Verdict,
    VidhalMcqaMetric,
    VidhalOrderingMetric,
    one_answer,
)
from hallujudge.metrics.framework.claims import Sentence
from hallujudge.metrics.infact.operators import INVARIANT, TEMPORAL, TEXT_ONLY
from hallujudge.metrics.mementos import MementosMetric
from hallujudge.metrics.pope import PopeMetric
from hallujudge.sdk import InputOptions, read_items
from hallujudge.synonym_graphs import compile_keywords, load_graph

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FAMILIES", "Population", "populations"]

CHAIR_FILES = (
    "pope_brief_description_mplug-owl",
    "pope_brief_description_llava",
    "pope_short_caption_minigpt-4",
    "pope_short_caption_instructblip",
)
_DRAWN = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """The clusters from which samples are drawn with replacement."""

    family: str
    """The metric's name."""
    name: str
    """What the clusters are."""
    metric: Metric
    """The metric whose scores are estimated."""
    clusters: Mapping[str, NDArray[np.float64]]
    """The sums of every cluster by column, the unit included."""


def populations(family: str = "") -> Iterator[Population]:
    """Make the populations of a family, or of all.

    Args:
        family: The folder of its golden data, such as ``tri_he``; empty for every family.
    """
    for name, make in _MAKERS.items():
        if family in ("", name):
            yield from make(needs.goldens(name))


def _population(
    metric: Metric, name: str, rows: Iterable[tuple[str, Sequence[float]]]
) -> Population:
    """Adds up the statistics of items by cluster.

    Args:
        metric: The metric.
        name: What the clusters are.
        rows: Cluster and statistics of every item.
    """
    keys, statistics = zip(*rows, strict=True)
    names = [metric.unit, *(column.name for column in metric.columns)]
    table = np.column_stack([np.ones(len(keys)), np.array(statistics, dtype=np.float64)])
    items = {column: table[:, place] for place, column in enumerate(names)}
    # Columns that need a whole table are made of items; clusters have their sums.
    items |= metric.expand(items)
    _, of = np.unique(keys, return_inverse=True)
    clusters = {
        column: np.bincount(of, weights=numbers).astype(np.float64)
        for column, numbers in items.items()
    }
    return Population(
        family=metric.name, name=name, metric=metric, clusters=metric.derive(clusters)
    )


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """Records of a file of JSON objects, with or without commas between them."""
    decoder, text, at = json.JSONDecoder(), path.read_text("utf-8"), 0
    while at < len(text):
        if text[at] in "[],\n\r\t ":
            at += 1
            continue
        record, at = decoder.raw_decode(text, at)
        yield record


class _Mention(NamedTuple):
    word: str
    object: str
    start: int = 0
    end: int = 0


def _chair(folder: Path) -> Iterator[Population]:
    """All captions together, those of each model, and images with the captions of all models."""
    metric = ChairMetric(matcher="golden", graph="golden")
    references = json.loads((folder / "coco_reference_objects.json").read_text("utf-8"))
    rows: dict[str, list[tuple[str, Sequence[float]]]] = {}
    for file in CHAIR_FILES:
        found = _records(folder / f"{file}.expected.jsonl")
        captions = _records(folder / f"{file}.captions.json")
        rows[file] = [
            (
                str(verdict["image_id"]),
                metric.score_caption(
                    caption["text"],
                    [_Mention(*pair) for pair in verdict["mentioned"]],
                    frozenset(references[str(verdict["image_id"])]),
                ).statistics,
            )
            for verdict, caption in zip(found, captions, strict=True)
        ]
    single = [
        (f"{file} {index}", statistics)
        for file, captions_of in rows.items()
        for index, (_, statistics) in enumerate(captions_of)
    ]
    yield _population(metric, "8,000 captions of four models", single)
    yield _population(metric, "2,000 images, four captions each", list(chain(*rows.values())))
    for file, captions_of in rows.items():
        yield _population(metric, f"2,000 captions of {file.rsplit('_', 1)[1]}", captions_of)


def _pope(folder: Path) -> Iterator[Population]:
    """Six questions about each of 500 images; and all 18, one answer in fifty made unreadable."""
    published, tool = PopeMetric(), PopeMetric(variant="lmms-eval")
    rng = random.Random(1)
    together: list[tuple[str, Sequence[float]]] = []
    for split in ("random", "popular", "adversarial"):
        questions = list(_records(folder / f"coco_{split}.questions.jsonl"))
        answers = _records(folder / f"llava-1.5-7b_coco_{split}_greedy.answers.jsonl")
        said = {answer["question_id"]: answer["text"] for answer in answers}
        rows = [(q["image"], said[q["question_id"]], q["label"]) for q in questions]
        yield _population(
            published,
            f"500 images, {split}",
            [
                (image, published.score(one_answer(id="", response=text, label=label)).statistics)
                for image, text, label in rows
            ],
        )
        for image, text, label in rows:
            shown = "It is hard to tell." if rng.random() < 0.02 else text.split(",")[0].strip(".")
            together.append(
                (image, tool.score(one_answer(id="", response=shown, label=label)).statistics)
            )
    yield _population(tool, "500 images, 18 questions each, 2 % unreadable", together)


def _tri_he(folder: Path) -> Iterator[Population]:
    """Claims are drawn: an image's share of wrong claims from a beta distribution.

    The images and how many questions each has are the benchmark's; how many claims an answer makes
    is drawn from the golden claims. A wrong claim has a wrong object in three of five cases.
    """
    images = json.loads((folder / "tri-he.json").read_text("utf-8"))
    sizes = [len(record["claims"]) for record in _records(folder / "matcher_claims.jsonl")]
    metric = TriHeMetric(judge="drawn")
    for name, a, b in (("a third wrong", 2.0, 4.0), ("one in twelve wrong", 0.5, 5.5)):
        rng = random.Random(2)
        rows = []
        for key, image in images.items():
            share = rng.betavariate(a, b)
            for _ in image["instance"]:
                verdicts = [_claim(rng, share) for _ in range(rng.choice(sizes))]
                rows.append((key, metric.score_answer(verdicts).statistics))
        yield _population(metric, f"300 images, {name} (drawn)", rows)


def _claim(rng: random.Random, share: float) -> ClaimVerdict:
    wrong = rng.random() < share
    part = Part.RELATION if rng.random() < 0.4 else next(p for p in Part if p.is_object)
    return ClaimVerdict(
        triplet=Sentence("drawn"),
        verdict=Verdict.NOT_SUPPORTED if wrong else Verdict.SUPPORTED,
        part=part if wrong else None,
    )


def _mementos(folder: Path) -> Iterator[Population]:
    """Each golden pair of object lists with each of five golden pairs of behaviour lists."""
    cases = json.loads((folder / "matching_cases.json").read_text("utf-8"))
    counted: dict[str, list[Any]] = {"object": [], "behavior": []}
    for case in cases:
        kind = case["kind"]
        graph = load_graph(folder / f"{case['domain']}_{kind}_graph.json")
        matcher = compile_keywords(graph, variant="published", pairs=kind == "behavior")
        counted[kind].append(matcher.counts(case["reference"], case["predicted"]))
    rng = random.Random(3)
    for average in ("sequences", "pooled"):
        metric = MementosMetric(
            average=average, matcher="", object_graph="", behavior_graph="", extractor=""
        )
        rows = [
            (
                f"{index} {turn}",
                metric.score_description(objects, rng.choice(counted["behavior"])).statistics,
            )
            for index, objects in enumerate(counted["object"])
            for turn in range(5)
        ]
        yield _population(metric, f"{len(rows)} sequences, {average}", rows)


def _vidhal(folder: Path) -> Iterator[Population]:
    """The random baseline; and drawn answers of a model that is right more often."""
    shown = json.loads((folder / "options.json").read_text("utf-8"))
    labels = [sorted(shown[key], key=lambda k: int(shown[key][k])) for key in sorted(shown)]
    choice, order = VidhalMcqaMetric(), VidhalOrderingMetric()

    def chosen(name: str, answers: Sequence[str]) -> Population:
        rows = [
            (str(n), choice.score(one_answer(id="1", response=said, label=label[0])).statistics)
            for n, (said, label) in enumerate(zip(answers, labels * 4, strict=True))
        ]
        return _population(choice, name, rows)

    def ordered(name: str, answers: Sequence[str]) -> Population:
        rows = [
            (str(n), order.score(one_answer(id="1", response=said, label=right)).statistics)
            for n, (said, right) in enumerate(
                zip(answers, map(", ".join, labels * 4), strict=False)
            )
        ]
        return _population(order, name, rows)

    rng = random.Random(4)
    for share in (1 / 3, 0.75, 0.95):
        said = [label[0] if rng.random() < share else "-" for label in labels * 4]
        yield chosen(f"4,000 videos, {share:.0%} right (drawn)", said)
    for kind in ("naive", "relative"):
        found = json.loads((folder / f"random_{kind}_ordering.predictions.json").read_text("utf-8"))
        yield ordered(
            f"1,000 videos, random {kind} orders", [", ".join(found[key]) for key in sorted(found)]
        )
    yield ordered(
        "4,000 videos, half right, an eighth A, B, C (drawn)",
        [_drawn_order(rng, label) for label in labels * 4],
    )


def _drawn_order(rng: random.Random, right: Sequence[str]) -> str:
    at = rng.random()
    if at < 0.5:
        return ", ".join(right)
    if at < 0.625:
        return "A, B, C"
    return "A, B" if at < 0.655 else ", ".join(rng.choice(list(permutations("ABC"))))


# The paper's table: base, text only, evidence corruption and visual degradation, temporal.
_INFACT_ROWS = {
    "Qwen2.5VL-7B's rates": (0.531, 0.278, (0.63, 0.659, 0.973, 0.804, 0.727, 0.64), (0.23, 0.258)),
    "Gemini3-flash's rates": (
        *(0.784, 0.295, (0.886, 0.914, 0.962, 0.942, 0.859, 0.892)),
        (0.581, 0.492),
    ),
}


def _infact(_folder: Path) -> Iterator[Population]:
    """Answers are drawn with the rates of two rows of the paper's table; two to a video.

    Operators of a question share a difficulty, so that they are not independent. Half of the
    questions are order-sensitive; off them a tenth of the answers change.
    """
    metric = InfactMetric()
    for name, rates in _INFACT_ROWS.items():
        rng = random.Random(5)
        items = (_question(rng, str(number), *rates) for number in range(2 * _DRAWN))
        rows = [(str(int(item.id) // 2), metric.score(item).statistics) for item in items]
        yield _population(metric, f"4,000 videos, {name} (drawn)", rows)


def _question(
    rng: random.Random,
    key: str,
    base: float,
    text_only: float,
    kept: Sequence[float],
    changed: Sequence[float],
) -> AnswersItem:
    sensitive, difficulty = rng.random() < 0.5, rng.random()
    rates = dict(zip(INVARIANT, kept, strict=True)) | {TEXT_ONLY: text_only}
    for operator, rate in zip(TEMPORAL, changed, strict=True):
        rates[operator] = 1 - (rate if sensitive else 0.1)
    answers = {"base": "A" if rng.random() < base else "B"}
    for operator, rate in rates.items():
        luck = difficulty if rng.random() < 0.3 else rng.random()
        readable = rng.random() >= 0.01
        answers[operator] = ("A" if luck < rate else "C") if readable else "unclear"
    confidence = rng.choice((0.2, 0.5, 0.8, 0.9))
    fields = {"confidence": str(confidence), "order_sensitive": str(sensitive).casefold()}
    return AnswersItem(
        id=key,
        answers=tuple(
            Answer(
                response=text,
                label="A",
                name=operator,
                options={letter: letter.lower() * 4 for letter in "ABC"},
                fields=fields,
            )
            for operator, text in answers.items()
        ),
    )


def _scored(metric: str, items: Iterable[Item], name: str, **options: str) -> Iterator[Population]:
    """The scored items of an archive, by their clusters.

    Args:
        metric: The metric's name.
        items: What its reader makes of the golden files.
        name: What the clusters are.
        **options: The metric's options; ``variant`` is its variant.
    """
    spec = ScoreSpec(metric=metric, variant=options.pop("variant", ""), options=options)
    pipeline = open_pipeline(spec, Resources())
    results = asyncio.run(pipeline.evaluate(list(items)))
    rows = [(result.group_id, result.statistics) for result in results if result.statistics]
    variant = f", {spec.variant}" if spec.variant else ""
    yield _population(pipeline.metric, f"{len({key for key, _ in rows})} {name}{variant}", rows)


def _hallusion_bench(folder: Path) -> Iterator[Population]:
    """The drawn answers with their labels, by set; and by our parser, images only."""
    items = read_items("hallusion-bench", folder / "drawn_1.predictions.json", None)
    yield from _scored("hallusion-bench", items, "sets (drawn)", correctness="given")
    yield from _scored("hallusion-bench", items, "sets (drawn)", variant="image-only")


def _event_hallusion(folder: Path) -> Iterator[Population]:
    """The real answers and judged descriptions of two models."""
    for model in ("gemini", "video_llava"):
        items = read_items("event-hallusion", folder / f"{model}.predictions.json", None)
        yield from _scored("event-hallusion", items, f"videos, {model}")


def _video_hallucer(folder: Path) -> Iterator[Population]:
    """The drawn answers to all seven sets, by video."""
    items = list(read_items("video-hallucer", folder / "drawn_1", None))
    for variant in ("published", "corrected"):
        yield from _scored("video-hallucer", items, "videos (drawn)", variant=variant)


def _amber(folder: Path) -> Iterator[Population]:
    """The drawn answers and nouns, by image."""
    items = list(
        read_items(
            "amber",
            folder / "drawn_1.answers.json",
            folder / "annotations.json",
            options=InputOptions(
                own={
                    "nouns": folder / "drawn_1.nouns.jsonl",
                    "questions": folder / "query_all.json",
                    "associations": folder / "relation.json",
                    "safe_words": folder / "safe_words.txt",
                }
            ),
        )
    )
    for variant in ("published", "corrected"):
        yield from _scored("amber", items, "images (drawn)", variant=variant)


_MAKERS: Mapping[str, Callable[[Path], Iterator[Population]]] = {
    "chair": _chair,
    "pope": _pope,
    "tri_he": _tri_he,
    "mementos": _mementos,
    "vidhal": _vidhal,
    "infact": _infact,
    "hallusion_bench": _hallusion_bench,
    "event_hallusion": _event_hallusion,
    "video_hallucer": _video_hallucer,
    "amber": _amber,
}
FAMILIES = tuple(_MAKERS)
"""The names of the families."""
