"""What the special cases for calls with one item buy, as ratios to a server without each of them.

A server and its client run in this process, and every mode scores one caption at a time over gRPC.
Rounds of the modes take turns. The ratio is of processor time, that of server and client together.

Run with: python benchmarks/bench_one_item.py [--rounds 21] [--calls 100]
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any

import bench_server_load as load
import needs  # noqa: F401  # it says what is missing
from arguments import Arguments

from hallujudge.judge_service.engine.session import KeptPipelines
from hallujudge.judge_service.server.server import start
from hallujudge.judge_service.settings.server_settings import ServerSettings
from hallujudge.metrics.framework.report import OneItemReport

_ONE_ITEM = OneItemReport.of
_GET, _ADD = KeptPipelines.get, KeptPipelines.add


def _nothing(*_: object) -> None:
    return None


def _set(module: Any, name: str, value: Callable[..., object]) -> None:
    setattr(module, name, value)


def as_shipped() -> None:
    """Use everything."""
    _set(OneItemReport, "of", _ONE_ITEM)
    _set(KeptPipelines, "get", _GET)
    _set(KeptPipelines, "add", _ADD)


def without_report_of_one_item() -> None:
    """Make the report of one item with tables, as that of many items."""
    as_shipped()
    _set(OneItemReport, "of", _nothing)


def without_kept_pipelines() -> None:
    """Open a pipeline for every call, and make its report with tables, as nothing is kept."""
    as_shipped()
    _set(KeptPipelines, "get", _nothing)
    _set(KeptPipelines, "add", _nothing)


MODES = (as_shipped, without_report_of_one_item, without_kept_pipelines)


async def measure(rounds: int, calls: int) -> None:
    """Run the rounds and print the medians.

    Args:
        rounds: Rounds of each mode, in turns.
        calls: Calls of a round.
    """
    raw, seconds = load.score(1), {mode: list[float]() for mode in MODES}
    server = await start(ServerSettings(port=0))
    async with load.channel(server.address) as channel:
        score: Any = channel.unary_unary(load.SCORE)
        for number in range(-1, rounds):  # the first round warms up
            for mode in MODES if number % 2 else MODES[::-1]:
                mode()
                begun = time.process_time()
                for _ in range(calls):
                    await score(raw)
                if number >= 0:
                    seconds[mode].append((time.process_time() - begun) / calls)
    as_shipped()
    await server.stop(0)
    for mode, found in seconds.items():
        ratios = [own / all_ for own, all_ in zip(found, seconds[as_shipped], strict=True)]
        print(
            f"{mode.__name__.replace('_', ' '):28}{statistics.median(found) * 1e6:6.0f} µs"
            f"{statistics.median(ratios):8.2f}"
        )


if __name__ == "__main__":
    parser = Arguments(__doc__)
    parser.size("--rounds", 21, smoke=1)
    parser.size("--calls", 100, smoke=5)
    arguments = parser.given()
    asyncio.run(measure(arguments.rounds, arguments.calls))
