"""The owner of a job."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.access import Caller, Scope, acting_as
from hallujudge.judge_service.jobs import caller_of, current_owner, kept_caller
from hallujudge.judge_service.tenancy import Limits


@pytest.mark.parametrize(
    ("caller", "owner"),
    [
        ("key:abc", "key:abc"),
        ("certificate:cn", "certificate:cn"),
        ("peer:10.0.0.7", "anonymous"),
    ],
)
def test_a_job_belongs_to_a_key_or_to_all_without_one(caller: str, owner: str) -> None:
    with acting_as(Caller(id=caller, name="x")):
        assert current_owner() == owner


def test_a_job_goes_on_for_the_caller_that_created_it() -> None:
    caller = Caller(
        id="key:abc",
        name="ann",
        key_id="abc",
        scopes=frozenset({Scope.SCORE, Scope.JUDGE}),
        limits=Limits(judge_calls_per_day=7, cost_per_day=0.5),
    )
    with acting_as(caller):
        kept = kept_caller()
    assert caller_of(kept) == caller
