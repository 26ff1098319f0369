"""The judge at vLLM's CPU build: one that Hallujudge starts, and one that runs already."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import real_servers as real
from support import scripted_llm as llm
from support.extraction_schemas import ANSWERS, schemas, wrong_answers
from support.qa_samples import write_lines
from support.real_vllm import NAME, SMALL, VARIABLES
from support.running import here, read_rows

from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.judges.questions import Question
from hallujudge.judge_service.llm.prompt_templates import load_template
from hallujudge.judge_service.settings.judge_settings import JudgeSettings, LlmSettings

pytestmark = pytest.mark.timeout(3600)

_THOUGHT_TOKENS = 100


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    programs = real.environment("vllm")
    return real.tiny_llama(programs / "python", tmp_path_factory.mktemp("vllm") / "model")


@contextmanager
def slow_thinker(folder: Path, thinks: int) -> Iterator[real.RealServer]:
    """A model that thinks for more tokens than an answer takes, with a reasoning parser."""
    programs, port = real.environment("vllm"), real.free_port()
    model = real.tiny_llama(programs / "python", folder / "model", says="supported", thinks=thinks)
    command = (
        *(programs / "vllm", "serve", model, "--served-model-name", "tiny"),
        *("--reasoning-parser", "deepseek_r1", "--host", "127.0.0.1", "--port", str(port), *SMALL),
    )
    with real.started(command, folder / "log", port, **VARIABLES) as started:
        yield started


@pytest.fixture(scope="module")
def thinking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[real.RealServer]:
    with slow_thinker(tmp_path_factory.mktemp("thinking"), _THOUGHT_TOKENS) as started:
        yield started


@contextmanager
def bare(model: Path) -> Iterator[real.RealServer]:
    """A server that was started without us, with nothing but vLLM's own settings."""
    port = real.free_port()
    command = (
        *(real.environment("vllm") / "vllm", "serve", model, "--served-model-name", "tiny"),
        *("--host", "127.0.0.1", "--port", str(port), *SMALL),
    )
    with real.started(command, model.parent / "log", port, **VARIABLES) as started:
        yield started


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[real.RealServer]:
    with bare(model) as started:
        yield started


def test_verdicts_are_those_of_own_requests(server: real.RealServer, tmp_path: Path) -> None:
    found = real.scored(server, tmp_path)
    real.figure(f"{NAME}, as it is started by itself", f"{found.agreement}; choices enforced")
    assert found.equal == len(found.claims) == 24
    assert {claim["verdict"] for claim in found.claims} <= {"supported", "not_supported"}
    assert None not in [claim["margin"] for claim in found.claims]
    assert "(vllm 0.32.0)" in found.report["signature"]
    assert found.report["judging"][0]["choice_share"]["mean"] < 0.5
    assert "would write one of the choices" in found.said


def test_the_first_tokens_are_masked_before_probabilities_are_made(
    server: real.RealServer,
) -> None:
    choices = ["supported", "object1", "object2", "relation"]
    held = server.chat(
        logprobs=True, top_logprobs=20, structured_outputs={"choice": choices}, max_tokens=32
    )
    listed = held.logprobs[0]["top_logprobs"]
    possible = [each for each in listed if each["logprob"] > llm.RULED_OUT]
    assert held.content in choices
    assert math.fsum(math.exp(each["logprob"]) for each in possible) == pytest.approx(1, abs=1e-3)
    for each in possible:
        assert any(choice.startswith(each["token"]) for choice in choices)
    ruled_out = {each["logprob"] for each in held.logprobs[-1]["top_logprobs"]} - {
        held.logprobs[-1]["logprob"]
    }
    assert ruled_out == {llm.RULED_OUT}
    free = server.chat(logprobs=True, top_logprobs=20)
    assert {each["token"] for each in free.logprobs[0]["top_logprobs"]} != {
        each["token"] for each in listed
    }


SHORT, LONG = "in", "instead"
END = "<|eot_id|>"


def margin_of(reply: real.Reply) -> float:
    """Return by how much a short answer is likelier than one that it begins, from raw lists."""
    so_far = 0.0
    short: list[float] = []
    longer: list[float] = []
    written = ""
    for place in reply.logprobs:
        for each in place["top_logprobs"]:
            if each["logprob"] <= llm.RULED_OUT:
                continue
            text = written + each["token"].replace(END, "")
            is_end = each["token"] == END
            if is_end or text == written:
                short.append(so_far + each["logprob"])
            elif text != SHORT[: len(text)]:
                longer.append(so_far + each["logprob"])
        so_far += place["logprob"]
        written += place["token"]
    return max(short) - max(longer)


