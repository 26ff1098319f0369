"""Files of questions in the forms in which benchmarks release them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.asked_files import images, run_of, written
from support.pictures import png
from support.running import read_rows

from hallujudge.asking import ask, estimate_asking
from hallujudge.sdk import Client
from hallujudge.sdk.errors import ArchiveError, InvalidInputError


@pytest.mark.parametrize(
    ("metric", "protocol", "record", "reason"),
    [
        ("mementos", "rewritten", {"qa": []}, "PAIRS_MISSING"),
        ("mementos", "rewritten", {}, "PAIRS_MISSING"),
        ("mementos", "rewritten", {"qa": [{"question": "Who?", "answer": " "}]}, "PAIRS_MISSING"),
        ("pope", "", {"text": " ", "label": "yes"}, "QUESTION_MISSING"),
        ("tri-he", "triplet-description", {"question": ""}, "QUESTION_MISSING"),
        ("infact", "", {"question": "Who?", "options": [], "label": "A"}, "OPTIONS_MISSING"),
    ],
)
def test_a_prompt_of_which_a_slot_would_be_empty_is_not_sent(
    tmp_path: Path,
    yes_server: llm.ScriptedLlm,
    metric: str,
    protocol: str,
    record: dict[str, Any],
    reason: str,
) -> None:
    images(tmp_path, "1.png")
    ids = ("image", "image_name", "img_id", "video", "question_id")
    whole = {**dict.fromkeys(ids, "1.png"), **record}
    questions = written(tmp_path / "questions.json", [whole])
    run = replace(run_of(yes_server, tmp_path, metric, questions), protocol=protocol)
    assert estimate_asking(run).calls == 0
    result = ask(run)
    assert (result.unanswered, yes_server.requests) == ({reason: 1}, [])


@pytest.mark.parametrize(
    ("files", "shown"),
    [
        (("ab12.jpg", "75_o 1.jpg"), 0),
        (("other.jpg", "75_o 1.jpg"), 1),
        (("other.jpg", "8/75_o 1.jpg"), 1),
        (("other.jpg",), None),
    ],
    ids=["the id", "the file of the address", "with its folder", "neither"],
)
@pytest.mark.parametrize("metric", ["mmhal", "pope"])
def test_an_image_is_found_by_the_file_of_its_address_too(
    tmp_path: Path,
    yes_server: llm.ScriptedLlm,
    metric: str,
    files: tuple[str, ...],
    shown: int | None,
) -> None:
    images(tmp_path, *files)
    address = "https://localhost:8/8/75_o%201.jpg?size=big"
    record = {"image_id": "ab12", "image_src": address, "question": "Red?", "gt_answer": "Yes."}
    record["question_type"] = "attribute"
    if metric == "pope":
        record = {"question_id": "1", "image": address, "text": "Is it red?", "label": "yes"}
        record |= {"image_id": "ab12"} if shown == 0 else {}
    result = ask(
        run_of(yes_server, tmp_path, metric, written(tmp_path / "questions.json", [record]))
    )
    assert [llm.images_of(body) for body in yes_server.requests] == (
        [] if shown is None else [[png(shown)]]
    )
    reasons = {"MEDIA_MISSING"} if metric == "mmhal" else {"MEDIA_OUTSIDE"}
    assert set(result.unanswered) == (reasons if shown is None else set())


def test_the_same_last_part_of_two_addresses_names_no_file(
    tmp_path: Path, yes_server: llm.ScriptedLlm
) -> None:
    images(tmp_path, "image.png")
    records = [
        {"question_id": n, "image": f"https://localhost/{n}/image.png", "text": "Is it red?"}
        for n in range(2)
    ]
    result = ask(
        run_of(yes_server, tmp_path, "pope", written(tmp_path / "questions.json", records))
    )
    assert (result.unanswered, yes_server.requests) == ({"MEDIA_OUTSIDE": 2}, [])


def test_the_reply_of_another_model_stops_after_one_call(
    tmp_path: Path, yes_server: llm.ScriptedLlm
) -> None:
    # All that a run sends at the same time arrives before the first reply does.
    slow = replace(llm.completion("Yes.", model="other"), delay=0.5)
    yes_server.steps = (lambda _number, _body: slow,)
    images(tmp_path, *(f"{n}.png" for n in range(60)))
    records = [
        {"question_id": n, "image": f"{n}.png", "text": "Is it red?", "label": "yes"}
        for n in range(60)
    ]
    run = run_of(yes_server, tmp_path, "pope", written(tmp_path / "questions.json", records))
    with pytest.raises(InvalidInputError, match="the reply is from 'other'"):
        ask(run)
    assert len(yes_server.requests) == 1


def test_questions_of_an_unknown_set_are_refused_before_a_call(
    tmp_path: Path, yes_server: llm.ScriptedLlm
) -> None:
    images(tmp_path, "entire_1.png")
    record = {"id": "entire_1", "questions": [{"question": "Is it a dog?", "answer": "Yes."}]}
    path = written(tmp_path / "mine.json", [record])
    with pytest.raises(ArchiveError, match="entire, interleave, misleading"):
        ask(run_of(yes_server, tmp_path, "event-hallusion", path))
    assert yes_server.chats == 0
    assert ask(
        run_of(yes_server, tmp_path, "event-hallusion", path.rename(tmp_path / "entire.json"))
    )
    assert {row["split"] for row in read_rows(tmp_path / "answers.jsonl")} == {"entire"}


def test_answers_about_clips_are_joined_with_released_questions(
    tmp_path: Path, yes_server: llm.ScriptedLlm
) -> None:
    images(tmp_path, "c1.png", "c2.png")
    asked = [{"q": "Is a man running?", "a": {"c1": "Yes", "c2": "No"}}]
    path = written(tmp_path / "binary_qa.json", {"0": asked, "1": asked})
    ask(run_of(yes_server, tmp_path, "vidhalluc-bqa", path))
    answers = tmp_path / "answers.jsonl"
    with Client.embedded() as client:
        alone = client.score("vidhalluc-bqa", responses=answers)
        joined = client.score("vidhalluc-bqa", responses=answers, references=path)
        lines = answers.read_text().splitlines()
        answers.write_text("\n".join(lines[:2]) + "\n")
        part = client.score("vidhalluc-bqa", responses=answers, references=path)
    assert joined.coverage == alone.coverage
    assert joined.accuracy == alone.accuracy == 0
    assert part.coverage.unscored == 1, "one question has no answer"


def test_a_wrong_display_order_is_one_sentence(tmp_path: Path, yes_server: llm.ScriptedLlm) -> None:
    images(tmp_path, "1.png")
    questions = written(tmp_path / "questions.json", [{"video": "1.png", "captions": {"1": "x"}}])
    options = written(tmp_path / "options.json", {"1.png": {"A": "1", "B": "1"}})
    with pytest.raises(ArchiveError, match=r"line 1: display orders that .* Write each as"):
        ask(replace(run_of(yes_server, tmp_path, "vidhal-mcqa", questions), options=options))
