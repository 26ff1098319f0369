"""Properties of POPE, VidHal and INFACT that hold for any answers."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Mapping, Sequence
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import answers_published as oracle
from support.sizes import examples

from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.metrics import (
    Answer,
    AnswersItem,
    IntervalSettings,
    Item,
    ItemResult,
    Report,
    Tally,
    one_answer,
)
from hallujudge.metrics.answers.choices import read_choice
from hallujudge.metrics.answers.orders import ndcg_of, read_order, read_order_published
from hallujudge.metrics.answers.yes_no import YES_NO_PARSERS
from hallujudge.metrics.pope import PopeMetric
from hallujudge.metrics.vidhal import VidhalOrderingMetric

# Each example is a whole run, and the machine may be busy: a slow one is not a failure.
patient = settings(deadline=None, max_examples=examples(60))

# The released scripts score empty responses; by default these are unscored.
AS_RELEASED = {"count_empty": "true"}

words = st.sampled_from(
    ["Yes", "No", "no", "NO", "not", "yes", "isn't", ".", ",", " ", "a dog", "n't", "!", "(", "是"]
)
answers = st.lists(words, max_size=5).map(" ".join) | st.text(max_size=30)
polled = st.lists(st.tuples(answers, st.sampled_from(["yes", "no"])), min_size=1, max_size=30)


def run(items: Sequence[Item], metric: str, **more: object) -> tuple[list[ItemResult], Report]:
    spec = ScoreSpec(metric=metric, **more)  # type: ignore[arg-type]  # forwarded

    async def scored() -> tuple[list[ItemResult], Report]:
        session = await Engine().open(spec)
        return await session.score(items), session.report()

    return asyncio.run(scored())


def pope_items(rows: Sequence[tuple[str, str]]) -> list[AnswersItem]:
    return [
        one_answer(id=str(n), group_id=str(n // 3), response=text, label=label)
        for n, (text, label) in enumerate(rows)
    ]


@patient
@given(polled)
def test_published_pope_is_the_plain_loop(rows: list[tuple[str, str]]) -> None:
    wanted = oracle.pope([text for text, _ in rows], [label for _, label in rows])
    _, report = run(pope_items(rows), "pope", options=AS_RELEASED)
    for name in ("accuracy", "precision", "recall", "yes_ratio"):
        value = report[name].value
        assert math.isnan(wanted[name]) if value is None else value == pytest.approx(wanted[name])
    if not math.isnan(wanted["f1"]):
        assert report.f1 == pytest.approx(wanted["f1"])
    metric = PopeMetric()
    counts = metric.totals(metric.rows(*zip(*rows, strict=True)))
    assert all(counts[name] == wanted[name] for name in ("tp", "fp", "tn", "fn"))


@patient
@given(polled, st.sampled_from(PopeMetric.variant_names()), st.integers(0, 99))
def test_pope_of_any_parser(rows: list[tuple[str, str]], variant: str, seed: int) -> None:
    results, report = run(pope_items(rows), "pope", variant=variant, options=AS_RELEASED)
    shuffled = list(rows)
    random.Random(seed).shuffle(shuffled)
    for name, score in report.scores.items():
        assert score.value is None or 0 <= score.value <= 1, name
    _, other = run(
        [one_answer(id=str(n), response=t, label=y) for n, (t, y) in enumerate(shuffled)],
        "pope",
        variant=variant,
        options=AS_RELEASED,
    )
    assert {n: s.value for n, s in report.scores.items()} == {
        n: s.value for n, s in other.scores.items()
    }
    metric = PopeMetric(variant=variant)
    counts = metric.totals(metric.rows(*zip(*rows, strict=True)))
    assert counts["answered"] == report.coverage.scored
    assert counts["unparsed"] == report.totals["unparsed"]
    if answered := counts["answered"]:
        assert report.accuracy == pytest.approx((counts["tp"] + counts["tn"]) / answered)
    halves = Tally(PopeMetric(variant=variant)), Tally(PopeMetric(variant=variant))
    for index, result in enumerate(results):
        halves[index % 2].add(result)
    halves[0].merge(halves[1])
    merged = halves[0].finish(IntervalSettings(), version="x")
    assert merged.scores == report.scores
    for name, bound in report.coverage.bounds.items():
        value = report[name].value
        assert value is None or bound.worst - 1e-12 <= value <= bound.best + 1e-12


@given(answers)
def test_parsers_give_yes_no_or_nothing(answer: str) -> None:
    for name, read in YES_NO_PARSERS.items():
        assert read(answer) in {"yes", "no", None}
        assert read(answer) == read(answer)
        if name in {"published", "opera"}:
            assert read(answer) is not None


@given(st.text(max_size=80))
def test_choices_and_orders_are_of_what_was_shown(text: str) -> None:
    options = {"A": "a dog runs", "B": "a cat sits", "C": "nothing"}
    assert read_choice(text, options).choice in {"A", "B", "C", None}
    for read in (read_order, read_order_published):
        order = read(text, options)
        assert order.valid == (sorted(order.letters) == ["A", "B", "C"])


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_ndcg_of_every_order(size: int) -> None:
    values = {ranks: ndcg_of(ranks) for ranks in permutations(range(1, size + 1))}
    best = tuple(range(1, size + 1))
    assert values[best] == pytest.approx(1)
    assert values[best[::-1]] == pytest.approx(0)
    assert all(-1e-12 <= value <= 1 + 1e-12 for value in values.values())
    for ranks, value in values.items():
        for place in range(size - 1):
            if ranks[place] < ranks[place + 1]:
                swapped = (
                    *ranks[:place],
                    ranks[place + 1],
                    ranks[place],
                    *ranks[place + 2 :],
                )
                assert values[swapped] < value, "a swap of neighbours the wrong way costs"


displays = st.permutations(["1", "2", "3"]).map(lambda ranks: dict(zip("ABC", ranks, strict=True)))
orders = st.lists(st.sampled_from("ABCD"), max_size=4).map(", ".join)


def shown_item(
    name: str, said: str, display: Mapping[str, str], captions: Mapping[str, str]
) -> AnswersItem:
    """Return an order of letters that were shown with captions, which may be unknown."""
    options = {letter: captions.get(rank, "") for letter, rank in display.items()}
    label = ", ".join(sorted(display, key=lambda letter: int(display[letter])))
    return AnswersItem(id=name, answers=(Answer(response=said, label=label, options=options),))


@patient
@given(st.lists(st.tuples(orders, displays), min_size=1, max_size=25), st.booleans())
def test_orderings_are_the_plain_loop(
    rows: list[tuple[str, dict[str, str]]], with_captions: bool
) -> None:
    items = [
        shown_item(
            str(n), text, display, dict(zip("123", "xyz", strict=True)) if with_captions else {}
        )
        for n, (text, display) in enumerate(rows)
    ]
    _, report = run(items, "vidhal-ordering", options=AS_RELEASED)
    ndcg, frequency = oracle.vidhal_ordering([t for t, _ in rows], [d for _, d in rows])
    assert report.ndcg == pytest.approx(ndcg, abs=1e-12)
    valid = {
        text: count
        for text, count in frequency.items()
        if sorted(text.split(", ")) == ["A", "B", "C"]
    }
    assert report.regurgitation_rate == pytest.approx(max(valid.values(), default=0) / len(rows))
    assert report.invalid_response_rate == pytest.approx(1 - sum(valid.values()) / len(rows))


@pytest.mark.parametrize("size", [2, 4, 6, 13])
def test_any_number_of_captions(size: int) -> None:
    letters = "ABCDEFGHIJKLM"[:size]
    display = {letter: str(rank) for rank, letter in enumerate(letters, 1)}
    orders = [", ".join(letters), ", ".join(letters[::-1]), ", ".join(letters)]
    items = [shown_item(str(n), said, display, {}) for n, said in enumerate(orders)]
    _, report = run(items, "vidhal-ordering")
    assert report.ndcg == pytest.approx(2 / 3)
    assert report.regurgitation_rate == pytest.approx(2 / 3)
    assert report.hm_2_1 == pytest.approx(1 / 3)
    assert (report.hm_3_1 is None) == (size < 3)
    assert set(VidhalOrderingMetric().score(items[0]).scores) == {
        "ndcg",
        "invalid_response_rate",
    }


letters = st.sampled_from("AB")
questions = st.fixed_dictionaries(
    {
        "label": letters,
        "order_sensitive": st.booleans(),
        "runs": st.fixed_dictionaries(
            {"base": letters},
            optional=dict.fromkeys([*oracle.INVARIANT, "shuffle", "reverse", "text_only"], letters),
        ),
    }
)


@patient
@given(st.lists(questions, min_size=1, max_size=20))
def test_infact_is_the_plain_loop(rows: list[dict[str, object]]) -> None:
    items = [
        AnswersItem(
            id=str(n),
            answers=tuple(
                Answer(
                    response=said,
                    label=str(row["label"]),
                    name=operator,
                    fields={"order_sensitive": str(row["order_sensitive"]).casefold()},
                )
                for operator, said in row["runs"].items()  # type: ignore[attr-defined]  # a mapping
            ),
        )
        for n, row in enumerate(rows)
    ]
    _, report = run(items, "infact")
    for name, value in oracle.infact(rows).items():
        got = report[name].value
        assert math.isnan(value) if got is None else got == pytest.approx(value), name
