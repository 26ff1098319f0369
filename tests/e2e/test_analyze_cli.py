"""``hallujudge analyze``: the papers' analyses of a run, as a user gets them."""

from __future__ import annotations

import csv
import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest
from support.messages import expected_message
from support.qa_running import analyses_of
from support.running import here
from support.tri_he_samples import FALSE, SCENE, TRUE, answer, report_of, score
from support.wordnet_sample import write_wordnet

from hallujudge.sdk import Client, analyze
from hallujudge.sdk.analysis import all_analyses
from hallujudge.sdk.cli import command_tree
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.studies.analysis_options import OptionValue

ANSWERS = [
    answer("1", TRUE, FALSE, human_score=[4, 3]),
    answer("2", TRUE, human_score=[5, 5]),
    answer("3", FALSE, human_score=[1, None]),
    answer("4", ["cat", "near", "car"], ["street", "under", "man"]),
]


def content(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "analysis.json").read_text(encoding="utf-8"))
    return found


def test_people_and_pairs(tmp_path: Path) -> None:
    street = [["dog", "under", "tree"], ["car", "parked on", "street"]]
    graphs = [{"image_id": image, "triplets": SCENE} for image in "123"]
    graphs.append({"image_id": "4", "triplets": [*SCENE, *street]})
    assert score(tmp_path, ANSWERS, graphs=graphs).returncode == 0
    ran = here("analyze", tmp_path / "out")
    assert ran.returncode == 0, ran.stderr
    found = content(tmp_path / "out")
    assert found["runs"][0]["signature"] == report_of(tmp_path / "out")["signature"]
    analyses = found["analyses"]
    agreement = analyses["human_agreement"]["rows"][0]
    rates, people = [0.5, 0.0, 1.0], [3.5, 5.0, 1.0]
    assert agreement == {
        "score": "hallu_q",
        # The paper's scale rises with less hallucination, and its correlations are positive.
        "pearson": pytest.approx(-statistics.correlation(rates, people)),
        "spearman": pytest.approx(1.0),
        "kendall": pytest.approx(1.0),
        "answers": 3,
    }
    assert [row["answers"] for row in analyses["krippendorff_alpha"]["rows"]] == [2] * 4
    errors = analyses["prediction_errors"]["rows"][0]
    assert (errors["claims"], errors["not_supported"], errors["prediction_errors"]) == (6, 4, 1)
    # (0.5 + 0 + 1 + 1) / 4, and with one of the last answer's two claims: (0.5 + 0 + 1 + 0.5) / 4.
    assert (errors["hallu_q"], errors["definition_hallu_q"]) == (0.625, 0.5)
    assert len(analyses["frequent_pairs"]["rows"]) == 2
    assert {tuple(row) for row in analyses["pairs"]["rows"]} == {("subject", "object")}
    assert "trend" not in analyses
    assert "no trend" in ran.stderr
    assert "human agreement" in ran.stdout


def test_the_human_scale_sets_the_sign_and_is_named(tmp_path: Path) -> None:
    assert score(tmp_path, ANSWERS[:3]).returncode == 0
    found = {}
    for scale, words in (("more-is-better", "less"), ("more-is-worse", "more")):
        ran = here("analyze", tmp_path / "out", "--human-scale", scale)
        assert ran.returncode == 0, ran.stderr
        table = content(tmp_path / "out")["analyses"]["human_agreement"]
        assert table["source"].endswith(f"a scale that rises with {words} hallucination")
        found[scale] = table["rows"][0]
    for name in ("pearson", "spearman", "kendall"):
        assert found["more-is-better"][name] > 0.9
        assert found["more-is-worse"][name] == pytest.approx(-found["more-is-better"][name])
    ran = here("analyze", tmp_path / "out", "--human-scale", "up")
    assert ran.returncode == 2
    assert "'up'; give more-is-better or more-is-worse" in ran.stderr


def test_annotators_may_have_a_key_each(tmp_path: Path) -> None:
    answers = [answer("1", TRUE, first=1, second=2), answer("2", FALSE, first=4, second=None)]
    ran = score(tmp_path, answers, "--human-key", "first", "--human-key", "second")
    assert ran.returncode == 0, ran.stderr
    lines = (tmp_path / "out" / "items.jsonl").read_text().splitlines()
    assert [json.loads(line)["evidence"]["human_scores"] for line in lines] == [[1, 2], [4]]
    missing = score(tmp_path, answers, "--human-key", "third")
    assert missing.returncode == 2
    assert "no key 'third'" in missing.stderr


