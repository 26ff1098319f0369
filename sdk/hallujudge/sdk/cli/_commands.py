"""The commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..archives import InputOptions
from ._judging import FallbackModel, LlmModel, LlmUrl, MaxCalls, MaxCost, VerdictCacheFile
from ._main import ExitCode, app
from ._run import FORMATS, ScoreRun

__all__: list[str] = []

score_app = typer.Typer(help="Score responses that a model wrote.", no_args_is_help=True)
config_app = typer.Typer(help="Settings of the server.", no_args_is_help=True)
app.add_typer(score_app, name="score")
app.add_typer(config_app, name="config")

Responses = Annotated[
    Path, typer.Option("--responses", help="File of responses.", show_default=False)
]
References = Annotated[
    Path | None,
    typer.Option("--references", help="File of references; not needed where responses carry them."),
]
Variant = Annotated[str, typer.Option("--variant", help="Named reading of the metric.")]
IdMap = Annotated[
    Path | None,
    typer.Option("--id-map", help="JSON list: position or question_id -> image id."),
]
IdKey = Annotated[str | None, typer.Option("--id-key", help="Key of the id.")]
TextKey = Annotated[str | None, typer.Option("--text-key", help="Key of the response's text.")]
AllowUnknown = Annotated[
    bool,
    typer.Option("--allow-unknown", help="Leave responses without a reference unscored."),
]
AllowDuplicates = Annotated[
    bool, typer.Option("--allow-duplicates", help="Score every response of an id that repeats.")
]
GroupBy = Annotated[
    list[str] | None,
    typer.Option("--group-by", help="Key of the responses to report groups by; repeatable."),
]
Seed = Annotated[int, typer.Option("--seed", help="Where the intervals' random numbers start.")]
Replicates = Annotated[
    int, typer.Option("--replicates", help="Bootstrap replicates; 0 for no intervals.")
]
Confidence = Annotated[float, typer.Option("--confidence", help="Confidence of the intervals.")]
Server = Annotated[
    str | None,
    typer.Option("--server", help="HOST:PORT of a server; without it this process scores."),
]
Out = Annotated[Path, typer.Option("--out", help="Folder for report.json and items.jsonl.")]
Format = Annotated[
    list[str] | None,
    typer.Option("--format", help=f"{', '.join(FORMATS)}; repeatable, or with commas."),
]


@score_app.command()
def chair(
    responses: Responses,
    out: Out,
    references: References = None,
    graph: Annotated[
        str, typer.Option("--graph", help="Synonym graph: a shipped name, or a file.")
    ] = "coco",
    variant: Variant = "published",
    count: Annotated[
        str, typer.Option("--count", help="What chair_i counts: mentions, or objects once each.")
    ] = "mentions",
    id_map: IdMap = None,
    id_key: IdKey = None,
    text_key: TextKey = None,
    allow_unknown: AllowUnknown = False,
    allow_duplicates: AllowDuplicates = False,
    group_by: GroupBy = None,
    seed: Seed = 0,
    replicates: Replicates = 1000,
    confidence: Confidence = 0.95,
    server: Server = None,
    format: Format = None,
) -> ExitCode:
    """CHAIR: objects that captions mention and images lack."""
    return ScoreRun(
        metric="chair",
        responses=responses,
        references=references,
        out=out,
        server=server,
        variant=variant,
        graphs={"objects": graph},
        options={"count": count},
        group_by=tuple(group_by or ()),
        seed=seed,
        replicates=replicates,
        confidence=confidence,
        inputs=InputOptions(
            id_key=id_key,
            text_key=text_key,
            id_map=id_map,
            allow_unknown=allow_unknown,
            allow_duplicates=allow_duplicates,
        ),
        formats=split_formats(format),
    ).execute()


def split_formats(given: list[str] | None) -> tuple[str, ...]:
    """Formats as given: repeated, with commas, or both; a table where none was."""
    names = [name.strip() for part in given or [] for name in part.split(",")]
    return tuple(name for name in names if name) or ("table",)


@app.command()
def serve(
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
    llm_url: LlmUrl = None,
    llm_model: LlmModel = None,
    fallback_model: FallbackModel = None,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    verdict_cache: VerdictCacheFile = None,
    data_folder: Annotated[
        str | None, typer.Option(help="Folder for logs of what is started.")
    ] = None,
    config: Annotated[str | None, typer.Option(help="TOML file of settings.")] = None,
) -> None:
    """Serve scores over gRPC until SIGTERM or Ctrl-C."""
    from hallujudge.judge_service.__main__ import run_server

    arguments: dict[str, Any] = {
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
        "llm_url": llm_url,
        "llm_model": llm_model,
        "fallback_model": fallback_model,
        "max_calls": max_calls,
        "max_cost": max_cost,
        "verdict_cache": verdict_cache,
        "data_folder": data_folder,
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
    from ._doctor import examine

    return examine(server, {"llm_url": llm_url, "llm_model": llm_model})


@config_app.command()
def show(
    config: Annotated[str | None, typer.Option(help="TOML file of settings.")] = None,
) -> None:
    """Print every setting with where it comes from."""
    from hallujudge.judge_service.settings import load_settings

    for setting in load_settings(file=config).sources:
        typer.echo(f"{setting.name} = {setting.value!r}  # {setting.source}: {setting.help}")
