"""``hallujudge ask`` of models that think, against a scripted server over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from support import scripted_llm as llm
from support.pictures import png
from support.qa_samples import write_lines
from support.running import assert_refused, here, read_rows

QUESTIONS = 12
THOUGHT = "Is there a cat? I see no cat at first."
Serve: TypeAlias = Callable[..., llm.ScriptedLlm]
"""Starts a scripted server; the fixture stops it."""


@pytest.fixture
def serve() -> Iterator[Serve]:
    stops = []

    def start(*steps: llm.Step) -> llm.ScriptedLlm:
        server = llm.ScriptedLlm(*steps)
        stops.append(server.in_thread())
        return server

    yield start
    for stop in stops:
        stop()


def questions_of(folder: Path, count: int = QUESTIONS) -> tuple[str | Path, ...]:
    """Return the arguments of a run with some questions."""
    images = folder / "images"
    images.mkdir()
    for number in range(count):
        (images / f"{number}.png").write_bytes(png(number))
    records = [
        {"question_id": n, "image": f"{n}.png", "text": "Is there a cat?", "label": "yes"}
        for n in range(count)
    ]
    questions = write_lines(folder / "questions.jsonl", records)
    return ("pope", "-R", questions, "--images", images, "-o", folder / "answers.jsonl")


def message(finish: str = "stop", **fields: Any) -> llm.Reply:
    """Return a completion whose message has the fields as they are."""
    choice = {"index": 0, "message": {"role": "assistant", **fields}, "finish_reason": finish}
    usage = {"prompt_tokens": 100, "completion_tokens": 9}
    return llm.as_json({"object": "chat.completion", "choices": [choice], "usage": usage})


def outcomes(folder: Path) -> list[tuple[object, object, object]]:
    """Return the response, the thought and the reason of each line of the archive."""
    return [
        (row["response"], row.get("thought"), row.get("unanswered", {}).get("reason"))
        for row in read_rows(folder / "answers.jsonl")
    ]


SHAPES: Mapping[str, Mapping[str, Any]] = {
    "reasoning_content": {"content": "Yes.", "reasoning_content": THOUGHT},
    "reasoning": {"content": "Yes.", "reasoning": THOUGHT},
    "thinking": {"content": "Yes.", "thinking": THOUGHT},
    "two keys": {"content": "Yes.", "reasoning_content": None, "reasoning": THOUGHT},
    "Anthropic's parts": {
        "content": [
            {"type": "thinking", "thinking": THOUGHT, "signature": "c2ln"},
            {"type": "text", "text": "Yes."},
        ]
    },
    "Mistral's parts": {
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]},
            {"type": "text", "text": "Yes."},
        ]
    },
    "Inspect's parts": {
        "content": [{"type": "reasoning", "reasoning": THOUGHT}, {"type": "text", "text": "Yes."}]
    },
}


@pytest.mark.parametrize("shape", SHAPES)
def test_thought_and_answer_have_keys_of_their_own(
    shape: str, tmp_path: Path, serve: Serve
) -> None:
    server = serve(llm.always(message(**SHAPES[shape])))
    run = here(*llm.ask(server, *questions_of(tmp_path, 2)))
    assert run.returncode == 0, run.stderr
    assert outcomes(tmp_path) == [("Yes.", THOUGHT, None)] * 2
    assert server.chats == 2
    scored = here("score", "pope", "-r", tmp_path / "answers.jsonl", "-o", tmp_path / "s", "-q")
    assert scored.returncode == 0, scored.stderr


def test_marks_within_a_reply_stay_and_no_thought_has_no_key(tmp_path: Path, serve: Serve) -> None:
    marked = "<think>I see no cat.</think>\nYes."
    server = serve(llm.saying(marked), llm.saying("Yes.", finish="stop"))
    run = here(*llm.ask(server, *questions_of(tmp_path, 2)), "--max-concurrency", "1")
    assert run.returncode == 0, run.stderr
    rows = read_rows(tmp_path / "answers.jsonl")
    assert [row["response"] for row in rows] == [marked, "Yes."]
    assert not any("thought" in row for row in rows)


@pytest.mark.parametrize(
    ("fields", "finish"),
    [
        ({"content": None, "reasoning_content": THOUGHT}, "length"),
        ({"content": None, "reasoning_content": THOUGHT}, "stop"),
        ({"content": "", "reasoning": THOUGHT}, "length"),
        ({"content": "\n\n", "reasoning": THOUGHT}, "length"),
        ({"reasoning": THOUGHT}, "length"),
        ({"content": [{"type": "thinking", "thinking": THOUGHT}]}, "length"),
    ],
)
def test_a_thought_without_an_answer_was_cut_off_and_is_not_asked_again(
    fields: dict[str, Any], finish: str, tmp_path: Path, serve: Serve
) -> None:
    server = serve(llm.always(message(finish, **fields)))
    given = llm.ask(server, *questions_of(tmp_path))
    for run in (here(*given), here(*given)):
        assert run.returncode == 3, run.stderr
        assert "12 without an answer: THOUGHT_UNFINISHED" in run.stderr
        assert "12 replies were cut off at --max-tokens 512; give more tokens" in run.stderr
        assert "start the same command again" not in run.stderr
        assert outcomes(tmp_path) == [(None, THOUGHT, "THOUGHT_UNFINISHED")] * QUESTIONS
        assert server.chats == QUESTIONS
    rows = read_rows(tmp_path / "answers.jsonl")
    assert not any("steps" in row for row in rows)
    manifest = json.loads((tmp_path / "answers.asked.json").read_text())
    assert manifest["unanswered"] == {"THOUGHT_UNFINISHED": QUESTIONS}
    assert manifest["usage"]["completion_tokens"] == 9 * QUESTIONS


def test_only_replies_that_were_cut_off_are_asked_once_more_with_more_tokens(
    tmp_path: Path, serve: Serve
) -> None:
    """Four are cut off in their thoughts, and two in their answers."""

    def needed(number: int) -> int:
        return {0: 8_192, 1: 1_000, 2: 1_000, 3: 1_000, 4: 1_000, 5: 1_000}.get(number, 100)

    def step(_number: int, body: llm.Body) -> llm.Reply:
        [image] = llm.images_of(body)
        number = next(n for n in range(QUESTIONS) if png(n) == image)
        if body["max_tokens"] >= needed(number):
            return message(content="Yes.", reasoning=THOUGHT)
        if number in (4, 5):
            return message("length", content="Yes, and", reasoning=THOUGHT)
        return message("length", content=None, reasoning=THOUGHT)

    server = serve(step)
    given = llm.ask(server, *questions_of(tmp_path))
    first = here(*given)
    assert first.returncode == 3, first.stderr
    assert "6 replies were cut off at --max-tokens 512; give more tokens" in first.stderr
    rows = read_rows(tmp_path / "answers.jsonl")
    assert [row["unanswered"]["reason"] for row in rows[:6]] == [
        *["THOUGHT_UNFINISHED"] * 4,
        *["REPLY_TRUNCATED"] * 2,
    ]
    assert rows[4]["steps"] == [{"step": "cut_off", "reply": "Yes, and"}]
    assert rows[4]["thought"] == THOUGHT
    assert server.chats == QUESTIONS

    planned = here(*given, "--max-tokens", "2048", "--estimate")
    assert planned.stdout.startswith("m: 6 calls (6 answered by the cache"), planned.stdout
    second = here(*given, "--max-tokens", "2048")
    assert second.returncode == 3, second.stderr
    assert [body["max_tokens"] for body in server.requests[QUESTIONS:]] == [2048] * 6
    assert "1 reply was cut off at --max-tokens 2048; give more tokens" in second.stderr
    assert "6 replies were known and not asked again" in second.stderr

    third = here(*given, "--max-tokens", "2048")
    assert server.chats == QUESTIONS + 6
    assert "12 replies were known and not asked again" in third.stderr

    last = here(*given, "--max-tokens", "16384")
    assert last.returncode == 0, last.stderr
    assert [body["max_tokens"] for body in server.requests[QUESTIONS + 6 :]] == [16384]
    assert outcomes(tmp_path) == [("Yes.", THOUGHT, None)] * QUESTIONS
    assert read_rows(tmp_path / "answers.jsonl")[0]["asked"]["how"] == "chat,plain,max=16384"

    fewer = here(*given, "--max-tokens", "2048")
    assert_refused(fewer, "(other --max-tokens); pass --overwrite, or name another file")


def test_null_content_that_was_cut_off_without_a_thought_is_asked_once(
    tmp_path: Path, serve: Serve
) -> None:
    """Servers of closed models count the tokens of a thought, and do not show it."""
    server = serve(llm.saying(None, finish="length"))
    run = here(*llm.ask(server, *questions_of(tmp_path, 2)))
    assert run.returncode == 3, run.stderr
    assert outcomes(tmp_path) == [(None, None, "REPLY_TRUNCATED")] * 2
    assert server.chats == 2


@pytest.mark.parametrize("late", [1, QUESTIONS])
def test_a_thought_that_takes_too_long_costs_its_question_only(
    late: int, tmp_path: Path, serve: Serve
) -> None:
    pictures = [png(number) for number in range(late)]

    def step(_number: int, body: llm.Body) -> llm.Reply:
        if llm.is_own_question(body):
            return message("length", content=None, reasoning=THOUGHT)
        if llm.images_of(body)[0] in pictures:
            return llm.error(408, "Request timed out.")
        return message(content="Yes.", reasoning=THOUGHT)

    server = serve(step)
    run = here(*llm.ask(server, *questions_of(tmp_path)))
    assert run.returncode == 3, run.stderr
    assert f"{late} without an answer: MODEL_TIMEOUT" in run.stderr
    for named in ("llm.timeout_seconds", "allow fewer tokens", "enable_thinking"):
        assert named in run.stderr
    assert "cut off at --max-tokens" not in run.stderr
    assert "start the same command again" in run.stderr
    assert outcomes(tmp_path)[late:] == [("Yes.", THOUGHT, None)] * (QUESTIONS - late)
    asked = [body for body in server.requests if not llm.is_own_question(body)]
    assert len(asked) == QUESTIONS


def test_a_refusal_after_a_thought_is_a_refusal(tmp_path: Path, serve: Serve) -> None:
    server = serve(llm.always(message(content=None, refusal="I can't.", reasoning=THOUGHT)))
    given = llm.ask(server, *questions_of(tmp_path, 1))
    for more in ((), ("--max-tokens", "2048")):
        run = here(*given, *more)
        assert run.returncode == 3, run.stderr
        assert "cut off" not in run.stderr
        assert outcomes(tmp_path) == [(None, THOUGHT, "MODEL_REFUSED")]
        [row] = read_rows(tmp_path / "answers.jsonl")
        assert row["steps"] == [{"step": "refusal", "reply": "I can't."}]
    assert server.chats == 1


def test_a_reply_without_content_or_thought_is_still_no_chat_completion(
    tmp_path: Path, serve: Serve
) -> None:
    server = serve(llm.saying(None), llm.saying("Yes."))
    run = here(*llm.ask(server, *questions_of(tmp_path, 1)))
    assert run.returncode == 0, run.stderr
    assert server.chats == 2


def test_the_thoughts_of_earlier_steps_are_kept_with_them_and_are_not_passed_on(
    tmp_path: Path, serve: Serve
) -> None:
    def step(_number: int, body: llm.Body) -> llm.Reply:
        if "without answering it yet" in llm.prompt_of(body):
            return message(content="A man.", reasoning="A dog? No.")
        return message(content="The man has a hat.", reasoning="A hat.")

    server = serve(step)
    images = tmp_path / "images"
    images.mkdir()
    (images / "1.jpg").write_bytes(png(1))
    questions = tmp_path / "tri-he.json"
    instance = {"question": "What is he doing?", "answer": "", "triplet": []}
    facts = {"triplets": ["(man, has, hat)"], "all_object": ["man", "hat"]}
    questions.write_text(json.dumps({"1": {"instance": [instance], **facts}}))
    given = ("tri-he", "-R", questions, "--images", images, "-o", tmp_path / "answers.jsonl")
    run = here(*llm.ask(server, *given), "--protocol", "general-description")
    assert run.returncode == 0, run.stderr
    [row] = read_rows(tmp_path / "answers.jsonl")
    assert (row["response"], row["thought"]) == ("The man has a hat.", "A hat.")
    assert row["steps"] == [{"step": "description", "reply": "A man.", "thought": "A dog? No."}]
    assert not any("A dog?" in llm.prompt_of(body) for body in server.requests)


def test_an_archive_as_file_of_questions_leaves_nothing_of_its_own_answers(
    tmp_path: Path, serve: Serve
) -> None:
    given = questions_of(tmp_path, 1)
    stale = {
        **{"question_id": 0, "image": "0.png", "text": "Is there a cat?", "label": "yes"},
        **{"response": None, "thought": "Old.", "reasoning_content": "Old.", "steps": []},
        **{"unanswered": {"reason": "THOUGHT_UNFINISHED", "detail": "Old."}},
    }
    write_lines(tmp_path / "questions.jsonl", [stale])
    run = here(*llm.ask(serve(llm.saying("Yes.")), *given))
    assert run.returncode == 0, run.stderr
    [row] = read_rows(tmp_path / "answers.jsonl")
    assert row["response"] == "Yes."
    assert not row.keys() & {"thought", "reasoning_content", "steps", "unanswered"}


PARAMETERS = (
    *("--param", "chat_template_kwargs.enable_thinking=false", "--param", "top_p=0.9"),
    *("--param", "chat_template_kwargs.effort=low", "--param", "seed=7"),
    *("--param", 'stop=["\\n\\n"]'),
)
SENT = {
    "chat_template_kwargs": {"enable_thinking": False, "effort": "low"},
    **{"top_p": 0.9, "seed": 7, "stop": ["\n\n"]},
}


def test_request_parameters_are_sent_and_tell_runs_apart(tmp_path: Path, serve: Serve) -> None:
    server = serve(llm.saying("Yes."))
    given = llm.ask(server, *questions_of(tmp_path, 2))
    assert here(*given).returncode == 0
    [plain, _] = read_rows(tmp_path / "answers.jsonl")
    assert plain["asked"]["how"] == "chat,plain,max=512"
    assert "parameters" not in plain["asked"]
    assert_refused(here(*given, *PARAMETERS), "(other parameters); pass --overwrite")

    run = here(*given, *PARAMETERS, "--overwrite")
    assert run.returncode == 0, run.stderr
    assert [{name: body[name] for name in SENT} for body in server.requests[2:]] == [SENT] * 2
    [row, _] = read_rows(tmp_path / "answers.jsonl")
    assert row["asked"]["parameters"] == SENT
    stop = sha256(json.dumps(SENT["stop"]).encode()).hexdigest()
    assert row["asked"]["how"] == (
        "chat,plain,chat_template_kwargs.effort=low,chat_template_kwargs.enable_thinking=false,"
        f"seed=7,stop=#{stop[:8]},top_p=0.9,max=512"
    )
    manifest = json.loads((tmp_path / "answers.asked.json").read_text())
    assert manifest["parameters"] == SENT
    files = ("-r", tmp_path / "answers.jsonl", "-o", tmp_path / "scores")
    scored = here("score", "pope", *files, "-f", "json")
    assert f"|asked:{row['asked']['how']}|" in json.loads(scored.stdout)["signature"]

    assert here(*given, *PARAMETERS).returncode == 0
    assert server.chats == 4
    assert_refused(here(*given), "(other parameters); pass --overwrite")


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        (["model=x"], "request parameter model: the model is named by --model"),
        (
            ["messages=[]"],
            "request parameter messages: the messages are the prompts",
        ),
        (["max_tokens=9"], "request parameter max_tokens: use --max-tokens"),
        (["max_completion_tokens=9"], "request parameter max_completion_tokens: use --max-tokens"),
        (["temperature=1"], "request parameter temperature: use --temperature"),
        (
            ["stream=true"],
            "request parameter stream: replies are read whole",
        ),
        (["n=2"], "request parameter n: replies are read whole"),
        (["model.x=1"], "request parameter model: the model is named by --model"),
        (["seed"], "--param 'seed': give NAME=VALUE, such as seed=7"),
        (["=7"], "--param '=7': give NAME=VALUE, such as seed=7"),
        (["a..b=7"], "--param 'a..b=7': give NAME=VALUE, such as seed=7"),
        (["seed=7", "seed=8"], "request parameter seed: it is given twice; give one value"),
        (["a=1", "a.b=2"], "request parameter a.b: a is given as a value too; give one of them"),
        (["a.b=2", "a=1"], "request parameter a: it is given twice; give one value"),
        (
            ["chat_template_kwargs.enable_thinking=False"],
            "kwargs.enable_thinking: 'False' is a text; give false, or '\"False\"' for the text",
        ),
    ],
)
def test_parameters_that_cannot_be_sent_are_refused_by_name(
    parameters: list[str], said: str, tmp_path: Path, serve: Serve
) -> None:
    server = serve(llm.saying("Yes."))
    given = [part for one in parameters for part in ("--param", one)]
    assert_refused(here(*llm.ask(server, *questions_of(tmp_path, 1)), *given), said)
    assert server.chats == 0
