"""What a model replied to a question, or why it has no answer."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import OrderedDict
from collections.abc import Container, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from hallujudge.judge_service.llm.ask_once import AskOnce, Reading
from hallujudge.judge_service.llm.budget import Usage, VerdictStore
from hallujudge.judge_service.llm.cache_file import Record, cache_key
from hallujudge.judge_service.llm.chat import ChatImage, ChatReply, ChatRequest, reply_problem
from hallujudge.judge_service.llm.client import Answer, ChatClient
from hallujudge.judge_service.llm.estimate import PlannedCall
from hallujudge.judge_service.llm.failures import CallFailedError
from hallujudge.judge_service.llm.prompt_templates import Template
from hallujudge.metrics.answers.choices import read_choice
from hallujudge.metrics.answers.orders import RelativeOrdering
from hallujudge.metrics.framework.asking import AskingStep
from hallujudge.metrics.framework.results import JsonValue

from .asked_benchmarks import OPTIONAL_SLOTS, WHOLE, Benchmark
from .inquiries import Inquiry, shown_options
from .media_files import (
    Media,
    MediaError,
    MediaFolder,
    folder_of_name,
    open_regular,
    read_image,
    shared_ends,
)
from .video_frames import MOST_FRAMES, FrameSettings, estimated_frames, frames_of

_PIECE = 1 << 20
# Questions about one video follow each other, and its frames are taken once.
_KEPT_BYTES = 256 << 20
_DECODERS = os.cpu_count() or 2
_LABEL = "asked model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole reply of the model."""

    content: str
    """The text."""
    finish_reason: str = ""
    """Why it ended."""
    refusal: str = ""
    """The model's words if it refused."""
    model: str = ""
    """What the server calls the model."""
    usage: Usage = field(default_factory=Usage)
    """What it took, in this run or an earlier one."""

    @classmethod
    def of(cls, answer: Answer) -> Reply:
        """Return the reply of an answered call."""
        reply = answer.reply
        return cls(
            content=reply.content,
            finish_reason=reply.finish_reason,
            refusal=reply.refusal,
            model=reply.model,
            usage=answer.usage,
        )

    @classmethod
    def from_record(cls, record: Record) -> Reply | None:
        """Read a reply of the cache; None if it is another kind of record."""
        try:
            return cls(**{**record, "usage": Usage.from_record(record["usage"])})  # type: ignore[arg-type]  # checked by use
        except (KeyError, TypeError):
            return None

    def to_record(self) -> Record:
        """Return the reply as the cache keeps it."""
        return {**asdict(self), "usage": self.usage.to_record()}


