"""A matcher in a router's list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from support import scripted_llm as llm

from hallujudge.judge_service.judges.judge_interface import JudgeRequestItem
from hallujudge.judge_service.judges.llm_judge import LlmJudge
from hallujudge.judge_service.judges.router import Router
from hallujudge.judge_service.judges.small_judges import MatcherJudge
from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.judge_service.llm.client import ChatClient, ChatSettings
from hallujudge.judge_service.llm.http import Endpoint
from hallujudge.judge_service.matchers.matcher_interface import ClaimQuery
from hallujudge.metrics.framework.claims import ClaimVerdict, Triplet, Verdict

SCENE = (Triplet("man", "riding", "horse"),)


class WordMatcher:
    """Supports claims that the scene graph has, and gives no verdict on dogs."""

    name = "words"
    label = "words-1"
    settings: Mapping[str, str] = {"threshold": "0.6"}

    def __init__(self) -> None:
        self.batches: list[int] = []

    async def judge(self, claims: Sequence[ClaimQuery]) -> list[ClaimVerdict]:
        self.batches.append(len(claims))
        return [self._verdict(query) for query in claims]

    def _verdict(self, query: ClaimQuery) -> ClaimVerdict:
        if query.claim[0] == "dog":
            return ClaimVerdict(triplet=query.claim, verdict=Verdict.UNSCORED, reason="NO_DOGS")
        found = query.claim in (query.references or ())
        verdict = Verdict.SUPPORTED if found else Verdict.NOT_SUPPORTED
        return ClaimVerdict(triplet=query.claim, verdict=verdict, score=float(found))


def items() -> list[JudgeRequestItem]:
    claims = (SCENE[0], Triplet("cat", "on", "mat")), (Triplet("dog", "on", "mat"),), ()
    return [
        JudgeRequestItem(id=str(n), claims=some, reference_triplets=SCENE)
        for n, some in enumerate(claims)
    ]


def judge_of(server: llm.ScriptedLlm) -> LlmJudge:
    endpoint = Endpoint(url=server.url)
    settings = ChatSettings(
        endpoint=endpoint, model="m", retry=RetryPolicy(attempts=1, outage_seconds=0)
    )
    return LlmJudge("llm", ChatClient(settings))


async def test_all_claims_go_to_the_matcher_in_one_piece_and_the_rest_to_the_next() -> None:
    matcher = WordMatcher()
    async with llm.ScriptedLlm() as server:
        router = Router([MatcherJudge(matcher), judge_of(server)])
        first, second, third = await router.judge(items())
        await router.close()
    assert matcher.batches == [3]
    assert [(v.verdict.value, v.judge, v.score) for v in first.verdicts] == [
        ("supported", "matcher", 1.0),
        ("not_supported", "matcher", 0.0),
    ]
    assert [(v.verdict.value, v.judge) for v in second.verdicts] == [("not_supported", "llm")]
    assert [asked.judge for asked in second.asked] == ["matcher", "llm"]
    assert second.judging()[0]["declined"] == {"NO_DOGS": {"claims": 1, "detail": ""}}
    assert third.verdicts == ()
    assert server.chats == 1
    assert str(router.identity) == "words-1>m"


async def test_the_matcher_answers_for_a_server_that_is_down() -> None:
    async with llm.ScriptedLlm(llm.always(llm.error(503))) as server:
        router = Router([judge_of(server), MatcherJudge(WordMatcher())])
        first, *_ = await router.judge(items())
        await router.close()
    assert {v.judge for v in first.verdicts} == {"matcher"}
    assert first.judging()[0]["declined"] == {
        "JUDGE_SERVER_ERROR": {"claims": 2, "detail": "HTTP 503"}
    }
