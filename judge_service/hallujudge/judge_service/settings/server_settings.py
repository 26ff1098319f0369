"""Settings of a server, by group."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import NO_PREFIX, definitions, setting
from .connection import listed, masked_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """HTTP with JSON."""

    # Loopback, because callers there need no key: others are let in on purpose only.
    host: str = setting("127.0.0.1", "address of HTTP with JSON")
    """The address to listen on for HTTP with JSON."""
    port: int = setting(
        -1, "port of HTTP with JSON; 0 for a free one, -1 for none", low=-1, high=65535
    )
    """The port of the same methods over HTTP with JSON; 0 for a free one, -1 for none."""
    host_names: str = setting(
        "", "names of this server in HTTP requests, with commas between", option="host_names"
    )
    """Names by which HTTP requests without a key, and those for metrics, may call this server,
    with commas between; ``localhost`` and IP addresses always may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """Encryption of connections, and certificates of callers."""

    cert: str = setting("", "PEM file of the server's certificate; empty: plain text")
    """PEM file of the server's certificate and its chain; empty for plain-text connections."""
    key: str = setting("", "PEM file of the certificate's private key")
    """PEM file of the certificate's private key."""
    ca: str = setting("", "PEM file of authorities that certify clients; empty: none")
    """PEM file of the authorities whose certificates clients must present, if any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSettings:
    """Who may call."""

    keys_file: str = setting("", "file of API keys, from hallujudge keys; callers need one")
    """File of API keys, which ``hallujudge keys`` makes; empty for no keys."""
    spending_file: str = setting("", "SQLite file of what keys spend; empty: in data_folder")
    """SQLite file of what keys spend on language models; by default in the data folder."""
    allow_anonymous: int = setting(0, "1: serve callers that have no key or certificate", high=1)
    """Whether callers without key or certificate are served beyond loopback, or despite keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """What calls and connections may take."""

    # 64 running calls of this size are the 1 GiB of `max_memory_bytes`: gRPC holds them before they
    # are counted.
    max_message_bytes: int = setting(16 << 20, "maximum size of a message, in bytes", low=1 << 16)
    """The maximum size of a received or sent message, in bytes."""
    max_memory_bytes: int = setting(
        1 << 30, "memory for messages, results, graphs and models", low=1 << 24, high=2**53
    )
    """The memory that callers' messages, results, graphs and models may take, in bytes."""
    max_batch_items: int = setting(10_000, "maximum number of items in a message", low=1)
    """The maximum number of items in a message."""
    max_running_calls: int = setting(64, "maximum number of running calls", low=1, high=100_000)
    """The maximum number of running calls."""
    max_waiting_calls: int = setting(256, "maximum number of waiting calls", high=100_000)
    """The maximum number of waiting calls; further ones are rejected with a time to retry."""
    max_connections: int = setting(
        4096, "maximum number of connections; fewer if the limit of open files is low", low=1
    )
    """The maximum number of connections; the limit of open files may allow fewer."""
    max_connections_by_address: int = setting(
        1024, "maximum number of connections of one address", low=1
    )
    """The maximum number of connections of one address; of one network (/64) if it is IPv6."""
    # A client that reads nothing would have all its results kept; two of them took 1.3 GB.
    max_unread_bytes: int = setting(
        8 << 20, "results of a stream that its client has not read, in bytes", low=1 << 16
    )
    """The maximum size of a stream's results that its client has not read, in bytes."""
    max_report_groups: int = setting(10_000, "maximum number of groups of a report", low=1)
    """The maximum number of groups of a report, over all its fields."""
    max_work_seconds: float = setting(
        300.0, "processor time of one message in a worker", low=0.01, high=86_400
    )
    """How much processor time one message or report may take in a worker, in seconds."""
    max_call_seconds: float = setting(86_400.0, "maximum duration of a call", low=0.001, high=2**21)
    """How long a call may take, in seconds."""
    # A connection that says nothing holds a place and a file, which others need.
    first_message_seconds: float = setting(
        30.0, "time for the first message of a call", low=0.001, high=86_400
    )
    """How long the first message of a call may take, in seconds."""
    idle_seconds: float = setting(
        600.0, "time after which an idle stream ends", low=0.001, high=2**21
    )
    """How long a stream may be without a message from its client, or one that it reads."""
    # gRPC takes milliseconds in 32 bits, and 2**21 seconds are the last power of two that fits.
    keepalive_seconds: float = setting(
        60.0, "how often clients are asked whether they are there", low=0.1, high=2**21
    )
    """How often a client is asked whether it is there, and how long its answer may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedSettings:
    """Models and devices that callers may name."""

    # Loading a model takes memory and time, so that a caller may name only what the operator has
    # allowed.
    models: str = setting("minilm,mpnet", "models that callers may name, with commas")
    """The models of matchers that callers may name, with commas between."""
    vectors: str = setting("en_core_web_lg", "spaCy models that callers may name")
    """The spaCy models that callers may name, with commas between."""
    pipelines: str = setting("en_core_web_sm", "spaCy pipelines that callers may name")
    """The spaCy pipelines of the extractor ``spacy`` that callers may name, with commas between."""
    devices: str = setting("cpu", "devices that callers may name, with commas")
    """The devices of matchers that callers may name, with commas between."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JobSettings:
    """Where jobs are kept, and their limits."""

    database: str = setting("", "file; empty: jobs.sqlite in data_folder; off: no jobs")
    """Where jobs are kept: a file, or ``off``. Default: ``data_folder``."""
    per_owner: int = setting(100, "maximum number of jobs kept for one caller", low=1)
    """The maximum number of jobs that are kept for one caller, finished ones included."""
    max_items: int = setting(
        1_000_000, "maximum number of items in a job", low=1, option="job_max_items"
    )
    """The maximum number of items in a job."""
    max_bytes: int = setting(
        256 << 20,
        "maximum size of a job's items, in bytes",
        low=1 << 16,
        high=2**40,
        option="job_max_bytes",
    )
    """The maximum size of a job's items, in bytes."""
    retention_days: float = setting(
        30.0, "days for which finished jobs are kept", high=36500, option="job_retention_days"
    )
    """How long a finished job is kept with its results, in days."""
    max_running: int = setting(
        4, "maximum number of running jobs", low=1, high=1000, option="max_running_jobs"
    )
    """The maximum number of jobs that run at the same time; further ones wait."""

    __repr__ = masked_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    """The page of metrics and health."""

    host: str = setting("127.0.0.1", "address of the metrics page")
    """The address on which metrics and health are read over HTTP."""
    port: int = setting(
        -1, "port of metrics and health; 0 for a free one, -1 for none", low=-1, high=65535
    )
    """The port of /metrics, /healthz and /readyz; 0 for a free one, -1 for none."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TraceSettings:
    """Traces of calls."""

    endpoint: str = setting("", "OTLP address that receives traces; empty: none")
    """The address of an OpenTelemetry collector, such as ``http://localhost:4317``."""
    ratio: float = setting(1.0, "share of calls that are traced", high=1)
    """The share of calls that are traced; a client's decision goes first."""

    __repr__ = masked_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """What is logged."""

    level: str = setting(
        "info", "debug, info, warning or error", choices=("debug", "info", "warning", "error")
    )
    """The lowest level of messages that are logged."""
    access: str = setting(
        "", "file of one JSON line a call; - for standard output", option="access_log"
    )
    """File with one line of JSON for each call; ``-`` for standard output; empty for none."""
    access_errors: int = setting(
        0, "1: error texts too, which may quote responses", high=1, option="access_log_errors"
    )
    """1: the access log has the texts of errors, which may quote what callers sent."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ServerSettings:
    """Settings of the server."""

    host: str = setting("127.0.0.1", "address to listen on; 0.0.0.0 for all")
    """The address to listen on."""
    port: int = setting(50051, "port to listen on; 0 for a free one", high=65535)
    """The port to listen on; 0 for a free one."""
    workers: int = setting(
        -1, "worker processes; -1: one for each core, 1: none", low=-1, high=1024
    )
    """Processes that score what needs no model; -1: one for each core; 0 or 1: none."""
    benchmarks: str = setting("", "benchmarks of your own to serve: files or names, with commas")
    """Benchmarks from outside to serve: files, which are run, or installed ones, with commas."""
    accept_new_state: int = setting(
        0, "1: start although a database of the last start is lost", high=1
    )
    """Whether the server starts where its jobs or spending were deleted or emptied."""
    # Beyond loopback, strangers could read which methods there are.
    reflection: str = setting(
        "auto", "auto, on or off; auto: on loopback only", choices=("auto", "on", "off")
    )
    """Whether the server describes its methods; ``auto``: only on loopback."""
    # Shorter than what deploy/ gives a server between SIGTERM and SIGKILL, which is 40 and 45
    # seconds.
    drain_seconds: float = setting(20.0, "time for calls to finish after SIGTERM", high=3600)
    """How long running calls may take to finish after SIGTERM, in seconds."""
    self_check_seconds: float = setting(
        10.0, "seconds between scores of a small item; 0: none", high=3600
    )
    """Seconds between scores of a small item as a self check; 0 for none."""
    evaluation_endpoint: str = setting(
        "", "OTLP/HTTP address that receives evaluation events; empty: none"
    )
    """The address of a collector that takes OTLP over HTTP, such as ``http://localhost:4318``."""
    http: HttpSettings = field(default_factory=HttpSettings)
    """HTTP with JSON."""
    tls: TlsSettings = field(default_factory=TlsSettings)
    """Encryption of connections, and certificates of callers."""
    access: AccessSettings = field(default_factory=AccessSettings, metadata=NO_PREFIX)
    """Who may call."""
    limits: LimitSettings = field(default_factory=LimitSettings, metadata=NO_PREFIX)
    """What calls and connections may take."""
    offered: OfferedSettings = field(default_factory=OfferedSettings)
    """Models and devices that callers may name."""
    jobs: JobSettings = field(default_factory=JobSettings)
    """Where jobs are kept, and their limits."""
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    """The page of metrics and health."""
    trace: TraceSettings = field(default_factory=TraceSettings)
    """Traces of calls."""
    log: LogSettings = field(default_factory=LogSettings)
    """What is logged."""

    __repr__ = masked_repr

    @property
    def outside(self) -> tuple[str, ...]:
        """The files and names of ``benchmarks``."""
        return listed(self.benchmarks)

    @property
    def own_names(self) -> tuple[str, ...]:
        """The names of ``http.host_names``, and those that the server listens on."""
        return (*listed(self.http.host_names), self.http.host, self.metrics.host)


SERVER = tuple(definitions(ServerSettings, "server"))
"""The settings of the server."""
