"""Building of judges and extractors from settings."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from msgspec import structs

from ..errors import InvalidInputError
from ..judges import Judge, registered_judge
from ..judges.choice_judge import ChoiceJudge
from ..judges.judge_rules import Escalation, PanelRule, ShareRule
from ..judges.llm_judge import LlmJudge
from ..judges.several_judges import Panel, Router
from ..judges.small_judges import MatcherJudge, PooledJudge, ServedJudge, ServedPreset
from ..llm.budget import Budget, CallBudget, Prices, SharedCalls, Usage, VerdictStore
from ..llm.chat import ApiName, Sampling
from ..llm.chat_servers import BatchFiles
from ..llm.chat_settings import ChatSettings
from ..llm.client import ChatClient
from ..llm.http import Endpoint, SenderName
from ..llm.prompt_templates import Template
from ..llm.verdict_cache import VerdictCache
from ..llm.vllm_serving import AddedArguments
from ..matchers import MatcherSettings, TextComparer
from ..settings.connection import Secret, environment_proxy, hosted_by, listed, masked
from ..settings.judge_settings import JudgeKeys, JudgeSettings
from ..tenancy import JudgeState, MemoryBudget, Spending
from .judge_options import (
    ALL_SMALL_JUDGES,
    LLM_NAMES,
    LOCAL_JUDGES,
    NOWHERE,
    check_api,
    check_one_model,
    dialect_of,
    is_served,
    judges_of,
    member_of,
    others_judges,
    read_small_models,
    retry_policy,
    served_chat,
    served_in_order,
    settings_of,
)
from .streams import RunProgress

if TYPE_CHECKING:
    from ..matchers.matcher_models import MatcherModels

_ExtractorT = TypeVar("_ExtractorT")


class JudgeFactory:
    """Builds each judge and extractor of the settings once; safe to use from several threads.

    Args:
        settings: The settings of the judges.
        keys: The judges' API keys.
        llm_endpoint: The endpoint of a judge that this process started, in place of the settings'.
        ledger: The spending of callers' keys, if there are keys.
        memory: The memory budget of the process, for matchers' models, if there is one.
        shared: Verdict store and budgets of other processes, in place of those of the settings.
    """

    def __init__(
        self,
        settings: JudgeSettings | None = None,
        keys: JudgeKeys | None = None,
        llm_endpoint: Endpoint | None = None,
        ledger: Spending | None = None,
        memory: MemoryBudget | None = None,
        shared: SharedCalls | None = None,
    ) -> None:
        self.settings = settings or JudgeSettings()
        self._keys = keys or JudgeKeys()
        self._llm_endpoint = llm_endpoint
        self._ledger = ledger
        self._memory = memory
        # Reentrant: a judge is built under it, and asks for the cache and the budget.
        self._lock = threading.RLock()
        self._elsewhere = shared
        self._cache: VerdictStore | None = shared.verdicts if shared is not None else None
        self._shared: Budget | None = None
        self._batch: BatchFiles | None = None
        self._judges: dict[str, LlmJudge] = {}
        self._models: MatcherModels | None = None

    def check(self) -> None:
        """Reject settings that cannot work: addresses, dialects, the judge order, the cache file.

        A server calls it at start, so that a mistake is found before the first run.

        Raises:
            InvalidInputError: A setting cannot be used.
        """
        settings = self.settings
        if settings.llm.url or self._llm_endpoint:
            self.llm()
        if settings.fallback.model:
            self.llm("fallback")
        # The default order may name judges that are not configured; only a router's run needs them.
        if settings.judge_order != type(settings)().judge_order:
            judges_of(settings, "router")
        read_small_models(settings.small.models)
        if self.cache is not None:
            self.cache.check()

    def judge(
        self,
        name: str,
        matcher: MatcherSettings | None = None,
        escalation: Escalation | None = None,
        measuring: ShareRule | None = None,
    ) -> Router:
        """Return a judge by name, such as ``matcher``; ``router``: the judges of ``judge_order``.

        This loads the models of matchers and small judges: call it in a thread.

        Args:
            name: The judge's name.
            matcher: The settings of matchers and small judges, or None for the defaults.
            escalation: The rule by which verdicts of the first judge are not kept, if any.
            measuring: Of which claims the share of the choices is measured, and which is enough.

        Raises:
            InvalidInputError: The name is unknown, the judge is not configured, the escalation was
                learnt from another judge, or no share can be measured.
        """
        order = judges_of(self.settings, name)
        check_one_model(order, matcher)
        return Router([self._one(part, matcher) for part in order], escalation, measuring)

    def panel(
        self,
        rule: PanelRule,
        matcher: MatcherSettings | None = None,
        measuring: ShareRule | None = None,
    ) -> Panel:
        """Return the judges of a panel, which loads the models of matchers and small judges.

        Args:
            rule: Its members, and how their votes are combined.
            matcher: The settings of matchers and small judges, or None for the defaults.
            measuring: Of which claims the share of the choices is measured, and which is enough.

        Raises:
            InvalidInputError: A member does not exist, or is not configured, or no share can be
                measured.
        """
        check_one_model(rule.members, matcher)
        named = [member_of(name) for name in rule.members]
        judges = [self.llm(j).worded(w) if w else self._one(j, matcher) for j, w in named]
        return Panel(judges, rule, measuring)

    def matcher_weights(self, name: str, matcher: MatcherSettings) -> str:
        """Return the SHA-256 of a judge's sentence encoder, or empty if it has no matcher.

        This loads the matcher's encoder, which :meth:`judge` then shares.

        Args:
            name: The judge's name.
            matcher: The settings of the matcher.

        Raises:
            InvalidInputError: The name is unknown, or the judge is not configured.
        """
        if "matcher" not in judges_of(self.settings, name):
            return ""
        return self._matcher_models().weights(self._downloading(matcher))

    def text_comparer(self, model: str) -> TextComparer:
        """Return the vectors of an encoder, which this loads: a name, a model id or a folder."""
        settings = self._downloading(MatcherSettings(model=model))
        return self._matcher_models().comparer(settings)

    @property
    def small_models(self) -> Mapping[str, str]:
        """The models of small judges in the settings, by judge."""
        return read_small_models(self.settings.small.models)

    def choice_judge(
        self,
        name: str,
        templates: Sequence[Template],
        escalation: Escalation | None = None,
        measuring: ShareRule | None = None,
    ) -> ChoiceJudge:
        """Return what asks language models to choose: ``llm``, or the models of ``judge_order``.

        Args:
            name: ``llm`` or ``router``.
            templates: The prompts of its questions.
            escalation: The rule by which choices of the first judge are not kept, if any.
            measuring: Of which questions the share of the choices is measured, and which is enough.

        Raises:
            InvalidInputError: No language model is configured, the escalation was learnt from
                another judge, or no share can be measured.
        """
        return ChoiceJudge(self.llms(name), templates, escalation, measuring)

    def llms(self, name: str, able: str = "") -> list[LlmJudge]:
        """Return the models of ``llm`` or ``router``, in order; ``able`` ends the error's noun.

        Raises:
            InvalidInputError: ``judge_order`` has none, or one is not configured.
        """
        names = [part for part in judges_of(self.settings, name) if part in LLM_NAMES]
        if not names:
            raise InvalidInputError(
                f"judge_order is {self.settings.judge_order!r}, which has no language model{able}; "
                "name llm or fallback"
            )
        return [self.llm(part) for part in names]

    def llm(self, name: str = "llm") -> LlmJudge:
        """Return the judge ``llm`` or ``fallback``.

        Raises:
            InvalidInputError: The judge is not configured.
        """
        with self._lock:
            if name not in self._judges:
                self._judges[name] = self._fallback() if name == "fallback" else self._llm()
            return self._judges[name]

    def served(self, name: str) -> ServedJudge | PooledJudge:
        """Return a small judge behind a server, with its default threshold.

        Args:
            name: The judge's name.

        Raises:
            InvalidInputError: Its server is not configured.
        """
        with self._lock:
            if name not in self._judges:
                preset = ALL_SMALL_JUDGES[name]
                chat = served_chat(preset, self.settings, self._keys.small, self._offline())
                client = ChatClient(chat, self._call_budget("llm"), store=self.cache)
                self._judges[name] = (
                    ServedJudge(preset, client, self.cache)
                    if isinstance(preset, ServedPreset)
                    else PooledJudge(preset, client, self.cache)
                )
            kept = self._judges[name]
        assert isinstance(kept, (ServedJudge, PooledJudge)), "its name is not another judge's"
        return kept

    def extractor(self, made_by: Callable[..., _ExtractorT], **options: str | int) -> _ExtractorT:
        """Return an extractor that uses the judge's model.

        Args:
            made_by: Its class.
            options: What it takes besides client, cache and revision.
        """
        revision = self.settings.llm.revision
        return made_by(self.llm().client, cache=self.cache, revision=revision, **options)

    @property
    def cache(self) -> VerdictStore | None:
        """The verdict cache, or None if the settings do not name a file."""
        with self._lock:
            if self._cache is None and (path := self.settings.verdict_cache):
                self._cache = VerdictCache(path, beside=self.settings.known_verdicts)
            return self._cache

    def states(self) -> list[JudgeState]:
        """Return the state of each language model that was called."""
        with self._lock:
            return [judge.client.state for judge in self._judges.values()]

    def progress(self) -> RunProgress:
        """Return how many calls of language models were answered, and what others wait for."""
        with self._lock:
            clients = [judge.client for judge in self._judges.values()]
        each = [client.statistics for client in clients]
        took = Usage.total(statistics.usage for statistics in each)
        return RunProgress(
            answers=sum(statistics.answered for statistics in each),
            tokens=took.prompt_tokens + took.completion_tokens,
            cost=took.cost,
            reused=sum(statistics.reused for statistics in each),
            waiting="; ".join(filter(None, (client.waiting for client in clients))),
        )

    async def prepare(self, *, asks: bool = True) -> None:
        """Open the cache and learn what the servers are, by a question too if one may be asked.

        Raises:
            InvalidInputError: The cache file cannot be used.
        """
        if self.cache is not None:
            await self.cache.open()
        # Signatures contain the versions, so they must be known before a pipeline is opened.
        names = ["llm"] if self.settings.llm.model or self.settings.vllm.model else []
        names += ["fallback"] if self.settings.fallback.model else []
        for judge in (*map(self.llm, names), *map(self.served, served_in_order(self.settings))):
            await judge.prepare(asks=asks)

    async def close(self) -> None:
        """Close connections and the cache."""
        for judge in self._judges.values():
            await judge.close()
        if self._cache is not None:
            await self._cache.close()
            self._cache = None

    def _one(self, name: str, matcher: MatcherSettings | None) -> Judge:
        if name in others_judges():
            return registered_judge(name)
        if is_served(name, self.settings):
            served = self.served(name)
            return served.with_threshold(matcher.small_above) if matcher else served
        if name not in LOCAL_JUDGES:
            return self.llm(name)
        chosen = settings_of(name, matcher, self.small_models)
        return MatcherJudge(self._matcher_models().open(self._downloading(chosen)), name)

    def _downloading(self, settings: MatcherSettings) -> MatcherSettings:
        """Return the settings, with downloads allowed where the judges' settings allow them."""
        allowed = settings.allow_download or bool(self.settings.matcher.download)
        return structs.replace(settings, allow_download=allowed)

    def _matcher_models(self) -> MatcherModels:
        with self._lock:
            if self._models is None:
                # numpy takes longer than all else, and language models need none.
                from ..matchers.matcher_models import MatcherModels

                self._models = MatcherModels(memory=self._memory)
            return self._models

    def _llm(self) -> LlmJudge:
        settings = self.settings
        # With `--served-model-name`, vLLM knows the model by that name alone.
        model = settings.llm.model or AddedArguments.of(settings.vllm.arguments).served_name
        model = model or settings.vllm.model
        if not (settings.llm.url or self._llm_endpoint or self._offline()) or not model:
            raise InvalidInputError(
                "no llm judge is configured: llm.url is set without a model; set llm.model"
                if settings.llm.url
                else "no llm judge is configured; set llm.url and llm.model. A server can also "
                "start a model by itself: its setting vllm.model",
                reason="JUDGE_NOT_CONFIGURED",
            )
        return self._judge("llm", model, self._llm_endpoints(), settings.llm.revision)

    def _llm_endpoints(self) -> list[Endpoint]:
        """Return the judge's servers: the one that this process started, or those of the settings.

        Raises:
            InvalidInputError: An address is not a web address, or is given twice.
        """
        if self._llm_endpoint is not None:
            return [replace(self._llm_endpoint, timeout_seconds=self.settings.llm.timeout_seconds)]
        urls = listed(self.settings.llm.url) or (NOWHERE,)
        if len({url.rstrip("/") for url in urls}) < len(urls):
            raise InvalidInputError(
                f"llm.url names a server twice: {masked(self.settings.llm.url)}; name each once"
            )
        return [self._endpoint("llm", url, self._keys.llm) for url in urls]

    def _endpoint(self, name: str, url: str, key: Secret) -> Endpoint:
        """Return a server of ``llm`` or ``fallback``, with what sends to it."""
        settings = self.settings
        own = settings.language_model(name)
        sender = cast("SenderName", own.sender)
        if own.sender == "auto":
            of_vllm = name == "llm" or own.dialect == "vllm"
            sender = hosted_by(url) or ("http" if of_vllm else "openai")
        return Endpoint(
            url=url,
            key=key,
            sender=sender,
            deployment=settings.azure.deployment,
            api_version=settings.azure.api_version,
            entra=sender == "azure" and bool(settings.azure.entra),
            # OpenAI's package reads the environment itself.
            proxy=own.proxy or (environment_proxy(url) if sender == "http" else ""),
            timeout_seconds=settings.llm.timeout_seconds,
        )

    def _fallback(self) -> LlmJudge:
        settings = self.settings
        if not settings.fallback.model:
            raise InvalidInputError(
                "no fallback is configured; set fallback.model", reason="JUDGE_NOT_CONFIGURED"
            )
        endpoint = self._endpoint("fallback", settings.fallback.url, self._keys.fallback)
        return self._judge("fallback", settings.fallback.model, [endpoint])

    def _judge(
        self, name: str, model: str, endpoints: Sequence[Endpoint], revision: str = ""
    ) -> LlmJudge:
        """Return a language model, called as its group of settings says."""
        own = self.settings.language_model(name)
        endpoint, *replicas = endpoints
        batches = bool(self.settings.batch.requests or self.settings.batch.replies)
        check_api(name, own.api, endpoint, offline=batches)
        # Batch files are for vLLM or OpenAI, and a server that this process started is vLLM.
        is_known = batches or self._llm_endpoint is not None or hosted_by(endpoint.url)
        chat = ChatSettings(
            endpoint=endpoint,
            replicas=tuple(replicas),
            model=model,
            reply_models=listed(own.reply_models),
            dialect=dialect_of(f"{name}.dialect", own.dialect, endpoint.url),
            is_dialect_guessed=own.dialect == "auto" and not is_known,
            is_constraint_guessed=own.dialect == "auto" and not is_known,
            api=cast("ApiName", own.api),
            constraint=own.constraint,
            sampling=Sampling(seed=self.settings.llm.seed, omit=listed(own.omit)),
            retry=retry_policy(self.settings),
            max_tokens=own.max_tokens,
            max_concurrency=own.max_concurrency,
            offline=self._offline(),
            tokenizer=own.tokenizer,
        )
        return LlmJudge(
            name,
            ChatClient(chat, self._call_budget(name), store=self.cache),
            cache=self.cache,
            claims_per_call=own.claims_per_call,
            revision=revision,
        )

    def _offline(self) -> BatchFiles | None:
        """Return the files that all language models share in place of servers, if any are set."""
        requests, replies = self.settings.batch.requests, self.settings.batch.replies
        with self._lock:
            if self._batch is None and (requests or replies):
                self._batch = BatchFiles(
                    Path(requests) if requests else None, [Path(replies)] if replies else []
                )
            return self._batch

    def budget(self, judge: str) -> Budget:
        """Return a new budget of ``llm`` or ``fallback``, which is part of the shared one.

        Raises:
            InvalidInputError: The cost is limited, and prices are not set.
        """
        prices = prices_of(self.settings, judge)
        max_calls = self.settings.fallback.max_calls if judge == "fallback" else -1
        # Without prices, no limit of money could be kept.
        if self.settings.max_cost >= 0 and prices is None:
            raise InvalidInputError(
                f"max_cost is {self.settings.max_cost:g}, but the prices of judge {judge!r} are "
                f"not set; set {judge}.price_prompt and {judge}.price_completion per million "
                "tokens, or 0 for your own server"
            )
        with self._lock:
            if self._shared is None:
                self._shared = Budget(
                    max_calls=self.settings.max_calls if self.settings.max_calls >= 0 else None,
                    max_cost=self.settings.max_cost if self.settings.max_cost >= 0 else None,
                )
        return Budget(
            max_calls=max_calls if max_calls >= 0 else None,
            prices=prices,
            within=self._shared,
            ledger=self._ledger,
        )

    def _call_budget(self, judge: str) -> CallBudget:
        """Return the budget of a judge, of this process or of another one."""
        prices = prices_of(self.settings, judge)
        elsewhere = self._elsewhere.budget(judge, prices) if self._elsewhere is not None else None
        return elsewhere or self.budget(judge)


def prices_of(settings: JudgeSettings, judge: str) -> Prices | None:
    """Return the prices of ``llm`` or ``fallback``, or None if they are not set.

    Raises:
        InvalidInputError: Only one of two prices is set.
    """
    own = settings.language_model(judge)
    prompt, cached, completion = own.price_prompt, own.price_cached, own.price_completion
    if (prompt < 0) != (completion < 0):
        missing = "prompt" if prompt < 0 else "completion"
        raise InvalidInputError(
            f"{judge}.price_{missing} is not set; set the prices of both prompt and "
            "completion tokens, or neither"
        )
    if prompt < 0:
        return None
    return Prices(prompt=prompt, completion=completion, cached=cached if cached >= 0 else None)