@pytest.mark.parametrize("wrong", ["good", True, float("inf"), [1, "2"], 10**400])
def test_scores_that_are_none(tmp_path: Path, wrong: object) -> None:
    ran = score(tmp_path, [answer("1", TRUE, human_score=wrong)])
    assert ran.returncode == 2
    assert "score" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_trend_ends_at_the_reports_own_rates(tmp_path: Path) -> None:
    texts = [
        {"image_id": str(n), "response": text}
        for n, text in enumerate(["A man is riding a horse. A dog runs.", "The horse is brown."])
    ]
    assert score(tmp_path, texts, kind="--responses").returncode == 0
    assert here("analyze", tmp_path / "out", "--words", "6,100").returncode == 0
    rows = content(tmp_path / "out")["analyses"]["trend"]["rows"]
    assert [row["words"] for row in rows] == [6, 100]
    scores = report_of(tmp_path / "out")["scores"]
    for name, value in scores.items():
        assert rows[-1][name] == pytest.approx(value["value"])
    assert rows[0]["claims"] < rows[-1]["claims"]


def test_mementos(tmp_path: Path) -> None:
    rows = [
        {
            "id": str(n),
            "domain": "daily_life",
            "reference_objects": ["man", "ball"],
            "predicted_objects": ["man", *made_up],
            "reference_behaviors": behaviors,
            "predicted_behaviors": said,
        }
        for n, (made_up, behaviors, said) in enumerate(
            [
                (["cat"], ["run", "jump"], ["run", "fly"]),
                ([], ["run", "jump"], ["run", "jump"]),
                (["cat", "dog"], ["run"], ["run", "leap"]),
            ]
        )
    ]
    keywords = tmp_path / "keywords.jsonl"
    keywords.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out"
    assert here("score", "mementos", "--keywords", keywords, "--out", out).returncode == 0
    ran = here("analyze", out, "--companions", "1", "--format", "json")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found == content(out)
    lines = [json.loads(line) for line in (out / "items.jsonl").read_text().splitlines()]
    both = [(i["scores"]["object_precision"], i["scores"]["behavior_precision"]) for i in lines]
    (precision,) = (
        row for row in found["analyses"]["correlation"]["rows"] if row["measure"] == "precision"
    )
    assert precision["value"] == pytest.approx(statistics.correlation(*zip(*both, strict=True)))
    assert [row["n"] for row in found["analyses"]["recall_by_length"]["rows"]] == [1, 2]
    # "leap" is a form of "jump", the usual companion of "run"; "fly" is not.
    (company,) = found["analyses"]["companions"]["rows"]
    assert (company["value"], company["n"]) == (0.5, 2)


def test_a_folder_that_is_not_a_run(tmp_path: Path) -> None:
    assert here("analyze", tmp_path).returncode == 2
    (tmp_path / "report.json").write_text("{}")
    refused = here("analyze", tmp_path)
    assert (refused.returncode, "not a report" in refused.stderr) == (2, True)


def test_a_run_without_analyses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = tuple(each for each in all_analyses() if "chair" not in each.metrics)
    monkeypatch.setattr("hallujudge.studies.analysis.all_analyses", lambda: others)
    captions, objects = tmp_path / "c.jsonl", tmp_path / "o.json"
    captions.write_text(json.dumps({"id": 1, "caption": "A dog."}) + "\n")
    objects.write_text(json.dumps({"1": ["dog"]}))
    out = tmp_path / "out"
    assert here("score", "chair", "-r", captions, "-R", objects, "-o", out).returncode == 0
    refused = here("analyze", out)
    assert (refused.returncode, "no analyses" in refused.stderr) == (2, True)


def test_items_of_another_run(tmp_path: Path) -> None:
    assert score(tmp_path, ANSWERS).returncode == 0
    items = tmp_path / "out" / "items.jsonl"
    lines = items.read_text().splitlines(keepends=True)
    items.write_text("".join(lines[:-1]))
    assert (
        expected_message("studies.analysis.analyzed_run:items-but-the-report-covers")
        in here("analyze", tmp_path / "out").stderr
    )
    broken = lines[0].replace('"not_supported"', '"perhaps"')
    items.write_text("".join([broken, *lines[1:]]))
    refused = here("analyze", tmp_path / "out")
    assert (refused.returncode, "'perhaps'" in refused.stderr) == (2, True)
    assert "Traceback" not in refused.stderr


