"""The report card of a language model that judged claims."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from support import scripted_llm as llm
from support.archive_values import write_lines
from support.messages import expected_message
from support.metric_runs import SCENE
from support.running import read_rows
from support.tri_he_samples import judge_step

from hallujudge.judge_service.judges.judge_checks import Retrial
from hallujudge.judge_service.llm.prompt_templates import load_template
from hallujudge.labels.report_card import Flips
from hallujudge.sdk import Client, RunReport
from hallujudge.sdk.calibration import CalibrateOptions, calibrate, judge_card
from hallujudge.sdk.cli import main
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.schemas import judge_card_schema


def test_the_last_line_of_a_call_says_who_decided(capsys: pytest.CaptureFixture[str]) -> None:
    server = llm.ScriptedLlm(judge_step)
    stop = server.in_thread()
    try:
        with Client.embedded({"llm.url": server.url, "llm.model": "tiny"}) as client:
            client.score(
                "tri-he",
                responses=[{"image_id": 1, "claims": SCENE}],
                references=[{"image_id": 1, "triplets": SCENE}],
                options={"judge": "llm"},
                progress=True,
            )
    finally:
        stop()
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("scored 1 of 1 (100 %), ")
    assert line.endswith(", verdicts: llm 2")


def test_a_language_models_margins_state_probabilities(tmp_path: Path) -> None:
    server = llm.ScriptedLlm(judge_step)
    stop = server.in_thread()
    claims = [["man", "riding", "horse"], ["cat", "near", "horse"]]
    try:
        with Client.embedded({"llm.url": server.url, "llm.model": "tiny"}) as client:
            report = client.score(
                "tri-he",
                responses=[{"image_id": 1, "claims": claims}],
                references=[{"image_id": 1, "triplets": SCENE}],
                options={"judge": "llm"},
            )
    finally:
        stop()
    report.save(tmp_path)
    path = tmp_path / "items.jsonl"
    rows = read_rows(path)
    verdicts = [claim["verdict"] for claim in rows[0]["evidence"]["claims"]]
    for claim in rows[0]["evidence"]["claims"]:
        claim["margin"] = math.log(3)
    write_lines(path, rows)
    right = {"item": rows[0]["id"], "claim": 0, "label": verdicts[0]}
    wrong = {"item": rows[0]["id"], "claim": 1, "label": "supported"}
    assert verdicts[1] == "not_supported"
    card = judge_card(tmp_path, labels=(write_lines(tmp_path / "l.jsonl", [right, wrong]),))
    assert card.margins == "log-probability"
    assert card.reliability.ece == pytest.approx(0.25)
    assert card.reliability.brier == pytest.approx((0.25**2 + 0.75**2) / 2)
    [cost] = card.costs
    assert (cost.claims, cost.cost) == (2, None)
    assert cost.completion_tokens > 0
    Draft202012Validator(judge_card_schema()).validate(json.loads(card.to_text()))


CLAIMS = [[f"thing {n}", "near", "horse"] for n in range(20)]
FLIPS = {
    "repetition": 2,
    "rewording 1": 0,
    "rewording 2": 4,
    "rewording 3": 6,
    "5 claims a call": 4,
    "20 claims a call": 1,
    "reversed order": 2,
}


def fickle() -> llm.Step:
    """Reply that no claim is supported, with planted exceptions.

    The run asks once and a card twice. The second time, two claims are supported; reworded prompts
    support some more; of several claims in a call, the last of five and the first of twenty are.
    """
    asked: Counter[str] = Counter()

    def step(_number: int, body: llm.Body) -> llm.Reply:
        claims, system = llm.claims_of(body), body["messages"][0]["content"]
        if len(claims) > 1:
            lenient = {5: 5, 20: 1}[len(claims)]
            said = {c[0]: "supported" if int(c[0]) == lenient else "object1" for c in claims}
            return llm.completion(json.dumps(said, separators=(",", ":")))
        [claim] = claims
        place = CLAIMS.index(claim)
        asked[f"{system}{claim}"] += 1
        below = {name: FLIPS[f"rewording {name}"] for name in (1, 2, 3)}
        wording = next((n for n in below if system == prompt_of(f"judge_claim_reworded_{n}")), 0)
        limit = below[wording] if wording else 2 * (asked[f"{system}{claim}"] == 3)
        return llm.completion("supported" if place < limit else "object1")

    return step


def prompt_of(name: str) -> str:
    return load_template(name).parts[0][1]


def score(client: Client, **options: str) -> RunReport:
    return client.score(
        "tri-he",
        responses=[{"image_id": 1, "claims": CLAIMS}],
        references=[{"image_id": 1, "triplets": SCENE}],
        options={"judge": "llm", **options},
    )


@contextmanager
def judged_by(server: llm.ScriptedLlm, model: str = "tiny") -> Iterator[Client]:
    with Client.embedded({"llm.url": server.url, "llm.model": model}) as client:
        yield client


@pytest.fixture
def server() -> Iterator[llm.ScriptedLlm]:
    made = llm.ScriptedLlm(fickle())
    stop = made.in_thread()
    yield made
    stop()


def test_flips_are_those_that_were_planted(
    server: llm.ScriptedLlm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with judged_by(server) as client:
        score(client).save(tmp_path)
    out, flags = tmp_path / "card.json", ["--llm-url", server.url, "--llm-model"]
    command = ["judge", "card", str(tmp_path), "--reference", str(tmp_path)]
    assert main([*command, "--flips", "20", "--out", str(out), *flags, "tiny"]) == 0
    assert main([*command, "--flips", "20", *flags, "small"]) == 2
    shown = capsys.readouterr()
    assert expected_message("labels.report_card:its-judge-is-tiny-vllm-not-small") in shown.err
    kept = json.loads(out.read_text())
    Draft202012Validator(judge_card_schema()).validate(kept)
    assert {flip["change"]: flip["flips"] for flip in kept["flips"]} == FLIPS
    assert {flip["claims"] for flip in kept["flips"]} == {20}
    repeated = kept["flips"][0]
    assert repeated["share"] == 0.1
    assert 0 < repeated["ci_low"] < 0.1 < repeated["ci_high"] < 0.35
    assert "rewording 2" in shown.out
    assert kept["judge"].startswith("tiny (vllm 0.32.0),")


def test_runs_name_the_card_of_their_judge(server: llm.ScriptedLlm, tmp_path: Path) -> None:
    with judged_by(server) as client:
        first = score(client)
        first.save(tmp_path)
        card = judge_card(tmp_path, reference=tmp_path)
        report = score(client, card=card.to_text())
        mark = f",card={card.sha256[:12]}|"
        assert report.signature.replace(mark, "|") == first.signature
        assert report.settings == first.settings
        [note] = set(report.notes) - set(first.notes)
        errors = "rejects 100.0% of hallucinated claims"
        assert note == (
            expected_message(
                "judge_service.engine.judge_quality:the-report-card-of-tiny-vllm-it",
                card.sha256[:12],
                card.accuracy.agreement.ci_low,
                errors,
            )
        )
        # A card of a run that names one is of the same judge.
        report.save(tmp_path / "again")
        again = judge_card(tmp_path / "again", reference=tmp_path)
        assert again.judge == card.judge
        changed = card.to_text().replace('"labels": 20', '"labels": 2000')
        for text, problem in ((changed, "it was changed"), ("[1]", "not a judge's report card")):
            with pytest.raises(InvalidInputError, match=problem):
                score(client, card=text)
    with judged_by(server, "small") as client, pytest.raises(InvalidInputError, match="is of the"):
        score(client, card=card.to_text())
    flipped = replace(
        card,
        flips=tuple(
            Flips.of(
                Retrial(change=change, compared_with="", claims=20, flips=flips, unanswered=0), 0.95
            )
            for change, flips in FLIPS.items()
        ),
    )
    with judged_by(server) as client:
        notes = score(client, card=flipped.to_text()).notes
    assert any(
        expected_message("judge_service.engine.judge_quality:flips-of-verdicts-on-repetition-up-to")
        in n
        for n in notes
    )


def test_labels_of_whole_items_do_not_correct_scores_of_claims(
    server: llm.ScriptedLlm, tmp_path: Path
) -> None:
    with judged_by(server) as client:
        score(client).save(tmp_path)
    [row] = read_rows(tmp_path / "items.jsonl")
    labels = write_lines(tmp_path / "l.jsonl", [{"item": row["id"], "label": "supported"}])
    with pytest.raises(
        InvalidInputError,
        match=expected_message("labels.run_calibration:whole-items-but-this-runs-scores-count"),
    ):
        calibrate(tmp_path, CalibrateOptions(labels=(labels,)))


def test_flips_need_a_run_of_a_language_model(tmp_path: Path) -> None:
    with Client.embedded() as client:
        report = client.score("chair", responses={"1": "A cat."}, references={"1": ["dog"]})
    report.save(tmp_path)
    with pytest.raises(
        InvalidInputError,
        match=expected_message("labels.report_card:that-language-model-judged"),
    ):
        judge_card(tmp_path, reference=tmp_path, flips=5)
