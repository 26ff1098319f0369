"""Calls of a language model that writes a benchmark, each of them made once.

The client, its limits and its budget are those of judges; replies
are kept in a file, so that a run that was stopped goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from msgspec import structs

from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.llm.ask_once import run_bounded
from hallujudge.judge_service.llm.budget import VerdictStore
from hallujudge.judge_service.llm.chat import ChatImage, ChatRequest, Sampling
from hallujudge.judge_service.llm.client import ChatClient
from hallujudge.judge_service.llm.estimate import PlannedCall
from hallujudge.judge_service.llm.prompt_templates import Message
from hallujudge.judge_service.llm.verdict_cache import KeptReplies
from hallujudge.judge_service.settings.loading import ResolvedSettings, load_settings
from hallujudge.metrics.answers.yes_no import YES_NO_PARSERS
from hallujudge.sdk.cli.options import replies_of
from hallujudge.sdk.runs.progress_bar import Progress, shown_progress

from .first_checks import waiting
from .replies import ModelCalls

_T = TypeVar("_T")

# The outermost brackets: models write text before a list, or fence it, whatever they are asked.
_LIST = re.compile(r"\[.*\]", re.DOTALL)


def listed(reply: str) -> list[Any] | None:
    """Return the JSON list of a reply; None if it has none."""
    found = _LIST.search(reply)
    try:
        values = json.loads(found[0]) if found else None
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, list) else None


class TextModel:
    """A language model.

    Args:
        client: Calls it.
        store: Keeps replies; None keeps them in memory.
        progress: Counts what is made of replies; None counts nothing.
    """

    def __init__(
        self, client: ChatClient, store: VerdictStore | None, progress: Progress | None = None
    ) -> None:
        self.client = client
        """What calls it."""
        self._calls = ModelCalls(client, store, "builder's model")
        self._progress = progress or Progress(0)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.client.settings.model

    async def run(self, jobs: Sequence[_T], work: Callable[[_T], Awaitable[bool]]) -> None:
        """Run jobs, as many at a time as the model's servers take calls.

        Args:
            jobs: The jobs.
            work: Runs one, and returns whether anything was made.
        """

        async def counted(job: _T) -> None:
            self._progress.scored(1, not await work(job))

        await run_bounded(jobs, counted, min(self.client.settings.all_concurrency, len(jobs)))

    async def reply(
        self,
        prompt: str | Sequence[Message],
        *,
        max_tokens: int = 512,
        images: tuple[ChatImage, ...] = (),
    ) -> str:
        """Return the reply to a prompt or to messages, and to images shown with it.

        Raises:
            NoReplyError: The call failed, the model refused, or the reply was cut off.
            InvalidInputError: The key is rejected, or the model does not exist.
            UnavailableError: The model answered no call for a long time.
        """
        request = _request(prompt, max_tokens, images)
        key = self._key(request)
        reply = await self._calls.known(key) or await self._calls.made(key, request)
        return reply.checked().content

    async def yes_or_no(self, question: str, images: tuple[ChatImage, ...] = ()) -> str | None:
        """Return whether the model says yes or no; None if it says neither, or both.

        Raises:
            NoReplyError: See :meth:`reply`.
        """
        prompt = f"{question}\nAnswer with yes or no only."
        # Strict, since an answer that says both words decides nothing.
        return YES_NO_PARSERS["strict"](await self.reply(prompt, max_tokens=64, images=images))

    async def plan(self, prompt: str | Sequence[Message], *, max_tokens: int = 512) -> PlannedCall:
        """Return the call of a prompt, which is not made."""
        request = _request(prompt, max_tokens, ())
        key = self._key(request)
        known = await self._calls.known(key)
        return PlannedCall(key=key, cached=known is not None, request=request)

    def _key(self, request: ChatRequest) -> str:
        images = [sha256(image.data).hexdigest() for image in request.images]
        return self._calls.key(request, builds=1, images=images)


def _request(
    prompt: str | Sequence[Message], max_tokens: int, images: tuple[ChatImage, ...]
) -> ChatRequest:
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else [*prompt]
    return ChatRequest(messages=messages, max_tokens=max_tokens, images=images)


@contextlib.asynccontextmanager
async def text_model(
    model: Mapping[str, object],
    replies: Path,
    temperature: float = 0.0,
    *,
    keeps: bool = True,
    progress: Progress | None = None,
) -> AsyncIterator[TextModel]:
    """Yield a language model.

    Args:
        model: Its settings, with the names of a judge's: ``llm.url``, ``llm.model``, ...; what is
            not given comes from the environment and the settings file.
        replies: The file in which replies are kept.
        temperature: Temperature.
        keeps: Whether the file of replies is created.
        progress: Counts what is made of replies; None counts nothing.
    """
    settings = load_settings(dict(model))
    async with text_client(settings, replies, temperature, keeps=keeps) as (client, store):
        yield TextModel(client, store, progress)


@contextlib.asynccontextmanager
async def text_client(
    settings: ResolvedSettings,
    replies: Path,
    temperature: float,
    *,
    keeps: bool = True,
    wait: float = 0.0,
) -> AsyncIterator[tuple[ChatClient, VerdictStore | None]]:
    """Yield what calls a language model for texts, and what keeps its replies.

    Args:
        settings: The settings, in which the model is the judge.
        replies: The file in which replies are kept.
        temperature: Temperature.
        keeps: Whether the file of replies is created.
        wait: Seconds to wait for a server that starts; the user can start it at the terminal.
    """
    kept = str(replies) if keeps or replies.exists() else ""
    # The cache of judges' verdicts keeps any reply by its key, also a text.
    factory = JudgeFactory(replace(settings.judges, verdict_cache=kept), settings.keys)
    if factory.cache is not None:
        await factory.cache.open()
    judge = factory.llm().client.settings
    sampling = Sampling(
        temperature=temperature,
        seed=judge.sampling.seed,
        # Judges are also asked for log-probabilities, for margins; a text needs none.
        top_logprobs=0,
        # A server that refuses a parameter of judges refuses it here too.
        omit=judge.sampling.omit,
    )
    client = ChatClient(
        structs.replace(
            judge,
            sampling=sampling,
            # A judge's reply is constrained to its form, a text is not.
            constraint="none",
            role="model",
            retry=waiting(judge.retry, wait),
        ),
        factory.budget("llm"),
        store=factory.cache,
    )
    try:
        await client.settle()
        with KeptReplies().guard():
            yield client, factory.cache
    finally:
        await client.close()
        await factory.close()


def written(
    work: Callable[[TextModel], Awaitable[_T]],
    count: int,
    done_word: str,
    model: Mapping[str, object],
    out: Path,
    temperature: float = 0.0,
) -> _T:
    """Return what a language model writes, outside an event loop, and show its progress.

    Args:
        work: Asks the model.
        count: Number of things to make.
        done_word: What is done with them, as progress says it.
        model: The model's settings.
        out: The file that is written, next to which replies are kept.
        temperature: Temperature.
    """

    async def run(progress: Progress) -> _T:
        async with text_model(model, replies_of(out), temperature, progress=progress) as writer:
            return await work(writer)

    with shown_progress(count, done_word) as progress:
        return asyncio.run(run(progress))
