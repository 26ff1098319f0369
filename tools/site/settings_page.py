"""Generate the table of settings from the output of ``hallujudge config show``."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator

INTRODUCTION = """# Settings

This page is generated from the program itself: `hallujudge config show` prints the same if nothing
is set.

A setting is an option of a command, else the environment variable `HALLUJUDGE_` followed by its
name in capitals, else a line of the TOML file that `--config` or `HALLUJUDGE_CONFIG` names, else
its default. Keys of language models come from the environment or from files only.

| setting | default | meaning |
|---|---|---|
"""
_LINE = re.compile(r"^(\w+) = (.*?)\s+# [^:]*: (.*)$")


def settings_page() -> str:
    """Return the page: one row for each setting."""
    from hallujudge.sdk.cli import main

    with _clean_environment(), contextlib.redirect_stdout(io.StringIO()) as printed:
        main(["config", "show"])
    rows = [
        match.groups() for line in printed.getvalue().splitlines() if (match := _LINE.match(line))
    ]
    if not rows:
        raise ValueError(f"hallujudge config show prints no settings:\n{printed.getvalue()}")
    return INTRODUCTION + "".join(
        f"| `{name}` | `{default}` | {_escape(meaning)} |\n" for name, default, meaning in rows
    )


def _escape(text: str) -> str:
    return re.sub(r"([|<>*_])", r"\\\1", text)


@contextlib.contextmanager
def _clean_environment() -> Iterator[None]:
    """Hide this machine's own settings while the page is made."""
    hidden = {
        name: os.environ.pop(name) for name in list(os.environ) if name.startswith("HALLUJUDGE_")
    }
    try:
        yield
    finally:
        os.environ.update(hidden)
