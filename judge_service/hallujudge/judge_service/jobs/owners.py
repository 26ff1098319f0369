"""Who a job belongs to, and for whom it goes on after its call."""

from __future__ import annotations

import json
from dataclasses import asdict

from ..access.caller import Caller, Limits, Scope, current_caller

__all__ = ["caller_of", "current_owner", "kept_caller"]

_ANONYMOUS = "anonymous"
_NAMED = ("key:", "certificate:")


def current_owner() -> str:
    """Return the owner of jobs that the running call creates or asks for.

    Callers without a key share their jobs: their address may be another one when they come back.
    """
    caller = current_caller()
    return caller.id if caller.id.startswith(_NAMED) else _ANONYMOUS


def kept_caller() -> str:
    """Return the running call's caller as it is kept with a job: it pays for the job's calls."""
    caller = current_caller()
    values = {
        "id": caller.id,
        "name": caller.name,
        "key_id": caller.key_id,
        "scopes": sorted(scope.value for scope in caller.scopes),
        "limits": asdict(caller.limits),
    }
    return json.dumps(values)


def caller_of(kept: str) -> Caller:
    """Return the caller that a job works for, from :func:`kept_caller`."""
    values = json.loads(kept)
    return Caller(
        id=values["id"],
        name=values["name"],
        key_id=values["key_id"],
        scopes=frozenset(Scope(name) for name in values["scopes"]),
        limits=Limits(**values["limits"]),
    )
