"""Extraction with a language model, whose replies are parsed strictly.

One call for each source. The reply is constrained to a JSON schema and checked again here. An
invalid entry of a list is rejected or repaired alone, so that long replies are not lost for one
entry. A reply that is not an object of these lists, or a list of invalid entries only, leaves its
item unscored; it never counts as "nothing found".
"""

from __future__ import annotations

import abc
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import ClassVar, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from hallujudge.metrics.framework.claims import InvalidEntry
from hallujudge.metrics.responses import answer_of

from ..llm.ask_once import AskOnce, Reading, run_bounded
from ..llm.budget import Usage, VerdictStore
from ..llm.cache_file import Record, cache_key
from ..llm.chat import ChatRequest
from ..llm.chat_replies import SHOWN_CHARS, reply_problem, without_thought
from ..llm.client import Answer, ChatClient
from ..llm.estimate import PlannedCall
from ..llm.failures import CallFailedError
from ..llm.prompt_templates import Template, load_template, own_template

_S = TypeVar("_S")
_T = TypeVar("_T")
_V = TypeVar("_V", bound=Hashable)


class Extraction(Struct, Generic[_T], frozen=True, kw_only=True):
    """What was extracted from one source, or why nothing was."""

    found: _T | None
    """What was found; None if the extraction failed, which leaves the item unscored."""
    invalid: tuple[InvalidEntry, ...] = ()
    """Entries of the reply that were rejected or repaired."""
    reason: str = ""
    """Why it failed."""
    detail: str = ""
    """The reason in words."""
    usage: Usage = Usage()
    """What the call took."""
    content: str = ""
    """The text of the reply that it was read from."""


class LlmExtractor(abc.ABC, Generic[_S, _T]):
    """Asks about sources, a few at a time, and keeps the replies.

    A subclass defines the prompt, the schema of the reply, and its meaning.

    Args:
        client: Calls the model.
        cache: Keeps replies between runs.
        revision: The weights' revision, where known.
        max_tokens: Most tokens of a reply; a longer one is cut off, and its item is unscored.
        prompt: A user's own prompt instead of the shipped one; its hash is in the label.

    Raises:
        InvalidInputError: The prompt is too long, or has other slots.
    """

    template_name: str
    slots: ClassVar[tuple[str, ...]]
    """The slots of the prompt."""

    def __init__(
        self,
        client: ChatClient,
        *,
        cache: VerdictStore | None = None,
        revision: str = "",
        max_tokens: int = 4096,
        prompt: str = "",
    ) -> None:
        self.client = client
        self._calls: AskOnce[Extraction[_T]] = AskOnce(client, cache)
        self._revision = revision
        self._max_tokens = max_tokens
        self._own = own_template(prompt, self.slots) if prompt else None

    @property
    def label(self) -> str:
        """Model and prompt, such as ``llm:MODEL@REVISION:extract-triplets-1@HASH``."""
        revision = f"@{self._revision}" if self._revision else ""
        return f"llm:{self.client.settings.model}{revision}:{self._template.label}"

    async def try_many(self, sources: Sequence[_S]) -> list[Extraction[_T]]:
        """Return what each source contains, or why the extraction failed, in order.

        Raises:
            InvalidInputError: The key is rejected, or there is no such model.
        """
        await self.client.settle()
        # A worker waits for one call, so that more of them than calls at once only wait.
        workers = min(self.client.settings.all_concurrency, len(sources))
        return await run_bounded(sources, self._one, workers)

    async def planned(self, source: _S) -> PlannedCall | None:
        """Return the call that a source needs, for estimates; None if it needs none."""
        # The cheapest answer first: such a source has no prompt to be looked up.
        if self._known(source) is not None:
            return None
        await self.client.settle()
        request = self._request(source)
        key = self._key(request.messages)
        # Reading checks a kept reply again: one that newer checks refuse is requested again.
        known = await self._calls.known(key, self._reading(source))
        return PlannedCall(key=key, cached=known is not None, request=request)

    @abc.abstractmethod
    def _slots(self, source: _S) -> Mapping[str, str]:
        """The template's slots: judged text, fenced."""

    @abc.abstractmethod
    def _schema(self, source: _S) -> Mapping[str, object] | None:
        """The JSON schema of the answer; None if it is not JSON."""

    def _parsed(self, content: str) -> object:
        """Return the value that a reply writes.

        Raises:
            ValueError: It is not written in the form that was asked for.
        """
        # json keeps the last of two equal keys without a word.
        return json.loads(content, object_pairs_hook=_no_doubles)

    @abc.abstractmethod
    def _checked(self, value: object, source: _S) -> Extraction[_T]:
        """Return the content of a parsed reply, and its invalid entries.

        Raises:
            ValueError: The reply has another shape, or a list of invalid entries only.
        """

    def _known(self, source: _S) -> _T | None:  # noqa: ARG002  # for subclasses
        """Return what is clear without a call; None if a call is needed."""
        return None

    @property
    def _template(self) -> Template:
        # Read when it is needed: importing an extractor reads no file.
        return self._own or load_template(self.template_name)

    async def _one(self, source: _S) -> Extraction[_T]:
        if (known := self._known(source)) is not None:
            return Extraction(found=known)

        request = self._request(source)
        try:
            return await self._calls.ask(
                self._key(request.messages), request, self._reading(source), label=self.label
            )
        # One source without a reply must not end the run; its item is unscored.
        except CallFailedError as failure:
            return Extraction(found=None, reason=failure.kind.value, detail=failure.detail)

    def _request(self, source: _S) -> ChatRequest:
        return ChatRequest(
            messages=self._template.messages(self._slots(source)),
            max_tokens=self._max_tokens,
            schema=self._schema(source),
            schema_name="extraction",
        )

    def _reading(self, source: _S) -> Reading[Extraction[_T]]:
        """How replies about a source are read and kept."""

        def read(answer: Answer) -> Extraction[_T]:
            # First, so that a reply that was cut off or refused is reported as that, and not as bad
            # JSON.
            if problem := reply_problem(without_thought(answer.reply)):
                return Extraction(
                    found=None, reason=problem.reason, detail=problem.detail, usage=answer.usage
                )
            return self._read(answer_of(answer.reply.content), source, answer.usage)

        def to_record(read: Extraction[_T]) -> Record | None:
            # A failed reply is not kept: asking again may bring a better one.
            if read.found is None:
                return None
            # The text and not what was found, so that newer checks read it again.
            return {"content": read.content, "usage": read.usage.to_record()}

        def from_record(record: Record) -> Extraction[_T] | None:
            usage = Usage.from_record(record.get("usage"))
            result = self._read(str(record.get("content")), source, usage)
            return None if result.found is None else result

        return Reading(read=read, to_record=to_record, from_record=from_record)

    # What the reply depends on; what is read from it is left out, and is computed again.
    def _key(self, messages: Sequence[Mapping[str, str]]) -> str:
        settings = self.client.settings
        return cache_key(
            {
                "kind": "extraction",
                "model": settings.model,
                "revision": self._revision,
                "template": self._template.digest,
                "parameters": settings.sampling.parameters(settings.dialect),
                "constraint": settings.sent_constraint,
                "max_tokens": self._max_tokens,
                "messages": list(messages),
            }
        )

    def _read(self, content: str, source: _S, usage: Usage) -> Extraction[_T]:
        """Return the content of a reply, checked against the schema again."""
        try:
            found = self._checked(self._parsed(content), source)
            return replace(found, usage=usage, content=content)
        # json's parser descends once for each bracket, and a model may repeat one without end.
        except (ValueError, RecursionError) as err:
            is_syntax = isinstance(err, json.JSONDecodeError | RecursionError)
            kind = "REPLY_NOT_JSON" if is_syntax else "REPLY_WRONG_SCHEMA"
            detail = f"{content[:SHOWN_CHARS]!r}: {str(err)[:200]}"
            return Extraction(found=None, reason=kind, detail=detail, usage=usage)


