"""Prompts that papers print: captions, VQA, lists of keywords, INFACT's confidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import scripted_llm as llm
from support.choice_judge import scripted
from support.pictures import png
from support.qa_running import report_of
from support.qa_samples import write_lines
from support.running import ServerProcess, assert_refused, here, read_rows

PEOPLE = ["cat"] * 6 + ["kitten"] * 3 + ["dog"]
LISTS = """Object list 1: [man, ball]
Action list 1: [throw]
Object list 2: [man, dog]
Action list 2: [throw, run]"""


def asked(server: llm.ScriptedLlm, folder: Path, metric: str, rows: object, *more: str) -> str:
    """Ask a benchmark's questions, and return what was told."""
    images = folder / "images"
    images.mkdir(exist_ok=True)
    for seed, name in enumerate(("1.png", "2.png")):
        (images / name).write_bytes(png(seed))
    (folder / "questions.json").write_text(json.dumps(rows))
    given = ("-R", folder / "questions.json", "--images", images, "-o", folder / "answers.jsonl")
    ran = here(*llm.ask(server, metric, *given), "--overwrite", *more)
    assert ran.returncode == 0, ran.stderr
    return ran.stderr


@pytest.mark.parametrize(
    ("preset", "words"),
    [
        ("pope-i1", "Generate a short caption of the image."),
        ("pope-i2", "Provide a brief description of the given image."),
        ("pope-table4-4", "Create a short textual summary for the image."),
    ],
)
def test_captions_are_asked_for_in_the_papers_words(
    tmp_path: Path, preset: str, words: str
) -> None:
    with scripted(llm.saying("A cat."), model="m") as server:
        told = asked(server, tmp_path, "chair", ["1"], "--prompt-preset", preset)
        assert llm.prompt_of(server.requests[0]) == words
        assert "not the paper's" not in told
        told = asked(server, tmp_path, "chair", ["1"])
        assert "--prompt-preset pope-i1 or pope-i2" in told
        assert llm.prompt_of(server.requests[-1]) != words


def test_pope_asks_the_bare_question(tmp_path: Path) -> None:
    row = {"question_id": 1, "image": "1.png", "text": "Is there a cat in the image?"}
    with scripted(llm.saying("Yes."), model="m") as server:
        asked(server, tmp_path, "pope", [row], "--prompt-preset", "pope-question")
    assert llm.prompt_of(server.requests[0]) == "Is there a cat in the image?"


@pytest.mark.parametrize("dialect", ["vllm", "plain"])
def test_appendix_e_is_judged_by_an_answer_of_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialect: str
) -> None:
    monkeypatch.setenv("HALLUJUDGE_LLM_ATTEMPTS", "1")
    monkeypatch.setenv("HALLUJUDGE_LLM_DIALECT", dialect)
    replies = {"tabby": "cat", "puppy": "kitten", "bus": "<NAN>", "fox": "a fox"}
    rows = [
        {"question_id": n, "response": f"A {word}.", "question": "What?", "direct_answers": PEOPLE}
        for n, word in enumerate(replies)
    ]

    def step(_number: int, body: llm.Body) -> llm.Reply:
        prompt = llm.prompt_of(body)
        assert prompt.startswith("You are an examiner who can judge whether")
        return llm.completion(next(text for word, text in replies.items() if word in prompt))

    answers = write_lines(tmp_path / "answers.jsonl", rows)
    given = ("-r", answers, "--judgements", "llm", "--prompt-preset", "pope-appendix-e")
    with scripted(step) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny")
        ran = here("score", "vqa", *given, *flags, "--out", tmp_path / "here")
        assert ran.returncode == 3, ran.stderr
        remote = ServerProcess(*flags, "--data-folder", str(tmp_path / "data"))
        try:
            there = ("--server", remote.address, "--out", tmp_path / "there")
            assert here("score", "vqa", *given, *there).returncode == 3
        finally:
            remote.stop()
    report = report_of(tmp_path / "here")
    assert report == report_of(tmp_path / "there")
    assert json.dumps(PEOPLE) in llm.prompt_of(server.requests[0])
    # The VQA score of cat is 1, that of kitten 0.9 over all groups of nine, and <NAN> has 0.
    assert report["scores"]["vqa_score"]["value"] == pytest.approx((1 + 0.9 + 0) / 3)
    assert report["coverage"]["unscored"] == 1, "a reply that is none of the answers"
    assert ",pope-appendix-e-1@" in report["signature"]


