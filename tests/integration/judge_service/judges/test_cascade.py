"""Cascades at scripted servers: margins of log-probabilities, and the verdict cache."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

from support import scripted_llm as llm
from support.llm_judges import CLAIMS, as_bytes, item, judge_of, shown

from hallujudge.judge_service.judges import counting_verdicts
from hallujudge.judge_service.judges.choice_judge import ChoiceJudge, Chosen
from hallujudge.judge_service.judges.judge_rules import Escalation
from hallujudge.judge_service.judges.questions import Question
from hallujudge.judge_service.judges.several_judges import Router
from hallujudge.judge_service.llm.prompt_templates import load_template
from hallujudge.judge_service.llm.verdict_cache import VerdictCache

SURE, UNSURE = 0.9, 0.6
SURE_MARGIN = math.log(SURE / (1 - SURE))


def sure_of_people(_number: int, body: llm.Body) -> llm.Reply:
    """Reply "supported" to every claim: surely if it is about a man, hardly otherwise."""
    share = SURE if llm.claims_of(body)[0][0] == "man" else UNSURE
    return llm.stating({"supported": share, "object1": 1 - share})


async def test_a_second_run_writes_the_same_and_another_margin_asks_others(tmp_path: Path) -> None:
    async with llm.ScriptedLlm(sure_of_people) as one, llm.ScriptedLlm() as two:
        cache = VerdictCache(tmp_path / "c")

        async def run(escalation: Escalation | None) -> tuple[list[str], bytes]:
            judges = [judge_of(one, cache=cache), judge_of(two, "fallback", cache=cache)]
            router = Router(judges, escalation)
            with counting_verdicts(given := Counter[str]()):
                found = await router.judge([item()])
            await router.close()
            assert given == {a.judge: a.answered for a in found[0].asked}, "only what is kept"
            return [v.judge for v in found[0].verdicts], as_bytes(found)

        first = await run(Escalation(below=SURE_MARGIN - 0.01))
        again = await run(Escalation(below=SURE_MARGIN - 0.01))
        assert first == again
        assert first[0] == ["llm", "fallback", "llm", "llm"]
        assert (one.chats, two.chats) == (4, 1)
        # What the fallback once said does not count where the first judge's margin is enough.
        assert (await run(Escalation(below=0.1)))[0] == ["llm"] * 4
        assert (await run(None))[0] == ["llm"] * 4
        assert (one.chats, two.chats) == (4, 1)
        assert (await run(Escalation(below=SURE_MARGIN + 0.01)))[0] == ["fallback"] * 4
        assert (one.chats, two.chats) == (4, 4)
        await cache.close()


async def test_a_failed_first_judge_is_not_asked_again_in_a_cascade(tmp_path: Path) -> None:
    async with llm.ScriptedLlm(llm.always(llm.error(500))) as one, llm.ScriptedLlm() as two:
        cache = VerdictCache(tmp_path / "c")
        results = []
        for _ in range(2):
            judges = [judge_of(one, cache=cache), judge_of(two, "fallback", cache=cache)]
            router = Router(judges, Escalation(below=0.1))
            results += await router.judge([item(CLAIMS[0])])
            await router.close()
        await cache.close()
    assert as_bytes(results[:1]) == as_bytes(results[1:])
    assert shown(results[0]) == [("supported", None)]
    assert two.chats == 1


def question(about: str) -> Question:
    return Question(
        template=load_template("event_hallusion_entire"),
        messages=[{"role": "user", "content": about}],
        claims=(0,),
        choices=("yes", "no"),
        keyed=False,
    )


def sure_of_dogs(_number: int, body: llm.Body) -> llm.Reply:
    share = SURE if "dog" in llm.prompt_of(body) else UNSURE
    return llm.stating({"yes": share, "no": 1 - share})


async def test_questions_with_small_margins_go_to_the_next_judge(tmp_path: Path) -> None:
    async with (
        llm.ScriptedLlm(sure_of_dogs) as one,
        llm.ScriptedLlm(llm.saying("no")) as two,
    ):
        cache = VerdictCache(tmp_path / "c")

        async def run(escalation: Escalation) -> list[Chosen]:
            judges = [judge_of(one, cache=cache), judge_of(two, "fallback", cache=cache)]
            asked = ChoiceJudge(judges, [load_template("event_hallusion_entire")], escalation)
            with counting_verdicts(given := Counter[str]()):
                found = await asked.choose([question("a dog"), question("a cat")])
            assert given == Counter(c.asked[-1].judge for c in found if c.choice)
            for judge in judges:
                await judge.close()
            return found

        found = await run(Escalation(below=1.0))
        assert await run(Escalation(below=1.0)) == found
        assert [each.choice for each in found] == ["yes", "no"]
        assert [part.judge for part in found[1].asked] == ["llm", "fallback"]
        # The reply that was not kept is paid for anyway.
        assert found[1].asked[0].usage.calls == 1
        assert (one.chats, two.chats) == (2, 1)
        for _ in range(2):
            left = (await run(Escalation(below=1.0, abstain=True)))[1]
            assert (left.choice, left.reason) == ("", "MARGIN_TOO_SMALL")
        assert [each.choice for each in await run(Escalation(below=0.1))] == ["yes", "yes"]
        assert (one.chats, two.chats) == (2, 1)
        await cache.close()
