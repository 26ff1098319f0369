"""Options that several commands share: the server, and the judges of this process.

API keys are never options.

The commands that build a benchmark with a language model share options of their own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import click

from hallujudge.judge_service.settings.connection import Connection, listed, load_connection, masked
from hallujudge.metrics.framework.metric import SEES
from hallujudge.sdk import cli

from ..errors import InvalidInputError
from .app import ExitCode, budget_option, input_option, judge_option, server_option
from .parameters import flag_of, given_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """A server, and how to connect to it."""

    server: Annotated[
        str | None,
        server_option(
            metavar="HOST:PORT", help="Server that scores; without it, this process does."
        ),
    ] = None
    tls_ca: Annotated[
        str | None, server_option(metavar="FILE", help="Authority of the server's certificate.")
    ] = None
    tls_cert: Annotated[
        str | None, server_option(metavar="FILE", help="Certificate of this client.")
    ] = None
    tls_key: Annotated[
        str | None, server_option(metavar="FILE", help="Private key of --tls-cert.")
    ] = None
    api_key_file: Annotated[
        str | None, server_option(metavar="FILE", help="File that contains the API key.")
    ] = None

    @property
    def connection_flags(self) -> tuple[str, ...]:
        """The options besides the address, for a command that calls the same server."""
        given = {
            flag_of(entry.name): getattr(self, entry.name)
            for entry in fields(self)
            if entry.name != "server"
        }
        return tuple(part for flag, value in given.items() if value for part in (flag, value))

    def connection(self) -> Connection | None:
        """Return how to connect to the server: the options, and the environment; None without one.

        Raises:
            InvalidInputError: A file can't be read, or an option lacks another one or the server.
        """
        # A certificate without a server would be ignored, and the run would be here.
        if self.server is None:
            if flags := self.connection_flags:
                raise InvalidInputError(
                    f"{flags[0]} is for a server, and none is named; add --server, or leave it out"
                )
            return None
        given = Connection(
            tls_ca=self.tls_ca or "", tls_cert=self.tls_cert or "", tls_key=self.tls_key or ""
        )
        return load_connection(given, api_key_file=self.api_key_file or "")


Estimate = Annotated[
    bool, budget_option("--estimate", help="Number of judge calls, tokens and cost; then exit.")
]

Objects = Annotated[
    Path | None, input_option(metavar="FILE", help="JSON: image -> the objects that it shows.")
]
Instances = Annotated[
    list[Path] | None, input_option(metavar="FILE", help="COCO's instances_*.json; repeatable.")
]
LlmUrl = Annotated[
    list[str] | None, judge_option(help="Base URL of a server of the LLM judge; repeatable.")
]
LlmModel = Annotated[str | None, judge_option(help="Name of the LLM judge's model at its server.")]
LlmDialect = Annotated[
    str | None,
    judge_option("--dialect", "--llm-dialect", help="Judge's server: vllm, openai or plain."),
]
LlmConstraint = Annotated[
    str | None,
    judge_option(
        "--constraint",
        "--llm-constraint",
        help="Constraint: json_schema, structured_outputs or none.",
    ),
]
MatcherDownload = Annotated[
    bool, judge_option("--matcher-download", help="Download missing models.")
]


def llm_options(
    urls: Sequence[str] | None, model: str | None, **more: str | float | None
) -> dict[str, object]:
    """Return the settings of the LLM judge that were given.

    Args:
        urls: Base addresses of its servers.
        model: Its model.
        more: Further settings.
    """
    given = {"llm_url": ",".join(urls) if urls else None, "llm_model": model, **more}
    return cli.names_of({name: value for name, value in given.items() if value is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """Settings of judges on the command line, without API keys."""

    llm_url: LlmUrl = None
    llm_model: LlmModel = None
    llm_dialect: LlmDialect = None
    llm_constraint: LlmConstraint = None
    llm_api: Annotated[
        str | None, judge_option(help="Protocol of asking: chat, scoring or decisions.")
    ] = None
    llm_max_tokens: Annotated[
        int | None,
        judge_option(
            "--max-tokens", "--llm-max-tokens", min=0, help="Most tokens of a reply of the model."
        ),
    ] = None
    fallback_model: Annotated[
        str | None, judge_option(help="Name of the fallback judge's model.")
    ] = None
    max_calls: Annotated[
        int | None, budget_option(help="Most calls to language models, with retries.")
    ] = None
    max_cost: Annotated[
        float | None, budget_option(help="Most that calls to language models may cost.")
    ] = None
    llm_price_prompt: Annotated[
        float | None, budget_option(help="The LLM judge's price of 1M prompt tokens.")
    ] = None
    llm_price_completion: Annotated[
        float | None, budget_option(help="The LLM judge's price of 1M completion tokens.")
    ] = None
    fallback_price_prompt: Annotated[
        float | None, budget_option(help="The fallback's price of 1M prompt tokens.")
    ] = None
    fallback_price_completion: Annotated[
        float | None, budget_option(help="The fallback's price of 1M completion tokens.")
    ] = None
    llm_tokenizer: Annotated[
        str | None, budget_option(help="The LLM judge's tokenizer.json, for --estimate.")
    ] = None
    fallback_tokenizer: Annotated[
        str | None, budget_option(help="The fallback's tokenizer.json.")
    ] = None
    give_up_after: Annotated[
        float | None, budget_option(help="Seconds without an answer that end a run.")
    ] = None
    verdict_cache: Annotated[str | None, judge_option(help="SQLite file of verdicts to reuse.")] = (
        None
    )

    def given(self) -> dict[str, object]:
        """Return the options that were given, by name."""
        given = given_of(self)
        urls = given.pop("llm_url", None)
        # Settings hold several addresses as one text, as the environment variable has them.
        return {"llm_url": ",".join(urls)} | given if urls else given

    def settings(self, server: str | None, **more: object) -> dict[str, object]:
        """Return the settings of judges in this process: the given options and the rest.

        Args:
            server: The server that scores, if this process does not.
            more: Further options.

        Returns:
            Values by the names of settings, such as ``llm.url``.

        Raises:
            InvalidInputError: A server scores; it has its own judges. Or a price is negative.
        """
        given = self.given() | more
        for name, value in given.items():
            # A negative price would let a budget grow with each call.
            if "_price_" in name and isinstance(value, float) and value < 0:
                raise InvalidInputError(f"{flag_of(name)} is {value:g}; give 0 or more")
        if given and server:
            flags = ", ".join(map(flag_of, given))
            raise InvalidInputError(
                f"{flags} can't be set for the server at {server}: judges are set where the "
                "server is started"
            )
        return cli.names_of(given)


# Failures of a build that are shown.
_SHOWN = 5
# Such a text travels in a spec, which is sent with every stream; a prompt is a page of it.
_MOST_BYTES = 400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterOptions:
    """The language model that writes a part of a benchmark."""

    url: Annotated[
        list[str] | None,
        judge_option("--url", "--llm-url", help="Base URL of the model's server; repeatable."),
    ] = None
    model: Annotated[
        str | None, judge_option("--model", "--llm-model", help="Name of the model there.")
    ] = None
    dialect: Annotated[str | None, judge_option(help="Server: vllm, openai or plain.")] = None
    max_concurrency: Annotated[int | None, judge_option(min=1, help="Calls at the same time.")] = (
        None
    )
    max_calls: Annotated[int | None, budget_option(help="Most calls, with retries.")] = None
    max_cost: Annotated[float | None, budget_option(help="Most that calls may cost.")] = None

    def settings(self) -> dict[str, object]:
        """Return the settings that were given, by their names."""
        return llm_options(
            self.url,
            self.model,
            llm_dialect=self.dialect,
            llm_max_concurrency=self.max_concurrency,
            max_calls=self.max_calls,
            max_cost=self.max_cost,
        )


Temperature = Annotated[float, judge_option(min=0, max=10, help="Temperature.")]


def checked_out(out: Path, *inputs: Path) -> Path:
    """Return the file to write, whose folder exists.

    Raises:
        InvalidInputError: It is one of the inputs.
    """
    refuse_input(out, *inputs)
    # Before a model is asked, whose replies would be lost without the folder.
    out.parent.mkdir(parents=True, exist_ok=True)
    return out


def refuse_input(out: Path, *inputs: Path) -> None:
    """Refuse to write a file that is read.

    Raises:
        InvalidInputError: It is one of the inputs.
    """
    # Path.resolve raises RuntimeError for a link that leads to itself, before a file is opened.
    if os.path.realpath(out) in map(os.path.realpath, inputs):
        raise InvalidInputError(f"--out {out} is one of the inputs; name another file")


def file_text(flag: str, path: str | Path) -> str:
    """Return the text of a file that an option names, such as a user's own prompt.

    Raises:
        InvalidInputError: The file can't be read, or is too large.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        # Editors on Windows begin a file with a mark, which is not part of the text.
        text = data.decode("utf-8-sig")
    except OSError as err:
        raise InvalidInputError(f"{flag} {path}: {err.strerror or err}; give a text file") from err
    except UnicodeDecodeError as err:
        raise InvalidInputError(f"{flag} {path}: not UTF-8 text; save it as UTF-8") from err
    if len(data) > _MOST_BYTES:
        raise InvalidInputError(
            f"{flag} {path}: larger than {_MOST_BYTES} bytes; give another file"
        )
    return text


