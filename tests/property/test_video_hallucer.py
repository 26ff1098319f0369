"""VideoHallucer: the engine against the plain definitions, for any answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import video_hallucer as oracle
from support.sizes import examples

from hallujudge.metrics.video_hallucer import SETS
from hallujudge.sdk import Client, RunReport

# Each example is a whole run, and the machine may be busy: a slow one is not a failure.
patient = settings(deadline=None, max_examples=examples(60))

answers = st.lists(
    st.sampled_from(["Yes", "no", "NO.", "yes,", "not", "Yesterday", "nothing", "(no)", "a dog"]),
    max_size=4,
).map(" ".join)
questions = st.fixed_dictionaries(
    {
        "video": st.sampled_from(["a.mp4", "b.mp4", "c.mp4"]),
        "question": st.just("Is it so?"),
        "answer": st.sampled_from(["yes", "no"]),
        "predict": answers,
    }
)
pairs = st.fixed_dictionaries({"basic": questions, "hallucination": questions})
archives = st.dictionaries(
    st.sampled_from(SETS), st.lists(pairs, min_size=1, max_size=4), min_size=1
)


def run(archive: Mapping[str, Sequence[Any]], **more: Any) -> RunReport:
    with Client.embedded() as client:
        return client.score("video-hallucer", responses=archive, **more)


@patient
@given(archives)
def test_published_is_the_plain_definitions(archive: dict[str, list[Any]]) -> None:
    # The released script scores empty answers.
    report = run(archive, options={"count_empty": "true"})
    everything = [pair for part in archive.values() for pair in part]
    wanted = oracle.scores(everything) | oracle.means(archive)
    for name, value in wanted.items():
        got = report[name].value
        assert got == (None if value is None else pytest.approx(value, abs=1e-12)), name
    for name, part in archive.items():
        group = report.groups["set"][name]
        for score, value in oracle.scores(part).items():
            got = group[score].value
            assert got == (None if value is None else pytest.approx(value, abs=1e-12)), score


def decided(pair: dict[str, Any], *, right: bool) -> dict[str, Any]:
    """The pair with answers instead of those that can't be read."""
    return {
        role: {**question, "predict": question["answer"] if right else "-"}
        for role, question in pair.items()
    }


@patient
@given(archives, st.data())
def test_bounds_are_what_missing_answers_could_make(
    archive: dict[str, list[Any]], data: st.DataObject
) -> None:
    places = [(name, n) for name, part in archive.items() for n in range(len(part))]
    lost = data.draw(st.sets(st.sampled_from(places), max_size=4))
    kept = {
        name: [
            {**pair, "basic": {**pair["basic"], "predict": None}} if (name, n) in lost else pair
            for n, pair in enumerate(part)
        ]
        for name, part in archive.items()
    }
    report = run(kept, options={"count_empty": "true"})
    assert report.coverage.unscored == len(lost)
    for right in (True, False):
        whole = {
            name: [
                decided(pair, right=right) if (name, n) in lost else pair
                for n, pair in enumerate(part)
            ]
            for name, part in archive.items()
        }
        everything = [pair for part in whole.values() for pair in part]
        wanted = oracle.scores(everything) | oracle.means(whole)
        for name, bound in report.coverage.bounds.items():
            end = bound.best if right else bound.worst
            assert end == pytest.approx(wanted[name], abs=1e-12), name
