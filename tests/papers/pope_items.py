"""POPE's items, with CHAIR's."""

from __future__ import annotations

import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from papers.paper_items import Items

from hallujudge.judge_service.llm.prompt_templates import ASKED, JUDGE, paper_prompt
from hallujudge.metrics.chair import ChairMetric
from hallujudge.metrics.framework.papers import published_rows
from hallujudge.metrics.pope import PopeMetric, template_stability
from hallujudge.metrics.pope.question_builder import build_pope
from hallujudge.metrics.vqa import vqa_score
from hallujudge.sdk import Client, analyze

ITEMS = Items("POPE")
_SAMPLINGS = ("random", "popular", "adversarial")


@cache
def saved(goldens: Path, name: str) -> Path:
    """Return the folder of a run of captions, or of one that polled objects."""
    folder = Path(tempfile.mkdtemp()) / name
    report = polled(goldens, name) if name in _SAMPLINGS else captioned(goldens, name)
    report.save(folder)
    return folder


@cache
def captioned(goldens: Path, name: str) -> Any:
    folder = goldens / "chair"
    with Client.embedded() as client:
        return client.score(
            "chair",
            responses=folder / f"pope_{name}.captions.json",
            references=folder / "coco_reference_objects.json",
        )


@cache
def polled(goldens: Path, sampling: str) -> Any:
    folder = goldens / "pope"
    with Client.embedded() as client:
        return client.score(
            "pope",
            responses=folder / f"llava-1.5-7b_coco_{sampling}_greedy.answers.jsonl",
            references=folder / f"coco_{sampling}.questions.jsonl",
        )


@cache
def tables(goldens: Path) -> dict[str, Any]:
    found = analyze(saved(goldens, "brief_description_llava"), options={"probe": "dining table"})
    return {table.name: table.rows for table in found.tables}


def printed_scores(goldens: Path, name: str) -> list[float]:
    found = captioned(goldens, name)
    return [
        round(100 * found.chair_i, 1),
        round(100 * found.chair_s, 1),
        round(found.mean_words, 1),
    ]


@ITEMS.is_made(
    1,
    "f.1, 2, T1",
    "CHAIR_I, CHAIR_S, Len",
    "printed",
    [18.8, 62.7, 90.7, 2.6, 3.7, 8.5],
    golden=True,
)
def _chair(goldens: Path) -> list[float]:
    names = ("brief_description_llava", "short_caption_instructblip")
    return [value for name in names for value in printed_scores(goldens, name)]


@ITEMS.is_made(2, "T1", "CHAIR by instruction", "printed", [[1, 2], [2.6, 18.8]], golden=True)
def _instructions(goldens: Path) -> list[Any]:
    runs = [
        saved(goldens, name) for name in ("short_caption_instructblip", "brief_description_llava")
    ]
    found = analyze(*runs, names=("model=m,instruction=1", "model=m,instruction=2"))
    [table] = [each for each in found.tables if each.name == "instructions"]
    return [[1, 2], [round(100 * float(row["chair_i"] or 0), 1) for row in table.rows]]


@ITEMS.is_made(
    3, "f.3, T2", "HR_A@k; its list is not printed", "own", [0.5443, 0.7184, 0.7846], golden=True
)
def _hit_ratio_by_frequency(goldens: Path) -> list[float]:
    return [row["hr_a"] for row in tables(goldens)["hit_ratio"]]


@ITEMS.is_made(4, "f.4, T2, T10", "HR_C@k", "printed", [0.5628, 0.7329, 0.8595], golden=True)
def _hit_ratio_by_company(goldens: Path) -> list[float]:
    return [row["hr_c"] for row in tables(goldens)["hit_ratio"]]


@ITEMS.is_made(5, "T8", "accumulated by frequency", "own", [0.5598, 0.7255, 0.7909], golden=True)
def _accumulated(goldens: Path) -> list[float]:
    return [row["by_frequency"] for row in tables(goldens)["accumulated"][:3]]


@ITEMS.is_made(
    6, "T9", "accumulated by co-occurrence, of 575 mentions (printed: of 290)", "own",
    [0.5443, 0.7200, 0.8557], golden=True,
)  # fmt: skip
def _accumulated_by_company(goldens: Path) -> list[float]:
    return [row["by_cooccurrence"] for row in tables(goldens)["accumulated"][:3]]


@ITEMS.is_made(
    7, "F2, 4.2", "frequent objects: person, car, chair", "own", [217, 171, 400], golden=True
)
def _frequent(goldens: Path) -> list[int]:
    times = {row["object"]: row["hallucinated"] for row in tables(goldens)["frequent_objects"]}
    return [times["car"], times["chair"], times["person"]]


@ITEMS.is_made(
    8, "5.1, T3", "F1 of three samplings", "released", [0.8550, 0.8447, 0.8212], golden=True
)
def _f1(goldens: Path) -> list[float]:
    return [polled(goldens, sampling).f1 for sampling in _SAMPLINGS]


