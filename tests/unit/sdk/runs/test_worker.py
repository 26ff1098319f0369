"""What becomes of the items of workers that die."""

from __future__ import annotations

import pytest
from support.messages import expected_message

from hallujudge.judge_service.process_pool import DiedError
from hallujudge.metrics import ChairItem, ItemResult, Outcome
from hallujudge.sdk.errors import InternalError
from hallujudge.sdk.runs.worker import AloneScored, ItemAlone, ItemGroup, Task, parts_of

ITEMS = [ChairItem(id=str(n), response="A dog.", reference_objects=()) for n in range(10)]
GROUP = ItemGroup([ITEMS[:6], ITEMS[6:]], 100)


class Workers:
    """Workers that die of some items."""

    def __init__(self, *fatal: str) -> None:
        self.fatal = fatal
        self.made: list[AloneScored] = []

    async def __call__(self, task: Task) -> object:
        if isinstance(task, AloneScored):
            self.made.append(task)
            return []
        items = [task.item] if isinstance(task, ItemAlone) else ITEMS
        if any(item.id in self.fatal for item in items):
            raise DiedError
        return ItemResult(id=items[0].id, group_id="", outcome=Outcome.SCORED)


async def test_items_that_end_their_workers_are_found_one_by_one() -> None:
    workers = Workers("0", "1", "2", "7")
    await parts_of(GROUP, workers)
    assert [task.first for task in workers.made] == [100, 106]
    assert [task.batch for task in workers.made] == GROUP.made
    results = [result for task in workers.made for result in task.results]
    assert [result and result.id for result in results] == [
        None if item.id in workers.fatal else item.id for item in ITEMS
    ]


async def test_workers_that_die_of_every_item_end_the_run() -> None:
    with pytest.raises(
        InternalError, match=expected_message("sdk.runs.worker:worker-processes-died-of-each")
    ):
        await parts_of(GROUP, Workers(*(item.id for item in ITEMS)))
