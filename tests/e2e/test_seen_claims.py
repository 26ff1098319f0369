"""Seen claims against a vision server over HTTP that knows the pictures drawn here."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import random
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support import scripted_llm as llm
from support.qa_samples import write_lines
from support.running import BIN, cli, here, read_rows
from support.shapes import Scene, Seer, drawn_scenes, said_of
from support.threads import eventually
from support.toll import Toll, verdicts

COUNT = 200


class Drawn(NamedTuple):
    """An archive with its pictures, and the truth of every claim."""

    answers: Path
    images: Path
    truths: list[list[bool | None]]
    """Whether each claim of each response is right; None if it can't be seen."""
    kinds: list[list[str]]
    """What each claim is about."""
    seer: Seer


def drawn(folder: Path, count: int) -> Drawn:
    rng = random.Random(1)
    scenes = drawn_scenes(count)
    images = folder / "pictures"
    images.mkdir(parents=True)
    records, truths, kinds, known = [], [], [], {}
    for number, scene in enumerate(scenes):
        data = scene.png()
        known[data] = scene
        (images / f"COCO_val2014_{number:012d}.png").write_bytes(data)
        text, claims = said_of(scene, rng)
        records.append({"image_id": number, "caption": text})
        truths.append([truth for _, truth in claims])
        kinds.append([kind_said(*claim) for claim, _ in claims])
    answers = write_lines(folder / "answers.jsonl", records)
    return Drawn(answers, images, truths, kinds, Seer(known))


def kind_said(_subject: str, relation: str, target: str) -> str:
    """Return what a claim of these responses is about."""
    if relation != "is":
        return "relation"
    return "object" if target == "present" else "count" if target.isdigit() else "attribute"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    return drawn(tmp_path_factory.mktemp("drawn"), COUNT)


@pytest.fixture
def server(archive: Drawn) -> Iterator[llm.ScriptedLlm]:
    archive.seer.seen.clear()
    server = llm.ScriptedLlm(archive.seer.step)
    stop = server.in_thread()
    yield server
    stop()


def command(archive: Drawn, out: Path, url: str, *more: object) -> tuple[Any, ...]:
    return (
        *("score", "seen-claims", "-r", archive.answers, "--images", archive.images),
        *("--judge", "llm", "--llm-url", url, "--llm-model", "m", "-o", out, *more),
    )


def report_of(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "report.json").read_text("utf-8"))
    return report


def plain_count(archive: Drawn) -> dict[str, float]:
    """Return the scores by a plain loop over the truth of all claims."""
    known = [[truth for truth in each if truth is not None] for each in archive.truths]
    wrong, total = Counter[str](), Counter[str]()
    for truths, kinds in zip(archive.truths, archive.kinds, strict=True):
        for truth, kind in zip(truths, kinds, strict=True):
            wrong[kind] += truth is False
            total[kind] += truth is not None
    return {
        "claim_hallucination": wrong.total() / total.total(),
        "response_hallucination": sum(each.count(False) / len(each) for each in known) / len(known),
        "clean_responses": sum(all(each) for each in known) / len(known),
        **{f"{kind}_hallucination": wrong[kind] / total[kind] for kind in total},
    }


@pytest.mark.parametrize("more", [(), ("--together",)])
def test_scores_are_those_of_a_plain_count(
    archive: Drawn, server: llm.ScriptedLlm, tmp_path: Path, more: tuple[str, ...]
) -> None:
    ran = here(*command(archive, tmp_path / "out", server.url, *more))
    assert ran.returncode == 0, ran.stderr
    report = report_of(tmp_path / "out")
    for name, value in plain_count(archive).items():
        assert report["scores"][name]["value"] == pytest.approx(value, abs=1e-12), name
    unseen = sum(truth is None for each in archive.truths for truth in each)
    assert report["totals"]["unscored_claims"] == report["totals"]["not_visible"] == unseen
    assert f"{unseen} claims can't be checked in the picture (CLAIM_NOT_VISIBLE)" in ran.stdout
    # What can't be seen could be right or wrong.
    bound = report["coverage"]["bounds"]["claim_hallucination"]
    assert bound["best"] < report["scores"]["claim_hallucination"]["value"] < bound["worst"]
    claims = sum(map(len, archive.truths))
    assert server.chats == (COUNT if more else claims)
    files = [hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(archive.images.iterdir())]
    assert Counter(archive.seer.seen) == Counter(
        {shown: 1 if more else len(archive.truths[at]) for at, shown in enumerate(files)}
    )
    rows = read_rows(tmp_path / "out" / "items.jsonl")
    assert [row["evidence"]["pictures"][0]["sha256"] for row in rows] == files
    assert [[c["verdict"] for c in row["evidence"]["claims"]] for row in rows] == [
        [{True: "supported", False: "not_supported", None: "unscored"}[t] for t in each]
        for each in archive.truths
    ]