def shown_objects() -> dict[str, list[str]]:
    names = ["person", "chair", "car", "cup", "bowl", "cat", "dog", "book"]
    return {str(n): [names[n % 4], names[4 + n % 4], names[(n + 1) % 4]] for n in range(40)}


def built(sampling: str) -> list[tuple[int, int, int]]:
    """Return whether questions are balanced and labels right: images, questions, wrong labels."""
    shown = shown_objects()
    made = build_pope(shown, sampling=sampling, questions_per_image=6, images=20).questions
    wrong = sum((each.label == "yes") != (each.object in shown[each.image]) for each in made)
    yes = Counter(each.label for each in made)
    return [(len({each.image for each in made}), len(made), wrong), (yes["yes"], yes["no"], 0)]


BALANCED = [(20, 120, 0), (60, 60, 0)]


@ITEMS.is_made(9, "5.1, 5.2", "random sampling, 1:1, l = 6", "own", sum(BALANCED, ()))
def _random(_: Path) -> tuple[int, ...]:
    return sum(built("random"), ())


@ITEMS.is_made(10, "5.1", "popular sampling: the most frequent absent objects", "own", 0)
def _popular(_: Path) -> int:
    shown = shown_objects()
    often = Counter(name for names in shown.values() for name in names)
    made = build_pope(shown, sampling="popular", questions_per_image=6).questions
    odd = 0
    for image, names in shown.items():
        absent = {each.object for each in made if each.image == image and each.label == "no"}
        least = min(often[name] for name in absent)
        odd += any(often[n] > least for n in often if n not in names and n not in absent)
    return odd


@ITEMS.is_made(11, "5.1", "adversarial sampling", "own", sum(BALANCED, ()))
def _adversarial(_: Path) -> tuple[int, ...]:
    return sum(built("adversarial"), ())


@ITEMS.is_made(
    12, "5.3, T5, T11", "objects of a segmentation model; SEEM's are not published", "own", (8, 0)
)
def _segmented(_: Path) -> tuple[int, int]:
    found = {"a": ["couch", "dog"], "b": ["cat", "bowl"], "c": ["cup", "car"]}
    made = build_pope(found, sampling="random", questions_per_image=4, images=2).questions
    return len(made), sum((q.label == "yes") != (q.object in found[q.image]) for q in made)


@ITEMS.is_made(
    13, "T4", "stability over prompts: mean and std", "printed", [67.43, 0.78, 13.88, 3.22]
)
def _stability(_: Path) -> list[float]:
    rows = ([68.65, 66.83, 66.67, 67.58], [10.50, 18.80, 14.60, 11.60])
    found = [template_stability({str(n): v for n, v in enumerate(row)}) for row in rows]
    # Halves are rounded up, as in the paper's 13.88 of 13.875.
    return [round(value + 1e-9, 2) for each in found for value in (each.mean, each.std)]


@ITEMS.is_made(
    14, "5.3", "consistency of answers and captions", "own", [64, 6, 37, 31], golden=True
)
def _consistency(goldens: Path) -> list[Any]:
    found = analyze(saved(goldens, "random"), saved(goldens, "brief_description_llava"))
    [table] = [each for each in found.tables if each.name == "consistency"]
    keys = ("denied", "denied_but_mentioned", "mentioned", "mentioned_and_affirmed")
    return [table.rows[0][key] for key in keys]


@ITEMS.is_made(15, "5.4, E, T6", "VQA score of 3, 1 and 10 of 10 people", "own", [0.9, 0.3, 1.0])
def _vqa(_: Path) -> list[float]:
    # Mean over the ten groups of nine: min(1, matches among the others / 3).
    return [vqa_score((True,) * n + (False,) * (10 - n)) for n in (3, 1, 10)]


@ITEMS.is_made(16, "E", "the judge's prompt, and <NAN>", "printed", [True, True])
def _appendix_e(_: Path) -> list[bool]:
    text = paper_prompt("pope-appendix-e", "vqa", JUDGE).text
    return ["if not, please output <NAN> directly" in text, "a student’s answer" in text]


@ITEMS.is_made(17, "3.1, T4", "the words of I1, I2 and of POPE's question", "printed", True)
def _instructions_in_words(_: Path) -> bool:
    one = paper_prompt("pope-i1", "chair", ASKED).text
    two = paper_prompt("pope-i2", "chair", ASKED).text
    bare = paper_prompt("pope-question", "pope", ASKED).text
    return (one, two, bare) == (
        "Generate a short caption of the image.",
        "Provide a brief description of the given image.",
        "{{question}}",
    )


ITEMS.is_not_made(
    18, "T12", "BLEU, METEOR, ROUGE-L",
    "n-gram overlap with references does not measure hallucination; the captions are not published",
)  # fmt: skip


@ITEMS.is_made(19, "T1, T3", "published rows: cells", "printed", 103)
def _rows(_: Path) -> int:
    rows = (*published_rows(ChairMetric), *published_rows(PopeMetric))
    return sum(len(row.scores) for row in rows)
