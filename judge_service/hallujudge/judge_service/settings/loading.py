"""Loading of settings: arguments override the environment, then the file, then defaults.

Only the modules of this package read the environment.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from hallujudge.metrics.errors import choose_from, meant

from ..errors import InvalidInputError, fault_of
from . import ENV_PREFIX, Definition, Setting, from_names
from .connection import Connection, is_host, shown
from .judge_settings import JUDGES, JudgeKeys, JudgeSettings, judge_values, load_judge_keys
from .server_settings import SERVER, ServerSettings

ALL: Mapping[str, Definition] = {each.name: each for each in (*SERVER, *JUDGES)}
"""All settings by name, such as ``llm.url``."""
RENAMED: Mapping[str, Definition] = {
    each.option: each for each in ALL.values() if each.option != each.name
}
"""Settings by the names of their options, such as ``llm_url``, where these are others."""
NO_KEYS = f"keys are not settings; set {ENV_PREFIX}LLM_API_KEY and the like"
"""The error for an API key that is given as a setting."""
_LOG = logging.getLogger(__name__)
# What Kubernetes tells pods of services whose names begin like ours, and what the suite reads.
_OTHERS = re.compile(
    r"\w+_(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_\w+)?)|HALLUJUDGE_(GOLDEN|EXAMPLES|FAULT|FUZZ)\w*"
)
# gRPC would take others for addresses of another kind, such as files of sockets.
_HOSTS = frozenset({"host", "http.host", "metrics.host"})
# Keeps a mistaken path, such as a data file, from being read into memory.
_MAX_FILE_BYTES = 1 << 20
_TABLES: Mapping[str, Mapping[str, Definition]] = {
    table: {each.field.name: each for each in ALL.values() if each.table == table}
    for table in dict.fromkeys(each.table for each in ALL.values())
}
# Workers read untrusted input: they get no key, address or proxy of the server.
_WORKER_NAMES = frozenset({"PATH", "HOME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "NLTK_DATA"})
_WORKER_PREFIXES = ("LC_", "PYTHON", "COVERAGE_")


def names_of(options: Mapping[str, object]) -> dict[str, object]:
    """Return values by the names of their settings.

    Args:
        options: Values by the names of options, which manifests have too, such as ``llm_url``.
    """
    return {RENAMED[key].name if key in RENAMED else key: options[key] for key in options}


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
    # The order is that of precedence: the first layer that has a setting gives its value.
    layers = {
        # None is an option that was not given.
        "argument": {k: v for k, v in (arguments or {}).items() if v is not None},
        "environment": _from_environ(environ),
        f"file {file}": read_settings(file) if file else {},
    }
    # Only arguments: a file's names are checked with their tables, and unknown variables are warned
    # of.
    _check_names(layers["argument"])
    found = [_resolve(each, layers) for each in ALL.values()]
    values = {setting.name: setting.value for setting in found}
    judges = from_names(JudgeSettings, {each.name: values[each.name] for each in JUDGES})
    # After the settings, because the addresses decide which provider's keys are read.
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
            # A wrong table makes names less alike than a wrong letter.
            near = meant(inner, ALL)
            raise InvalidInputError(
                f"{name!r} is not a setting; "
                + (f"did you mean {near!r}?" if near else "see 'hallujudge config show'")
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


# Settings are loaded more than once in a process, and one warning is enough.
@cache
def _warn_of_unknown(names: Sequence[str]) -> None:
    """Name variables that have no meaning, once in a process."""
    for name in names:
        known = [each.option.upper() for each in ALL.values()]
        near = meant(name.removeprefix(ENV_PREFIX), known)
        _LOG.warning(
            "the environment variable %s is not a setting and is ignored; %s'hallujudge config "
            "show' lists all settings",
            name,
            f"did you mean {ENV_PREFIX}{near}? " if near else "",
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
    # Where the XDG Base Directory Specification has state that should outlive a restart.
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
            # The variable is named as it is set: some settings have two, one of them another
            # tool's.
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
        values = limits["choices"]
        if not isinstance(value, str) or (values and value not in values):
            given = meant(value, values)
            near = f"did you mean {given!r}? Give" if given else "give"
            raise InvalidInputError(f"{found}; {near} {' or '.join(values) or 'text'}")
        # Copied from `hallujudge config show`, which masks secrets.
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
        # Variables are texts, so that numbers come as text, too.
        number = kind(value)
    except (TypeError, ValueError, OverflowError) as err:
        raise InvalidInputError(f"{found}; give a number") from err
    # int() cuts 1.5 to 1 without an error.
    if kind is int and isinstance(value, float) and number != value:
        raise InvalidInputError(f"{found}; give a whole number")
    low, high = limits["low"], limits["high"]
    # NaN fails every comparison, and is refused by this form of it.
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


def read_settings(file: str) -> dict[str, object]:
    """Return the settings of a file by name, unchecked.

    Args:
        file: A TOML file.

    Raises:
        InvalidInputError: It can't be read, or names what is not a setting.
    """
    # Few processes have a file of settings, and others start sooner without a parser of TOML.
    import tomllib

    try:
        with Path(file).open("rb") as stream:
            # One byte more than allowed tells a larger file without reading all of it.
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
    # Before the general refusal, which could not say where the setting belongs.
    _refuse_misplaced(outside, file)
    if unknown := sorted(outside):
        # The nearest setting too, whose table the user may not know: `config show` names no table.
        if not meant(unknown[0], _TABLES) and (near := meant(unknown[0], ALL)):
            place, key = ALL[near].table, ALL[near].field.name
            raise InvalidInputError(
                f"settings file {file!r}: unknown {', '.join(unknown)}; did you mean {key!r}? "
                f"Write [{place}] {key} = …"
            )
        raise InvalidInputError(
            f"settings file {file!r}: unknown {', '.join(unknown)}; put settings into tables: "
            + choose_from(unknown[0], _TABLES)
        )
    values: dict[str, object] = {}
    for name, table in content.items():
        known = _TABLES[name]
        if not isinstance(table, dict):
            raise InvalidInputError(f"settings file {file!r}: {name} must be a table [{name}]")
        unknown = sorted(set(table) - set(known))
        _refuse_misplaced(unknown, file)
        # `[llm]` within `[judges]` is an easy mistake, as both are about judges.
        if inner := [each for each in unknown if each in _TABLES]:
            raise InvalidInputError(
                f"settings file {file!r}: [{inner[0]}] is a table of its own, outside [{name}]"
            )
        if unknown:
            raise InvalidInputError(
                f"settings file {file!r}: unknown {', '.join(unknown)} in [{name}]; "
                + choose_from(unknown[0], known)
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
    # Files of settings are shared and committed; keys must not be in them.
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


def silence_grpc() -> None:
    """Keep gRPC's core from writing to standard error, unless the environment says otherwise.

    It writes a line for each failed TLS handshake and each header that it leaves out, past the
    server's log: anyone who can connect could fill a disk.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def child_environment() -> dict[str, str]:
    """Return the environment for child processes: that of this process without API keys."""
    return {name: value for name, value in os.environ.items() if "API_KEY" not in name.upper()}


def worker_environment() -> dict[str, str]:
    """Return the environment for worker processes: what Python and its libraries need."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _WORKER_NAMES or name.startswith(_WORKER_PREFIXES)
    }
    # Each worker has one core; threads would be copied in part when it is forked.
    return {**kept, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
