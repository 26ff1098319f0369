"""Hit ratios and accumulated shares of the captions that POPE's authors published."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest
from support.running import here, read_rows

from hallujudge.metrics.pope import (
    accumulated_proportions,
    hit_ratio_by_company,
    hit_ratio_by_frequency,
)
from hallujudge.metrics.pope.question_builder import count_objects

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
# Table 8, percent.
PRINTED_ACCUMULATED = {
    "mplug-owl": (56.89, 67.75, 77.34, 79.93, 90.41, 95.33, 98.75),
    "llava": (48.47, 60.29, 69.74, 72.80, 81.46, 90.26, 96.69),
}
# The paper rounds the other cells, and cuts these off.
CUT_OFF = {
    ("mplug-owl", "dining table", 20): 0.792659,
    ("mplug-owl", "car", 10): 0.758768,
    ("llava", "car", 20): 0.888652,
}
ONE_UNIT = 0.0001
ROUNDING = 0.00005


def mentions_of(goldens: Path, model: str) -> dict[str, list[str]]:
    path = goldens / "chair" / f"pope_brief_description_{model}.expected.jsonl"
    rows = read_rows(path)
    return {str(row["image_id"]): [name for _, name in row["hallucinated"]] for row in rows}


@pytest.fixture(scope="module")
def by_number(goldens: Path) -> dict[str, list[str]]:
    objects: dict[str, list[str]] = json.loads(
        (goldens / "chair" / "coco_reference_objects.json").read_text()
    )
    return {image: objects[image] for image in sorted(objects, key=int)}


@pytest.mark.parametrize(("model", "probe"), list(PRINTED_HR_C))
def test_hit_ratios_of_tables_2_and_10(
    goldens: Path, by_number: dict[str, list[str]], model: str, probe: str
) -> None:
    mentions = mentions_of(goldens, model)
    ratios = hit_ratio_by_company(mentions, by_number, probe, count_objects(by_number))
    for ratio, printed in zip(ratios, PRINTED_HR_C[model, probe], strict=True):
        wanted = OTHER_TIES.get((model, probe, ratio.k), printed)
        cut_off = CUT_OFF.get((model, probe, ratio.k), wanted)
        assert ratio.value == pytest.approx(cut_off, abs=ROUNDING, rel=0), ratio.k
        assert cut_off == pytest.approx(wanted, abs=ONE_UNIT, rel=0), ratio.k


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


@pytest.mark.parametrize(("model", "shares"), PRINTED_ACCUMULATED.items())
def test_shares_of_table_8_are_of_our_mentions(
    goldens: Path, model: str, shares: Sequence[float]
) -> None:
    # The paper's order of objects is unknown, but the mentions that it counts are ours.
    total = sum(map(len, mentions_of(goldens, model).values()))
    nearest = [round(share * total / 100) * 100 / total for share in shares]
    assert nearest == pytest.approx(shares, abs=0.00501, rel=0)


@pytest.fixture(scope="module")
def caption_runs(goldens: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("captions")
    for model in ("mplug-owl", "llava"):
        ran = here(
            *("score", "chair", "--out", folder / model),
            *("-r", goldens / "chair" / f"pope_brief_description_{model}.captions.json"),
            *("-R", goldens / "chair" / "coco_reference_objects.json"),
        )
        assert ran.returncode == 0, ran.stderr
    return {model: folder / model for model in ("mplug-owl", "llava")}


@pytest.mark.parametrize("probe", ["dining table", "chair", "car"])
def test_the_command_prints_the_hit_ratios(caption_runs: dict[str, Path], probe: str) -> None:
    names = [part for model in caption_runs for part in ("--name", f"model={model}")]
    ran = here("analyze", *caption_runs.values(), *names, "--probe", probe, "--format", "json")
    assert ran.returncode == 0, ran.stderr
    rows = json.loads(ran.stdout)["analyses"]["hit_ratio"]["rows"]
    assert len(rows) == 6
    for place, row in enumerate(rows):
        wanted = PRINTED_HR_C[row["model"], probe][place % 3]
        wanted = OTHER_TIES.get((row["model"], probe, row["k"]), wanted)
        assert row["hr_c"] == pytest.approx(wanted, abs=ONE_UNIT, rel=0)
    values = [row["hr_a"] for row in rows if row["model"] == "llava"]
    assert values == pytest.approx(LLAVA_HR_A, abs=5e-5, rel=0)
    shown = here(
        "analyze",
        *caption_runs.values(),
        *names,
        "--probe",
        probe,
        *("--format", "csv", "--table", "hit_ratio"),
    )
    # One row for each model, with k in the columns, as the paper prints it.
    printed = [line.split(",") for line in shown.stdout.splitlines()]
    places = [printed[0].index(f"hr_c@{k}") for k in (10, 20, 30)]
    assert [row[0] for row in printed[1:]] == [*caption_runs]
    found = [float(row[place]) for row in printed[1:] for place in places]
    assert found == [row["hr_c"] for row in rows]
