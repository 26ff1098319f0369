"""The published matching on 8,000 real captions, and what the shipped graph makes of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from oracles.chair_published import mentions
from oracles.plain_matching import plain_mentions

from hallujudge.synonym_graphs import ObjectMatcher, compile_matcher, load_graph, parse_graph

GOLDENS = Path(
    os.environ.get("HALLUJUDGE_GOLDENS")
    or Path(__file__).resolve().parents[2].parent / "shared" / "goldens"
)
CHAIR = GOLDENS / "chair"
FILES = (
    "pope_brief_description_llava",
    "pope_brief_description_mplug-owl",
    "pope_short_caption_instructblip",
    "pope_short_caption_minigpt-4",
)
pytestmark = pytest.mark.skipif(
    not CHAIR.is_dir(), reason="golden data absent: set HALLUJUDGE_GOLDENS to its folder"
)


def objects(text: str) -> Iterator[dict[str, Any]]:
    """Read JSON objects that stand one behind the other."""
    decoder, place = json.JSONDecoder(), 0
    while place < len(text := text.rstrip()):
        value, place = decoder.raw_decode(text, place)
        yield value
        while place < len(text) and text[place].isspace():
            place += 1


def load(name: str) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Give (image id, caption, expected mentions) for each caption of a file."""
    ids = json.loads((CHAIR / "pope_image_ids.json").read_text("utf-8"))
    captions = [
        (item.get("image_id", ids[item["question_id"]]), item["text"])
        for item in objects((CHAIR / f"{name}.captions.json").read_text("utf-8"))
    ]
    assert captions
    lines = (CHAIR / f"{name}.expected.jsonl").read_text("utf-8").splitlines()
    expected = {line["image_id"]: line["mentioned"] for line in map(json.loads, lines)}
    return [(str(i), text, [(w, o) for w, o in expected[i]]) for i, text in captions]


@pytest.fixture(scope="module")
def table() -> str:
    return (CHAIR / "coco_synonyms.txt").read_text("utf-8")


@pytest.mark.parametrize("name", FILES)
def test_fast_matcher_equals_the_published_run(name: str, table: str) -> None:
    matcher = ObjectMatcher(parse_graph(table, layout="table", name="coco"), "published")
    for _, caption, expected in load(name):
        assert [m[:2] for m in matcher.find(caption)] == expected


@pytest.mark.parametrize("name", FILES)
def test_spans_equal_those_of_the_exact_path(name: str, table: str) -> None:
    matcher = ObjectMatcher(parse_graph(table, layout="table", name="coco"), "published")
    for _, caption, _ in load(name)[::10]:
        assert matcher.find(caption) == plain_mentions(matcher, caption)


@pytest.mark.parametrize("name", FILES)
def test_the_yardstick_equals_the_published_run(name: str, table: str) -> None:
    step = 1 if os.environ.get("HALLUJUDGE_GOLDEN_ALL") else 20
    for _, caption, expected in load(name)[::step]:
        assert mentions(caption, table) == expected


@pytest.mark.parametrize("name", FILES)
def test_shipped_graph_stays_near_the_published_scores(name: str) -> None:
    matcher = compile_matcher(load_graph("coco"), variant="corrected")
    references = json.loads((CHAIR / "coco_reference_objects.json").read_text("utf-8"))
    scores = json.loads((CHAIR / "expected_scores.json").read_text("utf-8"))[name]
    captions = load(name)
    mentioned = hallucinated = sentences = 0
    for image, caption, _ in captions:
        found = [m.object for m in matcher.find(caption)]
        wrong = sum(o not in references[image] for o in found)
        mentioned, hallucinated = mentioned + len(found), hallucinated + wrong
        sentences += wrong > 0
    assert abs(hallucinated / mentioned - scores["chair_i"]) <= 0.005
    assert abs(sentences / len(captions) - scores["chair_s"]) <= 0.015
