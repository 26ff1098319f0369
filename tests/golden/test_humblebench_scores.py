"""HumbleBench: what is read in answers and lines, and every number of the released package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.running import here, read_rows

from hallujudge.metrics import Answer
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.framework.papers import published_rows
from hallujudge.metrics.humblebench import BENCHMARK
from hallujudge.sdk import Client, RunReport

LINE = {
    **{"question_id": 1, "question": "What?\nA. a rope\nE. None of the above", "type": "Object"},
    **{"image": "1.jpg", "label": "E", "prediction": "E"},
}
READ = {
    "the article is the letter A": ("B. a rope", None, "B"),
    "the d of a contraction is the letter D": ("I'd say C.", None, "C"),
    "a letter that is ruled out counts": ("Not B. The letter is C.", None, "C"),
    "an article next to the letter A does no harm": ("A. a rope", "A", "A"),
    "the text of the last option has no letter": ("None of the above", None, "E"),
    "a small letter counts": ("e", "E", "E"),
    "a refusal has no letter": ("Unable to determine.", None, None),
    "a refusal with an article is the letter A": ("I am a model.", "A", None),
    "two letters are none": ("A or B", None, None),
}


@pytest.mark.parametrize("surprise", READ)
def test_what_is_read(surprise: str) -> None:
    text, published, corrected = READ[surprise]
    answer = Answer(response=text, label="B")
    found = [variant.parse(answer).value for variant in BENCHMARK.variants]
    assert found == [published, corrected], surprise


def scored(*lines: dict[str, Any], variant: str = "published", mode: str = "common") -> RunReport:
    numbered = [{**line, "question_id": n} for n, line in enumerate(lines)]
    with Client.embedded() as client:
        return client.score(
            "humblebench", responses=numbered, variant=variant, options={"mode": mode}
        )


def test_none_accuracy_counts_the_letter_e_in_one_spelling_only() -> None:
    lines = [{**LINE, "prediction": text} for text in ("E", "E.", "e", "E. None of the above")]
    published, corrected = scored(*lines), scored(*lines, variant="corrected")
    assert (published.none_accuracy, published.accuracy) == (0.25, 1)
    assert (corrected.none_accuracy, corrected.accuracy) == (1, 1)


DROPPED: dict[str, tuple[dict[str, Any], str]] = {
    "no prediction": ({**LINE, "prediction": None}, "prediction is no text"),
    "the key that the README names": (
        {**{k: v for k, v in LINE.items() if k != "image"}, "file_name": "1.jpg"},
        "without image and with the further key file_name",
    ),
    "a further key": ({**LINE, "index": 3}, "with the further key index"),
    "an image that is a number": ({**LINE, "image": 3}, "image is neither"),
}


@pytest.mark.parametrize("fault", DROPPED)
def test_lines_that_the_package_drops_leave_every_denominator_and_a_note_says_so(
    fault: str,
) -> None:
    line, reason = DROPPED[fault]
    report = scored(LINE, line)
    assert [report.accuracy, report.e_share, report["accuracy"].n] == [1, 1, 1]
    assert reason in next(i.result.detail for i in report.items if i.result.detail)
    assert any("drops them: 1." in note for note in report.notes)


def test_an_id_in_quotes_is_a_whole_number_and_a_word_is_not() -> None:
    with Client.embedded() as client:
        lines = [{**LINE, "question_id": name} for name in ("41", "q130")]
        report = client.score("humblebench", responses=lines)
    assert [item.outcome.value for item in report.items] == ["scored", "unscored"]
    assert "question_id is no whole number" in report.items[1].result.detail


def test_the_corrected_variant_scores_lines_with_other_keys() -> None:
    report = scored({**LINE, "index": 3}, variant="corrected")
    assert (report.accuracy, report.coverage.unscored) == (1, 0)


def test_an_empty_answer_is_wrong_and_without_a_letter() -> None:
    report = scored({**LINE, "prediction": ""})
    assert (report.accuracy, report.na_share) == (0, 1)


@pytest.mark.parametrize(
    ("mode", "words"),
    [("unknown", "name it with the option mode"), ("noise_image", "e_share"), ("common", "")],
)
def test_a_note_says_what_the_mode_means(mode: str, words: str) -> None:
    notes = [note for note in scored(LINE, mode=mode).notes if "mode" in note or "e_share" in note]
    assert len(notes) == bool(words)
    assert all(words in note for note in notes)


def test_without_a_line_of_label_e_its_accuracy_is_undefined() -> None:
    assert scored({**LINE, "label": "A", "prediction": "A"}).none_accuracy is None


def test_a_published_row_has_the_figures_of_its_table() -> None:
    rows = {row.name: row.scores for row in published_rows(metric_of(BENCHMARK))}
    assert rows["glm-4.1v"].items() >= {"accuracy": 0.734615, "none_accuracy": 0.000601}.items()


# File -> its role, metric and number of records.
RECOGNISED = {
    "humblebench/drawn_1.common.jsonl": ("responses", "humblebench", 220),
}


RUNS = [(draw, mode) for draw in (1, 2) for mode in ("common", "noise_image", "nota_only")]
UNSCORED = 3


def figures_of(goldens: Path, out: Path, draw: int, mode: str, *more: str) -> Any:
    file = goldens / "humblebench" / f"drawn_{draw}.{mode}.jsonl"
    run = here("score", "humblebench", "-r", file, "-o", out, "--mode", mode, *more)
    assert run.returncode == UNSCORED, run.stderr
    return json.loads((out / "report.json").read_text())


def expected(goldens: Path, draw: int, mode: str) -> Any:
    text = (goldens / "humblebench" / "expected.json").read_text()
    return json.loads(text)[f"drawn_{draw}"][mode]


@pytest.mark.parametrize(("draw", "mode"), RUNS)
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_scores_are_those_of_the_released_package(
    goldens: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    draw: int,
    mode: str,
    *,
    remote: bool,
) -> None:
    server = ("--server", request.getfixturevalue("server")) if remote else ()
    report, wanted = (
        figures_of(goldens, tmp_path, draw, mode, *server),
        expected(goldens, draw, mode),
    )
    found = {name: 100 * score["value"] for name, score in report["scores"].items()}
    accuracy, proportions = wanted["scores"]["Accuracy"], wanted["scores"]["Proportions"]
    assert found.pop("accuracy") == pytest.approx(accuracy["Overall_accuracy"], abs=1e-9)
    assert found.pop("none_accuracy") == pytest.approx(accuracy["E_accuracy"], abs=1e-9)
    shares = {f"{name.split('_')[0].lower()}_share": v for name, v in proportions.items()}
    assert found == pytest.approx(shares, abs=1e-9)
    groups = report["groups"]["type"]
    by_type = {name: 100 * of["accuracy"]["value"] for name, of in groups.items()}
    for kind, value in by_type.items():
        assert value == pytest.approx(accuracy[f"{kind}_accuracy"], abs=1e-9)
    assert len(by_type) == len(accuracy) - len(("Overall", "E"))


@pytest.mark.parametrize(("draw", "mode"), RUNS)
def test_the_lines_that_the_package_drops_are_unscored(
    goldens: Path, tmp_path: Path, draw: int, mode: str
) -> None:
    report, wanted = figures_of(goldens, tmp_path, draw, mode), expected(goldens, draw, mode)
    dropped = [row for row in read_rows(tmp_path / "items.jsonl") if row["outcome"] == "unscored"]
    assert sorted(row["id"] for row in dropped) == sorted(wanted["refused_ids"])
    assert report["totals"]["dropped"] == wanted["refused_lines"]
    assert report["coverage"]["items"] == wanted["lines"]
    assert any("drops them: 9." in note for note in report["notes"])


def test_the_corrected_variant_counts_every_right_e(goldens: Path, tmp_path: Path) -> None:
    report = figures_of(goldens, tmp_path, 1, "common", "--variant", "corrected")
    published = expected(goldens, 1, "common")["scores"]["Accuracy"]
    assert report["scores"]["none_accuracy"]["value"] > 2 * published["E_accuracy"] / 100
    assert report["scores"]["accuracy"]["value"] > published["Overall_accuracy"] / 100
