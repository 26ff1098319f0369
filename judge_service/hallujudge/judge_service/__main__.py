"""The commands ``hallujudge-server`` and ``python -m hallujudge.judge_service``."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import threading
from collections.abc import Sequence
from functools import partial

from . import __version__
from .command_process import address_space, memory_problem, run_command
from .errors import HallujudgeError, InvalidInputError
from .server.logs import say, set_up_logging
from .settings.loading import load_settings, silence_grpc

# Threads, gRPC and OpenBLAS reserve addresses: 684 MiB are too few, 977 MiB suffice.
_LEAST_MEMORY = 960 << 20


def run_server(arguments: dict[str, object] | None = None, file: str | None = None) -> None:
    """Run a server until SIGTERM or SIGINT.

    Args:
        arguments: Settings from the command line, by name.
        file: A TOML file of settings.

    Raises:
        HallujudgeError: A setting is invalid, or the server cannot listen on the address.
    """
    _end_by_signals()
    resolved = load_settings(arguments, file=file)
    _check_memory()
    silence_grpc()
    from .server.server import serve

    set_up_logging(resolved.server.log.level)
    # Scripts parse this line.
    asyncio.run(serve(resolved, lambda address: say(f"hallujudge serves at {address}")))


def _end_by_signals() -> None:
    """Let signals end the process at once until the server listens to them itself."""
    if threading.current_thread() is not threading.main_thread():
        return
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _check_memory() -> None:
    """Refuse an address space in which threads and libraries of the server can't start.

    Raises:
        InvalidInputError: It is too small.
    """
    most = address_space()
    if most is not None and most < _LEAST_MEMORY:
        raise InvalidInputError(
            f"ulimit -v lets this process use {most >> 20} MiB of addresses, and the server needs "
            f"{_LEAST_MEMORY >> 20} MiB to start; raise it, or limit the memory by a control group"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``hallujudge-server``.

    Args:
        arguments: The command line; by default that of this process.

    Returns:
        The exit code.
    """
    command = partial(_served, arguments)
    return run_command(command) if arguments is None else command()


def _served(arguments: Sequence[str] | None) -> int:
    given = _parser().parse_args(arguments)
    try:
        run_server(file=given.config)
    except HallujudgeError as err:
        print(f"error: {err}", file=sys.stderr)  # noqa: T201 - the output of a command
        return 2
    # Threads and forks that lack memory raise the latter two.
    except (MemoryError, RuntimeError, OSError) as err:
        if (problem := memory_problem(err)) is None:
            raise
        print(f"error: {problem}", file=sys.stderr)  # noqa: T201 - the output of a command
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hallujudge-server",
        description="Serve scores over gRPC until SIGTERM or Ctrl-C.",
        epilog="Each setting is an environment variable (HALLUJUDGE_PORT=50051) or a line of the "
        "settings file. `hallujudge config show` lists them; `hallujudge serve` takes them as "
        "options.",
    )
    parser.add_argument(
        "--config", metavar="FILE", help="TOML file of settings (or set HALLUJUDGE_CONFIG)"
    )
    parser.add_argument("--version", action="version", version=f"hallujudge {__version__}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
