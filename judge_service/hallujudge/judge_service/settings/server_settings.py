"""Settings of a server: arguments override the environment, then the file, then defaults.

Only the modules of this package read the environment.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, structs

from ..errors import InvalidInputError, fault_of
from .connection import Connection, is_host, masked_repr, shown
from .judge_settings import CHOICES as JUDGE_CHOICES
from .judge_settings import JudgeKeys, JudgeSettings, load_judge_keys
from .judge_settings import setting as _setting

_LOG = logging.getLogger(__name__)
ENV_PREFIX = "HALLUJUDGE_"
# What Kubernetes tells pods of services whose names begin like ours, and what the suite reads.
_OTHERS = re.compile(
    r"\w+_(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_\w+)?)|HALLUJUDGE_(GOLDEN|EXAMPLES|FAULT|FUZZ)\w*"
)
# Keeps a mistaken path, such as a data file, from being read into memory.
_MAX_FILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Settings of the server."""

    host: str = _setting("127.0.0.1", "address to listen on; 0.0.0.0 for all")
    """The address to listen on."""
    port: int = _setting(50051, "port to listen on; 0 for a free one", high=65535)
    """The port to listen on; 0 for a free one."""
    http_host: str = _setting("127.0.0.1", "address of HTTP with JSON")
    """The address to listen on for HTTP with JSON."""
    http_port: int = _setting(
        -1, "port of HTTP with JSON; 0 for a free one, -1 for none", low=-1, high=65535
    )
    """The port of the same methods over HTTP with JSON; 0 for a free one, -1 for none."""
    host_names: str = _setting("", "names of this server in HTTP requests, with commas between")
    """Names by which HTTP requests without a key, and those for metrics, may call this server,
    with commas between; ``localhost`` and IP addresses always may."""
    max_message_bytes: int = _setting(16 << 20, "maximum size of a message, in bytes", low=1 << 16)
    """The maximum size of a received or sent message, in bytes."""
    max_memory_bytes: int = _setting(
        1 << 30, "memory for messages, results, graphs and models", low=1 << 24, high=2**53
    )
    """The memory that callers' messages, results, graphs and models may take, in bytes."""
    max_batch_items: int = _setting(10_000, "maximum number of items in a message", low=1)
    """The maximum number of items in a message."""
    max_running_calls: int = _setting(64, "maximum number of running calls", low=1, high=100_000)
    """The maximum number of running calls."""
    max_waiting_calls: int = _setting(256, "maximum number of waiting calls", high=100_000)
    """The maximum number of waiting calls; further ones are rejected with a time to retry."""
    max_connections: int = _setting(
        4096, "maximum number of connections; fewer if the limit of open files is low", low=1
    )
    """The maximum number of connections; the limit of open files may allow fewer."""
    max_connections_by_address: int = _setting(
        1024, "maximum number of connections of one address", low=1
    )
    """The maximum number of connections of one address; of one network (/64) if it is IPv6."""
    first_message_seconds: float = _setting(
        30.0, "time for the first message of a call", low=0.001, high=86_400
    )
    """How long the first message of a call may take, in seconds."""
    idle_seconds: float = _setting(
        600.0, "time after which an idle stream ends", low=0.001, high=2**21
    )
    """How long a stream may be without a message from its client, or one that it reads."""
    max_call_seconds: float = _setting(
        86_400.0, "maximum duration of a call", low=0.001, high=2**21
    )
    """How long a call may take, in seconds."""
    keepalive_seconds: float = _setting(
        60.0, "how often clients are asked whether they are there", low=0.1, high=2**21
    )
    """How often a client is asked whether it is there, and how long its answer may take."""
    max_unread_bytes: int = _setting(
        8 << 20, "results of a stream that its client has not read, in bytes", low=1 << 16
    )
    """The maximum size of a stream's results that its client has not read, in bytes."""
    max_report_groups: int = _setting(10_000, "maximum number of groups of a report", low=1)
    """The maximum number of groups of a report, over all its fields."""
    workers: int = _setting(
        -1, "worker processes; -1: one for each core, 1: none", low=-1, high=1024
    )
    """Processes that score what needs no model; -1: one for each core; 0 or 1: none."""
    max_work_seconds: float = _setting(
        300.0, "processor time of one message in a worker", low=0.01, high=86_400
    )
    """How much processor time one message or report may take in a worker, in seconds."""
    benchmarks: str = _setting("", "benchmarks of your own to serve: files or names, with commas")
    """Benchmarks from outside to serve: files, which are run, or installed ones, with commas."""
    tls_cert: str = _setting("", "PEM file of the server's certificate chain; empty: plain text")
    """PEM file of the server's certificate and its chain; empty for plain-text connections."""
    tls_key: str = _setting("", "PEM file of the certificate's private key")
    """PEM file of the certificate's private key."""
    tls_ca: str = _setting("", "PEM file of authorities; clients need a certificate of theirs")
    """PEM file of the authorities whose certificates clients must present, if any."""
    keys_file: str = _setting("", "file of API keys, from hallujudge keys; callers need one")
    """File of API keys, which ``hallujudge keys`` makes; empty for no keys."""
    spending_file: str = _setting("", "SQLite file of what keys spend; empty: in data_folder")
    """SQLite file of what keys spend on language models; by default in the data folder."""
    accept_new_state: int = _setting(
        0, "1: start although a database of the last start is lost", high=1
    )
    """Whether the server starts where its jobs or spending were deleted or emptied."""
    allow_anonymous: int = _setting(0, "1: serve callers that have no key or certificate", high=1)
    """Whether callers without key or certificate are served beyond loopback, or despite keys."""
    reflection: str = _setting("auto", "auto, on or off; auto: on loopback only")
    """Whether the server describes its methods; ``auto``: only on loopback."""
    offered_models: str = _setting("minilm,mpnet", "models that callers may name, with commas")
    """The models of matchers that callers may name, with commas between."""
    offered_vectors: str = _setting("en_core_web_lg", "spaCy models that callers may name")
    """The spaCy models that callers may name, with commas between."""
    offered_pipelines: str = _setting("en_core_web_sm", "spaCy pipelines that callers may name")
    """The spaCy pipelines of the extractor ``spacy`` that callers may name, with commas between."""
    offered_devices: str = _setting("cpu", "devices that callers may name, with commas")
    """The devices of matchers that callers may name, with commas between."""
    drain_seconds: float = _setting(20.0, "time for calls to finish after SIGTERM", high=3600)
    """How long running calls may take to finish after SIGTERM, in seconds."""
    jobs_database: str = _setting("", "file; empty: jobs.sqlite in data_folder; off: no jobs")
    """Where jobs are kept: a file, or ``off``. Default: ``data_folder``."""
    jobs_per_owner: int = _setting(100, "maximum number of jobs kept for one caller", low=1)
    """The maximum number of jobs that are kept for one caller, finished ones included."""
    job_max_items: int = _setting(1_000_000, "maximum number of items in a job", low=1)
    """The maximum number of items in a job."""
    job_max_bytes: int = _setting(
        256 << 20, "maximum size of a job's items, in bytes", low=1 << 16, high=2**40
    )
    """The maximum size of a job's items, in bytes."""
    job_retention_days: float = _setting(30.0, "days for which finished jobs are kept", high=36500)
    """How long a finished job is kept with its results, in days."""
    max_running_jobs: int = _setting(4, "maximum number of running jobs", low=1, high=1000)
    """The maximum number of jobs that run at the same time; further ones wait."""
    metrics_host: str = _setting("127.0.0.1", "address of the metrics page")
    """The address on which metrics and health are read over HTTP."""
    metrics_port: int = _setting(
        -1, "port of metrics and health; 0 for a free one, -1 for none", low=-1, high=65535
    )
    """The port of /metrics, /healthz and /readyz; 0 for a free one, -1 for none."""
    self_check_seconds: float = _setting(
        10.0, "seconds between scores of a small item; 0: none", high=3600
    )
    """Seconds between scores of a small item as a self check; 0 for none."""
    trace_endpoint: str = _setting("", "OTLP address that receives traces; empty: none")
    """The address of an OpenTelemetry collector, such as ``http://localhost:4317``."""
    trace_ratio: float = _setting(1.0, "share of calls that are traced", high=1)
    """The share of calls that are traced; a client's decision goes first."""
    evaluation_endpoint: str = _setting(
        "", "OTLP/HTTP address that receives evaluation events; empty: none"
    )
    """The address of a collector that takes OTLP over HTTP, such as ``http://localhost:4318``."""
    access_log: str = _setting("", "file of one JSON line a call; - for standard output")
    """File with one line of JSON for each call; ``-`` for standard output; empty for none."""
    access_log_errors: int = _setting(0, "1: error texts too, which may quote responses", high=1)
    """1: the access log has the texts of errors, which may quote what callers sent."""
    log_level: str = _setting("info", "debug, info, warning or error")
    """The lowest level of messages that are logged."""

    __repr__ = masked_repr

    @property
    def outside(self) -> tuple[str, ...]:
        """The files and names of ``benchmarks``."""
        return tuple(filter(None, (name.strip() for name in self.benchmarks.split(","))))

    @property
    def own_names(self) -> tuple[str, ...]:
        """The names of ``host_names``, and those that the server listens on."""
        listed = (name.strip() for name in self.host_names.split(","))
        return (*filter(None, listed), self.http_host, self.metrics_host)


