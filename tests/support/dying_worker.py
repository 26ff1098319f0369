"""Worker processes that end when they score an item with the id ``fatal``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hallujudge.judge_service.engine import ScoringSession
from hallujudge.judge_service.forked_workers import main
from hallujudge.metrics import Item, ItemResult

__all__ = ["die_of_item", "dying_python"]


def dying_python(folder: Path) -> str:
    """Return a program that starts such workers in place of Python."""
    program = folder / "python"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} "$@"\n')
    program.chmod(0o700)
    return str(program)


def die_of_item(fatal: str) -> None:
    """Let this process end when it scores an item with an id."""
    evaluate = ScoringSession.evaluate

    async def dying(self: ScoringSession, items: Sequence[Item]) -> list[ItemResult]:
        if any(item.id == fatal for item in items):
            os._exit(1)
        return await evaluate(self, items)

    ScoringSession.evaluate = dying  # type: ignore[method-assign]  # the point of the program


if __name__ == "__main__":
    die_of_item("fatal")
    main(int(sys.argv[-1]))
