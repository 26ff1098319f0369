"""Scoring 100,000 answers of each benchmark of closed questions on the command line.

    python benchmarks/bench_answers.py [FAMILY ...] [--answers 100000] [--rounds 3]

Prints the processor's time of ``hallujudge score FAMILY`` with one worker, the fastest of some
rounds, and that of ``--help``, which is the start alone. Then the parts of the time: reading the
archive, scoring with the hashes of its records, and writing ``items.jsonl``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import needs  # noqa: F401  # stops with a sentence where hallujudge is not installed
from answer_archives import FAMILIES
from arguments import Arguments
from bench_runs import measured

COMMAND = Path(sys.executable).parent / "hallujudge"
BATCH = 1000
# Families with other shapes of bundles: one answer, and several.
SMOKE_FAMILIES = ("pope", "infact")


def main() -> None:
    """Measure, and print the results."""
    parser = Arguments(__doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    parser.size("--answers", 100_000, smoke=100)
    parser.size("--rounds", 3, smoke=1)
    parser.add_argument("--parts", nargs=2, help=argparse.SUPPRESS)
    options = parser.given()
    # Without compiled modules, every command would spend a second on compiling them again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if options.parts:
        print_parts(options.parts[0], Path(options.parts[1]))
        return
    for family in options.families or (SMOKE_FAMILIES if options.smoke else FAMILIES):
        with tempfile.TemporaryDirectory() as name:
            show(family, Path(name), options.answers, options.rounds)


def show(family: str, folder: Path, size: int, rounds: int) -> None:
    """Print what scoring an archive of a family takes."""
    (metric, *more), make = FAMILIES[family][0].split(), FAMILIES[family][1]
    for option, content in make(size).items():
        (folder / f"{option.strip('-')}.json").write_text(json.dumps(content))
    given = [part for file in sorted(folder.iterdir()) for part in (flag(file), file)]
    score = (COMMAND, "score", metric, *more, "-q", *given, "--workers", "1", "-o")
    start = min(measured(COMMAND, "score", metric, "--help").processor for _ in range(rounds + 1))
    costs = [measured(*score, folder / f"out{n}") for n in range(rounds)]
    # Code 3: some items are unscored.
    if any(cost.code not in (0, 3) for cost in costs):
        raise SystemExit(f"{family}: scoring ended with exit codes {[c.code for c in costs]}")
    whole = min(cost.processor for cost in costs)
    print(f"{family}: {whole:.2f} s, of it {start:.2f} s of start; ", end="", flush=True)
    subprocess.run([sys.executable, __file__, "--parts", metric, folder], check=True)


def flag(file: Path) -> str:
    """Return the option that takes a file."""
    return f"-{file.stem}" if len(file.stem) == 1 else f"--{file.stem}"


def print_parts(metric: str, folder: Path) -> None:
    """Print the parts of the time of scoring an archive within this process."""
    from hallujudge.judge_service.engine import Engine, ScoreSpec
    from hallujudge.judge_service.engine.registry import metric_entry
    from hallujudge.metrics import ItemResult
    from hallujudge.sdk import InputOptions, ScoreRun
    from hallujudge.sdk.runs.item_lines import ItemLines
    from hallujudge.sdk.runs.run_inputs import PreparedRun

    files = {file.stem: file for file in folder.glob("*.json")}
    inputs = InputOptions(own={name: path for name, path in files.items() if len(name) > 1})
    run = ScoreRun(metric, responses=files["r"], references=files.get("R"), inputs=inputs)
    started = time.process_time()
    items = list(PreparedRun.of(run).items)
    read = time.process_time()

    async def scored() -> list[ItemResult]:
        session = await Engine().open(ScoreSpec(metric=metric))
        batches = (items[n : n + BATCH] for n in range(0, len(items), BATCH))
        results = [result for batch in batches for result in await session.score(batch)]
        session.report()
        return results

    results = asyncio.run(scored())
    done = time.process_time()
    columns = metric_entry(metric).metric.columns
    ItemLines(columns, keep_text=True).of(zip(items, results, strict=True))
    written = time.process_time()
    print(
        f"reading {read - started:.2f}, hashing, scoring and the report {done - read:.2f}, "
        f"writing {written - done:.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
