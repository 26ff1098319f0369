"""The command line where people, shells and machines do the unexpected."""

from __future__ import annotations

import csv
import gzip
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from support.messages import expected_message
from support.running import BIN, ServerProcess, cli, errors_of, here, read_rows
from support.sizes import further, sized
from support.threads import PATIENCE, eventually


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    caption = "A dog on a couch next to a cat."
    (tmp_path / "captions.jsonl").write_text(
        "".join(json.dumps({"image_id": n, "caption": caption}) + "\n" for n in range(5))
    )
    (tmp_path / "references.json").write_text(json.dumps({str(n): ["dog"] for n in range(5)}))
    return tmp_path


def arguments(
    folder: Path, *more: str | Path, responses: str | Path | None = None
) -> list[str | Path]:
    return [
        *("score", "chair", "--responses", responses or folder / "captions.jsonl"),
        *("--references", folder / "references.json", "--out", folder / "out", *more),
    ]


@pytest.mark.parametrize("command", [[], ["score"], ["config"]])
def test_a_command_without_more_shows_its_help_and_no_error(command: list[str]) -> None:
    run = here(*command)
    assert run.returncode == 2
    assert run.stderr == ""
    assert here(*command, "-h").stdout == here(*command, "--help").stdout
    assert run.stdout.strip() == here(*command, "--help").stdout.strip()
    assert "Usage: hallujudge" in run.stdout


MISTAKE = "test_a_mistake_ends_the_process_with_one_line"


@pytest.mark.parametrize(
    "command",
    [
        ["score", "chair", "-r", "nowhere.jsonl", "-R", "nowhere.json", "-o", "out"],
        ["nowhere"],
        further(MISTAKE, ["metrics", "show", "nowhere"]),
        further(MISTAKE, ["analyze", "nowhere"]),
        further(MISTAKE, ["compare", "nowhere", "nowhere"]),
        further(MISTAKE, ["build", "pope", "--objects", "nowhere.json", "-o", "out"]),
        further(MISTAKE, ["graph", "validate", "nowhere.json"]),
        further(MISTAKE, ["doctor", "--server", ""]),
        further(MISTAKE, ["config", "show", "--config", "nowhere.toml"]),
    ],
)
def test_a_mistake_ends_the_process_with_one_line(tmp_path: Path, command: list[str]) -> None:
    """Other tests of mistakes run in this process; these show that a shell gets the same."""
    run = cli(*command, cwd=tmp_path)
    assert run.returncode == 2, run.stderr
    assert run.stderr.startswith("error: ")
    assert run.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


CLOSED = "test_a_closed_output_causes_no_traceback"


