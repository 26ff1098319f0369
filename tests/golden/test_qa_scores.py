"""POPE, VidHal and INFACT on real inputs: the released evaluations' numbers."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
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
    count_of = {
        name: Counter(other for row in objects.values() if name in row for other in {*row})
        for name in frequency
    }
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
        if sampling == "adversarial":
            for at, name in enumerate(yes):
                times = count_of[name]
                left = [n for n in frequency if n not in here and n not in no[:at]]
                assert no[at] == min(left, key=lambda n: (-times[n], n))
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
        if sampling == "adversarial-pooled":
            # The plain count is slow; a few images show it.
            by_image_seen = list(by_image).index(image)
            if by_image_seen > 15:
                break


# Tables 2 and 10 of the paper. mPLUG-Owl and LLaVA wrote the "brief description" captions that
# goldens/chair holds.
PRINTED_HR_C = {
    ("mplug-owl", "dining table"): (0.6608, 0.7926, 0.8253),
    ("mplug-owl", "chair"): (0.5926, 0.7186, 0.8201),
    ("mplug-owl", "car"): (0.7587, 0.9136, 0.9707),
    ("llava", "dining table"): (0.5628, 0.7329, 0.8595),
    ("llava", "chair"): (0.5206, 0.6830, 0.8152),
    ("llava", "car"): (0.6870, 0.8886, 0.9188),
}
# What the tie rule of `hit_ratio_by_company` gives where the paper has another number.
OTHER_TIES = {
    ("mplug-owl", "chair", 30): 0.8253,
    ("mplug-owl", "car", 30): 0.9804,
    ("llava", "chair", 30): 0.8078,
    ("llava", "car", 30): 0.9358,
}
# The lowest and the highest value over all orders of the ties at the cutoff, where they differ.
REACHABLE_HR_C = {
    ("mplug-owl", "chair", 20): (0.6625, 0.7472),
    ("mplug-owl", "chair", 30): (0.8201, 0.8253),
    ("mplug-owl", "car", 20): (0.9136, 0.9204),
    ("mplug-owl", "car", 30): (0.9402, 0.9804),
    ("llava", "dining table", 20): (0.7329, 0.7359),
    ("llava", "chair", 20): (0.6631, 0.6973),
    ("llava", "chair", 30): (0.8078, 0.8152),
    ("llava", "car", 20): (0.8766, 0.8887),
    ("llava", "car", 30): (0.9188, 0.9358),
}
# Nearer to the paper's 0.4620, 0.5911, 0.6796 is only its own list, which is not published.
LLAVA_HR_A = (0.5443, 0.7184, 0.7846)
# The paper rounds 16 of the 18 cells and cuts two off (0.79266 and 0.75877).
ONE_UNIT = 0.0001


def mentions_of(goldens: Path, model: str) -> dict[str, list[str]]:
    path = goldens / "chair" / f"pope_brief_description_{model}.expected.jsonl"
    rows = read_rows(path)
    return {str(row["image_id"]): [name for _, name in row["hallucinated"]] for row in rows}


@pytest.fixture(scope="module")
def by_number(objects: dict[str, list[str]]) -> dict[str, list[str]]:
    return {image: objects[image] for image in sorted(objects, key=int)}


@pytest.mark.parametrize(("model", "probe"), list(PRINTED_HR_C))
def test_hit_ratios_of_tables_2_and_10(
    goldens: Path, by_number: dict[str, list[str]], model: str, probe: str
) -> None:
    mentions = mentions_of(goldens, model)
    ratios = hit_ratio_by_company(mentions, by_number, probe, count_objects(by_number))
    for ratio, printed in zip(ratios, PRINTED_HR_C[model, probe], strict=True):
        wanted = OTHER_TIES.get((model, probe, ratio.k), printed)
        assert ratio.value == pytest.approx(wanted, abs=ONE_UNIT, rel=0), ratio.k


@pytest.mark.parametrize("probe", ["dining table", "chair", "car"])
@pytest.mark.parametrize(("place", "k"), [(0, 10), (1, 20), (2, 30)])
def test_one_order_of_ties_reaches_both_models(
    goldens: Path, by_number: dict[str, list[str]], probe: str, place: int, k: int
) -> None:
    together = Counter(n for row in by_number.values() if probe in row for n in {*row} - {probe})
    cut = sorted(together.values(), reverse=True)[k - 1]
    sure = {name for name in together if together[name] > cut}
    tied = [name for name in together if together[name] == cut]
    reaching = []
    for model in ("mplug-owl", "llava"):
        mentions = mentions_of(goldens, model)
        rows = [row for image, row in mentions.items() if row and probe in by_number[image]]
        values = {
            chosen: sum(sum(n in sure or n in chosen for n in row) / len(row) for row in rows)
            / len(rows)
            for chosen in combinations(tied, k - len(sure))
        }
        printed = PRINTED_HR_C[model, probe][place]
        ends = REACHABLE_HR_C.get((model, probe, k), (printed, printed))
        assert (min(values.values()), max(values.values())) == pytest.approx(
            ends, abs=ONE_UNIT, rel=0
        )
        reaching.append({c for c, value in values.items() if abs(value - printed) < ONE_UNIT})
    assert len(reaching[0] & reaching[1]) == 1, "the paper's list had one order for all models"


def test_hit_ratios_by_frequency_of_real_captions(
    goldens: Path, by_number: dict[str, list[str]]
) -> None:
    counts = count_objects(by_number)
    mentions = mentions_of(goldens, "llava").values()
    values = [ratio.value or 0 for ratio in hit_ratio_by_frequency(mentions, counts)]
    assert values == pytest.approx(LLAVA_HR_A, abs=5e-5, rel=0)
    assert accumulated_proportions(mentions, counts.by_frequency())[-1] == 1
