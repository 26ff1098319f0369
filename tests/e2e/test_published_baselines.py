"""Rows of Tri-HE's tables next to runs: judged by Llama, by GPT-4, by the matcher, by both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import scripted_llm as llm
from support.messages import expected_message
from support.pages import Page
from support.running import here
from support.tri_he_samples import FALSE, TRUE, answer, judge_step, score

LLAMA, GPT = "meta-llama/Llama-3.3-70B-Instruct", "gpt-4-1106-preview"
ANSWERS = [answer("1", TRUE, FALSE), answer("2", TRUE, FALSE, question="Who?")]


@pytest.fixture
def model() -> Iterator[llm.ScriptedLlm]:
    server = llm.ScriptedLlm(judge_step)
    stop = server.in_thread()
    yield server
    stop()


def judged(folder: Path, server: llm.ScriptedLlm, name: str, *more: str) -> Path:
    chosen = more or ("--judge", "llm")
    given = ("--llm-url", server.url, "--llm-model", name, *chosen)
    assert score(folder, ANSWERS, *given).returncode == 0
    return folder / "out"


def page(run: Path, row: str, *more: str) -> tuple[int, str, str]:
    """Return the exit code, what was told, and the text of the page with a row of a table."""
    out = run / "page.html"
    given = ("--format", "html", "--baseline", f"published:{row}", *more)
    ran = here("report", run, "--out", out, *given)
    return ran.returncode, ran.stderr, Page(out.read_text()).text if out.exists() else ""


def test_rows_of_tables_9_and_10_are_next_to_a_run_judged_by_llama(
    tmp_path: Path, model: llm.ScriptedLlm
) -> None:
    run = judged(tmp_path, model, LLAMA)
    for row, values in (
        ("llama-3.2-by-llama-3.3", ("0.3898", "0.3737", "0.2325", "0.2113", "0.1351", "0.1330")),
        ("qwen2.5-vl-7b-by-llama-3.3", ("0.3819", "0.3592")),
        ("internlm-x2-by-llama-3.3", ("0.3175", "0.2993")),
        ("internvl2.5-8b-by-llama-3.3", ("0.2912", "0.2699")),
        ("llava-1.5-opa-dpo-by-llama-3.3", ("0.1444", "0.1682")),
    ):
        code, told, text = page(run, row)
        assert code == 0, told
        assert all(value in text for value in values), (row, text)
        assert "LLM judge Llama-3.3)" in text


def test_a_row_of_another_judge_is_refused_unless_allowed(
    tmp_path: Path, model: llm.ScriptedLlm
) -> None:
    run = judged(tmp_path, model, LLAMA)
    code, told, text = page(run, "llama-3.2-by-gpt-4")
    assert (code, text) == (2, "")
    assert expected_message("sdk.comparison.page_comparisons:judged-by-another", GPT, LLAMA) in told
    assert "llama-3.2-by-llama-3.3" in told
    assert "--allow judge" in told
    code, told, text = page(run, "llama-3.2-by-gpt-4", "--allow", "judge")
    assert code == 0, told
    assert "0.4016" in text
    assert "LLM judge GPT-4)" in text


@pytest.mark.parametrize("name", [GPT, f"openai/{GPT}"])
def test_a_run_judged_by_gpt_4_has_the_rows_of_table_2(
    tmp_path: Path, model: llm.ScriptedLlm, name: str
) -> None:
    run = judged(tmp_path, model, name)
    assert page(run, "llava-by-gpt-4")[0] == 0
    assert page(run, "llama-3.2-by-llama-3.3")[0] == 2
    assert page(run, "llava-by-matcher")[0] == 2


def test_another_version_of_gpt_4_is_another_judge(tmp_path: Path, model: llm.ScriptedLlm) -> None:
    code, told, _ = page(judged(tmp_path, model, "gpt-4o"), "llava-by-gpt-4")
    assert code == 2
    assert "no row is of this run's judge" in told


def test_a_fallback_counts_where_it_decided(
    tmp_path: Path, model: llm.ScriptedLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALLUJUDGE_JUDGE_ORDER", "llm,fallback")
    monkeypatch.setenv("HALLUJUDGE_FALLBACK_URL", model.url)
    monkeypatch.setenv("HALLUJUDGE_FALLBACK_SENDER", "http")
    more = ("--judge", "router", "--fallback-model", GPT)
    run = judged(tmp_path, model, LLAMA, *more)
    assert page(run, "llama-3.2-by-llama-3.3")[0] == 0
    content = json.loads((run / "report.json").read_text())
    content["judging"].append({**content["judging"][0], "judge": "fallback", "decided": 1})
    (run / "report.json").write_text(json.dumps(content))
    code, told, _ = page(run, "internlm-x2-by-llama-3.3")
    assert code == 2
    assert f"{LLAMA} (vllm 0.32.0) and {GPT}" in told
