"""``hallujudge analyze`` on runs of CHAIR: the tables of the POPE paper about captions."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from support.messages import expected_message
from support.qa_running import tables_of
from support.running import assert_refused, here, read_rows

OBJECTS = ["person", "dog", "cat", "car", "dining table", "chair", "bicycle", "bird"]


def scored(
    folder: Path, captions: dict[str, str], objects: dict[str, list[str]], *more: str
) -> Path:
    folder.mkdir()
    responses, references = folder / "captions.jsonl", folder / "objects.json"
    rows = [json.dumps({"id": image, "caption": text}) for image, text in captions.items()]
    responses.write_text("\n".join(rows) + "\n")
    references.write_text(json.dumps(objects))
    out = folder / "out"
    ran = here("score", "chair", "-r", responses, "-R", references, "-o", out, *more)
    assert ran.returncode == 0, ran.stderr
    return out


def generated(seed: int) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the objects that captions mention, one for each mention, and those of the images."""
    rng = random.Random(seed)
    # A sixth of them show nothing, and no recall: fifty others make intervals reliable.
    images = [str(number) for number in rng.sample(range(1, 2000), 90)]
    shown = {image: rng.sample(OBJECTS, rng.randint(0, 5)) for image in images}
    return {image: rng.choices(OBJECTS, k=rng.randint(1, 9)) for image in images}, shown


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_tables_equal_a_plain_count(tmp_path: Path, seed: int) -> None:
    said, shown = generated(seed)
    captions = {image: " and ".join(f"a {name}" for name in row) for image, row in said.items()}
    tables, notes = tables_of(scored(tmp_path / "run", captions, shown), "--ks", "1,3")
    assert not notes
    wrong = {image: [n for n in row if n not in shown[image]] for image, row in said.items()}
    order = sorted(shown, key=int)
    frequency = Counter(name for image in order for name in shown[image])
    ranked = sorted(frequency, key=lambda name: (-frequency[name], name))
    beside = [image for image in order if "dining table" in shown[image]]
    company = Counter(n for i in beside for n in sorted(shown[i]) if n != "dining table")
    usual = [name for name, _ in company.most_common()]
    for row in tables["hit_ratio"]:
        for cell, top, where in (("hr_a", ranked, order), ("hr_c", usual, beside)):
            rows = [wrong[image] for image in where if wrong[image]]
            shares = [sum(n in top[: row["k"]] for n in names) / len(names) for names in rows]
            assert row[f"{cell}_n"] == len(rows)
            assert row[cell] == pytest.approx(sum(shares) / len(shares))
    assert tables["accumulated"][-1]["by_frequency"] == 1
    for name, where, times in (
        ("frequent_objects", order, frequency),
        ("cooccurring_objects", beside, company),
    ):
        counted = Counter(n for image in where for n in wrong[image])
        listed = {row["object"]: row["hallucinated"] for row in tables[name]}
        assert listed == {each: counted[each] for each in {*counted, *times}}
        found = [row["hallucinated"] for row in tables[name]]
        assert found == sorted(found, reverse=True)
        assert sum(row["share"] for row in tables[name]) == pytest.approx(1)
        for row in tables[name]:
            assert row["images"] == times[row["object"]]
            assert row["captions"] == sum(row["object"] in wrong[image] for image in where)
            assert row["mentions"] == sum(said[image].count(row["object"]) for image in where)
    lengths = tables["by_length"]
    assert sum(row["n"] for row in lengths) == len(said)
    for row in lengths:
        inside = [
            image
            for image, text in captions.items()
            if row["words_from"] <= text.count(" ") + 1 <= row["words_to"]
        ]
        assert row["n"] == len(inside)
        assert row["chair_s"] == pytest.approx(sum(bool(wrong[i]) for i in inside) / len(inside))
        assert row["mentions"] == sum(len(said[i]) for i in inside)
    for cell, names in (("mentions", said), ("hallucinated", wrong)):
        assert sum(row[cell] for row in tables["by_position"]) == sum(map(len, names.values()))


def test_positions_are_tenths_of_the_words(tmp_path: Path) -> None:
    caption = "cat one two three four five six seven eight dog"
    tables, notes = tables_of(scored(tmp_path / "run", {"1": caption}, {"1": ["cat"]}))
    rows = {row["tenth"]: row for row in tables["by_position"]}
    assert [tenth for tenth, row in rows.items() if row["mentions"]] == [1, 10]
    assert (rows[1]["hallucinated_share"], rows[10]["hallucinated_share"]) == (0, 1)
    assert rows[5]["hallucinated_share"] is None
    assert "no co-occurrence" in notes


