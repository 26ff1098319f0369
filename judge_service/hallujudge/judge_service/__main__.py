"""``python -m hallujudge.judge_service`` and ``hallujudge-server``: the server alone."""

from __future__ import annotations

import asyncio
import logging
import sys

from .errors import HallujudgeError
from .settings.server import load_settings

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


def main() -> int:
    """Serves; settings come from the environment and the file that HALLUJUDGE_CONFIG names."""
    try:
        run_server()
    except HallujudgeError as err:
        print(f"error: {err}", file=sys.stderr)  # noqa: T201 - a command line's own voice
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
