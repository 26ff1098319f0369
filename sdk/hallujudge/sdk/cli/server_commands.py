"""``hallujudge serve`` and ``keys``: the server and its API keys."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from hallujudge.judge_service.access import MAX_LIMIT, Scope
from hallujudge.judge_service.access.key_store import (
    ApiKey,
    create_key,
    edit_key,
    now,
    read_keys,
    revoke_key,
    rotate_key,
)
from hallujudge.judge_service.settings import Definition
from hallujudge.judge_service.settings.loading import ALL, load_settings, names_of, spending_path
from hallujudge.judge_service.tenancy import MAX_WEIGHT, Limits
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.families import added_sources
from hallujudge.sdk import cli

from ..errors import InvalidInputError
from .app import (
    access_option,
    app,
    budget_option,
    examples,
    keys_app,
    server_option,
)
from .options import JudgeOptions
from .parameters import Declared, argument, flag_of, given_of, option, parameter_of

if TYPE_CHECKING:
    from hallujudge.judge_service.access.spending import Ledger


# Panel of the help page -> settings that `serve` has options for, by the names of their options.
_SERVED = {
    "Server": (
        *("host", "port", "http_host", "http_port", "max_message_bytes", "max_batch_items"),
        *("max_running_calls", "max_waiting_calls", "workers", "max_memory_bytes"),
        *("drain_seconds", "metrics_host", "metrics_port", "jobs_database", "accept_new_state"),
    ),
    "Access": ("tls_cert", "tls_key", "tls_ca", "keys_file", "allow_anonymous", "reflection"),
    "Output": ("access_log", "trace_endpoint", "log_level", "data_folder"),
    "Judge": (
        *("vllm", "vllm_tensor_parallel_size", "vllm_max_model_len", "vllm_quantization"),
        *("vllm_batch_invariant", "vllm_download"),
    ),
}
# What only vLLM has is not named after it.
_SHORT_FLAGS = {
    f"vllm_{name}": flag_of(name)
    for name in ("tensor_parallel_size", "max_model_len", "quantization", "batch_invariant")
}
_METAVARS = {
    **dict.fromkeys(("tls_cert", "tls_key", "tls_ca", "keys_file"), "FILE"),
    "jobs_database": "FILE|URL",
}


def _is_switch(declared: Definition) -> bool:
    """Return whether a setting is 0 or 1, as a variable of the environment has yes and no."""
    return type(declared.field.default) is int and declared.field.metadata["high"] == 1


class _ServedSettings(Declared):
    """Makes the options of ``serve`` that are settings of the server."""

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield a parameter for each setting."""
        settings = {each.option: each for each in ALL.values()}
        for panel, names in _SERVED.items():
            for name in names:
                declared = settings[name]
                given: Any = bool if _is_switch(declared) else type(declared.field.default)
                flag = option(
                    _SHORT_FLAGS.get(name) or flag_of(name),
                    panel=panel,
                    metavar=_METAVARS.get(name),
                    help=_sentence(declared),
                )
                # None, so that without the option the environment or the file has its say.
                yield parameter_of(name, Annotated[given | None, flag], None)

    def build(self, given: Mapping[str, object]) -> dict[str, object]:
        """Return the settings by name; None where an option is not given."""
        # Switches of settings are numbers.
        return {name: 1 if value is True else value for name, value in given.items()}


def _sentence(declared: Definition) -> str:
    """Return the help text of a setting as that of an option."""
    text = str(declared.field.metadata["help"]).removeprefix("1: ")
    # Values are written as they are given.
    return f"{text}." if declared.field.metadata["choices"] else f"{text[0].upper()}{text[1:]}."


@app.command(epilog=examples("hallujudge serve --port 50051"))
def serve(
    context: click.Context,
    *,
    settings: Annotated[dict[str, object], _ServedSettings()],
    config: Annotated[str | None, server_option(help="TOML file of settings.")] = None,
    judges: JudgeOptions,
) -> None:
    """Serve scores over gRPC, and HTTP if asked, until Ctrl-C."""
    given = names_of(settings | judges.given())
    # Other installed ones are not served, unless the setting names them.
    named = context.find_root().params["benchmark"] or ()
    if sources := [each for each in added_sources() if each.endswith(".py") or each in named]:
        given["benchmarks"] = ",".join(sources)
    cli.run_server(given, config)


