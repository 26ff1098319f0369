"""CRPE: every number of the released script, and of lmms-eval under the same name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.running import here, read_rows

# File -> its role, metric and number of records.
RECOGNISED = {
    "crpe/drawn_1.exist.answers.jsonl": ("responses", "crpe", 240),
    "crpe/drawn_1.relation.questions.jsonl": ("references", "crpe", 312),
}


RUNS = [(draw, part) for draw in ("drawn_1", "drawn_2") for part in ("relation", "exist")]


def scored(goldens: Path, out: Path, draw: str, part: str, *more: str) -> tuple[Any, Any]:
    folder = goldens / "crpe"
    files = ("-r", folder / f"{draw}.{part}.answers.jsonl")
    questions = ("-R", folder / f"{draw}.{part}.questions.jsonl")
    run = here("score", "crpe", *files, *questions, "-o", out, *more)
    assert run.returncode == (3 if "corrected" in more else 0), run.stderr
    report = json.loads((out / "report.json").read_text())
    return report, json.loads((folder / "expected.json").read_text())[draw][part]


def server_of(request: pytest.FixtureRequest, *, remote: bool) -> tuple[str, ...]:
    return ("--server", request.getfixturevalue("server")) if remote else ()


@pytest.mark.parametrize(("draw", "part"), RUNS)
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_questions_are_fours_in_the_order_of_the_file(
    goldens: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    draw: str,
    part: str,
    *,
    remote: bool,
) -> None:
    server = server_of(request, remote=remote)
    report, wanted = scored(goldens, tmp_path, draw, part, *server)
    wanted = wanted["published"]["by_category"]
    groups = report["groups"]["category"]
    assert groups.keys() == wanted.keys()
    for category, scores in wanted.items():
        found = groups[category]["accuracy"]
        assert 100 * found["value"] == pytest.approx(scores["accuracy"], abs=1e-9)
        assert found["n"] == scores["groups"]
    alone = report["scores"]["accuracy"]["value"]
    assert (alone is None) is (len(wanted) > 1), "the script prints no figure of all categories"


@pytest.mark.parametrize(("draw", "part"), RUNS)
def test_the_choices_are_those_that_the_script_counts(
    goldens: Path, tmp_path: Path, draw: str, part: str
) -> None:
    _, wanted = scored(goldens, tmp_path, draw, part)
    counts: dict[str, dict[str, int]] = {c: {} for c in wanted["published"]["by_category"]}
    for row in read_rows(tmp_path / "items.jsonl"):
        [answer] = row["evidence"]["answers"]
        choice = answer["answer"] or ("" if answer["how"] == "missing" else None)
        if choice is not None:
            of = counts[row["fields"]["category"]]
            of[choice] = of.get(choice, 0) + 1
    assert counts == {c: of["choices"] for c, of in wanted["published"]["by_category"].items()}


@pytest.mark.parametrize(("draw", "part"), RUNS)
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_lmms_eval_counts_each_answer_alone(
    goldens: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    draw: str,
    part: str,
    *,
    remote: bool,
) -> None:
    server = server_of(request, remote=remote)
    report, wanted = scored(goldens, tmp_path, draw, part, "--variant", "lmms-eval", *server)
    wanted = wanted["lmms-eval"]
    assert report["scores"]["accuracy"]["value"] == pytest.approx(wanted["accuracy"], abs=1e-9)
    for category, scores in wanted["by_category"].items():
        found = report["groups"]["category"][category]["accuracy"]["value"]
        assert found == pytest.approx(scores["accuracy"], abs=1e-9)


@pytest.mark.parametrize(("draw", "part"), RUNS)
def test_the_corrected_variant_does_not_depend_on_the_order_of_the_file(
    goldens: Path, tmp_path: Path, draw: str, part: str
) -> None:
    report, _ = scored(goldens, tmp_path / "as it is", draw, part, "--variant", "corrected")
    folder = goldens / "crpe"
    lines = (folder / f"{draw}.{part}.answers.jsonl").read_text().splitlines()
    (tmp_path / "turned.jsonl").write_text("\n".join(reversed(lines)))
    files = ("-r", tmp_path / "turned.jsonl", "-R", folder / f"{draw}.{part}.questions.jsonl")
    run = here("score", "crpe", *files, "--variant", "corrected", "-o", tmp_path / "turned")
    assert run.returncode == 3, run.stderr
    turned = json.loads((tmp_path / "turned" / "report.json").read_text())
    assert turned["scores"] == report["scores"]
