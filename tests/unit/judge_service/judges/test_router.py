"""Routers that can't be made; which verdicts with small margins go to the next judge."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from support.messages import expected_message

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.judges import (
    Asked,
    Declined,
    JudgedItem,
    JudgeIdentity,
    JudgeRequestItem,
    unscored_claim,
)
from hallujudge.judge_service.judges.judge_rules import Escalation
from hallujudge.judge_service.judges.llm_judge import LlmJudge
from hallujudge.judge_service.judges.several_judges import Router, history_before
from hallujudge.judge_service.llm.chat_settings import ChatSettings
from hallujudge.judge_service.llm.client import ChatClient
from hallujudge.judge_service.llm.http import Endpoint
from hallujudge.judge_service.settings.connection import Secret
from hallujudge.metrics.framework.claims import ClaimParts, ClaimVerdict, Triplet, Verdict


def test_routers_need_judges_of_different_names() -> None:
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.judges.several_judges:different-names-got-none"),
    ):
        Router([])
    endpoint = Endpoint(url="http://127.0.0.1:1/v1", key=Secret("k"))
    judge = LlmJudge("a", ChatClient(ChatSettings(endpoint=endpoint, model="m")))
    with pytest.raises(InvalidInputError, match="got a, a"):
        Router([judge, judge])
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.judges.llm_judge:claims-per-call-is"),
    ):
        LlmJudge("a", judge.client, claims_per_call=0)


SMALL = "MARGIN_TOO_SMALL"
CLAIMS = tuple(Triplet(word, "near", "tree") for word in ("sure", "doubtful", "silent", "failed"))
# Subject -> the margin of the first judge; None if it has none.
MARGINS = {"sure": -0.4, "doubtful": 0.05, "silent": None}


class Fixed:
    """A judge that says one thing, and keeps what it was asked."""

    def __init__(self, name: str, verdict: Verdict, *, fails: bool = False) -> None:
        self.name, self.verdict, self.fails = name, verdict, fails
        self.asked: list[str] = []

    @property
    def identity(self) -> JudgeIdentity:
        return JudgeIdentity(kind="fixed", model=self.name, parameters=(("a", "1"),))

    async def judge(
        self, items: Sequence[JudgeRequestItem], *, has_fallback: bool = False
    ) -> list[JudgedItem]:
        return [
            JudgedItem(
                verdicts=tuple(map(self.verdict_on, item.claims)), asked=(Asked(judge=self.name),)
            )
            for item in items
        ]

    def verdict_on(self, claim: ClaimParts) -> ClaimVerdict:
        self.asked.append(claim[0])
        if claim[0] == "failed" or self.fails:
            return unscored_claim(claim, "JUDGE_TIMEOUT", "slow", self.name)
        return ClaimVerdict(triplet=claim, verdict=self.verdict, margin=MARGINS[claim[0]])


async def judged(*judges: Fixed, escalation: Escalation | None = None) -> JudgedItem:
    router = Router(judges, escalation)
    request = JudgeRequestItem(id="1", claims=CLAIMS, reference_triplets=CLAIMS[:1])
    [found] = await router.judge([request])
    return found


def pair(*, fails: bool = False) -> tuple[Fixed, Fixed]:
    first = Fixed("matcher", Verdict.NOT_SUPPORTED)
    return first, Fixed("llm", Verdict.SUPPORTED, fails=fails)


async def test_verdicts_with_small_margins_go_to_the_next_judge() -> None:
    first, second = pair()
    found = await judged(first, second, escalation=Escalation(below=0.1))
    assert [v.judge for v in found.verdicts] == ["matcher", "llm", "llm", ""]
    assert [v.verdict for v in found.verdicts[:3]] == [
        Verdict.NOT_SUPPORTED,
        Verdict.SUPPORTED,
        Verdict.SUPPORTED,
    ]
    assert first.asked == ["sure", "doubtful", "silent", "failed"]
    assert second.asked == ["doubtful", "silent", "failed"]
    [of_first, of_second] = found.judging()
    assert (of_first["answered"], of_second["answered"]) == (1, 2)
    assert of_first["declined"] == {
        "JUDGE_TIMEOUT": {"claims": 1, "detail": "slow"},
        SMALL: {
            "claims": 2,
            "detail": expected_message("judge_service.judges.judge_rules:margin-and-is-needed"),
        },
    }


async def test_without_an_escalation_every_verdict_is_kept() -> None:
    first, second = pair()
    found = await judged(first, second)
    assert [v.judge for v in found.verdicts] == ["matcher", "matcher", "matcher", ""]
    assert second.asked == ["failed"]


async def test_without_a_next_judge_a_small_margin_is_unscored() -> None:
    found = await judged(pair()[0], escalation=Escalation(below=0.1))
    assert [v.reason for v in found.verdicts] == ["", SMALL, SMALL, "JUDGE_TIMEOUT"]
    assert found.verdicts[2].detail == expected_message(
        "metrics.framework.results:matcher-margin-too-small-no-margin-and"
    )


async def test_abstaining_leaves_small_margins_unscored_and_still_falls_back() -> None:
    first, second = pair()
    found = await judged(first, second, escalation=Escalation(below=0.1, abstain=True))
    assert [v.reason for v in found.verdicts] == ["", SMALL, SMALL, "JUDGE_TIMEOUT"]
    assert second.asked == ["failed"]


async def test_a_small_margin_does_not_count_when_the_next_judge_fails() -> None:
    found = await judged(*pair(fails=True), escalation=Escalation(below=0.1))
    assert found.verdicts[1].verdict is Verdict.UNSCORED
    assert found.verdicts[1].reason == "JUDGE_TIMEOUT"
    assert (
        expected_message("metrics.framework.results:matcher-margin-too-small-margin")
        in found.verdicts[1].detail
    )


def test_a_language_model_that_was_held_to_a_choice_is_least_sure() -> None:
    """A matcher's sign only says which verdict it gives."""
    rule = Escalation(below=0.1)
    assert rule.declines("matcher", -0.4) is None
    assert rule.declines("llm", 0.4) is None
    declined = rule.declines("llm", -0.4)
    assert declined == Declined("llm", SMALL, "margin -0.4, and 0.1 is needed")


