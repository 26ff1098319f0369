"""Options that choose judges: their names and order, small judges, and escalation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast, get_args

from msgspec.structs import replace

from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.framework.metric import SEES, SOFT, YES, JudgeOption

from ..errors import InvalidInputError
from ..judges import registered_judges
from ..judges.judge_rules import Escalation, PanelRule, ShareRule
from ..judges.questions import WORDINGS
from ..judges.small_judges import SERVED_JUDGES, ServedPreset
from ..llm.call_policy import RetryPolicy
from ..llm.chat import ApiName, Dialect, Sampling
from ..llm.chat_servers import BatchFiles
from ..llm.chat_settings import ChatSettings
from ..llm.http import Endpoint
from ..matchers import SMALL_JUDGES, MatcherSettings, SmallPreset
from ..settings.connection import Secret, environment_proxy, hosted_by, listed
from ..settings.judge_settings import JudgeSettings

if TYPE_CHECKING:
    from .spec import ScoreSpec

LOCAL_JUDGES = ("matcher", *SMALL_JUDGES)
"""The names of judges that run in this process."""
ALL_SMALL_JUDGES: Mapping[str, SmallPreset | ServedPreset] = {**SMALL_JUDGES, **SERVED_JUDGES}
"""The small judges on this machine and behind servers, by name."""
JUDGE_NAMES = ("matcher", "llm", "router", *ALL_SMALL_JUDGES)
"""The names of our judges; the router calls the judges of ``judge_order``."""
LLM_NAMES = ("llm", "fallback")
"""The judges that are language models of the settings."""
MEMBERS = ("llm", "fallback", "matcher", *ALL_SMALL_JUDGES)
"""The judges that a panel may have."""
# Batch files replace servers, but an endpoint needs an address; .invalid is never resolved.
NOWHERE = "http://batch.invalid/v1"
ESCALATION_OPTIONS = (
    JudgeOption(
        name="escalate_below",
        meaning="Margin below which the next judge is asked.",
        details="Without a next judge, such a verdict is unscored.",
        number=True,
    ),
    JudgeOption(
        name="cascade",
        meaning="cascade.json with such a margin, learnt from labels.",
        file=True,
    ),
    JudgeOption(
        name="abstain",
        choices=("no", "yes"),
        meaning="Whether small margins are left unscored.",
        details="yes asks no other judge about them.",
    ),
)
"""How the first judge's margins are used."""


SHARE_OPTION = JudgeOption(
    name="min_choice_share",
    meaning="Share of the choices below which a claim is unscored.",
    details="How likely a language model would write a choice if nothing kept it from other words; "
    "this costs one more call for each claim.",
    number=True,
)
"""Which judges' verdicts are not kept, because the judge would rather write something else."""


PANEL_OPTIONS = (
    JudgeOption(
        name="panel",
        meaning="Judges that vote on each claim, with commas between.",
        details="Such as llm,matcher,minicheck; llm:reworded_2 asks in other words and order.",
    ),
    JudgeOption(
        name="panel_share",
        meaning="Share of claims on which all judges vote.",
        details="The first one alone decides the others.",
        number=True,
    ),
    JudgeOption(
        name="panel_weights",
        meaning="panel.json with weights of the judges' votes.",
        details="Without it, the majority decides.",
        file=True,
    ),
)
"""Who votes in a panel, and how votes are combined."""


def others_judges() -> tuple[str, ...]:
    """Return the judges of other packages; none of them takes the name of one of ours."""
    return registered_judges(frozenset({*JUDGE_NAMES, *MEMBERS, SEES}))


def judge_names() -> tuple[str, ...]:
    """Return the names of all judges: ours, and those of other packages."""
    return (*JUDGE_NAMES, *others_judges())


def judges_of(settings: JudgeSettings, name: str) -> list[str]:
    """Return the judges that are asked under a name, in order.

    Args:
        settings: Have the router's order, and whether there is a fallback.
        name: One of :func:`judge_names`.

    Raises:
        InvalidInputError: The name or the setting ``judge_order`` cannot be used.
    """
    if name not in judge_names():
        step = choose_from(name, judge_names())
        raise InvalidInputError(f"judge {name!r} does not exist; {step}")
    if name != "router":
        return [name]
    order = listed(settings.judge_order)
    known = (*LOCAL_JUDGES, *SERVED_JUDGES, "llm", "fallback", *others_judges())
    if unknown := [part for part in order if part not in known]:
        raise InvalidInputError(
            f"judge_order names {', '.join(unknown)}; {choose_from(unknown[0], known)}"
        )
    # The fallback is optional, and skipped unless it is configured.
    chosen = [part for part in order if part != "fallback" or settings.fallback.model]
    if not chosen:
        raise InvalidInputError(
            f"judge_order is {settings.judge_order!r}, but none of these judges is "
            f"configured; name some of {', '.join(known)}; the fallback needs fallback.model"
        )
    return chosen


