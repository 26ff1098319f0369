"""CHAIR end to end: embedded, gRPC and the command line, and peak memory for two sizes.

    python benchmarks/bench_chair.py [--captions 20000] [--small 10000] [--large 1000000]

The captions are those of the golden data (HALLUJUDGE_GOLDENS or ../shared/goldens), or generated if
it is missing. Every measured run is a separate process, so that no run profits from another's
caches or memory. Runs of both kinds alternate, and ratios are between neighbours.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import needs
from arguments import Arguments

BIN = Path(sys.executable).parent
_WORDS = (
    "a the man dog cat table is on near two people riding bench with and small large frisbee "
    "in front of standing next to street scene there are several cars visible background"
)


def main() -> None:
    """Measure, and print the results."""
    parser = Arguments(__doc__)
    parser.size("--captions", 20_000, smoke=200, help="for the throughput runs")
    parser.size("--small", 10_000, smoke=100, help="smaller archive, for memory")
    parser.size("--large", 1_000_000, smoke=300, help="larger archive, for memory")
    parser.size("--rounds", 3, smoke=1)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.given()
    needs.packages("grpc_health", "grpc_reflection")
    if options.child:
        child(*options.child)
        return
    with tempfile.TemporaryDirectory() as folder:
        throughput(Path(folder), options.captions, options.rounds)
        command(Path(folder), options.captions, options.rounds)
        memory(Path(folder), options.small, options.large)


def captions() -> list[str]:
    """Return the captions to repeat."""
    goldens = needs.goldens_or_none("chair")
    if goldens:
        from hallujudge.sdk.archives.records import read_records

        archive = goldens / "pope_brief_description_llava.captions.json"
        return [str(record.values["text"]) for record in read_records(archive)]
    rng = random.Random(0)
    words = _WORDS.split()
    return [" ".join(rng.choices(words, k=85)) + "." for _ in range(2000)]


def write_archive(folder: Path, count: int) -> Path:
    """Write an archive of many models' captions of the same images, with unique ids."""
    texts = captions()
    path = folder / f"captions-{count}.jsonl"
    with path.open("w", encoding="utf-8") as stream:
        for n in range(count):
            row = {"image_id": f"{n % len(texts)}-{n}", "caption": texts[n % len(texts)]}
            row["objects"] = ["person", "dog", "dining table"]  # type: ignore[assignment]  # a JSON row
            stream.write(json.dumps(row) + "\n")
    return path


def child(archive: str, server: str, out: str) -> None:
    """Score in a separate process; print seconds and peak memory."""
    from hallujudge.sdk import Client

    connected = Client(server) if server != "-" else Client.embedded()
    with connected as client, Path(out).open("w", encoding="utf-8") as items:
        client.score("chair", responses={"0": "A dog."}, references={"0": ["dog"]})
        start = time.perf_counter()
        report = client.score(
            "chair",
            responses=archive,
            keep_items=False,
            on_batch=lambda batch: items.writelines(
                json.dumps(result.to_json()) + "\n" for result in batch.results
            ),
        )
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak_mib": peak, "n": report.coverage.items}))


def run_child(archive: Path, server: str, folder: Path) -> dict[str, float]:
    """Start a run, and return its measurements."""
    command = [sys.executable, __file__, "--child", str(archive), server, str(folder / "items")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


class Server:
    """A server process."""

    def __enter__(self) -> Server:
        command = [str(BIN / "hallujudge"), "serve", "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split()[-1]
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=30)

    def peak_mib(self) -> float:
        """Return the largest resident memory so far, in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024


def throughput(folder: Path, count: int, rounds: int) -> None:
    """Measure embedded and gRPC scoring in turn."""
    archive = write_archive(folder, count)
    embedded, remote = [], []
    with Server() as server:
        for _ in range(rounds):
            embedded.append(count / run_child(archive, "-", folder)["seconds"])
            remote.append(count / run_child(archive, server.address, folder)["seconds"])
    ratios = [there / here for here, there in zip(embedded, remote, strict=True)]
    print(f"{count} captions, read, scored and written, median of {rounds}")
    print(f"  embedded        {median(embedded):10.0f} captions/s")
    print(f"  gRPC stream     {median(remote):10.0f} captions/s")
    print(f"  gRPC / embedded {median(ratios):10.2f}")


def command(folder: Path, count: int, rounds: int) -> None:
    """Measure ``hallujudge score chair`` in one process, without its start."""
    rates = []
    for _ in range(rounds):
        start, whole = (_command_seconds(folder, number) for number in (1, count))
        rates.append((count - 1) / (whole - start))
    print(f"  whole command   {median(rates):10.0f} captions/s of processor time, one process")


def _command_seconds(folder: Path, count: int) -> float:
    """Return the processor seconds of the command."""
    archive = write_archive(folder, count)
    out = str(folder / "results")
    score = [
        str(BIN / "hallujudge"),
        "score",
        "chair",
        "-r",
        str(archive),
        "-o",
        out,
        "-q",
        "--overwrite",
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*score, "--workers", "1"], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def memory(folder: Path, small: int, large: int) -> None:
    """Measure the peak memory of client and server for two sizes."""
    for count in (small, large):
        archive = write_archive(folder, count)
        here = run_child(archive, "-", folder)
        with Server() as server:
            there = run_child(archive, server.address, folder)
            served = server.peak_mib()
        archive.unlink()
        print(
            f"{count:>8} captions: embedded {here['peak_mib']:.0f} MiB, "
            f"client {there['peak_mib']:.0f} MiB, server {served:.0f} MiB"
        )


def median(numbers: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(numbers)


if __name__ == "__main__":
    main()
