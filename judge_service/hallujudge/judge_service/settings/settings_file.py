"""Files of settings in TOML: a table for each group."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import InvalidInputError, fault_of
from .definitions import ENV_PREFIX, Definition, Setting
from .names import ALL, NO_KEYS, RENAMED

# Keeps a mistaken path, such as a data file, from being read into memory.
_MAX_FILE_BYTES = 1 << 20
_TABLES: Mapping[str, Mapping[str, Definition]] = {
    table: {each.field.name: each for each in ALL.values() if each.table == table}
    for table in dict.fromkeys(each.table for each in ALL.values())
}


def read_settings(file: str) -> dict[str, object]:
    """Return the settings of a file by name, unchecked.

    Args:
        file: A TOML file.

    Raises:
        InvalidInputError: It can't be read, or names what is not a setting.
    """
    try:
        with Path(file).open("rb") as stream:
            text = stream.read(_MAX_FILE_BYTES + 1)
    except OSError as err:
        raise InvalidInputError(
            f"settings file {file!r}: {err.strerror or err}; check the path"
        ) from err
    if len(text) > _MAX_FILE_BYTES:
        raise InvalidInputError(
            f"settings file {file!r} is larger than {_MAX_FILE_BYTES} bytes; give a TOML file of "
            "settings"
        )
    try:
        # Some editors write a byte order mark.
        content = tomllib.loads(text.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        fault = fault_of(err) if isinstance(err, UnicodeDecodeError) else str(err)
        raise InvalidInputError(
            f"settings file {file!r} is not TOML: {fault}; correct it there"
        ) from err
    return _from_tables(content, file)


def _from_tables(content: Mapping[str, object], file: str) -> dict[str, object]:
    outside = [name for name in content if name not in _TABLES]
    _refuse_misplaced(outside, file)
    if unknown := sorted(outside):
        raise InvalidInputError(
            f"settings file {file!r}: unknown {', '.join(unknown)}; put settings into the tables "
            f"{', '.join(f'[{name}]' for name in _TABLES)}"
        )
    values: dict[str, object] = {}
    for name, table in content.items():
        known = _TABLES[name]
        if not isinstance(table, dict):
            raise InvalidInputError(f"settings file {file!r}: {name} must be a table [{name}]")
        unknown = sorted(set(table) - set(known))
        _refuse_misplaced(unknown, file)
        if inner := [each for each in unknown if each in _TABLES]:
            raise InvalidInputError(
                f"settings file {file!r}: [{inner[0]}] is a table of its own, outside [{name}]"
            )
        if unknown:
            raise InvalidInputError(
                f"settings file {file!r}: unknown {', '.join(unknown)} in [{name}]; "
                f"known: {', '.join(known)}"
            )
        values |= {known[key].name: value for key, value in table.items()}
    return values


def _refuse_misplaced(unknown: Sequence[str], file: str) -> None:
    """Refuse settings that are outside their tables, which are named, and keys."""
    # Names that settings had before they were in groups; the options still have them.
    if found := [RENAMED[name] for name in unknown if name in RENAMED]:
        renamed = ", ".join(f"{each.option} is {each.name} now" for each in found)
        tables = ", ".join(f"[{each.table}] {each.field.name} = …" for each in found)
        raise InvalidInputError(f"settings file {file!r}: {renamed}; write {tables}")
    if found := [ALL[name] for name in unknown if name in ALL]:
        tables = ", ".join(f"[{each.table}] {each.field.name} = …" for each in found)
        raise InvalidInputError(f"settings file {file!r}: settings are in tables; write {tables}")
    if any(name.endswith("api_key") for name in unknown):
        raise InvalidInputError(f"settings file {file!r}: {NO_KEYS}")


def settings_toml(settings: Sequence[Setting]) -> str:
    """Return the content of a file that ``--config`` reads, without API keys.

    It has every setting, with its help text and its source as a comment.

    Args:
        settings: All settings; others, such as keys, are left out.
    """
    known = {setting.name: setting for setting in settings}
    lines = [f"# Keys are not settings of this file: set {ENV_PREFIX}LLM_API_KEY and the like."]
    for name, table in _TABLES.items():
        lines += ["", f"[{name}]"]
        for key, each in table.items():
            setting = known[each.name]
            # Strings and numbers have the same syntax in JSON and TOML.
            value = json.dumps(setting.value, ensure_ascii=False)
            lines += [f"# {setting.help} ({setting.source})", f"{key} = {value}"]
    return "\n".join(lines) + "\n"
