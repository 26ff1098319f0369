"""Every RPC of the server: what a caller needs for it, and what its messages may hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..access.caller import Scope

__all__ = ["METHODS", "MethodRule", "rule_of"]

_OURS = "/hallujudge.judge.v1."


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodRule:
    """How calls of one method are admitted."""

    scope: Scope | None = None
    """What the caller's key must allow; None: any known caller may call it."""
    open: bool = False
    """Whether anybody may call it, and without a place among the limited calls."""
    idle: bool = False
    """Whether its calls wait most of the time or do no work, so that they take no place of others.
    """


METHODS: Mapping[str, MethodRule] = {
    "/hallujudge.judge.v1.JudgeService/Score": MethodRule(scope=Scope.SCORE),
    "/hallujudge.judge.v1.JudgeService/ScoreStream": MethodRule(scope=Scope.SCORE),
    "/hallujudge.judge.v1.JudgeService/Extract": MethodRule(scope=Scope.EXTRACT),
    "/hallujudge.judge.v1.JudgeService/Judge": MethodRule(scope=Scope.JUDGE),
    "/hallujudge.judge.v1.JudgeService/Normalize": MethodRule(scope=Scope.EXTRACT),
    "/hallujudge.judge.v1.JudgeService/ListMetrics": MethodRule(idle=True),
    "/hallujudge.judge.v1.JudgeService/GetServerInfo": MethodRule(idle=True),
    "/hallujudge.judge.v1.ScoringJobService/CreateJob": MethodRule(scope=Scope.SCORE),
    "/hallujudge.judge.v1.ScoringJobService/AddJobItems": MethodRule(scope=Scope.SCORE),
    "/hallujudge.judge.v1.ScoringJobService/GetJob": MethodRule(scope=Scope.SCORE),
    "/hallujudge.judge.v1.ScoringJobService/ListJobs": MethodRule(scope=Scope.SCORE),
    "/hallujudge.judge.v1.ScoringJobService/WatchJob": MethodRule(scope=Scope.SCORE, idle=True),
    "/hallujudge.judge.v1.ScoringJobService/CancelJob": MethodRule(scope=Scope.SCORE),
    "/hallujudge.judge.v1.ScoringJobService/DeleteJob": MethodRule(scope=Scope.SCORE),
    "/hallujudge.judge.v1.ScoringJobService/ListJobResults": MethodRule(scope=Scope.SCORE),
    "/hallujudge.judge.v1.ScoringJobService/GetJobReport": MethodRule(scope=Scope.SCORE),
}
"""The rules of our own methods; a new method adds its line here."""

_FOREIGN = MethodRule(open=True)
"""Health and reflection: an orchestrator has no key, and must not restart a busy server."""


def rule_of(method: str) -> MethodRule:
    """Return the rule of a method, such as ``/hallujudge.judge.v1.JudgeService/Score``.

    A method of this service without a line in the table is for administrators.
    """
    if not method.startswith(_OURS):
        return _FOREIGN
    return METHODS.get(method, MethodRule(scope=Scope.ADMIN))
