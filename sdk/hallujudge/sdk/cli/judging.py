"""Options that name judges, for runs that judge in this process and for the server."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

import typer

from ..errors import InvalidInputError

__all__ = ["JudgeOptions", "LlmModel", "LlmUrl", "MatcherDownload"]

LlmUrl = Annotated[
    str | None,
    typer.Option("--llm-url", help="Base address of the llm judge's server, such as http://…/v1."),
]
LlmModel = Annotated[
    str | None, typer.Option("--llm-model", help="The llm judge's model, as its server calls it.")
]
MatcherDownload = Annotated[
    bool,
    typer.Option("--matcher-download", help="Let models that are not on this machine be fetched."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """Judges as the command line names them; keys are never among them."""

    llm_url: LlmUrl = None
    """Base address of the judge's server."""
    llm_model: LlmModel = None
    """The judge's model."""
    fallback_model: Annotated[
        str | None,
        typer.Option(
            "--fallback-model", help="The fallback's model; without it there is no fallback."
        ),
    ] = None
    """The fallback's model."""
    max_calls: Annotated[
        int | None,
        typer.Option("--max-calls", help="Calls to language models at most, with retries."),
    ] = None
    """Calls to language models at most."""
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", help="Money that language models may cost at most."),
    ] = None
    """Money for language models at most."""
    llm_tokenizer: Annotated[
        str | None,
        typer.Option(
            "--llm-tokenizer",
            help="The llm judge's tokenizer.json, or its folder, to count an estimate by.",
        ),
    ] = None
    """The judge's tokenizer."""
    fallback_tokenizer: Annotated[
        str | None, typer.Option("--fallback-tokenizer", help="The same of the fallback.")
    ] = None
    """The fallback's tokenizer."""
    give_up_after: Annotated[
        float | None,
        typer.Option("--give-up-after", help="Seconds without an answer that end a run."),
    ] = None
    """Seconds without any answer of a judge after which a run ends."""
    verdict_cache: Annotated[
        str | None, typer.Option("--verdict-cache", help="SQLite file that keeps verdicts.")
    ] = None
    """File that keeps verdicts."""

    def given(self) -> dict[str, object]:
        """Those that were given, by name."""
        return {
            entry.name: value
            for entry in fields(self)
            if (value := getattr(self, entry.name)) is not None
        }

    def settings(self, server: str | None, **more: object) -> dict[str, object]:
        """Settings of judges in this process: those that were given, and others.

        Raises:
            InvalidInputError: A server scores, which has judges of its own.
        """
        given = self.given() | more
        if given and server:
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise InvalidInputError(
                f"{flags} can't be set for the server at {server}: judges are set where the "
                "server is started"
            )
        return given
