"""``hallujudge analyze`` on runs of POPE: the tables of its paper about answers."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.messages import expected_message
from support.qa_running import tables_of
from support.running import assert_refused, here

SAMPLINGS = ("adversarial", "popular", "random")
Question = tuple[str, str, str, str, str]
"""Image, object, sampling, label and answer."""
QUESTIONS: Sequence[Question] = [
    ("COCO_val2014_000000000001.jpg", "dog", "random", "yes", "Yes"),
    ("COCO_val2014_000000000001.jpg", "cat", "random", "no", "No, there is none"),
    ("COCO_val2014_000000000001.jpg", "bus", "popular", "no", "Yes"),
    ("COCO_val2014_000000000001.jpg", "car", "popular", "yes", "Yes"),
    ("COCO_val2014_000000000002.jpg", "dog", "adversarial", "yes", "No"),
    ("COCO_val2014_000000000002.jpg", "bird", "adversarial", "yes", "yes"),
]


def scored(
    folder: Path,
    *more: str,
    questions: Sequence[Question] = QUESTIONS,
    template: str = "Is there a {}?",
) -> Path:
    folder.mkdir()
    path = folder / "answers.jsonl"
    keys = ("image", "object", "category", "label", "response")
    rows = [
        {"question_id": n, "text": template.format(row[1]), **dict(zip(keys, row, strict=True))}
        for n, row in enumerate(questions)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = here("score", "pope", "-r", path, "-o", folder / "out", *more)
    assert ran.returncode == 0, ran.stderr
    return folder / "out"


def captioned(folder: Path, captions: dict[str, str]) -> Path:
    folder.mkdir()
    (folder / "c.json").write_text(json.dumps(captions))
    (folder / "o.json").write_text(json.dumps({image: ["dog"] for image in captions}))
    out = folder / "out"
    ran = here("score", "chair", "-r", folder / "c.json", "-R", folder / "o.json", "-o", out)
    assert ran.returncode == 0, ran.stderr
    return out


def scores_of(run: Path) -> dict[str, float | None]:
    report = json.loads((run / "report.json").read_text())
    return {name: score["value"] for name, score in report["scores"].items()}


def test_samplings_of_one_run_and_of_a_run_each(tmp_path: Path) -> None:
    whole = scored(tmp_path / "whole")
    tables, notes = tables_of(whole)
    rows = tables["samplings"]
    assert list(rows[0]) == ["score", "random", "popular", "adversarial"]
    assert [row["score"] for row in rows] == ["f1", "accuracy", "precision", "recall", "yes_ratio"]
    f1 = {name: rows[0][name] for name in SAMPLINGS}
    assert f1 == {"random": 1, "popular": pytest.approx(2 / 3), "adversarial": pytest.approx(2 / 3)}
    assert "no consistency" in notes
    folders, names = [], []
    for name in SAMPLINGS:
        own = [row for row in QUESTIONS if row[2] == name]
        folders.append(scored(tmp_path / name, questions=own))
        names += ["--name", f"model=llava,split={name}"]
    assert tables_of(*folders, *names)[0]["samplings"] == rows


def test_stability_over_prompts(tmp_path: Path) -> None:
    runs = [scored(tmp_path / "1"), scored(tmp_path / "2", questions=QUESTIONS[2:])]
    names = [part for n in "12" for part in ("--name", f"model=llava,prompt={n}")]
    rows = tables_of(*runs, *names)[0]["stability"]
    for row in rows:
        values = [value for run in runs if (value := scores_of(run)[row["score"]]) is not None]
        assert (row["model"], row["metric"], row["prompts"]) == ("llava", "pope", len(values))
        assert row["mean"] == pytest.approx(statistics.fmean(values))
        assert row["std"] == pytest.approx(statistics.pstdev(values))
        assert (row["low"], row["high"]) == (min(values), max(values))
    assert "no stability" in tables_of(*runs)[1]


@pytest.mark.parametrize("key", ["score", "std", "metric"])
def test_a_key_with_the_name_of_a_column_is_refused(tmp_path: Path, key: str) -> None:
    run = scored(tmp_path / "run")
    refused = here("analyze", run, "--name", f"{key}=x,prompt=1")
    words = expected_message("studies.analysis.analyzed_run:two-columns", "stability", key)
    assert_refused(refused, words)


def test_a_sampling_with_the_name_of_a_column_is_refused(tmp_path: Path) -> None:
    runs = [scored(tmp_path / name) for name in "ab"]
    names = [part for run in "ab" for part in ("--name", f"model={run},split=score")]
    words = expected_message("studies.analysis.analyzed_run:two-columns", "samplings", "score")
    assert_refused(here("analyze", *runs, *names), words)


def test_samplings_and_stability_are_drawn(tmp_path: Path) -> None:
    runs = [scored(tmp_path / name) for name in "ab"]
    names = [part for n in "12" for part in ("--name", f"model=llava,prompt={n}")]
    ran = here("analyze", *runs, *names, "--out", tmp_path / "out")
    assert ran.returncode == 0, ran.stderr
    page = (tmp_path / "out" / "analysis.html").read_text()
    assert page.count("<svg") >= 2
    assert "llava pope f1" in page
    assert "<title>llava 1 f1: " in page
    assert ": adversarial</title>" in page


def test_consistency_with_captions(tmp_path: Path) -> None:
    answers = scored(tmp_path / "pope", "--group-by", "object")
    captions = captioned(tmp_path / "chair", {"1": "A dog and a car.", "2": "A dog."})
    tables, notes = tables_of(answers, captions)
    (row,) = tables["consistency"]
    assert "no consistency" not in notes
    assert (row["denied"], row["denied_but_mentioned"], row["denial_rate"]) == (2, 1, 0.5)
    assert (row["mentioned"], row["mentioned_and_affirmed"]) == (3, 2)
    assert row["affirmation_rate"] == pytest.approx(2 / 3)
    assert row["images"] == 2
    without = scored(tmp_path / "without")
    tables, notes = tables_of(without, captions)
    assert tables["consistency"] == []
    assert "--group-by object" in notes
    names = [part for n in ("a", "b", "c") for part in ("--name", f"model={n}")]
    other = captioned(tmp_path / "other", {"1": "A cat."})
    assert "no run of chair has its name" in tables_of(answers, captions, other, *names)[1]
    names = [part for n in ("a", "b", "a") for part in ("--name", f"model={n}")]
    (row,) = tables_of(answers, captions, other, *names)[0]["consistency"]
    assert (row["answers"], row["captions"], row["mentioned"]) == ("a", "a", 1)
    ran = here("analyze", answers, captions, "--name", "m", "--name", "m", "-f", "html")
    assert "m (pope)" in ran.stdout
    assert "m (chair)" in ran.stdout
    names = [part for n in ("a", "b", "b") for part in ("--name", f"model={n}")]
    assert_refused(
        here("analyze", answers, captions, other, *names),
        expected_message("sdk.comparison.compared_runs:two-runs-have-the-name", "b"),
    )


@pytest.mark.parametrize(
    "template", ["Is there a {} in the image?", "Can you see an {} in the image?"]
)
def test_the_object_of_the_papers_questions_needs_no_key(tmp_path: Path, template: str) -> None:
    answers = scored(tmp_path / "pope", template=template)
    captions = captioned(tmp_path / "chair", {"1": "A dog and a car.", "2": "A dog."})
    (row,) = tables_of(answers, captions)[0]["consistency"]
    assert (row["denied"], row["denied_but_mentioned"]) == (2, 1)
    assert (row["mentioned"], row["mentioned_and_affirmed"]) == (3, 2)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"answer":"yes"', '"answer":"perhaps"'),
        ('"label":"yes"', '"label":null'),
        ('"answers":[', '"answers":7,"x":['),
        ('"answers":[', '"replies":['),
    ],
)
def test_damaged_lines(tmp_path: Path, old: str, new: str) -> None:
    run = scored(tmp_path / "run", "--group-by", "object")
    chair = captioned(tmp_path / "chair", {"1": "A dog."})
    items = run / "items.jsonl"
    text = items.read_text()
    assert old in text
    items.write_text(text.replace(old, new))
    assert_refused(here("analyze", run, chair), "again")
