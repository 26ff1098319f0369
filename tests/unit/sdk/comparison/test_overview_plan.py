"""Every file of a tree is scored or listed with a reason, whatever is next to it."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.archive_samples import CAPTION_LAYOUTS, CAPTIONS, QUESTION_LAYOUTS, QUESTIONS

from hallujudge.sdk import Client
from hallujudge.sdk.comparison.overview import Overview, score_all
from hallujudge.sdk.comparison.planned_runs import task_of_file

SCORED = tuple(q for q in QUESTIONS if q.answer and not q.answer.startswith("Failed"))
KEYWORDS = (
    "Object list 1: [dog, car]\nAction list 1: [bark]\nObject list 2: [dog]\nAction list 2: [run]\n"
)


def overview_of(folder: Path, out: Path) -> Overview:
    with Client.embedded() as client:
        return score_all(folder, out, client=client)


def scores_of(overview: Overview) -> Mapping[str, object]:
    return {run.archive: run.report.scores for run in overview.runs}


def listed(overview: Overview) -> set[str]:
    return {Path(entry.archive).name for entry in (*overview.left_out, *overview.beside)}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Good logs of one folder: of two tools, plain records, and keyword files."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for made in (
        QUESTION_LAYOUTS["lmms-eval C"](tmp_path / "a", SCORED),
        CAPTION_LAYOUTS["lmms-eval C"][1](tmp_path / "b", CAPTIONS),
        QUESTION_LAYOUTS["VLMEvalKit tsv"](tmp_path / "c", SCORED),
    ):
        made.rename(folder / made.name)
    for number in (1, 2):
        (folder / f"sequence_{number}.txt").write_text(KEYWORDS)
    return folder


@pytest.mark.parametrize(
    "name",
    ["notes.txt", "README.txt", "requirements.txt", "stdout.txt", "README.MD", "stdout.log"],
)
def test_a_stray_text_hides_no_log(logs: Path, tmp_path: Path, name: str) -> None:
    before = overview_of(logs, tmp_path / "before")
    assert {run.report.metric for run in before.runs} == {"chair", "mementos", "pope"}
    (logs / name).write_text("torch==2.13\nscored on Monday\n")
    after = overview_of(logs, tmp_path / "after")
    assert scores_of(after) == scores_of(before)
    assert listed(after) - listed(before) == {name}


def test_truncated_and_empty_logs_are_named(logs: Path, tmp_path: Path) -> None:
    good = next(logs.glob("*samples_pope*.jsonl")).read_bytes()
    (logs / "cut.jsonl").write_bytes(good[:-20])
    (logs / "empty.jsonl").write_bytes(b"")
    (logs / "cut.jsonl.gz").write_bytes(gzip.compress(good)[:-20])
    before = overview_of(logs, tmp_path / "before")
    assert {"cut.jsonl", "empty.jsonl", "cut.jsonl.gz"} <= listed(before)
    assert len(before.runs) == 4


def test_a_truncated_keyword_file_is_named(logs: Path, tmp_path: Path) -> None:
    (logs / "sequence_3.txt").write_text("Object list 1: [dog]\n")
    (left,) = overview_of(logs, tmp_path / "out").left_out
    assert "sequence_3.txt" in left.reason


@pytest.mark.parametrize("empty", [False, True])
def test_answers_with_their_labels_are_not_taken_for_questions(
    tmp_path: Path, *, empty: bool
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    rows = [
        {"question_id": number, "image": q.image, "label": q.label}
        for number, q in enumerate(SCORED)
    ]
    answers = [{**row, "text": q.answer} for row, q in zip(rows, SCORED, strict=True)]
    if empty:
        answers[0]["text"] = ""
    questions = [{**row, "text": q.text} for row, q in zip(rows, SCORED, strict=True)]
    for name, lines in (("model", answers), ("questions", questions)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    overview = overview_of(folder, tmp_path / "out")
    (run,) = overview.runs
    assert (run.model, run.report.coverage.items) == ("model", len(SCORED))
    assert listed(overview) == {"questions.jsonl"}


def junk(seed: int, good: bytes) -> tuple[str, bytes]:
    """Return the name and the content of a file that is not a good log."""
    draw = random.Random(seed)
    suffix = draw.choice(
        ["json", "jsonl", "csv", "tsv", "txt", "xlsx", "parquet", "eval", "gz", "zst", "dat", ""]
    )
    words = ["null", "1e999", "[]", "{}", '{"id": 1}', '{"question_id": null, "text": []}', "yes"]
    contents = (
        b"",
        b"\xef\xbb\xbf  \n",
        draw.randbytes(draw.randrange(1, 400)),
        good[: draw.randrange(len(good))] + draw.randbytes(3),
        b"PK\x03\x04" + draw.randbytes(60),
        b"PAR1" + draw.randbytes(60) + b"PAR1",
        gzip.compress(draw.randbytes(90))[: draw.randrange(40, 110)],
        b"[" * draw.randrange(1, 3000),
        "\n".join(draw.choices(words, k=5)).encode(),
        f"[{','.join(draw.choices(words, k=4))}]".encode("utf-16"),
        json.dumps({draw.choice(["qa", "basic", "results", "video"]): draw.random()}).encode(),
    )
    return f"junk {seed}{'.' if suffix else ''}{suffix}", draw.choice(contents)


@pytest.mark.parametrize("seed", range(8))
def test_junk_among_good_logs_changes_no_score(logs: Path, tmp_path: Path, seed: int) -> None:
    before = scores_of(overview_of(logs, tmp_path / "before"))
    good = next(logs.glob("*samples_pope*.jsonl")).read_bytes()
    added = dict(junk(100 * seed + number, good) for number in range(12))
    for name, content in added.items():
        (logs / name).write_bytes(content)
    after = overview_of(logs, tmp_path / "after")
    found = scores_of(after)
    assert {path: found.get(path) for path in before} == before
    scored = {Path(run.archive).name for run in after.runs}
    assert added.keys() <= scored | listed(after)


def rated(number: int) -> dict[str, object]:
    return {
        "question_type": "attribute",
        "image_id": str(number),
        "question": "What color is the cap?",
        "gt_answer": "It is yellow.",
        "model_answer": "Yellow.",
    }


def test_reviews_belong_to_the_answers_with_the_same_name(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for model, rating in (("a", 6), ("b", 2)):
        reviews = [{"object": "x", "model": "j", "choices": [{"text": f"Rating: {rating}"}]}]
        (folder / f"answer-file-{model}.json").write_text(json.dumps([rated(1)]))
        (folder / f"review-file-{model}.json").write_text(json.dumps(reviews))
    (folder / "alone.json").write_text(json.dumps([rated(1)]))
    overview = overview_of(folder, tmp_path / "out")
    found = {Path(run.archive).name: run.report.average_score for run in overview.runs}
    assert found == {"answer-file-a.json": 6, "answer-file-b.json": 2}
    [left] = overview.left_out
    assert Path(left.archive).name == "alone.json"
    assert "--reviews" in left.command


def test_a_folder_of_clips_is_one_run_wherever_it_is(tmp_path: Path) -> None:
    lines = [[1, "He sings a song.", "", "dynamic-action", "", "contradiction"]]
    result = {"human_caption": "A man sits.", "model_caption": "He sings.", "result_tuple": lines}
    for model in ("a", "b"):
        for clip in ("c1", "c2"):
            file = tmp_path / "logs" / f"evals_{model}" / clip / "REF_human" / f"TAR_{model}.json"
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps(result))
    overview = overview_of(tmp_path / "logs", tmp_path / "out")
    assert {(run.model, run.report.metric) for run in overview.runs} == {
        ("evals_a", "argus"), ("evals_b", "argus"),
    }  # fmt: skip
    assert [run.report.coverage.items for run in overview.runs] == [4, 4]
    assert not overview.left_out


PLAIN = {
    "pope": {"question_id": 1, "image": "1.jpg", "text": "Is there a dog?", "label": "yes"},
    "chair": {"image_id": 1, "caption": "A dog and a cat.", "reference_objects": ["dog"]},
    "video-hallucer": {
        **{"set": "temporal", "pair_id": 1, "video": "1.mp4", "question": "Is it?"},
        **{"answer": "yes", "predict": "Yes."},
    },
    "vqa": {
        **{"question_id": 1, "question": "What?", "direct_answers": ["cat"]},
        **{"response": "A cat.", "judgement": "cat"},
    },
}


@pytest.mark.parametrize("metric", list(PLAIN))
def test_answers_that_carry_all_they_need_are_scored(metric: str, tmp_path: Path) -> None:
    rows = [PLAIN[metric]]
    if metric == "video-hallucer":
        rows = [{**row, "role": role} for row in rows for role in ("basic", "hallucination")]
    (tmp_path / "logs").mkdir()
    more = {"answer": "No."} if metric == "pope" else {}
    lines = [json.dumps({**row, **more}) for row in rows]
    (tmp_path / "logs" / "model.jsonl").write_text("\n".join(lines))
    overview = overview_of(tmp_path / "logs", tmp_path / "out")
    assert [run.report.metric for run in overview.runs] == [metric]
    if metric == "pope":
        assert overview.runs[0].report.scores["accuracy"].value == 0, "the answer, not the question"


def test_runs_of_one_tool_have_one_name_for_every_model(tmp_path: Path) -> None:
    """A version in a model's name is not a suffix, and neither names nor ids are a task."""
    logs = tmp_path / "logs"
    rows = [{"index": 1, "question": "Is there a dog?", "answer": "Yes", "prediction": "Yes"}]
    for model in ("llava-1.5-7b", "mplug-owl"):
        folder = logs / model / "T20251128-101112"
        folder.mkdir(parents=True)
        (folder / f"{model}_POPE.json").write_text(json.dumps(rows))
        sample = {"doc_id": 1, "target": "yes", "filtered_resps": "Yes"}
        (logs / model / "20251128_101112_samples_pope.jsonl").write_text(json.dumps(sample))
        answer = {"id": "1", "label": "yes", "response": "Yes"}
        (logs / model / f"{model}.jsonl").write_text(json.dumps(answer))
    overview = overview_of(logs, tmp_path / "out")
    names: dict[str, list[str]] = {}
    for run in overview.runs:
        names.setdefault(run.model, []).append(run.name)
    expected = ["pope", "pope POPE", "pope pope"]
    assert names == {"llava-1.5-7b": expected, "mplug-owl": expected}


@pytest.mark.parametrize(
    ("name", "model", "task", "said"),
    [
        ("llava-1.5-7b_POPE.xlsx", "kit/llava-1.5-7b", "", "POPE"),
        ("llava-1.5-7b.jsonl.gz", "llava-1.5-7b", "", ""),
        ("2026-11-28T17-01-46-00-00_pope_XBBWbU3jPt77vLxw3em2eU.eval", "m", "pope", ""),
        ("20261128_172500_samples_pope.jsonl", "m", "pope", "samples_pope"),
        ("pope_random.jsonl", "m", "pope_random", ""),
    ],
)
def test_a_files_name_says_its_task_without_time_and_model(
    name: str, model: str, task: str, said: str
) -> None:
    assert task_of_file(name, model, task) == said