_CHOICES: Mapping[str, tuple[str, ...]] = {
    "log_level": ("debug", "info", "warning", "error"),
    "reflection": ("auto", "on", "off"),
    **JUDGE_CHOICES,
}
# gRPC would take others for addresses of another kind, such as files of sockets.
_HOSTS = frozenset({"host", "http_host", "metrics_host"})
# Workers read untrusted input: they get no key, address or proxy of the server.
_WORKER_NAMES = frozenset({"PATH", "HOME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "NLTK_DATA"})
_WORKER_PREFIXES = ("LC_", "PYTHON", "COVERAGE_")
_TABLES = {"server": ServerSettings, "judges": JudgeSettings}


class Setting(Struct, frozen=True, kw_only=True):
    """The value of a setting and its source."""

    name: str
    value: object
    """The value, with the secrets in web addresses masked."""
    source: str
    """``argument``, ``environment NAME``, ``file PATH`` or ``default``."""
    help: str
    """The help text."""


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
        arguments: Values from the command line; a value of None means not given.
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
    server = [_resolve(entry, layers) for entry in fields(ServerSettings)]
    judges = [_resolve(entry, layers) for entry in fields(JudgeSettings)]
    of_judges = JudgeSettings(**{setting.name: setting.value for setting in judges})  # type: ignore[arg-type]  # checked one by one
    keys = load_judge_keys(environ, of_judges)
    return ResolvedSettings(
        server=ServerSettings(**{setting.name: setting.value for setting in server}),  # type: ignore[arg-type]  # checked one by one
        judges=of_judges,
        keys=keys,
        sources=(
            *(structs.replace(one, value=shown(one.value)) for one in (*server, *judges)),
            *_key_sources(keys),
        ),
    )


def _unknown_names(environ: Mapping[str, str]) -> set[str]:
    """Return the variables with our prefix that nothing reads, such as mistyped settings."""
    known = {"CONFIG", *(entry.name.upper() for entry in fields(Connection))}
    known |= {entry.name.upper() for table in _TABLES.values() for entry in fields(table)}
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
        known = [entry.name.upper() for table in _TABLES.values() for entry in fields(table)]
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
            help=f"key of the {name}, from {ENV_PREFIX}{name.upper()}_API_KEY or …_FILE",
        )
        for name in (entry.name for entry in fields(JudgeKeys))
    )


