"""Random declarations of closed questions: scores by columns against a plain loop over answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from support.sizes import examples

from hallujudge.judge_service.engine.answers_pipeline import declared_entry
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.judge_service.engine.spec import ScoreSpec
from hallujudge.metrics import Answer, AnswersItem, IntervalSettings, ItemResult, Tally
from hallujudge.metrics.answers.answer_scores import (
    AnswerScore,
    all_right,
    combined,
    count,
    kept,
    mean,
    share,
)
from hallujudge.metrics.answers.closed_questions import (
    AnswerVariant,
    Bundling,
    ClosedQuestions,
    Keys,
    compared_by,
)
from hallujudge.metrics.answers.declared_metrics import VariantComparison, metric_of
from hallujudge.metrics.answers.yes_no import YES_NO_PARSERS

NAMES = ("base", "other", "third")
SETS = ("x", "y")
SAID = ("Yes.", "no", "perhaps", "No, never", "Yes and no")
# Conditions of the declaration, and the same ones of the plain loop.
CONDITIONS: dict[str, Callable[[str | None, str, str], bool]] = {
    "right": lambda value, label, name: value == label,
    "yes": lambda value, label, name: value == "yes",
    "to no": lambda value, label, name: label == "no",
    "base": lambda value, label, name: name == "base",
    "any": lambda value, label, name: True,
}
patient = settings(deadline=None, max_examples=examples(80))

Rows = Sequence[tuple[str, dict[str, tuple[str, str]]]]
"""The set of each bundle, with name -> response and label."""


def condition(name: str) -> Any:
    test = CONDITIONS[name]
    return lambda a: test(a.value, a.label, a.name)


conditions = st.sampled_from(sorted(CONDITIONS))
plans = st.fixed_dictionaries(
    {
        "of": conditions,
        "among": conditions,
        "groups": st.sampled_from([(), ("group",)]),
        "grouped": conditions,
        "turned": st.booleans(),
        "unparsed": st.sampled_from(["wrong", "unscored"]),
    }
)
bundles = st.tuples(
    st.sampled_from(SETS),
    st.fixed_dictionaries(
        dict.fromkeys(NAMES, st.tuples(st.sampled_from(SAID), st.sampled_from(["yes", "no"])))
    ),
)
archives = st.lists(bundles, min_size=1, max_size=12)


def group_of(name: str) -> str:
    return "1" if name == "third" else "0"


def declared(plan: dict[str, Any]) -> ClosedQuestions:
    """Return a benchmark with a score of each kind."""
    among = count("among", "answers that count here", condition(plan["among"]))
    both = count(
        "both",
        "of these, some",
        lambda a: condition(plan["among"])(a) and condition(plan["of"])(a),
    )
    ratio = share("ratio", "some / all", both, among, own=True)
    groups = all_right(
        "groups", "right groups", by=plan["groups"], among=condition(plan["grouped"])
    )
    stays = kept(
        "stays",
        "bundles that stay right",
        lambda a: a.name == "base",
        lambda a: a.name == "other",
        turned=plan["turned"],
    )
    scores: tuple[AnswerScore, ...] = (
        ratio,
        groups,
        stays,
        mean(ratio, "set", SETS, "sets"),
        combined(
            "apart", "difference", lambda a, b: a - b, (ratio, groups), low=-1.0, bounded=False
        ),
    )
    return ClosedQuestions(
        name="random",
        title="Random: random.",
        unit="bundles",
        keys=Keys(response=("response",), label=("label",)),
        variants=(
            AnswerVariant(
                name="only",
                meaning="The only one.",
                parse=compared_by(YES_NO_PARSERS["strict"], "strict"),
                unparsed=plan["unparsed"],
            ),
        ),
        scores=scores,
        ranked_by=("ratio",),
        trial=items([("x", dict.fromkeys(NAMES, ("Yes.", "yes")))])[0],
        bundle=Bundling(name=("name",)),
        places={"set": SETS, "name": NAMES},
        seen=("group",),
    )


def items(rows: Rows) -> list[AnswersItem]:
    return [
        AnswersItem(
            id=str(n),
            group_id=str(n // 2),
            fields={"set": where},
            answers=tuple(
                Answer(name=name, response=text, label=label, fields={"group": group_of(name)})
                for name, (text, label) in said.items()
            ),
        )
        for n, (where, said) in enumerate(rows)
    ]


def quotient(top: float, bottom: float) -> float | None:
    return top / bottom if bottom else None


def plain(plan: dict[str, Any], rows: Rows) -> dict[str, float | None]:
    """Return the scores, written as loops over the answers."""
    read = YES_NO_PARSERS["strict"]
    counted = [
        (where, {name: (read(text), label) for name, (text, label) in said.items()})
        for where, said in rows
        if plan["unparsed"] == "wrong" or all(read(text) for text, _ in said.values())
    ]

    def ratio(some: Rows | Any) -> float | None:
        answers = [(v, lab, name) for _, said in some for name, (v, lab) in said.items()]
        among = [each for each in answers if CONDITIONS[plan["among"]](*each)]
        return quotient(sum(CONDITIONS[plan["of"]](*each) for each in among), len(among))

    right = total = stayed = asked = 0
    for _, said in counted:
        parts: dict[str, list[bool]] = {}
        for name, (value, label) in said.items():
            if CONDITIONS[plan["grouped"]](value, label, name):
                parts.setdefault(group_of(name) if plan["groups"] else "", []).append(
                    value == label
                )
        right, total = right + sum(map(all, parts.values())), total + len(parts)
        if said["base"][0] == said["base"][1]:
            asked += 1
            stayed += (said["other"][0] == said["other"][1]) is not plan["turned"]
    by_set = [ratio([row for row in counted if row[0] == name]) for name in SETS]
    values = [value for value in by_set if value is not None]
    first, second = ratio(counted), quotient(right, total)
    return {
        "ratio": first,
        "groups": second,
        "stays": quotient(stayed, asked),
        "mean_ratio": sum(values) / len(SETS) if len(values) == len(SETS) else None,
        "apart": None if first is None or second is None else first - second,
    }


def scored(benchmark: ClosedQuestions, rows: Rows) -> list[ItemResult]:
    pipeline = declared_entry(benchmark).open(ScoreSpec(metric="random"), Resources())
    return asyncio.run(pipeline.evaluate(items(rows)))


def report_of(benchmark: ClosedQuestions, parts: Sequence[Sequence[ItemResult]]) -> Any:
    metric = metric_of(benchmark)()
    whole = Tally(metric, ["set"])
    for part in parts:
        one = Tally(metric, ["set"])
        one.add_all(part)
        whole.merge(one)
    return whole.finish(IntervalSettings(), version="0")


def agree(got: dict[str, float | None], wanted: dict[str, float | None]) -> None:
    for name, value in wanted.items():
        expected = None if value is None else pytest.approx(value, abs=1e-12)
        assert got[name] == expected, name


@patient
@given(plans, archives)
def test_columns_give_what_a_loop_over_answers_gives(plan: dict[str, Any], rows: Any) -> None:
    benchmark = declared(plan)
    report = report_of(benchmark, [scored(benchmark, rows)])
    agree({name: score.value for name, score in report.scores.items()}, plain(plan, rows))
    for name, scores in report.groups.get("set", {}).items():
        part = [row for row in rows if row[0] == name]
        wanted = plain(plan, part)
        agree({key: score.value for key, score in scores.items()}, wanted | {"mean_ratio": None})


@patient
@given(plans, archives, st.lists(st.integers(0, 12), max_size=3))
def test_merging_any_split_changes_nothing(
    plan: dict[str, Any], rows: Any, cuts: list[int]
) -> None:
    benchmark = declared(plan)
    results = scored(benchmark, rows)
    places = [0, *sorted(min(cut, len(results)) for cut in cuts), len(results)]
    split = [results[first:last] for first, last in pairwise(places)]
    assert report_of(benchmark, split).to_text() == report_of(benchmark, [results]).to_text()


@patient
@given(plans, archives)
def test_scores_of_every_variant_are_those_of_the_report(plan: dict[str, Any], rows: Any) -> None:
    benchmark = declared(plan)
    comparison = VariantComparison(metric_of(benchmark))
    comparison.add(items(rows))
    agree(comparison.scores()["only"], plain(plan, rows))


# Partial bundles: an answer that is missing leaves the others as they are.

PARTIAL = structs.replace(
    declared(
        {
            "of": "right",
            "among": "any",
            "groups": ("group",),
            "grouped": "any",
            "turned": False,
            "unparsed": "unscored",
        }
    ),
    # No archive here has the last one.
    places={"set": SETS, "name": (*NAMES, "never")},
)
DECIDED = {True: {"yes": "Yes.", "no": "No."}, False: {"yes": "No.", "no": "Yes."}}


def partly(rows: Rows) -> dict[str, float | None]:
    """Return the scores over the answers that are there; groups with a missing one are left out."""
    parser = YES_NO_PARSERS["strict"]
    right = answers = whole = groups = kept_right = kept_asked = 0
    for _, said in rows:
        marks = {
            name: None if parser(text) is None else parser(text) == label
            for name, (text, label) in said.items()
        }
        if marks["base"] is None:
            continue
        known = [mark for mark in marks.values() if mark is not None]
        right, answers = right + sum(known), answers + len(known)
        for group in (["base", "other"], ["third"]):
            found = [marks[name] for name in group]
            if None not in found:
                groups, whole = groups + 1, whole + all(map(bool, found))
        if marks["base"] and marks["other"] is not None:
            kept_asked, kept_right = kept_asked + 1, kept_right + marks["other"]
    return {
        "ratio": quotient(right, answers),
        "groups": quotient(whole, groups),
        "stays": quotient(kept_right, kept_asked),
    }


@patient
@given(archives)
def test_partial_bundles_count_what_is_there(rows: Any) -> None:
    report = report_of(PARTIAL, [scored(PARTIAL, rows)])
    agree({name: score.value for name, score in report.scores.items()}, partly(rows))


@patient
@given(archives)
def test_bounds_of_partial_bundles_are_those_of_the_answers_that_are_missing(rows: Any) -> None:
    parser = YES_NO_PARSERS["strict"]
    report = report_of(PARTIAL, [scored(PARTIAL, rows)])
    for best in (True, False):
        whole = [
            (
                where,
                {
                    name: (
                        DECIDED[best][label]
                        if parser(text) is None or parser(said["base"][0]) is None
                        else text,
                        label,
                    )
                    for name, (text, label) in said.items()
                },
            )
            for where, said in rows
        ]
        wanted = partly(whole)
        for name, bound in report.coverage.bounds.items():
            if name in ("ratio", "groups"):
                end = bound.best if best else bound.worst
                assert end == pytest.approx(wanted[name], abs=1e-12), name
