"""INFACT's answers on the command line: labels, letters and lines that disagree."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.qa_running import assert_refused, report_of, tables_of, values_of
from support.qa_samples import infact_lines, infact_questions, write_lines
from support.running import here

LINE: dict[str, Any] = {
    "question_id": "q1",
    "operator": "base",
    "dimension": "factuality",
    "category": "fluid mechanics reasoning",
    "order_sensitive": False,
    "label": "A",
    "response": "A",
}


def infact(folder: Path, lines: Sequence[Mapping[str, Any]]) -> Any:
    path = write_lines(folder / "lines.jsonl", lines)
    return here("score", "infact", "--responses", path, "--out", folder / "out", "--overwrite")


def test_a_letter_and_a_label_in_words_is_unread(tmp_path: Path) -> None:
    run = infact(tmp_path, [{**LINE, "label": "opening the door", "response": "B"}])
    assert run.returncode == 3, run.stderr
    assert report_of(tmp_path / "out")["coverage"]["reasons"] == {"BASE_UNPARSED": 1}


def test_a_label_that_is_not_an_option_makes_no_answer_wrong(tmp_path: Path) -> None:
    given = {**LINE, "label": "E", "options": ["closing it", "opening it"]}
    assert infact(tmp_path, [given]).returncode == 3
    assert report_of(tmp_path / "out")["coverage"]["reasons"] == {"LABEL_INVALID": 1}
    for label in ("B", "opening it", "(B) opening it"):
        rows = [{**given, "label": label, "response": "Opening it."}]
        assert infact(tmp_path, rows).returncode == 0
        assert values_of(tmp_path / "out")["base_accuracy"] == 1


@pytest.mark.parametrize(
    ("said", "right"),
    [("B", 1), ("(B)", 1), ("Opening the door.", 1), ("A", 0), ("closing it", 0), ("Answer: A", 0)],
)
def test_a_label_that_has_its_letter_before_it(tmp_path: Path, said: str, right: int) -> None:
    for label in ("B. opening the door", "(B) opening the door"):
        assert infact(tmp_path, [{**LINE, "label": label, "response": said}]).returncode == 0
        assert values_of(tmp_path / "out")["base_accuracy"] == right


def test_sure_by_its_number_is_overconfident_whatever_it_says(tmp_path: Path) -> None:
    # A.4 asks for the confidence first.
    said = "B, but I'm not sure"
    assert infact(tmp_path, [{**LINE, "response": said, "confidence": 0.9}]).returncode == 0
    values = values_of(tmp_path / "out")
    assert (values["overconfident_share"], values["knowledge_gap_share"]) == (1, 0)


@pytest.mark.parametrize(
    ("key", "value"), [("dimension", "faithfulness"), ("category", "scene text recognition")]
)
def test_lines_of_a_question_that_disagree(tmp_path: Path, key: str, value: str) -> None:
    other = {**LINE, "operator": "shuffle", key: value}
    assert_refused(infact(tmp_path, [LINE, other]), "q1", key)
    bare = {name: text for name, text in LINE.items() if name != key}
    assert infact(tmp_path, [bare, other]).returncode == 0
    assert value in report_of(tmp_path / "out")["groups"][key]


OPERATORS = {
    "rr_visual_degradation": ("gaussian_noise", "motion_blur", "compression"),
    "rr_evidence_corruption": ("caption_injection", "subtitle_corruption", "adversarial_noise"),
    "tss": ("shuffle", "reverse"),
}
LEAVES = {"faithfulness": "Action Recognition", "factuality": "Fluid Mechanics Reasoning"}


def drawn(seed: int, questions: int = 60) -> list[dict[str, Any]]:
    """Return answers of a model that is right more often under a higher seed."""
    draw = random.Random(seed)
    names = ["base", "text_only", *(name for of in OPERATORS.values() for name in of)]
    return [
        {
            **{"question_id": f"q{n}", "operator": operator, "label": "A", "order_sensitive": True},
            **{"dimension": dimension, "category": LEAVES[dimension]},
            "response": draw.choice("A" * (seed + 1) + "B"),
            "confidence": draw.choice([0.1, 0.4, 0.5, 0.7, 0.9, None]),
        }
        for n, dimension in enumerate(draw.choices(list(LEAVES), k=questions))
        for operator in names
    ]


def plain_modes(lines: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the scores of section 3.4, computed in the plainest way."""
    right = {(row["question_id"], row["operator"]): row["response"] == "A" for row in lines}
    asked = [question for question, operator in right if operator == "base"]
    base = [question for question in asked if right[question, "base"]]
    found = {"base_accuracy": len(base) / len(asked)}
    for mode, names in OPERATORS.items():
        kept = [statistics.fmean(right[question, name] for question in base) for name in names]
        found[mode] = statistics.fmean(1 - k if mode == "tss" else k for k in kept)
    found["average"] = statistics.fmean(found[mode] for mode in OPERATORS)
    return found


