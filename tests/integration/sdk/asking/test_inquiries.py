"""Files of questions in the forms in which benchmarks release them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.pictures import png
from support.running import read_rows

from hallujudge.sdk import Client
from hallujudge.sdk.asking import AskRun, ask
from hallujudge.sdk.errors import ArchiveError


@pytest.fixture
def server() -> Iterator[llm.ScriptedLlm]:
    made = llm.ScriptedLlm(llm.saying("Yes."))
    stop = made.in_thread()
    yield made
    stop()


def run_of(server: llm.ScriptedLlm, folder: Path, metric: str, *files: Path) -> AskRun:
    return AskRun(
        benchmark=metric,
        references=files,
        images=folder / "images",
        out=folder / "answers.jsonl",
        model={"llm_url": server.url, "llm_model": "m"},
    )


def images(folder: Path, *names: str) -> None:
    for seed, name in enumerate(names):
        path = folder / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(seed))


def written(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def test_released_lists_of_images_are_questions(tmp_path: Path, server: llm.ScriptedLlm) -> None:
    """DASH-B lists dataset -> object -> files, and one file name is of several objects."""
    lists = [
        written(tmp_path / "dash_benchmark_neg.json", {"coco": {"cup": ["5.png"]}}),
        written(
            tmp_path / "dash_benchmark_pos.json", {"coco": {"cup": ["8.png"], "bed": ["8.png"]}}
        ),
    ]
    images(tmp_path, "neg/coco/cup/5.png", "pos/coco/cup/8.png", "pos/coco/bed/8.png")
    result = ask(run_of(server, tmp_path, "dash-b", *lists))
    assert (result.answered, result.questions) == (3, 3), result.examples
    asked = {
        (llm.prompt_of(body).splitlines()[0], *llm.images_of(body)) for body in server.requests
    }
    assert asked == {
        ("Does this image show a cup?", png(0)),
        ("Does this image show a cup?", png(1)),
        ("Does this image show a bed?", png(2)),
    }
    with Client.embedded() as client:
        report = client.score("dash-b", responses=tmp_path / "answers.jsonl", references=lists)
    assert (report.true_positive_rate, report.true_negative_rate) == (1, 0)
    assert not [note for note in report.notes if "lists" in note or "no answer" in note]


def test_a_list_of_images_without_its_side_is_refused(
    tmp_path: Path, server: llm.ScriptedLlm
) -> None:
    images(tmp_path, "5.png")
    path = written(tmp_path / "images.json", {"coco": {"cup": ["5.png"]}})
    with pytest.raises(ArchiveError, match="_pos or _neg"):
        ask(run_of(server, tmp_path, "dash-b", path))
    assert server.chats == 0


def test_questions_of_an_unknown_set_are_refused_before_a_call(
    tmp_path: Path, server: llm.ScriptedLlm
) -> None:
    images(tmp_path, "entire_1.png")
    record = {"id": "entire_1", "questions": [{"question": "Is it a dog?", "answer": "Yes."}]}
    path = written(tmp_path / "mine.json", [record])
    with pytest.raises(ArchiveError, match="entire, interleave, misleading"):
        ask(run_of(server, tmp_path, "event-hallusion", path))
    assert server.chats == 0
    assert ask(run_of(server, tmp_path, "event-hallusion", path.rename(tmp_path / "entire.json")))
    assert {row["split"] for row in read_rows(tmp_path / "answers.jsonl")} == {"entire"}


def test_answers_about_clips_are_joined_with_released_questions(
    tmp_path: Path, server: llm.ScriptedLlm
) -> None:
    images(tmp_path, "c1.png", "c2.png")
    asked = [{"q": "Is a man running?", "a": {"c1": "Yes", "c2": "No"}}]
    path = written(tmp_path / "binary_qa.json", {"0": asked, "1": asked})
    ask(run_of(server, tmp_path, "vidhalluc-bqa", path))
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
