"""``hallujudge build infact``, ``ask infact`` and ``score infact``, one after the other."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import av
import pytest
from support import scripted_llm as llm
from support.pictures import number_in, numbered_video
from support.qa_samples import write_lines
from support.running import here, read_rows
from support.video_clips import clip, counted


@pytest.fixture
def server() -> Iterator[llm.ScriptedLlm]:
    made = llm.ScriptedLlm(llm.saying("B"))
    stop = made.in_thread()
    yield made
    stop()


def numbers(images: list[bytes]) -> list[int]:
    """Return the numbers that frames show."""
    found = []
    for image in images:
        with av.open(io.BytesIO(image)) as container:
            found.append(counted(next(container.decode(video=0)).to_ndarray(format="rgb24")))
    return found


def test_infacts_degraded_videos_are_asked_as_they_were_built(
    tmp_path: Path, server: llm.ScriptedLlm
) -> None:
    videos = tmp_path / "videos"
    videos.mkdir()
    numbered_video(videos / "v1.mp4", 40)
    degraded = tmp_path / "degraded"
    operators = ("reverse", "motion_blur")
    built = here(
        *("build", "infact", videos, "-o", degraded),
        *(part for name in operators for part in ("--operator", name)),
    )
    assert built.returncode == 0, built.stderr
    question = {
        **{"question_id": 1, "video": "v1.mp4", "question": "What?", "options": ["x", "y"]},
        **{"label": "B", "order_sensitive": True},
    }
    questions = write_lines(tmp_path / "questions.jsonl", [question])
    server.steps = (llm.saying("B"),)
    out = tmp_path / "answers.jsonl"
    run = here(
        *llm.ask(server, "infact", "-R", questions, "--images", degraded, "-o", out),
        *("--frames", "uniform:4", "--condition", "base", "--condition", "reverse"),
        *("--condition", "motion_blur"),
    )
    assert run.returncode == 0, run.stderr
    rows = read_rows(out)
    assert [row["operator"] for row in rows] == ["base", "motion_blur", "reverse"]
    seen = {tuple(map(number_in, images)) for _, images in server.shown()}
    assert (5, 15, 25, 35) in seen
    assert (34, 24, 14, 4) in seen, "the frames of the reversed video"
    scored = here("score", "infact", "-r", out, "-o", tmp_path / "scores", "-f", "json")
    scores = json.loads(scored.stdout)["scores"]
    assert (scores["rr_motion_blur"]["value"], scores["tss_reverse"]["value"]) == (1, 0)


def test_infacts_modes_run_from_clean_videos_to_scores(
    tmp_path: Path, server: llm.ScriptedLlm
) -> None:
    """As in the pages: every operator that needs no encoders, then the made procedures."""
    for name in ("v1", "v2"):
        clip(tmp_path / "videos" / f"{name}.mp4", 50)
    line = "1\n00:00:00,200 --> 00:00:01,500\nThe man opens the door.\n"
    (tmp_path / "videos" / "v1.srt").write_text(line)
    steps = tmp_path / "steps.json"
    steps.write_text(json.dumps({"v2": {"task": "Brew", "steps": [[0, 0.9], [0.9, 1.9]]}}))
    degraded = tmp_path / "degraded"
    built = here("build", "infact", tmp_path / "videos", "--steps", steps, "-o", degraded)
    assert built.returncode == 0, built.stderr
    about = {"question": "What?", "options": ["x", "y"], "order_sensitive": True}
    questions = [
        {**about, "question_id": n, "video": f"v{n}.mp4", "label": label}
        for n, label in ((1, "B"), (2, "A"))
    ]
    server.steps = (llm.saying("B"),)
    answers, listed = tmp_path / "qwen.jsonl", write_lines(tmp_path / "q.jsonl", questions)
    run = here(*llm.ask(server, "infact", "-R", listed, "--images", degraded, "-o", answers))
    assert run.returncode == 3, run.stderr
    lacking = [row for row in read_rows(answers) if row["response"] is None]
    # The second video has no subtitles.
    assert [(row["question_id"], row["operator"]) for row in lacking] == [
        (2, "subtitle_corruption")
    ]
    scored = here("score", "infact", "-r", answers, "-o", tmp_path / "scores", "-f", "json")
    scores = json.loads(scored.stdout)["scores"]
    for operator in ("gaussian_noise", "motion_blur", "compression", "caption_injection"):
        assert (scores[f"rr_{operator}"]["value"], scores[f"rr_{operator}"]["n"]) == (1, 1)
    assert scores["rr_subtitle_corruption"]["n"] == 1
    assert (scores["base_accuracy"]["value"], scores["tss"]["value"]) == (0.5, 0)
    server.requests.clear()
    made, out = degraded / "procedural_counterfactual" / "questions.jsonl", tmp_path / "p.jsonl"
    run = here(
        *llm.ask(server, "infact", "-R", made, "--images", degraded, "-o", out),
        *("--condition", "base", "--frames", "all"),
    )
    assert run.returncode == 0, run.stderr
    clean, other = sorted([numbers(images) for _, images in server.shown()])
    assert clean == [*range(50)]
    assert sorted(other) == clean, "the steps are exchanged"
    assert other != clean
    scored = here("score", "infact", "-r", out, "-o", tmp_path / "made", "-f", "json")
    assert json.loads(scored.stdout)["scores"]["base_accuracy"]["value"] == 0.5
    # Under an operator, the name of the made video must not find that of the clean one.
    only = write_lines(tmp_path / "only.jsonl", read_rows(made)[1:])
    run = here(
        *llm.ask(server, "infact", "-R", only, "--images", degraded, "-o", tmp_path / "o.jsonl"),
        *("--condition", "gaussian_noise"),
    )
    assert run.returncode == 3, run.stderr
    assert "has no video under 'gaussian_noise'" in run.stderr
