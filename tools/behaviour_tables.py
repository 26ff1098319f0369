"""Check the tables of docs/reference/what-other-tools-do.md against the real packages.

    .venv/bin/python tools/behaviour_tables.py [--write] [--minutes 10] [TABLE ...]

Installs the pinned packages in environments of their own in a temporary folder, one after another
(the largest has about 2 GB), asks each by a script of tools/behaviour, and removes it. Says on
stderr what it is about, prints a line for each table, and fails if a cell differs from the page or
a column takes longer than --minutes. --write writes the cells and the day into the page. Where pip
has no CPU build of torch, set PIP_FIND_LINKS as CI does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import ndiff
from pathlib import Path

from setup_env import environment as for_uv

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "what-other-tools-do.md"
TORCH = "torch==2.13.0+cpu"
PYAV = "av==18.1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Packages that are installed beside each other, and the columns that they fill."""

    columns: Mapping[str, str]
    """Name that the script of the table knows -> heading."""
    alone: Sequence[str] = ()
    """Packages that are installed without their dependencies."""
    packages: Sequence[str] = ()
    """Packages that are installed with their dependencies."""

    @property
    def is_ours(self) -> bool:
        """Whether the columns are our own, so that this Python fills them."""
        return not self.alone and not self.packages


TABLES: dict[str, Sequence[Environment]] = {
    "parsers": (
        Environment(columns={"published": "POPE's script", "opera": "OPERA's script"}),
        Environment(
            alone=("lmms-eval==0.7.3", "ms-vlmeval==0.0.20", "evalscope==1.14.1"),
            columns={
                "lmms-eval": "lmms-eval 0.7.3",
                "ms-vlmeval": "ms-vlmeval 0.0.20",
                "evalscope": "evalscope 1.14.1",
            },
        ),
        Environment(
            alone=("nvidia-vlmeval==26.3",), columns={"nvidia-vlmeval": "nvidia-vlmeval 26.3"}
        ),
        Environment(columns={"first-word": "ours, `first-word`", "strict": "ours, `strict`"}),
    ),
    "decoders": (
        Environment(
            packages=(
                PYAV,
                "opencv-python-headless==5.0.0.93",
                "decord==0.6.0",
                "torchcodec==0.13.0",
                "transformers==5.24.0",
                TORCH,
                "pillow==13.0.0",
            ),
            columns={
                "pyav": "PyAV 18.1.0",
                "opencv": "OpenCV 5.0.0",
                "decord": "decord 0.6.0",
                "torchcodec": "torchcodec 0.13.0",
                "transformers": "transformers 5.24.0",
            },
        ),
        Environment(columns={"hallujudge": "ours, `uniform:4`"}),
    ),
    "trainers": (
        Environment(
            packages=(
                "trl==1.16.0",
                TORCH,
                *(
                    "tensordict",
                    "omegaconf",
                    "hydra-core",
                    "ray",
                    "orjson",
                    "aiohttp",
                    "modelscope",
                ),
                *("codetiming", "peft", "json_repair", "dacite", "pillow"),
            ),
            alone=("verl==0.9.1", "ms-swift==4.6.0", "openrlhf==0.11.2"),
            columns={
                "trl": "TRL 1.16.0",
                "verl": "verl 0.9.1",
                "ms-swift": "ms-swift 4.6.0",
                "openrlhf": "OpenRLHF 0.11.2",
            },
        ),
    ),
}
HEADS = {"parsers": "answer", "decoders": "clip", "trainers": "reward function gives"}


def installed(environment: Environment, folder: Path) -> Path:
    """Install an environment's packages and return its Python."""
    if environment.is_ours:
        return Path(sys.executable)
    # `make setup` installs uv beside this Python.
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder], check=True)
    python = folder / "bin" / "python"
    install: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", python]
    if environment.packages:
        subprocess.run([*install, *environment.packages], env=for_uv(), check=True)
    if environment.alone:
        subprocess.run([*install, "--no-deps", *environment.alone], env=for_uv(), check=True)
    return python


