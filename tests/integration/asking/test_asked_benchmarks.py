"""Every benchmark: its questions are asked with their images, and the archive is scored."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from support import scripted_llm as llm
from support.asked_cases import CASES, Case, written
from support.example_archives import declared_examples, plain_records
from support.pictures import png
from support.running import read_rows

from hallujudge.asking import AskResult, AskRun, ask, asked_metrics, estimate_asking
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.families import add_benchmarks, remove_benchmarks
from hallujudge.sdk import Client, InputOptions
from hallujudge.sdk.errors import ArchiveError, InvalidInputError, NotFoundError

ROOT = Path(__file__).resolve().parents[3]


Asked: TypeAlias = Callable[[Case], tuple[AskResult, llm.ScriptedLlm]]
"""Asks a case; returns the result and the server that was asked."""


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    stops = []

    def run(case: Case) -> tuple[AskResult, llm.ScriptedLlm]:
        def step(_number: int, body: llm.Body) -> llm.Reply:
            prompt = llm.prompt_of(body)
            return llm.completion(case.reply(prompt) if callable(case.reply) else case.reply)

        server = llm.ScriptedLlm(step)
        stops.append(server.in_thread())
        result = ask(run_of(case, tmp_path, server.url))
        return result, server

    yield run
    for stop in stops:
        stop()


def run_of(case: Case, folder: Path, url: str, **more: Any) -> AskRun:
    files = written(case, folder)
    if "options" in files:
        more["options"] = files["options"]
    return AskRun(
        benchmark=case.metric,
        references=folder / "questions.json",
        images=folder / "images",
        out=folder / "answers.jsonl",
        model={"llm.url": url, "llm.model": "m"},
        **{**case.more, **more},
    )


@pytest.mark.parametrize("name", CASES)
def test_a_benchmark_is_asked_and_its_archive_scored(
    name: str, tmp_path: Path, asked: Asked
) -> None:
    case = CASES[name]
    result, server = asked(case)
    assert not result.unanswered, result.examples
    prompts = {llm.prompt_of(body) for body in server.requests}
    assert len(prompts) == len(case.prompts)
    assert all(any(p.startswith(start) for p in prompts) for start in case.prompts), prompts
    assert {len(llm.images_of(body)) for body in server.requests} == set(case.shown)
    if not case.score:
        return
    with Client.embedded() as client:
        report = client.score(
            case.metric,
            responses=tmp_path / "answers.jsonl",
            references=tmp_path / "questions.json" if case.again else None,
            inputs=InputOptions(own=case.own) if case.own else None,
        )
    assert report.coverage.unscored == 0
    for score, value in case.score.items():
        assert getattr(report, score) == pytest.approx(value), score
    assert "|asked:chat," in report.signature


def test_all_benchmarks_with_questions_are_tried() -> None:
    # Those whose every video has a sound track: tests/e2e/test_ask_sounds.py.
    found = {case.metric for case in CASES.values()}
    others = [each for each in declared_examples() if each.name not in found]
    for each in others:
        assert all(metric_of(each).shown(row).sound for row in plain_records(each))
    assert found | {each.name for each in others} == set(asked_metrics())


STALE: dict[str, dict[str, object]] = {
    **{
        each.name: dict.fromkeys(each.keys.fields[each.verdict], "1")
        for each in declared_examples()
        if each.judged and each.verdict in each.keys.fields and each.name in CASES
    },
    "mmhal": {"review": "Rating: 6", "rating": 6},
    "openchair": {"generated_objs": ["dog"], "judge_texts": ["yes"]},
}
"""What a judge said of another model's answer, by benchmark."""


@pytest.mark.parametrize("name", STALE)
def test_what_was_said_of_another_answer_is_left_out(
    name: str, tmp_path: Path, asked: Asked
) -> None:
    case = CASES[name]
    said = [{**row, **STALE[name]} for row in case.questions]
    asked(replace(case, questions=said))
    rows = read_rows(tmp_path / "answers.jsonl")
    assert rows
    assert not {*STALE[name]}.intersection(*rows)


def test_frames_of_a_folder_are_sent_in_their_order(asked: Asked) -> None:
    _, server = asked(CASES["mementos"])
    [body] = server.requests
    assert llm.images_of(body) == [png(2), png(1), png(0)]


def test_a_question_of_infact_is_asked_under_each_operator_that_has_a_folder(
    tmp_path: Path, asked: Asked
) -> None:
    case = CASES["infact"]
    asked(case)
    rows = read_rows(tmp_path / "answers.jsonl")
    assert [(row["question_id"], row["operator"]) for row in rows] == [
        *((1, "base"), (1, "compression"), (1, "shuffle")),
        *((2, "base"), (2, "compression")),
    ]
    only = Case(case.metric, case.questions, case.files, (), more={"conditions": ["text_only"]})
    with pytest.raises(InvalidInputError, match="was not asked in this way"):
        asked(only)
    (tmp_path / "answers.jsonl").unlink()
    _, server = asked(only)
    assert [len(llm.images_of(body)) for body in server.requests] == [0, 0]


def test_pairs_are_asked_until_the_order_is_known(tmp_path: Path, asked: Asked) -> None:
    asked(CASES["vidhal-ordering, relative"])
    [row] = read_rows(tmp_path / "answers.jsonl")
    assert row["response"] == "B, A, C"
    assert row["steps"] == [
        {"step": "A or B", "reply": "B", "chosen": "B"},
        {"step": "B or C", "reply": "B", "chosen": "B"},
        {"step": "A or C", "reply": "A", "chosen": "A"},
    ]


