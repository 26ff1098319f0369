"""MMHal-Bench: the figures of the released scripts for drawn answers and reviews."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.running import here, read_rows

from hallujudge.metrics.mmhal import TYPES
from hallujudge.sdk import Client, InputOptions

EXACT = 1e-9


def draws(goldens: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((goldens / "mmhal/expected.json").read_text())
    return found


def files(goldens: Path, draw: str) -> tuple[Path, Path]:
    folder = goldens / "mmhal"
    return folder / f"{draw}.answers.json", folder / f"{draw}.reviews.json"


def test_published_gives_the_scripts_figures(goldens: Path, tmp_path: Path) -> None:
    for draw, wanted in draws(goldens).items():
        answers, reviews = files(goldens, draw)
        given = ("--responses", answers, "--reviews", reviews, "--out", tmp_path / draw)
        assert here("score", "mmhal", *given).returncode == 0
        report = json.loads((tmp_path / draw / "report.json").read_text())
        scores = {name: score["value"] for name, score in report["scores"].items()}
        assert scores == pytest.approx(
            {
                "average_score": wanted["average_score"],
                "hallucination_rate": wanted["hallucination_rate"],
                "informativeness": wanted["informativeness_percent"] / 100,
                "unreadable_rate": wanted["unreadable_reviews"] / len(wanted["scores"]),
            },
            abs=EXACT,
        )
        by_type = report["groups"]["type"]
        assert {kind: by_type[kind]["average_score"]["value"] for kind in TYPES} == pytest.approx(
            wanted["score_by_type"], abs=EXACT
        )
        rows = read_rows(tmp_path / draw / "items.jsonl")
        assert [row["scores"]["average_score"] for row in rows] == wanted["scores"]


def test_corrected_leaves_out_what_it_cannot_read_and_counts_by_a_plain_loop(
    goldens: Path,
) -> None:
    for draw in draws(goldens):
        answers, reviews = files(goldens, draw)
        with Client.embedded() as client:
            report = client.score(
                "mmhal",
                responses=answers,
                inputs=InputOptions(own={"reviews": reviews}),
                variant="corrected",
            )
        texts = [
            entry["choices"][0]["message"]["content"] for entry in json.loads(reviews.read_text())
        ]
        ratings = [rating for text in texts if (rating := plain_rating(text)) is not None]
        assert report.coverage.unscored == len(texts) - len(ratings)
        assert report.coverage.reasons == {"NO_VERDICT": len(texts) - len(ratings)}
        assert report.scores["average_score"].value == pytest.approx(sum(ratings) / len(ratings))
        assert report.scores["hallucination_rate"].value == pytest.approx(
            sum(rating < 3 for rating in ratings) / len(ratings)
        )


def plain_rating(text: str) -> int | None:
    """Return the last whole number from 0 to 6 after the word rating, without expressions."""
    words = "".join(" " if c in "*:\n" else c for c in text.lower()).split()
    found = None
    for before, word in pairwise(words):
        number = word.rstrip(".,").split("/")[0]
        if before == "rating" and number in "0123456" and number:
            found = int(number)
    return found
