"""CHAIR on 8,000 captions of four models: the published table's numbers to the last digit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.running import here, read_rows

FILES = (
    "pope_brief_description_mplug-owl",
    "pope_brief_description_llava",
    "pope_short_caption_minigpt-4",
    "pope_short_caption_instructblip",
)
SCORES = ("chair_i", "chair_s", "recall")
COUNTS = (
    "captions",
    "mentioned",
    "hallucinated",
    "captions_with_hallucination",
    "recalled_objects",
    "reference_objects",
)
# Table 1 of the POPE paper: CHAIR_I, CHAIR_S (percent) and Len.
PRINTED = {
    "pope_brief_description_mplug-owl": (30.2, 76.8, 98.5),
    "pope_brief_description_llava": (18.8, 62.7, 90.7),
    "pope_short_caption_minigpt-4": (6.7, 9.5, 24.7),
    "pope_short_caption_instructblip": (2.6, 3.7, 8.5),
}


def score(goldens: Path, name: str, out: Path, *more: str | Path) -> dict[str, object]:
    chair = goldens / "chair"
    run = here(
        "score",
        "chair",
        "--responses",
        chair / f"{name}.captions.json",
        "--references",
        chair / "coco_reference_objects.json",
        "--out",
        out,
        *more,
    )
    assert run.returncode == 0, run.stderr
    content: dict[str, object] = json.loads((out / "report.json").read_text())
    return content


@pytest.fixture(scope="module")
def expected(goldens: Path) -> dict[str, dict[str, float]]:
    content: dict[str, dict[str, float]] = json.loads(
        (goldens / "chair" / "expected_scores.json").read_text()
    )
    return content


@pytest.mark.parametrize("name", FILES)
def test_published_equals_the_released_procedure(
    goldens: Path, expected: dict[str, dict[str, float]], tmp_path: Path, name: str
) -> None:
    report = score(goldens, name, tmp_path)
    assert "|var:published|" in str(report["signature"])
    assert report["notes"] == []
    assert_published(goldens, expected, tmp_path, name, report)


def test_a_table_file_equals_the_shipped_table(
    goldens: Path, expected: dict[str, dict[str, float]], tmp_path: Path
) -> None:
    table = goldens / "chair" / "coco_synonyms.txt"
    report = score(goldens, FILES[3], tmp_path, "--graph", table)
    assert report["notes"] == []
    assert_published(goldens, expected, tmp_path, FILES[3], report)


def assert_published(
    goldens: Path,
    expected: dict[str, dict[str, float]],
    out: Path,
    name: str,
    report: dict[str, object],
) -> None:
    scores, totals = report["scores"], report["totals"]
    assert isinstance(scores, dict)
    assert isinstance(totals, dict)
    assert {k: scores[k]["value"] for k in SCORES} == {k: expected[name][k] for k in SCORES}
    assert {k: totals[k] for k in COUNTS} == {k: expected[name][k] for k in COUNTS}
    chair_i, chair_s, length = PRINTED[name]
    assert round(100 * scores["chair_i"]["value"], 1) == chair_i
    # 0.7685 is printed as 76.8: the table rounds halves to even.
    assert abs(100 * scores["chair_s"]["value"] - chair_s) <= 0.05 + 1e-9
    assert round(scores["mean_words"]["value"], 1) == length
    assert_words(goldens / "chair" / f"{name}.expected.jsonl", out / "items.jsonl")


def assert_words(expected: Path, items: Path) -> None:
    wanted = {str(row["image_id"]): row for row in read_rows(expected)}
    seen = 0
    for row in read_rows(items):
        want, evidence = wanted[row["id"]], row["evidence"]
        assert evidence["mentioned"] == want["mentioned"], row["id"]
        assert evidence["hallucinated"] == want["hallucinated"], row["id"]
        assert len(evidence["mentioned_spans"]) == len(evidence["mentioned"])
        assert len(evidence["hallucinated_spans"]) == len(evidence["hallucinated"])
        seen += 1
    assert seen == len(wanted)


@pytest.mark.parametrize("variant", ["published", "corrected"])
@pytest.mark.parametrize("name", FILES)
def test_the_shipped_graph_comes_close(
    goldens: Path,
    expected: dict[str, dict[str, float]],
    tmp_path: Path,
    name: str,
    variant: str,
) -> None:
    report = score(goldens, name, tmp_path, "--variant", variant, "--graph", "coco")
    notes, scores = report["notes"], report["scores"]
    assert bool(notes) == (variant == "published")
    assert isinstance(scores, dict)
    assert abs(scores["chair_i"]["value"] - expected[name]["chair_i"]) <= 0.005
    assert abs(scores["chair_s"]["value"] - expected[name]["chair_s"]) <= 0.015
    assert "|graph:coco-" in str(report["signature"])


def test_ids_may_come_from_a_map(goldens: Path, tmp_path: Path) -> None:
    """An archive without image ids, whose question_id is a position in a list of them."""
    chair = goldens / "chair"
    decoder, text = json.JSONDecoder(), (chair / f"{FILES[1]}.captions.json").read_text()
    records, at = [], 0
    while text[at:].strip():
        record, end = decoder.raw_decode(text[at:].lstrip())
        at = len(text) - len(text[at:].lstrip()) + end
        del record["image_id"]
        records.append(json.dumps(record, indent=4))
        if len(records) == 50:
            break
    archive = tmp_path / "captions.json"
    archive.write_text("\n".join(records))
    run = here(
        *("score", "chair", "--responses", archive),
        *("--references", chair / "coco_reference_objects.json"),
        *("--id-map", chair / "pope_image_ids.json"),
        *("--out", tmp_path / "out"),
    )
    assert run.returncode == 0, run.stderr
    wanted = {str(row["image_id"]): row for row in read_rows(chair / f"{FILES[1]}.expected.jsonl")}
    rows = read_rows(tmp_path / "out" / "items.jsonl")
    assert len(rows) == 50
    assert all(row["evidence"]["mentioned"] == wanted[row["id"]]["mentioned"] for row in rows)
