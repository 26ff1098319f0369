"""Verdicts and budgets that the workers of a cluster share, without a cluster."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from hallujudge.integrations.ray_workers import (
    CallKeeper,
    RemoteCalls,
    is_limited,
    keeper_settings,
    worker_settings,
)
from hallujudge.judge_service.llm.budget import SERVER_VERSION, Prices
from hallujudge.judge_service.llm.cache_file import cache_key
from hallujudge.judge_service.settings.judge_settings import FallbackSettings

KEY = cache_key({"prompt": "Is it a dog?"})
PRICES = {"llm.price_prompt": 1.0, "llm.price_completion": 1.0}


class Handle:
    """Stands for Ray's handle of an actor: ``handle.method.remote(…)`` can be awaited."""

    def __init__(self, actor: object) -> None:
        self._actor = actor

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._actor, name)

        class Remote:
            @staticmethod
            def remote(*arguments: object) -> Any:
                made = method(*arguments)
                return made if inspect.isawaitable(made) else None

        return Remote


def keeper_of(folder: Path, **given: object) -> CallKeeper:
    return CallKeeper(keeper_settings({"verdict_cache": str(folder / "verdicts.sqlite"), **given}))


async def test_a_verdict_of_one_worker_is_known_to_all(tmp_path: Path) -> None:
    keeper = keeper_of(tmp_path)
    one, two = (RemoteCalls(Handle(keeper), name, limited=False).verdicts for name in "ab")
    assert await one.claim(KEY) is None
    await one.put(KEY, "llm", {"content": "yes"})
    assert await two.claim(KEY) == await two.get(KEY) == {"content": "yes"}
    await one.keep_fact("http://gpu1/v1", "m", SERVER_VERSION, "vllm 1")
    assert await two.fact_of("http://gpu1/v1", "m", SERVER_VERSION) == "vllm 1"
    await keeper.close()


async def test_a_call_of_a_worker_that_died_is_made_by_another(tmp_path: Path) -> None:
    keeper = keeper_of(tmp_path)
    dead, heir = (RemoteCalls(Handle(keeper), name, limited=False).verdicts for name in "ab")
    assert await dead.claim(KEY) is None
    await keeper.drop("a")
    assert await heir.claim(KEY) is None
    await heir.release(KEY)
    # A late call of the dead worker holds up no other worker.
    assert await dead.claim(KEY) is None
    assert await heir.claim(KEY) is None
    await keeper.close()


async def test_workers_spend_one_budget(tmp_path: Path) -> None:
    keeper = keeper_of(tmp_path, max_calls=3)
    one, two = (
        RemoteCalls(Handle(keeper), name, limited=True).budget("llm", None) for name in "ab"
    )
    assert one is not None
    assert two is not None
    made = [await one.reserve(1, 1), await two.reserve(1, 1), await one.reserve(1, 1)]
    assert all(reservation is not None for reservation in made)
    assert await two.reserve(1, 1) is None
    assert "3 of 3 calls made" in two.exhausted_detail()
    await keeper.close()


async def test_what_a_dead_worker_reserved_counts_as_spent(tmp_path: Path) -> None:
    keeper = keeper_of(tmp_path, max_cost=2e-6, **PRICES)
    prices = Prices(prompt=1.0, completion=1.0)
    dead, heir = (
        RemoteCalls(Handle(keeper), name, limited=True).budget("llm", prices) for name in "ab"
    )
    assert dead is not None
    assert heir is not None
    cheap = await heir.reserve(1, 0)
    assert cheap is not None
    assert cheap.cost == 1e-6
    heir.settle(cheap, 0.0)
    assert await dead.reserve(1, 0) is not None
    await keeper.drop("a")
    last = await heir.reserve(1, 0)
    assert last is not None
    heir.keep(last)
    assert await heir.reserve(1, 0) is None
    assert "spent or reserved" in heir.exhausted_detail()
    await keeper.close()


def test_workers_share_the_calls_that_one_process_may_make_at_once(tmp_path: Path) -> None:
    given = {"llm.max_concurrency": 10, "max_calls": 5, "verdict_cache": str(tmp_path / "v")}
    settings = worker_settings(given, 4)
    assert settings["llm.max_concurrency"] == 3
    # Both are the keeper's.
    assert (settings["max_calls"], settings["verdict_cache"]) == (-1, "")
    assert RemoteCalls(None, "a", limited=False).budget("llm", None) is None


def test_limits_of_calls_and_costs(tmp_path: Path) -> None:
    from hallujudge.judge_service.settings.judge_settings import JudgeSettings

    assert not is_limited(JudgeSettings())
    assert is_limited(JudgeSettings(max_calls=0))
    assert is_limited(JudgeSettings(fallback=FallbackSettings(max_calls=3)))
    assert Path(str(keeper_settings({"verdict_cache": "v.sqlite"})["verdict_cache"])).is_absolute()