def with_ffmpeg(folder: Path) -> dict[str, str]:
    """Return variables by which torchcodec finds the FFmpeg that PyAV brings."""
    links = folder / "ffmpeg"
    for library in folder.glob("lib/python*/site-packages/av.libs/*.so*"):
        links.mkdir(exist_ok=True)
        plain = re.sub(r"-[0-9a-f]{8}(\.so\.\d+).*", r"\1", library.name)
        for link in {links / library.name, links / plain}:
            if not link.is_symlink():
                link.symlink_to(library)
    return {**os.environ, "LD_LIBRARY_PATH": str(links)} if links.is_dir() else {**os.environ}


def asked(table: str, environment: Environment, minutes: float) -> dict[str, dict[str, str]]:
    """Return heading -> row -> cell of an environment's columns."""
    script = ROOT / "tools" / "behaviour" / f"{table}.py"
    found = {}
    with tempfile.TemporaryDirectory() as place:
        folder, began = Path(place) / "environment", time.monotonic()
        python = installed(environment, folder)
        progress(f"{table}: installed after {time.monotonic() - began:.0f} s")
        for name, heading in environment.columns.items():
            began = time.monotonic()
            variables = {**with_ffmpeg(folder), "TMPDIR": place}
            answer = said([python, script, name], variables, Path(place), 60 * minutes)
            found[heading] = json.loads(answer)
            progress(f"{table}: {heading}, {time.monotonic() - began:.0f} s")
    return found


def said(command: Sequence[str | Path], env: Mapping[str, str], folder: Path, most: float) -> str:
    """Return what a command prints within some seconds; the processes that it started end with it.

    It writes into files: a process that outlives it, as trainers' packages start some, would keep a
    pipe open for ever.
    """
    out, err = folder / "stdout", folder / "stderr"
    with out.open("w") as printed, err.open("w") as told:
        process = subprocess.Popen(
            command, env=env, stdout=printed, stderr=told, start_new_session=True
        )
        try:
            status = f"status {process.wait(most)}"
        except subprocess.TimeoutExpired:
            status = f"no end within {most:.0f} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if status != "status 0":
        last = err.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise SystemExit(f"{' '.join(map(str, command[1:]))}: {status}\n{last}")
    return out.read_text(encoding="utf-8")


def progress(line: str) -> None:
    """Say on stderr what is done."""
    print(line, file=sys.stderr, flush=True)


def text_of(table: str, columns: Mapping[str, Mapping[str, str]]) -> str:
    """Return a table in Markdown."""
    rows = list(next(iter(columns.values())))
    names = [f"`{row}`" if row else "(empty)" for row in rows] if table == "parsers" else rows
    lines = [[HEADS[table], *columns], ["---"] * (1 + len(columns))]
    for name, row in zip(names, rows, strict=True):
        lines.append([name, *(cells[row] for cells in columns.values())])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def part_of(table: str) -> re.Pattern[str]:
    """Return the pattern of a table in the page: its day, and its lines."""
    return re.compile(rf"(<!-- table: {table} -->\n\n)Made on (.*?)\.\n\n((?:\|.*\n)*)\n?")


def differing(table: str, made: str, page: str) -> list[str]:
    """Return the lines of a table that differ from the page's."""
    match = part_of(table).search(page)
    before = match[3].splitlines() if match else []
    return [line[2:] for line in ndiff(before, made.splitlines()) if line[0] == "+"]


def main() -> int:
    """Check or write tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], help="all by default")
    parser.add_argument("--write", action="store_true", help="write the page")
    parser.add_argument("--minutes", type=float, default=10.0, help="what a column may take")
    given = parser.parse_args()
    status = 0
    for table in given.tables or TABLES:
        columns: dict[str, dict[str, str]] = {}
        for environment in TABLES[table]:
            columns |= asked(table, environment, given.minutes)
        made, page = text_of(table, columns), PAGE.read_text(encoding="utf-8")
        if given.write:
            day = f"{datetime.now(UTC):%d %B %Y}".lstrip("0")
            written = part_of(table).sub(lambda m: f"{m[1]}Made on {day}.\n\n{made}\n", page)  # noqa: B023
            PAGE.write_text(written, encoding="utf-8")
            continue
        lines = differing(table, made, page)
        print(f"{'changed' if lines else 'ok':8} {table}: {', '.join(columns)}")
        for line in lines:
            print(f"         {line}")
        status = status or bool(lines)
    return int(status)


if __name__ == "__main__":
    raise SystemExit(main())
