"""The published matching on the golden cases, and every human description against itself."""

from __future__ import annotations

import csv
import itertools
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hallujudge.metrics.mementos import keyword_scores
from hallujudge.sdk import Client
from hallujudge.synonym_graphs import compile_keywords, load_graph

DOMAINS = {"daily_life": 448, "robotics": 199, "comics": 50}


@pytest.fixture
def folder(goldens: Path) -> Path:
    return goldens / "mementos"


@pytest.mark.parametrize("suffix", ["json", "pkl"])
@pytest.mark.parametrize(
    ("variant", "expected"), [("published", "as_published"), ("corrected", "intended")]
)
def test_all_cases(folder: Path, suffix: str, variant: Any, expected: str) -> None:
    @cache
    def graph(domain: str, kind: str) -> Any:
        return load_graph(folder / f"{domain}_{kind}_graph.{suffix}")

    cases = json.loads((folder / "matching_cases.json").read_text())
    assert len(cases) == 300
    for case in cases:
        matcher = compile_keywords(
            graph(case["domain"], case["kind"]), variant=variant, pairs=case["kind"] == "behavior"
        )
        counts = matcher.counts(case["reference"], case["predicted"])
        assert matcher.match(case["reference"], case["predicted"]).counts == counts
        scores = keyword_scores(counts, variant=variant)
        for name, value in case[expected].items():
            assert getattr(scores, name) == pytest.approx(value, abs=1e-9), case


def test_a_pickle_and_its_json_copy_are_one_graph(folder: Path) -> None:
    pickles = sorted(folder.glob("*_graph.pkl"))
    assert pickles
    for path in pickles:
        assert load_graph(path).digest == load_graph(path.with_suffix(".json")).digest


def read(folder: Path, domain: str) -> list[tuple[str, str]]:
    with (folder / f"{domain}.descriptions.csv").open(encoding="latin-1", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [(row[0], row[1]) for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["published", "corrected"])
@pytest.mark.parametrize("domain", DOMAINS)
def test_descriptions_against_themselves_and_others(
    folder: Path, domain: str, variant: str
) -> None:
    path = str(folder / f"{domain}.descriptions.csv")
    with Client.embedded() as client:
        own = client.score(
            "mementos", responses=path, references=path, variant=variant,
            options={"domain": domain},
        )  # fmt: skip
        assert own.coverage.items == own.coverage.scored == DOMAINS[domain]
        assert {name: score.value for name, score in own.scores.items()} == dict.fromkeys(
            own.scores, 1.0
        )
        rows = read(folder, domain)
        texts = itertools.islice(itertools.cycle(text for _, text in rows), 7, 7 + len(rows))
        others = {name: text for (name, _), text in zip(rows, texts, strict=True)}
        other = client.score(
            "mementos", responses=others, references=path, variant=variant,
            options={"domain": domain},
        )  # fmt: skip
    assert other.coverage.scored == DOMAINS[domain]
    limit = 0.6 if domain == "robotics" else 0.4
    assert all(0.0 < (score.value or 0) < limit for score in other.scores.values()), other.scores