async def test_the_end_token_decides_between_a_choice_and_one_that_it_begins(
    server: real.RealServer,
) -> None:
    judge = JudgeFactory(JudgeSettings(llm=LlmSettings(url=server.url, model=server.model))).llm()
    await judge.prepare()
    found: dict[str, list[float | None]] = {SHORT: [], LONG: []}
    for number in range(24):
        prompt = f"Which word is number {number}?"
        own = server.chat(
            prompt, logprobs=True, top_logprobs=8, structured_outputs={"choice": [SHORT, LONG]}
        )
        question = Question(
            template=load_template("judge_claim"),
            messages=[{"role": "user", "content": prompt}],
            claims=(0,),
            choices=(SHORT, LONG),
            keyed=False,
        )
        (answer,) = (await judge.choose(question)).answers
        assert answer is not None
        assert answer.choice == own.content
        found[own.content].append(answer.margin)
        if own.content == SHORT:
            assert own.logprobs[-1]["token"] == END
            assert answer.margin == pytest.approx(margin_of(own), abs=1e-3)
    await judge.close()
    counts = {choice: len(margins) for choice, margins in found.items()}
    real.figure(f"{NAME}, a choice that begins another", f"answers {counts}, all with margins")
    assert found[SHORT]
    assert None not in [*found[SHORT], *found[LONG]]


def test_choices_that_are_equally_likely_have_no_verdict(tmp_path: Path) -> None:
    programs = real.environment("vllm")
    with bare(real.tiny_llama(programs / "python", tmp_path / "model", even=True)) as even:
        done = real.judged(tmp_path, *even.flags)
    (row,) = read_rows(tmp_path / "out" / "items.jsonl")
    claims = row["evidence"]["claims"]
    real.figure(f"{NAME}, all tokens equally likely", f"{claims[0]['detail']}: no verdict")
    assert done.returncode == 3
    assert {claim["reason"] for claim in claims} == {"CHOICES_TIED"}
    assert len(claims) == 6


def test_doctor_finds_all_of_it(server: real.RealServer) -> None:
    found = real.doctor(server)
    expected = "ok found by itself: llm.dialect=vllm llm.constraint=structured_outputs"
    assert found["dialect"] == expected
    assert found["structured output"] == "ok enforced"
    assert found["extraction"] == "ok the schemas of LLM extraction are accepted"
    assert found["repeatability"] == "ok 3 equal answers"
    assert "choice_share 0.0" in found["log-probabilities"]


def test_doctor_finds_constraints_of_other_dialects_enforced_too(server: real.RealServer) -> None:
    found = real.doctor(server, "--dialect", "plain")
    assert found["structured output"] == "ok enforced"
    assert "settings" not in found


def test_what_it_refuses(server: real.RealServer, tmp_path: Path) -> None:
    statuses = {
        "unknown model": server.chat(model="nope").status,
        "decisions": server.post("decisions", {"model": "tiny"}).status,
        "too long": server.chat("word " * 9000).status,
        "too many log-probabilities": server.chat(logprobs=True, top_logprobs=21).status,
    }
    real.figure(NAME, f"statuses {statuses}")
    assert statuses == {
        "unknown model": 404,
        "decisions": 404,
        "too long": 400,
        "too many log-probabilities": 400,
    }
    unknown = real.judged(tmp_path, *server.asked_for("nope"))
    assert unknown.returncode == 2
    assert "does not exist" in unknown.stderr
    decisions = real.judged(tmp_path, *server.flags, "--llm-api", "decisions")
    assert decisions.returncode == 2
    assert "POST decisions" in decisions.stderr


def test_scoring_asks_for_probabilities(server: real.RealServer, tmp_path: Path) -> None:
    done = real.judged(tmp_path, *server.flags, "--llm-api", "scoring")
    (row,) = read_rows(tmp_path / "out" / "items.jsonl")
    claims = row["evidence"]["claims"]
    unlikely = [claim for claim in claims if claim["verdict"] == "unscored"]
    # Random weights give letters next to nothing, to few of them 1 %.
    assert {claim["reason"] for claim in unlikely} == {"REPLY_OUT_OF_CHOICE"}
    assert len(unlikely) >= len(claims) / 2
    assert done.returncode == (3 if len(unlikely) == len(claims) else 0)
    assert "REPLY_OUT_OF_CHOICE" in done.stdout + done.stderr