def escalation_of(spec: ScoreSpec) -> Escalation | None:
    """Return which verdicts of the first judge are not kept, or None if all are.

    Raises:
        InvalidInputError: An option can't be used.
    """
    options = {option.name: spec.options.get(option.name, "") for option in ESCALATION_OPTIONS}
    return Escalation.of(
        below=options["escalate_below"], cascade=options["cascade"], abstain=options["abstain"]
    )


def share_rule_of(spec: ScoreSpec) -> ShareRule:
    """Return of which claims the share of the choices is measured, and which share is enough.

    Raises:
        InvalidInputError: The option can't be used.
    """
    return ShareRule.of(spec.options.get(SHARE_OPTION.name, ""), spec.claims)


def panel_of(spec: ScoreSpec) -> PanelRule | None:
    """Return the panel of a run's options, or None without one.

    Raises:
        InvalidInputError: An option can't be used, or contradicts a panel.
    """
    members, share, weights = (spec.options.get(each.name, "") for each in PANEL_OPTIONS)
    rule = PanelRule.of(members=members, share=share, weights=weights)
    if rule is None:
        return None
    others = [name for name in ("judge", "escalate_below", "cascade") if spec.options.get(name)]
    if others:
        raise InvalidInputError(
            f"the options panel and {others[0]} are both given; a panel has no order, so give one "
            "of them"
        )
    if spec.options.get(SOFT) == YES and not rule.weights:
        raise InvalidInputError(
            "the option soft needs probabilities, and a majority gives none; set the option "
            "panel_weights"
        )
    return rule


def member_of(name: str) -> tuple[str, str]:
    """Return the judge that a member of a panel names, and its wording; empty for the usual one.

    Raises:
        InvalidInputError: There is no such judge or wording.
    """
    judge, _, wording = name.partition(":")
    known = (*MEMBERS, *others_judges())
    if judge not in known or (wording and (judge not in LLM_NAMES or wording not in WORDINGS)):
        raise InvalidInputError(
            f"the option panel names {name!r:.100}; {choose_from(judge, known)}, and "
            f"{', '.join(f'llm:{each}' for each in WORDINGS)} for other words and orders"
        )
    return judge, wording


def read_small_models(text: str) -> Mapping[str, str]:
    """Return the models of the setting ``small.models`` by judge.

    Args:
        text: Entries such as ``hhem=/models/hhem``, with commas between.

    Raises:
        InvalidInputError: An entry is not a small judge with its model.
    """
    found = {}
    for entry in listed(text):
        judge, _, model = (part.strip() for part in entry.partition("="))
        if judge not in ALL_SMALL_JUDGES or not model:
            raise InvalidInputError(
                f"small.models has the entry {entry!r}; write JUDGE=MODEL with one of "
                f"{', '.join(ALL_SMALL_JUDGES)} and a folder, a hub id or a server's name for it"
            )
        found[judge] = model
    return found


def configured_small_judges(settings: JudgeSettings) -> list[str]:
    """Return the small judges that the settings name: with a model, or in the router's order."""
    named = {*read_small_models(settings.small.models), *listed(settings.judge_order)}
    return [name for name in ALL_SMALL_JUDGES if name in named]


def offered_judges(models: Iterable[str], listed: Iterable[str]) -> tuple[str, ...]:
    """Return the judges on its machine that a server offers: those whose model it offers.

    Args:
        models: The models that callers may name.
        listed: The judges of the setting ``small.models``.
    """
    ids, names = {*models}, {*listed}
    small = SMALL_JUDGES.values()
    return ("matcher", *(p.name for p in small if p.model in ids or p.name in names))


def served_in_order(settings: JudgeSettings) -> list[str]:
    """Return the router's small judges behind a server, if a server is configured."""
    order = listed(settings.judge_order) if settings.small.url else ()
    return [name for name in ALL_SMALL_JUDGES if name in order and is_served(name, settings)]


