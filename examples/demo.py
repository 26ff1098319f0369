"""Starts a server, scores the example captions over gRPC, and stops the server again.

`make demo` runs this. It needs nothing but the installed package:

    python examples/demo.py --out demo-out
"""

from __future__ import annotations

import argparse
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hallujudge.sdk import write_example

ANNOUNCEMENT = "hallujudge serves at "
START_SECONDS = 60.0
STOP_SECONDS = 30.0
UNSCORED = 3


class DemoError(Exception):
    """Something that the demo can't do without went wrong."""


def command() -> str:
    """The `hallujudge` command of this interpreter's own environment."""
    found = shutil.which("hallujudge", path=str(Path(sys.executable).parent))
    if found is None:
        raise DemoError(
            f"no `hallujudge` command beside {sys.executable}; run `make demo`, or install this "
            "checkout with: pip install '.[server]'"
        )
    return found


def lines_of(stream: IO[str]) -> queue.Queue[str | None]:
    """Lines of a stream as they come, then None; read by a thread, so that it never fills up."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        with stream:
            for line in stream:
                lines.put(line.rstrip("\r\n"))
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines


def announced_address(lines: queue.Queue[str | None], seconds: float) -> str:
    """Waits for the line that names the server's address."""
    deadline = time.monotonic() + seconds
    try:
        while (line := lines.get(timeout=max(deadline - time.monotonic(), 0.0))) is not None:
            if line.startswith(ANNOUNCEMENT):
                return line.removeprefix(ANNOUNCEMENT)
    except queue.Empty:
        raise DemoError(f"the server did not start within {seconds:g} seconds") from None
    raise DemoError("the server ended before it took calls")


@contextmanager
def server() -> Iterator[str]:
    """Start a server on a free port, yield its address, and always stop it."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(  # noqa: S603 - our own command, no shell
            [command(), "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=log, text=True
        )
        try:
            assert process.stdout is not None
            yield announced_address(lines_of(process.stdout), START_SECONDS)
        except DemoError as err:
            stop(process)
            log.seek(0)
            raise DemoError(f"{err}\n{log.read()[-4000:]}".rstrip()) from err
        finally:
            stop(process)


def stop(process: subprocess.Popen[str]) -> None:
    """Asks a process to end, waits, and ends it if it does not."""
    process.terminate()
    try:
        process.wait(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def score(address: str, out: Path) -> int:
    """Scores the examples at a server; gives back the command's exit code."""
    write_example("chair", out)
    arguments = [
        *("score", "chair"),
        *("--responses", str(out / "captions.jsonl")),
        *("--references", str(out / "objects.json")),
        *("--server", address),
        *("--out", str(out)),
        *("--format", "html"),
    ]
    done = subprocess.run([command(), *arguments], check=False)  # noqa: S603 - as above
    return done.returncode


def tell(out: Path) -> None:
    """Says what the results are."""
    for name, what in {
        "report.json": "the scores with intervals, coverage and signature",
        "items.jsonl": "one line for each caption, with the evidence for its score",
        "report.html": "all of it on one page, with the hallucinated words marked",
    }.items():
        print(f"  {name}  {what}")
    print(f"\nOpen in a browser: {(out / 'report.html').as_uri()}")


def run(out: Path) -> int:
    """Runs the demo; gives back its exit code."""
    with server() as address:
        print(f"A server listens at {address}.\n", flush=True)
        code = score(address, out)
    if code in {0, UNSCORED}:
        tell(out)
    else:
        print(f"\nScoring ended with exit code {code}.", file=sys.stderr)
    return code


def main(argv: list[str] | None = None) -> int:
    """Reads the command line and runs the demo."""
    parser = argparse.ArgumentParser(description="Score the example captions over gRPC.")
    parser.add_argument(
        "--out", type=Path, default=Path("demo-out"), help="folder for the results (%(default)s)"
    )
    out: Path = parser.parse_args(argv).out.absolute()
    # A plain SIGTERM would leave the server behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return run(out)
    except DemoError as err:
        print(f"error: {err}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
