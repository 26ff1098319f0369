"""The commands ``hallujudge-server`` and ``python -m hallujudge.judge_service``."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence

from .errors import HallujudgeError
from .installation import __version__
from .settings.server_settings import load_settings, silence_grpc


def run_server(arguments: dict[str, object] | None = None, file: str | None = None) -> None:
    """Run a server until SIGTERM or SIGINT.

    Args:
        arguments: Settings from the command line, by name.
        file: A TOML file of settings.

    Raises:
        HallujudgeError: A setting is invalid, or the server cannot listen on the address.
    """
    resolved = load_settings(arguments, file=file)
    silence_grpc()
    from .server.logs import fill_standard_files, say, set_up_logging

    fill_standard_files()
    from .server.server import serve

    set_up_logging(resolved.server.log_level)
    # Scripts parse this line.
    asyncio.run(serve(resolved, lambda address: say(f"hallujudge serves at {address}")))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``hallujudge-server``.

    Args:
        arguments: The command line; by default that of this process.

    Returns:
        The exit code.
    """
    given = _parser().parse_args(arguments)
    try:
        run_server(file=given.config)
    except HallujudgeError as err:
        print(f"error: {err}", file=sys.stderr)  # noqa: T201 - the output of a command
        return 2
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