@pytest.mark.parametrize(
    ("kept", "names", "now", "escalates", "history"),
    [
        # The first judge has no history, whatever it was when its verdict was kept.
        ([("llm", "JUDGE_TIMEOUT")], [], [], True, []),
        # Its failure is repeated rather than tried again.
        ([("llm", "JUDGE_TIMEOUT")], ["llm"], [], True, [("llm", "JUDGE_TIMEOUT")]),
        # Margins are compared again: in a run without them, and before the first judge is known.
        ([("llm", SMALL)], ["llm"], [], False, None),
        ([("llm", SMALL)], ["llm"], [], True, None),
        ([], ["llm"], [], True, None),
        ([], ["llm"], [], False, []),
        # What this run knows of the first judge replaces what was kept.
        ([("llm", SMALL)], ["llm"], [("llm", SMALL)], True, [("llm", SMALL)]),
        ([], ["llm"], [("llm", SMALL)], True, [("llm", SMALL)]),
    ],
)
def test_verdicts_of_the_cache_count_where_the_first_judge_is_settled(
    kept: list[tuple[str, str]],
    names: list[str],
    now: list[tuple[str, str]],
    escalates: bool,
    history: list[tuple[str, str]] | None,
) -> None:
    found = history_before(
        [Declined(*each) for each in kept],
        names,
        [Declined(*each) for each in now],
        escalates=escalates,
    )
    expected = None if history is None else tuple(Declined(*each) for each in history)
    assert found == expected


def cascade(**change: object) -> str:
    content = {
        "schema": "hallujudge.cascade/1",
        "judge": "matcher,a=1",
        "escalate_below": 0.125,
        "target": 0.9,
        "confidence": 0.95,
        "labels": 240,
        "reference": "",
    }
    return json.dumps(content | change)


def test_a_learnt_margin_names_its_file_and_its_promise() -> None:
    made = Escalation.of(below="", cascade=cascade(), abstain="yes")
    assert made is not None
    first, second = pair()
    made.check(first.identity)
    router = Router([first, second], made)
    assert router.identity.parameters[2:] == (
        ("escalate_below", "0.125"),
        ("cascade", made.promise.sha256[:12] if made.promise else ""),
        ("abstain", "yes"),
    )
    [note] = router.notes
    assert expected_message("judge_service.judges.judge_rules:margin-of-at-least-are-kept") in note
    assert expected_message("metrics.infact.operators:at-least-with-confidence-of") in note
    assert "240 labels" in note
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.judges.judge_rules:learnt-from-verdicts-of-matcher"),
    ):
        made.check(second.identity)
    other = Escalation.of(below="", cascade=cascade(labels=241), abstain="no")
    assert Router([first], other).identity != Router([first], made).identity


def test_a_margin_that_a_reference_judge_taught_says_so() -> None:
    made = Escalation.of(below="", cascade=cascade(reference="llm,m=1"), abstain="no")
    assert made is not None
    note = made.note("matcher")
    assert (
        expected_message("judge_service.judges.judge_rules:they-agree-with-verdicts-of-llm-in")
        in note
    )
    assert "test on 240 verdicts;" in note


def test_a_margin_set_by_hand_promises_nothing() -> None:
    made = Escalation.of(below="0.1", cascade="", abstain="")
    assert made == Escalation(below=0.1)
    assert "set by hand" in made.note("llm")
    made.check(JudgeIdentity(kind="llm", model="any"))
    assert Escalation.of(below="", cascade="", abstain="no") is None


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"below": "0.1", "cascade": cascade()}, "not both"),
        ({"abstain": "yes"}, "needs a margin"),
        ({"below": "much"}, "'much'; give a number"),
        ({"below": "nan"}, "'nan'; give a number"),
        ({"cascade": "[" * 100_000}, "not a cascade.json"),
        ({"cascade": "{}"}, "not a cascade.json"),
        ({"cascade": cascade(schema="other")}, "its schema is 'other'"),
        ({"cascade": cascade(target="high")}, "not a cascade.json"),
        ({"cascade": cascade(target=float("nan"))}, "not a cascade.json"),
        ({"cascade": cascade(confidence=float("inf"))}, "not a cascade.json"),
        ({"cascade": cascade(escalate_below=None)}, "too few labels"),
    ],
)
def test_what_is_not_a_margin_is_refused(given: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        Escalation.of(**{"below": "", "cascade": "", "abstain": "no"} | given)
