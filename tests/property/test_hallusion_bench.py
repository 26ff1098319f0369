"""HallusionBench: the engine against the plain definitions, for any answers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import hallusion_bench as oracle
from support.hallusion_bench_samples import items_of, record, row_of
from support.sizes import examples

from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.metrics import IntervalSettings, Item, ItemResult, Report, Tally
from hallujudge.metrics.hallusion_bench import HallusionBenchMetric

# Each example is a whole run, and the machine may be busy: a slow one is not a failure.
patient = settings(deadline=None, max_examples=examples(60))

places = st.tuples(
    st.sampled_from(["VD_ocr_0", "VS_ocr_0", "VD_map_1", "VS_chart_2"]),
    st.integers(0, 3),
    st.integers(0, 2),
)


@st.composite
def whole_sets(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Records of distinct questions, each with its answer for figure 0."""
    found = draw(st.sets(places, min_size=1, max_size=20))
    found |= {(name, 0, question) for name, _, question in found}
    return [
        record(
            f"{name}_{figure}_{question}",
            draw(st.sampled_from([0, 1, 2])),
            same=draw(st.sampled_from("01")),
            gt_answer=draw(st.sampled_from("01")),
            **({"visual_input": draw(st.sampled_from("12"))} if figure else {}),
        )
        for name, figure, question in sorted(found)
    ]


def run(items: Sequence[Item], **more: Any) -> tuple[list[ItemResult], Report]:
    spec = ScoreSpec(metric="hallusion-bench", **more)

    async def scored() -> tuple[list[ItemResult], Report]:
        session = await Engine().open(spec)
        return await session.score(items), session.report()

    return asyncio.run(scored())


def values(report: Report) -> dict[str, float | None]:
    return {name: score.value for name, score in report.scores.items()}


GIVEN = {"correctness": "given"}


@patient
@given(whole_sets())
def test_given_correctness_is_the_plain_definitions(records: list[dict[str, Any]]) -> None:
    _, report = run(items_of(records), options=GIVEN)
    wanted = oracle.scores([row_of(each) for each in records])
    got = values(report)
    assert got.keys() == wanted.keys()
    for name, value in wanted.items():
        assert got[name] == (None if value is None else pytest.approx(value, abs=1e-12)), name


@patient
@given(whole_sets())
def test_images_only_are_vlmevalkits_table(records: list[dict[str, Any]]) -> None:
    _, report = run(items_of(records), options=GIVEN, variant="image-only")
    shown = [row_of(each) for each in records if each["visual_input"] != "0"]
    assert report.coverage.items == len(shown)
    if shown:
        for name, value in oracle.kit_table(shown).items():
            assert values(report)[name] == pytest.approx(value, abs=1e-12)


@patient
@given(whole_sets(), st.integers(0, 99))
def test_neither_order_nor_pieces_matter(records: list[dict[str, Any]], seed: int) -> None:
    items = items_of(records)
    results, report = run(items, options=GIVEN)
    shuffled = list(items)
    random.Random(seed).shuffle(shuffled)
    assert run(shuffled, options=GIVEN)[1].scores == report.scores
    metric = HallusionBenchMetric(**GIVEN)
    halves = Tally(metric), Tally(metric)
    for index, result in enumerate(results):
        halves[index % 2].add(result)
    halves[0].merge(halves[1])
    assert halves[0].finish(IntervalSettings(), version="x").scores == report.scores


def test_shares_of_figures_have_one_sum_in_any_order() -> None:
    place = {"category": "VD", "subcategory": "ocr", "set_id": "0", "visual_input": "1"}
    said = {"question": "Is it so?", "gt_answer": "0", "model_prediction": "Yes.", "same": "0"}
    # Figure, question and verdict: the shares are 1/3, 0, 1 and 1.
    verdicts = ("000", "010", "021", "120", "201", "211", "301")
    records = [
        {**place, **said, "figure_id": each[0], "question_id": each[1], "correctness": int(each[2])}
        for each in verdicts
    ]
    items, found = items_of(records), set()
    for seed in range(30):
        random.Random(seed).shuffle(items)
        found.add(run(items, options=GIVEN)[1].scores["figure_score"].value)
    assert len(found) == 1


@patient
@given(whole_sets(), st.data())
def test_bounds_are_what_the_missing_answers_could_make(
    records: list[dict[str, Any]], data: st.DataObject
) -> None:
    lost = data.draw(st.sets(st.sampled_from(range(len(records))), max_size=4))
    kept = [{**each, "correctness": None} if n in lost else each for n, each in enumerate(records)]
    _, report = run(items_of(kept), options=GIVEN)
    assert report.coverage.unscored == len(lost)
    for best in (True, False):
        decided = [
            row_of({**each, "correctness": int(best)} if n in lost else each)
            for n, each in enumerate(records)
        ]
        wanted = oracle.scores(decided)
        for name, bound in report.coverage.bounds.items():
            end = bound.best if best else bound.worst
            assert end == pytest.approx(wanted[name], abs=1e-12), name
