"""The command line of benchmarks, whose sizes are usual ones, or tiny ones with ``--smoke``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


class Arguments(argparse.ArgumentParser):
    """Parses a benchmark's arguments.

    Args:
        doc: The script's docstring; its first paragraph describes the script.
    """

    def __init__(self, doc: str | None) -> None:
        super().__init__(description=(doc or "").partition("\n\n")[0])
        self._sizes: dict[str, tuple[object, object]] = {}
        self.add_argument(
            "--smoke", action="store_true", help="tiny sizes: seconds, and figures of no use"
        )

    def size(
        self,
        flag: str,
        usual: float | Sequence[float] | None,
        *,
        smoke: float | Sequence[float],
        help: str = "",  # argparse's own name
    ) -> None:
        """Add an option for how much is measured.

        Args:
            flag: The option.
            usual: Its usual value; None for all that there is.
            smoke: Its value with ``--smoke``, unless it is given too.
            help: What it is.
        """
        told = "all" if usual is None else usual
        if isinstance(smoke, Sequence):
            added = self.add_argument(flag, type=type(smoke[0]), nargs="+", help=f"{help} ({told})")
        else:
            kind = type(smoke if usual is None else usual)
            added = self.add_argument(flag, type=kind, help=f"{help} ({told})")
        self._sizes[added.dest] = (usual, smoke)

    def given(self) -> argparse.Namespace:
        """Return the arguments of the command line."""
        given = self.parse_args()
        for name, (usual, smoke) in self._sizes.items():
            if getattr(given, name) is None:
                setattr(given, name, smoke if given.smoke else usual)
        return given
