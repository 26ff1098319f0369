"""One million answers of each question-answering family: items a second, peak memory, ratios.

The plain loop is the published script's (tests/oracles/answers_published.py). INFACT has no script;
its loop applies the paper's formulas to answers parsed by a regular expression. Compared with it:

* ``counts``: the metric's own totals from columns of single answers, which is the same work and
  result;
* ``engine``: a whole run, with a result and evidence for each item, coverage and intervals,
  which the plain loop does not have.

Each family runs in a process of its own, so that its peak memory is its own; the part of its
generated answers and display orders, before scoring, is printed too.

Run with: python benchmarks/bench_qa.py [--answers 1000000]
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import re
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import needs  # noqa: F401  # stops with a sentence where hallujudge is not installed
from arguments import Arguments

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from oracles import answers_published as oracle

from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.metrics import Answer, AnswersItem, Item, Report, one_answer
from hallujudge.metrics.pope import PopeMetric
from hallujudge.metrics.vidhal import VidhalOrderingMetric

BATCH = 1000
SAYINGS = (
    "Yes",
    "No",
    "Yes, there is a {} in the image.",
    "No, there is no {} in the image.",
    "Yes, the image shows a {} on the left side of the table.",
    "The {} is not visible.",
)
THINGS = ("dog", "cat", "dining table", "bus", "snowboard", "person", "car", "handbag")


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return CPU seconds, which other programs affect less than elapsed time."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def engine(metric: str, items: Iterator[Item]) -> Report:
    """Run the metric on all items, batch by batch."""

    async def run() -> Report:
        session = await Engine().open(ScoreSpec(metric=metric))
        batch: list[Item] = []
        for item in items:
            batch.append(item)
            if len(batch) == BATCH:
                await session.score(batch)
                batch = []
        if batch:
            await session.score(batch)
        return session.report()

    return asyncio.run(run())


def peak_mib() -> float:
    """Return the peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def show(name: str, answers: int, seconds: Sequence[float], inputs: float) -> None:
    """Print the results of one family."""
    print(f"{name}: {answers:,} answers")
    kinds = ("plain loop", "counts", "engine") if len(seconds) > 2 else ("plain loop", "engine")
    for kind, spent in zip(kinds, seconds, strict=True):
        print(
            f"  {kind:<11}{spent:8.2f} s {answers / spent:>14,.0f} answers/s "
            f"{seconds[0] / spent:8.2f} x"
        )
    print(f"  peak memory {peak_mib():,.0f} MiB, of it inputs {inputs:,.0f} MiB", flush=True)


def pope(size: int) -> None:
    """Short and long answers, half of the labels yes."""
    rng = random.Random(1)
    # Formatted one by one: as in a file, equal answers are not one object.
    answers = [rng.choice(SAYINGS).format(rng.choice(THINGS)) for _ in range(size)]
    labels = ["yes" if rng.random() < 0.5 else "no" for _ in range(size)]
    inputs = peak_mib()
    metric = PopeMetric()
    plain, wanted = timed(lambda: oracle.pope(answers, labels))
    counts, got = timed(lambda: metric.totals(metric.rows(answers, labels)))
    assert all(got[k] == wanted[k] for k in ("tp", "fp", "tn", "fn"))
    items = (
        one_answer(id=str(n), group_id=str(n // 6), response=text, label=label)
        for n, (text, label) in enumerate(zip(answers, labels, strict=True))
    )
    whole, report = timed(lambda: engine("pope", items))
    assert abs(report.accuracy - wanted["accuracy"]) < 1e-12
    show("pope", size, (plain, counts, whole), inputs)


def vidhal(size: int) -> None:
    """Orders of three letters; one in eight is partial or repeats a letter."""
    rng = random.Random(2)
    texts = ["A, B, C", "B, A, C", "C, A, B", "C, B, A", "A, C, B", "B, C, A", "A, B", "A, A, B"]
    shown = [dict(zip("ABC", order, strict=True)) for order in permutations((1, 2, 3))]
    answers = [str(rng.choice(texts).encode(), "ascii") for _ in range(size)]
    displays = [dict(rng.choice(shown)) for _ in range(size)]
    inputs = peak_mib()
    metric = VidhalOrderingMetric()
    plain, wanted = timed(lambda: oracle.vidhal_ordering(answers, displays)[0])
    labels = [", ".join(sorted(display, key=display.__getitem__)) for display in displays]
    counts, got = timed(lambda: metric.totals(metric.rows(answers, labels)))
    assert abs(got["ndcg"] / size - wanted) < 1e-9
    items = (
        one_answer(id=str(n), response=text, label=label)
        for n, (text, label) in enumerate(zip(answers, labels, strict=True))
    )
    whole, report = timed(lambda: engine("vidhal-ordering", items))
    assert abs(report.ndcg - wanted) < 1e-9
    show("vidhal-ordering", size, (plain, counts, whole), inputs)


LETTER = re.compile(r"\b([A-D])\b")
OPERATORS = ("base", *oracle.INVARIANT, "shuffle", "reverse", "text_only")


def plain_infact(
    columns: dict[str, Sequence[str]], labels: Any, sensitive: Any
) -> dict[str, float]:
    """Parse every answer with a regular expression, and apply the paper's formulas."""
    questions = []
    for index, label in enumerate(labels):
        runs = {}
        for operator, rows in columns.items():
            match = LETTER.search(rows[index])
            runs[operator] = match.group(1) if match else ""
        questions.append({"label": label, "order_sensitive": sensitive[index], "runs": runs})
    return oracle.infact(questions)


def infact(size: int) -> None:
    """Ten answers to each question."""
    rng = random.Random(3)
    ways = ("{}", "({})", "Answer: {}", "{}.", "The answer is ({}).")
    count = size // len(OPERATORS)
    labels = [rng.choice("ABCD") for _ in range(count)]
    sensitive = [rng.random() < 0.4 for _ in range(count)]
    columns: dict[str, Sequence[str]] = {
        operator: [
            rng.choice(ways).format(label if rng.random() < 0.6 else rng.choice("ABCD"))
            for label in labels
        ]
        for operator in OPERATORS
    }
    inputs = peak_mib()
    plain, wanted = timed(lambda: plain_infact(columns, labels, sensitive))
    items = (
        AnswersItem(
            id=str(n),
            answers=tuple(
                Answer(
                    response=rows[n],
                    label=label,
                    name=operator,
                    fields={"order_sensitive": str(sensitive[n]).casefold()},
                )
                for operator, rows in columns.items()
            ),
        )
        for n, label in enumerate(labels)
    )
    whole, report = timed(lambda: engine("infact", items))
    assert abs(report.average - wanted["average"]) < 1e-12
    show("infact", count * len(OPERATORS), (plain, whole), inputs)


def main() -> None:
    """Measure the three families."""
    parser = Arguments(__doc__)
    parser.size("--answers", 1_000_000, smoke=1000)
    size = parser.given().answers
    for family in (pope, vidhal, infact):
        alone = multiprocessing.get_context("spawn").Process(target=family, args=(size,))
        alone.start()
        alone.join()
        if alone.exitcode:
            raise SystemExit(alone.exitcode)


if __name__ == "__main__":
    main()
