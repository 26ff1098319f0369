"""``hallujudge graph suggest`` with every source, as a user runs it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.choice_judge import scripted
from support.messages import expected_message
from support.qa_samples import write_lines
from support.running import here
from support.wordnet_sample import write_wordnet

GRAPH = {"couch": "sofa", "domestic dog": "dog", "table": "table"}
KEY = "sk-never-to-be-seen-1234567890"


def item(name: str, *unknown: object, outcome: str = "scored") -> dict[str, Any]:
    evidence = {"domain": "robotics", "objects": {"unknown": list(unknown)}}
    return {"id": name, "outcome": outcome, "evidence": evidence if outcome == "scored" else None}


@pytest.fixture
def inputs(tmp_path: Path) -> tuple[str, Path]:
    graph = tmp_path / "g.json"
    graph.write_text(json.dumps(GRAPH))
    rows = [
        item("a", "zibble", "kitchen table"),
        item("b", "zibble", "gizmo", "x" * 10_000, 7, " "),
        item("c", outcome="unscored"),
    ]
    return str(graph), write_lines(tmp_path / "items.jsonl", rows)


def suggest(inputs: tuple[str, Path], folder: Path, *more: str | Path) -> tuple[int, str, str]:
    graph, items = inputs
    run = here(
        *("graph", "suggest", graph, "--items", items, "--kind", "objects"),
        *("--out", folder / "patch.json", *more),
    )
    assert "Traceback" not in run.stderr
    return run.returncode, run.stdout, run.stderr


def candidates(folder: Path) -> dict[str, list[tuple[str, str]]]:
    patch = json.loads((folder / "patch.json").read_text(encoding="utf-8"))
    return {
        entry["form"]: [(c["root"], c["source"]) for c in entry["candidates"]]
        for entry in patch["entries"]
    }


def dog_step(_number: int, body: llm.Body) -> llm.Reply:
    """A model that calls everything a dog but tables."""
    block = re.fullmatch(r"<<<WORDS\n(.*)\nWORDS>>>", llm.prompt_of(body), re.DOTALL)
    assert block is not None
    lines = [json.loads(line) for line in block[1].split("\n")]
    return llm.completion(
        json.dumps({n: "none of these" if "table" in word else "dog" for n, word, *_ in lines})
    )


def test_every_source_is_named(inputs: tuple[str, Path], tmp_path: Path) -> None:
    wordnet = write_wordnet(tmp_path / "wordnet")
    with scripted(dog_step) as server:
        code, said, notes = suggest(
            inputs, tmp_path, "--wordnet", wordnet, "--llm-url", server.url, "--llm-model", "m"
        )
    assert code == 0, notes
    assert server.chats == 1
    assert candidates(tmp_path) == {
        "zibble": [("dog", "wordnet+llm")],
        "gizmo": [("dog", "llm")],
        "kitchen table": [("table", "words")],
    }
    assert "dog 0.88 (wordnet+llm)" in said
    assert "3 unknown keywords (3 pending)" in said
    assert "roots by spelling, words, wordnet, llm" in notes


def test_without_more_only_spelling_and_words_are_asked(
    inputs: tuple[str, Path], tmp_path: Path
) -> None:
    code, said, notes = suggest(inputs, tmp_path, "--wordnet", "none")
    assert code == 0
    assert candidates(tmp_path) == {
        "zibble": [], "gizmo": [], "kitchen table": [("table", "words")],
    }  # fmt: skip
    assert "roots by spelling, words\n" in notes
    assert "?     2  zibble  <- nothing close" in said


@pytest.mark.parametrize("missing", ["HALLUJUDGE_LLM_URL", "HALLUJUDGE_LLM_MODEL"])
def test_half_a_language_model_in_the_settings_is_not_asked(
    inputs: tuple[str, Path], tmp_path: Path, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who has set one of both for other commands can suggest roots without a model."""
    with scripted(dog_step) as server:
        monkeypatch.setenv("HALLUJUDGE_LLM_URL", server.url)
        monkeypatch.setenv("HALLUJUDGE_LLM_MODEL", "m")
        monkeypatch.delenv(missing)
        code, _, notes = suggest(inputs, tmp_path, "--wordnet", "none")
    assert (code, server.chats) == (0, 0), notes
    assert "roots by spelling, words\n" in notes


