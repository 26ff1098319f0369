"""Every script in examples/ runs and prints what it promises."""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.running import BIN, read_rows

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(*command: str | Path, **environment: str) -> str:
    """Run a command with this environment's `hallujudge` first on the path; return its output."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=os.environ | {"PATH": path} | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def python(name: str, *arguments: str, **environment: str) -> list[str]:
    """Run an example; return the lines that it prints."""
    return run(sys.executable, EXAMPLES / name, *arguments, **environment).splitlines()


@pytest.fixture(scope="module")
def in_process() -> list[str]:
    return python("in_process.py")


def test_in_process_names_hallucinated_words(in_process: list[str]) -> None:
    assert "image 101: dog" in in_process
    assert in_process[-1].startswith("chair|var:published|")


def test_at_a_server_gives_the_same_signature(server: str, in_process: list[str]) -> None:
    lines = python("at_a_server.py", server)
    assert lines[0].startswith("chair_i 0.")
    assert lines[-1] == in_process[-1]


def test_at_a_server_that_is_not_there() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "at_a_server.py", "127.0.0.1:1"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 1
    assert "no server at 127.0.0.1:1" in done.stderr


async def test_notebook_cells_run_in_a_running_loop(capsys: pytest.CaptureFixture[str]) -> None:
    notebook = json.loads((EXAMPLES / "async_notebook.ipynb").read_text(encoding="utf-8"))
    scope: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            code = compile(
                "".join(cell["source"]), cell["id"], "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            )
            if inspect.isawaitable(value := eval(code, scope)):
                await value
    assert capsys.readouterr().out.splitlines() == [
        "model A: chair_i 0.00, recall 1.00",
        "model B: chair_i 0.50, recall 0.50",
    ]


def test_archive_of_another_tool_differs_by_parser() -> None:
    lines = python("archive_of_another_tool.py")
    assert [line.split()[0] for line in lines] == ["lmms-eval", "published", "strict"]
    assert lines[0].endswith("unscored 0 of 6")
    assert lines[2].endswith("unscored 1 of 6")


@pytest.fixture
def judges() -> Iterator[tuple[llm.ScriptedLlm, llm.ScriptedLlm]]:
    """A judge that refuses claims about the sofa, and a fallback that answers everything."""

    def refuses_sofas(number: int, body: llm.Body) -> llm.Reply:
        if any("sofa" in claim for claim in llm.claims_of(body)):
            return llm.completion(None, refusal="I'd rather not.")
        return llm.by_scene_graph(number, body)

    servers = (llm.ScriptedLlm(refuses_sofas), llm.ScriptedLlm(llm.by_scene_graph))
    stops = [server.in_thread() for server in servers]
    yield servers
    for stop in stops:
        stop()


def judged(judges: tuple[llm.ScriptedLlm, llm.ScriptedLlm], *more: str) -> list[str]:
    first, fallback = judges
    return python(
        "judge_with_fallback.py",
        *("--llm-url", first.url, "--llm-model", "small"),
        *("--fallback-url", fallback.url, "--fallback-model", "large", *more),
        HALLUJUDGE_FALLBACK_API_KEY="sk-example",
    )


def test_judge_with_fallback(judges: tuple[llm.ScriptedLlm, llm.ScriptedLlm]) -> None:
    lines = judged(judges)
    assert "('dog', 'on', 'sofa') supported fallback" in lines
    assert "('sofa', 'is', 'red') not_supported fallback" in lines
    assert lines[-1].startswith("unscored 0, hallu_q 0.")
    assert all(server.chats for server in judges)


def test_judge_within_a_budget(judges: tuple[llm.ScriptedLlm, llm.ScriptedLlm]) -> None:
    lines = judged(judges, "--max-calls", "0")
    assert lines[-1] == "unscored 2, hallu_q None"
    assert not any(server.chats for server in judges)


def test_grow_a_graph(tmp_path: Path) -> None:
    printed = run("sh", EXAMPLES / "grow_a_graph.sh", tmp_path)
    assert "dish mop" in printed
    scores = [
        json.loads((tmp_path / name / "report.json").read_text())["scores"]["object_recall"]
        for name in ("run", "run2")
    ]
    assert [score["value"] for score in scores] == [pytest.approx((1 + 2 / 3) / 2), 1.0]
    assert read_rows(tmp_path / "run2" / "items.jsonl")
