"""Options of commands that build a benchmark with a language model, and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InvalidInputError
from .app import ExitCode, budget_option, judge_option

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


def checked_out(out: Path, *inputs: Path) -> Path:
    """Return the file to write, whose folder exists.

    Raises:
        InvalidInputError: It is one of the inputs.
    """
    if out.resolve() in (path.resolve() for path in inputs):
        raise InvalidInputError(f"--out {out} is one of the inputs; name another file")
    out.parent.mkdir(parents=True, exist_ok=True)
    return out


def replies_of(out: Path) -> Path:
    """Return the file of replies, by which a stopped run goes on."""
    return out.with_name(f"{out.stem}.replies.sqlite")


def model_settings(
    url: list[str] | None,
    model: str | None,
    dialect: str | None,
    max_concurrency: int | None,
    max_calls: int | None,
    max_cost: float | None,
) -> dict[str, object]:
    """Return the settings that were given, by their names."""
    given = {
        "llm_url": ",".join(url) if url else None,
        "llm_model": model,
        "llm_dialect": dialect,
        "llm_max_concurrency": max_concurrency,
        "max_calls": max_calls,
        "max_cost": max_cost,
    }
    return {name: value for name, value in given.items() if value is not None}


def say_failed(failed: Mapping[str, str], made: int) -> ExitCode:
    """Say what was not made and why, and return the command's exit code."""
    for name, why in list(failed.items())[:_SHOWN]:
        typer.echo(f"not made: {name}: {why}", err=True)
    if len(failed) > _SHOWN:
        typer.echo(f"not made: {len(failed) - _SHOWN:,} more", err=True)
    if not failed:
        return ExitCode.OK
    return ExitCode.UNSCORED if made else ExitCode.FAILED
