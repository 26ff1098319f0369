"""Misleading captions of ``build infact`` by a scripted language model over real HTTP."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.qa_samples import write_lines
from support.running import BIN, assert_refused, here, read_rows, unmeasured
from support.threads import eventually
from support.video_clips import clip

QUESTIONS: list[dict[str, Any]] = [
    {
        "question_id": f"q{n}",
        "video": f"clip{n % 2}",
        "question": f"What does person {n} do?",
        "options": ["opens the door", "closes the door"],
        "label": "A" if n < 2 else "B",
        "dimension": "faithfulness",
    }
    for n in range(4)
]


def asked(body: llm.Body) -> str:
    """Return the line of a prompt that has the question."""
    (line,) = (x for x in llm.prompt_of(body).splitlines() if x.startswith("Question: "))
    return line.removeprefix("Question: ")


def misleads(_number: int, body: llm.Body) -> llm.Reply:
    """Return what a model would write: another line about each question."""
    return llm.completion(f'"Person {asked(body)[-5]} sits down."')


@pytest.fixture
def server() -> Iterator[llm.ScriptedLlm]:
    made = llm.ScriptedLlm(misleads)
    stop = made.in_thread()
    yield made
    stop()


def videos(folder: Path) -> Path:
    for number in range(2):
        clip(folder / "videos" / f"clip{number}.mp4", 30)
    return folder / "videos"


def command(server: llm.ScriptedLlm, folder: Path, out: Path, *arguments: object) -> list[str]:
    given = (folder / "videos", "-R", folder / "questions.jsonl", "--url", server.url)
    kept = ("--operator", "caption_injection", "--workers", "1", "-o", out)
    return ["build", "infact", *map(str, (*given, "--model", "m", *kept, *arguments))]


def build(server: llm.ScriptedLlm, folder: Path, *arguments: object, code: int = 0) -> Any:
    run = here(*command(server, folder, folder / "out", *arguments))
    assert run.returncode == code, run.stdout + run.stderr
    return run


def manifest(out: Path) -> list[dict[str, Any]]:
    return read_rows(out / "caption_injection" / "manifest.jsonl")


def shown(line: dict[str, Any], kind: str = "misleading") -> list[str]:
    return [each["text"] for each in line["parameters"]["captions"] if each["kind"] == kind]


def video_hashes(out: Path) -> dict[str, str]:
    return {
        path.name: sha256(path.read_bytes()).hexdigest()
        for path in (out / "caption_injection").glob("*.mp4")
    }


def test_a_model_writes_a_line_about_each_question_and_the_manifest_alone_repeats_it(
    server: llm.ScriptedLlm, tmp_path: Path
) -> None:
    videos(tmp_path)
    write_lines(tmp_path / "questions.jsonl", QUESTIONS)
    build(server, tmp_path)
    assert len(server.requests) == 4
    prompts = {asked(body): llm.prompt_of(body) for body in server.requests}
    assert "A. opens the door\nB. closes the door" in prompts["What does person 0 do?"]
    assert "Right answer: opens the door" in prompts["What does person 0 do?"]
    assert "Right answer: closes the door" in prompts["What does person 2 do?"]
    made = manifest(tmp_path / "out")
    for place, line in enumerate(made):
        lines = [f"Person {n} sits down." for n in (place, place + 2)]
        assert line["settings"]["misleading"] == lines
        written = line["settings"]["written"]
        assert written["lines"] == dict(zip((f"q{place}", f"q{place + 2}"), lines, strict=True))
        assert (written["model"], written["unwritten"]) == ("m", {})
        assert written["prompt"].startswith("infact_misleading-1@")
        assert len(shown(line)) == 1
        assert len(shown(line, "irrelevant")) == 4
        assert shown(line)[0] in lines
    # Neither the model nor the questions are needed again.
    here_again = tmp_path / "again"
    listed = tmp_path / "out" / "caption_injection" / "manifest.jsonl"
    run = here("build", "infact", "--manifest", str(listed), "-o", str(here_again))
    assert run.returncode == 0, run.stderr
    assert "differ" not in run.stderr
    assert video_hashes(here_again) == video_hashes(tmp_path / "out")
    assert manifest(here_again) == made
    # The same command with --resume finds all replies, and all files.
    assert "2 kept" in build(server, tmp_path, "--resume").stdout
    assert len(server.requests) == 4
    # A folder that has videos is refused before any call is paid for.
    (tmp_path / "out.replies.sqlite").unlink()
    assert "--resume" in build(server, tmp_path, code=2).stderr
    assert len(server.requests) == 4


def test_all_captions_can_mislead(server: llm.ScriptedLlm, tmp_path: Path) -> None:
    videos(tmp_path)
    write_lines(tmp_path / "questions.jsonl", QUESTIONS)
    build(server, tmp_path, "--captions", "misleading")
    # Each line is shown before one is repeated.
    counts = Counter(shown(manifest(tmp_path / "out")[0]))
    assert sorted(counts.values()) == [2, 3]


# That replies outlast a kill: tests/e2e/test_ask_cli.py, whose command keeps them in the same way.
@pytest.mark.large(
    "test_a_model_writes_a_line_about_each_question_and_the_manifest_alone_repeats_it"
)
def test_a_killed_run_asks_nothing_twice(server: llm.ScriptedLlm, tmp_path: Path) -> None:
    """It is killed while the model writes, and again while files are made."""
    clip(videos(tmp_path) / "clip1.mp4", 600)
    many = [
        {**QUESTIONS[n % 2], "question_id": f"q{n}", "question": f"What is {n}?"} for n in range(60)
    ]
    write_lines(tmp_path / "questions.jsonl", many)

    def slow(number: int, body: llm.Body) -> llm.Reply:
        reply = misleads(number, body)
        return llm.Reply(body=reply.body, headers=reply.headers, delay=0.05)

    server.steps = [slow]
    chosen = command(server, tmp_path, tmp_path / "out", "--max-concurrency", "2")

    def killed(until: Callable[[], bool]) -> None:
        process = subprocess.Popen(
            [BIN / "hallujudge", *chosen], stdout=subprocess.DEVNULL, env=unmeasured()
        )
        eventually(lambda: until() or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.returncode == -signal.SIGKILL

    killed(lambda: len(server.requests) >= 20)
    first = len(server.requests)
    assert first < 60
    assert not (tmp_path / "out").exists()
    killed(lambda: (tmp_path / "out" / "caption_injection" / "manifest.jsonl").exists())
    build(server, tmp_path, "--resume")
    counts = Counter(asked(body) for body in server.requests)
    assert len(counts) == 60
    # Calls that were under way when it was killed, and no others.
    assert sum(counts.values()) - 60 <= 2
    assert [line["video"] for line in manifest(tmp_path / "out")] == ["clip0.mp4", "clip1.mp4"]
    whole = here(*command(server, tmp_path, tmp_path / "whole"))
    assert whole.returncode == 0, whole.stderr
    assert video_hashes(tmp_path / "whole") == video_hashes(tmp_path / "out")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (llm.completion(None, refusal="I can't help with that."), "MODEL_REFUSED"),
        (llm.completion(""), "REPLY_UNPARSED"),
        (llm.completion("One.\nTwo."), "REPLY_UNPARSED"),
        (llm.completion("word " * 60), "CAPTION_TOO_LONG"),
        (llm.completion("It goes on", finish="length"), "REPLY_TRUNCATED"),
    ],
)
def test_a_reply_without_a_line_is_a_reason_and_the_others_are_made(
    server: llm.ScriptedLlm, tmp_path: Path, reply: llm.Reply, reason: str
) -> None:
    def odd(number: int, body: llm.Body) -> llm.Reply:
        # All questions of clip1, and one of the two of clip0.
        return misleads(number, body) if "person 0" in asked(body) else reply

    server.steps = [odd]
    videos(tmp_path)
    write_lines(tmp_path / "questions.jsonl", QUESTIONS)
    run = build(server, tmp_path, code=3)
    assert f"not made: clip0.mp4, question q2: {reason}" in run.stderr
    assert "clip1.mp4: no misleading line about question 'q1'" in run.stderr
    assert "1 videos written" in run.stdout
    (line,) = manifest(tmp_path / "out")
    assert line["settings"]["written"]["unwritten"] == {"q2": reason}
    # Replies are kept: the same command sends no request.
    build(server, tmp_path, "--resume", code=3)
    assert len(server.requests) == 4
    # A user's line takes the place of the model's.
    own = tmp_path / "own.json"
    own.write_text(json.dumps({"clip1": ["The door is closed."]}))
    build(server, tmp_path, "--resume", "--misleading", own)
    assert [shown(line) for line in manifest(tmp_path / "out")] == [
        ["Person 0 sits down."],
        ["The door is closed."],
    ]
    assert len(server.requests) == 4


def test_a_video_is_made_once_all_its_calls_were_answered(
    server: llm.ScriptedLlm, tmp_path: Path
) -> None:
    def failing(number: int, body: llm.Body) -> llm.Reply:
        return llm.error(400, "no") if "person 2" in asked(body) else misleads(number, body)

    server.steps = [failing]
    videos(tmp_path)
    write_lines(tmp_path / "questions.jsonl", QUESTIONS)
    run = build(server, tmp_path, code=3)
    assert "clip0.mp4: no misleading line about question 'q2': MODEL_" in run.stderr
    assert [line["video"] for line in manifest(tmp_path / "out")] == ["clip1.mp4"]
    server.steps = [misleads]
    build(server, tmp_path, "--resume")
    assert [line["video"] for line in manifest(tmp_path / "out")] == ["clip1.mp4", "clip0.mp4"]


def test_a_prompt_of_the_users_own_replaces_ours(server: llm.ScriptedLlm, tmp_path: Path) -> None:
    videos(tmp_path)
    write_lines(tmp_path / "questions.jsonl", QUESTIONS)
    own = tmp_path / "own.txt"
    own.write_text("--- system ---\nLie.\n--- user ---\nQuestion: {{question}}\nNot: {{answer}}\n")
    build(server, tmp_path, "--prompt", own)
    system, user = server.requests[0]["messages"]
    assert system == {"role": "system", "content": "Lie."}
    assert user["content"].endswith(("Not: opens the door", "Not: closes the door"))
    written = manifest(tmp_path / "out")[0]["settings"]["written"]
    assert written["prompt_sha256"] == sha256(own.read_bytes()).hexdigest()
    own.write_text("Lie about {{question}}.")
    refused = here(*command(server, tmp_path, tmp_path / "other", "--prompt", own))
    assert_refused(refused, "needs the slots {{answer}}, {{question}}")


def test_calls_are_counted_before_they_are_made_and_bounded(
    server: llm.ScriptedLlm, tmp_path: Path
) -> None:
    videos(tmp_path)
    write_lines(tmp_path / "questions.jsonl", QUESTIONS)
    run = build(server, tmp_path, "--estimate")
    assert "4 calls" in run.stdout
    assert server.requests == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["questions.jsonl", "videos"]
    run = build(server, tmp_path, "--max-calls", "3", "--max-concurrency", "1", code=3)
    assert len(server.requests) == 3
    assert "MODEL_BUDGET_EXHAUSTED" in run.stderr
    assert [line["video"] for line in manifest(tmp_path / "out")] == ["clip0.mp4"]


def test_a_question_that_lacks_something_costs_no_call(
    server: llm.ScriptedLlm, tmp_path: Path
) -> None:
    videos(tmp_path)
    rows = [{**QUESTIONS[0], "question": ""}, {**QUESTIONS[2], "label": ""}]
    write_lines(tmp_path / "questions.jsonl", rows)
    run = build(server, tmp_path, code=1)
    assert server.requests == []
    assert "clip0.mp4: no misleading line about question 'q0': QUESTION_MISSING" in run.stderr
    assert "clip1.mp4: QUESTION_MISSING: no question names it" in run.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-R", "{questions}", "--captions", "irrelevant"], "draws no misleading lines"),
        (["-R", "{questions}", "--operator", "shuffle"], "is for caption_injection"),
        (["--model", "m"], "give --references"),
        (["--prompt", "{questions}"], "give --references"),
        (["--estimate"], "give --references"),
        (["-R", "{questions}", "--manifest", "{questions}"], "leave --references out"),
        (["-R", "{others}"], "name none of the videos (found 'other')"),
        (["-R", "{questions}", "--prompt", "absent.txt"], "absent.txt: No such file"),
    ],
)
def test_mistakes_have_a_sentence_each(tmp_path: Path, arguments: list[str], said: str) -> None:
    videos(tmp_path)
    files = {
        "questions": write_lines(tmp_path / "questions.jsonl", QUESTIONS),
        "others": write_lines(tmp_path / "others.jsonl", [{**QUESTIONS[0], "video": "other"}]),
    }
    given = [argument.format(**files) for argument in arguments]
    out = tmp_path / "out"
    run = here("build", "infact", str(tmp_path / "videos"), *given, "-o", str(out))
    assert_refused(run, said)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "others.jsonl",
        "questions.jsonl",
        "videos",
    ]
