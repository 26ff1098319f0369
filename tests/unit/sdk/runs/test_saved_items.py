"""Lines of items.jsonl, and the items that a run saves for its page."""

from __future__ import annotations

import asyncio
import json
import math
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from support.messages import expected_message
from support.work import calls_of

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.engine.spec import ScoreSpec
from hallujudge.metrics import (
    ChairEvidence,
    ChairItem,
    Column,
    Item,
    ItemResult,
    MentionVerdict,
    Outcome,
)
from hallujudge.metrics.families import metric_names
from hallujudge.sdk.backends.embedded import EmbeddedBackend
from hallujudge.sdk.errors import ArchiveError
from hallujudge.sdk.runs.item_lines import ItemLines, signed_lines
from hallujudge.sdk.runs.saved_items import pack_shown, shown_items
from hallujudge.sdk.runs.score_run import SaveOptions

ITEM = ChairItem(id="1", response='A "dog"\n\u2028 über \x00 𝄞', reference_objects=("cat",))


def result(statistic: float = 1.0, score: float | None = 0.1) -> ItemResult:
    return ItemResult(
        id="1",
        group_id="g",
        outcome=Outcome.SCORED,
        statistics=(statistic, 0.5),
        scores={"chair_i": score, "recall": None},
        evidence=ChairEvidence(mentions=(MentionVerdict("dog", "dog", 3, 6, True),)),
        fields={"model": "m"},
    )


# Counts may come as floats; hashes that tell groups apart are larger than any count.
statistics = st.integers(0, 3) | st.sampled_from([1.0, 2.0, 0.0])
groups = st.integers(0, 2**48) | st.sampled_from([0.5, 1.0])


def columns(*names: str) -> list[Column]:
    return [Column(name=name, integral=False) for name in names]


def test_a_line_holds_the_result_and_the_response() -> None:
    line = ItemLines(columns("mentioned", "words"), keep_text=True).of([(ITEM, result())])
    assert line.count(b"\n") == 1
    plain = result().to_json()
    values = json.loads(line)
    assert values == {
        **plain,
        "evidence": json.loads(json.dumps(plain["evidence"])),
        "statistics": {"mentioned": 1, "words": 0.5},
        "response": ITEM.response,
    }
    assert list(values)[-1] == "evidence"
    assert b'"mentioned":1,' in line


def test_a_column_may_have_any_name() -> None:
    names = ('asked:the "left"', "a\\b")
    lines = ItemLines(columns(*names), keep_text=True)
    unscored = structs.replace(result(), statistics=())
    first, second = map(json.loads, lines.of([(ITEM, result()), (ITEM, unscored)]).splitlines())
    assert first["statistics"] == {names[0]: 1, names[1]: 0.5}
    assert second["statistics"] == {}


def test_usual_names_cost_less_than_those_that_json_escapes() -> None:
    """Values with fields are made and encoded in less time than a dict."""
    pairs = [(ITEM, structs.replace(result(), statistics=(n, 0.5))) for n in range(100)]

    def calls(*names: str) -> int:
        lines = ItemLines(columns(*names), keep_text=True)
        lines.of(pairs)
        return calls_of(lambda: lines.of(pairs))

    assert calls("mentioned", "asked:left") < calls("mentioned", 'asked:"left"')


@given(st.lists(st.tuples(st.integers(0, 2), statistics, statistics, groups), max_size=30))
def test_lines_made_together_are_those_made_alone(
    rows: list[tuple[int, float, float, float]],
) -> None:
    """Scores and evidence of equal answers are encoded once, wherever the answers are."""
    said = [result(score=n / 4) for n in range(3)]
    held = [Column(name="hits"), Column(name="place", label=True), *columns("group")]
    pairs = [(ITEM, structs.replace(said[n], statistics=tuple(row))) for n, *row in rows]
    alone = [ItemLines(held, keep_text=True).of([pair]) for pair in pairs]
    assert ItemLines(held, keep_text=True).of(pairs) == b"".join(alone)