def settings_toml(resolved: ResolvedSettings) -> str:
    """Return the content of a file that ``--config`` reads, without API keys.

    It has every setting, with its help text and its source as a comment.
    """
    known = {setting.name: setting for setting in resolved.sources}
    lines = [f"# Keys are not settings of this file: set {ENV_PREFIX}LLM_API_KEY and the like."]
    for name, table in _TABLES.items():
        lines += ["", f"[{name}]"]
        for entry in fields(table):
            setting = known[entry.name]
            # Strings and numbers have the same syntax in JSON and TOML.
            value = json.dumps(setting.value, ensure_ascii=False)
            lines += [f"# {setting.help} ({setting.source})", f"{entry.name} = {value}"]
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
    file = resolved.server.spending_file
    return Path(file) if file else state_folder(resolved.judges) / "spending.sqlite"


class _FromEnvironment(NamedTuple):
    """The value of a variable."""

    variable: str
    value: str


def _resolve(entry: Any, layers: Mapping[str, Mapping[str, object]]) -> Setting:
    for source, values in layers.items():
        if entry.name in values:
            given = values[entry.name]
            if isinstance(given, _FromEnvironment):
                source, given = f"environment {given.variable}", given.value
            value = _checked(entry, given, source)
            return Setting(name=entry.name, value=value, source=source, help=entry.metadata["help"])
    return Setting(
        name=entry.name, value=entry.default, source="default", help=entry.metadata["help"]
    )


def _fault(error: Exception) -> str:
    return fault_of(error) if isinstance(error, UnicodeDecodeError) else str(error)


def _checked(entry: Any, value: object, source: str) -> object:
    kind = type(entry.default)
    found = f"{entry.name} (from {source}) is {shown(value)!r}"
    if kind is str:
        choices = _CHOICES.get(entry.name)
        if not isinstance(value, str) or (choices and value not in choices):
            raise InvalidInputError(f"{found}; give {' or '.join(choices) if choices else 'text'}")
        if "***" in value:
            raise InvalidInputError(f"{found}, with a masked password or key; write what is masked")
        if entry.name in _HOSTS and not is_host(value):
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
    low, high = entry.metadata["low"], entry.metadata["high"]
    if not low <= number <= high:
        raise InvalidInputError(f"{found}; give a number from {low} to {high}")
    return number


def _from_environ(environ: Mapping[str, str]) -> dict[str, object]:
    return {
        entry.name: _FromEnvironment(name, environ[name])
        for table in _TABLES.values()
        for entry in fields(table)
        # Our own variable overrides another tool's.
        for name in (entry.metadata["variable"], f"{ENV_PREFIX}{entry.name.upper()}")
        if name in environ
    }


def _from_file(file: str) -> dict[str, object]:
    # Imported here because few processes have a file of settings.
    import tomllib

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
        content = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise InvalidInputError(
            f"settings file {file!r} is not TOML: {_fault(err)}; correct it there"
        ) from err
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
