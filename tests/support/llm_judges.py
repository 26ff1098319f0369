"""Judges of a scripted server, and their claims."""

from __future__ import annotations

import json
from typing import Any

from support import scripted_llm as llm
from support.chat_clients import World
from support.threads import PATIENCE

from hallujudge.judge_service.judges import JudgedItem, JudgeRequestItem
from hallujudge.judge_service.judges.llm_judge import LlmJudge
from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.chat_settings import ChatSettings
from hallujudge.judge_service.llm.client import ChatClient
from hallujudge.judge_service.llm.http import Endpoint
from hallujudge.metrics.framework.claims import Sentence, Triplet

SCENE = (Triplet("man", "riding", "horse"), Triplet("horse", "is", "brown"))


CLAIMS = (
    Triplet("man", "riding", "horse"),
    Triplet("dog", "near", "horse"),
    Triplet("man", "wearing", "hat"),
    Triplet("man", "feeding", "horse"),
)


EXPECTED = [
    ("supported", None),
    ("not_supported", "subject"),
    ("not_supported", "object"),
    ("not_supported", "relation"),
]


def item(*claims: Triplet | Sentence, id: str = "1") -> JudgeRequestItem:
    return JudgeRequestItem(
        id=id, claims=claims or CLAIMS, reference_triplets=SCENE, reference_objects=("tree",)
    )


def judge_of(at: llm.ScriptedLlm, /, name: str = "llm", **options: Any) -> LlmJudge:
    kept = ("cache", "claims_per_call", "revision", "server")
    own = {key: options.pop(key) for key in kept if key in options}
    budget, store = options.pop("budget", None), options.pop("store", None)
    options.setdefault("retry", RetryPolicy(attempts=2, outage_seconds=0))
    world: World = options.pop("world", None) or World()
    sender, timeout = options.pop("sender", "http"), options.pop("timeout", PATIENCE)
    settings = ChatSettings(
        endpoint=Endpoint(url=at.url, timeout_seconds=timeout, sender=sender),
        model=f"model-{name}",
        reply_models=("m",),
        **options,
    )
    client = ChatClient(settings, budget, world.tools(), store=store)
    return LlmJudge(name, client, **own)


def shown(judged: JudgedItem) -> list[tuple[str, str | None]]:
    return [(v.verdict.value, v.part.value if v.part else None) for v in judged.verdicts]


def as_bytes(results: list[JudgedItem]) -> bytes:
    lines = [[[v.to_json() for v in r.verdicts], list(r.judging())] for r in results]
    return json.dumps(lines, sort_keys=True).encode()
