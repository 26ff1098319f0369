"""Several judges that vote on each claim, at scripted servers."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import scripted_llm as llm
from support.llm_judges import CLAIMS, item, judge_of
from support.sizes import sized

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.judges import counting_verdicts
from hallujudge.judge_service.judges.judge_rules import PanelRule
from hallujudge.judge_service.judges.several_judges import Panel
from hallujudge.judge_service.llm.verdict_cache import VerdictCache
from hallujudge.labels.panel_card import dawid_skene, weights_of_labels
from hallujudge.metrics.framework.claims import Verdict


def saying(answers: Mapping[str, str]) -> Any:
    """Return a script that answers by the first object of the claim."""

    def reply(_number: int, body: llm.Body) -> llm.Reply:
        return llm.completion(answers.get(llm.claims_of(body)[0][0], "supported"))

    return reply


def rule(members: str = "a,b,c", share: str = "", weights: Any = None) -> PanelRule:
    text = json.dumps(weights) if weights else ""
    made = PanelRule.of(members=members, share=share, weights=text)
    assert made is not None
    return made


def learnt(prior: float = 0.0, **weights: tuple[float, float]) -> dict[str, Any]:
    return {
        "schema": "hallujudge.judge-panel/1",
        "prior": prior,
        "weights": {
            name: {"supported": votes_for, "not_supported": against}
            for name, (votes_for, against) in weights.items()
        },
    }


async def votes_of(
    answers: Mapping[str, Mapping[str, str]], how: PanelRule, cache: VerdictCache | None = None
) -> Any:
    """Return what a panel of scripted judges returns on one item, and their numbers of calls."""
    servers = {name: llm.ScriptedLlm(saying(said)) for name, said in answers.items()}
    try:
        for server in servers.values():
            await server.__aenter__()
        judges = [judge_of(server, name, cache=cache) for name, server in servers.items()]
        panel = Panel(judges, how)
        with counting_verdicts(given := Counter[str]()):
            (judged,) = await panel.judge([item()])
        assert +given == +Counter({each.judge: each.answered for each in judged.asked})
        await panel.close()
    finally:
        for server in servers.values():
            await server.__aexit__(None, None, None)
    return judged, {name: server.chats for name, server in servers.items()}


FIRST = CLAIMS[0][0]


async def test_the_majority_decides_and_dissent_is_counted() -> None:
    said = {"a": {FIRST: "object1"}, "b": {FIRST: "object2"}, "c": {}}
    judged, calls = await votes_of(said, rule())
    verdict, *others = judged.verdicts
    assert (verdict.verdict, verdict.judge) == (Verdict.NOT_SUPPORTED, "panel")
    assert verdict.part is not None
    assert verdict.score == pytest.approx(1 / 3)
    assert verdict.margin == 1
    same = [other for other in others if other.triplet[0] != FIRST]
    assert all(other.verdict is Verdict.SUPPORTED and other.margin == 3 for other in same)
    parts = {part["judge"]: part for part in judged.judging()}
    times = sum(claim[0] == FIRST for claim in CLAIMS)
    assert [parts[name]["dissents"] for name in "abc"] == [0, 0, times]
    assert parts["c"]["votes"][0] == "supported"
    assert set(calls.values()) == {len(CLAIMS)}


async def test_a_tie_has_no_verdict_and_names_the_votes() -> None:
    judged, _ = await votes_of({"a": {FIRST: "relation"}, "b": {}}, rule("a,b"))
    tied = judged.verdicts[0]
    assert (tied.verdict, tied.reason) == (Verdict.UNSCORED, "PANEL_TIED")
    assert tied.detail == "a: not_supported, b: supported"


async def test_a_member_without_a_verdict_does_not_vote() -> None:
    judged, _ = await votes_of({"a": {FIRST: "hm"}, "b": {FIRST: "relation"}}, rule("a,b"))
    assert judged.verdicts[0].verdict is Verdict.NOT_SUPPORTED
    assert judged.judging()[0]["declined"]["REPLY_OUT_OF_CHOICE"]["claims"] >= 1
    judged, _ = await votes_of({"a": {FIRST: "hm"}, "b": {FIRST: "hm"}}, rule("a,b"))
    assert judged.verdicts[0].reason == "REPLY_OUT_OF_CHOICE"


async def test_weights_outvote_a_majority_and_state_a_probability() -> None:
    weights = learnt(0.5, a=(3.0, -3.0), b=(1.0, -1.0), c=(1.0, -1.0))
    judged, _ = await votes_of({"a": {FIRST: "object1"}, "b": {}, "c": {}}, rule(weights=weights))
    verdict = judged.verdicts[0]
    assert verdict.verdict is Verdict.NOT_SUPPORTED
    assert verdict.score == pytest.approx(1 / (1 + math.exp(0.5)), abs=1e-6)


async def test_the_others_vote_on_the_drawn_share_alone_and_it_is_the_same_again() -> None:
    shares = [await votes_of({"a": {}, "b": {}}, rule("a,b", "0.5")) for _ in range(2)]
    (one, calls), (two, _) = shares
    assert one.judging()[1]["votes"] == two.judging()[1]["votes"]
    assert calls["a"] == len(CLAIMS)
    assert calls["b"] == sum(vote != "" for vote in one.judging()[1]["votes"])
    assert all(verdict.verdict is Verdict.SUPPORTED for verdict in one.verdicts)


async def test_a_second_run_pays_for_no_vote(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "c")
    said: dict[str, dict[str, str]] = {"a": {}, "b": {FIRST: "object1"}, "c": {}}
    first, _ = await votes_of(said, rule(), cache)
    second, calls = await votes_of(said, rule(), cache)
    await cache.close()
    assert set(calls.values()) == {0}
    assert first.verdicts == second.verdicts


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"members": "llm", "share": "", "weights": ""}, "two or more different judges"),
        ({"members": "llm,llm", "share": "", "weights": ""}, "two or more different judges"),
        ({"members": "a,b", "share": "0", "weights": ""}, "above 0 and up to 1"),
        ({"members": "a,b", "share": "x", "weights": ""}, "above 0 and up to 1"),
        ({"members": "", "share": "0.5", "weights": ""}, "option panel_share is about a panel"),
        ({"members": "a,b", "share": "", "weights": "{}"}, "is not a panel's weights"),
        (
            {"members": "a,b", "share": "", "weights": json.dumps(learnt(a=(1, -1)))},
            "has no weights of b",
        ),
        (
            {"members": "a,b", "share": "", "weights": json.dumps(learnt(a=(1, float("nan"))))},
            "not a finite number",
        ),
    ],
)
def test_options_that_cannot_be_used(given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        PanelRule.of(**given)


def test_weights_of_labels_by_hand() -> None:
    votes = np.array([[1.0, 0.0], [1.0, np.nan], [0.0, 1.0], [1.0, 1.0]])
    model = weights_of_labels(votes, np.array([1.0, 1.0, 0.0, 0.0]))
    assert model.sensitivity == pytest.approx([3 / 4, 1 / 3])
    assert model.leniency == pytest.approx([2 / 4, 3 / 4])
    assert model.votes_for[0] == pytest.approx(math.log(1.5))
    assert model.supported == 0.5
    odds = math.log(1.5) + math.log((2 / 3) / (1 / 4))
    assert model.posterior(votes)[0] == pytest.approx(1 / (1 + math.exp(-odds)))


def test_dawid_skene_finds_the_error_rates_of_independent_judges() -> None:
    rng = np.random.default_rng(5)
    truth = rng.random(sized(5_000, 20_000)) < 0.7
    rates = ((0.95, 0.10), (0.80, 0.30), (0.65, 0.25))
    votes = np.stack(
        [rng.random(len(truth)) < np.where(truth, s, f) for s, f in rates], axis=1
    ).astype(float)
    votes[rng.random(votes.shape) < 0.1] = np.nan
    votes = votes[~np.isnan(votes).all(axis=1)]
    model = dawid_skene(votes)
    assert model.sensitivity == pytest.approx([s for s, _ in rates], abs=0.03)
    assert model.leniency == pytest.approx([f for _, f in rates], abs=0.05)
    assert model.supported == pytest.approx(0.7, abs=0.03)