_File = Annotated[
    Path | None,
    access_option(
        "--file",
        "--keys-file",
        metavar="FILE",
        help="File of keys; without it, the setting access.keys_file.",
    ),
]
_PERIOD = re.compile(r"(?P<number>\d{1,7})(?P<unit>[mhd])", re.ASCII)
_PERIODS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_NOW = "now"
# A century.
_MOST_DAYS = 36_500
_LIMITS = ("calls_per_minute", "max_concurrency", "judge_calls_per_day", "cost_per_day")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLimits:
    """The limits of a key."""

    calls_per_minute: Annotated[
        int | None, budget_option(min=1, max=MAX_LIMIT, help="Most calls in a minute.")
    ] = None
    max_concurrency: Annotated[
        int | None, budget_option(min=1, max=MAX_LIMIT, help="Most calls at once.")
    ] = None
    judge_calls_per_day: Annotated[
        int | None,
        budget_option(min=0, max=MAX_LIMIT, help="Most calls to language models in a day (UTC)."),
    ] = None
    cost_per_day: Annotated[
        float | None,
        budget_option(min=0, max=MAX_LIMIT, help="Most money for language models in a day (UTC)."),
    ] = None
    weight: Annotated[
        int | None,
        budget_option(min=1, max=MAX_WEIGHT, help="Share of a caller where several queue; 1."),
    ] = None


_Scopes = Annotated[
    list[str],
    access_option(metavar="SCOPE", help="score, extract, judge or admin; repeatable."),
]
_KeyId = Annotated[str, argument(metavar="ID", help="Id of the key, from keys list.")]


@keys_app.command(epilog=examples("hallujudge keys create ana --scope score --expires 90d"))
def create(
    name: Annotated[str, argument(metavar="NAME", help="Whose key it is.")],
    *,
    scope: _Scopes,
    expires: Annotated[
        str, access_option(metavar="WHEN", help="End: 90d, 12h, or a day such as 2027-01-31.")
    ] = "",
    limits: KeyLimits,
    file: _File = None,
) -> None:
    """Make a key and print it, once."""
    path = _keys_path(file)
    key = create_key(
        path,
        name,
        scopes=_scopes(scope),
        expires=_end("--expires", expires),
        limits=Limits(**given_of(limits)),
    )
    _show_key(key, path)
    _warn_of_small_budget(limits)


def _warn_of_small_budget(limits: KeyLimits) -> None:
    """Say that no call fits into a day's money, as far as this machine's settings have prices."""
    if limits.cost_per_day is None:
        return
    if (prices := cli.prices_of(load_settings().judges, "llm")) is None:
        return
    if (least := cli.least_cost(prices)) > limits.cost_per_day:
        click.echo(
            f"note: --cost-per-day {limits.cost_per_day:g} is less than one call of the judge may "
            f"cost: at least {least:.6f} is reserved before it is sent, so this key can make none",
            err=True,
        )


def _scopes(given: Sequence[str]) -> tuple[Scope, ...]:
    known = {one.value: one for one in Scope}
    scopes = [part.strip() for text in given for part in text.split(",")]
    if unknown := [one for one in scopes if one not in known]:
        raise InvalidInputError(
            f"--scope {unknown[0]!r:.80} does not exist; {choose_from(unknown[0], known)}"
        )
    return tuple(known[one] for one in dict.fromkeys(scopes))


def _show_key(key: str, path: Path, more: str = "") -> None:
    # Alone on standard output, so that a script can take it from there.
    click.echo(key)
    click.echo(
        f"note: {path} keeps only its hash, so this is the only time that the key is shown. Give "
        "it to clients as HALLUJUDGE_API_KEY, or in a file that HALLUJUDGE_API_KEY_FILE names"
        f"{more}",
        err=True,
    )


@keys_app.command(epilog=examples("hallujudge keys edit k3jd7a2m --cost-per-day 40"))
def edit(
    key_id: _KeyId,
    *,
    name: Annotated[str | None, access_option(help="Whose key it is.")] = None,
    scope: _Scopes = [],  # noqa: B006 - it is copied for each call
    expires: Annotated[
        str, access_option(metavar="WHEN", help="End: 90d, 12h, a day, or never.")
    ] = "",
    limits: KeyLimits,
    no_limit: Annotated[
        list[str],
        budget_option(metavar="LIMIT", help="Limit to remove; repeatable."),
    ] = [],  # noqa: B006 - it is copied for each call
    file: _File = None,
) -> None:
    """Change a key; its secret, jobs and what it spent stay."""
    changes: dict[str, Any] = {} if name is None else {"name": name}
    changes |= {"scopes": _scopes(scope)} if scope else {}
    if expires:
        changes["expires"] = "" if expires == "never" else _end("--expires", expires)
    given = given_of(limits) | _removed(no_limit, limits)
    if not changes and not given:
        raise InvalidInputError(
            "there is nothing to change; give --name, --scope, --expires, a limit or --no-limit"
        )
    key = edit_key(_keys_path(file), key_id, limits=given, **changes)
    click.echo(_key_line(key, now(), None))
    _warn_of_small_budget(limits)