def replies_of(out: Path) -> Path:
    """Return the file of replies, by which a stopped run goes on."""
    return out.with_name(f"{out.stem}.replies.sqlite")


def say_failed(failed: Mapping[str, str], made: int) -> ExitCode:
    """Say what was not made and why, and return the command's exit code."""
    for name, why in list(failed.items())[:_SHOWN]:
        click.echo(f"not made: {name}: {why}", err=True)
    if len(failed) > _SHOWN:
        click.echo(f"not made: {len(failed) - _SHOWN:,} more", err=True)
    if not failed:
        return ExitCode.OK
    return ExitCode.UNSCORED if made else ExitCode.FAILED


ModelNames = Annotated[
    list[str] | None,
    input_option(metavar="OLD=NEW", help="Another name of a model in tables; repeatable."),
]


def model_names(given: list[str] | None) -> dict[str, str]:
    """Return name of a model -> its name in tables, from ``OLD=NEW``.

    Raises:
        InvalidInputError: A value has another form.
    """
    names = {}
    for pair in given or ():
        # The last one: names of models may hold an equals sign, their names in tables rarely do.
        old, _, new = pair.rpartition("=")
        if not old or not new:
            raise InvalidInputError(
                f"--model-name {pair!r:.80}: write the model's name, an equals sign and the name "
                "that tables show"
            )
        names[old] = new
    return names


def say_where_pictures_go(
    server: str | None, options: Mapping[str, str], settings: Mapping[str, object]
) -> None:
    """Print which addresses pictures go to, as the first line of a run whose judge sees.

    Args:
        server: The server that scores, if this process does not.
        options: The metric's options.
        settings: Settings of the judges.
    """
    judge, panel = options.get("judge", "given"), options.get("panel", "")
    if judge == "given" and not panel:
        return
    if server is not None:
        click.echo(f"pictures go to {server}, and from there to its judge", err=True)
        return
    known = cli.load_settings(dict(settings)).judges
    names = listed(panel) if panel else cli.judges_of(known, "llm" if judge == SEES else judge)
    places = [
        f"{masked(url)} (model {known.language_model(name).model})"
        for name in names
        if name in cli.LLM_NAMES
        for url in listed(known.language_model(name).url)
    ]
    if places:
        click.echo(f"pictures go to {' and '.join(places)}, and nowhere else", err=True)