_READING: Reading[Reply] = Reading(
    read=Reply.of, to_record=Reply.to_record, from_record=Reply.from_record
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The outcome of a question."""

    response: str | None = None
    """The response; None without one."""
    reason: str = ""
    """Why there is none, such as ``MEDIA_MISSING``."""
    detail: str = ""
    """The same in words."""
    steps: tuple[tuple[str, str], ...] = ()
    """The replies to earlier steps, by name."""

    @property
    def unanswered(self) -> dict[str, JsonValue]:
        """The reason as the archive holds it."""
        return {"reason": self.reason, "detail": self.detail}


class _UnansweredError(Exception):
    """A question has no answer."""

    def __init__(self, reason: str, detail: str, reply: Reply | None = None) -> None:
        super().__init__(detail)
        self.reason, self.detail, self.reply = reason, detail, reply


class Asker:
    """Asks the questions of a benchmark, each call once.

    Args:
        benchmark: What is asked.
        client: Calls the model.
        store: Keeps replies, so that no call is made twice; None keeps them in memory.
        folder: Images and videos.
        frames: How frames of videos are taken.
        max_tokens: Tokens of a reply at most.
        names: All names of images and videos.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        client: ChatClient,
        store: VerdictStore | None,
        folder: MediaFolder,
        *,
        frames: FrameSettings,
        max_tokens: int,
        names: Iterable[str] = (),
    ) -> None:
        self._benchmark = benchmark
        self._client = client
        self._once = AskOnce[Reply](client, store)
        self.shown = ShownMedia(benchmark, folder, frames, shared_ends(names))
        self._max_tokens = max_tokens
        self._used: dict[str, Reply] = {}

    @property
    def usage(self) -> Usage:
        """What all replies took, in this run or earlier ones; a shared one counts once."""
        return Usage.total(self._used[key].usage for key in sorted(self._used))

    @property
    def models(self) -> list[str]:
        """The names that the server called the model."""
        return sorted({reply.model for reply in self._used.values() if reply.model})

    async def ask(self, inquiry: Inquiry) -> Answered:
        """Return the outcome of a question.

        Raises:
            InvalidInputError: The key is rejected, or the model does not exist.
            UnavailableError: The model answered no call for a long time.
        """
        replies: list[tuple[str, Reply]] = []
        try:
            self._check_slots(inquiry)
            media = await self.shown.find(inquiry)
            if self._benchmark.protocol.pairs and not inquiry.is_whole:
                response = await self._ordered(inquiry, media, replies)
            else:
                for step in self._steps(inquiry):
                    earlier = {name: reply.content for name, reply in replies}
                    replies.append((step.name, await self._reply(step, inquiry, media, earlier)))
                response = replies[-1][1].content
        except MediaError as err:
            return _outcome(replies, reason=err.reason, detail=err.detail)
        except _UnansweredError as err:
            if err.reply is not None:
                cut_off = err.reply.finish_reason == "length"
                replies.append(("cut_off" if cut_off else "refusal", err.reply))
            return _outcome(replies, reason=err.reason, detail=err.detail, failed=True)
        return _outcome(replies, response=response)

    async def plan(self, inquiry: Inquiry) -> list[PlannedCall]:
        """Return the calls of a question as far as they are known; nothing is sent.

        A step whose prompt has a reply that is not known yet is planned without that reply, and of
        questions about pairs two are planned.
        """
        try:
            self._check_slots(inquiry)
            media = await self.shown.find(inquiry)
            images = await self.shown.estimated(media)
        except (MediaError, _UnansweredError):
            return []
        earlier: dict[str, str] = {}
        planned = []
        for options in self._planned_options(inquiry):
            for step in self._steps(inquiry):
                shown = media if step.shows else None
                prompt = self._request(step, inquiry, earlier, options)
                key = await self._key(prompt, shown)
                known = await self._once.known(key, _READING)
                earlier[step.name] = known.content if known is not None else ""
                request = self._request(
                    step, inquiry, earlier, options, images if step.shows else ()
                )
                planned.append(PlannedCall(key=key, cached=known is not None, request=request))
        return planned

    def _planned_options(self, inquiry: Inquiry) -> list[str]:
        if not self._benchmark.protocol.pairs or inquiry.is_whole:
            return [inquiry.slots["options"]]
        letters = list(inquiry.options)
        return [_of_pair(inquiry, pair) for pair in pairwise(letters)]

    def _steps(self, inquiry: Inquiry) -> Sequence[AskingStep]:
        if inquiry.is_whole:
            return (AskingStep(name=WHOLE, prompt=self._benchmark.asking.whole),)
        return self._benchmark.protocol.steps

    def _check_slots(self, inquiry: Inquiry) -> None:
        """Check that a record has what its prompts ask about: an empty prompt costs a call.

        Raises:
            _UnansweredError: A slot is empty.
        """
        for step in self._steps(inquiry):
            for name in self._benchmark.slots_of(step.name):
                # Earlier steps fill slots of later ones.
                value = inquiry.slots.get(name)
                if value is not None and not value.strip() and name not in OPTIONAL_SLOTS:
                    detail = f"the prompt asks about {name}, of which the record has none"
                    raise _UnansweredError(f"{name.upper()}_MISSING", detail)

    async def _ordered(
        self, inquiry: Inquiry, media: Media | None, replies: list[tuple[str, Reply]]
    ) -> str:
        """Return the order that questions about pairs lead to."""
        if len(inquiry.options) < 2:
            raise _UnansweredError("OPTIONS_MISSING", "there are fewer than two options to order")
        plan = RelativeOrdering(list(inquiry.options))
        [step] = self._benchmark.protocol.steps
        while plan.question is not None:
            pair = plan.question
            reply = await self._reply(step, inquiry, media, {}, _of_pair(inquiry, pair))
            replies.append((f"{pair.first} or {pair.second}", reply))
            offered = {letter: inquiry.options[letter] for letter in pair}
            chosen = read_choice(reply.content, offered).choice
            if chosen is None:
                detail = f"{reply.content[:80]!r} chooses neither {pair.first} nor {pair.second}"
                raise _UnansweredError("ANSWER_UNPARSED", detail)
            plan.answer(chosen)
        assert plan.order is not None, "no question is open"
        return ", ".join(plan.order)

    async def _reply(
        self,
        step: AskingStep,
        inquiry: Inquiry,
        media: Media | None,
        earlier: dict[str, str],
        options: str | None = None,
    ) -> Reply:
        shown = media if step.shows else None
        request = self._request(step, inquiry, earlier, options)
        key = await self._key(request, shown)
        reply = await self._once.known(key, _READING)
        if reply is None:
            images = await self.shown.images(shown)
            request = self._request(step, inquiry, earlier, options, images, shown)
            try:
                reply = await self._once.ask(key, request, _READING, label=_LABEL)
            except CallFailedError as err:
                raise _UnansweredError(_own_reason(err.kind.value), err.detail) from err
        self._used[key] = reply
        return _checked(reply)

    def _request(
        self,
        step: AskingStep,
        inquiry: Inquiry,
        earlier: dict[str, str],
        options: str | None = None,
        images: Sequence[ChatImage] = (),
        media: Media | None = None,
    ) -> ChatRequest:
        template: Template = self._benchmark.templates[step.name]
        slots = {**inquiry.slots, **earlier}
        if options is not None:
            slots["options"] = options
        return ChatRequest(
            messages=template.messages(slots),
            max_tokens=self._max_tokens,
            images=tuple(images),
            affinity=media.name if media is not None else "",
        )

    async def _key(self, request: ChatRequest, media: Media | None) -> str:
        """Return everything that a reply depends on, as a key."""
        settings = self._client.settings
        return cache_key(
            {
                "asks": 1,
                "model": settings.model,
                "parameters": settings.sampling.parameters(settings.dialect),
                "max_tokens": request.max_tokens,
                "messages": request.messages,
                "media": await self.shown.digest(media) if media is not None else "",
            }
        )


