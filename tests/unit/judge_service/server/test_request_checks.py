"""Specs of callers: those that were seen before are checked again for who calls."""

from __future__ import annotations

import pytest

from hallujudge.judge.v1 import scoring_pb2
from hallujudge.judge_service.access import Caller, Scope, acting_as
from hallujudge.judge_service.engine.spec import ScoreSpec
from hallujudge.judge_service.errors import InvalidInputError, PermissionDeniedError
from hallujudge.judge_service.server.request_checks import GroupLimit, admitted_bytes, admitted_spec
from hallujudge.judge_service.wire.convert import spec_to_proto

JUDGED = ScoreSpec(metric="tri-he", options={"judge": "llm"})
LONG = ScoreSpec(metric="chair", options={"language": "x" * 5_000})


def caller(*scopes: Scope) -> Caller:
    return Caller(id="key:1", name="one", scopes=frozenset(scopes))


async def test_a_spec_that_one_caller_may_use_is_refused_to_the_next_who_may_not() -> None:
    message = spec_to_proto(JUDGED)
    for _ in range(2):
        with acting_as(caller(Scope.SCORE, Scope.JUDGE)):
            assert await admitted_spec(message) == JUDGED
        with acting_as(caller(Scope.SCORE)), pytest.raises(PermissionDeniedError, match="judge"):
            await admitted_spec(message)


@pytest.mark.parametrize("spec", [JUDGED, LONG], ids=["short", "long"])
async def test_a_message_and_its_bytes_give_the_same_spec(spec: ScoreSpec) -> None:
    message = spec_to_proto(spec)
    for _ in range(2):
        assert (
            await admitted_spec(message)
            == await admitted_bytes(message.SerializeToString())
            == spec
        )


async def test_an_invalid_spec_is_refused_every_time() -> None:
    message = scoring_pb2.ScoreSpec(metric="chair", variant="x" * 201)
    for _ in range(2):
        with pytest.raises(InvalidInputError, match="has 201 characters"):
            await admitted_spec(message)


def test_groups_are_counted_over_all_fields_of_a_report() -> None:
    fields = {name: [str(number) for number in range(3)] for name in ("a", "b", "c", "d")}
    GroupLimit(12).add(fields)
    limit = GroupLimit(11)
    limit.add({name: values[:2] for name, values in fields.items()})
    with pytest.raises(InvalidInputError) as raised:
        limit.add(fields)
    assert raised.value.reason == "TOO_COSTLY"
    assert [one.field for one in raised.value.violations] == ["spec.group_by"]
    assert "more than 11 groups over all fields (setting limits.max_report_groups)" in str(
        raised.value
    )
