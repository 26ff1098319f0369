"""Scores of thoughts before real captions, against counts of a plain script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from oracles.chair_published import mentions, roots_of
from support.running import here, read_rows
from support.sizes import sized
from support.thoughts import FORMS

from hallujudge.sdk.schemas import item_schema

NAME = "pope_brief_description_llava"


def objects(text: str) -> Iterator[Any]:
    """Yield the JSON objects that follow each other in a text."""
    at, decoder = 0, json.JSONDecoder()
    while at < len(text.rstrip()):
        made, at = decoder.raw_decode(text, at)
        yield made
        at += len(text[at:]) - len(text[at:].lstrip())


@pytest.fixture(scope="module")
def captions(goldens: Path) -> list[tuple[str, str, str]]:
    """Image, thought and answer: each thought is the caption of the next image."""
    file = goldens / "chair" / f"{NAME}.captions.json"
    texts = [row["text"] for row in objects(file.read_text(encoding="utf-8"))]
    images = [
        json.loads(line)["image_id"]
        for line in (goldens / "chair" / f"{NAME}.expected.jsonl").read_text().splitlines()
    ]
    thoughts = [*texts[1:], texts[0]]
    rows = list(zip(map(str, images), thoughts, texts, strict=True))
    # The plain script takes most of the time.
    return rows[: sized(200, len(rows))]


@pytest.fixture(scope="module")
def counted(goldens: Path, captions: list[tuple[str, str, str]]) -> dict[str, list[list[int]]]:
    """Mentions and hallucinations of each thought and each answer, by the plain script."""
    chair = goldens / "chair"
    table = (chair / "coco_synonyms.txt").read_text(encoding="utf-8")
    roots = roots_of([line.split(", ") for line in table.strip().splitlines()])
    references = json.loads((chair / "coco_reference_objects.json").read_text(encoding="utf-8"))
    found: dict[str, list[list[int]]] = {"thought": [], "answer": []}
    for image, thought, answer in captions:
        shown = {roots.get(name, name) for name in references[image]}
        for kind, text in (("thought", thought), ("answer", answer)):
            named = [root for _, root in mentions(text, table)]
            found[kind].append([len(named), sum(root not in shown for root in named)])
    return found


def share(rows: list[list[int]]) -> float:
    return sum(row[1] for row in rows) / sum(row[0] for row in rows)


@pytest.fixture(scope="module")
def report(
    goldens: Path, captions: list[tuple[str, str, str]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("thoughts")
    forms = cycle(form for name, form in FORMS.items() if name not in (r"\boxed{}",))
    lines = [
        json.dumps({"image_id": image, "caption": next(forms)(thought, answer)})
        for image, thought, answer in captions
    ]
    (folder / "captions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    references = goldens / "chair" / "coco_reference_objects.json"
    more = ("--thoughts", "score", "--out", folder / "run", "-q")
    run = here("score", "chair", "-r", folder / "captions.jsonl", "-R", references, *more)
    assert run.returncode == 0, run.stderr
    content: dict[str, Any] = json.loads((folder / "run" / "report.json").read_text())
    content["items"] = read_rows(folder / "run" / "items.jsonl")
    return content


def test_thoughts_and_answers_have_the_plain_scripts_scores(
    report: dict[str, Any], counted: dict[str, list[list[int]]], captions: list[tuple[str, ...]]
) -> None:
    scores = {name: score["value"] for name, score in report["scores"].items()}
    answers, thoughts = share(counted["answer"]), share(counted["thought"])
    assert scores["chair_i"] == pytest.approx(answers, abs=1e-12)
    assert scores["thought_chair_i"] == pytest.approx(thoughts, abs=1e-12)
    assert scores["thought_chair_i_difference"] == pytest.approx(thoughts - answers, abs=1e-12)
    several = sum(row[1] > 0 for row in counted["thought"]) / len(captions)
    assert scores["thought_chair_s"] == pytest.approx(several, abs=1e-12)
    assert report["scores"]["thought_chair_i"]["n"] == len(captions)
    low, high = (
        report["scores"]["thought_chair_i_difference"][end] for end in ("ci_low", "ci_high")
    )
    assert low < thoughts - answers < high
    assert report["traits"]["thought"] == len(captions)
    Draft202012Validator(item_schema()).validate(report["items"][0])


def test_lines_hold_thought_and_answer_apart(
    report: dict[str, Any], captions: list[tuple[str, str, str]]
) -> None:
    for line, (image, thought, answer) in zip(report["items"], captions, strict=True):
        assert line["id"] == image
        assert (line["response"], line["thought"]) == (answer.strip(), thought.strip())
        spans = line["thought_evidence"]["mentioned_spans"]
        assert all(line["thought"][start:end].strip() for start, end in spans)