def test_a_language_model_that_is_asked_for_needs_its_name(
    inputs: tuple[str, Path], tmp_path: Path
) -> None:
    with scripted(dog_step) as server:
        code, _, notes = suggest(inputs, tmp_path, "--wordnet", "none", "--llm-url", server.url)
    assert (code, server.chats) == (2, 0), notes
    assert "--llm-url is set without a model; set --llm-model" in notes


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (llm.completion("I think dogs"), "REPLY_NOT_JSON"),
        (llm.completion('{"1": "dog"}', finish="length"), "REPLY_TRUNCATED"),
        (llm.completion(None, refusal="no"), "JUDGE_REFUSED"),
        (llm.error(401, "who are you"), "set the right key"),
        (llm.error(404, "no such model"), "model name 'm'"),
    ],
)
def test_a_failure_leaves_the_others_and_is_reported(
    inputs: tuple[str, Path], tmp_path: Path, reply: llm.Reply, reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    wordnet = write_wordnet(tmp_path / "wordnet")
    with scripted(llm.always(reply)) as server:
        monkeypatch.setenv("HALLUJUDGE_LLM_API_KEY", KEY)
        monkeypatch.setenv("HALLUJUDGE_LLM_URL", server.url)
        monkeypatch.setenv("HALLUJUDGE_LLM_MODEL", "m")
        monkeypatch.setenv("HALLUJUDGE_LLM_ATTEMPTS", "1")
        code, said, notes = suggest(inputs, tmp_path, "--wordnet", wordnet)
    assert code == 0
    assert candidates(tmp_path)["zibble"] == [("dog", "wordnet")]
    assert "note: llm:" in notes
    assert reason in notes
    assert KEY not in said + notes


def test_answers_are_kept_for_the_next_time(
    inputs: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALLUJUDGE_VERDICT_CACHE", str(tmp_path / "kept.sqlite"))
    with scripted(dog_step) as server:
        flags = ("--wordnet", "none", "--llm-url", server.url, "--llm-model", "m")
        first = suggest(inputs, tmp_path, *flags), (tmp_path / "patch.json").read_bytes()
        second = suggest(inputs, tmp_path, *flags), (tmp_path / "patch.json").read_bytes()
    assert first == second
    assert server.chats == 1


def test_decisions_in_the_file_are_kept(inputs: tuple[str, Path], tmp_path: Path) -> None:
    graph, _ = inputs
    flags = ("--wordnet", "none")
    assert suggest(inputs, tmp_path, *flags)[0] == 0
    path = tmp_path / "patch.json"
    run = here("graph", "merge", graph, path, "--out", tmp_path / "same.json")
    assert (run.returncode, "nothing in" in run.stderr) == (0, True)
    content = json.loads(path.read_text())
    zibble, gizmo, _ = content["entries"] = sorted(
        content["entries"], key=lambda e: ["zibble", "gizmo", "kitchen table"].index(e["form"])
    )
    zibble |= {"decision": "accept", "root": "dog"}
    gizmo |= {"decision": "reject"}
    content["entries"].append({"form": "gone", "decision": "accept", "root": "sofa"})
    path.write_text(json.dumps(content))
    # Nothing but what is pending is accepted by its score.
    code, said, notes = suggest(inputs, tmp_path, *flags, "--accept-above", "0")
    assert code == 0
    assert expected_message("studies.graph_commands:decisions-of-the-file-that-was-there") in notes
    assert "4 unknown keywords (3 accept, 1 reject)" in said
    decisions = {
        entry["form"]: (entry["decision"], entry["root"])
        for entry in json.loads(path.read_text())["entries"]
    }
    assert decisions == {
        "zibble": ("accept", "dog"),
        "gizmo": ("reject", ""),
        "kitchen table": ("accept", "table"),
        "gone": ("accept", "sofa"),
    }
    run = here("graph", "merge", graph, path, "--out", tmp_path / "grown.json")
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--accept", "zibble="), "the root is empty"),
        (("--accept", "zibble=dog", "--reject", "zibble"), "both accepted and rejected"),
    ],
)
def test_decisions_that_make_no_patch_are_refused(
    inputs: tuple[str, Path], tmp_path: Path, flags: tuple[str, ...], says: str
) -> None:
    code, _, notes = suggest(inputs, tmp_path, "--wordnet", "none", *flags)
    assert (code, says in notes) == (2, True)
    assert not (tmp_path / "patch.json").exists()


def test_a_file_that_is_not_a_patch_is_not_overwritten(
    inputs: tuple[str, Path], tmp_path: Path
) -> None:
    path = tmp_path / "patch.json"
    path.write_text('{"mine": "own"}')
    code, _, notes = suggest(inputs, tmp_path, "--wordnet", "none")
    assert (code, expected_message("studies.graph_commands:is-not-patch-file") in notes) == (
        2,
        True,
    )
    assert path.read_text() == '{"mine": "own"}'


def test_items_of_another_metric_are_refused(inputs: tuple[str, Path], tmp_path: Path) -> None:
    other = write_lines(tmp_path / "chair.jsonl", [item("a") | {"evidence": {"mentioned": []}}])
    code, _, said = suggest((inputs[0], other), tmp_path)
    assert code == 2
    assert expected_message("studies.graph_commands:give-items-of-a-mementos-run") in said
    assert not (tmp_path / "patch.json").exists()


def test_bad_sources_are_refused(inputs: tuple[str, Path], tmp_path: Path) -> None:
    code, _, notes = suggest(inputs, tmp_path, "--wordnet", tmp_path / "nowhere")
    assert (
        code,
        expected_message("studies.graph_tools.suggestions:has-no-wordnet-database") in notes,
    ) == (2, True)
    code, _, notes = suggest(inputs, tmp_path, "--llm-url", "http://127.0.0.1:9/v1")
    assert (code, "set --llm-model" in notes) == (2, True)
    damaged = write_wordnet(tmp_path / "damaged")
    (damaged / "data.noun").write_text("nothing\n")
    code, _, notes = suggest(inputs, tmp_path, "--wordnet", damaged)
    assert (code, "data.noun" in notes) == (2, True)
    assert not (tmp_path / "patch.json").exists()
