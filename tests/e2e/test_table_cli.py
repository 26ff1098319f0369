"""``hallujudge table``: every format, keys of rows and columns, and errors in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.comparison_runs import chair_run, pope_run
from support.running import assert_refused, here

from hallujudge.sdk.cli import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name, wrong in (("a", 0.9), ("b", 0.2)):
        chair_run(folder / name, wrong, seed=len(name))
    pope_run(folder / "pope", 0.9)
    return folder


def test_every_format(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs)
    shown = {}
    for name in ("table", "json", "markdown", "csv", "latex", "html"):
        given = ["table", "a", "b", "--percent", "--digits", "2", "--replicates", "300", "-f", name]
        assert main(given) == 0
        shown[name] = capsys.readouterr().out
    cells = json.loads(shown["json"])["cells"]
    assert {cell["keys"]["model"] for cell in cells if cell["best"]} == {"b"}
    differ = [cell["keys"]["score"] for cell in cells if cell["differs"]]
    assert differ == ["chair_i", "chair_s", "recall"]
    value = next(c["value"] for c in cells if c["keys"] == {"model": "b", "score": "chair_i"})
    assert f"• {100 * value:.2f}" in shown["table"]
    assert f"**{100 * value:.2f}**" in shown["markdown"]
    assert rf"\textbf{{{100 * value:.2f}}}" in shown["latex"]
    assert f"<b>{100 * value:.2f}</b>" in shown["html"]
    assert f"b,{value!r}," in shown["csv"]


def test_several_metrics_and_keys(runs: Path) -> None:
    given = ("--rows", "score", "--columns", "metric,model", "--no-tests", "-f", "csv")
    told = here("table", "a", "pope", "--name", "x", "--name", "x", *given, cwd=runs)
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[0] == "score,chair,pope,notes"


def test_a_terminal_shows_a_table_for_each_metric(runs: Path) -> None:
    told = here("table", "a", "pope", "--no-tests", cwd=runs)
    assert told.returncode == 0, told.stderr
    lines = [line.split() for line in told.stdout.splitlines()]
    assert ["model", "chair_i", "chair_s", "recall", "mean_words"] in lines
    assert [line for line in lines if line in (["chair"], ["pope"])] == [["chair"], ["pope"]]
    whole = here("table", "a", "pope", "--no-tests", "-f", "csv", cwd=runs).stdout
    assert whole.splitlines()[0].startswith("model,chair chair_i,")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a", "none"), "no such folder"),
        (("a", "b", "--score", "f1"), "no run has a score 'f1'"),
        (("a", "b", "--rows", "split"), "no run and no item has the key 'split'"),
        (("a", "b", "--digits", "99"), "error: --digits is 99"),
        (("a", "b", "--name", "x"), "1 name for 2 runs"),
        (("a", "b", "--format", "yaml"), "--format 'yaml'"),
    ],
)
def test_errors(runs: Path, words: tuple[str, ...], said: str) -> None:
    assert_refused(here("table", *words, "--replicates", "300", cwd=runs), said)
