"""``python -m hallujudge.judge_service`` and ``hallujudge-server``: the server alone."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Sequence

from .errors import HallujudgeError
from .settings.server import load_settings
from .version import __version__

__all__ = ["main", "run_server"]


def run_server(arguments: dict[str, object] | None = None, file: str | None = None) -> None:
    """Serves until told to stop.

    Raises:
        HallujudgeError: The settings can't be used or the address can't be listened at.
    """
    resolved = load_settings(arguments, file=file)
    logging.basicConfig(
        level=resolved.server.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    from .server.server import serve

    asyncio.run(serve(resolved, _announce))


def _announce(address: str) -> None:
    print(f"hallujudge serves at {address}", flush=True)  # noqa: T201 - scripts read this line


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``hallujudge-server``.

    Args:
        arguments: Command line; None: that of this process.

    Returns:
        The exit code.
    """
    given = _parser().parse_args(arguments)
    try:
        run_server(file=given.config)
    except HallujudgeError as err:
        print(f"error: {err}", file=sys.stderr)  # noqa: T201 - a command line's own voice
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
