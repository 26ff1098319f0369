"""Audits of small archives: each cause with its share and its items."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support.archive_samples import QUESTION_LAYOUTS, QUESTIONS, write_lines
from support.archive_values import Row
from support.messages import expected_message

from hallujudge.sdk import Client
from hallujudge.sdk.audit import Audit, AuditOptions, ScoreAudit, audit, audit_totals
from hallujudge.sdk.cli import main
from hallujudge.sdk.errors import ArchiveError, InvalidInputError

FAILURE = "Failed to obtain answer via API."


def score(found: Audit, name: str) -> ScoreAudit:
    return next(each for each in found.scores if each.name == name)


def effective(found: Audit, name: str) -> dict[str, Fraction]:
    """Return the causes with a share, after checking that steps and items add up."""
    of = score(found, name)
    assert sum(of.shares.values(), Fraction(0)) == of.ours - of.first
    items: dict[str, Fraction] = {}
    for item in found.items():
        items[item.cause] = items.get(item.cause, Fraction(0)) + item.shares[name]
    for cause in found.causes[2:]:
        assert items.get(cause.name, Fraction(0)) == of.shares[cause.name], cause.name
    return {cause: share for cause, share in of.shares.items() if share}


def kit(index: int, answer: str, prediction: str, category: str = "random", **more: Any) -> Row:
    return {
        "index": index,
        "question": f"Is there a thing {index} in the image?",
        "answer": answer,
        "category": category,
        "image_path": f"{index}.jpg",
        "prediction": prediction,
        **more,
    }


def kit_archive(folder: Path, *, printed: str = "Overall,70.0,75.0,80.0,60.0") -> Path:
    """Five questions, eight rows: a judged answer, a failure text and joined categories."""
    rows = [
        kit(0, "Yes", "Yes", "random,popular,adversarial"),
        kit(1, "No", "No"),
        kit(2, "No", "It seems so", "random,popular"),
        kit(3, "Yes", FAILURE),
        kit(4, "Yes", "Yes, there is."),
    ]
    path = folder / "model_POPE.json"
    path.write_text(json.dumps(rows))
    said = ["Yes", "No", "No", "Unknown", "Yes"]
    judged = [
        {**row, "extracted": word, "score": word == row["answer"]}
        for row, word in zip(rows, said, strict=True)
    ]
    (folder / "model_POPE_auxmatch.json").write_text(json.dumps(judged))
    (folder / "model_POPE_score.csv").write_text(f"split,Overall,acc,precision,recall\n{printed}\n")
    return path


def test_vlmevalkits_verdicts_categories_and_failures(tmp_path: Path) -> None:
    found = audit(kit_archive(tmp_path, printed="Overall,88.9,87.5,100.0,80.0"))
    assert (found.harness, found.metric) == ("vlmevalkit", "pope")
    assert score(found, "accuracy").rederived == Fraction(7, 8)
    assert score(found, "recall").rederived == Fraction(4, 5)
    # The judge's two rows; one row a question; four answers are left; then three of them are right
    # by POPE's parser, which reads "It seems so" as yes.
    assert effective(found, "accuracy") == {
        "copied verdicts": Fraction(5, 8) - Fraction(7, 8),
        "categories": Fraction(3, 5) - Fraction(5, 8),
        "failure texts": Fraction(3, 4) - Fraction(3, 5),
    }
    assert [cause.rows for cause in found.causes[2:]] == [8, 8, 5, 4, 4, 4]
    items = {(item.cause, item.row.id) for item in found.items()}
    assert ("copied verdicts", "2") in items
    assert ("failure texts", "3") in items
    assert ("answer parser", "2") in items
    assert score(found, "f1").shares["rounding"] == Fraction(8, 9) - Fraction(889, 1000)
    assert any("auxmatch" in note for note in found.notes)


def test_a_file_without_a_suffix_is_read(tmp_path: Path) -> None:
    path = kit_archive(tmp_path).replace(tmp_path / "answers")
    found = audit(path)
    assert found.harness == "vlmevalkit"
    assert all(score.printed is None for score in found.scores)


def test_our_vlmevalkit_variant_keeps_the_categories(tmp_path: Path) -> None:
    found = audit(kit_archive(tmp_path), AuditOptions(variant="vlmevalkit"))
    assert "categories" not in [cause.name for cause in found.causes]
    assert "answer parser" not in effective(found, "accuracy")
    assert score(found, "accuracy").ours == Fraction(5, 7)


def test_a_category_is_audited_alone(tmp_path: Path) -> None:
    kit_archive(tmp_path, printed="popular,100.0,100.0,100.0,100.0")
    path = tmp_path / "model_POPE_auxmatch.json"
    found = audit(path, AuditOptions(category="popular"))
    assert [row.id for row in found.rows] == ["0", "2"]
    assert effective(found, "accuracy") == {"copied verdicts": Fraction(-1, 2)}
    with pytest.raises(
        InvalidInputError, match=expected_message("studies.audit.audit:no-row-has-the-category-x")
    ):
        audit(path, AuditOptions(category="x"))


def lmms_archive(folder: Path, answers: list[tuple[str, str]], printed: Mapping[str, Any]) -> Path:
    rows = []
    for number, (label, answer) in enumerate(answers):
        said = answer.lower().strip()
        own = {"question_id": str(number), "score": float(said == label), "prediction": said}
        own["ground_truth"] = label
        scores = dict.fromkeys(("pope_accuracy", "pope_yes_ratio"), own)
        rows.append({"doc_id": number, "target": label, "filtered_resps": answer, **scores})
    results = {"results": {"pope": {f"{name},none": of for name, of in printed.items()}}}
    (folder / "20260102_030405_results.json").write_text(json.dumps(results))
    return write_lines(folder / "20260102_030405_samples_pope.jsonl", rows)


ANSWERS = [("yes", "Yes."), ("yes", "yes"), ("no", "No"), ("no", "Yes")]


def test_lmms_evals_parser_and_its_yes_ratio(tmp_path: Path) -> None:
    printed = {"pope_accuracy": 0.5, "pope_yes_ratio": 0.5, "alias": "pope"}
    found = audit(lmms_archive(tmp_path, ANSWERS, printed))
    assert found.harness == "lmms-eval"
    assert effective(found, "accuracy") == {"answer parser": Fraction(1, 4)}
    # The labels' share is one half, and so is that of the answers that lmms-eval can read.
    assert effective(found, "yes_ratio") == {"answer parser": Fraction(1, 4)}
    assert [item.row.response for item in found.items() if item.cause == "answer parser"] == [
        "Yes."
    ]
    assert {each.name for each in found.scores} == {"accuracy", "yes_ratio"}


def test_an_undefined_printed_number_is_none(tmp_path: Path) -> None:
    printed = {"pope_accuracy": 0.5, "pope_precision": float("nan"), "pope_recall": "N/A"}
    found = audit(lmms_archive(tmp_path, ANSWERS, printed))
    assert [each.name for each in found.scores if each.printed is not None] == ["accuracy"]


@pytest.mark.parametrize("layout", ["A", "A'", "B1", "B2", "C"])
def test_results_of_every_release_of_lmms_eval_are_found(tmp_path: Path, layout: str) -> None:
    path = QUESTION_LAYOUTS[f"lmms-eval {layout}"](tmp_path, QUESTIONS)
    name = path.name.replace("samples_pope.jsonl", "results.json") if layout in "B1 B2 C" else ""
    right = [str(q.answer).lower().strip() == q.label for q in QUESTIONS]
    results = {"results": {"pope": {"pope_accuracy,none": sum(right) / len(right)}}}
    path.with_name(name or "results.json").write_text(json.dumps(results))
    accuracy = score(audit(path), "accuracy")
    assert accuracy.rederived == Fraction(sum(right), len(right))
    assert accuracy.shares["not explained"] == 0


def test_rows_that_the_archive_lost_are_counted(tmp_path: Path) -> None:
    path = lmms_archive(tmp_path, ANSWERS, {"pope_accuracy": 0.5})
    results = tmp_path / "20260102_030405_results.json"
    content = json.loads(results.read_text())
    for told, noted in ((4, False), (6, True)):
        counts = {"pope": {"original": 9000, "effective": told}}
        results.write_text(json.dumps(content | {"n-samples": counts}))
        notes = audit(path).notes
        assert (
            any(
                expected_message("studies.audit.audit:results-json-counts-rows-and-the-archive")
                in n
                for n in notes
            )
            == noted
        )


def test_repeated_rows_are_counted_once(tmp_path: Path) -> None:
    path = lmms_archive(tmp_path, ANSWERS[1:], {"pope_accuracy": 0.75})
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, lines[0]]) + "\n")
    found = audit(path)
    assert effective(found, "accuracy") == {"repeated rows": Fraction(2, 3) - Fraction(3, 4)}
    assert [item.row.id for item in found.items()] == ["0#2"]
    assert [c.name for c in found.causes if c.items] == ["repeated rows"]


def test_a_number_that_does_not_follow_is_not_explained(tmp_path: Path) -> None:
    path = lmms_archive(tmp_path, ANSWERS[1:], {"pope_accuracy": 0.5})
    found = audit(path, AuditOptions(printed=("acc=60%",)))
    shares = score(found, "accuracy").shares
    assert shares["not explained"] == Fraction(67, 100) - Fraction(60, 100)
    assert shares["rounding"] == Fraction(2, 3) - Fraction(67, 100)
    assert any(
        expected_message("studies.audit.audit:does-not-give-the-printed-number") in note
        for note in found.notes
    )


def llava_archive(folder: Path) -> tuple[Path, Path]:
    questions = [
        {"question_id": n, "image": f"{n}.jpg", "text": f"Is there a thing {n}?", "label": label}
        for n, label in enumerate(("yes", "no", "no", "yes"))
    ]
    answers = [
        {"question_id": n, "prompt": questions[n]["text"], "text": text, "model_id": "m"}
        for n, text in ((1, "No"), (0, "Yes"), (2, "No."), (3, "Perhaps no"))
    ]
    return (
        write_lines(folder / "answers.jsonl", answers),
        write_lines(folder / "questions.jsonl", questions),
    )


def test_llavas_labels_by_order(tmp_path: Path) -> None:
    answers, questions = llava_archive(tmp_path)
    options = AuditOptions(references=(questions,), printed=("accuracy=0.25",))
    found = audit(answers, options)
    assert found.harness == "llava"
    assert effective(found, "accuracy") == {"labels by order": Fraction(1, 2)}
    assert sorted(item.row.id for item in found.items()) == ["0", "1"]


def chair_archive(folder: Path) -> Path:
    def sentence(image: int, caption: str, found: list[str], wrong: int, there: list[str]) -> Row:
        return {
            "image_id": image,
            "caption": caption,
            "mscoco_hallucinated_words": [["cat", "cat"]] * wrong,
            "mscoco_gt_words": there,
            "mscoco_generated_words": found,
            "metrics": {"CHAIRs": int(wrong > 0), "CHAIRi": 0.0, "Recall": 0.0},
        }

    sentences = [
        sentence(1, "A dog and a cat.", ["dog", "cat"], 1, ["dog"]),
        sentence(2, "A dog.", ["dog"], 1, ["dog"]),
        sentence(3, FAILURE, [], 0, ["dog"]),
        sentence(4, "A dog and a car.", ["dog"], 0, ["dog"]),
    ]
    overall = {"CHAIRs": 0.5, "CHAIRi": 0.5, "Recall": 0.75, "Len": 0.05}
    path = folder / "chair.json"
    path.write_text(json.dumps({"sentences": sentences, "overall_metrics": overall}))
    return path


def test_chairs_output(tmp_path: Path) -> None:
    found = audit(chair_archive(tmp_path))
    assert (found.harness, found.metric) == ("chair", "chair")
    assert effective(found, "chair_i") == {
        "copied verdicts": Fraction(1, 4) - Fraction(1, 2),
        "object words": Fraction(2, 5) - Fraction(1, 4),
    }
    assert effective(found, "chair_s") == {
        "copied verdicts": Fraction(-1, 4),
        "failure texts": Fraction(1, 3) - Fraction(1, 4),
        "object words": Fraction(1, 3),
    }
    assert score(found, "recall").ours == 1


def test_lmms_evals_chair_is_in_percent(tmp_path: Path) -> None:
    words = [(["dog"], ["dog"]), (["dog", "cat"], ["dog"]), ([], ["dog"])]
    rows = [
        {
            "doc_id": n,
            "target": "",
            "filtered_resps": "A dog and a cat.",
            "coco_cap_chair_i": {"answer": there, "pred": found, "image_id": n},
        }
        for n, (found, there) in enumerate(words)
    ]
    path = write_lines(tmp_path / "20260102_030405_samples_coco_cap_chair.jsonl", rows)
    own = {"coco_cap_chair_i,none": 100 / 3, "coco_cap_recall,none": 0.5}
    results = {"results": {"coco_cap_chair": own}}
    (tmp_path / "20260102_030405_results.json").write_text(json.dumps(results))
    found = audit(path)
    assert found.harness == "lmms-eval"
    assert score(found, "chair_i").shares["not explained"] == 0
    assert effective(found, "chair_i")["object words"] == Fraction(1, 2) - Fraction(1, 3)
    # Half a percent, not one half.
    recall = score(found, "recall")
    assert recall.printed is not None
    assert recall.printed.value == Fraction(1, 200)
    assert recall.shares["not explained"] > Fraction(6, 10)


def test_the_command_shows_columns_that_add_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, items = chair_archive(tmp_path), tmp_path / "items.jsonl"
    assert main(["audit", str(path), "--items", str(items), "-f", "markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    table = [[cell.replace("\\", "") for cell in row] for row in table]
    cells = {row[0]: row[3] for row in table if row[0]}
    steps = [Fraction(cell) for cell in cells.values() if cell[:1] in "+-" and cell[1:2].isdigit()]
    assert Fraction(cells["printed"]) + sum(steps) == Fraction(cells["ours"])
    before = path.read_bytes()
    assert main(["audit", str(path), "--items", str(path)]) == 2
    said = expected_message("studies.study_commands:an-output-is-an-input")
    assert said in capsys.readouterr().err
    assert path.read_bytes() == before
    written = [json.loads(line) for line in items.read_text().splitlines()]
    assert {row["cause"] for row in written} >= {"copied verdicts", "failure texts"}
    assert main(["audit", str(path), "-f", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    exact = result["scores"]["chair_i"]["exact"]
    total = sum(map(Fraction, exact["shares"].values()), Fraction(exact["first"]))
    assert total == Fraction(exact["ours"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("accuracy", "'accuracy': give a score and its number"),
        ("accuracy=x", "'x' is not a number"),
        ("accuracy=101", "'101' is more than"),
        ("bleu=0.5", "'bleu' is not one of"),
    ],
)
def test_wrong_printed_numbers_are_refused(tmp_path: Path, text: str, said: str) -> None:
    path = lmms_archive(tmp_path, ANSWERS, {})
    with pytest.raises(InvalidInputError, match=f"--printed.*{said}"):
        audit(path, AuditOptions(printed=(text,)))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "no records; give a record for each answer"),
        (
            [kit(0, "Yes", "Yes"), kit(1, "Maybe", "Yes")],
            r'1 \("Maybe"\) .*Correct these labels in the file of answers$',
        ),
    ],
)
def test_an_archive_that_can_not_be_scored_gets_a_step_that_an_audit_has(
    tmp_path: Path, rows: list[Row], said: str
) -> None:
    path = tmp_path / "model_POPE.tsv"
    columns = list(kit(0, "Yes", "Yes"))
    lines = [columns, *([str(row[name]) for name in columns] for row in rows)]
    path.write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")
    with pytest.raises(ArchiveError, match=said):
        audit(path)


def test_other_archives_are_refused(tmp_path: Path) -> None:
    plain = write_lines(tmp_path / "plain.jsonl", [{"id": 1, "text": "yes"}])
    with pytest.raises(
        ArchiveError, match=expected_message("studies.audit.audit:an-audit-reads-archives-of")
    ):
        audit(plain)
    path = lmms_archive(tmp_path, ANSWERS, {})
    with pytest.raises(InvalidInputError, match="choose from pope, llava, opera, lmms-eval"):
        audit(path, AuditOptions(harness="chair"))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of POPE with an accuracy of 0.75."""
    answers = [("yes", "Yes"), ("no", "no"), ("yes", "yes"), ("no", "yes")]
    rows = [
        {"question": f"Is there a {n}?", "image": f"{n}.jpg", "label": label, "response": said}
        for n, (label, said) in enumerate(answers)
    ]
    with Client.embedded() as client:
        return client.score("pope", responses=rows).save(tmp_path / "run")