def _own_reason(reason: str) -> str:
    """Return the reason of a failed call; here the model is asked, not a judge."""
    return reason.replace("JUDGE_", "MODEL_", 1)


def _checked(reply: Reply) -> Reply:
    """Return a reply that is whole.

    Raises:
        _UnansweredError: The model refused, or the reply was cut off.
    """
    seen = ChatReply(
        content=reply.content, finish_reason=reply.finish_reason, refusal=reply.refusal
    )
    if (problem := reply_problem(seen)) is None:
        return reply
    raise _UnansweredError(_own_reason(problem.reason), problem.detail, reply)


def _of_pair(inquiry: Inquiry, pair: Sequence[str]) -> str:
    return shown_options({letter: inquiry.options[letter] for letter in pair})


def _outcome(
    replies: Sequence[tuple[str, Reply]],
    *,
    response: str | None = None,
    reason: str = "",
    detail: str = "",
    failed: bool = False,
) -> Answered:
    earlier = replies if failed or response is None else replies[:-1]
    return Answered(
        response=response,
        reason=reason,
        detail=detail,
        steps=tuple((name, reply.content or reply.refusal) for name, reply in earlier),
    )


class ShownMedia:
    """Images and frames of questions, each loaded once for questions that follow each other.

    Args:
        benchmark: What is asked.
        folder: Images and videos.
        frames: How frames of videos are taken.
        shared: Ends of paths that several names have.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        folder: MediaFolder,
        frames: FrameSettings,
        shared: Container[str] = (),
    ) -> None:
        self._names_shared = shared
        self._conditions = benchmark.asking.conditions
        self._folder = folder
        self._folders: dict[str, MediaFolder] = {}
        self._frames = frames
        self._digests: dict[Media, str] = {}
        self._kept: OrderedDict[Media, tuple[ChatImage, ...]] = OrderedDict()
        self._locks: dict[Media, asyncio.Lock] = {}
        self._size = 0
        self.had_videos = False
        self._decoders = asyncio.Semaphore(_DECODERS)
        self._finding = asyncio.Lock()

    async def find(self, inquiry: Inquiry) -> Media | None:
        """Return what a question shows; None if it shows nothing.

        Raises:
            MediaError: It is missing or ambiguous, or lies outside of the folder.
        """
        if inquiry.media is None:
            return None
        if not inquiry.media:
            raise MediaError("MEDIA_MISSING", "the question names no image or video")
        # The folder is listed once, and not by many threads at a time.
        async with self._finding:
            folder = self._folder_of(inquiry.condition)
            name = inquiry.media
            if self._conditions is not None:
                base = self._conditions.base
                named = (name, inquiry.condition or base, base)
                folder, name = folder_of_name(self._folder, folder, *named)
            media = await asyncio.to_thread(self._found, folder, name, inquiry)
        self.had_videos |= media.is_video
        return media

    def _found(self, folder: MediaFolder, name: str, inquiry: Inquiry) -> Media:
        """Return the file of a question's name, or of the path of its address."""
        try:
            return folder.find(name, self._names_shared)
        except MediaError as err:
            if not inquiry.address or err.reason not in ("MEDIA_MISSING", "MEDIA_OUTSIDE"):
                raise
            try:
                return folder.find(inquiry.address, self._names_shared)
            except MediaError as other:
                raise (other if other.reason == "MEDIA_AMBIGUOUS" else err) from None

    def _folder_of(self, condition: str) -> MediaFolder:
        if not condition or self._conditions is None:
            return self._folder
        if condition not in self._folders:
            inner = self._folder.inner(condition)
            if inner is None and condition != self._conditions.base:
                raise MediaError("MEDIA_MISSING", f"there is no folder {condition!r}")
            self._folders[condition] = inner or self._folder
        return self._folders[condition]

    async def digest(self, media: Media) -> str:
        """Return the hash of files, and how frames are taken of a video.

        Raises:
            MediaError: A file can't be read.
        """
        if media not in self._digests:
            self._digests[media] = await asyncio.to_thread(_hash_of, media.files)
        taken = f",{self._frames.label}" if media.is_video else ""
        return f"{self._digests[media]}{taken}"

    async def images(self, media: Media | None) -> tuple[ChatImage, ...]:
        """Return the images that are sent.

        Raises:
            MediaError: A file can't be sent.
        """
        if media is None:
            return ()
        async with self._locks.setdefault(media, asyncio.Lock()):
            if media not in self._kept:
                async with self._decoders:
                    self._kept[media] = await asyncio.to_thread(self._load, media)
                self._size += _size_of(self._kept[media])
            self._kept.move_to_end(media)
            found = self._kept[media]
            self._forget()
        return found

    async def estimated(self, media: Media | None) -> tuple[ChatImage, ...]:
        """Return images of the same number and size, of a video without content."""
        if media is None or not media.is_video:
            return await self.images(media)
        return tuple(await asyncio.to_thread(estimated_frames, media.files[0], self._frames))

    def _load(self, media: Media) -> tuple[ChatImage, ...]:
        if media.is_video:
            return tuple(frames_of(media.files[0], self._frames))
        if len(media.files) > MOST_FRAMES:
            raise MediaError(
                "MEDIA_TOO_LARGE",
                f"{media.name!r:.80} has {len(media.files)} images; at most {MOST_FRAMES} are sent",
            )
        return tuple(map(read_image, media.files))

    def _forget(self) -> None:
        """Forget what was used the longest ago, so that memory stays bounded."""
        while self._size > _KEPT_BYTES and len(self._kept) > 1:
            media, images = self._kept.popitem(last=False)
            self._size -= _size_of(images)
            self._locks.pop(media, None)


def _size_of(images: Sequence[ChatImage]) -> int:
    return sum(len(image.data) for image in images)


def _hash_of(files: Sequence[Path]) -> str:
    digest: Any = hashlib.sha256()
    for path in files:
        with open_regular(path) as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
        digest.update(b"\0")
    return str(digest.hexdigest())
