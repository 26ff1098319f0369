"""The command line, ``hallujudge``.

Exit codes: 0 ok, 1 failed, 2 usage or bad input, 3 finished with unscored items.
"""

from .entry import command_tree, main

__all__ = ["command_tree", "main"]
