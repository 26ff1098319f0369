"""``hallujudge serve``, ``doctor`` and ``config``."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from .app import ExitCode, app
from .groups import grouped
from .judging import JudgeOptions, LlmModel, LlmUrl

__all__: list[str] = []


class ConfigFormat(enum.StrEnum):
    """How ``config show`` prints."""

    TEXT = "text"
    TOML = "toml"


config_app = typer.Typer(help="Settings of the server.", no_args_is_help=True)
app.add_typer(config_app, name="config")


@app.command()
@grouped
def serve(
    *,
    host: Annotated[str | None, typer.Option(help="Address to listen at.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.")] = None,
    max_message_bytes: Annotated[int | None, typer.Option(help="Largest message.")] = None,
    max_batch_items: Annotated[int | None, typer.Option(help="Most items in a message.")] = None,
    max_running_calls: Annotated[int | None, typer.Option(help="Calls at work at once.")] = None,
    max_waiting_calls: Annotated[int | None, typer.Option(help="Calls that may wait.")] = None,
    drain_seconds: Annotated[
        float | None, typer.Option(help="Time that calls get to finish on SIGTERM.")
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    vllm: Annotated[
        str | None, typer.Option("--vllm", help="Start and watch `vllm serve` with this model.")
    ] = None,
    tensor_parallel_size: Annotated[
        int | None, typer.Option(help="GPUs that vllm spreads a layer over.")
    ] = None,
    data_folder: Annotated[
        str | None, typer.Option(help="Folder for logs of what is started.")
    ] = None,
    config: Annotated[str | None, typer.Option(help="TOML file of settings.")] = None,
    judges: JudgeOptions,
) -> None:
    """Serve scores over gRPC until SIGTERM or Ctrl-C."""
    from hallujudge.judge_service.__main__ import run_server

    arguments: dict[str, object] = {
        "host": host,
        "port": port,
        "max_message_bytes": max_message_bytes,
        "max_batch_items": max_batch_items,
        "max_running_calls": max_running_calls,
        "max_waiting_calls": max_waiting_calls,
        "drain_seconds": drain_seconds,
        "log_level": log_level,
        "vllm": vllm,
        "vllm_tensor_parallel_size": tensor_parallel_size,
        "data_folder": data_folder,
        **judges.given(),
    }
    run_server(arguments, config)


@app.command()
def doctor(
    server: Annotated[
        str | None, typer.Option("--server", help="HOST:PORT of a server to check too.")
    ] = None,
    llm_url: LlmUrl = None,
    llm_model: LlmModel = None,
) -> ExitCode:
    """Check this installation, and a server if one is named."""
    from .doctor import examine

    return examine(server, {"llm_url": llm_url, "llm_model": llm_model})


@config_app.command()
def show(
    config: Annotated[str | None, typer.Option(help="TOML file of settings.")] = None,
    format: Annotated[
        ConfigFormat, typer.Option("--format", help="Output format: text or toml.")
    ] = ConfigFormat.TEXT,
) -> None:
    """Print every setting with its source."""
    from hallujudge.judge_service.settings.server import load_settings, settings_toml

    resolved = load_settings(file=config)
    if format is ConfigFormat.TOML:
        typer.echo(settings_toml(resolved), nl=False)
        return
    for setting in resolved.sources:
        typer.echo(f"{setting.name} = {setting.value!r}  # {setting.source}: {setting.help}")
