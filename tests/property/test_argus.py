"""ARGUS: the fast search and the dynamic programme equal the plain rule, on any text."""

from __future__ import annotations

import math
from difflib import SequenceMatcher

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracles import argus_published as oracle

from hallujudge.metrics.argus import MODES, ArgusItem, ArgusMetric, JudgedLine
from hallujudge.metrics.argus.caption_lines import (
    SourceLines,
    Target,
    common_chars,
    corrected_matching,
    lines_of,
    longest_common,
    released_matching,
)

FEW = st.text("ab c", max_size=40)
WORDS = st.sampled_from(
    ["the", "man", "opens", "a", "box", "door", "it's", "zebra", "Über", "café", "1", "…"]
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=60).map(lambda words: " ".join(words))
CAPTIONS = st.lists(SENTENCES, min_size=0, max_size=6).map("\n".join)


@given(FEW, FEW)
def test_common_characters_are_those_of_difflib(first: str, second: str) -> None:
    matcher = SequenceMatcher(None, first, second)
    assert common_chars(first, second) == sum(block.size for block in matcher.get_matching_blocks())
    assert longest_common(first, second) == matcher.find_longest_match().size


@given(SENTENCES | FEW, CAPTIONS)
@example("the man opens a box", "man " * 60 + "\nthe man opens a door")
@example("zebra", "the " * 60 + "zebra")
@example("opens a box", "opens a box. It.\nOPENS a box!")
@example("...", "the man")
def test_evidence_stands_where_difflib_finds_it(evidence: str, caption: str) -> None:
    source = SourceLines(caption)
    assert source.place_of(evidence) == oracle.evidence_line(evidence, lines_of(caption))


SOURCES = 6
LINES = st.lists(
    st.builds(
        oracle.Line,
        st.sampled_from(["summary", "visual-description", "dynamic-action", "other"]),
        st.sampled_from(["entailment", "entailment", "contradiction", "underdetermined"]),
        st.none() | st.integers(0, SOURCES - 1),
    ),
    min_size=1,
    max_size=14,
)


def targets(lines: list[oracle.Line]) -> list[Target]:
    return [
        Target(
            line.verdict == "entailment",
            line.kind == "dynamic-action",
            line.kind in ("summary", "visual-description"),
            line.place,
        )
        for line in lines
    ]


@given(LINES, st.integers(SOURCES, SOURCES + 2))
def test_costs_and_paths_are_those_of_the_plain_programme(
    lines: list[oracle.Line], sources: int
) -> None:
    found, wanted = released_matching(targets(lines), sources), oracle.matched(lines, sources)
    assert (found.cost, found.most, list(found.path)) == wanted
    assert sum(found.costs) + sum(found.penalties) == pytest.approx(found.cost)


@given(LINES)
def test_the_corrected_cost_is_the_lowest_and_never_above_its_limit(
    lines: list[oracle.Line],
) -> None:
    found = corrected_matching(targets(lines))
    assert found.cost == pytest.approx(oracle.lowest_cost(lines))
    assert found.cost <= found.most + 1e-9
    assert sum(found.costs) + sum(found.penalties) == pytest.approx(found.cost)


def test_an_action_in_many_wrong_pairs_is_taken_out() -> None:
    places = [30, *range(13)]
    lines = [oracle.Line("dynamic-action", "entailment", place) for place in places]
    found = corrected_matching(targets(lines))
    assert found.cost == 1
    assert oracle.lowest_cost(lines) == 1


@given(
    st.sampled_from(MODES),
    CAPTIONS,
    st.lists(
        st.builds(
            JudgedLine,
            SENTENCES,
            SENTENCES,
            st.sampled_from(["summary", "visual-description", "dynamic-action"]),
            st.sampled_from(["entailment", "contradiction"]),
        ),
        min_size=1,
        max_size=5,
    ),
)
def test_corrected_costs_are_shares_and_every_caption_has_a_row(
    mode: str, caption: str, lines: list[JudgedLine]
) -> None:
    item = ArgusItem(id="1", mode=mode, response="x", source=caption, lines=tuple(lines))
    metric = ArgusMetric(variant="corrected")
    if metric.problem(item) is not None:
        return
    made = metric.score(item)
    for score in made.scores.values():
        assert score is not None
        assert 0 <= score <= 1
        assert math.isfinite(score)
    assert len(made.statistics) == len(metric.columns)
