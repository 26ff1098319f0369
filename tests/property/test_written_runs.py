"""What a run writes can be read again, compared, merged and shown, whatever the answers are."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import cycle
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs
from support.metric_runs import RUNS
from support.sizes import further, sized

from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.metrics import AnswersItem, Item
from hallujudge.metrics.argus import ArgusItem
from hallujudge.metrics.families import metric_names
from hallujudge.sdk import Client, RunReport, compare, leaderboard, paper_table
from hallujudge.sdk.comparison import CompareOptions
from hallujudge.sdk.derived_runs import merge_runs
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.runs import RunItem, RunItems
from hallujudge.sdk.runs.stored_runs import read_run, recompute

# Each example writes and reads five runs, and there are many metrics and variants.
patient = settings(deadline=None, max_examples=sized(1, 3))

# What models and judges say; a parser that takes one of these for an answer may differ from others.
FORMS = (
    *(None, "", " ", "**No**", "NO", "No", "no.", "Yes.", "yes", "Yes and no", "not", "Unknown."),
    *("I can't say.", "A", "(B)", "**C**", "B, A, C", "b", "AB", "A and B", "Neither.", "答案是A"),
    *("Rating: 6", "Rating: 0", "correct", "incorrect", "unclear", "1", "-1", "1e400"),
    *("A dog on a sofa.", "A man rides a horse. He sings.\n\nHe rests.", "x" * 5000),
    *("<think>A dog?</think>No.", "<think>Yes, a cat", "The end.</think>\n\n**Yes**"),
    *("\x00", "\u2028", "\ufeffNo", '"', "{}", "<NAN>", "null", "true"),
)
forms = st.lists(st.sampled_from(FORMS) | st.text(max_size=20), min_size=1, max_size=12)
# The small run of a metric has two or three items.
COPIES = 4
# It keeps its models.
ENGINE = Engine()
QUICK = CompareOptions(replicates=100)
NOTHING_TO_COMPARE = ("no item is scored in", "is undefined over the items")


def choices() -> Iterator[tuple[str, str, tuple[tuple[str, str], ...]]]:
    """Yield every metric with each variant and, where an option chooses the parser, each of it."""
    for name in metric_names():
        metric = metric_entry(name).metric
        parsers = [each for each in metric.options if each.name in ("reader", "parser")]
        for variant in metric.variant_names():
            yield name, variant, ()
            for option in parsers:
                yield from ((name, variant, ((option.name, value),)) for value in option.choices)


def forms_of_runs() -> Iterator[object]:
    """Yield the choices: the first one of each metric for each commit."""
    seen = set()
    for metric, *others in choices():
        choice = (metric, *others)
        yield further("test_what_a_run_writes_is_read_again", *choice) if metric in seen else choice
        seen.add(metric)


@cache
def items_of(metric: str) -> tuple[Item, ...]:
    with Client.embedded() as client:
        report = client.score(metric, **RUNS[metric]())
    items = [entry.item for entry in report.items]
    return tuple(
        structs.replace(item, id=f"{item.id} {copy}", group_id=f"{item.group_id} {copy}")
        for copy in range(COPIES)
        for item in items
    )


def answered(items: Sequence[Item], said: Sequence[str | None]) -> list[Item]:
    """Return the items with other answers, and other verdicts where the files have verdicts."""
    texts = cycle(said)

    def one(item: Item) -> Item:
        if isinstance(item, ArgusItem) and item.mode == "omission":
            return structs.replace(
                item, source=next(texts)
            )  # the model's caption; the other is a person's
        if not isinstance(item, AnswersItem):
            return structs.replace(item, response=next(texts))
        answers = [
            structs.replace(
                each,
                response=next(texts),
                fields={
                    key: (next(texts) or "") if key in ("review", "judgement") else value
                    for key, value in each.fields.items()
                },
            )
            for each in item.answers
        ]
        return structs.replace(item, answers=tuple(answers))

    return [one(item) for item in items]


def written(spec: ScoreSpec, items: Sequence[Item], folder: Path) -> RunReport:
    async def scored() -> RunReport:
        session = await ENGINE.open(spec)
        results = await session.score(items)
        pairs = [RunItem(item=i, result=r) for i, r in zip(items, results, strict=True)]
        return RunReport.of(session.report(), RunItems.of(pairs))

    report = asyncio.run(scored())
    report.save(folder)
    return report


def refusal(command: Callable[..., object], *runs: Path) -> str:
    """Return the message that says why runs can't be compared; empty if they can."""
    try:
        command(*runs, options=QUICK)
    except InvalidInputError as err:
        return str(err)
    return ""


def check_reading(report: RunReport, folder: Path) -> None:
    assert [r.statistics for r in read_run(folder).results()] == [
        entry.result.statistics for entry in report.items
    ]
    again = recompute(folder)
    assert (again.scores, again.coverage, again.totals) == (
        report.scores,
        report.coverage,
        report.totals,
    )


@pytest.mark.parametrize(("metric", "variant", "options"), list(forms_of_runs()))
def test_what_a_run_writes_is_read_again(
    metric: str, variant: str, options: tuple[tuple[str, str], ...]
) -> None:
    spec = ScoreSpec(metric=metric, variant=variant, options=dict(options))
    known = items_of(metric)

    @patient
    @given(forms, forms)
    @example(["**No**", "NO", "Yes"], ["No", "Yes"])
    @example([None], ["Yes and no"])
    @example([None], ["<think>Yes, a cat"])
    def check(first: Sequence[str | None], second: Sequence[str | None]) -> None:
        with tempfile.TemporaryDirectory() as made:
            one, two, more, both = (Path(made, name) for name in ("one", "two", "more", "both"))
            check_reading(written(spec, answered(known, first), one), one)
            check_reading(written(spec, answered(known, second), two), two)
            others = [
                structs.replace(item, id=f"{item.id} again", group_id=f"{item.group_id} again")
                for item in known
            ]
            written(spec, answered(others, second), more)
            merged = merge_runs([one, more], both)
            assert merged.coverage.items == 2 * read_run(one).report.coverage.items
            assert recompute(both).scores == merged.scores
            paper_table(one, two, options=QUICK)
            for command in (compare, leaderboard):
                said = refusal(command, one, two)
                assert not said or any(why in said for why in NOTHING_TO_COMPARE), command

    check()
