"""AMBER on the command line: descriptions and questions, the page, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support import amber_samples as amber
from support.qa_running import assert_refused, here, report_of, values_of


def options(folder: Path, **changed: Any) -> list[str | Path]:
    tables: dict[str, object] = {
        "responses": amber.RESPONSES,
        "references": amber.ANNOTATIONS,
        "questions": amber.QUESTIONS,
        "nouns": amber.NOUNS,
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
    page = (tmp_path / "published" / "report.html").read_text(encoding="utf-8")
    assert "1 of 3 object words hallucinated" in page
    assert "Hallucination targets said" in page
    assert "var:corrected|nouns:given|words:equal" in report_of(tmp_path / "corrected")["signature"]


def test_a_run_does_not_overwrite_what_it_reads(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    given = options(tmp_path)
    nouns = out / "items.jsonl"
    nouns.write_text("".join(json.dumps(row) + "\n" for row in amber.NOUNS))
    given[given.index("--nouns") + 1] = nouns
    assert_refused(here("score", "amber", *given, "--out", out), "items.jsonl")


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    given = options(tmp_path)[:-2]
    assert_refused(here("score", "amber", *given, "--out", tmp_path / "out"), "safe_words.txt")