def test_a_new_run_forgets_the_analysis_of_the_last(tmp_path: Path) -> None:
    score(tmp_path, ANSWERS)
    here("analyze", tmp_path / "out")
    assert (tmp_path / "out" / "analysis.json").exists()
    score(tmp_path, ANSWERS, "--overwrite")
    assert not (tmp_path / "out" / "analysis.json").exists()


def test_the_same_from_python(tmp_path: Path) -> None:
    score(tmp_path, ANSWERS)
    here("analyze", tmp_path / "out")
    found = analyze(tmp_path / "out")
    assert json.loads(found.to_text()) == content(tmp_path / "out")
    assert found["prediction_errors"].rows[0]["claims"] == 6
    with pytest.raises(KeyError):
        found["nothing"]
    with Client.embedded() as client:
        report = client.score(
            "tri-he",
            responses=tmp_path / "answers.jsonl",
            references=tmp_path / "graphs.jsonl",
            options={"extractor": "given"},
        )
        without = client.score(
            "tri-he",
            responses=tmp_path / "answers.jsonl",
            references=tmp_path / "graphs.jsonl",
            options={"extractor": "given"},
            keep_items=False,
        )
    assert analyze(report).tables == found.tables
    with pytest.raises(InvalidInputError, match="keep_items"):
        analyze(without)
    wrong: Mapping[str, OptionValue]
    for wrong in ({"words": "0"}, {"words": "ten"}, {"share": 0.0}, {"companions": 0}):
        with pytest.raises(InvalidInputError):
            analyze(report, options=wrong)


def test_likes_and_dislikes_have_no_ratio(tmp_path: Path) -> None:
    people = [[-1, 1], [1, -1], [-1, -1], [1, 1]]
    answers = [answer(str(n), TRUE, human_score=given) for n, given in enumerate(people)]
    assert score(tmp_path, answers).returncode == 0
    rows = analyses_of(tmp_path / "out")[0]["krippendorff_alpha"]["rows"]
    alphas = {row["level"]: row["alpha"] for row in rows}
    assert alphas["nominal"] == pytest.approx(0.125)
    assert alphas["ratio"] is None


def test_annotators_agree_on_unscored_answers_too(tmp_path: Path) -> None:
    answers = [
        answer("1", TRUE, human_score=[1, 1]),
        answer("2", FALSE, human_score=[2, 2]),
        answer("3", human_score=[3, 1]),
    ]
    assert score(tmp_path, answers).returncode == 3
    analyses, notes = analyses_of(tmp_path / "out")
    assert [row["answers"] for row in analyses["krippendorff_alpha"]["rows"]] == [3] * 4
    assert analyses["human_agreement"]["rows"][0]["answers"] == 2
    assert (
        expected_message("studies.analysis.tri_he:of-answers-with-human-scores-are-unscored")
        in notes
    )
    interval = analyses["krippendorff_alpha"]["rows"][2]["alpha"]
    ratings = [1, 1, 2, 2, 3, 1]
    observed, expected = (3 - 1) ** 2 * 2 / 6, 2 * statistics.variance(ratings)
    assert interval == pytest.approx(1 - observed / expected)


@pytest.mark.parametrize("wrong", [1e200, -1e300, [1, 1e10]])
def test_scores_beyond_any_scale(tmp_path: Path, wrong: object) -> None:
    ran = score(tmp_path, [answer("1", TRUE, human_score=wrong)])
    assert ran.returncode == 2
    assert "human_score" in ran.stderr


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("items.jsonl", '"human_scores":[4.0]', '"human_scores":["inf"]'),
        ("items.jsonl", '"human_scores":[4.0]', '"human_scores":[1e400]'),
        ("items.jsonl", '"outcome":"scored"', '"outcome":"good"'),
        ("report.json", '"variant": "published"', '"variant": "bogus"'),
    ],
)
def test_a_run_that_was_changed(tmp_path: Path, file: str, old: str, new: str) -> None:
    answers = [answer(n, TRUE, human_score=4.0) for n in "12"]
    assert score(tmp_path, answers).returncode == 0
    path = tmp_path / "out" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    ran = here("analyze", tmp_path / "out")
    assert ran.returncode == 2, ran.stdout
    assert ran.stderr.startswith("error: ")