def test_prompts_and_protocols_are_checked(tmp_path: Path) -> None:
    case, url = CASES["pope"], "http://127.0.0.1:9/v1"

    def refused(match: str, kind: type[Exception] = InvalidInputError, **more: Any) -> None:
        with pytest.raises(kind, match=match):
            ask(run_of(case, tmp_path, url, **more))

    refused("no protocol 'x'", protocol="x")
    refused("no step description", prompts={"description": "Describe."})
    refused("needs the slots {{question}}; it has none", prompts={"answer": "Is it?"})
    refused("it has {{objects}}", prompts={"answer": "{{objects}}"})
    refused("give uniform:N", frames="uniform:999")
    refused("jpeg or png", frame_format="bmp")
    refused("is not asked under conditions", conditions=["shuffle"])
    refused("does not use AskRun", options=tmp_path / "questions.json")
    case = Case("chairs", [], (), ())
    refused("does not exist", NotFoundError)
    case = Case("pope", [{"question_id": 1, "image": "a.png", "label": "yes"}], ("a.png",), ())
    refused("no key for the question: tried question", ArchiveError)
    case = Case("vidhal-mcqa", CASES["vidhal-mcqa"].questions, ("count_1.png",), ())
    refused("needs the display order")


def test_own_prompts_are_sent_and_named_by_their_hash(tmp_path: Path, asked: Asked) -> None:
    pope = CASES["pope"]
    own = "--- system ---\nBe brief.\n--- user ---\nLook: {{question}}"
    case = Case("pope", pope.questions, pope.files, (), more={"prompts": {"answer": own}})
    _, server = asked(case)
    [body] = server.requests
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert llm.prompt_of(body) == "Look: Is there a cat?"
    assert llm.images_of(body) == [png(0)]
    manifest = json.loads((tmp_path / "answers.asked.json").read_text())
    prompt = manifest["prompts"]["answer"]
    assert [message["content"] for message in prompt["messages"]] == [
        "Be brief.",
        "Look: {{question}}",
    ]
    [row] = read_rows(tmp_path / "answers.jsonl")
    assert row["asked"]["prompts"] == prompt["sha256"][:12]


def test_a_budget_that_ends_leaves_reasons_and_the_next_run_goes_on(tmp_path: Path) -> None:
    questions = [
        {"question_id": n, "image": "a.png", "text": f"Is there a cat, {n}?", "label": "yes"}
        for n in range(5)
    ]
    case = Case("pope", questions, ("a.png",), ())
    server = llm.ScriptedLlm(llm.saying("Yes."))
    stop = server.in_thread()
    try:
        run = run_of(case, tmp_path, server.url)
        limited = replace(run, model={**run.model, "max_calls": 2})
        estimate = estimate_asking(limited)
        assert (estimate.calls, estimate.cached, server.chats) == (5, 0, 0)
        assert estimate.prompt_tokens >= 5 * 256
        first = ask(limited)
        assert (first.answered, dict(first.unanswered)) == (2, {"MODEL_BUDGET_EXHAUSTED": 3})
        assert estimate_asking(run).cached == 2
        second = ask(run)
        assert (second.answered, second.calls, second.reused) == (5, 3, 2)
        assert not (tmp_path / "answers.unanswered.jsonl").exists()
        assert server.chats == 5
    finally:
        stop()


def test_a_benchmark_from_outside_is_asked_by_its_labels(asked: Asked) -> None:
    case = Case(
        "my-sides",
        [{"question_id": 1, "image": "a.png", "question": "Where is the cat?", "side": "left"}],
        ("a.png",),
        (),
        "left",
    )
    add_benchmarks([str(ROOT / "examples" / "my_benchmark.py")])
    try:
        result, server = asked(case)
    finally:
        remove_benchmarks()
    assert result.answered == 1
    assert llm.prompt_of(server.requests[0]) == (
        "Where is the cat?\nAnswer with one of these words: left, right."
    )


def test_requests_are_written_to_a_batch_file_and_its_replies_read(tmp_path: Path) -> None:
    case = CASES["pope"]
    files = {"batch.requests": str(tmp_path / "requests.jsonl")}
    first = ask(replace(run_of(case, tmp_path, ""), model={"llm.model": "m", **files}))
    assert dict(first.unanswered) == {"MODEL_NO_REPLY": 1}
    [request] = read_rows(tmp_path / "requests.jsonl")
    assert llm.images_of(request["body"]) == [png(0)]
    reply = json.loads(llm.completion("Yes.").body)
    line = {"custom_id": request["custom_id"], "response": {"status_code": 200, "body": reply}}
    (tmp_path / "replies.jsonl").write_text(json.dumps(line) + "\n")
    files = {"batch.replies": str(tmp_path / "replies.jsonl")}
    second = ask(replace(run_of(case, tmp_path, ""), model={"llm.model": "m", **files}))
    assert second.answered == 1
    assert read_rows(tmp_path / "answers.jsonl")[0]["response"] == "Yes."


def test_questions_may_be_a_table(tmp_path: Path) -> None:
    (tmp_path / "questions.csv").write_text(
        'question_id,image,text,label\n1,a.png,"Is there a cat, or not?",yes\n'
    )
    (tmp_path / "human.csv").write_text("image_name,gt_description\na.png,A dog runs.\n")
    server = llm.ScriptedLlm(llm.saying("Yes."))
    stop = server.in_thread()
    try:
        for metric, name in (("pope", "questions.csv"), ("mementos", "human.csv")):
            run = run_of(CASES["pope"], tmp_path, server.url)
            table, out = tmp_path / name, tmp_path / f"{metric}.jsonl"
            assert ask(replace(run, benchmark=metric, references=table, out=out)).answered == 1
    finally:
        stop()
    assert llm.prompt_of(server.requests[0]).startswith("Is there a cat, or not?")
    [row] = read_rows(tmp_path / "mementos.jsonl")
    assert (row["image_name"], row["description"]) == ("a.png", "Yes.")
