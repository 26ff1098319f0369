"""AMBER: the engine against the plain oracle, for any answers, nouns and annotations."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import amber_published as oracle
from support.amber_samples import ASSOCIATIONS, SAFE

from hallujudge.metrics import Report
from hallujudge.metrics.amber.metric import AmberMetric
from hallujudge.sdk import Client, InputOptions

objects = st.lists(st.sampled_from(sorted(ASSOCIATIONS)), max_size=4)
associated = {word for words in ASSOCIATIONS.values() for word in words}
said = st.sampled_from(sorted({*ASSOCIATIONS, *associated, "field"}))
descriptions = st.lists(
    st.tuples(objects.filter(bool), objects, st.lists(said, max_size=5)), max_size=5
)
kinds = st.sampled_from([*oracle.PREFIXES, "relation"])
questions = st.lists(
    st.tuples(kinds, st.sampled_from(["yes", "no"]), st.sampled_from(["Yes", "No", "No.", "eh"])),
    min_size=1,
    max_size=8,
)


def scored(
    rows: list[tuple[Any, ...]], asked: list[tuple[str, str, str]], variant: str
) -> tuple[Report, dict[int, Any]]:
    annotations: list[dict[str, Any]] = [
        {"id": n, "type": "generative", "truth": truth, "hallu": targets}
        for n, (truth, targets, _) in enumerate(rows)
    ]
    annotations += [
        {"id": 100 + n, "type": kind, "truth": truth} for n, (kind, truth, _) in enumerate(asked)
    ]
    responses: list[dict[str, Any]] = [
        {"id": n, "nouns": nouns} for n, (_, _, nouns) in enumerate(rows)
    ]
    responses += [{"id": 100 + n, "response": text} for n, (_, _, text) in enumerate(asked)]
    inputs = InputOptions(associations=ASSOCIATIONS, safe_words=SAFE)
    with Client.embedded() as client:
        report = client.score(
            "amber", responses=responses, references=annotations, variant=variant, inputs=inputs
        )
    return report, {entry["id"]: entry for entry in annotations}


@given(descriptions, questions)
def test_published_is_the_plain_loop(
    rows: list[tuple[Any, ...]], asked: list[tuple[str, str, str]]
) -> None:
    report, annotations = scored(rows, asked, "published")
    totals = oracle.question_totals(
        annotations, {100 + n: text for n, (_, _, text) in enumerate(asked)}
    )
    wanted: dict[str, float] = {}
    for dimension, numbers in oracle.printed_questions(totals).items():
        if report.totals[f"{dimension or 'all_'}asked"]:
            names = ("accuracy", "precision", "recall", "f1")
            wanted |= {f"{dimension}{n}": x for n, x in zip(names, numbers, strict=True)}
    if rows:
        nouns = {n: row[2] for n, row in enumerate(rows)}
        found = oracle.description_totals(annotations, nouns, ASSOCIATIONS, SAFE)
        numbers = oracle.printed_descriptions(found)
        wanted |= dict(zip(("chair", "cover", "hal", "cog"), numbers, strict=True))
    for name, number in wanted.items():
        value = report.scores[name].value
        # Where nothing was counted the script divides 0 by 0.001.
        assert 100 * (value or 0) == pytest.approx(number, abs=0.0501), name


@given(descriptions, questions, st.sampled_from(AmberMetric.variant_names()))
def test_scores_lie_in_their_ranges_and_bounds(
    rows: list[tuple[Any, ...]], asked: list[tuple[str, str, str]], variant: str
) -> None:
    report, _ = scored(rows, asked, variant)
    for name, score in report.scores.items():
        assert score.value is None or 0 <= score.value <= 1, name
    for name, bound in report.coverage.bounds.items():
        if name in {"chair", "hal", "cog"}:
            assert bound.best <= bound.worst, name
        else:
            assert bound.worst <= bound.best, name
