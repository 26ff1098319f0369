"""100,000 answers of families with several answers to a figure, video or image: whole runs.

Each line is the processor's time for one run of the engine, from items to the report with its
groups and intervals, and the answers a second.

Run with: python benchmarks/bench_sets.py [--answers 100000]
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence

import needs  # noqa: F401  # stops with a sentence where hallujudge is not installed
from arguments import Arguments

from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.metrics import Answer, AnswersItem, Item
from hallujudge.metrics.amber import KINDS
from hallujudge.metrics.amber.descriptions import AmberItem, AmberObject
from hallujudge.metrics.event_hallusion import DESCRIPTION, SPLITS
from hallujudge.metrics.video_hallucer import SETS

BATCH = 1000
SAYINGS = ("Yes", "No.", "Yes, as the figure shows.", "No, it does not.", "It is unclear.")


def hallusion_bench(size: int) -> list[Item]:
    """Sets of two questions about six figures."""
    rng = random.Random(1)
    items: list[Item] = []
    for number in range(size):
        place, question = divmod(number, 2)
        set_id, figure = divmod(place, 6)
        category = ("VD", "VS")[set_id % 2]
        unseen = category == "VS" and figure == 0
        items.append(
            AnswersItem(
                id=str(number),
                answers=(
                    Answer(
                        response=rng.choice(SAYINGS),
                        label=rng.choice(("yes", "no")),
                        fields={
                            "category": category,
                            "subcategory": ("ocr", "map", "chart")[set_id % 3],
                            "set_id": str(set_id),
                            "figure_id": str(figure),
                            "question_id": str(question),
                            "visual_input": "0" if unseen else "1" if figure == 0 else "2",
                        },
                    ),
                ),
            )
        )
    return items


def video_hallucer(size: int) -> list[Item]:
    """Pairs of two answers, five pairs a video."""
    rng = random.Random(2)
    labels = {"basic": "yes", "hallucination": "no"}
    return [
        AnswersItem(
            id=str(number),
            group_id=str(number // 5),
            fields={"set": SETS[number % len(SETS)]},
            answers=tuple(
                Answer(name=name, response=rng.choice(SAYINGS), label=label)
                for name, label in labels.items()
            ),
        )
        for number in range(size // 2)
    ]


def event_hallusion(size: int) -> list[Item]:
    """Videos with a question and a judged description each, which are two answers."""
    rng = random.Random(3)
    return [
        AnswersItem(
            id=str(number),
            fields={"split": SPLITS[number % len(SPLITS)]},
            answers=(
                Answer(name="1", label="no", response=rng.choice(SAYINGS)),
                Answer(
                    name=DESCRIPTION,
                    label="yes",
                    response="A dog runs.",
                    fields={"judgement": rng.choice(SAYINGS)},
                ),
            ),
        )
        for number in range(size // 2)
    ]


def amber(size: int) -> list[Item]:
    """Fourteen questions about an image, and a description of four object words."""
    rng = random.Random(4)
    objects = tuple(AmberObject(word=word, associated=(f"{word}s",)) for word in "abcdef")
    items: list[Item] = []
    for number in range(size):
        image, place = divmod(number, 15)
        fields = {"kind": KINDS[place % len(KINDS)]} if place else {}
        said, label = rng.choice(SAYINGS), rng.choice(("yes", "no"))
        answers = (Answer(said, label, fields=fields),)
        if place:
            items.append(AnswersItem(id=str(number), group_id=str(image), answers=answers))
            continue
        items.append(
            AmberItem(
                id=str(number),
                group_id=str(image),
                answers=answers,
                nouns=("a", "b", "x", "f"),
                nouns_given=True,
                objects=objects[:4],
                targets=objects[4:],
            )
        )
    return items


async def run(metric: str, items: Sequence[Item], group_by: tuple[str, ...]) -> float:
    """Return the CPU seconds of a whole run."""
    start = time.process_time()
    session = await Engine().open(ScoreSpec(metric=metric, group_by=group_by))
    for first in range(0, len(items), BATCH):
        await session.score(items[first : first + BATCH])
    session.report()
    return time.process_time() - start


def main() -> None:
    """Print a line for each family."""
    parser = Arguments(__doc__)
    parser.size("--answers", 100_000, smoke=500)
    size = parser.given().answers
    families = {
        "hallusion-bench": (hallusion_bench(size), ("category", "subcategory")),
        "video-hallucer": (video_hallucer(size), ("set",)),
        "event-hallusion": (event_hallusion(size), ("split",)),
        "amber": (amber(size), ()),
    }
    for metric, (items, group_by) in families.items():
        seconds = asyncio.run(run(metric, items, group_by))
        print(f"{metric:<16}{size:>9,} answers {seconds:8.2f} s {size / seconds:>12,.0f} answers/s")


if __name__ == "__main__":
    main()