def test_a_number_of_numpy_is_a_number() -> None:
    numbers = result(np.float64(2), np.float64(0.25))
    line = ItemLines(columns("a", "b"), keep_text=True).of([(ITEM, numbers)])
    assert json.loads(line)["scores"] == {"chair_i": 0.25, "recall": None}


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_number_that_json_lacks_is_refused(number: float) -> None:
    for wrong in (result(statistic=number), result(score=number)):
        with pytest.raises(ValueError, match="'1'"):
            ItemLines(columns("a", "b"), keep_text=True).of([(ITEM, wrong)])


@pytest.mark.parametrize("number", [-1.0, 0.5, 2.0**31])
def test_a_statistic_that_readers_would_refuse_is_not_written(number: float) -> None:
    held = [Column(name="mentioned"), Column(name="words", integral=False)]
    with pytest.raises(ValueError, match=f"item '1': the statistic mentioned is {number}"):
        ItemLines(held, keep_text=True).of([(ITEM, result(statistic=number))])


def test_a_signature_ends_every_line() -> None:
    line = ItemLines(columns("a", "b"), keep_text=True).of([(ITEM, result())])
    both = signed_lines(line * 2, 'chair|"x"').splitlines()
    assert [json.loads(each).get("signature") for each in both] == ['chair|"x"'] * 2
    assert json.loads(both[0])["response"] == ITEM.response


def scored(metric: str) -> list[tuple[Item, ItemResult]]:
    item = metric_entry(metric).trial.item

    async def evaluate() -> list[ItemResult]:
        session = await EmbeddedBackend().open(ScoreSpec(metric=metric))
        return await session.evaluate([item])

    return [(item, result) for result in asyncio.run(evaluate())]


@pytest.mark.parametrize("metric", metric_names())
def test_items_and_results_are_kept_whole(metric: str) -> None:
    pairs = scored(metric)
    kept = list(shown_items(pack_shown(pairs, 0, SaveOptions(html=True))))
    assert kept == pairs
    # The page charts the first score of an item.
    assert [list(r.scores) for _, r in kept] == [list(r.scores) for _, r in pairs]


def test_responses_are_left_out_with_no_text() -> None:
    ((item, _),) = shown_items(
        pack_shown(scored("chair"), 0, SaveOptions(keep_text=False, html=True))
    )
    assert getattr(item, "response", "") is None


def test_words_to_look_for_are_not_kept() -> None:
    [(item, result)] = scored("amber")
    described = structs.replace(item, vocabulary=("cat", "dog"))
    ((kept, _),) = shown_items(pack_shown([(described, result)], 0, SaveOptions(html=True)))
    assert kept == item


def test_what_the_page_does_not_show_is_not_kept() -> None:
    pairs = scored("chair")
    assert pack_shown(pairs, 20_000, SaveOptions()) == b""
    assert pack_shown(pairs, 20_000, SaveOptions(html=True))
    assert (
        pack_shown([(Item(id="1"), result) for _, result in pairs], 0, SaveOptions(html=True))
        == b""
    )


@pytest.mark.parametrize(
    "content", [b"vChairItem ChairEvidence\n\xff", b"vNo No\n", b"m\x01\0\0\0\xff"]
)
def test_damaged_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(
        ArchiveError, match=expected_message("sdk.runs.saved_items:score-the-responses-again")
    ):
        list(shown_items(zlib.compress(content)))
    with pytest.raises(
        ArchiveError, match=expected_message("sdk.runs.saved_items:score-the-responses-again")
    ):
        list(shown_items(content))


def test_lines_with_the_same_outcome_are_those_of_a_plain_loop() -> None:
    shared = result()
    alike = [
        ItemResult(
            id=str(number),
            group_id="g",
            outcome=Outcome.SCORED,
            statistics=shared.statistics if number % 2 else (1.0, float(number)),
            scores=shared.scores if number % 3 else {},
            evidence=shared.evidence if number % 5 else None,
        )
        for number in range(30)
    ]
    names = ("mentioned", "words")
    lines = ItemLines(columns(*names), keep_text=True).of([(ITEM, each) for each in alike])
    for line, each in zip(lines.splitlines(), alike, strict=True):
        plain = json.loads(json.dumps(each.to_json()))
        statistics = dict(zip(names, each.statistics, strict=True))
        assert json.loads(line) == {**plain, "statistics": statistics, "response": ITEM.response}
