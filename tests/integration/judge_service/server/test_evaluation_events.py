"""Scores of a server's items as events of OpenTelemetry, whatever process scored them."""

from __future__ import annotations

import re

import pytest
from support.collectors import collecting_logs
from support.observed_servers import ITEM, JUDGED, judging, running

from hallujudge.judge_service.engine import ScoreSpec
from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.server.server import start
from hallujudge.judge_service.settings.server_settings import ServerSettings
from hallujudge.metrics import ChairItem
from hallujudge.sdk import AsyncClient

SPEC = ScoreSpec(metric="chair")


def items(count: int) -> list[ChairItem]:
    """Return captions, of which every third is missing and every second hallucinates."""
    return [
        ChairItem(
            id=str(n),
            group_id=str(n),
            response=None if n % 3 == 2 else "A dog and a cat. " * 20 if n % 2 else "A dog.",
            reference_objects=("dog",),
        )
        for n in range(count)
    ]


@pytest.mark.parametrize("workers", [0, 2])
async def test_each_item_has_its_scores_or_its_reason(workers: int) -> None:
    with collecting_logs() as collector:
        async with (
            running(
                workers=workers, evaluation_endpoint=collector.address, self_check_seconds=0
            ) as server,
            AsyncClient(server.address) as client,
        ):
            await client.score_items(SPEC, items(60))
    found = collector.evaluations()
    scores = {
        one["gen_ai.response.id"]: one["gen_ai.evaluation.score.value"]
        for one in found
        if one["gen_ai.evaluation.name"] == "chair/chair_i"
    }
    assert scores == {str(n): 0.5 if n % 2 else 0.0 for n in range(60) if n % 3 != 2}
    reasons = [one for one in found if "error.type" in one]
    assert {one["gen_ai.response.id"] for one in reasons} == {str(n) for n in range(2, 60, 3)}
    assert {one["error.type"] for one in reasons} == {"RESPONSE_MISSING"}
    # Responses are the callers', and no text of them is sent on.
    assert "cat" not in str(collector.records)


async def test_events_are_in_the_span_of_their_call() -> None:
    with collecting_logs() as collector:
        async with (
            judging(
                trace_endpoint="http://127.0.0.1:9", evaluation_endpoint=collector.address
            ) as server,
            AsyncClient(server.address) as client,
        ):
            await client.score_items(JUDGED, [ITEM])
    assert collector.records
    assert all(any(one.trace_id) and any(one.span_id) for one in collector.records)


@pytest.mark.parametrize("address", ["localhost:4318", "http://ana:secret@host:4318"])
async def test_addresses_that_are_none_are_refused(address: str) -> None:
    with pytest.raises(
        InvalidInputError, match=re.escape("such as http://localhost:4318")
    ) as caught:
        await start(ServerSettings(port=0, evaluation_endpoint=address))
    assert "secret" not in str(caught.value)
