"""``hallujudge build vidhal`` and its votes, with a scripted language model over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.qa_samples import write_lines
from support.running import assert_refused, here, read_rows

VIDEOS: list[dict[str, Any]] = [
    {"video": "v1", "aspect": "direction", "description": "A red ball rolls to the left."},
    {
        "video": "v2",
        "aspect": "attribute",
        "subaspect": "count",
        "questions": [{"question": "How many dogs run?", "answer": "Two"}],
    },
    {"video": "v3", "aspect": "order", "anchor": "She eats, then drinks, then leaves."},
]


def writes(_number: int, body: llm.Body) -> llm.Reply:
    """Return what a model would write."""
    prompt = llm.prompt_of(body)
    if "Reply with the sentence alone" in prompt:
        return llm.completion('"Two dogs run."' if "dogs" in prompt else "A ball rolls left.")
    if "Reply with a JSON list" in prompt:
        (anchor,) = (line for line in prompt.splitlines() if line.startswith("Correct sentence: "))
        wrong = [f"{anchor[18:]} No {n}." for n in (1, 2)]
        return llm.completion(f"Here it is:\n```json\n{json.dumps(wrong)}\n```")
    return llm.completion("No." if "absurd" in prompt else "Yes.")


@pytest.fixture
def server() -> Iterator[llm.ScriptedLlm]:
    made = llm.ScriptedLlm(writes)
    stop = made.in_thread()
    yield made
    stop()


def build(server: llm.ScriptedLlm, *arguments: object, command: str = "vidhal") -> Any:
    given = ("--url", server.url, "--model", "m")
    return here("build", command, *map(str, arguments), *given)


def test_captions_and_votes_are_made_scored_and_ranked(
    server: llm.ScriptedLlm, tmp_path: Path
) -> None:
    videos = write_lines(tmp_path / "videos.jsonl", VIDEOS)
    out = tmp_path / "annotations.json"
    run = build(server, "-R", videos, "-o", out)
    assert run.returncode == 0, run.stderr
    # An anchor that is given is not asked for.
    assert len(server.requests) == 5
    made = json.loads(out.read_text())
    assert [row["captions"]["1"] for row in made] == [
        "A ball rolls left.",
        "Two dogs run.",
        "She eats, then drinks, then leaves.",
    ]
    assert made[1]["captions"]["3"] == "Two dogs run. No 2."
    assert (made[1]["aspect"], made[1]["subaspect"]) == ("attribute", "count")
    prompts = [llm.prompt_of(body) for body in server.requests]
    assert any("how many objects or persons there are" in prompt for prompt in prompts)
    assert any("in which direction something moves" in prompt for prompt in prompts)
    # The same command asks nothing again, and writes the same file.
    before = out.read_bytes()
    assert build(server, "-R", videos, "-o", out).returncode == 0
    assert len(server.requests) == 5
    assert out.read_bytes() == before

    votes = tmp_path / "votes.jsonl"
    run = build(server, "-R", out, "-o", votes, command="vidhal-votes")
    assert run.returncode == 0, run.stderr
    rows = read_rows(votes)
    # Three wordings: realism of three captions, relevance of two, one order.
    assert len(rows) == 3 * 3 * 6
    assert {row["judge"] for row in rows} == {"m"}
    assert len({(row["video"], row["criterion"], row["prompt"]) for row in rows}) == len(rows)
    answers = {"v1": "A", "v2": "A", "v3": "B"}
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    orders = {row["video"]: {"A": 1, "B": 2, "C": 3} for row in made}
    (tmp_path / "options.json").write_text(json.dumps(orders))
    scored = here(
        *("score", "vidhal-mcqa", "-r", tmp_path / "answers.json", "-R", out),
        *("--options", tmp_path / "options.json", "-o", tmp_path / "run"),
    )
    assert scored.returncode == 0, scored.stderr
    given = ("--votes", votes, "--table", "caption_quality", "--format", "json")
    found = here("analyze", tmp_path / "run", *given)
    assert found.returncode == 0, found.stderr
    (first, *_) = json.loads(found.stdout)["analyses"]["caption_quality"]["rows"]
    # One of three wordings of realism is answered by no.
    assert first["realism"] == pytest.approx(2 / 3)
    assert first["total"] == pytest.approx(2 + 2 / 3)


def test_the_best_videos_by_all_votes_are_kept(tmp_path: Path) -> None:
    # Totals 3, 0 (an unread reply counts 0) and 1.5; the fourth has no vote on its order.
    said = {"v1": ("yes", "yes"), "v2": ("no", None), "v3": ("yes", "no"), "v4": ("yes", "yes")}
    for judge in (0, 1):
        rows = [
            {"video": video, "judge": str(judge), "criterion": kind, "answer": answers[judge]}
            for video, answers in said.items()
            for kind in ("realism", "ordering", "relevance")
            if (video, kind) != ("v4", "ordering")
        ]
        write_lines(tmp_path / f"{judge}.jsonl", rows)
    captions = {"1": "A.", "2": "B.", "3": "C."}
    videos = [{"video": video, "aspect": "order", "captions": captions} for video in said]
    (tmp_path / "all.json").write_text(json.dumps(videos))
    out = tmp_path / "best.json"
    votes = ("--votes", tmp_path / "0.jsonl", "--votes", tmp_path / "1.jsonl")
    common = ("build", "vidhal-best", "-R", tmp_path / "all.json", *votes, "-o", out)
    ran = here(*common, "--count", "2")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(out.read_text()) == [videos[0], videos[2]]
    assert here(*common).returncode == 0
    assert json.loads(out.read_text()) == videos[:3]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("I can't do that.", "REPLY_UNPARSED: the reply is not a JSON list"),
        ('["One."]', "REPLY_UNPARSED: the reply has 1 captions, not 2"),
        ('["One.", "one."]', "REPLY_UNPARSED: two captions are equal"),
        ('["One.", 2]', "REPLY_UNPARSED: the reply is not a JSON list of texts"),
    ],
)
def test_a_reply_that_can_not_be_read_leaves_its_video_out(
    server: llm.ScriptedLlm, tmp_path: Path, said: str, reason: str
) -> None:
    def odd(number: int, body: llm.Body) -> llm.Reply:
        is_odd = "JSON list" in llm.prompt_of(body) and "She eats" in llm.prompt_of(body)
        return llm.completion(said) if is_odd else writes(number, body)

    server.steps = [odd]
    videos = write_lines(tmp_path / "videos.jsonl", VIDEOS)
    run = build(server, "-R", videos, "-o", tmp_path / "annotations.json")
    assert run.returncode == 3
    assert f"not made: v3: {reason}" in run.stderr
    assert "captions of 2 of 3 videos" in run.stdout


def test_a_refusal_has_its_reason(server: llm.ScriptedLlm, tmp_path: Path) -> None:
    server.steps = [llm.saying(None, refusal="I can't help with that.")]
    videos = write_lines(tmp_path / "videos.jsonl", VIDEOS[:1])
    run = build(server, "-R", videos, "-o", tmp_path / "annotations.json")
    assert run.returncode == 1
    assert "not made: v1: MODEL_REFUSED" in run.stderr


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"video": "v", "aspect": "colour", "description": "x"}, "choose from attribute, object"),
        ({"video": "v", "aspect": "order"}, "nothing is known about the video"),
        ({"aspect": "order", "description": "x"}, "video"),
    ],
)
def test_records_that_lack_something_are_refused(
    server: llm.ScriptedLlm, tmp_path: Path, row: dict[str, Any], said: str
) -> None:
    videos = write_lines(tmp_path / "videos.jsonl", [row])
    run = build(server, "-R", videos, "-o", tmp_path / "annotations.json")
    assert_refused(run, said)
    assert server.requests == []


def test_votes_need_captions(server: llm.ScriptedLlm, tmp_path: Path) -> None:
    videos = write_lines(tmp_path / "videos.jsonl", VIDEOS)
    run = build(server, "-R", videos, "-o", tmp_path / "votes.jsonl", command="vidhal-votes")
    assert_refused(run, "no captions")
    assert_refused(build(server, "-R", videos, "-o", videos), "is one of the inputs")
