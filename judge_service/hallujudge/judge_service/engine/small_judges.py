"""Models of small judges from the settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..errors import InvalidInputError
from ..judges.served import SERVED_JUDGES, ServedPreset
from ..llm.batch_files import BatchFiles
from ..llm.chat import Sampling
from ..llm.client import ChatSettings
from ..llm.http import Endpoint
from ..llm.retry import RetryPolicy
from ..matchers.presets import SMALL_JUDGES, SmallPreset
from ..matchers.values import MatcherSettings
from ..settings.judges import JudgeSettings
from ..settings.secret import Secret

__all__ = [
    "ALL_SMALL_JUDGES",
    "check_one_model",
    "configured_small_judges",
    "offered_judges",
    "read_small_models",
    "served_chat",
    "served_in_order",
    "settings_of",
    "small_judge_table",
]

ALL_SMALL_JUDGES: Mapping[str, SmallPreset | ServedPreset] = {**SMALL_JUDGES, **SERVED_JUDGES}
"""The small judges on this machine and behind servers, by name."""


def read_small_models(text: str) -> Mapping[str, str]:
    """Return the models of the setting ``small_models`` by judge.

    Args:
        text: Entries such as ``hhem=/models/hhem``, with commas between.

    Raises:
        InvalidInputError: An entry is not a small judge with its model.
    """
    found = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        judge, _, model = (part.strip() for part in entry.partition("="))
        if judge not in ALL_SMALL_JUDGES or not model:
            raise InvalidInputError(
                f"small_models has the entry {entry!r}; write JUDGE=MODEL with one of "
                f"{', '.join(ALL_SMALL_JUDGES)} and a folder, a hub id or a server's name for it"
            )
        found[judge] = model
    return found


def configured_small_judges(settings: JudgeSettings) -> list[str]:
    """Return the small judges that the settings name: with a model, or in the router's order."""
    order = {part.strip() for part in settings.judge_order.split(",")}
    named = {*read_small_models(settings.small_models), *order}
    return [name for name in ALL_SMALL_JUDGES if name in named]


def offered_judges(models: Iterable[str], listed: Iterable[str]) -> tuple[str, ...]:
    """Return the judges on its machine that a server offers: those whose model it offers.

    Args:
        models: The models that callers may name.
        listed: The judges of the setting ``small_models``.
    """
    ids, names = {*models}, {*listed}
    small = SMALL_JUDGES.values()
    return ("matcher", *(p.name for p in small if p.model in ids or p.name in names))


def served_in_order(settings: JudgeSettings) -> list[str]:
    """Return the router's small judges behind a server, if a server is configured."""
    order = {part.strip() for part in settings.judge_order.split(",")}
    return [name for name in SERVED_JUDGES if name in order and settings.small_url]


def settings_of(
    name: str, settings: MatcherSettings | None, models: Mapping[str, str]
) -> MatcherSettings:
    """Return the settings with which the matcher or a small judge is opened.

    Args:
        name: ``matcher``, or the name of a small judge.
        settings: What the caller chose; None: the defaults.
        models: The models of the setting ``small_models``.
    """
    settings = settings or MatcherSettings()
    if name not in SMALL_JUDGES:
        return settings
    model = settings.small_model or models.get(name, "")
    return replace(settings, protocol=name, small_model=model)


def check_one_model(order: Sequence[str], settings: MatcherSettings | None) -> None:
    """Refuse a model that would be that of several small judges.

    Raises:
        InvalidInputError: ``small_model`` is set, and the judges have several small ones.
    """
    small = [part for part in order if part in SMALL_JUDGES]
    if settings is not None and settings.small_model and len(small) > 1:
        raise InvalidInputError(
            f"small_model is {settings.small_model!r}, but judge_order has {len(small)} small "
            f"judges ({', '.join(small)}); name their models in the setting small_models"
        )


def served_chat(
    preset: ServedPreset, settings: JudgeSettings, key: Secret, offline: BatchFiles | None
) -> ChatSettings:
    """Return how the server of a small judge is called.

    Args:
        preset: The small judge.
        settings: The settings of the judges.
        key: The server's API key.
        offline: Files of requests and replies in place of servers; None: the server is called.

    Raises:
        InvalidInputError: No server is configured.
    """
    if not settings.small_url and offline is None:
        raise InvalidInputError(
            f"judge {preset.name} needs a server; set small_url to its base address",
            reason="JUDGE_NOT_CONFIGURED",
        )
    return ChatSettings(
        endpoint=Endpoint(
            url=settings.small_url or "http://batch.invalid/v1",
            key=key,
            timeout_seconds=settings.llm_timeout_seconds,
        ),
        model=read_small_models(settings.small_models).get(preset.name, preset.model),
        reply_models=("*",),
        dialect="vllm",
        constraint="none",
        sampling=Sampling(seed=settings.llm_seed),
        retry=RetryPolicy(
            attempts=settings.llm_attempts,
            outage_seconds=settings.outage_seconds,
            give_up_after=settings.give_up_after,
        ),
        max_concurrency=settings.llm_max_concurrency,
        offline=offline,
    )


def small_judge_table() -> str:
    """Return what is known of each small judge, as a Markdown table."""
    lines = [
        "| judge | model, licence | input | reported accuracy, source | measured on Tri-HE |",
        "|---|---|---|---|---|",
    ]
    for each in ALL_SMALL_JUDGES.values():
        where = "server, " if each.name in SERVED_JUDGES else ""
        model = each.model or "a folder or hub id of yours"
        lines.append(
            f"| `{each.name}` | {where}{each.title}: {model}; {each.licence} | {each.shown} | "
            f"{each.reported or 'no figure found'} | {each.measured} |"
        )
    return "\n".join(lines) + "\n"
