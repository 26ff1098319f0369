"""Papers' tables: values are those of the reports, the best is marked, and marks are tested."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from support.comparison_runs import chair_run, pope_run
from support.messages import expected_message

from hallujudge.sdk import (
    Client,
    CompareOptions,
    PaperTable,
    RunReport,
    TableCell,
    TableLayout,
    compare,
    paper_table,
    score_all,
)
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.report.table_pages import PAGE_FORMATS

FEW: dict[str, Any] = {"replicates": 400}
SPLITS = ("adversarial", "popular", "random")


def answers(right: float, seed: int, *, images: int = 60) -> RunReport:
    """Score three questions about each image, one of each category."""
    model = random.Random(seed)
    rows = [
        {
            "question": f"Is there a thing {n} {split}?",
            "image": f"{n}.jpg",
            "label": "yes" if n % 2 else "no",
            "response": "yes" if (n % 2 == 1) is (model.random() < right) else "no",
            "category": split,
        }
        for n in range(images)
        for split in SPLITS
    ]
    with Client.embedded() as client:
        return client.score("pope", responses=rows, group_by=("category",))


@pytest.fixture(scope="module")
def models() -> dict[str, RunReport]:
    rights = {"good": 0.95, "fair": 0.9, "poor": 0.5}
    return {name: answers(right, n) for n, (name, right) in enumerate(rights.items())}


def table(
    reports: dict[str, RunReport], *, scores: tuple[str, ...] = (), **layout: Any
) -> PaperTable:
    options = CompareOptions(names=tuple(reports), scores=scores, **FEW)
    return paper_table(*reports.values(), layout=TableLayout(**layout), options=options)


def cell(found: PaperTable, **keys: str) -> TableCell:
    [one] = [each for each in found.cells if keys.items() <= each.keys.items()]
    return one


def test_values_are_those_of_the_reports(models: dict[str, RunReport]) -> None:
    found = table(models)
    assert len(found.cells) == sum(len(report.scores) for report in models.values())
    for name, report in models.items():
        for score in report.scores.values():
            shown = cell(found, model=name, score=score.name)
            assert (shown.value, shown.n) == (score.value, score.n)
            assert (shown.ci_low, shown.ci_high) == (score.ci_low, score.ci_high)


def test_groups_cross_models_with_their_own_values(models: dict[str, RunReport]) -> None:
    found = table(models, columns=("category", "score"))
    for name, report in models.items():
        for split, scores in report.groups["category"].items():
            for score in scores.values():
                shown = cell(found, model=name, category=split, score=score.name)
                assert (shown.value, shown.ci_low, shown.n) == (score.value, score.ci_low, score.n)
    grid = found.page().grids[0]
    assert grid.over[1:] == tuple(split for split in SPLITS for _ in range(6))
    assert grid.keys[1] == "adversarial accuracy"


def test_two_fields_are_crossed_with_each_other() -> None:
    rights = {
        ("adversarial", "indoors"): 0.0,
        ("adversarial", "outdoors"): 1.0,
        ("popular", "indoors"): 1.0,
        ("popular", "outdoors"): 0.0,
    }
    rows = [
        {"question_id": n, "question": f"Is there a thing {n}?", "image": f"{n}.jpg"}
        | {"label": "yes", "response": "yes" if right else "no", "category": split, "place": place}
        for n, ((split, place), right) in enumerate(rights.items())
    ]
    with Client.embedded() as client:
        report = client.score("pope", responses=rows, group_by=("category", "place"))
    found = table({"one": report}, scores=("accuracy",), rows=("category", "place", "model"))
    shown = {key: cell(found, category=key[0], place=key[1]).value for key in rights}
    assert shown == rights


def test_rows_with_the_same_first_key_are_next_to_each_other(models: dict[str, RunReport]) -> None:
    rows = table(models, rows=("category", "model")).page().grids[0].rows
    assert [row[:2] for row in rows] == [(split, name) for split in SPLITS for name in models]


def test_the_best_is_bold_and_marks_are_corrected_tests(models: dict[str, RunReport]) -> None:
    found = table(models, scores=("accuracy",))
    best = max(models, key=lambda name: models[name]["accuracy"].value or 0.0)
    assert [each.keys["model"] for each in found.cells if each.best] == [best]
    others = [name for name in models if name != best]
    options = CompareOptions(names=(best, *others), scores=("accuracy",), **FEW)
    compared = compare(*(models[name] for name in (best, *others)), options=options)
    assert found.tests == compared.tests == 2
    for name, pair in zip(others, compared.pairs, strict=True):
        shown = cell(found, model=name)
        assert (shown.p, shown.p_corrected) == (pair["accuracy"].p, pair["accuracy"].p_corrected)
        assert shown.differs is (pair["accuracy"].finding != "none")
    assert cell(found, model="poor").differs
    assert cell(found, model=best).p is None


def test_a_score_without_a_better_end_and_equal_values_have_no_best() -> None:
    runs = {name: answers(1.0, seed) for seed, name in enumerate(("a", "b"))}
    found = table(runs)
    assert not any(each.best for each in found.cells)
    assert found.tests == 0


def test_a_lower_score_is_better_for_hallucinations() -> None:
    runs = {"few": chair_run(None, 0.1), "many": chair_run(None, 0.9)}
    best = {each.keys["score"]: each.keys["model"] for each in table(runs).cells if each.best}
    assert best["chair_i"] == best["chair_s"] == "few"


def test_percent_and_digits_concern_fractions_alone() -> None:
    runs = {"few": chair_run(None, 0.1), "many": chair_run(None, 0.9)}
    found = table(runs, percent=True, tests=False)
    value = cell(found, model="many", score="chair_i").value
    assert value is not None
    assert cell(found, model="many", score="chair_i").text == f"{100 * value:.1f}"
    assert cell(found, model="many", score="mean_words").text == "5.0"
    assert cell(table(runs, digits=2, tests=False), model="few", score="mean_words").text == "5.00"
    shown = cell(table(runs, intervals=True, tests=False), model="many", score="chair_i")
    assert shown.text == f"{value:.4f} [{shown.ci_low:.4f}, {shown.ci_high:.4f}]"


def test_several_metrics_are_columns_in_the_order_of_the_runs() -> None:
    runs = {f"model={name}": pope_run(None, 0.9, seed=n) for n, name in enumerate("ab")}
    names = (*runs, *runs)
    chair = [chair_run(None, 0.2), chair_run(None, 0.6, seed=3)]
    found = paper_table(*runs.values(), *chair, options=CompareOptions(names=names, **FEW))
    grid = found.page().grids[0]
    assert [row[0] for row in grid.rows] == ["a", "b"]
    assert list(dict.fromkeys(grid.over)) == ["", "pope", "chair"]
    assert grid.headings[-4:] == ("chair_i", "chair_s", "recall", "mean_words")


def test_runs_in_folders_with_the_names_of_their_metrics_keep_these_names() -> None:
    found = table({"chair": chair_run(None, 0.2), "pope": pope_run(None, 0.9, seed=1)})
    assert list(found.runs) == ["chair of chair", "pope of pope"]
    assert not [note for note in found.notes if " of :" in note]


def test_runs_of_splits_are_crossed_by_their_names(models: dict[str, RunReport]) -> None:
    names = [f"model={m},split={s}" for s in "xy" for m in models]
    runs = [*models.values(), *(answers(0.7, seed) for seed in range(5, 8))]
    found = paper_table(
        *runs,
        layout=TableLayout(columns=("split",)),
        options=CompareOptions(names=names, **FEW),
    )
    grid = found.page().grids[0]
    assert grid.title == "f1: model by split"
    assert grid.headings == ("model", "x", "y")
    assert len({each.keys["split"] for each in found.cells if each.best}) == 2


def test_every_format_shows_the_marks(models: dict[str, RunReport]) -> None:
    page = table(models, columns=("category", "score"), scores=("accuracy", "f1")).page()
    shown = {name: render(page) for name, render in PAGE_FORMATS.items()}
    assert "• " in shown["table"]
    assert "| **" in shown["markdown"]
    assert r"\textbf{" in shown["latex"]
    assert r"\multicolumn{2}{c}{popular}" in shown["latex"]
    assert r"\cmidrule(lr){4-5}" in shown["latex"]
    assert r"\begin{tabular}{lrrrrrr}" in shown["latex"]
    assert "pdfLaTeX may lack" not in shown["latex"]
    assert '<th scope="colgroup" colspan="2">popular</th>' in shown["html"]
    assert "<td><b>" in shown["html"]
    assert shown["csv"].startswith("model,adversarial accuracy,adversarial f1,popular accuracy")


def test_runs_that_were_scored_in_other_ways_are_shown_but_not_tested() -> None:
    runs = {"a": chair_run(None, 0.2), "b": chair_run(None, 0.8, variant="corrected")}
    found = table(runs)
    assert found.tests == 0
    assert found.notes[0].startswith("not tested: a and b can't be compared")
    assert cell(found, model="a", score="chair_i").best


def test_other_items_and_unscored_ones_are_noted() -> None:
    runs = {"a": chair_run(None, 0.2), "b": chair_run(None, 0.8, images=50, missing=("3",))}
    notes = "\n".join(table(runs).notes)
    assert expected_message("studies.paper_tables:different-numbers-of-items") in notes
    assert "b: 1 of 50 items unscored" in notes


def test_the_folder_of_score_all_is_a_table_too(tmp_path: Path) -> None:
    for name, said in (("a", "yes"), ("b", "no")):
        (tmp_path / "logs" / name).mkdir(parents=True)
        lines = "".join(
            f'{{"question_id": {n}, "text": "{said}", "label": "{label}", "image": "{n}.jpg"}}\n'
            for n, label in enumerate(["yes", "no", "no"])
        )
        (tmp_path / "logs" / name / "pope.jsonl").write_text(lines)
    with Client.embedded() as client:
        score_all(tmp_path / "logs", tmp_path / "out", client=client)
    found = paper_table(tmp_path / "out", options=CompareOptions(**FEW))
    assert [cell(found, model=name, score="accuracy").best for name in "ab"] == [False, True]


@pytest.mark.parametrize(
    ("layout", "options", "message"),
    [
        ({"rows": ("domain",)}, {}, expected_message("studies.paper_tables:no-key-domain")),
        (
            {"rows": ("category",)},
            {},
            expected_message("studies.paper_tables:the-same-cell"),
        ),
        ({"columns": ("model",)}, {}, expected_message("studies.paper_tables:given-twice")),
        ({"digits": 13}, {}, expected_message("studies.paper_tables:digits-is")),
        ({"rows": ()}, {}, expected_message("studies.paper_tables:need-a-key")),
        (
            {},
            {"scores": ("accuracy", "acc")},
            expected_message("studies.paper_tables:no-run-has-a-score"),
        ),
        (
            {},
            {"names": ("a", "a", "b")},
            expected_message("studies.paper_tables:two-runs-have-the-keys"),
        ),
        (
            {},
            {"names": ("a", "b=", "c")},
            expected_message("studies.paper_tables:give-a-name-or-keys"),
        ),
        (
            {},
            {"names": ("a", "b", "split=x")},
            expected_message("studies.paper_tables:has-no-value-of-the-key"),
        ),
        (
            {},
            {"names": ("a", "b")},
            expected_message("studies.paper_tables:one-name-for-each-run"),
        ),
    ],
)
def test_what_can_not_be_a_table_is_refused(
    models: dict[str, RunReport], layout: Any, options: Any, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        paper_table(
            *models.values(),
            layout=TableLayout(**layout),
            options=CompareOptions(**FEW, **options),
        )
