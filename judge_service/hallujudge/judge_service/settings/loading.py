"""Loading of settings: arguments override the environment, then the file, then defaults.

Only the modules of this package read the environment.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from ..errors import InvalidInputError
from .connection import Connection, is_host, shown
from .definitions import ENV_PREFIX, Definition, Setting, from_names
from .judge_settings import JUDGES, JudgeKeys, JudgeSettings, judge_values, load_judge_keys
from .names import ALL, NO_KEYS, RENAMED
from .server_settings import SERVER, ServerSettings

_LOG = logging.getLogger(__name__)
# What Kubernetes tells pods of services whose names begin like ours, and what the suite reads.
_OTHERS = re.compile(
    r"\w+_(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_\w+)?)|HALLUJUDGE_(GOLDEN|EXAMPLES|FAULT|FUZZ)\w*"
)
# gRPC would take others for addresses of another kind, such as files of sockets.
_HOSTS = frozenset({"host", "http.host", "metrics.host"})


class ResolvedSettings(Struct, frozen=True, kw_only=True):
    """The merged settings and their sources."""

    server: ServerSettings
    """The settings of the server."""
    judges: JudgeSettings
    """The settings of the judges."""
    keys: JudgeKeys
    """The judges' API keys, masked wherever they are shown."""
    sources: tuple[Setting, ...]
    """Every setting with its source."""


