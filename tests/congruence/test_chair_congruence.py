"""Embedded equals remote, byte for byte, and so do its edges."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.running import here
from support.sizes import sized

from hallujudge.metrics import ChairItem
from hallujudge.sdk import AsyncClient, ScoreSpec
from hallujudge.sdk.errors import InvalidInputError

AWKWARD = [
    "A man rides a surfboard. There are two dogs, a baby bird and a toilet seat!",
    "",
    None,
    "çà et là — une voiture, 一只狗 🐕 and a cat",
    "İstanbul'da a cat sits on a chair",
    "hot dogs\n\n\tand (wine glasses) \"table\".) 'bus' U.S. 3. cake",
    "x" * 600_000,
    "lone \ud800 surrogate near a dog",
    "\u200bdog\u200b cat\u00a0horse",
    "<think>Is there a horse, or a bus?</think>A dog and a cat.",
    "[THINK]A dog, a",
    "I'm sorry, I can't help with people.",
    "A dog.</s><pad>",
    "A dog. There is a ca",
]
COPIES = sized(10, 40)


def places(server: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Where to score: here, and at the server."""
    return (("embedded", ()), ("remote", ("--server", server)))


@pytest.fixture
def archive(tmp_path: Path) -> tuple[Path, Path]:
    responses, references = tmp_path / "captions.jsonl", tmp_path / "objects.json"
    rows = [
        {"image_id": index, "caption": caption, "model": "ab"[index % 2]}
        for index, caption in enumerate(AWKWARD * COPIES)
    ]
    responses.write_text("".join(json.dumps(row) + "\n" for row in rows))
    references.write_text(
        json.dumps({str(row["image_id"]): ["dog", "person", "laptop"] for row in rows})
    )
    return responses, references


@pytest.mark.parametrize(
    ("variant", "thoughts"),
    [("published", "leave-out"), ("corrected", "score"), ("corrected", "keep")],
)
def test_files_are_equal(
    archive: tuple[Path, Path], server: str, tmp_path: Path, variant: str, thoughts: str
) -> None:
    responses, references = archive
    graph = tmp_path / "table.txt"
    graph.write_text("dog, puppy\ncat\nperson, man\nhot dog\nbus\ncar, voiture\n")
    outputs = []
    for name, where in places(server):
        run = here(
            *("score", "chair", "--responses", str(responses), "--references", str(references)),
            *("--graph", str(graph), "--variant", variant, "--group-by", "model"),
            *("--thoughts", thoughts),
            *("--count", "objects", "--confidence", "0.9", "--out", str(tmp_path / name), *where),
            *("--format", "json,html"),
        )
        assert run.returncode == 3, run.stderr
        files = ("report.json", "items.jsonl", "report.html")
        outputs.append([(tmp_path / name / file).read_bytes() for file in files] + [run.stdout])
    assert outputs[0] == outputs[1]
    report = json.loads(outputs[0][0])
    assert report["coverage"]["reasons"] == {
        "RESPONSE_EMPTY": COPIES,
        "RESPONSE_MISSING": COPIES,
        "RESPONSE_TOO_LONG": COPIES,
        **({} if thoughts == "keep" else {"THOUGHT_UNFINISHED": COPIES}),
    }
    assert set(report["groups"]["model"]) == {"a", "b"}


def test_real_captions_are_equal(goldens: Path, server: str, tmp_path: Path) -> None:
    chair = goldens / "chair"
    outputs = []
    for name, where in places(server):
        run = here(
            *(
                "score",
                "chair",
                "--responses",
                f"{chair}/pope_brief_description_llava.captions.json",
            ),
            *("--references", f"{chair}/coco_reference_objects.json"),
            *("--graph", f"{chair}/coco_synonyms.txt", "--out", str(tmp_path / name), *where),
        )
        assert run.returncode == 0, run.stderr
        files = ("report.json", "items.jsonl")
        outputs.append([(tmp_path / name / file).read_bytes() for file in files])
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("again", [70, 700])
async def test_equal_ids_in_two_batches_are_refused_alike(server: str, again: int) -> None:
    items = [
        ChairItem(id=str(number), response="A dog.", reference_objects=("dog",))
        for number in range(again)
    ]
    repeated = [*items, items[3]]
    messages = []
    for client in (AsyncClient.embedded(), AsyncClient(server)):
        async with client:
            with pytest.raises(InvalidInputError) as caught:
                await client.score_items(ScoreSpec(metric="chair"), repeated)
            messages.append((caught.value.reason, str(caught.value)))
            report = await client.score_items(ScoreSpec(metric="chair"), items)
            assert report.coverage.items == again
    assert messages[0] == messages[1]
    assert f"items[{again}].id: '3' is also the id of items[3]" in messages[0][1]
