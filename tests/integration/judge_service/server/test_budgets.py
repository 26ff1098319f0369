"""What keys may spend on judges: each has its own budget, and a restart does not renew it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import grpc
import pytest
from google.protobuf import json_format
from support import scripted_llm as llm
from support.http_calls import JUDGE, post
from support.observed_servers import samples
from support.rpc import refused

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1.judge_service_pb2_grpc import JudgeServiceStub
from hallujudge.judge_service.access import Scope
from hallujudge.judge_service.access.key_store import create_key
from hallujudge.judge_service.access.spending import Ledger
from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.judge_service.server.server import RunningServer, start
from hallujudge.judge_service.settings.judge_settings import JudgeSettings, LlmSettings
from hallujudge.judge_service.settings.server_settings import (
    AccessSettings,
    HttpSettings,
    MetricsSettings,
    ServerSettings,
)
from hallujudge.judge_service.tenancy import Limits
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto
from hallujudge.metrics.framework.claims import Triplet
from hallujudge.metrics.tri_he import TriHeItem
from hallujudge.sdk import AsyncClient, Connection, ScoreSpec, Secret

SPEC = ScoreSpec(metric="tri-he", options={"judge": "llm", "extractor": "given"})
SCENE = (Triplet("man", "riding", "horse"),)


@asynccontextmanager
async def serving(folder: Path, judge: llm.ScriptedLlm) -> AsyncIterator[RunningServer]:
    """Run a server with an LLM judge, as ``serve`` builds it."""
    ledger = Ledger(folder / "spending.sqlite")
    settings = JudgeSettings(llm=LlmSettings(url=judge.url, model="tiny"), outage_seconds=0)
    factory = JudgeFactory(settings, ledger=ledger)
    server = await start(
        ServerSettings(
            port=0,
            http=HttpSettings(port=0),
            metrics=MetricsSettings(port=0),
            access=AccessSettings(keys_file=str(folder / "keys.json")),
        ),
        Engine(Resources(lambda: factory)),
    )
    try:
        yield server
    finally:
        await server.stop(0)
        await factory.close()
        ledger.close()


def items_of(key: str, count: int) -> list[TriHeItem]:
    """Return items that no other key has."""
    return [
        TriHeItem(
            id=str(n),
            claims=(Triplet("man", "riding", f"horse {key[3:11]} {n}"),),
            reference_triplets=SCENE,
        )
        for n in range(count)
    ]


async def verdicts(server: RunningServer, key: str, count: int) -> list[str]:
    """Return the reason for no verdict, or an empty text, of each of some items."""
    found: list[str] = []
    async with AsyncClient(server.address, connection=Connection(api_key=Secret(key))) as client:
        await client.score_items(
            SPEC,
            items_of(key, count),
            on_batch=lambda batch: found.extend(one.reason for one in batch.results),
        )
    return found


async def test_one_keys_calls_leave_the_others_theirs(tmp_path: Path) -> None:
    scopes, limits = [Scope.SCORE, Scope.JUDGE], Limits(judge_calls_per_day=3)
    ana, ben = (
        create_key(tmp_path / "keys.json", name, scopes=scopes, limits=limits)
        for name in ("ana", "ben")
    )
    async with llm.ScriptedLlm(llm.by_scene_graph) as judge:
        async with serving(tmp_path, judge) as server:
            found = await verdicts(server, ana, 5)
            assert sorted(found) == ["", "", "", "NO_VERDICTS", "NO_VERDICTS"]
            assert await verdicts(server, ben, 2) == ["", ""]
            refused = {
                labels: count
                for (name, labels), count in (await samples(server)).items()
                if name == "hallujudge_key_refused_judge_calls_total"
            }
            assert refused == {ana[3:11]: 2}
        async with serving(tmp_path, judge) as server:
            assert await verdicts(server, ana, 1) == ["NO_VERDICTS"]
            assert await verdicts(server, ben, 1) == [""]
        assert judge.chats == 6


async def test_a_budget_is_one_over_grpc_and_over_http(tmp_path: Path) -> None:
    scopes, limits = [Scope.SCORE, Scope.JUDGE], Limits(judge_calls_per_day=3)
    key = create_key(tmp_path / "keys.json", "ana", scopes=scopes, limits=limits)
    items = map(item_to_proto, items_of(key, 5))
    request = pb.ScoreRequest(spec=spec_to_proto(SPEC), items=items)
    async with llm.ScriptedLlm(llm.by_scene_graph) as judge, serving(tmp_path, judge) as server:
        answer = await post(
            server,
            JUDGE + "Score",
            json_format.MessageToDict(request),
            authorization=f"Bearer {key}",
        )
        assert answer.status == 200
        reasons = sorted(one.get("reason", "") for one in answer.json["results"])
        assert reasons == ["", "", "", "NO_VERDICTS", "NO_VERDICTS"]
        # The three replies are kept, and there is nothing left for more.
        found = await verdicts(server, key, 6)
        assert sorted(found) == ["", "", "", *["NO_VERDICTS"] * 3]
        assert judge.chats == 3


async def test_another_keys_calls_end_while_the_spending_file_is_locked(tmp_path: Path) -> None:
    scopes = [Scope.SCORE, Scope.JUDGE]
    limits = Limits(judge_calls_per_day=3)
    limited = create_key(tmp_path / "keys.json", "ana", scopes=scopes, limits=limits)
    free = create_key(tmp_path / "keys.json", "ben", scopes=scopes)
    async with llm.ScriptedLlm(llm.by_scene_graph) as judge, serving(tmp_path, judge) as server:
        with closing(sqlite3.connect(tmp_path / "spending.sqlite", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = asyncio.create_task(verdicts(server, limited, 4))
            connection = Connection(api_key=Secret(free))
            async with AsyncClient(server.address, connection=connection) as client:
                report = await client.score(
                    "chair", responses={"1": "A dog."}, references={"1": ["dog"]}
                )
                assert report.chair_i == 0.0
            assert await verdicts(server, free, 4) == [""] * 4
            assert not waiting.done()
            assert judge.chats == 4, "none of them is the limited key's"
            other.execute("ROLLBACK")
        assert sorted(await waiting) == ["", "", "", "NO_VERDICTS"]
        assert judge.chats == 7


async def test_a_deleted_spending_file_pays_no_budget_again(tmp_path: Path) -> None:
    scopes, limits = [Scope.SCORE, Scope.JUDGE], Limits(judge_calls_per_day=2)
    key = create_key(tmp_path / "keys.json", "ana", scopes=scopes, limits=limits)
    async with llm.ScriptedLlm(llm.by_scene_graph) as judge, serving(tmp_path, judge) as server:
        assert await verdicts(server, key, 2) == ["", ""]
        (tmp_path / "spending.sqlite").unlink()
        request = pb.ScoreRequest(
            spec=spec_to_proto(SPEC), items=map(item_to_proto, items_of(key, 4)[2:])
        )
        async with grpc.aio.insecure_channel(server.address) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await JudgeServiceStub(channel).Score(
                    request, metadata=(("authorization", f"Bearer {key}"),)
                )
        assert refused(caught.value) == (grpc.StatusCode.UNAVAILABLE, "SPENDING_UNAVAILABLE")
        assert judge.chats == 2