def test_a_run_that_is_killed_twice_pays_nothing_twice(archive: Drawn, tmp_path: Path) -> None:
    toll = Toll(archive.seer.step, lambda body: f"{llm.images_of(body)}{llm.prompt_of(body)}")
    at_once, claims = 4, sum(map(len, archive.truths))
    out = tmp_path / "out"
    server = llm.ScriptedLlm(toll.step)
    stop = server.in_thread()
    try:
        for _ in range(2):
            toll.allowed = 150
            process = subprocess.Popen(
                [BIN / "hallujudge", *command(archive, out, server.url, "-q", "--resume")],
                env={**os.environ, "HALLUJUDGE_LLM_MAX_CONCURRENCY": str(at_once)},
                stderr=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
            assert eventually(lambda: len(toll.held) == at_once)
            assert eventually(lambda: verdicts(out) == toll.paid.total())
            process.kill()
            assert process.wait() == -signal.SIGKILL
            toll.drop()
        assert not (out / "report.json").exists()
        toll.allowed = claims
        run = cli(*command(archive, out, server.url, "-q", "--resume"))
        assert run.returncode == 0, run.stderr
        assert toll.paid.total() == len(toll.paid) == claims
    finally:
        toll.drop()
        stop()
    found = report_of(out)["scores"]["claim_hallucination"]["value"]
    assert found == pytest.approx(plain_count(archive)["claim_hallucination"], abs=1e-12)


def test_pictures_that_changed_are_another_run(
    archive: Drawn, server: llm.ScriptedLlm, tmp_path: Path
) -> None:
    few = drawn(tmp_path, 3)
    out = tmp_path / "out"
    assert here(*command(few, out, server.url)).returncode == 0
    first, second, _ = sorted(few.images.iterdir())
    first.write_bytes(second.read_bytes())
    again = here(*command(few, out, server.url))
    assert again.returncode == 2
    assert "pictures" in again.stderr


@pytest.mark.parametrize("name", ["../secret.png", "/etc/secret.png", "link.png"])
def test_names_do_not_lead_out_of_the_folder(
    archive: Drawn, server: llm.ScriptedLlm, tmp_path: Path, name: str
) -> None:
    few = drawn(tmp_path, 1)
    secret = tmp_path / "secret.png"
    secret.write_bytes(next(few.images.iterdir()).read_bytes())
    (few.images / "link.png").symlink_to(secret)
    write_lines(few.answers, [{"id": 1, "image": name, "response": "The circle is red."}])
    ran = here(*command(few, tmp_path / "out", server.url))
    assert ran.returncode == 2
    assert "MEDIA_OUTSIDE" in ran.stderr
    assert server.chats == 0


def test_the_page_shows_the_pictures_beside_the_text(
    server: llm.ScriptedLlm, tmp_path: Path
) -> None:
    few = drawn(tmp_path, 3)
    server.steps = (few.seer.step,)
    out = tmp_path / "out"
    ran = here(*command(few, out, server.url, "--format", "html"))
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.splitlines()[0] == f"pictures go to {server.url} (model m), and nowhere else"
    names = sorted(path.name for path in few.images.iterdir())
    assert shown_by(out / "report.html") == [f"../pictures/{name}" for name in names]
    # A page of its own, with thumbnails in it.
    page = tmp_path / "page.html"
    made = here(
        *("report", out, "--format", "html", "-o", page),
        *("--images", few.images, "--embed-images"),
    )
    assert made.returncode == 0, made.stderr
    assert all(each.startswith("data:image/jpeg;base64,") for each in shown_by(page))
    assert page.stat().st_size < 400_000


def shown_by(page: Path) -> list[str]:
    """Return the sources of a page's pictures."""
    text = page.read_text("utf-8")
    [packed] = re.findall(r'id="page-images-0"[^>]*>([^<]+)<', text)
    found: list[str] = json.loads(gzip.decompress(base64.b64decode(packed)))
    return found


def test_probes_show_how_often_a_judge_says_yes(tmp_path: Path) -> None:
    """A judge that supports whatever is likely: a tent where there is a box."""
    scenes = [
        Scene((("ball", "red", 2 + at), ("box", "blue", 2))) if at % 2
        else Scene((("box", "red", 2), ("tent", "blue", 2 + at)))
        for at in range(12)
    ]  # fmt: skip
    objects, known = {}, {}
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for at, scene in enumerate(scenes):
        known[scene.png()] = scene
        (pictures / f"{at}.png").write_bytes(scene.png())
        objects[f"{at}.png"] = [shape for shape, *_ in scene.shapes]
    shown = tmp_path / "objects.json"
    shown.write_text(json.dumps(objects), "utf-8")
    probes = tmp_path / "probes.jsonl"
    built = here("build", "seen-probes", "--objects", shown, "--per-image", "1", "-o", probes)
    assert built.returncode == 0, built.stderr
    assert "36 claims about 12 images" in built.stdout
    seer = Seer(known)

    def lenient(number: int, body: llm.Body) -> llm.Reply:
        [claim] = llm.claims_of(body)
        return llm.completion("supported") if claim[0] == "tent" else seer.step(number, body)

    server = llm.ScriptedLlm(lenient)
    stop = server.in_thread()
    judge = ("--judge", "llm", "--llm-url", server.url, "--llm-model", "m")
    run, card = tmp_path / "run", tmp_path / "card.json"
    try:
        scored = here(
            *("score", "seen-claims", "-r", probes, "--images", pictures, *judge),
            *("-g", "probe", "-o", run),
        )
        assert scored.returncode == 0, scored.stderr
        groups = report_of(run)["groups"]["probe"]
        wrong = {name: scores["claim_hallucination"]["value"] for name, scores in groups.items()}
        assert wrong["present"] == 0.0
        assert wrong["likely"] < 1.0, "it supports likely objects that are not there"
        made = here(
            *("judge", "card", run, "--labels", tmp_path / "probes.labels.jsonl"),
            *("-o", card),
        )
        assert made.returncode == 0, made.stderr
        bias = json.loads(card.read_text("utf-8"))["yes_bias"]["difference"]
        assert bias > 0.1
        few = drawn(tmp_path / "few", 3)
        server.steps = (few.seer.step,)
        out = tmp_path / "out"
        told = here(*command(few, out, server.url, "--card", card))
        assert told.returncode == 0, told.stderr
        said = " ".join(told.stdout.split())
        assert f"says supported {bias:.1%} too often" in said
        together = here(*command(few, tmp_path / "x", server.url, "--card", card, "--together"))
        assert together.returncode == 2, "a card is of a judge as it is asked"
    finally:
        stop()


def test_tri_he_is_judged_by_the_image_beside_its_scene_graph(tmp_path: Path) -> None:
    few = drawn(tmp_path, 30)
    scenes = drawn_scenes(30)
    graphs = {
        # Every third graph lacks what the picture shows.
        str(at): graph_of(scene)[: 1 if at % 3 == 0 else None]
        for at, scene in enumerate(scenes)
    }
    given = tmp_path / "graphs.json"
    given.write_text(json.dumps(graphs), "utf-8")

    def step(number: int, body: llm.Body) -> llm.Reply:
        reads = "<<<SCENE" in llm.prompt_of(body)
        return llm.by_scene_graph(number, body) if reads else few.seer.step(number, body)

    server = llm.ScriptedLlm(step)
    stop = server.in_thread()
    common = ("-r", few.answers, "-R", given, "--llm-url", server.url, "--llm-model", "m")
    reads, sees = tmp_path / "reads", tmp_path / "sees"
    try:
        read = here("score", "tri-he", *common, "--judge", "llm", "-o", reads)
        assert read.returncode == 0, read.stderr
        seen = here(
            *("score", "tri-he", *common, "--judge", "sees", "--variant", "corrected"),
            *("--images", few.images, "-o", sees),
        )
        assert seen.returncode == 0, seen.stderr
        assert seen.stderr.startswith(f"pictures go to {server.url} (model m), and nowhere else")
        blind = here("score", "tri-he", *common, "--judge", "sees", "-o", tmp_path / "blind")
        assert blind.returncode == 3, "there are no pictures"
    finally:
        stop()
    card = here("judge", "card", sees, "--reference", reads, "--format", "json")
    assert card.returncode == 0, card.stderr
    agreed = total = 0
    for one, other in zip(
        read_rows(sees / "items.jsonl"), read_rows(reads / "items.jsonl"), strict=True
    ):
        assert "scene_graph" not in one["evidence"], "it was compared with the image"
        pairs = zip(one["evidence"]["claims"], other["evidence"]["claims"], strict=True)
        for ours, theirs in pairs:
            if "unscored" not in (ours["verdict"], theirs["verdict"]):
                agreed += ours["verdict"] == theirs["verdict"]
                total += 1
    found = json.loads(card.stdout)["accuracy"]["agreement"]["value"]
    assert found == pytest.approx(agreed / total, abs=1e-9)
    assert 0.5 < found < 1.0
    assert "judge-seen-claim" in report_of(sees)["signature"]
    # The same in one table, with kinds, kappa and the correlation of the answers' rates.
    made = here("analyze", reads, sees, "--format", "json")
    assert made.returncode == 0, made.stderr
    tables = json.loads(made.stdout)["analyses"]
    whole, *kinds = tables["judge_agreement"]["rows"]
    assert (whole["judge"], whole["other_judge"], whole["claims_on"]) == ("reads", "sees", "all")
    assert (whole["claims"], whole["agreement"]) == (total, pytest.approx(agreed / total))
    cells = ("both_support", "judge_only", "other_only", "neither")
    both, one, other, neither = (whole[name] for name in cells)
    chance = ((both + one) * (both + other) + (neither + one) * (neither + other)) / total**2
    assert whole["kappa"] == pytest.approx((agreed / total - chance) / (1 - chance))
    assert whole["kappa_low"] < whole["kappa"] < whole["kappa_high"]
    assert {row["claims_on"] for row in kinds} >= {"object", "attribute", "relation"}
    for name in ("claims", "without_verdict", *cells):
        assert sum(row[name] for row in kinds) == whole[name], name
    assert 0 < tables["judge_correlation"]["rows"][0]["pearson"] < 1


@pytest.mark.parametrize(
    ("step", "line"),
    [
        (llm.saying("blue"), "absent  llm judge, pictures: not seen: of a picture that is all y"),
        (llm.NO_IMAGES_AT_LLAMA, "absent  llm judge, pictures: image input is not supported: ser"),
    ],
)
def test_doctor_says_whether_the_judge_sees(step: llm.Step | llm.Reply, line: str) -> None:
    def answer(number: int, body: llm.Body) -> llm.Reply:
        if not llm.images_of(body):
            return llm.by_scene_graph(number, body)
        return step if isinstance(step, llm.Reply) else step(number, body)

    server = llm.ScriptedLlm(answer)
    stop = server.in_thread()
    try:
        found = here("doctor", "--llm-url", server.url, "--llm-model", "m")
    finally:
        stop()
    assert line in found.stdout


def graph_of(scene: Scene) -> list[list[str]]:
    (first, colour, _), (second, *_) = scene.shapes
    facts = [[name, "is", "present"] for name in (first, second)]
    return [[first, "is", colour], *facts, [first, "above", second]]


def test_pictures_with_too_few_objects_for_probes_are_named(tmp_path: Path) -> None:
    shown = tmp_path / "objects.json"
    objects = {f"{at}.png": ["ball", "dog", f"thing {at}"] for at in range(4)}
    shown.write_text(json.dumps({"lonely.png": ["ball"], **objects}), "utf-8")
    built = here("build", "seen-probes", "--objects", shown, "-o", tmp_path / "probes.jsonl")
    assert built.returncode == 0, built.stderr
    assert "about 4 images" in built.stdout
    said = " ".join(built.stderr.split())
    assert "1 image has no claims, such as lonely.png: fewer than 2 objects are named" in said
