"""VLMs are Biased: every number of lmms-eval's rule and of the paper's means, in all layouts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.running import here

# File -> its role, metric and number of records.
RECOGNISED = {
    "vlms_are_biased/drawn_1.questions.json": ("references", "vlms-are-biased", 330),
    "vlms_are_biased/drawn_1_samples_vlms_are_biased.jsonl": ("responses", "vlms-are-biased", 330),
    "vlms_are_biased/drawn_2.results.json": ("responses", "vlms-are-biased", 330),
}


LAYOUTS = {
    "a log with its questions": ("drawn_1", "drawn_1_with_doc_samples_vlms_are_biased.jsonl", ""),
    "a log without": (
        "drawn_1",
        "drawn_1_samples_vlms_are_biased.jsonl",
        "drawn_1.questions.json",
    ),
    "the authors' results": ("drawn_2", "drawn_2.results.json", ""),
}


def scored(goldens: Path, out: Path, layout: str, *more: str) -> tuple[Any, Any]:
    folder = goldens / "vlms_are_biased"
    draw, responses, questions = LAYOUTS[layout]
    given = ("-R", folder / questions) if questions else ()
    run = here("score", "vlms-are-biased", "-r", folder / responses, *given, "-o", out, *more)
    assert run.returncode == (3 if "corrected" in more else 0), run.stderr
    report = json.loads((out / "report.json").read_text())
    return report, json.loads((folder / "expected.json").read_text())[draw]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("variant", ["lmms-eval", "paper"])
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_both_scores_and_their_topics(
    goldens: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    layout: str,
    variant: str,
    *,
    remote: bool,
) -> None:
    server = ("--server", request.getfixturevalue("server")) if remote else ()
    report, wanted = scored(goldens, tmp_path, layout, "--variant", variant, *server)
    assert report["coverage"]["scored"] == wanted["items"]
    for name, value in wanted["scores"][variant].items():
        assert report["scores"][name]["value"] == pytest.approx(value, abs=1e-9)
    for name, value in wanted["scores"]["paper"].items():
        assert report["scores"][f"mean_{name}"]["value"] == pytest.approx(value, abs=1e-9)
    groups = report["groups"]["topic"]
    assert groups.keys() == wanted["scores"]["by_topic"].keys()
    for topic, scores in wanted["scores"]["by_topic"].items():
        for name, value in scores.items():
            assert groups[topic][name]["value"] == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_corrected_variant_prints_both_means(
    goldens: Path, tmp_path: Path, layout: str
) -> None:
    report, wanted = scored(goldens, tmp_path, layout, "--variant", "corrected")
    scores = report["scores"]
    assert scores["accuracy"]["value"] != scores["mean_accuracy"]["value"]
    assert scores["accuracy"]["value"] > wanted["scores"]["lmms-eval"]["accuracy"]
    assert report["coverage"]["unscored"] == report["coverage"]["reasons"].get(
        "ANSWER_UNPARSED", 0
    ) + report["coverage"]["reasons"].get("RESPONSE_EMPTY", 0)
