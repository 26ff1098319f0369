"""POPE, VidHal and INFACT on real inputs: the released evaluations' numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from oracles import answers_published as oracle
from support.messages import expected_message
from support.running import here, read_rows

from hallujudge.metrics.infact.mode_analyses import mode_means
from hallujudge.metrics.pope.answer_analyses import (
    accumulated_proportions,
    hit_ratio_by_company,
    hit_ratio_by_frequency,
)
from hallujudge.metrics.pope.question_builder import SAMPLINGS, build_pope, count_objects

POPE_FILES = ("random", "popular", "adversarial")


def report_of(out: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((out / "report.json").read_text())
    return content


@pytest.mark.parametrize("split", POPE_FILES)
def test_pope_answers(goldens: Path, tmp_path: Path, split: str) -> None:
    name = f"llava-1.5-7b_coco_{split}_greedy"
    expected = json.loads((goldens / "pope" / "expected_scores.json").read_text())[name]
    run = here(
        *("score", "pope", "--responses", goldens / "pope" / f"{name}.answers.jsonl"),
        *("--references", goldens / "pope" / f"coco_{split}.questions.jsonl"),
        *("--out", tmp_path),
    )
    assert run.returncode == 0, run.stderr
    report = report_of(tmp_path)
    for score in ("accuracy", "precision", "recall", "f1", "yes_ratio"):
        assert report["scores"][score]["value"] == pytest.approx(expected[score], abs=1e-12)
        assert report["scores"][score]["n"] == expected["n"]
    for count in ("tp", "fp", "tn", "fn"):
        assert report["totals"][count] == expected[count]
    assert report["groups"] == {}, "the questions have no category"


@pytest.mark.parametrize(
    ("metric", "file", "key"),
    [
        ("vidhal-mcqa", "random_mcqa", "mcqa"),
        ("vidhal-ordering", "random_naive_ordering", "naive_ordering"),
        ("vidhal-ordering", "random_relative_ordering", "relative_ordering"),
    ],
)
def test_vidhal_random_baseline(
    goldens: Path, tmp_path: Path, metric: str, file: str, key: str
) -> None:
    vidhal = goldens / "vidhal"
    expected = json.loads((vidhal / "expected_random.json").read_text())[key]
    run = here(
        *("score", metric, "--responses", vidhal / f"{file}.predictions.json"),
        *("--references", vidhal / "annotations.json", "--options", vidhal / "options.json"),
        *("--out", tmp_path),
    )
    assert run.returncode == 0, run.stderr
    report = report_of(tmp_path)
    score = "accuracy" if key == "mcqa" else "ndcg"
    got = {name: row[score]["value"] for name, row in report["groups"]["aspect"].items()}
    got["overall"] = report["scores"][score]["value"]
    assert got == {name: pytest.approx(v, abs=1e-12) for name, v in expected["score"].items()}
    if expected["frequency"]:
        commonest = max(expected["frequency"].values()) / 1000
        assert report["scores"]["regurgitation_rate"]["value"] == pytest.approx(commonest)
        assert report["scores"]["invalid_response_rate"]["value"] == 0


def test_vidhal_answers_of_every_kind(goldens: Path, tmp_path: Path) -> None:
    vidhal = goldens / "vidhal"
    display = json.loads((vidhal / "options.json").read_text())
    rows = json.loads((vidhal / "annotations.json").read_text())
    captions = {row["video"]: row["captions"] for row in rows}
    choices, orders = {}, {}
    for index, video in enumerate(captions):
        right = captions[video]["1"]
        letter = {rank: letter for letter, rank in display[video].items()}["1"]
        choices[video] = [letter, "A", right, right.lower(), f"It shows {right.lower()}"][index % 5]
        orders[video] = ["A, B, C", "B, A", "C, C, A", "", "C,B,A", "A, B, D"][index % 6]
    (tmp_path / "choices.json").write_text(json.dumps(choices))
    (tmp_path / "orders.json").write_text(json.dumps(orders))
    given = ("--references", vidhal / "annotations.json", "--options", vidhal / "options.json")
    run = here(
        *("score", "vidhal-mcqa", "--responses", tmp_path / "choices.json"),
        *(*given, "--out", tmp_path / "mcqa"),
    )
    assert run.returncode == 0, run.stderr
    shown = [display[video] for video in captions]
    wanted = oracle.vidhal_mcqa(
        list(choices.values()), shown, [captions[video]["1"] for video in captions]
    )
    assert report_of(tmp_path / "mcqa")["scores"]["accuracy"]["value"] == pytest.approx(wanted)
    run = here(
        *("score", "vidhal-ordering", "--responses", tmp_path / "orders.json"),
        *(*given, "--out", tmp_path / "ordering", "--count-empty"),
    )
    assert run.returncode == 0, run.stderr
    assert (
        expected_message("sdk.archives.answer_bundles:letters-that-were-not-shown-attribute")
        in run.stderr
    )
    scores = report_of(tmp_path / "ordering")["scores"]
    ndcg, _ = oracle.vidhal_ordering(list(orders.values()), shown)
    assert scores["ndcg"]["value"] == pytest.approx(ndcg, abs=1e-12)
    invalid = sum(order not in ("A, B, C", "C,B,A") for order in orders.values())
    assert scores["invalid_response_rate"]["value"] == pytest.approx(invalid / 1000)
    rows = read_rows(tmp_path / "ordering/items.jsonl")
    problems = {row["evidence"]["answers"][0]["how"].removeprefix("published") for row in rows}
    assert problems == {"", ": partial", ": repeated", ": empty", ": unknown"}


def test_infact_tables(goldens: Path) -> None:
    tables = json.loads((goldens / "infact" / "paper_tables.json").read_text())
    rows = [row for name in ("faithfulness", "factuality") for row in tables[name]]
    assert len(rows) == 28
    modes = {
        "evidence_corruption": ("caption_injection", "subtitle_corruption", "adversarial_noise"),
        "visual_degradation": ("gaussian_noise", "motion_blur", "compression"),
        "temporal": ("shuffle", "reverse"),
    }
    for row in rows:
        operators = {
            name: value
            for mode, names in modes.items()
            for name, value in zip(names, row[mode]["op"], strict=True)
        }
        exact, printed = mode_means(operators), mode_means(operators, printed_digits=3)
        got = (exact.rr_evidence_corruption, exact.rr_visual_degradation, exact.tss)
        for mode, value in zip(modes, got, strict=True):
            assert value == pytest.approx(row[mode]["mean"], abs=0.0006), (row["model"], mode)
        assert printed.average == pytest.approx(row["avg"], abs=0.0006), row["model"]
        # The paper averages the modes as printed; unrounded, one row of 28 is 0.0007 away.
        assert exact.average == pytest.approx(row["avg"], abs=0.0008), row["model"]


@pytest.fixture(scope="module")
def objects(goldens: Path) -> dict[str, list[str]]:
    content: dict[str, list[str]] = json.loads(
        (goldens / "chair" / "coco_reference_objects.json").read_text()
    )
    return content


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_pope_questions_of_real_images(objects: dict[str, list[str]], sampling: str) -> None:
    built = build_pope(objects, sampling=sampling, images=500, min_objects=4, seed=3)
    assert built == build_pope(objects, sampling=sampling, images=500, min_objects=4, seed=3)
    assert len(built.questions) == 3000
    frequency: dict[str, int] = {}
    for names in objects.values():
        for name in set(names):
            frequency[name] = frequency.get(name, 0) + 1
    by_image: dict[str, list[Any]] = {}
    for question in built.questions:
        by_image.setdefault(question.image, []).append(question)
    assert len(by_image) == 500
    for image, questions in by_image.items():
        here = set(objects[image])
        yes = [q.object for q in questions if q.label == "yes"]
        no = [q.object for q in questions if q.label == "no"]
        assert len(yes) == len(no) == len(set(yes)) == len(set(no)) == 3
        assert set(yes) <= here
        assert not set(no) & here
        if sampling == "random":
            continue
        if sampling == "popular":
            weight = frequency
        else:
            weight = {
                name: sum(
                    name in row and other in row for row in objects.values() for other in here
                )
                for name in frequency
            }
        absent = sorted((n for n in frequency if n not in here), key=lambda n: (-weight[n], n))
        assert no == absent[:3]
        if sampling == "adversarial" and len(by_image) > 20:
            # The plain count is slow; a few images show it.
            by_image_seen = list(by_image).index(image)
            if by_image_seen > 15:
                break


# mPLUG-Owl and LLaVA wrote the "brief description" captions that goldens/chair holds.
PRINTED_HR_C = {
    "pope_brief_description_mplug-owl": (0.6608, 0.7926, 0.8253),
    "pope_brief_description_llava": (0.5628, 0.7329, 0.8595),
}


@pytest.mark.parametrize("name", list(PRINTED_HR_C))
def test_hit_ratios_of_real_captions(
    goldens: Path, objects: dict[str, list[str]], name: str
) -> None:
    rows = read_rows(goldens / "chair" / f"{name}.expected.jsonl")
    made_up = {str(row["image_id"]): {o for _, o in row["hallucinated"]} for row in rows}
    counts = count_objects(objects)
    ratios = hit_ratio_by_company(made_up, objects, "dining table", counts)
    for ratio, printed in zip(ratios, PRINTED_HR_C[name], strict=True):
        assert ratio.value == pytest.approx(printed, abs=0.01), "same images, nearly the same list"
    frequent = hit_ratio_by_frequency(made_up.values(), counts)
    values = [ratio.value or 0 for ratio in frequent]
    assert values == sorted(values)
    shares = accumulated_proportions(made_up.values(), counts.by_frequency())
    assert shares[-1] == 1