def test_a_thought_that_ends_is_followed_by_a_verdict(
    thinking: real.RealServer, tmp_path: Path
) -> None:
    choices = ["supported", "object1", "object2", "relation"]
    cut = json.loads(thinking.chat(structured_outputs={"choice": choices}, max_tokens=64).text)
    (choice,) = cut["choices"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("length", None)
    assert choice["message"]["reasoning"]
    done = real.judged(tmp_path, *thinking.flags)
    assert done.returncode == 0, done.stderr
    (row,) = read_rows(tmp_path / "out" / "items.jsonl")
    verdicts = [claim["verdict"] for claim in row["evidence"]["claims"]]
    (asked,) = row["evidence"]["judging"]
    real.figure(
        f"{NAME}, a model that thinks for {_THOUGHT_TOKENS} tokens",
        f"{verdicts.count('supported')} of {len(verdicts)} verdicts supported, "
        f"{asked['completion_tokens']} completion tokens in {asked['calls']} calls",
    )
    assert verdicts == ["supported"] * 6
    assert asked["completion_tokens"] > 6 * _THOUGHT_TOKENS
    assert None not in [claim["margin"] for claim in row["evidence"]["claims"]]
    found = real.doctor(thinking)
    assert found["answer"].startswith("ok")
    assert found["structured output"] == "ok enforced"
    assert "before the answer" in found["reasoning"]


async def test_xgrammar_takes_the_schemas_and_their_answers_only(tmp_path: Path) -> None:
    python, asked = real.environment("vllm") / "python", tmp_path / "asked.json"
    texts = {name: [ANSWERS[name], *wrong_answers(name)] for name in ANSWERS}
    pairs = [(schema, texts[name]) for name, schema in (await schemas()).items()]
    asked.write_text(json.dumps(pairs))
    found = json.loads(real.run(python, real.SCRIPTS / "ask_xgrammar.py", asked))
    assert found == [[True] + [False] * (len(each) - 1) for each in texts.values()]
    real.figure("xgrammar 0.2.8", f"takes the {len(texts)} schemas of extraction")


def test_a_text_that_takes_too_long_costs_its_question_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = {"category": "VD", "subcategory": "map", "set_id": "1", "figure_id": "0"}
    question |= {"visual_input": "0", "question": "Is snow white?", "gt_answer": "1"}
    asked = write_lines(
        tmp_path / "questions.jsonl", [question | {"question_id": str(n)} for n in range(3)]
    )
    (tmp_path / "images").mkdir()
    with slow_thinker(tmp_path, 1000) as thinker:
        given = (
            *("ask", "hallusion-bench", "-R", asked, "--images", tmp_path / "images"),
            *("-o", tmp_path / "answers.jsonl", "--url", thinker.url, "--model", "tiny"),
            *("--max-tokens", "2048"),
        )
        monkeypatch.setenv("HALLUJUDGE_LLM_TIMEOUT_SECONDS", "1")
        late = here(*given)
        monkeypatch.setenv("HALLUJUDGE_LLM_TIMEOUT_SECONDS", "120")
        whole = here(*given)
    real.figure(f"{NAME}, ask", late.stderr.strip().replace("\n", " ")[:300])
    assert late.returncode == 3
    assert "without an answer: MODEL_TIMEOUT" in late.stderr
    assert "for the model thinks; raise llm.timeout_seconds" in late.stderr
    assert whole.returncode == 0, whole.stderr
    rows = read_rows(tmp_path / "answers.jsonl")
    assert [row["model_prediction"].strip() for row in rows] == ["supported"] * 3


def test_counts_and_advice_are_those_of_the_run(
    server: real.RealServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = [[f"thing {n}", "beside", "other thing"] for n in range(3000)]
    refused = real.judged(tmp_path, *server.flags, scene=scene)
    assert refused.returncode == 3
    assert "PROMPT_TOO_LONG" in refused.stdout + refused.stderr
    assert "llm gave 0 of 6 verdicts" in refused.stdout
    assert "used again" not in refused.stdout + refused.stderr
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        missing = real.judged(folder, *server.flags, "--llm-api", "decisions")
        assert missing.returncode == 2
        assert "verdict cache" not in missing.stderr
        assert not list(folder.rglob("*-wal"))
    monkeypatch.setenv("HALLUJUDGE_LLM_CLAIMS_PER_CALL", "20")
    spaced = real.judged(tmp_path, *server.flags, "--constraint", "json_schema")
    said = spaced.stdout + spaced.stderr
    real.figure(f"{NAME}, white space", spaced.stderr.strip().splitlines()[-1][:300])
    assert spaced.returncode == 3
    assert "REPLY_TRUNCATED" in said
    assert """give vLLM structured-outputs-config '{"disable_any_whitespace": true}'""" in said
    assert "Raise --llm-max-tokens" in said