def test_positions_equal_a_plain_count(tmp_path: Path) -> None:
    said, shown = generated(4)
    rng = random.Random(4)
    between = (" and ", ", ", "\u00a0and\n", "\u3000", " – ", "\t\t")
    captions = {
        image: rng.choice(("", "  ", "So: ")) + "".join(n + rng.choice(between) for n in row)
        for image, row in said.items()
    }
    run = scored(tmp_path / "run", captions, shown)
    tables, _ = tables_of(run)
    mentions, wrong = Counter[int](), Counter[int]()
    for row in read_rows(run / "items.jsonl"):
        words = [word.start() for word in re.finditer(r"\S+", captions[row["id"]])]
        for (_, name), (start, _) in zip(
            row["evidence"]["mentioned"], row["evidence"]["mentioned_spans"], strict=True
        ):
            tenth = (sum(word <= start for word in words) - 1) * 10 // len(words) + 1
            mentions[tenth] += 1
            wrong[tenth] += name not in shown[row["id"]]
    assert mentions.total() > 200
    for found in tables["by_position"]:
        assert found["mentions"] == mentions[found["tenth"]]
        assert found["hallucinated"] == wrong[found["tenth"]]


def test_counts_of_a_file_and_an_unknown_probe(tmp_path: Path) -> None:
    run = scored(tmp_path / "run", {"1": "A dog and a cat."}, {"1": ["bird"]})
    counts = tmp_path / "counts.json"
    counts.write_text(json.dumps({"1": ["puppy", "bird"], "2": ["dog"], "3": ["cat", "dog"]}))
    tables, _ = tables_of(run, "--counts", counts, "--probe", "bird", "--ks", "1")
    assert tables["hit_ratio"] == [{"k": 1, "hr_a": 0.5, "hr_a_n": 1, "hr_c": 0.5, "hr_c_n": 1}]
    assert {row["object"]: row["images"] for row in tables["frequent_objects"]} == {
        "bird": 1,
        "cat": 1,
        "dog": 3,
    }
    assert_refused(here("analyze", run, "--probe", "unicorn"), "'unicorn', which no image shows")
    assert_refused(here("analyze", run, "--ks", "0"), "whole numbers above 0")
    assert_refused(here("analyze", run, "--counts", tmp_path / "none.json"), "none.json")


def test_a_run_without_captions_has_no_positions(tmp_path: Path) -> None:
    objects = {"1": ["bird", "dining table"]}
    run = scored(tmp_path / "run", {"1": "A dog."}, objects, "--no-text")
    tables, notes = tables_of(run)
    assert "by_position" not in tables
    assert "no hallucination by position" in notes


def test_table_1_of_several_instructions(tmp_path: Path) -> None:
    objects = {"1": ["dog", "dining table"]}
    short = scored(tmp_path / "short", {"1": "A dog."}, objects)
    long = scored(tmp_path / "long", {"1": "A dog and a cat sit."}, objects)
    names = ("--name", "model=m,instruction=short", "--name", "model=m,instruction=long")
    tables, _ = tables_of(short, long, *names)
    rows = tables["instructions"]
    assert rows == [
        {"model": "m", "instruction": "short", "chair_i": 0, "chair_s": 0, "length": 2, "n": 1},
        {"model": "m", "instruction": "long", "chair_i": 0.5, "chair_s": 1, "length": 6, "n": 1},
    ]
    assert {row["instruction"] for row in tables["hit_ratio"]} == {"short", "long"}
    names = ("--name", "instruction=short,k=1", "--name", "instruction=long,k=2")
    refused = here("analyze", short, long, *names)
    assert_refused(
        refused, expected_message("studies.analysis.analyzed_run:two-columns", "hit_ratio", "k")
    )
    tables, notes = tables_of(short, long)
    assert "instructions" not in tables
    assert "instruction=short" in notes


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"mentioned_spans":[[2,5]]', '"mentioned_spans":[]'),
        ('"mentioned_spans":[[2,5]]', '"mentioned_spans":[[1e400,5]]'),
        ('"missed":["bird"]', '"missed":7'),
        ('"words":2', '"words":"many"'),
        ('"evidence":{', '"evidence":[],"other":{'),
    ],
)
def test_damaged_lines(tmp_path: Path, old: str, new: str) -> None:
    run = scored(tmp_path / "run", {"1": "A dog."}, {"1": ["bird"]})
    items = run / "items.jsonl"
    text = items.read_text()
    assert old in text
    items.write_text(text.replace(old, new))
    assert_refused(here("analyze", run), "again")