def test_pairs_by_synset(tmp_path: Path) -> None:
    wordnet = write_wordnet(tmp_path / "wordnet")
    answers = [
        answer("1", ["dog", "near", "couch"], ["Domestic dog", "on", "fronk"]),
        answer("2", ["unicorn", "near", "arm"]),
    ]
    assert score(tmp_path, answers).returncode == 0
    ran = here("analyze", tmp_path / "out", "--wordnet", wordnet, "--share", "1")
    assert ran.returncode == 0, ran.stderr
    rows = content(tmp_path / "out")["analyses"]["pairs"]["rows"]
    assert [tuple(row.values()) for row in rows] == [
        ("dog.n.01", "couch.n.01"),
        ("unicorn", "arm.n.01"),
    ]
    refused = here("analyze", tmp_path / "out", "--wordnet", tmp_path)
    assert (refused.returncode, "--wordnet" in refused.stderr) == (2, True)


def test_several_runs_side_by_side(tmp_path: Path) -> None:
    folders = []
    for name, answers in (("a", ANSWERS), ("b", ANSWERS[:2])):
        (tmp_path / name).mkdir()
        assert score(tmp_path / name, answers).returncode == 0
        folders.append(tmp_path / name / "out")
    names = ("--name", "model=llava,prompt=1", "--name", "model=blip,prompt=1")
    ran = here("analyze", *folders, *names, "--format", "json", "--table", "prediction_errors")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert [run["name"] for run in found["runs"]] == ["llava/1", "blip/1"]
    rows = found["analyses"]["prediction_errors"]["rows"]
    assert [(row["model"], row["prompt"], row["claims"]) for row in rows] == [
        ("llava", "1", 6),
        ("blip", "1", 3),
    ]
    assert "llava/1: " in ran.stderr
    assert not (folders[0] / "analysis.json").exists()
    twice = here("analyze", folders[0], folders[1], "--html")
    assert (twice.returncode, "--out" in twice.stderr) == (2, True)


def test_every_table_in_every_format(tmp_path: Path) -> None:
    texts = [
        {"image_id": str(n), "response": "A dog sits on a red sofa. A cat is under the blue lamp."}
        for n in range(3)
    ]
    assert score(tmp_path, texts, kind="--responses").returncode == 0
    out = tmp_path / "out"
    written = tmp_path / "tables"
    ran = here("analyze", out, "--out", written, "--html")
    assert ran.returncode == 0, ran.stderr
    tables = content(out)["analyses"]
    assert {"trend", "frequent_pairs"} <= tables.keys()
    for name, table in tables.items():
        rows = list(csv.DictReader((written / f"{name}.csv").read_text().splitlines()))
        assert [set(row) for row in rows] == [set(row) for row in table["rows"]]
        assert "\\toprule" in (written / f"{name}.tex").read_text()
    page = (written / "analysis.html").read_text()
    assert page.count("<svg") >= 1
    assert "<h2>trend (" in page
    assert "Analyses</summary>" in (out / "report.html").read_text()
    assert here("report", out, "--format", "html").returncode == 0
    assert "Analyses</summary>" in (out / "report.html").read_text()
    refused = here("analyze", out, "--format", "csv")
    assert (refused.returncode, "--table" in refused.stderr) == (2, True)
    alone = here("analyze", out, "--format", "csv", "--table", "trend")
    assert alone.stdout == (written / "trend.csv").read_text()
    unknown = here("analyze", out, "--table", "nothing")
    assert (unknown.returncode, "trend" in unknown.stderr) == (2, True)
    other = here("analyze", out, "--companions", "3")
    assert (other.returncode, "companions" in other.stderr) == (2, True)


@pytest.mark.parametrize(
    ("old", "new"),
    [('"rows": [', '"rows": [7, '), ('"kind": "lines"', '"kind": "pie"'), ('"runs"', '"run"')],
)
def test_a_damaged_analysis(tmp_path: Path, old: str, new: str) -> None:
    texts = [{"image_id": "1", "response": "A dog sits on a red sofa."}]
    assert score(tmp_path, texts, kind="--responses").returncode == 0
    out = tmp_path / "out"
    assert here("analyze", out).returncode == 0
    path = out / "analysis.json"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    ran = here("report", out, "--format", "html")
    assert (ran.returncode, "analyze the run again" in ran.stderr) == (2, True)


def test_the_flags_are_the_options_that_analyses_declare() -> None:
    declared = [option for analyses in all_analyses() for option in analyses.options]
    kinds = {"text": "text", "texts": "text", "number": "number", "count": "number", "file": "path"}
    command = command_tree(["analyze"]).commands["analyze"]
    flags = {each.name: each for each in command.params}
    for option in declared:
        flag = flags[option.name]
        assert isinstance(flag, click.Option)
        assert (flag.type.name, flag.multiple) == (kinds[option.kind], option.kind == "texts")
        given = flag.process_value(click.Context(command), None)
        assert given is None, "the analyses know the defaults"
