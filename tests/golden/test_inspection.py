"""Files of benchmarks, as their authors publish them, are recognised.

A family's golden test may list its own as ``RECOGNISED``.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from hallujudge.sdk import inspect_archives

FILES = {
    "amber/annotations.json": ("references", "amber", 15220),
    "amber/drawn_1.answers.json": ("responses", "amber", 14216),
    "chair/coco_reference_objects.json": ("references", "chair", 2000),
    "chair/pope_brief_description_llava.captions.json": ("responses", "chair", 2000),
    "elv_halluc/drawn_1.jsonl": ("responses", "elv-halluc", 1440),
    "event_hallusion/gemini.predictions.json": ("responses", "event-hallusion", 3),
    "hallusion_bench/drawn_1.predictions.json": ("responses", "hallusion-bench", 1129),
    "hallusion_bench/released_sample.predictions.json": ("responses", "hallusion-bench", 254),
    "hat/captions.jsonl": ("responses", "open-objects", 200),
    "mementos/daily_life.descriptions.csv": ("responses", "mementos", 448),
    "object_halbench/drawn_1.items.jsonl": ("responses", "object-halbench", 300),
    "pope/coco_random.questions.jsonl": ("references", "pope", 3000),
    "pope/llava-1.5-7b_coco_random_greedy.answers.jsonl": ("responses", "pope", 3000),
    "repope/coco_repope_random.json": ("references", "pope", 2774),
    "tri_he/tri-he.json": ("responses", "tri-he", 300),
    "video_hallucer/drawn_1/temporal.json": ("responses", "video-hallucer", 176),
    "openchair/drawn_1.jsonl": ("responses", "openchair", 400),
    "vidhalluc/drawn_1.bqa_answers.json": ("responses", "vidhalluc-bqa", 79),
    "vidhalluc/drawn_1.mcq.json": ("responses", "vidhalluc-mcq", 90),
    "vidhalluc/drawn_1.sth_answers.json": ("responses", "vidhalluc-sth", 136),
    "vidhalluc/drawn_1.sth_truth.json": ("references", "vidhalluc-sth", 140),
    "vidhalluc/drawn_1.tsh.json": ("responses", "vidhalluc-tsh", 160),
    "vidhal/annotations.json": ("references", "vidhal-mcqa", 1000),
    "vidhal/random_mcqa.predictions.json": ("responses", "vidhal-mcqa", 1000),
    "vidhal/random_naive_ordering.predictions.json": ("responses", "vidhal-ordering", 1000),
}
BESIDE = {
    "amber/drawn_1.nouns.jsonl": "InputOptions(own=dict(nouns=…))",
    "amber/query_all.json": "InputOptions(own=dict(questions=…))",
    "amber/relation.json": "InputOptions(own=dict(associations=…))",
    "vidhalluc/drawn_1.sth_similarities.json": "InputOptions(own=dict(similarities=…))",
    "vidhal/options.json": "InputOptions(own=dict(options=…))",
}


for module in sorted(Path(__file__).parent.glob("test_*_scores.py")):
    FILES |= getattr(import_module(f"golden.{module.stem}"), "RECOGNISED", {})


@pytest.mark.parametrize("name", FILES)
def test_files_of_benchmarks_are_recognised(goldens: Path, name: str) -> None:
    (found,) = inspect_archives([goldens / name])
    role, metric, records = FILES[name]
    assert (found.role, found.metrics[:1], found.records) == (role, (metric,), records)
    assert f"hallujudge score {metric} --{role}" in found.command


@pytest.mark.parametrize("name", BESIDE)
def test_files_that_are_given_beside_others_say_so(goldens: Path, name: str) -> None:
    (found,) = inspect_archives([goldens / name])
    assert BESIDE[name] in found.next_step
    assert found.command == ""
