"""NaturalBench: every number of the released script, from its list of texts and from logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.running import here

# File -> its role, metric and number of records.
RECOGNISED = {
    "naturalbench/drawn_1.outputs.json": ("responses", "naturalbench", 480),
    "naturalbench/drawn_1.questions.json": ("references", "naturalbench", 120),
    "naturalbench/drawn_2_samples_naturalbench.jsonl": ("responses", "naturalbench", 400),
}


LAYOUTS = {
    "a list of texts": ("drawn_1", "drawn_1.outputs.json", "drawn_1.questions.json"),
    "a log with its questions": ("drawn_2", "drawn_2_with_doc_samples_naturalbench.jsonl", ""),
    "a log without": (
        "drawn_2",
        "drawn_2_samples_naturalbench.jsonl",
        "drawn_2.questions.json",
    ),
}
SCORES = ("accuracy", "question_accuracy", "image_accuracy", "group_accuracy")


def scored(goldens: Path, out: Path, layout: str, *more: str) -> tuple[Any, Any]:
    folder = goldens / "naturalbench"
    draw, responses, questions = LAYOUTS[layout]
    given = ("-R", folder / questions) if questions else ()
    run = here("score", "naturalbench", "-r", folder / responses, *given, "-o", out, *more)
    assert run.returncode == (3 if "corrected" in more else 0), run.stderr
    report = json.loads((out / "report.json").read_text())
    return report, json.loads((folder / "expected.json").read_text())[draw]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_scores_are_those_of_the_released_script(
    goldens: Path, tmp_path: Path, request: pytest.FixtureRequest, layout: str, *, remote: bool
) -> None:
    server = ("--server", request.getfixturevalue("server")) if remote else ()
    report, wanted = scored(goldens, tmp_path, layout, *server)
    wanted = wanted["scores"]
    totals = report["totals"]
    assert [totals["groups"], totals["answers"], totals["unparsed"]] == [
        wanted["groups"],
        wanted["answers"],
        wanted["unread"],
    ]
    for name in SCORES:
        assert report["scores"][name]["value"] == pytest.approx(wanted[name], abs=1e-9)
        for kind, scores in wanted["by_type"].items():
            found = report["groups"]["type"][kind][name]["value"]
            assert found == pytest.approx(scores[name], abs=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_stored_answers_are_said_never_to_be_read(
    goldens: Path, tmp_path: Path, layout: str
) -> None:
    report, wanted = scored(goldens, tmp_path, layout)
    stored = wanted["surprises"]["stored_answers_never_read"]
    groups = len(stored["groups_with_other_stored_answers"])
    assert any(f"never reads: {groups}" in note for note in report["notes"])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_unread_answers_of_the_corrected_variant_have_no_effect_on_other_groups(
    goldens: Path, tmp_path: Path, layout: str
) -> None:
    report, wanted = scored(goldens, tmp_path, layout, "--variant", "corrected")
    assert report["scores"]["group_accuracy"]["value"] > wanted["scores"]["group_accuracy"]
    assert report["totals"]["answered"] == 4 * report["coverage"]["scored"]
