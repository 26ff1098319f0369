"""``hallujudge serve``, ``doctor`` and ``config``."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from .app import ExitCode, app, config_app
from .connection import ApiKeyFile, TlsCa, TlsCert, TlsKey, connection_of
from .groups import grouped
from .judging import JudgeOptions, LlmModel, LlmUrl, llm_options
from .panels import access_option, examples, judge_option, output_option, server_option

__all__: list[str] = []


class ConfigFormat(enum.StrEnum):
    """Output formats of ``config show``."""

    TEXT = "text"
    TOML = "toml"


@app.command(epilog=examples("hallujudge serve --port 50051"))
@grouped
def serve(
    *,
    host: Annotated[str | None, server_option(help="Address to listen on.")] = None,
    port: Annotated[int | None, server_option(help="Port; 0 for a free one.")] = None,
    http_host: Annotated[str | None, server_option(help="Address of HTTP with JSON.")] = None,
    http_port: Annotated[int | None, server_option(help="Port of HTTP with JSON.")] = None,
    max_message_bytes: Annotated[int | None, server_option(help="Most bytes of a message.")] = None,
    max_batch_items: Annotated[int | None, server_option(help="Most items of a message.")] = None,
    max_running_calls: Annotated[
        int | None, server_option(help="Most calls that run at once.")
    ] = None,
    max_waiting_calls: Annotated[int | None, server_option(help="Most calls that wait.")] = None,
    workers: Annotated[
        int | None, server_option(help="Worker processes; -1 for one a core, 1 for none.")
    ] = None,
    max_memory_bytes: Annotated[
        int | None, server_option(help="Most memory for messages, results, graphs and models.")
    ] = None,
    tls_cert: Annotated[
        str | None, access_option(metavar="FILE", help="Certificate of the server (PEM).")
    ] = None,
    tls_key: Annotated[
        str | None, access_option(metavar="FILE", help="Private key of --tls-cert.")
    ] = None,
    tls_ca: Annotated[
        str | None,
        access_option(metavar="FILE", help="Authority of certificates that clients must show."),
    ] = None,
    keys_file: Annotated[
        str | None, access_option(metavar="FILE", help="File of API keys; see hallujudge keys.")
    ] = None,
    allow_anonymous: Annotated[
        bool, access_option("--allow-anonymous", help="Serve callers without a key.")
    ] = False,
    reflection: Annotated[
        str | None, access_option(help="Self-description over gRPC: auto, on or off.")
    ] = None,
    drain_seconds: Annotated[
        float | None, server_option(help="Seconds that calls have to finish on SIGTERM.")
    ] = None,
    metrics_host: Annotated[str | None, server_option(help="Address of the metrics page.")] = None,
    metrics_port: Annotated[
        int | None, server_option(help="Port of metrics and health over HTTP.")
    ] = None,
    access_log: Annotated[
        str | None, output_option(help="File of one JSON line a call; - for stdout.")
    ] = None,
    trace_endpoint: Annotated[
        str | None, output_option(help="OpenTelemetry collector that receives traces.")
    ] = None,
    jobs_database: Annotated[
        str | None, server_option(metavar="FILE|URL", help="Where jobs are kept; off: no jobs.")
    ] = None,
    log_level: Annotated[
        str | None, output_option(help="Log level: debug, info, warning or error.")
    ] = None,
    vllm: Annotated[
        str | None, judge_option("--vllm", help="Model of a vLLM server to start and watch.")
    ] = None,
    tensor_parallel_size: Annotated[
        int | None, judge_option(help="Number of GPUs that vLLM spreads a layer over.")
    ] = None,
    data_folder: Annotated[
        str | None, output_option(help="Folder for logs of started processes.")
    ] = None,
    config: Annotated[str | None, server_option(help="TOML file of settings.")] = None,
    judges: JudgeOptions,
) -> None:
    """Serve scores over gRPC, and HTTP if asked, until SIGTERM or Ctrl-C."""
    from hallujudge.judge_service.__main__ import run_server

    arguments: dict[str, object] = {
        "host": host,
        "port": port,
        "http_host": http_host,
        "http_port": http_port,
        "max_message_bytes": max_message_bytes,
        "max_batch_items": max_batch_items,
        "max_running_calls": max_running_calls,
        "max_waiting_calls": max_waiting_calls,
        "workers": workers,
        "max_memory_bytes": max_memory_bytes,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
        "tls_ca": tls_ca,
        "keys_file": keys_file,
        "allow_anonymous": 1 if allow_anonymous else None,
        "reflection": reflection,
        "drain_seconds": drain_seconds,
        "metrics_host": metrics_host,
        "metrics_port": metrics_port,
        "access_log": access_log,
        "trace_endpoint": trace_endpoint,
        "jobs_database": jobs_database,
        "log_level": log_level,
        "vllm": vllm,
        "vllm_tensor_parallel_size": tensor_parallel_size,
        "data_folder": data_folder,
        **judges.given(),
    }
    run_server(arguments, config)


@app.command(epilog=examples("hallujudge doctor --server localhost:50051"))
def doctor(
    server: Annotated[
        str | None, server_option("--server", help="HOST:PORT of a server to check too.")
    ] = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    api_key_file: ApiKeyFile = None,
    llm_url: LlmUrl = None,
    llm_model: LlmModel = None,
) -> ExitCode:
    """Check this installation, and a server if one is named."""
    from .doctor import examine

    connection = connection_of(server, tls_ca, tls_cert, tls_key, api_key_file)
    return examine(server, llm_options(llm_url, llm_model), connection)


@config_app.command(epilog=examples("hallujudge config show --format toml"))
def show(
    config: Annotated[str | None, server_option(help="TOML file of settings.")] = None,
    format: Annotated[
        ConfigFormat, output_option("--format", "-f", help="Output format: text or toml.")
    ] = ConfigFormat.TEXT,
) -> None:
    """Print every setting with its source."""
    from hallujudge.judge_service.settings.server_settings import load_settings, settings_toml

    resolved = load_settings(file=config)
    if format is ConfigFormat.TOML:
        typer.echo(settings_toml(resolved), nl=False)
        return
    for setting in resolved.sources:
        typer.echo(f"{setting.name} = {setting.value!r}  # {setting.source}: {setting.help}")