def test_table_6_of_mementos_is_read_as_it_is_printed(tmp_path: Path) -> None:
    pair = [("1", "A man throws a ball.", "A man throws a ball and a dog runs.")]
    human = write_lines(tmp_path / "h.jsonl", [{"image": i, "description": t} for i, t, _ in pair])
    model = write_lines(tmp_path / "m.jsonl", [{"image": i, "description": t} for i, _, t in pair])
    given = ("score", "mementos", "-r", model, "-R", human, "--extractor", "llm")
    with scripted(llm.saying(LISTS)) as server:
        flags = ("--llm-url", server.url, "--llm-model", "tiny", "--out", tmp_path / "out")
        preset = ("--prompt-preset", "mementos-table6")
        ran = here(*given, *flags, *preset)
        assert ran.returncode == 0, ran.stderr
        [body] = server.requests
        assert llm.prompt_of(body).startswith("I will provide you two paragraphs.")
        assert "structured_outputs" not in body, "the form of its reply is not JSON"
        refused = here(*given[:-2], "--extractor", "rules", *flags, "--overwrite", *preset)
        assert_refused(refused, "--prompt-preset is a prompt of the extractor llm")
    report = report_of(tmp_path / "out")
    # Of man, ball: man; of man, dog: man. Of throw: throw; of throw, run: throw.
    assert report["scores"]["object_recall"]["value"] == 0.5
    assert report["scores"]["object_precision"]["value"] == 0.5
    assert report["scores"]["behavior_recall"]["value"] == 1
    assert report["scores"]["behavior_precision"]["value"] == 0.5
    assert "llm:tiny:mementos-table6-1@" in report["signature"]


def test_the_confidence_of_appendix_a4_is_asked_for_and_split_off(tmp_path: Path) -> None:
    rows = [
        {**{"question_id": n, "video": f"{n}.png", "question": "What?"}, "label": "A"}
        | {"options": ["x", "y"], "dimension": "factuality"}
        for n in (1, 2)
    ]
    replies = iter(["B, 90%", "B, 30 percent"])
    with scripted(lambda *_: llm.completion(next(replies)), model="m") as server:
        asked(server, tmp_path, "infact", rows, "--prompt-preset", "infact-a4")
    found = read_rows(tmp_path / "answers.jsonl")
    assert [(row["response"], row["confidence"]) for row in found] == [("B", 0.9), ("B", 0.3)]
    assert found[0]["steps"] == [{"step": "answer", "reply": "B, 90%"}]
    scored = here("score", "infact", "-r", tmp_path / "answers.jsonl", "-o", tmp_path / "run")
    assert scored.returncode == 0, scored.stderr
    scores = report_of(tmp_path / "run")["scores"]
    assert scores["overconfident_share"]["value"] == 0.5
    assert scores["knowledge_gap_share"]["value"] == 0.5


def test_a_preset_of_another_metric_is_refused_with_those_that_exist(tmp_path: Path) -> None:
    given = ("--images", tmp_path, "-o", tmp_path / "a.jsonl", "--url", "http://127.0.0.1:9/v1")
    ran = here("ask", "chair", *given, "--model", "m", "--prompt-preset", "infact-a4")
    assert_refused(ran, "presets of chair are pope-i1, pope-i2")
    shown = here("ask", "mementos", "--show-prompts").stdout
    assert "--prompt-preset mementos-table6: Wang et al. 2024 (Mementos), Table 6" in shown


def test_the_frames_of_a_sequence_are_sent_as_one_picture(tmp_path: Path) -> None:
    images = tmp_path / "images"
    (images / "seq").mkdir(parents=True)
    for seed in range(5):
        (images / "seq" / f"{seed}.png").write_bytes(png(seed))
    (tmp_path / "q.json").write_text(json.dumps([{"image_name": "seq.png"}]))
    given = ("-R", tmp_path / "q.json", "--images", images, "-o", tmp_path / "answers.jsonl")
    with scripted(llm.saying("A dog runs."), model="m") as server:
        ran = here(*llm.ask(server, "mementos", *given), "--combine-frames")
        assert ran.returncode == 0, ran.stderr
    [picture] = llm.images_of(server.requests[0])
    assert picture.startswith(b"\xff\xd8"), "as JPEG, the default"
    [row] = read_rows(tmp_path / "answers.jsonl")
    assert row["asked"]["how"] == "chat,plain,combined,max=1024"