@pytest.mark.parametrize("where", [">/dev/full", further(CLOSED, ">&-"), further(CLOSED, "2>&-")])
def test_a_closed_output_causes_no_traceback(folder: Path, where: str) -> None:
    line = " ".join(map(str, [BIN / "hallujudge", *arguments(folder), where]))
    run = subprocess.run(
        ["/bin/sh", "-c", line], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert "Traceback" not in run.stderr
    assert run.returncode == (1 if where == ">/dev/full" else 0), run.stderr
    assert (folder / "out" / "report.json").exists()


def test_a_plan_has_its_sheet_although_nobody_reads_the_output(folder: Path) -> None:
    assert here(*arguments(folder)).returncode == 0
    plan, sheet = folder / "plan.json", folder / "sheet.csv"
    command = (BIN / "hallujudge", "label", "plan", folder / "out", "-n", "5")
    reader, writer = os.pipe()
    os.close(reader)
    try:
        subprocess.run(
            [str(part) for part in (*command, "--out", plan, "--sheet", sheet)],
            stdout=writer,
            timeout=PATIENCE,
            check=False,
        )
    finally:
        os.close(writer)
    planned = json.loads(plan.read_text(encoding="utf-8"))["units"]
    with sheet.open(encoding="utf-8", newline="") as stream:
        assert len(list(csv.DictReader(stream))) == len(planned) >= 5


def test_an_empty_address_is_a_mistake(folder: Path) -> None:
    run = here(*arguments(folder, "--server", ""))
    assert run.returncode == 2
    assert "empty" in run.stderr
    assert not (folder / "out" / "report.json").exists()


def test_names_of_files_need_not_be_text(folder: Path) -> None:
    graph = Path(os.fsdecode(os.fsencode(folder) + b"/gr\xff|aph.txt"))
    graph.write_text("dog, puppy\ncat\n")
    run = cli(*arguments(folder, "--graph", graph))
    assert run.returncode == 0, run.stderr
    # A graph is named after what it holds, not after its file.
    signature = json.loads((folder / "out" / "report.json").read_text())["signature"]
    assert "graph:custom-table@" in signature


MANY = sized(15_000, 40_000)
"""Captions that a server scores for many seconds: it dies long before the end."""


def test_a_server_that_dies_leaves_what_it_scored(folder: Path) -> None:
    caption = "A dog on a couch next to a cat. " * 20
    with (folder / "captions.jsonl").open("w") as stream:
        for n in range(MANY):
            stream.write(json.dumps({"image_id": n, "caption": caption}) + "\n")
    (folder / "references.json").write_text(json.dumps({str(n): ["dog"] for n in range(MANY)}))
    server = ServerProcess()
    process = subprocess.Popen(
        [
            BIN / "hallujudge",
            *arguments(folder, "--server", server.address, "--reconnect-timeout", "1"),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    items = folder / "out" / "items.partial.jsonl"
    assert eventually(lambda: items.exists() and items.stat().st_size > 0)
    server.stop(signal.SIGKILL)
    errors = errors_of(process)
    assert process.returncode == 1, errors
    # A slow machine prints lines of progress before them.
    *_, kept, said = errors.splitlines()
    assert said.startswith("error: ")
    assert server.address in said
    count = len(read_rows(items))
    assert 0 < count < MANY
    assert kept.startswith(
        expected_message("sdk.runs.folder:of-items-are-kept-in", count, MANY, folder / "out")
    )
    assert not (folder / "out" / "report.json").exists()


INPUT = "test_responses_come_from_standard_input"


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("captions.jsonl", True),
        ("captions.csv", False),
        further(INPUT, "captions.jsonl", False),
        further(INPUT, "captions.csv", True),
    ],
)
def test_responses_come_from_standard_input(folder: Path, name: str, packed: bool) -> None:
    lines = ["image_id,caption", *(f"{n},A dog on a couch next to a cat." for n in range(5))]
    (folder / "captions.csv").write_text("\n".join(lines))
    data = (folder / name).read_bytes()
    run = subprocess.run(
        [BIN / "hallujudge", *arguments(folder, responses="-")],
        input=gzip.compress(data) if packed else data,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert len(read_rows(folder / "out" / "items.jsonl")) == 5


def test_two_archives_do_not_share_standard_input(folder: Path) -> None:
    run = here("score", "chair", "-r", "-", "-R", "-", "-o", folder / "out")
    assert run.returncode == 2
    assert (
        expected_message("sdk.archives.readers:both-responses-and-references-are-standard-input")
        in run.stderr
    )


def test_quiet_prints_scores_only_and_verbose_lists_unscored_items(folder: Path) -> None:
    with (folder / "captions.jsonl").open("a") as stream:
        stream.write(json.dumps({"image_id": 4, "caption": None, "n": 1}) + "\n")
    quiet = here(*arguments(folder, "--allow-duplicates", "-q"))
    assert quiet.returncode == 3
    assert [line.partition(" ")[0] for line in quiet.stdout.splitlines()] == [
        "chair_i",
        "chair_s",
        "recall",
        "mean_words",
    ]
    assert quiet.stderr == ""
    verbose = here(*arguments(folder, "--allow-duplicates", "-v", "--overwrite"))
    assert "unscored 4#2: RESPONSE_MISSING" in verbose.stderr
    both = here(*arguments(folder, "-q", "-v"))
    assert (both.returncode, both.stdout) == (2, "")
    assert expected_message("sdk.cli.run_options:quiet-and-verbose-are-both-given") in both.stderr
