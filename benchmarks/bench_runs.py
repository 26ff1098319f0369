"""Runs into a folder: what the journal costs, what processes gain, and runs that are killed.

    python benchmarks/bench_runs.py [--captions 100000] [--killed 1000000] [--kills 10]

Captions are the golden ones with new ids. Every run is a process of its own; runs that are compared
take turns. ``journal`` compares the processor's time of scoring into a folder with that of scoring
and writing the same lines without one. ``workers`` compares wall-clock times, which mean something
on idle cores only, and says how much of the work the first process does alone. ``killed`` kills a
run with SIGKILL at random places and resumes it; its cost is what every start costs (imports, the
hash of the archive, the references) and what was scored twice. ``ray`` kills one of two workers of
a run on a local Ray cluster when half of it is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import needs
from arguments import Arguments

FILES = ("items.jsonl", "report.json", "report.html")
SEED = 11


class Cost(NamedTuple):
    """What a process took."""

    wall: float
    processor: float
    peak: float
    code: int


def main() -> None:
    """Measure, and print the results."""
    parser = Arguments(__doc__)
    parser.size("--captions", 100_000, smoke=500, help="for journal and workers")
    parser.size("--killed", 1_000_000, smoke=5_000, help="for the run that is killed")
    parser.size("--kills", 10, smoke=1)
    parser.size("--rounds", 3, smoke=1)
    parser.add_argument("--only", choices=("journal", "workers", "killed", "ray"))
    parser.add_argument("--plain", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--journal", nargs=3, help=argparse.SUPPRESS)
    options = parser.given()
    if options.plain:
        plain(*map(Path, options.plain))
        return
    if options.journal:
        into_folder(*map(Path, options.journal))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.only in (None, "journal", "workers"):
            archive(folder, options.captions)
        if options.only in (None, "journal"):
            journal(folder, options.rounds)
        if options.only in (None, "workers"):
            workers(folder, options.rounds)
        if options.only in (None, "killed", "ray"):
            archive(folder, options.killed)
            whole = score(folder, "whole", workers=1)
        if options.only in (None, "killed"):
            killed(folder, options.killed, options.kills, whole)
        if options.only in (None, "ray"):
            on_ray(folder, options.killed, whole)


def archive(folder: Path, count: int) -> None:
    """Write golden captions with new ids, and objects for each."""
    from hallujudge.sdk.archives.records import read_records

    goldens = needs.goldens("chair")
    texts = [
        record.values["text"]
        for path in sorted(goldens.glob("pope_*.captions.json"))
        for record in read_records(path)
    ]
    objects = list(json.loads((goldens / "coco_reference_objects.json").read_text()).values())
    with (folder / "captions.jsonl").open("w") as captions:
        for number in range(count):
            row = {"image_id": number, "caption": texts[number % len(texts)]}
            captions.write(json.dumps(row) + "\n")
    references = {str(number): objects[number % len(objects)] for number in range(count)}
    (folder / "objects.json").write_text(json.dumps(references))


def journal(folder: Path, rounds: int) -> None:
    """Compare scoring into a folder with writing the same lines without a journal."""
    with_journal: list[float] = []
    without: list[float] = []
    for _ in range(rounds):
        given = (folder / "captions.jsonl", folder / "objects.json")
        for mode, costs in (("plain", without), ("journal", with_journal)):
            script = (sys.executable, __file__, f"--{mode}", *given, folder / mode)
            costs.append(measured(*script).processor)
    before, after = statistics.median(without), statistics.median(with_journal)
    print(
        f"journal: {before:.2f} s of the processor without, {after:.2f} s with a folder: ", end=""
    )
    print(f"{100 * (after / before - 1):+.1f} % (medians of {rounds})", flush=True)


def plain(captions: Path, objects: Path, out: Path) -> None:
    """Score and write the lines of items.jsonl, without a journal, a manifest or an fsync."""
    from hallujudge.metrics import ChairMetric
    from hallujudge.sdk import BatchResult, Client, ScoreRun
    from hallujudge.sdk.runs.item_lines import ItemLines
    from hallujudge.sdk.runs.item_lines import signed_lines as signed
    from hallujudge.sdk.runs.run_inputs import PreparedRun

    run = ScoreRun("chair", responses=captions, references=objects)
    with Client.embedded() as client, out.open("wb") as file:
        spec = run.spec()

        def write(batch: BatchResult) -> None:
            pairs = zip(batch.items, batch.results, strict=True)
            file.write(ItemLines(ChairMetric.columns, keep_text=True).of(pairs))

        report = client.score_items(spec, PreparedRun.of(run).items, on_batch=write)
    with out.open("rb") as lines, out.with_suffix(".signed").open("wb") as final:
        while piece := lines.read(1 << 20):
            final.write(signed(piece + lines.readline(), report.signature))


def into_folder(captions: Path, objects: Path, out: Path) -> None:
    """Score into a folder."""
    from hallujudge.sdk import Client

    with Client.embedded() as client:
        client.score("chair", responses=captions, references=objects, folder=out, overwrite=True)


def workers(folder: Path, rounds: int) -> None:
    """Compare one process with one for each core."""
    one, two = [], []
    for _ in range(rounds):
        one.append(score(folder, "one", workers=1, page=False))
        two.append(score(folder, "two", workers=2, page=False))
    assert contents(folder / "one", FILES[:2]) == contents(folder / "two", FILES[:2]), "bytes"
    ratio = statistics.median(a.wall / b.wall for a, b in zip(one, two, strict=True))
    for name, costs in (("1 process", one), ("2 processes", two)):
        wall = statistics.median(cost.wall for cost in costs)
        print(f"workers: {name}: {wall:.2f} s")
    # The time of the workers is not counted: they are children of the server they are forked from.
    alone, all_of_it = (statistics.median(c.processor for c in costs) for costs in (two, one))
    print(
        f"workers: of {all_of_it:.2f} s of the processor, the first process takes {alone:.2f} s; "
        "if all of that is serial, two are "
        f"{all_of_it / (alone + (all_of_it - alone) / 2):.2f} times as fast at most"
    )
    load = os.getloadavg()[0]
    print(f"workers: 2 processes are {ratio:.2f} times as fast, same bytes (load {load:.1f})")


def killed(folder: Path, count: int, kills: int, whole: Cost) -> None:
    """Kill a run at random moments, resume it, and compare it with an undisturbed one."""
    rng = random.Random(SEED)
    moments = sorted(rng.uniform(0.05, 0.95) for _ in range(kills))
    costs = []
    for moment in moments:
        wanted = int(moment * count)
        cost = score(
            folder, "parts", "--resume", workers=1, until=reaches(folder / "parts", wanted)
        )
        assert cost.code == -signal.SIGKILL, "the run ended before it was killed"
        costs.append(cost)
        print(
            f"killed: at item {items_of(folder / 'parts'):,} of {count:,}, peak {cost.peak:.0f} MB",
            flush=True,
        )
    costs.append(score(folder, "parts", "--resume", workers=1))
    same = contents(folder / "parts") == contents(folder / "whole")
    total = sum(cost.processor for cost in costs)
    peak = max(cost.peak for cost in costs)
    print(f"killed: the bytes are {'the same' if same else 'OTHER BYTES'} after {kills} kills")
    print(f"killed: peak {peak:.0f} MB, undisturbed {whole.peak:.0f} MB")
    print(
        f"killed: {total:.1f} s of the processor in {len(costs)} processes, undisturbed "
        f"{whole.processor:.1f} s"
    )


def on_ray(folder: Path, count: int, whole: Cost) -> None:
    """Kill a worker of a run on a local Ray cluster, and compare the files with ``whole``."""
    needs.packages("ray", "psutil", get=needs.EVERYTHING)
    killed: list[int] = []
    cost = score(
        folder,
        "ray",
        "--engine",
        "ray",
        workers=2,
        until=reaches(folder / "ray", count // 2),
        strike=lambda run: killed.append(kill_ray_worker(run)),
    )
    if cost.code:
        raise SystemExit(f"ray: the run ended with exit code {cost.code}")
    same = contents(folder / "ray") == contents(folder / "whole")
    print(f"ray: the bytes are {'the same' if same else 'OTHER BYTES'}; killed workers: {killed}")
    print(f"ray: {count:,} items in {cost.wall:.1f} s, peak {cost.peak:.0f} MB", end="")
    print(f"; one process without Ray {whole.wall:.1f} s, {whole.peak:.0f} MB")


def kill_ray_worker(run: int) -> int:
    """Kill one of the Ray workers of a run with SIGKILL, and return its process id."""
    import psutil

    below = psutil.Process(run).children(recursive=True)
    workers = [each.pid for each in below if each.name().startswith("ray::RayWorker")]
    os.kill(workers[0], signal.SIGKILL)
    return int(workers[0])


def reaches(out: Path, items: int) -> Callable[[], bool]:
    """Return a condition: the journal has grown to about so many items."""

    def reached() -> bool:
        try:
            return (out / "items.partial.jsonl").stat().st_size >= items * size
        except FileNotFoundError:
            return False

    size = bytes_of_an_item(out.parent / "whole")
    return reached


def bytes_of_an_item(whole: Path) -> float:
    """Return the mean size of a line of an undisturbed run before it has the signature."""
    report = json.loads((whole / "report.json").read_text())
    signed = len(json.dumps({"signature": report["signature"]}, separators=(",", ":"))) - 1
    items: int = report["coverage"]["items"]
    return (whole / "items.jsonl").stat().st_size / items - signed


def items_of(out: Path) -> int:
    """Return how many items a stopped run has kept."""
    from hallujudge.sdk.runs.journal import read_kept

    return read_kept(out / "journal.partial.bin", out / "items.partial.jsonl").items


def score(
    folder: Path,
    out: str,
    *more: str,
    workers: int,
    page: bool = True,
    until: Callable[[], bool] | None = None,
    strike: Callable[[int], None] | None = None,
) -> Cost:
    """Score the archive with the command line."""
    pages = ("-f", "html") if page else ()
    command = (Path(sys.executable).parent / "hallujudge", "score", "chair", "-q", *pages)
    given = ("-r", folder / "captions.jsonl", "-R", folder / "objects.json", "-o", folder / out)
    replaces = () if "--resume" in more else ("--overwrite",)
    flags = ("--workers", str(workers), *replaces, *more)
    return measured(*command, *given, *flags, until=until, strike=strike)


def kill(process: int) -> None:
    """Kill a process with SIGKILL."""
    os.kill(process, signal.SIGKILL)


def measured(
    *command: str | Path,
    until: Callable[[], bool] | None = None,
    strike: Callable[[int], None] | None = None,
) -> Cost:
    """Run a process, strike it once a condition holds, and return what it took.

    Args:
        command: The command line.
        until: The condition; None: the process is left alone.
        strike: What is done to the process; None: it is killed.
    """
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if until is not None:
        ended = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while not (due := until()) and os.waitid(os.P_PID, process.pid, ended) is None:
            time.sleep(0.005)
        if due:
            with suppress(ProcessLookupError):
                (strike or kill)(process.pid)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(
        time.monotonic() - started,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss / 1024,
        process.returncode,
    )


def contents(out: Path, names: tuple[str, ...] = FILES) -> list[bytes]:
    """Return the files of a run."""
    return [(out / name).read_bytes() for name in names]


if __name__ == "__main__":
    main()