def with_keys(value: object, names: Sequence[str]) -> Mapping[str, object]:
    """Return an object that has exactly these keys.

    Raises:
        ValueError: It is not such an object.
    """
    # A further key is a sign that the model answered another question.
    if not isinstance(value, dict) or set(value) != set(names):
        raise ValueError(f"not an object with exactly the keys {', '.join(names)}")
    return value


def list_under(value: Mapping[str, object], key: str, most: int) -> list[object]:
    """Return the list under a key.

    Raises:
        ValueError: There is no list, or it has too many entries.
    """
    entries = value[key]
    if not isinstance(entries, list):
        raise ValueError(f"{key!r} is not a list")  # noqa: TRY004  # concerns the reply, not a caller's type
    # Such a list comes from a model that repeats itself, and its first entries are no better.
    if len(entries) > most:
        raise ValueError(f"{len(entries)} entries in {key!r}; at most {most} are accepted")
    return entries


def sift(
    place: str, entries: Sequence[object], check: Callable[[object], tuple[_V, str]]
) -> tuple[list[_V], list[InvalidEntry]]:
    """Return the valid and repaired entries of a list, without repeats, and the invalid ones.

    Args:
        place: The name of the list.
        entries: Its entries.
        check: Returns an entry's value, and why it was repaired (empty if it was valid). Raises
            ``ValueError`` to reject it.

    Raises:
        ValueError: There are entries, and all are rejected. As an empty list it would count as
            "nothing found".
    """
    # A dictionary keeps the order and drops repeats, which models are prone to.
    found: dict[_V, None] = {}
    invalid: list[InvalidEntry] = []
    for entry in entries:
        try:
            value, problem = check(entry)
        except ValueError as err:
            invalid.append(InvalidEntry(place=place, text=shown(entry), problem=str(err)))
            continue
        found[value] = None
        if problem:
            invalid.append(InvalidEntry(place, shown(entry), problem, repaired=str(value)))
    # A list without a valid entry would otherwise count as "nothing found".
    if invalid and not found:
        first = invalid[0]
        raise ValueError(f"no valid entry in {place!r}: {first.text!r}: {first.problem}")
    return list(found), invalid


# json escapes what terminals would obey and files refuse, such as a lone surrogate.
def shown(entry: object) -> str:
    """Return an entry as evidence shows it: short, printable, and valid as UTF-8."""
    text = entry if isinstance(entry, str) and entry.isprintable() else json.dumps(entry)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def _no_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object; duplicate keys are rejected, because either value could be meant."""
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("duplicate key")
    return value
