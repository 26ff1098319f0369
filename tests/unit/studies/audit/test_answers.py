"""VLMEvalKit's numbers of CRPE: its rule in words, and audits against a plain loop."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support.prediction_tables import TABLES, Rows, Write
from support.running import here

from hallujudge.sdk.audit import AuditOptions, audit
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.studies.audit.answers import is_right, rows_of

CATEGORIES = ("exist", "subject", "predicate", "object")
NAMES = ("cart", "horse", "lamp", "tree")


@pytest.mark.parametrize(
    ("answer", "prediction", "right"),
    [
        # The first character decides, if it is A, B, C or D, or the only one.
        ("B", "B", True),
        ("B", "B. cart", True),
        ("B. cart", "But it is a tree.", True),
        ("B", "A man is there, so B.", False),
        ("B", "b", False),
        # Otherwise what the answer has from its fifth character on: here "art".
        ("B. cart", "It is the cart.", True),
        ("B. cart", "A work of art", False),
        ("B. cart", "work of ART", True),
        ("B. cart", "(B)", False),
        # Of a letter alone, nothing is left to look for.
        ("B", "It is C.", True),
        ("B", "(D)", True),
        ("B", "nan", True),
    ],
)
def test_a_prediction_is_right_by_its_first_character_or_a_text(
    answer: str, prediction: str, *, right: bool
) -> None:
    assert is_right(answer, prediction) is right


@pytest.mark.parametrize("empty", ["", None, "None", "NULL", "n/a", "<NA>", "NaN", "nan"])
def test_what_pandas_takes_for_an_empty_cell_is_its_text_nan(empty: str | None) -> None:
    golds = ("B. nan", "B. none", "B. null", "B")
    counts = rows_of([{"answer": gold, "prediction": empty} for gold in golds])
    # From the fifth character on: "an", "one", "ull" and nothing, of which "nan" has two.
    assert [each["right"] for each in counts] == [1, 0, 0, 1]


def drawn(seed: int, *, spelt: bool) -> list[dict[str, Any]]:
    """Return a table of questions, each four times; ``spelt``: with the text of the answer too."""
    chance, rows = random.Random(seed), list[dict[str, Any]]()
    for number in range(24):
        options = chance.sample(NAMES, 4)
        for turn in range(4):
            rolled = options[turn:] + options[:turn]
            letter = "ABCD"[rolled.index(options[0])]
            lines = [f"{mark}. {text}" for mark, text in zip("ABCD", rolled, strict=True)]
            said = (letter, f"{letter}. {options[0]}", f"It is the {options[0]}.", f"({letter})")
            other = ("A", "D", "It can't be told.", "a", None)
            rows.append(
                {
                    "index": len(rows),
                    "question": "\n".join([f"What is at place {number}?", *lines, "Answer."]),
                    "category": CATEGORIES[number % 4],
                    "answer": f"{letter}. {options[0]}" if spelt else letter,
                    "prediction": chance.choice(said if chance.random() < 0.9 else other),
                }
            )
    return rows


def plain_loop(rows: Rows) -> dict[str, Fraction | None]:
    """Return what the tool writes: its loops, with fractions in place of floating point."""
    right, asked = (
        dict.fromkeys((*CATEGORIES, "total"), 0),
        dict.fromkeys((*CATEGORIES, "total"), 0),
    )
    for start in range(0, len(rows), 4):
        whole, category = True, ""
        for row in rows[start : start + 4]:
            said = "nan" if row["prediction"] is None else row["prediction"]
            gold, category = row["answer"], row["category"]
            if len(said) == 1 or said[0] in "ABCD":
                fits = said[0] == gold[0]
            else:
                fits = gold[4:].lower() in said.lower()
            if not fits:
                whole = False
                break
        for name in (category, "total"):
            right[name] += whole
            asked[name] += 1
    return {n: Fraction(right[n], asked[n]) if asked[n] else None for n in asked}


@pytest.mark.parametrize("write", TABLES)
@pytest.mark.parametrize("spelt", [False, True], ids=["letters", "texts"])
@pytest.mark.parametrize("category", ["", *CATEGORIES])
def test_the_tools_number_is_derived_and_explained(
    tmp_path: Path, write: Write, category: str, *, spelt: bool
) -> None:
    rows = drawn(7, spelt=spelt)
    table = write(rows, tmp_path)
    known = plain_loop(rows)
    values = {name: None if value is None else float(value) for name, value in known.items()}
    (tmp_path / "model_set_score.json").write_text(json.dumps(values))
    found = audit(table, AuditOptions(category=category))
    [score] = found.scores
    assert (found.harness, found.metric) == ("vlmevalkit", "crpe")
    assert score.rederived == known[category or "total"]
    assert score.printed is not None
    assert score.printed.source == f"model_set_score.json, {category or 'total'}"
    assert not score.shares["not explained"]
    assert score.first + sum(score.shares.values()) == score.ours
    assert score.shares["answer parser"] < 0, "texts are right for the tool, and not for the script"


@pytest.mark.parametrize(
    ("variant", "step"),
    [
        ("published", "four to a question"),
        ("corrected", "four to a question"),
        ("lmms-eval", "each answer"),
    ],
)
def test_each_variant_is_the_last_step(tmp_path: Path, variant: str, step: str) -> None:
    rows = [row for row in drawn(3, spelt=True) if row["category"] == "object"]
    write_json, *_ = TABLES
    table = write_json(rows, tmp_path)
    found = audit(table, AuditOptions(variant=variant))
    [score] = found.scores
    assert score.rederived == plain_loop(rows)["object"]
    assert found.stages[-1].cause == step
    run = here("score", "crpe", "-r", table, "--variant", variant, "-o", tmp_path / "out")
    assert run.returncode in (0, 3), run.stderr
    report: Mapping[str, Any] = json.loads((tmp_path / "out/report.json").read_text())
    assert float(score.ours) == pytest.approx(report["scores"]["accuracy"]["value"], abs=1e-9)


def test_a_table_whose_last_question_is_cut_off_is_refused(tmp_path: Path) -> None:
    write_json, *_ = TABLES
    table = write_json(drawn(1, spelt=False)[:-1], tmp_path)
    with pytest.raises(InvalidInputError, match=r"95 rows: VLMEvalKit stops .* a multiple of 4"):
        audit(table)


def test_a_category_is_that_of_the_row_at_which_the_tool_stops(tmp_path: Path) -> None:
    rows = drawn(5, spelt=False)
    # Rows changed places, so that fours are of two categories.
    rows[2], rows[6] = rows[6], rows[2]
    write_json, *_ = TABLES
    table = write_json(rows, tmp_path)
    for category in CATEGORIES:
        [score] = audit(table, AuditOptions(category=category)).scores
        assert score.rederived == plain_loop(rows)[category]
