"""AMBER on the command line: descriptions and questions, the page, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nltk
import pytest
from support import amber_samples as amber
from support.nltk_sample import write_nltk_data
from support.pages import Page
from support.qa_running import assert_refused, report_of, values_of
from support.running import here, read_rows
from support.spacy_sample import made_model


def options(folder: Path, **changed: Any) -> list[str | Path]:
    tables: dict[str, object] = {
        "responses": amber.RESPONSES,
        "references": amber.ANNOTATIONS,
        "questions": amber.QUESTIONS,
        "nouns-file": amber.NOUNS,
        "associations": amber.ASSOCIATIONS,
        **changed,
    }
    for name, content in tables.items():
        (folder / name).write_text(json.dumps(content))
    (folder / "safe").write_text("\n".join(amber.SAFE) + "\n")
    given = [part for name in tables for part in (f"--{name}", folder / name)]
    return [*given, "--safe-words", folder / "safe"]


def test_descriptions_and_questions(tmp_path: Path) -> None:
    given = (*options(tmp_path), "--format", "json,html", "--group-by", "kind")
    for variant in ("published", "corrected"):
        out = tmp_path / variant
        run = here("score", "amber", *given, "--variant", variant, "--out", out)
        assert run.returncode == 3, run.stderr
    published, corrected = (values_of(tmp_path / name) for name in ("published", "corrected"))
    assert published["accuracy"] == 2 / 5.001, '"No." is wrong, one answer is missing'
    assert corrected["accuracy"] == 3 / 4
    assert corrected["chair"] == 2 / 6
    assert corrected["cover"] == 4 / 5
    page = Page((tmp_path / "published" / "report.html").read_text(encoding="utf-8"))
    assert "1 of 3 object words hallucinated" in page.summaries()
    lists = {entry["label"] for [item] in page.items() for entry in item["lists"]}
    assert "Hallucination targets said" in lists
    assert "var:corrected|nouns:given|words:equal" in report_of(tmp_path / "corrected")["signature"]


def test_a_run_does_not_overwrite_what_it_reads(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    given = options(tmp_path)
    nouns = out / "items.jsonl"
    nouns.write_text("".join(json.dumps(row) + "\n" for row in amber.NOUNS))
    given[given.index("--nouns-file") + 1] = nouns
    assert_refused(here("score", "amber", *given, "--out", out), "items.jsonl")


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    given = options(tmp_path)[:-2]
    assert_refused(here("score", "amber", *given, "--out", tmp_path / "out"), "safe_words.txt")


def described(
    folder: Path, *more: str | Path, text: str = "A man and his shoe near a puppy."
) -> Any:
    responses = [{"id": 1, "response": text}, {"id": 2, "response": "Leaves of a tree, and Trees."}]
    given = options(folder, responses=responses)
    at = given.index("--nouns-file")
    return here(
        "score",
        "amber",
        *given[:at],
        *given[at + 2 :],
        *more,
        "--out",
        folder / "out",
        "--overwrite",
    )


def test_nouns_by_rules(tmp_path: Path) -> None:
    run = described(tmp_path, "--nouns", "rules")
    assert run.returncode == 0, run.stderr
    assert "|nouns:rules-3|words:equal" in report_of(tmp_path / "out")["signature"]
    first, second = read_rows(tmp_path / "out" / "items.jsonl")
    assert [word["word"] for word in first["evidence"]["words"]] == ["man", "shoe", "puppy"]
    assert [word["word"] for word in second["evidence"]["words"]] == ["leaf", "tree", "tree"]
    assert first["evidence"]["targets_said"] == ["dog"]
    assert values_of(tmp_path / "out")["chair"] == 1 / 6.001


def test_rules_read_english(tmp_path: Path) -> None:
    german = "Ein Mann steht mit einem Hund auf der Straße vor dem alten Haus und wartet."
    assert described(tmp_path, "--nouns", "rules", text=german).returncode == 3
    assert report_of(tmp_path / "out")["coverage"]["reasons"] == {"LANGUAGE_UNSUPPORTED": 1}


def test_nouns_that_are_not_there_are_named(tmp_path: Path) -> None:
    assert described(tmp_path).returncode == 3
    assert report_of(tmp_path / "out")["coverage"]["reasons"] == {"KEYWORDS_MISSING": 2}
    both = here(
        *("score", "amber", *options(tmp_path), "--nouns", "rules", "--out", tmp_path / "out")
    )
    assert_refused(both, "--nouns-file", "--nouns rules", "choose one")


def test_published_nouns_name_what_to_install(tmp_path: Path) -> None:
    run = described(tmp_path, "--nouns", "published", "--vectors", "no_such_model")
    said = "pip install 'spacy>=3.8.3' && python -m spacy download en_core_web_lg"
    assert run.returncode == 1
    assert said in run.stderr


def test_published_nouns_by_nltk_and_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = {"puppy": (1.0, 0.0), "leaf": (0.99, 0.1), "tree": (0.0, 1.0), "man": (-1.0, 0.0)}
    model = made_model(tmp_path, near)
    monkeypatch.setattr(nltk.data, "path", [str(write_nltk_data(tmp_path / "nltk"))])
    run = described(tmp_path, "--nouns", "published", "--vectors", model)
    assert run.returncode == 0, run.stderr
    signature = report_of(tmp_path / "out")["signature"]
    assert f"|nouns:nltk-{nltk.__version__}|words:equal or cosine>0.8@en_made-" in signature
    first, second = read_rows(tmp_path / "out" / "items.jsonl")
    # By its vector a puppy is a leaf, which a tree has; it is the target dog by the table as well.
    verdicts = {word["word"]: word["verdict"] for word in first["evidence"]["words"]}
    assert verdicts == {"man": "true", "shoe": "safe", "puppy": "true"}
    assert first["evidence"]["targets_said"] == ["dog"]
    assert "tree" in first["evidence"]["covered"]
    # The tagger knows neither "Leaves" nor "Trees": as in the script, upper case is kept.
    assert [word["word"] for word in second["evidence"]["words"]] == ["tree"]