def totals(folder: Path, **scores: object) -> Path:
    path = folder / "results.json"
    path.write_text(json.dumps({"results": {"pope": {f"{n},none": v for n, v in scores.items()}}}))
    return path


def test_totals_alone_are_compared_with_a_run(tmp_path: Path, run: Path) -> None:
    path = totals(tmp_path, alias="pope", pope_accuracy=0.75, pope_f1_score=0.66, gpt_eval=3)
    found = audit_totals(path, run)
    rows = [(each.task, each.score, each.printed, each.ours) for each in found.totals]
    assert rows == [("pope", "accuracy", 0.75, 0.75), ("pope", "f1", 0.66, 0.8)]
    assert [round(each.difference, 9) for each in found.totals] == [0.0, 0.14]


def test_totals_that_agree_in_their_digits_do_not_differ(tmp_path: Path, run: Path) -> None:
    [total] = audit_totals(totals(tmp_path, pope_precision="66.7"), run).totals
    assert total.difference == 0.0


def test_totals_without_a_run_say_how_they_are_compared(
    tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = totals(tmp_path, pope_accuracy=0.75)
    assert main(["audit", str(path)]) == 2
    assert (
        expected_message("studies.audit.audit:compare-them-with-a-run") in capsys.readouterr().err
    )
    assert main(["audit", str(path), "--run", str(run), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["totals"][0]["ours"] == 0.75


def test_only_totals_of_the_metric_are_compared(tmp_path: Path, run: Path) -> None:
    with pytest.raises(
        InvalidInputError,
        match=expected_message("studies.audit.printed_numbers:no-task-has-a-number"),
    ):
        audit_totals(totals(tmp_path, coco_cap_chair_i=12.0), run)
    with pytest.raises(
        ArchiveError, match=expected_message("studies.audit.printed_numbers:is-not-a-results-file")
    ):
        audit_totals(run / "items.jsonl", run)
