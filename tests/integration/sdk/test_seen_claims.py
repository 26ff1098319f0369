"""Seen claims from Python: pictures from anywhere, several judges, rewards and servers."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support import scripted_llm as llm
from support.pictures import number_in, numbered_video
from support.running import ServerProcess
from support.shapes import Scene, Seer, drawn_scenes

from hallujudge.metrics import ItemResult, Report
from hallujudge.metrics.framework.results import Picture
from hallujudge.metrics.seen_claims import SeenClaimsItem
from hallujudge.sdk import Client, InputOptions, ScoreSpec
from hallujudge.sdk.errors import ArchiveError, InvalidInputError
from hallujudge.sdk.rewards import Reward

SCENE = Scene((("ball", "red", 3), ("box", "blue", 2)))
OTHER = Scene((("tent", "green", 2), ("ball", "black", 4)))
RIGHT, WRONG = "The ball is red.", "The ball is green."


class Shown(NamedTuple):
    """A folder of two pictures, and a server that knows them."""

    folder: Path
    seer: Seer
    server: llm.ScriptedLlm

    @property
    def inputs(self) -> InputOptions:
        return InputOptions(own={"images": self.folder})


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[Shown]:
    scenes = {SCENE.png(): SCENE, OTHER.png(): OTHER}
    for name, data in zip(("one.png", "other.png"), scenes, strict=True):
        (tmp_path / name).write_bytes(data)
    seer = Seer(scenes)
    server = llm.ScriptedLlm(seer.step)
    stop = server.in_thread()
    yield Shown(tmp_path, seer, server)
    stop()


def settings_of(server: llm.ScriptedLlm, **more: object) -> dict[str, object]:
    return {"llm.url": server.url, "llm.model": "m", **more}


def scored(
    settings: Mapping[str, object], responses: Any, **arguments: Any
) -> tuple[Report, list[ItemResult]]:
    results: list[ItemResult] = []
    arguments = {"options": {"judge": "llm"}, **arguments}
    with Client.embedded(settings) as client:
        report = client.score(
            "seen-claims",
            responses=responses,
            on_batch=lambda batch: results.extend(batch.results),
            **arguments,
        )
    return report, results


def verdicts(result: ItemResult) -> list[tuple[str, str]]:
    evidence: Any = result.evidence
    return [(claim.verdict.value, claim.reason) for claim in evidence.claims]


def test_an_archive_may_carry_its_pictures(shown: Shown) -> None:
    data = SCENE.png()
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    carried: list[object] = [url, {"bytes": data, "path": "a/one.png"}, {"bytes": data}, data]
    records = [
        {"id": number, "image": each, "response": RIGHT} for number, each in enumerate(carried)
    ]
    report, results = scored(settings_of(shown.server), records)
    assert report.claim_hallucination == 0.0
    # Items that a report keeps don't keep pictures in memory.
    kept: Any = report
    assert [each.item.pictures for each in kept.items] == [()] * len(records)
    assert [result.group_id for result in results][1] == "a/one.png"
    # Equal pictures and claims are asked about once.
    assert shown.server.chats == 1


@pytest.mark.parametrize(
    ("image", "problem"),
    [
        ("data:image/png;base64,@@@", "not base 64"),
        ("data:text/html;base64,PGI+", "not a picture"),
        ({"bytes": b"GIF89a"}, "not a whole PNG"),
        ("http://127.0.0.1:9/one.png", "is an address, and no address is called"),
        ("one.png", "no folder of pictures is given"),
        ("../one.png", "leads out of the folder"),
        (None, "names no picture"),
    ],
)
def test_what_is_no_picture_stops_the_run_before_a_call(
    shown: Shown, image: object, problem: str
) -> None:
    inputs = shown.inputs if problem.startswith("leads") else None
    records = [{"id": 1, "image": image, "response": RIGHT}]
    with pytest.raises(ArchiveError, match=problem):
        scored(settings_of(shown.server), records, inputs=inputs)
    allowed = InputOptions(allow_unknown=True, own={} if inputs is None else inputs.own)
    _, [result] = scored(settings_of(shown.server), records, inputs=allowed)
    assert result.reason == "REFERENCE_MISSING"
    assert shown.server.chats == 0


def test_one_file_is_not_taken_for_two_names(shown: Shown) -> None:
    records = [{"image": f"{folder}/one.png", "response": RIGHT} for folder in ("a", "b")]
    with pytest.raises(ArchiveError, match="MEDIA_MISSING"):
        scored(settings_of(shown.server), records, inputs=shown.inputs)
    # One name with other folders before it is the file.
    report, _ = scored(settings_of(shown.server), records[:1], inputs=shown.inputs)
    assert report.claim_hallucination == 0.0


def test_the_end_of_an_address_is_looked_for_in_the_folder(shown: Shown) -> None:
    records = [{"image": "https://example.org/pictures/one.png?x=1", "response": RIGHT}]
    report, _ = scored(settings_of(shown.server), records, inputs=shown.inputs)
    assert report.claim_hallucination == 0.0
    records[0]["image"] = "https://example.org/pictures/two.png"
    with pytest.raises(ArchiveError, match="no address is called; put its file into the folder of"):
        scored(settings_of(shown.server), records, inputs=shown.inputs)


def test_probabilities_are_among_what_can_be_seen(shown: Shown) -> None:
    shares = {"supported": 0.6, "not_supported": 0.2, "cannot_be_seen": 0.2}
    shown.server.steps = (llm.always(llm.stating(shares)),)
    records = [{"image": "one.png", "response": RIGHT}]
    options = {"judge": "llm", "soft": "yes"}
    report, [result] = scored(
        settings_of(shown.server), records, inputs=shown.inputs, options=options
    )
    assert report.claim_hallucination == pytest.approx(0.25)
    evidence: Any = result.evidence
    assert evidence.claims[0].score == pytest.approx(0.75)
    assert evidence.claims[0].margin == pytest.approx(math.log(3), abs=1e-4)


def test_a_fallback_is_asked_about_what_the_first_model_cannot_see(shown: Shown) -> None:
    blind = llm.ScriptedLlm(llm.saying("cannot_be_seen"))
    stop = blind.in_thread()
    settings = {
        **settings_of(blind, judge_order="llm,fallback"),
        "fallback.url": shown.server.url,
        "fallback.model": "big",
        "fallback.dialect": "vllm",
    }
    records = [{"image": "one.png", "response": f"{WRONG} The ball is fragrant."}]
    try:
        _, [result] = scored(settings, records, inputs=shown.inputs, options={"judge": "router"})
    finally:
        stop()
    assert verdicts(result) == [("not_supported", ""), ("unscored", "CLAIM_NOT_VISIBLE")]
    evidence: Any = result.evidence
    assert [part["judge"] for part in evidence.judging] == ["llm", "fallback"]
    assert blind.chats == shown.server.chats == 2


def test_a_panel_of_vision_models_votes(shown: Shown) -> None:
    yes = llm.ScriptedLlm(llm.saying("supported"))
    stop = yes.in_thread()
    settings = {
        **settings_of(shown.server),
        "fallback.url": yes.url,
        "fallback.model": "big",
        "fallback.dialect": "vllm",
    }
    records = [{"image": "one.png", "response": f"{RIGHT} There is a tent."}]
    try:
        report, [result] = scored(
            settings, records, inputs=shown.inputs, options={"panel": "llm,fallback"}
        )
        with pytest.raises(InvalidInputError, match="sees no pictures"):
            scored(settings, records, inputs=shown.inputs, options={"panel": "llm,matcher"})
    finally:
        stop()
    assert verdicts(result) == [("supported", ""), ("unscored", "PANEL_TIED")]
    assert "panel:majority(llm+fallback)" in report.signature


@pytest.mark.parametrize(
    ("change", "problem"),
    [({"media_type": "text/html"}, "its type is 'text/html'"), ({"data": b""}, "it is empty")],
)
def test_a_picture_of_a_caller_is_checked_where_it_is_shown(
    shown: Shown, change: dict[str, Any], problem: str
) -> None:
    fields: dict[str, Any] = {"data": SCENE.png(), "media_type": "image/png", "width": 9}
    picture = Picture(name="x.png", **{**fields, "height": 9, **change})
    item = SeenClaimsItem(id="1", response=RIGHT, pictures=(picture,))
    results: list[ItemResult] = []
    with Client.embedded(settings_of(shown.server)) as client:
        client.score_items(
            ScoreSpec(metric="seen-claims", options={"judge": "llm"}),
            [item],
            on_batch=lambda batch: results.extend(batch.results),
        )
    assert (results[0].reason, shown.server.chats) == ("REFERENCE_MISSING", 0)
    assert problem in results[0].detail


def test_a_budget_leaves_claims_unscored_and_an_estimate_calls_nothing(shown: Shown) -> None:
    records = [
        {"image": "one.png", "response": RIGHT},
        {"image": "other.png", "response": "The ball is black."},
    ]
    with Client.embedded(settings_of(shown.server)) as client:
        [row] = client.estimate(
            "seen-claims", responses=records, inputs=shown.inputs, options={"judge": "llm"}
        )
    assert (row.calls, shown.server.chats) == (2, 0)
    assert row.prompt_tokens > 2 * 256, "each picture counts"
    report, _ = scored(settings_of(shown.server, max_calls=1), records, inputs=shown.inputs)
    assert report.coverage.reasons == {"NO_VERDICTS": 1}


@pytest.mark.parametrize("response", ["<think>The ball is", "Error code: 500 - overloaded"])
def test_no_judge_is_asked_about_claims_that_came_with_no_answer(
    shown: Shown, response: str
) -> None:
    claims = [["ball", "is", "red"]]
    records = [{"image": "one.png", "response": response, "claims": claims}]
    settings = settings_of(shown.server)
    with Client.embedded(settings) as client:
        [row] = client.estimate(
            "seen-claims", responses=records, inputs=shown.inputs, options={"judge": "llm"}
        )
    report, _ = scored(settings, records, inputs=shown.inputs)
    assert (row.calls, report.coverage.scored, shown.server.chats) == (0, 0, 0)


def test_a_reward_is_better_for_what_is_seen(shown: Shown) -> None:
    reward = Reward(
        "seen-claims",
        inputs=shown.inputs,
        options={"judge": "llm", "together": "yes"},
        settings=settings_of(shown.server),
    )
    texts = [f"{RIGHT} There is a box.", f"{WRONG} There is a box.", f"{WRONG} There is a tent."]
    assert reward(texts, ["one.png"] * 3) == [1.0, 0.5, 0.0]
    # A data set's column of pictures needs no folder.
    assert reward(texts[:1], [{"bytes": SCENE.png()}]) == [1.0]
    with pytest.warns(RuntimeWarning, match="missing.png"):
        assert reward(["A box.", RIGHT], ["missing.png", "one.png"]) == [None, 1.0]
    reward.scorer.close()


def test_frames_of_a_video_are_shown_in_their_order(shown: Shown) -> None:
    numbered_video(shown.folder / "clip.mp4", frames=40)
    bodies: list[llm.Body] = []

    def step(_number: int, body: llm.Body) -> llm.Reply:
        bodies.append(body)
        return llm.completion("supported")

    shown.server.steps = (step,)
    records = [{"video": "clip.mp4", "response": RIGHT}]
    signatures = []
    for frames, numbers in (("uniform:4", [5, 15, 25, 35]), ("ends:3", [0, 20, 39])):
        options = {"judge": "llm", "frames": frames}
        report, [result] = scored(
            settings_of(shown.server), records, inputs=shown.inputs, options=options
        )
        assert [number_in(image) for image in llm.images_of(bodies[-1])] == numbers
        evidence: Any = result.evidence
        assert [each.name for each in evidence.pictures] == ["clip.mp4"] * len(numbers)
        signatures.append(report.signature)
    assert "|shown:frames=uniform:4|" in signatures[0]
    with pytest.raises(InvalidInputError, match="give uniform:N"):
        scored(
            settings_of(shown.server),
            records,
            inputs=shown.inputs,
            options={"judge": "llm", "frames": "some"},
        )


def test_one_call_holds_all_claims_about_a_picture(shown: Shown, tmp_path: Path) -> None:
    texts = [RIGHT, f"{WRONG} There is a box.", "There is a tent. The ball is fragrant."]
    records = [
        {"id": f"{name}{at}", "image": name, "response": text}
        for name in ("one.png", "other.png")
        for at, text in enumerate(texts)
    ]
    alone, singly = scored(settings_of(shown.server), records, inputs=shown.inputs)
    calls, shown.seer.seen[:] = shown.server.chats, []
    cache = settings_of(shown.server, verdict_cache=str(tmp_path / "cache"))
    options = {"judge": "llm", "together": "yes"}
    report, results = scored(cache, records, inputs=shown.inputs, options=options)
    assert [*map(verdicts, results)] == [*map(verdicts, singly)]
    assert report.to_json()["scores"] == alone.to_json()["scores"]
    assert len(shown.seer.seen) == len({*shown.seer.seen}) == 2, "each picture is sent once"
    [share] = report.judging
    assert (share.calls, share.reused, share.asked) == (2, 4, 10)
    with Client.embedded(settings_of(shown.server)) as client:
        [row] = client.estimate(
            "seen-claims", responses=records, inputs=shown.inputs, options=options
        )
    assert row.calls == 2
    again, repeated = scored(cache, records, inputs=shown.inputs, options=options)
    assert (again.to_json(), repeated) == (report.to_json(), results)
    assert shown.server.chats == calls + 2, "nothing is paid twice"


def test_a_server_gives_the_same_report(shown: Shown) -> None:
    scenes = drawn_scenes(6)
    seer = Seer({scene.png(): scene for scene in scenes})
    shown.server.steps = (seer.step,)
    records = [
        {"id": number, "image": {"bytes": scene.png()}, "response": f"{RIGHT} There is a tent."}
        for number, scene in enumerate(scenes)
    ]
    here, _ = scored(settings_of(shown.server), records)
    remote = ServerProcess("--llm-url", shown.server.url, "--llm-model", "m")
    try:
        with Client(remote.address) as client:
            there = client.score("seen-claims", responses=records, options={"judge": "llm"})
    finally:
        remote.stop()
    assert there.to_json()["scores"] == here.to_json()["scores"]
    assert there.signature == here.signature
