"""AMBER: the engine against the plain oracle, for any answers, nouns and annotations."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import amber_published as oracle
from support.amber_samples import ASSOCIATIONS, SAFE

from hallujudge.metrics import Report
from hallujudge.metrics.amber import AmberMetric
from hallujudge.metrics.amber.descriptions import AmberItem, AmberObject, count_words
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
    inputs = InputOptions(own={"associations": ASSOCIATIONS, "safe_words": SAFE})
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


WORDS = sorted({*ASSOCIATIONS, *associated})
pairs = st.frozensets(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)), max_size=6)


@given(descriptions, pairs)
def test_similar_words_count_as_in_the_plain_loop(
    rows: list[tuple[Any, ...]], alike: frozenset[tuple[str, str]]
) -> None:
    def similar(one: str, other: str) -> bool:
        return one == other or (one, other) in alike

    annotations = {n: {"truth": row[0], "hallu": row[1]} for n, row in enumerate(rows)}
    wanted = oracle.description_totals(
        annotations, {n: row[2] for n, row in enumerate(rows)}, ASSOCIATIONS, SAFE, similar
    )
    totals = dict.fromkeys(("words", "hallucinated", "objects", "covered", "targets_said"), 0)
    for truth, targets, said_words in rows:
        item = AmberItem(
            id="1",
            nouns=tuple(word for word in said_words if word in WORDS),
            objects=tuple(AmberObject(word=w, associated=tuple(ASSOCIATIONS[w])) for w in truth),
            targets=tuple(AmberObject(word=w, associated=tuple(ASSOCIATIONS[w])) for w in targets),
            safe_words=tuple(SAFE),
        )
        for name in totals:
            totals[name] += getattr(count_words(item, "published", similar)[0], name)
    assert totals == {
        "words": round(wanted["chair_num"]),
        "hallucinated": wanted["chair_score"],
        "objects": round(wanted["safe_cover_num"]),
        "covered": wanted["safe_cover_score"],
        "targets_said": wanted["hallu_cover_score"],
    }


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
