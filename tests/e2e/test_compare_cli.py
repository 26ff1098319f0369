"""``hallujudge compare``: formats, the file of changed items, and errors in one sentence."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from support.comparison_runs import chair_run, pope_run
from support.messages import expected_message
from support.running import assert_refused, cli, here, read_rows

from hallujudge.sdk.cli import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    chair_run(folder / "a", 0.2, seed=1)
    chair_run(folder / "b", 0.8, seed=2, missing=("3",))
    chair_run(folder / "corrected", 0.8, variant="corrected")
    pope_run(folder / "pope", 0.9)
    return folder


def compared(*words: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(["compare", *map(str, words), "--replicates", "300"])
    out, err = capsys.readouterr()
    return code, out, err


def test_as_a_user_runs_it(runs: Path) -> None:
    done = cli("compare", runs / "a", runs / "b", "--replicates", "500")
    assert done.returncode == 0, done.stderr
    [row] = [line for line in done.stdout.splitlines() if line.startswith("chair_s")][:1]
    assert row.endswith("worse")
    assert "1 unscored in b only" in done.stdout


def test_changed_items_are_written(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "changed.jsonl"
    code, _, said = compared(runs / "a", runs / "b", "--items", out, capsys=capsys)
    rows = read_rows(out)
    assert (code, said) == (
        0,
        expected_message("sdk.cli.run_commands:changed-items-written-to", len(rows), out),
    )
    assert {row["change"] for row in rows} >= {
        "worse",
        expected_message("sdk.comparison.item_pairs:unscored-in-the-second-run"),
    }


def test_every_format(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = {
        name: compared(runs / "a", runs / "b", "-f", name, capsys=capsys)[1]
        for name in ("table", "json", "markdown", "csv", "latex", "html")
    }
    rate = json.loads(shown["json"])["pairs"][0]["differences"][0]
    [row] = [row for row in csv.DictReader(io.StringIO(shown["csv"])) if row["score"] == "chair_i"]
    assert float(row["difference"]) == rate["difference"]
    assert shown["markdown"].startswith("### chair \\(published\\): comparison\n")
    assert r"\toprule" in shown["latex"]
    assert shown["html"].startswith("<!doctype html>")


def test_names_are_escaped_in_every_format(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("--name", "=HYPERLINK(1)", "--name", "<b>&|_%$\x1b[31m")
    for name in ("table", "markdown", "csv", "latex", "html"):
        _, text, _ = compared(runs / "a", runs / "b", "-f", name, *names, capsys=capsys)
        assert "\x1b" not in text
        if name == "csv":
            assert ",=HYPERLINK" not in text.replace("\n", ",")
        if name == "latex":
            assert r"\textless{}b\textgreater{}\&\textbar{}\_\%\$" in text
        if name in ("html", "markdown"):
            assert "&lt;b&gt;&amp;" in text
            assert "<b>&|" not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a",), "a comparison needs at least 2"),
        (("a", "none"), "none: no such folder; give the folder of a run"),
        (("a", "pope"), "the metrics are chair and pope"),
        (("a", "corrected"), "variant (var) published and corrected"),
        (("a", "corrected"), "allow the difference with --allow var"),
        (("a", "b", "--score", "f1"), "chair has no score 'f1'"),
        (("a", "b", "--format", "pdf"), "--format 'pdf': choose from json, table"),
        (("a", "b", "a", "--items", "x"), "--items needs two runs, and 3 are given; name two"),
        (("a", "a"), "is given twice; give different runs"),
    ],
)
def test_errors(runs: Path, words: tuple[str, ...], said: str) -> None:
    assert_refused(here("compare", *words, "--replicates", "300", cwd=runs), said)


def test_fields_that_a_refusal_names_can_be_allowed_as_they_are_named(runs: Path) -> None:
    refused = here("compare", "a", "corrected", cwd=runs)
    fields = refused.stderr.rpartition("--allow ")[2].split()[0]
    assert "," in fields
    told = here("compare", "a", "corrected", "--allow", fields, "--replicates", "300", cwd=runs)
    assert told.returncode == 0, told.stderr


def test_other_references_are_refused_unless_allowed(tmp_path: Path) -> None:
    responses = tmp_path / "captions.jsonl"
    responses.write_text('{"image_id": 1, "caption": "A dog."}\n')
    for name in ("dog", "cat"):
        objects = tmp_path / f"{name}.json"
        objects.write_text(json.dumps({"1": [name]}))
        given = ("-r", responses, "-R", objects, "-o", tmp_path / name, "--quiet")
        assert main(["score", "chair", *map(str, given)]) == 0
    runs = ("dog", "cat", "--replicates", "300")
    assert_refused(
        here("compare", *runs, cwd=tmp_path), "or allow the difference with --allow refs"
    )
    assert here("compare", *runs, "--allow", "refs", cwd=tmp_path).returncode == 0
    shown = here("compare", "dog", "cat", "--show-differences", cwd=tmp_path)
    assert (shown.returncode, shown.stdout) == (0, "1\n")
    assert shown.stderr == "1 item has other references\n"
    three = here("compare", "dog", "cat", "dog", "--show-differences", cwd=tmp_path)
    assert_refused(three, "--show-differences needs two runs, and 3 are given; name")
