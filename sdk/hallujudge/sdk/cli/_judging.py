"""Options that name judges, for runs that judge in this process and for the server."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

import typer

from ..errors import InvalidInputError

__all__ = [
    "FallbackModel",
    "JudgeFlags",
    "LlmModel",
    "LlmUrl",
    "MatcherDownload",
    "MaxCalls",
    "MaxCost",
    "VerdictCacheFile",
]

LlmUrl = Annotated[
    str | None,
    typer.Option("--llm-url", help="Base address of the llm judge's server, such as http://…/v1."),
]
LlmModel = Annotated[
    str | None, typer.Option("--llm-model", help="The llm judge's model, as its server calls it.")
]
FallbackModel = Annotated[
    str | None,
    typer.Option("--fallback-model", help="The fallback's model; without it there is no fallback."),
]
MaxCalls = Annotated[
    int | None, typer.Option("--max-calls", help="Calls to language models at most, with retries.")
]
MaxCost = Annotated[
    float | None, typer.Option("--max-cost", help="Money that language models may cost at most.")
]
MatcherDownload = Annotated[
    bool,
    typer.Option("--matcher-download", help="Let models that are not on this machine be fetched."),
]
VerdictCacheFile = Annotated[
    str | None, typer.Option("--verdict-cache", help="SQLite file that keeps verdicts.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFlags:
    """Settings of judges as the command line gave them; keys are never among them."""

    llm_url: str | None = None
    """Base address of the judge's server."""
    llm_model: str | None = None
    """The judge's model."""
    fallback_model: str | None = None
    """The fallback's model."""
    max_calls: int | None = None
    """Calls to language models at most."""
    max_cost: float | None = None
    """Money for language models at most."""
    verdict_cache: str | None = None
    """File that keeps verdicts."""
    matcher_download: int | None = None
    """1: models of the matcher may be fetched."""

    def settings(self, server: str | None) -> dict[str, object]:
        """Those that were given, by name.

        Raises:
            InvalidInputError: A server scores, which has judges of its own.
        """
        given = {
            entry.name: value
            for entry in fields(self)
            if (value := getattr(self, entry.name)) is not None
        }
        if given and server:
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise InvalidInputError(
                f"{flags} can't be set for the server at {server}: judges are set where the "
                "server is started"
            )
        return given