def is_served(name: str, settings: JudgeSettings) -> bool:
    """Return whether a judge is a small one behind a server."""
    return name in SERVED_JUDGES or (name in SMALL_JUDGES and settings.small.api != "chat")


def _api_of(preset: ServedPreset | SmallPreset, settings: JudgeSettings) -> ApiName:
    """Return how the server of a small judge is asked.

    Raises:
        InvalidInputError: The judge is not asked in that way.
    """
    right: ApiName | None = "chat"
    if isinstance(preset, SmallPreset):
        # vLLM scores pairs by one number, and classifies single texts.
        right = "score" if not preset.template else None
        right = "classify" if preset.head == "second" else right
    if right is None or settings.small.api != right:
        raise InvalidInputError(
            f"small.api is {settings.small.api!r}, and judge {preset.name} "
            + (f"is asked by {right}" if right else "runs in this process only: set it to chat")
        )
    return right


def settings_of(
    name: str, settings: MatcherSettings | None, models: Mapping[str, str]
) -> MatcherSettings:
    """Return the settings with which the matcher or a small judge is opened.

    Args:
        name: ``matcher``, or the name of a small judge.
        settings: What the caller chose, or None for the defaults.
        models: The models of the setting ``small.models``.
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
            f"judges ({', '.join(small)}); name their models in the setting small.models"
        )


def served_chat(
    preset: ServedPreset | SmallPreset,
    settings: JudgeSettings,
    key: Secret,
    offline: BatchFiles | None,
) -> ChatSettings:
    """Return how the server of a small judge is called.

    Args:
        preset: The small judge.
        settings: The settings of the judges.
        key: The server's API key.
        offline: Files of requests and replies that replace the server, if any.

    Raises:
        InvalidInputError: No server is configured.
    """
    if not settings.small.url and offline is None:
        raise InvalidInputError(
            f"judge {preset.name} needs a server; set small.url to its base address",
            reason="JUDGE_NOT_CONFIGURED",
        )
    return ChatSettings(
        endpoint=Endpoint(
            url=settings.small.url or NOWHERE,
            key=key,
            proxy=settings.llm.proxy or environment_proxy(settings.small.url),
            timeout_seconds=settings.llm.timeout_seconds,
        ),
        model=read_small_models(settings.small.models).get(preset.name, preset.model),
        reply_models=("*",),
        dialect="vllm",
        api=_api_of(preset, settings),
        # It would wrap the two words that the model learnt in JSON.
        constraint="none",
        sampling=Sampling(seed=settings.llm.seed),
        retry=retry_policy(settings),
        max_concurrency=settings.llm.max_concurrency,
        offline=offline,
    )


def dialect_of(setting: str, name: str, url: str) -> Dialect:
    """Return the dialect of a judge.

    Args:
        setting: The setting's name.
        name: Its value.
        url: The judge's address.

    Raises:
        InvalidInputError: There is no such dialect.
    """
    if name == "auto":
        return "openai" if hosted_by(url) else "vllm"
    if name not in get_args(Dialect):
        raise InvalidInputError(f"{setting} is {name!r}; {choose_from(name, get_args(Dialect))}")
    return cast("Dialect", name)


def check_api(name: str, api: str, endpoint: Endpoint, *, offline: bool) -> None:
    """Refuse a way of asking that what is asked does not have.

    Args:
        name: ``llm`` or ``fallback``.
        api: How it is asked.
        endpoint: Its server.
        offline: Whether files take the place of the server.

    Raises:
        InvalidInputError: It cannot be asked in that way.
    """
    if api != "chat" and offline:
        raise InvalidInputError(
            f"{name}.api is {api!r}, and batch files hold requests of chat; set {name}.api to chat"
        )
    if api == "scoring" and endpoint.sender != "http":
        raise InvalidInputError(
            f"{name}.api is 'scoring', which vLLM has; OpenAI's package calls {endpoint.url}: set "
            f"{name}.api to decisions or chat, or {name}.sender to http"
        )


def retry_policy(settings: JudgeSettings) -> RetryPolicy:
    """Return how failed calls to language models are repeated."""
    return RetryPolicy(
        attempts=settings.llm.attempts,
        outage_seconds=settings.outage_seconds,
        give_up_after=settings.give_up_after,
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