def ranks(values: Sequence[float]) -> list[float]:
    return [sum(o < v for o in values) + sum(o == v for o in values) / 2 for v in values]


def test_modes_taxonomy_and_overconfidence(tmp_path: Path) -> None:
    lines = drawn(2)
    assert infact(tmp_path, lines).returncode == 0
    found, notes = tables_of(tmp_path / "out")
    assert [row["dimension"] for row in found["modes"]] == ["all", *LEAVES]
    for row in found["modes"]:
        own = [each for each in lines if row["dimension"] in ("all", each["dimension"])]
        wanted = plain_modes(own)
        assert {name: row[name] for name in wanted} == pytest.approx(wanted)
    assert (len(found["taxonomy"]), len(found["taxonomy_levels"])) == (24, 8)
    nodes = {row["node"]: row for row in (*found["taxonomy"], *found["taxonomy_levels"])}
    for dimension, leaf in LEAVES.items():
        wanted = plain_modes([each for each in lines if each["dimension"] == dimension])
        for node in (leaf.casefold(), dimension):
            assert {name: nodes[node][name] for name in wanted} == pytest.approx(wanted)
    assert nodes["motion attributes recognition"]["average"] is None
    wrong = [row for row in lines if row["operator"] == "base" and row["response"] == "B"]
    known = [row["confidence"] for row in wrong if row["confidence"] is not None]
    every = found["overconfidence"][0]
    assert every["hallucination_like"] == sum(value >= 0.7 for value in known)
    assert every["knowledge_gap_like"] == sum(value <= 0.4 for value in known)
    assert every["other"] == known.count(0.5)
    assert every["unanalysable"] == len(wrong) - len(known)
    assert every["overconfident_share"] == every["hallucination_like"] / len(known)
    assert "give the runs of several models" in notes


def test_categories_of_another_taxonomy_are_named(tmp_path: Path) -> None:
    lines = [{**line, "category": f"my/{line['category']}"} for line in drawn(2)]
    assert infact(tmp_path, lines).returncode == 0
    found, notes = tables_of(tmp_path / "out")
    assert "taxonomy" not in found
    names = ", ".join(sorted({line["category"] for line in lines}))
    assert f"categories are not leaves of the paper: {names}" in notes


def test_reliability_over_models(tmp_path: Path) -> None:
    folders, wanted = [], []
    for seed in range(1, 5):
        folder = tmp_path / f"model_{seed}"
        folder.mkdir()
        lines = drawn(seed)
        assert infact(folder, lines).returncode == 0
        folders.append(folder / "out")
        by = [plain_modes([row for row in lines if row["dimension"] == name]) for name in LEAVES]
        wanted.append({score: statistics.fmean(each[score] for each in by) for score in by[0]})
    names = [part for seed in range(1, 5) for part in ("--name", f"m{seed}")]
    found, _ = tables_of(*folders, *names)
    assert [row["model"] for row in found["reliability"]] == ["m1", "m2", "m3", "m4"]
    for row, values in zip(found["reliability"], wanted, strict=True):
        assert {name: row[name] for name in values} == pytest.approx(values)
    base = [values["base_accuracy"] for values in wanted]
    for row in found["reliability_correlation"]:
        other = [values[row["score"]] for values in wanted]
        assert row["pearson"] == pytest.approx(statistics.correlation(base, other))
        ranked = statistics.correlation(ranks(base), ranks(other))
        assert (row["spearman"], row["models"]) == (pytest.approx(ranked), 4)
    assert len(found["modes"]) == 12


