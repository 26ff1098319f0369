"""What keys may spend on judges: each has its own budget, and a restart does not renew it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from support import scripted_llm as llm

from hallujudge.judge_service.access.caller import Limits, Scope
from hallujudge.judge_service.access.keys import create_key
from hallujudge.judge_service.access.spending import Ledger
from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.judge_service.server.server import start
from hallujudge.judge_service.settings.judges import JudgeSettings
from hallujudge.judge_service.settings.server import ServerSettings
from hallujudge.metrics.framework.triplets import Triplet
from hallujudge.metrics.tri_he.items import TriHeItem
from hallujudge.sdk import AsyncClient, Connection, ScoreSpec, Secret

SPEC = ScoreSpec(metric="tri-he", options={"judge": "llm", "extractor": "given"})
SCENE = (Triplet("man", "riding", "horse"),)


@asynccontextmanager
async def serving(folder: Path, judge: llm.ScriptedLlm) -> AsyncIterator[str]:
    """Run a server with an LLM judge, as ``serve`` builds it."""
    ledger = Ledger(folder / "spending.sqlite")
    settings = JudgeSettings(llm_url=judge.url, llm_model="tiny", outage_seconds=0)
    factory = JudgeFactory(settings, ledger=ledger)
    server = await start(
        ServerSettings(port=0, keys_file=str(folder / "keys.json")),
        Engine(Resources(lambda: factory)),
    )
    try:
        yield server.address
    finally:
        await server.stop(0)
        await factory.close()
        ledger.close()


async def verdicts(address: str, key: str, count: int) -> list[str]:
    """Return the verdict, or the reason for none, of each of some items."""
    items = [
        TriHeItem(
            id=str(n),
            claims=(Triplet("man", "riding", f"horse {key[3:11]} {n}"),),
            reference_triplets=SCENE,
        )
        for n in range(count)
    ]
    found: list[str] = []
    async with AsyncClient(address, connection=Connection(api_key=Secret(key))) as client:
        await client.score_items(
            SPEC, items, on_batch=lambda batch: found.extend(one.reason for one in batch.results)
        )
    return found


async def test_one_keys_calls_leave_the_others_theirs(tmp_path: Path) -> None:
    scopes, limits = [Scope.SCORE, Scope.JUDGE], Limits(judge_calls_per_day=3)
    ana, ben = (
        create_key(tmp_path / "keys.json", name, scopes=scopes, limits=limits)
        for name in ("ana", "ben")
    )
    async with llm.ScriptedLlm(llm.by_scene_graph) as judge:
        async with serving(tmp_path, judge) as address:
            found = await verdicts(address, ana, 5)
            assert sorted(found) == ["", "", "", "NO_VERDICTS", "NO_VERDICTS"]
            assert await verdicts(address, ben, 2) == ["", ""]
        async with serving(tmp_path, judge) as address:
            assert await verdicts(address, ana, 1) == ["NO_VERDICTS"]
            assert await verdicts(address, ben, 1) == [""]
        assert judge.chats == 6