def load_settings(
    arguments: Mapping[str, object] | None = None,
    *,
    file: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> ResolvedSettings:
    """Return the settings merged from all sources.

    Args:
        arguments: Values by name, such as ``llm.url``; a value of None means not given.
        file: A TOML file; by default the file that ``HALLUJUDGE_CONFIG`` names, if any.
        environ: The environment; by default that of this process.

    Raises:
        InvalidInputError: A value is invalid, a name is unknown, or the file cannot be read.
    """
    environ = os.environ if environ is None else environ
    _warn_of_unknown(tuple(sorted(_unknown_names(environ))))
    file = file or environ.get(f"{ENV_PREFIX}CONFIG") or None
    layers = {
        "argument": {k: v for k, v in (arguments or {}).items() if v is not None},
        "environment": _from_environ(environ),
        f"file {file}": _from_file(file) if file else {},
    }
    _check_names(layers["argument"])
    found = [_resolve(each, layers) for each in ALL.values()]
    values = {setting.name: setting.value for setting in found}
    judges = from_names(JudgeSettings, {each.name: values[each.name] for each in JUDGES})
    keys = load_judge_keys(environ, judges)
    return ResolvedSettings(
        server=from_names(ServerSettings, {each.name: values[each.name] for each in SERVER}),
        judges=judges,
        keys=keys,
        sources=(*(replace(one, value=shown(one.value)) for one in found), *_key_sources(keys)),
    )


def chosen_judges(settings: JudgeSettings) -> dict[str, object]:
    """Return the settings of the judges that are not at their defaults, by their options' names."""
    values = judge_values(settings)
    return {
        each.option: values[each.name] for each in JUDGES if values[each.name] != each.field.default
    }


def _check_names(given: Mapping[str, object]) -> None:
    """Refuse arguments that are not settings, and name what is meant."""
    for name in given:
        if name in RENAMED:
            new = RENAMED[name].name
            raise InvalidInputError(f"{name} is {new} now; write {{{new!r}: …}}")
        if name.endswith("api_key"):
            raise InvalidInputError(f"{name}: {NO_KEYS}")
        if name not in ALL:
            # A file has the tables `server` and `judges` for settings that have no group.
            inner = name.removeprefix("server.").removeprefix("judges.")
            similar = get_close_matches(inner, ALL, 1)
            raise InvalidInputError(
                f"{name!r} is not a setting; "
                + (f"did you mean {similar[0]!r}?" if similar else "see 'hallujudge config show'")
            )


def _unknown_names(environ: Mapping[str, str]) -> set[str]:
    """Return the variables with our prefix that nothing reads, such as mistyped settings."""
    known = {"CONFIG", *(entry.name.upper() for entry in fields(Connection))}
    known |= {each.option.upper() for each in ALL.values()}
    for key in ("API_KEY", *(f"{entry.name.upper()}_API_KEY" for entry in fields(JudgeKeys))):
        known |= {key, f"{key}_FILE"}
    ours = {name for name in environ if name.startswith(ENV_PREFIX)}
    return {name for name in ours if not _OTHERS.fullmatch(name)} - {
        f"{ENV_PREFIX}{name}" for name in known
    }


@cache
def _warn_of_unknown(names: Sequence[str]) -> None:
    """Name variables that have no meaning, once in a process."""
    for name in names:
        known = [each.option.upper() for each in ALL.values()]
        similar = get_close_matches(name.removeprefix(ENV_PREFIX), known, 1)
        meant = f"did you mean {ENV_PREFIX}{similar[0]}? " if similar else ""
        _LOG.warning(
            "the environment variable %s is not a setting and is ignored; %s'hallujudge config "
            "show' lists all settings",
            name,
            meant,
        )


def _key_sources(keys: JudgeKeys) -> tuple[Setting, ...]:
    """Return the keys as ``config show`` lists them, with their values masked."""
    return tuple(
        Setting(
            name=f"{name}_api_key",
            value=getattr(keys, name),
            source="environment" if getattr(keys, name) else "default",
            variable=f"{ENV_PREFIX}{name.upper()}_API_KEY",
            help=f"key of the {name}, from {ENV_PREFIX}{name.upper()}_API_KEY or …_FILE",
        )
        for name in (entry.name for entry in fields(JudgeKeys))
    )


def state_folder(settings: JudgeSettings) -> Path:
    """Return the folder for jobs, verdicts, and the logs of child processes."""
    if settings.data_folder:
        return Path(settings.data_folder)
    if base := os.environ.get("XDG_STATE_HOME"):
        return Path(base) / "hallujudge"
    try:
        return Path.home() / ".local" / "state" / "hallujudge"
    except RuntimeError:
        # In a container the user may have no home.
        return Path("/var/lib/hallujudge")


def spending_path(resolved: ResolvedSettings) -> Path:
    """Return the file of what keys spend."""
    file = resolved.server.access.spending_file
    return Path(file) if file else state_folder(resolved.judges) / "spending.sqlite"


class _FromEnvironment(NamedTuple):
    """The value of a variable."""

    variable: str
    value: str


def _resolve(each: Definition, layers: Mapping[str, Mapping[str, object]]) -> Setting:
    value: object = each.field.default
    found = "default"
    for source, values in layers.items():
        if each.name in values:
            given, found = values[each.name], source
            if isinstance(given, _FromEnvironment):
                found, given = f"environment {given.variable}", given.value
            value = _checked(each, given, found)
            break
    return Setting(
        name=each.name,
        value=value,
        source=found,
        variable=each.variable,
        help=each.field.metadata["help"],
    )


def _checked(each: Definition, value: object, source: str) -> object:
    kind: Any = type(each.field.default)
    limits = each.field.metadata
    found = f"{each.name} (from {source}) is {shown(value)!r}"
    if kind is str:
        choices = limits["choices"]
        if not isinstance(value, str) or (choices and value not in choices):
            raise InvalidInputError(f"{found}; give {' or '.join(choices) if choices else 'text'}")
        if "***" in value:
            raise InvalidInputError(f"{found}, with a masked password or key; write what is masked")
        if each.name in _HOSTS and not is_host(value):
            raise InvalidInputError(
                f"{found}; give an IP address or the name of a host, without a port"
            )
        return value
    # bool is a subclass of int, and TOML's true would be read as 1.
    if isinstance(value, bool):
        raise InvalidInputError(f"{found}; give a number")
    try:
        number = kind(value)
    except (TypeError, ValueError, OverflowError) as err:
        raise InvalidInputError(f"{found}; give a number") from err
    if kind is int and isinstance(value, float) and number != value:
        raise InvalidInputError(f"{found}; give a whole number")
    low, high = limits["low"], limits["high"]
    if not low <= number <= high:
        raise InvalidInputError(f"{found}; give a number from {low} to {high}")
    return number


def _from_environ(environ: Mapping[str, str]) -> dict[str, object]:
    return {
        each.name: _FromEnvironment(name, environ[name])
        for each in ALL.values()
        # Our own variable overrides another tool's.
        for name in (each.field.metadata["variable"], each.variable)
        if name in environ
    }


def _from_file(file: str) -> dict[str, object]:
    # Few processes have a file of settings, and others start sooner without a parser of TOML.
    from .settings_file import read_settings

    return read_settings(file)