def _removed(names: Sequence[str], limits: KeyLimits) -> dict[str, None]:
    """Return the limits to remove."""
    known = {name.replace("_", "-"): name for name in _LIMITS}
    for name in names:
        if name not in known:
            raise InvalidInputError(f"--no-limit {name!r:.80}: {choose_from(name, known)}")
        if known[name] in given_of(limits):
            raise InvalidInputError(f"--no-limit {name} contradicts --{name}; give one of them")
    return dict.fromkeys(known[name] for name in names)


@keys_app.command(epilog=examples("hallujudge keys rotate k3jd7a2m --old-until 2h"))
def rotate(
    key_id: _KeyId,
    *,
    old_until: Annotated[
        str,
        access_option(metavar="WHEN", help="End of the old secret: now, 10m, 2h, 1d."),
    ] = _NOW,
    file: _File = None,
) -> None:
    """Give a key another secret and print it, once; jobs, budgets and name stay."""
    path, until = _keys_path(file), "" if old_until == _NOW else _end("--old-until", old_until)
    key = rotate_key(path, key_id, old_until=until)
    ended = f"The old secret works until {until}" if until else "The old secret has ended"
    _show_key(key, path, f". {ended}; running servers learn of both within a second")


@keys_app.command("list", epilog=examples("hallujudge keys list --file keys.json"))
def list_keys(file: _File = None) -> None:
    """Print the keys, without their secrets, and what they spent today."""
    path = _keys_path(file)
    moment, keys = now(), read_keys(path)
    ledger = _ledger(path)
    try:
        for key in keys:
            click.echo(_key_line(key, moment, ledger))
    finally:
        if ledger is not None:
            ledger.close()


@keys_app.command(epilog=examples("hallujudge keys revoke k3jd7a2m --file keys.json"))
def revoke(
    key_id: _KeyId,
    *,
    file: _File = None,
) -> None:
    """End a key; servers refuse it within a second."""
    key = revoke_key(_keys_path(file), key_id)
    click.echo(f"revoked {key.id} ({key.name})")


def _keys_path(file: Path | None) -> Path:
    if file is not None:
        return file
    if not (known := load_settings().server.access.keys_file):
        raise InvalidInputError(
            "no file of keys is named; give --file, or set HALLUJUDGE_KEYS_FILE"
        )
    return Path(known)


def _ledger(keys: Path) -> Ledger | None:
    """Return the ledger of the keys' spending; None, with a note, if its file is not found.

    A server keeps it in its data folder, where the file of keys often is too.
    """
    settings = load_settings()
    path = spending_path(settings)
    beside = keys.with_name(path.name)
    if not settings.server.access.spending_file and beside.exists():
        path = beside
    if path.exists():
        return cli.Ledger(path)
    click.echo(
        f"note: nothing is known to be spent: there is no {path}. If the server of these keys has "
        "another data folder, name its file of spending with HALLUJUDGE_SPENDING_FILE",
        err=True,
    )
    return None


def _end(option: str, text: str) -> str:
    """Return when a key or a secret ends, as the file has it."""
    if not text:
        return ""
    moment = datetime.now(UTC)
    if match := _PERIOD.fullmatch(text):
        left = int(match["number"]) * _PERIODS[match["unit"]]
        problem = "such a key is never valid"
    else:
        left = _day(option, text) - moment
        problem = "a key ends as that day begins (00:00 UTC), which is past"
    if left <= timedelta():
        raise InvalidInputError(f"{option} {text:.40}: {problem}; give a later end")
    if left > timedelta(days=_MOST_DAYS):
        raise InvalidInputError(
            f"{option} {text:.40}: that is more than {_MOST_DAYS} days; give an earlier end, or "
            "leave --expires out for a key without an end"
        )
    return (moment + left).strftime("%Y-%m-%dT%H:%M:%SZ")


def _day(option: str, text: str) -> datetime:
    """Return the beginning of a day."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as err:
        raise InvalidInputError(
            f"{option} {text!r:.40}: write 90d, 12h, 10m, or a day such as 2027-01-31"
        ) from err


def _key_line(key: ApiKey, moment: str, ledger: Ledger | None) -> str:
    limits = {name: value for name in _LIMITS if (value := getattr(key.limits, name)) is not None}
    parts = [
        key.id,
        key.name,
        key.state(moment),
        ",".join(scope.value for scope in key.scopes),
        f"created {key.created}",
        f"ends {key.expires}" if key.expires else "never ends",
        # Times are texts of one form, which sort as the times do.
        *([f"old secret until {key.old_until}"] if key.old_until > moment else []),
        *(f"{name.replace('_', ' ')} {value:g}" for name, value in limits.items()),
        *([f"weight {key.limits.weight}"] if key.limits.weight > 1 else []),
    ]
    if ledger is not None and (spent := ledger.spent(key.id)).calls:
        parts.append(f"today {spent.calls} judge calls, cost {spent.cost:.4f}")
    return "  ".join(parts)
