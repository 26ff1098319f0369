"""Settings: argument > environment > file > default, merged in one place.

No other module reads the environment.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ..errors import InvalidInputError
from .judges import CHOICES as JUDGE_CHOICES
from .judges import JudgeKeys, JudgeSettings, load_judge_keys

__all__ = [
    "ENV_PREFIX",
    "ResolvedSettings",
    "ServerSettings",
    "Setting",
    "child_environment",
    "load_settings",
    "settings_toml",
    "state_folder",
]

ENV_PREFIX = "HALLUJUDGE_"
_MAX_FILE_BYTES = 1 << 20


def _setting(default: Any, help: str, *, low: float = 0, high: float = 2**31 - 1) -> Any:
    """A field with its bounds and what it means."""
    return field(default=default, metadata={"help": help, "low": low, "high": high})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """How the server runs."""

    host: str = _setting("127.0.0.1", "address to listen at; 0.0.0.0 for all")
    """Address to listen at."""
    port: int = _setting(50051, "port to listen at; 0 takes a free one", high=65535)
    """Port to listen at; 0 takes a free one."""
    max_message_bytes: int = _setting(64 << 20, "largest message, in bytes", low=1 << 16)
    """Largest message that is taken or sent, in bytes."""
    max_batch_items: int = _setting(10_000, "most items in one message", low=1)
    """Most items in one message."""
    max_running_calls: int = _setting(64, "calls at work at once", low=1, high=100_000)
    """Calls at work at once."""
    max_waiting_calls: int = _setting(256, "calls that may wait for room", high=100_000)
    """Calls that may wait; one more is turned away with a time to come back."""
    drain_seconds: float = _setting(20.0, "time that calls get to finish on SIGTERM", high=3600)
    """Time that calls get to finish when the server is told to stop, in seconds."""
    log_level: str = _setting("info", "debug, info, warning or error")
    """Least urgent messages that are logged."""


_CHOICES: Mapping[str, tuple[str, ...]] = {
    "log_level": ("debug", "info", "warning", "error"),
    **JUDGE_CHOICES,
}
_TABLES = {"server": ServerSettings, "judges": JudgeSettings}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting's value and where it comes from."""

    name: str
    """Its name."""
    value: object
    """Its value."""
    source: str
    """argument, environment NAME, file PATH or default."""
    help: str
    """What it means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSettings:
    """Settings with their sources."""

    server: ServerSettings
    """How the server runs."""
    judges: JudgeSettings
    """Which judges there are."""
    keys: JudgeKeys
    """Their keys, masked wherever they are shown."""
    sources: tuple[Setting, ...]
    """Each with where it comes from."""


def load_settings(
    arguments: Mapping[str, object] | None = None,
    *,
    file: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> ResolvedSettings:
    """Merges settings of all sources.

    Args:
        arguments: Values from the command line; None means not given.
        file: A TOML file; the environment variable ``HALLUJUDGE_CONFIG`` where None.
        environ: The environment; the process's own where None.

    Raises:
        InvalidInputError: A value can't be used, a name is unknown, or the file can't be read.
    """
    environ = os.environ if environ is None else environ
    file = file or environ.get(f"{ENV_PREFIX}CONFIG") or None
    layers = {
        "argument": {k: v for k, v in (arguments or {}).items() if v is not None},
        "environment": _from_environ(environ),
        f"file {file}": _from_file(file) if file else {},
    }
    server = tuple(_resolve(entry, layers) for entry in fields(ServerSettings))
    judges = tuple(_resolve(entry, layers) for entry in fields(JudgeSettings))
    keys = load_judge_keys(environ)
    return ResolvedSettings(
        server=ServerSettings(**{setting.name: setting.value for setting in server}),  # type: ignore[arg-type]  # checked one by one
        judges=JudgeSettings(**{setting.name: setting.value for setting in judges}),  # type: ignore[arg-type]  # checked one by one
        keys=keys,
        sources=(*server, *judges, *_key_sources(keys)),
    )


def _key_sources(keys: JudgeKeys) -> tuple[Setting, ...]:
    """The keys as ``config show`` lists them: whether they are set, never what they are."""
    return tuple(
        Setting(
            name=f"{name}_api_key",
            value=getattr(keys, name),
            source="environment" if getattr(keys, name) else "default",
            help=f"key of the {name}, from {ENV_PREFIX}{name.upper()}_API_KEY or …_FILE",
        )
        for name in ("llm", "fallback")
    )


def settings_toml(resolved: ResolvedSettings) -> str:
    """Return the settings as a file that ``--config`` reads; keys are left out.

    Every setting is there, with its meaning and its source as a comment.
    """
    known = {setting.name: setting for setting in resolved.sources}
    lines = [f"# Keys are not settings of this file: set {ENV_PREFIX}LLM_API_KEY and the like."]
    for name, table in _TABLES.items():
        lines += ["", f"[{name}]"]
        for entry in fields(table):
            setting = known[entry.name]
            # JSON writes texts and numbers as TOML does.
            value = json.dumps(setting.value, ensure_ascii=False)
            lines += [f"# {setting.help} ({setting.source})", f"{entry.name} = {value}"]
    return "\n".join(lines) + "\n"


def child_environment() -> dict[str, str]:
    """The environment for programs that we start: everything but our own keys."""
    return {name: value for name, value in os.environ.items() if "API_KEY" not in name.upper()}


def state_folder(settings: JudgeSettings) -> Path:
    """Where logs of programs that we start go."""
    if settings.data_folder:
        return Path(settings.data_folder)
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "hallujudge"


def _resolve(entry: Any, layers: Mapping[str, Mapping[str, object]]) -> Setting:
    for source, values in layers.items():
        if entry.name in values:
            if source == "environment":
                source = f"environment {ENV_PREFIX}{entry.name.upper()}"
            value = _checked(entry, values[entry.name], source)
            return Setting(name=entry.name, value=value, source=source, help=entry.metadata["help"])
    return Setting(
        name=entry.name, value=entry.default, source="default", help=entry.metadata["help"]
    )


def _checked(entry: Any, value: object, source: str) -> object:
    kind = type(entry.default)
    place = f"{entry.name} (from {source})"
    if kind is str:
        choices = _CHOICES.get(entry.name)
        if not isinstance(value, str) or (choices and value not in choices):
            raise InvalidInputError(
                f"{place} is {value!r}; give {' or '.join(choices) if choices else 'a text'}"
            )
        return value
    if isinstance(value, bool):
        raise InvalidInputError(f"{place} is {value!r}; give a number")
    try:
        number = kind(value)
    except (TypeError, ValueError) as err:
        raise InvalidInputError(f"{place} is {value!r}; give a number") from err
    low, high = entry.metadata["low"], entry.metadata["high"]
    if not low <= number <= high:
        raise InvalidInputError(f"{place} is {value!r}; give a number from {low} to {high}")
    return number


def _from_environ(environ: Mapping[str, str]) -> dict[str, object]:
    return {
        entry.name: environ[name]
        for table in _TABLES.values()
        for entry in fields(table)
        if (name := f"{ENV_PREFIX}{entry.name.upper()}") in environ
    }


def _from_file(file: str) -> dict[str, object]:
    try:
        with Path(file).open("rb") as stream:
            text = stream.read(_MAX_FILE_BYTES + 1)
    except OSError as err:
        raise InvalidInputError(f"settings file {file!r}: {err.strerror or err}") from err
    if len(text) > _MAX_FILE_BYTES:
        raise InvalidInputError(f"settings file {file!r} is larger than {_MAX_FILE_BYTES} bytes")
    try:
        content = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise InvalidInputError(f"settings file {file!r} is not TOML: {err}") from err
    return _from_tables(content, file)


def _from_tables(content: Mapping[str, object], file: str) -> dict[str, object]:
    values: dict[str, object] = {}
    if unknown := sorted(set(content) - set(_TABLES)):
        raise InvalidInputError(
            f"settings file {file!r}: unknown {', '.join(unknown)}; put settings into the tables "
            f"{' and '.join(f'[{name}]' for name in _TABLES)}"
        )
    for name, table in content.items():
        known = [entry.name for entry in fields(_TABLES[name])]
        if not isinstance(table, dict):
            raise InvalidInputError(f"settings file {file!r}: {name} must be a table [{name}]")
        if unknown := sorted(set(table) - set(known)):
            raise InvalidInputError(
                f"settings file {file!r}: unknown {', '.join(unknown)} in [{name}]; "
                f"known: {', '.join(known)}"
            )
        values |= table
    return values
