"""``hallujudge build tri-he``, with a scripted vision language model over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import scripted_llm as llm
from support.pictures import png
from support.running import assert_refused, here

from hallujudge.metrics.framework.claims import triplet_of

NAMES = ("man", "horse", "hat", "tree", "fence")


def graph(relations: int, objects: int = 5) -> dict[str, Any]:
    """Return a scene graph in GQA's form, with relations in a circle."""
    found: dict[str, Any] = {
        str(n): {"name": name, "relations": [], "attributes": []}
        for n, name in enumerate(NAMES[:objects])
    }
    for n in range(relations):
        near = {"name": f"near {n}", "object": str((n + 1) % objects)}
        found[str(n % objects)]["relations"].append(near)
    found["0"]["attributes"] = ["tall"]
    return {"width": 32, "height": 24, "objects": found}


WRITTEN = [
    {
        "question": "Why is he outside?",
        "answer": "He rides.",
        "triplets": [
            *(["man", "rides", "horse"], ["man", "sees", "ghost"], ["a, b", "c", "d"]),
            *(["man", "rides"], ["man", "rides", "horse", "fast"], ["man", " ", "horse"], "rides"),
        ],
    },
    {"question": "Is it the moon?", "answer": "Yes.", "triplets": [["moon", "is", "full"]]},
    {"question": "What season is it?", "answer": "Summer.", "triplets": []},
    {"question": "No answer?"},
]


def replies(_number: int, body: llm.Body) -> llm.Reply:
    """Return what a model would say; it doubts the moon and the ghost."""
    prompt = llm.prompt_of(body)
    if "Reply with a JSON list" in prompt:
        return llm.completion(f"```json\n{json.dumps(WRITTEN)}\n```")
    return llm.completion("No." if "moon" in prompt or "ghost" in prompt else "Yes.")


@pytest.fixture
def server() -> Iterator[llm.ScriptedLlm]:
    made = llm.ScriptedLlm(replies)
    stop = made.in_thread()
    yield made
    stop()


def given(folder: Path, graphs: dict[str, Any]) -> tuple[str, ...]:
    path = folder / "graphs.json"
    path.write_text(json.dumps(graphs))
    (folder / "images").mkdir(exist_ok=True)
    for number, name in enumerate(graphs):
        (folder / "images" / f"{name}.png").write_bytes(png(number))
    return ("--scene-graphs", str(path), "--images", str(folder / "images"))


def build(server: llm.ScriptedLlm, out: Path, *arguments: str) -> Any:
    model = ("--url", server.url, "--model", "m")
    return here("build", "tri-he", *arguments, *model, "-o", str(out))


def test_questions_are_written_checked_and_read_by_score(
    server: llm.ScriptedLlm, tmp_path: Path
) -> None:
    graphs = {"11": graph(6), "12": graph(4), "13": graph(6, objects=2), "14": graph(5)}
    out = tmp_path / "tri-he.json"
    run = build(server, out, *given(tmp_path, graphs))
    assert run.returncode == 0, run.stderr
    made = json.loads(out.read_text())
    # 12 has four relations, and 13 two objects only.
    assert list(made) == ["11", "14"]
    assert "2 questions and 2 triplets failed a check" in run.stderr
    record = made["11"]
    assert [each["question"] for each in record["instance"]] == [
        "Why is he outside?",
        "What season is it?",
    ]
    assert record["instance"][0]["triplet"] == ["(man, rides, horse)"]
    assert record["triplets"][:2] == ["(man, is, tall)", "(man, near 0, horse)"]
    assert record["triplets"][-1] == "(man, rides, horse)"
    assert record["all_object"] == list(NAMES)
    assert set(record["object"]) == set(NAMES)
    parts = triplet_of("(man, rides, horse)")
    assert (parts.subject, parts.relation, parts.object) == ("man", "rides", "horse")
    # Every call shows its image; the writer sees the scene graph.
    assert all(len(llm.images_of(body)) == 1 for body in server.requests)
    assert "(man, near 0, horse)" in llm.prompt_of(server.requests[0])
    # 1 writes, 3 questions: 2 + 2 triplets, 1, 2.
    assert len(server.requests) == 2 * (1 + 4 + 1 + 2)
    before, calls = out.read_bytes(), len(server.requests)
    assert build(server, out, *given(tmp_path, graphs)).returncode == 0
    assert (out.read_bytes(), len(server.requests)) == (before, calls)

    asked = here(
        *("ask", "tri-he", "-R", out, "--images", tmp_path / "images", "--url", server.url),
        *("--model", "m", "-o", tmp_path / "answers.jsonl"),
    )
    assert asked.returncode == 0, asked.stderr
    assert "4 of 4 answers" in asked.stdout


def test_questions_for_people_are_not_checked(server: llm.ScriptedLlm, tmp_path: Path) -> None:
    out = tmp_path / "tri-he.json"
    run = build(server, out, *given(tmp_path, {"11": graph(6)}), "--unchecked")
    assert run.returncode == 0, run.stderr
    assert len(json.loads(out.read_text())["11"]["instance"]) == 3
    assert len(server.requests) == 1


def test_images_are_drawn_by_a_seed(server: llm.ScriptedLlm, tmp_path: Path) -> None:
    inputs = given(tmp_path, {str(n): graph(6) for n in range(20, 30)})
    drawn = []
    for place, seed in enumerate(("1", "1", "2")):
        out = tmp_path / f"{place}.json"
        run = build(server, out, *inputs, "--unchecked", "--count", "4", "--seed", seed)
        assert run.returncode == 0, run.stderr
        drawn.append(list(json.loads(out.read_text())))
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0]) == 4


def test_what_can_not_be_made_has_its_reason(server: llm.ScriptedLlm, tmp_path: Path) -> None:
    inputs = given(tmp_path, {"11": graph(6), "12": graph(6)})
    (tmp_path / "images" / "12.png").unlink()
    out = tmp_path / "tri-he.json"
    run = build(server, out, *inputs)
    assert run.returncode == 3
    assert "not made: 12: MEDIA_MISSING" in run.stderr
    server.steps = [llm.saying("I see a horse.")]
    run = build(server, tmp_path / "other.json", *inputs)
    assert run.returncode == 1
    assert "not made: 11: REPLY_UNPARSED: the reply is not a JSON list" in run.stderr


def test_mistakes_have_a_sentence_each(server: llm.ScriptedLlm, tmp_path: Path) -> None:
    out = tmp_path / "tri-he.json"
    few = given(tmp_path, {"11": graph(4)})
    assert_refused(build(server, out, *few), "no image has 5 relations")
    many = build(server, out, *few, "--least-relations", "4", "--count", "9")
    assert_refused(many, "only 1 images")
    odd = given(tmp_path, {"11": {"objects": {"1": {"name": "man", "relations": [{"name": "x"}]}}}})
    assert_refused(build(server, out, *odd), "is not in GQA's form")
    assert server.requests == []
