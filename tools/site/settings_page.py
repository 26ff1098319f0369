"""Generate the tables of settings from their definitions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hallujudge.judge_service.settings import Setting
from hallujudge.judge_service.settings.judge_settings import JUDGES
from hallujudge.judge_service.settings.loading import load_settings

INTRODUCTION = """# Settings

This page is generated from the program itself; `hallujudge config show` prints all settings with
their current values.

A setting is an option of a command, else its environment variable, else a line of the TOML file
that `--config` or `HALLUJUDGE_CONFIG` names, else its default. In the file, `llm.url` is the line
`url = …` in the table `[llm]`. A setting without a group is in the table `[server]` or `[judges]`.
Keys of language models come from the environment or from files only.
"""
_HEAD = """
| setting | environment variable | default | meaning |
|---|---|---|---|
"""


def settings_page() -> str:
    """Return the page: a table of the server's settings, and one of the judges' and their keys."""
    settings = load_settings(environ={}).sources
    judges = {each.name for each in JUDGES}
    first = next(place for place, each in enumerate(settings) if each.name in judges)
    server, others = settings[:first], settings[first:]
    return f"{INTRODUCTION}\n## Server\n{_rows(server)}\n## Judges\n{_rows(others)}"


def _rows(settings: Iterable[Setting]) -> str:
    return _HEAD + "".join(
        f"| `{each.name}` | `{each.variable}` | `{each.value!r}` | {_escape(each.help)} |\n"
        for each in settings
    )


def _escape(text: str) -> str:
    return re.sub(r"([|<>*_])", r"\\\1", text)
