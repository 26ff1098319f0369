"""``hallujudge build vidhal`` and ``build vidhal-votes``."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInputError
from ..progress_bar import shown_progress
from .app import (
    ExitCode,
    budget_option,
    build_app,
    examples,
    input_option,
    judge_option,
    metric_option,
    output_option,
)
from .output import write_file, write_lines

if TYPE_CHECKING:
    from ..asking.vidhal_captions import Built

_SHOWN = 5

Url = Annotated[
    list[str] | None,
    judge_option("--url", "--llm-url", help="Base URL of the model's server; repeatable."),
]
Model = Annotated[
    str | None, judge_option("--model", "--llm-model", help="Name of the model there.")
]
Dialect = Annotated[str | None, judge_option("--dialect", help="Server: vllm, openai or plain.")]
Concurrency = Annotated[
    int | None, judge_option("--max-concurrency", min=1, help="Calls at the same time.")
]
MaxCalls = Annotated[int | None, budget_option(help="Most calls, with retries.")]
MaxCost = Annotated[float | None, budget_option(help="Most that calls may cost.")]


@build_app.command(
    "vidhal",
    epilog=examples(
        "hallujudge build vidhal -R videos.jsonl --url http://localhost:8000/v1 \\",
        "    --model llama -o annotations.json",
    ),
)
def build_vidhal(
    *,
    references: Annotated[
        Path,
        input_option("--references", "-R", metavar="FILE", help="What is known about videos."),
    ],
    url: Url = None,
    model: Model = None,
    dialect: Dialect = None,
    max_concurrency: Concurrency = None,
    temperature: Annotated[
        float, judge_option("--temperature", min=0, max=10, help="Temperature.")
    ] = 0.0,
    captions: Annotated[
        int, metric_option("--captions", min=2, max=8, help="Captions of a video.")
    ] = 3,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    out: Annotated[Path, output_option("--out", "-o", help="Annotations to write, as JSON.")],
) -> ExitCode:
    """VidHal: captions of videos, the correct one and wrong ones by aspect."""
    from ..asking.text_calls import text_model
    from ..asking.vidhal_captions import read_videos, write_captions

    _refuse_same(references, out)
    videos = read_videos(references)
    settings = _settings(url, model, dialect, max_concurrency, max_calls, max_cost)

    async def build() -> Built:
        async with text_model(settings, _replies(out), temperature) as writer:
            return await write_captions(videos, writer, wrong=captions - 1, progress=progress)

    with shown_progress(len(videos), "captioned") as progress:
        found = asyncio.run(build())
    write_file(out, json.dumps(found.rows, ensure_ascii=False, indent=1) + "\n")
    typer.echo(f"captions of {len(found.rows):,} of {len(videos):,} videos written to {out}")
    return _say(found)


@build_app.command(
    "vidhal-votes",
    epilog=examples(
        "hallujudge build vidhal-votes -R annotations.json \\",
        "    --url http://localhost:8000/v1 --model llama -o votes.jsonl",
    ),
)
def build_vidhal_votes(
    *,
    references: Annotated[
        Path, input_option("--references", "-R", metavar="FILE", help="VidHal's annotations.")
    ],
    url: Url = None,
    model: Model = None,
    dialect: Dialect = None,
    max_concurrency: Concurrency = None,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    out: Annotated[Path, output_option("--out", "-o", help="Votes to write, as JSON lines.")],
) -> ExitCode:
    """VidHal: a model's votes on the quality of captions, for analyze --votes."""
    from ..asking.text_calls import text_model
    from ..asking.vidhal_captions import ask_quality, read_videos

    _refuse_same(references, out)
    videos = read_videos(references, captioned=True)
    settings = _settings(url, model, dialect, max_concurrency, max_calls, max_cost)

    async def build() -> Built:
        async with text_model(settings, _replies(out)) as judge:
            return await ask_quality(videos, judge, progress=progress)

    with shown_progress(len(videos), "judged") as progress:
        found = asyncio.run(build())
    count = write_lines(out, found.rows)
    typer.echo(f"{count:,} votes on {len(videos):,} videos written to {out}")
    return _say(found)


def _refuse_same(references: Path, out: Path) -> None:
    if references.resolve() == out.resolve():
        raise InvalidInputError(f"--out {out} is the file of videos; name another file")
    out.parent.mkdir(parents=True, exist_ok=True)


def _replies(out: Path) -> Path:
    """Return the file of replies, by which a stopped run goes on."""
    return out.with_name(f"{out.stem}.replies.sqlite")


def _settings(
    url: list[str] | None,
    model: str | None,
    dialect: str | None,
    max_concurrency: int | None,
    max_calls: int | None,
    max_cost: float | None,
) -> dict[str, object]:
    given = {
        "llm_url": ",".join(url) if url else None,
        "llm_model": model,
        "llm_dialect": dialect,
        "llm_max_concurrency": max_concurrency,
        "max_calls": max_calls,
        "max_cost": max_cost,
    }
    return {name: value for name, value in given.items() if value is not None}


def _say(found: Built) -> ExitCode:
    for name, why in list(found.failed.items())[:_SHOWN]:
        typer.echo(f"not made: {name}: {why}", err=True)
    if len(found.failed) > _SHOWN:
        typer.echo(f"not made: {len(found.failed) - _SHOWN:,} more", err=True)
    if not found.failed:
        return ExitCode.OK
    return ExitCode.UNSCORED if found.rows else ExitCode.FAILED
