"""A command and a metric of a family import that family alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_ONE = """
import sys
import click
from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.metrics.families import metric_names
from hallujudge.metrics.families import FAMILIES
from hallujudge.sdk.cli import command_tree

score = command_tree().commands["score"]
context = click.Context(score)
command = score.get_command(context, "tri-he")
assert command.name == "tri-he"
assert metric_entry("tri-he").metric.name == "tri-he"
package = "hallujudge.judge_service.engine.families"
loaded = [name for name in FAMILIES if f"{package}.{name}" in sys.modules]
assert loaded == ["tri_he"], loaded
print(*score.list_commands(context))
print(*metric_names())
"""


def test_a_family_is_imported_alone_and_later_ones_keep_their_order() -> None:
    done = subprocess.run([sys.executable, "-c", _ONE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    commands, metrics = (line.split() for line in done.stdout.splitlines())
    assert commands == ["all", *metrics]
    assert metrics[:2] == ["amber", "argus"]


_RUN = """
import sys
from hallujudge.sdk.cli import main
from hallujudge.metrics.families import FAMILIES

# A score, a note and an error, which name options of the command line.
for answers in ("answers.jsonl", "missing.jsonl"):
    command = f"score pope -r {answers} -R questions.jsonl -o out --overwrite --id-key question_id"
    print(main(command.split()))
for package in ("metrics", "sdk.archives"):
    loaded = [name for name in FAMILIES if f"hallujudge.{package}.{name}" in sys.modules]
    assert loaded in (["pope"], []), (package, loaded)
"""


def test_a_whole_run_imports_no_other_family(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text('{"question_id": 1, "answer": "Yes"}\n')
    (tmp_path / "questions.jsonl").write_text(
        '{"question_id": 1, "image": "a.jpg", "text": "Is there a dog?", "label": "yes"}\n'
    )
    command = [sys.executable, "-c", _RUN]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "note: " in done.stdout
    assert "error: " in done.stderr
    assert done.stdout.split()[-1] == "2"


_LISTED = """
import sys
from hallujudge.sdk.cli import main

main(sys.argv[1:])
heavy = ["numpy", "nltk", "grpc", "aiohttp", "networkx", "PIL"]
if sys.argv[1:] == ["--help"]:
    heavy.append("hallujudge.sdk.media.pictures")
loaded = [name for name in heavy if name in sys.modules]
assert not loaded, loaded
"""


@pytest.mark.parametrize("command", ["metrics list", "score --help", "--help", "serve --help"])
def test_what_says_what_there_is_loads_nothing_heavy(command: str) -> None:
    typed = [sys.executable, "-c", _LISTED, *command.split()]
    done = subprocess.run(typed, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
