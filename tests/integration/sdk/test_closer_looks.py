"""What a judge is shown of a claim's moment, and of the objects that it names."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image
from support import scripted_llm as llm
from support.pictures import number_in, numbered_video
from support.running import ServerProcess
from support.shapes import COLOURS, Scene

from hallujudge.metrics import ItemResult, Report
from hallujudge.sdk import Client, InputOptions
from hallujudge.sdk.errors import ArchiveError

SCENE = Scene((("ball", "red", 3), ("box", "blue", 2)))
BOXES = [
    {"category": "ball", "bbox": [0, 0, 96, 32]},
    {"category": "box", "bbox": [0, 32, 32, 32]},
    {"category": "box", "bbox": [32, 32, 32, 32]},
]
TEXT = "The ball is red. There are two boxes. There is a tent."


class Asked(NamedTuple):
    """A server that says no of tents, and what it was asked."""

    server: llm.ScriptedLlm
    calls: list[tuple[list[Any], list[bytes]]]
    """The claims and the pictures of each call."""

    def images_of(self, subject: str) -> list[bytes]:
        """Return the pictures that came with a claim about something."""
        [images] = [images for [claim], images in self.calls if claim[0] == subject]
        return images


@pytest.fixture
def asked() -> Iterator[Asked]:
    calls: list[tuple[list[Any], list[bytes]]] = []

    def step(_number: int, body: llm.Body) -> llm.Reply:
        claims = llm.claims_of(body)
        calls.append((claims, llm.images_of(body)))
        said = ["not_supported" if "tent" in claim else "supported" for claim in claims]
        if "<<<CLAIMS" in llm.prompt_of(body):
            return llm.completion(json.dumps(dict(zip(map(str, range(1, 99)), said, strict=False))))
        return llm.completion(said[0])

    server = llm.ScriptedLlm(step)
    stop = server.in_thread()
    yield Asked(server, calls)
    stop()


def scored(asked: Asked, records: Any, **more: Any) -> tuple[Report, list[ItemResult]]:
    results: list[ItemResult] = []
    options = {"judge": "llm", **more.pop("options", {})}
    with Client.embedded({"llm.url": asked.server.url, "llm.model": "m"}) as client:
        report = client.score(
            "seen-claims",
            responses=records,
            options=options,
            on_batch=lambda batch: results.extend(batch.results),
            **more,
        )
    return report, results


@pytest.fixture
def clip(tmp_path: Path) -> InputOptions:
    numbered_video(tmp_path / "clip.mp4", frames=40, rate=10)
    return InputOptions(own={"images": tmp_path})


def test_claims_about_a_moment_are_judged_by_its_frames(asked: Asked, clip: InputOptions) -> None:
    records = [{"video": "clip.mp4", "response": "The ball is red. At 0:03 there is a tent."}]
    report, [result] = scored(asked, records, inputs=clip, options={"frames": "uniform:4"})
    assert [number_in(image) for image in asked.images_of("ball")] == [5, 15, 25, 35]
    # From 1 to 5 seconds, of which the video has those up to 3.9.
    near = [11, 15, 19, 23, 26, 30, 34, 38]
    assert [number_in(image) for image in asked.images_of("tent")] == near
    assert report.scores["timed_hallucination"].value == 1.0
    assert report.scores["untimed_hallucination"].value == 0.0
    evidence: Any = result.evidence
    assert [claim.moment for claim in evidence.claims] == ["", "0:03"]
    assert [(look.kind, look.of, len(look.sha256)) for look in evidence.looks] == [
        ("moment", "0:03", 8)
    ]
    asked.calls.clear()
    options = {"frames": "uniform:4", "moments": "ignored"}
    report, _ = scored(asked, records, inputs=clip, options=options)
    assert asked.images_of("tent") == asked.images_of("ball")
    assert report.scores["timed_hallucination"].value == 1.0
    assert "|shown:frames=uniform:4,moments=ignored|" in report.signature


def test_a_moment_after_the_end_is_none(asked: Asked, clip: InputOptions) -> None:
    records = [{"video": "clip.mp4", "response": "At 2:00 there is a tent."}]
    report, _ = scored(asked, records, inputs=clip)
    assert report.scores["timed_hallucination"].value is None
    assert report.scores["untimed_hallucination"].value == 1.0


def test_claims_of_one_moment_share_a_call(asked: Asked, clip: InputOptions) -> None:
    text = "The ball is red. At 0:03 there is a tent. At 0:03 the box is blue. There is a box."
    records = [{"video": "clip.mp4", "response": text}]
    scored(asked, records, inputs=clip, options={"together": "yes"})
    assert sorted(len(claims) for claims, _ in asked.calls) == [2, 2]
    assert sorted(len(images) for _, images in asked.calls) == [8, 16]


def test_given_verdicts_are_grouped_by_moment_without_the_video() -> None:
    claims = [
        {"claim": "At 0:03 there is a tent.", "verdict": "not_supported"},
        {"claim": "The ball is red.", "verdict": "supported"},
    ]
    with Client.embedded() as client:
        report = client.score("seen-claims", responses=[{"video": "clip.mp4", "claims": claims}])
    assert report.scores["timed_hallucination"].value == 1.0
    assert report.scores["untimed_hallucination"].value == 0.0


def test_crops_of_what_a_claim_names_follow_the_picture(asked: Asked) -> None:
    image = {"bytes": SCENE.png(), "path": "one.png"}
    records = [{"id": 1, "image": image, "response": TEXT, "boxes": BOXES}]
    report, [result] = scored(asked, records, options={"views": "objects"})
    whole, ball = asked.images_of("ball")
    assert whole == SCENE.png(), "the picture is sent as it is"
    with Image.open(io.BytesIO(ball)) as crop:
        assert max(crop.size) >= 336, "small crops are enlarged"
        assert crop.convert("RGB").getpixel((crop.width // 2, crop.height // 3)) == COLOURS["red"]
    several = [images for [claim], images in asked.calls if claim[0] == "boxes"]
    assert {len(images) for images in several} == {3}, "a name matches its plural"
    assert asked.images_of("tent") == [whole]
    assert "|shown:views=objects|" in report.signature
    evidence: Any = result.evidence
    assert [(look.kind, look.of, len(look.sha256)) for look in evidence.looks] == [
        ("object", "ball", 1),
        ("object", "box", 2),
    ]


def test_crops_of_a_transparent_picture_are_on_white(asked: Asked) -> None:
    file = io.BytesIO()
    Image.new("RGBA", (96, 64), (255, 0, 0, 0)).save(file, "PNG")
    image = {"bytes": file.getvalue(), "path": "clear.png"}
    scored(
        asked,
        [{"id": 1, "image": image, "response": TEXT, "boxes": BOXES}],
        options={"views": "objects"},
    )
    [whole, crop] = asked.images_of("ball")
    assert whole == file.getvalue(), "the picture is sent as it is"
    assert Image.open(io.BytesIO(crop)).getextrema() == ((255, 255),) * 3


def test_a_server_is_sent_the_same_looks(asked: Asked, clip: InputOptions) -> None:
    records = [{"video": "clip.mp4", "response": "The ball is red. At 0:03 there is a tent."}]
    here, _ = scored(asked, records, inputs=clip)
    first = list(asked.calls)
    asked.calls.clear()
    remote = ServerProcess("--llm-url", asked.server.url, "--llm-model", "m")
    try:
        with Client(remote.address) as client:
            there = client.score(
                "seen-claims", responses=records, inputs=clip, options={"judge": "llm"}
            )
    finally:
        remote.stop()
    assert there.to_json()["scores"] == here.to_json()["scores"]
    assert asked.calls == first


def test_boxes_of_coco_are_found_by_the_number_of_a_picture(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "COCO_val2014_000000000042.png").write_bytes(SCENE.png())
    coco = {
        "images": [{"id": 42, "file_name": "COCO_val2014_000000000042.png"}],
        "categories": [{"id": 1, "name": "ball"}],
        "annotations": [
            {"image_id": 42, "category_id": 1, "bbox": [0, 0, 96, 32]},
            {"image_id": 42, "category_id": 1, "bbox": [0, 0, 9, 9], "iscrowd": 1},
        ],
    }
    file = tmp_path / "instances.json"
    file.write_text(json.dumps(coco), "utf-8")
    for records in (
        [{"image_id": 42, "response": "The ball is red."}],
        [{"id": 7, "image": "COCO_val2014_000000000042.png", "response": "The ball is red."}],
    ):
        asked.calls.clear()
        scored(
            asked,
            records,
            references=file,
            inputs=InputOptions(own={"images": tmp_path}),
            options={"views": "objects"},
        )
        assert len(asked.images_of("ball")) == 2


@pytest.mark.parametrize(
    ("boxes", "problem"),
    [
        (None, "the option views is objects, and no record says where objects are"),
        (
            [{"category": "ball", "bbox": [1, 2, 3]}],
            "give .left, top, width, height.",
        ),
        ([{"category": "ball", "bbox": [500, 0, 9, 9]}], "BOX_OUTSIDE: 'one.png' has 96 x 64"),
        ([{"bbox": [0, 0, 9, 9]}], "no name of the object: tried category, name, label"),
        ({"ball": [[0, 0, 0, 9]]}, "width and height above 0"),
    ],
)
def test_boxes_are_checked_before_a_call(asked: Asked, boxes: Any, problem: str) -> None:
    image = {"bytes": SCENE.png(), "path": "one.png"}
    records = [{"id": 1, "image": image, "response": TEXT, "boxes": boxes}]
    with pytest.raises(ArchiveError, match=problem):
        scored(asked, records, options={"views": "objects"})
    assert asked.calls == []