def test_the_audit_of_operators(tmp_path: Path) -> None:
    assert infact(tmp_path, drawn(1, 4)).returncode == 0
    people: list[dict[str, Any]] = [
        {"question_id": "q0", "operator": "compression", "choices": ["A", "(a)", "B"]},
        {"question_id": "q1", "operator": "compression", "choices": ["B", "B", "A"]},
        {"question_id": "q2", "operator": "compression", "choices": [None, None, "A"]},
        {"question_id": "q3", "operator": "compression", "choices": ["A", "B", None]},
        *(
            {"question_id": "q0", "operator": "caption_injection", "subtype": kind, "choices": said}
            for kind, said in (("misleading", ["B"]), ("irrelevant", ["A"]))
        ),
    ]
    audit = write_lines(tmp_path / "audit.jsonl", people)
    found, _ = tables_of(tmp_path / "out", "--audit", audit)
    rows = [tuple(row.values()) for row in found["audit"]]
    assert rows == [
        ("caption_injection", "irrelevant", 1, 1, 1, 1, 0),
        ("caption_injection", "misleading", 1, 0, 1, 1, 0),
        ("compression", "", 0.75, pytest.approx(1 / 3), 4, 3, 1),
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"operator": "shuffle"}, "'shuffle'"),
        ({"question_id": "q9"}, "'q9'"),
        ({"choices": "A"}, "choices is 'A'"),
        ({"choices": []}, "choices is []"),
        ({"choices": ["opening the door"]}, "'opening the door'"),
        ({"choices": [3]}, "the choice 3"),
    ],
)
def test_a_wrong_audit(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    assert infact(tmp_path, drawn(1, 2)).returncode == 0
    row = {"question_id": "q0", "operator": "compression", "choices": ["A"], **change}
    audit = write_lines(tmp_path / "audit.jsonl", [row])
    assert_refused(here("analyze", tmp_path / "out", "--audit", audit), "audit.jsonl", said)


def test_an_audit_with_a_question_twice(tmp_path: Path) -> None:
    assert infact(tmp_path, drawn(1, 2)).returncode == 0
    row = {"question_id": "q0", "operator": "compression", "choices": ["A"]}
    audit = write_lines(tmp_path / "audit.jsonl", [row, row])
    run = here("analyze", tmp_path / "out", "--audit", audit)
    assert_refused(run, "line 2", "'q0' under compression appears twice")


def test_analyses_without_categories_and_confidences(tmp_path: Path) -> None:
    bare = {key: LINE[key] for key in ("question_id", "operator", "label", "response")}
    assert infact(tmp_path, [bare]).returncode == 0
    found, notes = tables_of(tmp_path / "out")
    assert list(found) == ["modes"]
    assert found["modes"][0]["average"] is None
    assert "add the key category" in notes
    assert "add the key confidence" in notes


def test_a_run_is_printed_on_a_screen_and_all_rows_on_request(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "runs.jsonl", infact_lines(infact_questions(50)))
    given = ("score", "infact", "--responses", path, "--out", tmp_path / "out")
    short = here(*given)
    assert short.returncode == 0, short.stderr
    for score in ("base_accuracy", "rr_visual_degradation", "tss", "average"):
        assert f"\n{score} " in short.stdout
    assert "\nrr_motion_blur " not in short.stdout
    for whole in (here(*given, "--all-rows"), here("report", tmp_path / "out", "--all-rows")):
        assert whole.stdout.count("rr_motion_blur") > 20
        # The tables of groups, of which a short print has the paper's rows alone.
        assert 4 * len(short.stdout.splitlines()) < len(whole.stdout.splitlines())
