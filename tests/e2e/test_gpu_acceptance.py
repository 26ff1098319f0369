"""The acceptance kit of GPU machines, run against the scripted server."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable
from http.client import HTTPConnection
from http.server import ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from support import scripted_llm, scripted_vllm

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
STAND_IN = f"{sys.executable} {scripted_vllm.__file__}"
# Claims whose truth the scripted judge, which compares words, cannot see.
INFERRED = "inverse"

Kit = Callable[..., tuple[int, dict[str, Any], str]]


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kit:
    """Runs the kit in this process and returns its exit code and reports."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    monkeypatch.setenv("HALLUJUDGE_GOLDENS", str(tmp_path / "goldens"))
    monkeypatch.setenv("PATH", "")
    main = runpy.run_path(str(FOLDER / "gpu" / "accept.py"))["main"]

    def run(*arguments: str) -> tuple[int, dict[str, Any], str]:
        out = tmp_path / "out"
        given = ["--model", "/models/judge", "--protocols", "chat", "--out", str(out)]
        code = main([*given, *arguments])
        report = json.loads((out / "report.json").read_text(encoding="utf-8"))
        return code, report, (out / "report.md").read_text(encoding="utf-8")

    return run


def test_a_judge_is_accepted(kit: Kit, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden = tmp_path / "goldens" / "tri_he"
    golden.mkdir(parents=True)
    image = {"triplets": ["(man, riding, horse)"], "all_object": ["man", "horse"]}
    claims = [["man", "riding", "horse"], ["man", "feeding", "horse"]]
    row = {"image_id": "1", "claims": claims, "verdicts": ["yes", "yes"]}
    (golden / "tri-he.json").write_text(json.dumps({"1": image}), encoding="utf-8")
    (golden / "matcher_claims.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    short = ["--claims", "40", "--concurrency", "1,8", "--level-seconds", "0.1"]
    code, report, page = kit("--vllm-command", STAND_IN, "--quantization", "fp8", *short)
    assert (code, report["passed"], report["server"]) == (0, True, "vllm 0.32.0")
    [chat] = [one for one in report["protocols"] if one["api"] == "chat"]
    assert {check["ok"] for check in chat["checks"]} <= {True, None}
    kinds = chat["own"]["kinds"]
    assert sum(of for _, of in kinds.values()) == chat["own"]["claims"] == 40
    assert {kind for kind, (right, of) in kinds.items() if right < of} == {INFERRED}
    assert chat["own"]["agreement"] == 1 - kinds[INFERRED][1] / 40
    assert chat["golden"] == {
        "claims": 2, "calls": 2, "unscored": 0, "why": "", "agreement": 0.5,
        "kinds": {"golden": [1, 2]},
    }  # fmt: skip
    assert [level["concurrency"] for level in chat["levels"]] == [1, 8]
    for level in chat["levels"]:
        assert level["claims"] % 20 == level["unscored"] == 0
        assert level["bench_requests_per_second"] == 50.0
        assert level["ratio"] == level["claims_per_second"] / 50
    assert (report["crash"]["unscored"], report["crash"]["starts"]) == (0, 2)
    assert "/models" not in page + json.dumps(report)
    assert capsys.readouterr().out == page + "\n"


def served(kit: Kit, step: scripted_llm.Step) -> dict[str, Any]:
    """Return what the kit reports of a running server by chat; the kit must end with 1."""
    server = scripted_llm.ScriptedLlm(step, model="/models/judge")
    stop = server.in_thread()
    try:
        short = ["--claims", "20", "--concurrency", "1", "--level-seconds", "0.1"]
        code, report, page = kit("--url", server.url, "--vllm-command", "no-such-vllm", *short)
    finally:
        stop()
    assert (code, report["passed"]) == (1, False)
    assert "Not run: the server was not started here." in page
    assert f"| server | {report['server'] or 'not stated'} |" in page
    assert "/models" not in page + json.dumps(report)
    chat: dict[str, Any] = report["protocols"][0]
    return chat


def test_a_judge_without_verdicts_is_not(kit: Kit) -> None:
    chat = served(kit, scripted_llm.saying("I cannot tell /models/judge."))
    assert (chat["own"]["unscored"], chat["own"]["agreement"]) == (20, None)
    assert chat["own"]["why"].startswith("REPLY_OUT_OF_CHOICE: 'I cannot tell judge.'")
    assert chat["levels"][0]["unscored"] == chat["levels"][0]["claims"]
    assert chat["levels"][0]["bench_not_run"] == "vllm bench serve cannot be started"


def test_a_judge_that_cannot_be_asked_is_not(kit: Kit) -> None:
    chat = served(kit, scripted_llm.always(scripted_llm.error(404, "no such path")))
    assert "no such path" in chat["failed"]
    assert "levels" not in chat


def test_the_server_around_generate_answers_chat_and_refuses_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("torch", "transformers"):
        pytest.importorskip(package, reason="not installed: pip install 'hallujudge[matcher]'")
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    script = runpy.run_path(str(FOLDER / "gpu" / "generate_server.py"))
    handler = script["handler_of"](script["model_of"](tmp_path, "tiny", "cpu"), "llama")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        said = {"model": "llama", "messages": [{"role": "user", "content": "A cat?"}]}
        found = [
            answered(server.server_port, *one)
            for one in (
                ("GET", "/v1/models", None),
                ("POST", "/v1/chat/completions", said),
                ("POST", "/v1/completions", {"model": "llama", "prompt": "A cat?"}),
                ("GET", "/version", None),
            )
        ]
        server.shutdown()
        thread.join()
    assert [status for status, _ in found] == [200, 200, 404, 404]
    assert found[0][1]["data"][0]["id"] == "llama"
    assert found[1][1]["usage"]["completion_tokens"] == 16
    assert "/v1/completions" in found[2][1]["error"]["message"]


def answered(port: int, method: str, path: str, content: object) -> tuple[int, Any]:
    """Return the status and the content of an answer."""
    connection = HTTPConnection("127.0.0.1", port)
    body = None if content is None else json.dumps(content)
    connection.request(method, path, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    found = response.status, json.loads(response.read())
    connection.close()
    return found


def test_labels_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    scenes = runpy.run_path(str(FOLDER / "gpu" / "known_claims.py"))["scenes"]
    drawn = list(islice(scenes(7), 20))
    assert drawn == list(islice(scenes(7), 20)) != list(islice(scenes(8), 20))
    for scene in drawn:
        graph = scene.item.reference_triplets
        assert len(set(scene.item.claims)) == 20
        assert sum(one.supported for one in scene.known) == 10
        assert scene.item.claims == tuple(one.claim for one in scene.known)
        for one in scene.known:
            assert (one.claim in graph) == (one.kind == "stated")
            there = {one.claim.subject, one.claim.object} <= {*scene.item.reference_objects}
            assert there or one.claim.relation == "is" or one.kind == "absent"
