"""ChartHal's and HAVEN's answers, marked by a language model over real HTTP."""

from __future__ import annotations

import json
from pathlib import Path

from support import scripted_llm as llm
from support.qa_samples import write_lines
from support.running import here


def test_a_judge_marks_answers_whatever_the_file_says(tmp_path: Path) -> None:
    records = [
        {
            **{"id": f"{n}_0", "figure_path": f"{n}.jpg", "q_type": "desc", "q_relation": "irrel"},
            **{"question": f"What is line {n}?", "ref_answer": "There is no such line."},
            **{"response": text, "eval_resp": "Score: 0.6", "score": 1},
        }
        for n, text in enumerate(["There is none.", "About 5.", ""])
    ]

    def step(_number: int, body: llm.Body) -> llm.Reply:
        return llm.completion("1" if "There is none." in llm.prompt_of(body) else "0")

    server = llm.ScriptedLlm(step)
    stop = server.in_thread()
    try:
        run = here(
            *("score", "charthal", "-r", write_lines(tmp_path / "answers.jsonl", records)),
            *("--variant", "corrected", "--judgements", "llm", "-o", tmp_path / "out"),
            *("--llm-url", server.url, "--llm-model", "m"),
        )
    finally:
        stop()
    assert run.returncode == 3, run.stderr
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert (report["scores"]["accuracy"]["value"], report["scores"]["accuracy"]["n"]) == (0.5, 2)
    assert report["coverage"]["reasons"] == {"RESPONSE_EMPTY": 1}
    prompt = llm.prompt_of(server.requests[0])
    assert all(text in prompt for text in ("What is line", "There is no such line.", "RESPONSE"))
    assert "Score: 0.6" not in prompt


def test_a_judge_grades_answers_of_a_group_whatever_the_file_says(tmp_path: Path) -> None:
    records = [
        {
            **{"Index": n, "Question": f"Is thing {n} there?", "Answer": "No", "Causes": "c"},
            **{"Aspects": "Event", "Form": "Binary-choice", "Video Path": "v", "Group_id": "g"},
            **{"Model Answer": text, "Extract Answer": "F", "Correctness": "F"},
        }
        for n, text in enumerate(["No.", "I think it is."])
    ]

    def step(_number: int, body: llm.Body) -> llm.Reply:
        return llm.completion("0" if "I think it is." in llm.prompt_of(body) else "1")

    server = llm.ScriptedLlm(step)
    stop = server.in_thread()
    try:
        run = here(
            *("score", "haven", "-r", write_lines(tmp_path / "answers.jsonl", records)),
            *("--judgements", "llm", "-o", tmp_path / "out"),
            *("--llm-url", server.url, "--llm-model", "m"),
        )
    finally:
        stop()
    assert run.returncode == 0, run.stderr
    report = json.loads((tmp_path / "out/report.json").read_text())
    values = {name: score["value"] for name, score in report["scores"].items()}
    assert (values["accuracy"], values["groups_of_several_all_right"]) == (0.5, 0.0)
    assert "|judgements:llm|" in report["signature"]
    assert llm.prompt_of(server.requests[0]).count("REFERENCE") == 2
