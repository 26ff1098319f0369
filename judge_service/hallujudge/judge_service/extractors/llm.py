"""Extractors that ask a language model, and the sentence-level baseline beside them.

One call for each response, its answer held to a JSON schema and checked again here: what isn't a
list of three-part claims is no extraction, and an item without one is unscored, never "no claims".
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from hallujudge.metrics.triplets import Sentence, Triplet, TripletError, triplet_of

from ..errors import UnavailableError
from .values import ExtractedTriplet, Keyword, Keywords, Span

if TYPE_CHECKING:
    from ..judges import ChatClient, Template, Usage, VerdictCache
    from ..judges.cache import Record

__all__ = ["Extraction", "LlmKeywordExtractor", "LlmTripletExtractor", "SentenceExtractor"]

MAX_CLAIMS = 400
"""More claims than that in one response are a model that repeats itself."""

_MAX_KEYWORD_CHARS = 100
_SHOWN_CHARS = 80
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction(Generic[_T]):
    """What was taken out of one text, or why nothing could be."""

    found: _T | None
    """What was found; None: the text could not be read, and the item is unscored."""
    reason: str = ""
    """Why not."""
    detail: str = ""
    """The reason in words."""
    usage: Usage | None = None
    """What the answer took."""


class _LlmExtractor(Generic[_T]):
    """Asks about texts, a few at a time, and remembers the answers."""

    template_name: str
    schema: Mapping[str, object]

    def __init__(
        self,
        client: ChatClient,
        *,
        cache: VerdictCache | None = None,
        revision: str = "",
        max_tokens: int = 4096,
    ) -> None:
        self._client = client
        self._cache = cache
        self._revision = revision
        self._max_tokens = max_tokens

    @property
    def label(self) -> str:
        """Model and prompt, such as ``llm:MODEL@REVISION:extract-triplets-1@HASH``."""
        revision = f"@{self._revision}" if self._revision else ""
        return f"llm:{self._client.settings.model}{revision}:{self._template.label}"

    async def try_many(self, texts: Sequence[str]) -> list[Extraction[_T]]:
        """What each text holds, or why it could not be told; in the order given.

        Raises:
            InvalidInputError: The key is refused or the model isn't there.
        """
        from ..judges._pool import run_bounded

        done: list[Extraction[_T]] = [Extraction(found=None)] * len(texts)

        async def work(index: int) -> None:
            done[index] = await self._one(texts[index])

        workers = min(self._client.settings.in_flight, len(texts))
        await run_bounded(range(len(texts)), work, workers)
        return done

    async def extract_many(self, texts: Sequence[str]) -> list[_T]:
        """What each text holds, in the order given.

        Raises:
            UnavailableError: A text could not be read; use :meth:`try_many` to go on without it.
        """
        results = await self.try_many(texts)
        for index, result in enumerate(results):
            if result.found is None:
                raise UnavailableError(
                    f"no claims could be taken from text {index}: {result.reason}: {result.detail}",
                    reason="EXTRACTION_FAILED",
                )
        return [result.found for result in results if result.found is not None]

    @property
    def _template(self) -> Template:
        from ..judges import load_template

        return load_template(self.template_name)

    async def _one(self, text: str) -> Extraction[_T]:
        from ..judges._chat import ChatRequest
        from ..judges._failures import CallFailedError
        from ..judges._fence import as_line, fenced
        from ..judges._reading import whole_reply_problem

        request = ChatRequest(
            messages=self._template.messages({"response": fenced("RESPONSE", [as_line(text)])}),
            max_tokens=self._max_tokens,
            schema=self.schema,
            schema_name="extraction",
        )
        key = self._key(request.messages)
        if (record := self._cache.get(key) if self._cache else None) is not None:
            return self._remembered(record, text)
        try:
            answer = await self._client.ask(request)
        except CallFailedError as failure:
            return Extraction(found=None, reason=failure.kind.value, detail=failure.detail)
        if problem := whole_reply_problem(answer.reply):
            return Extraction(found=None, reason=problem.reason, detail=problem.detail)
        result = replace(self._read(answer.reply.content, text), usage=answer.usage)
        if self._cache is not None and result.found is not None:
            kept: Record = {"content": answer.reply.content, "usage": answer.usage.to_json()}
            self._cache.put(key, self.label, kept)
        return result

    def _remembered(self, record: Record, text: str) -> Extraction[_T]:
        from ..judges import Usage

        usage = record.get("usage")
        content = record.get("content")
        result = self._read(content if isinstance(content, str) else "", text)
        return replace(result, usage=Usage(**usage) if isinstance(usage, dict) else None)  # type: ignore[arg-type]  # written by to_json

    def _key(self, messages: Sequence[Mapping[str, str]]) -> str:
        from ..judges.cache import cache_key

        settings = self._client.settings
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

    def _read(self, content: str, text: str) -> Extraction[_T]:
        """What an answer says, checked against the schema once more."""
        try:
            return Extraction(found=self._checked(json.loads(content), text))
        except (ValueError, RecursionError) as err:
            kind = "REPLY_NOT_JSON" if _is_syntax(err) else "REPLY_WRONG_SCHEMA"
            shown = repr(content[:_SHOWN_CHARS])
            return Extraction(found=None, reason=kind, detail=f"{shown}: {str(err)[:200]}")

    def _checked(self, value: object, text: str) -> _T:
        raise NotImplementedError


class LlmTripletExtractor(_LlmExtractor[list[ExtractedTriplet]]):
    """Takes (object, relation, object) claims out of texts with a language model.

    Section 3.3 of the Tri-HE paper, which asks GPT-4. The prompt is our own; so are the schema, the
    checks behind it, and the places of claims, which are looked up in the text: a claim whose words
    don't stand there as the model wrote them has the empty place ``(0, 0)``.

    Args:
        client: Talks to the model.
        cache: Remembers answers.
        revision: The weights' revision, where known.
        max_tokens: Tokens of an answer at most; a longer one is cut off, and its item unscored.
    """

    template_name = "extract_triplets"
    schema: Mapping[str, object] = {
        "type": "object",
        "properties": {
            "triplets": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "object1": {"type": "string"},
                        "relation": {"type": "string"},
                        "object2": {"type": "string"},
                    },
                    "required": ["object1", "relation", "object2"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["triplets"],
        "additionalProperties": False,
    }

    def _checked(self, value: object, text: str) -> list[ExtractedTriplet]:
        entries = _only_key(value, "triplets")
        found = dict.fromkeys(_claim(entry, number) for number, entry in enumerate(entries, 1))
        if len(found) > MAX_CLAIMS:
            raise ValueError(f"{len(found)} claims; at most {MAX_CLAIMS} are believed")
        place = _Places(text)
        return [place.extracted(claim) for claim in found]


class LlmKeywordExtractor(_LlmExtractor[Keywords]):
    """Takes object and behaviour keywords out of texts with a language model.

    Mementos asks GPT-4 for them; the prompt is our own. A keyword that doesn't stand in the text as
    it is (a base form mostly doesn't) has the empty place ``(0, 0)``.

    Args:
        client: Talks to the model.
        cache: Remembers answers.
        revision: The weights' revision, where known.
        max_tokens: Tokens of an answer at most.
    """

    template_name = "extract_keywords"
    schema: Mapping[str, object] = {
        "type": "object",
        "properties": {
            "objects": {"type": "array", "items": {"type": "string"}},
            "behaviors": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["objects", "behaviors"],
        "additionalProperties": False,
    }

    def _checked(self, value: object, text: str) -> Keywords:
        place = _Places(text)
        objects, behaviors = (
            tuple(place.keyword(word) for word in dict.fromkeys(map(_word, _list(value, key))))
            for key in ("objects", "behaviors")
        )
        return Keywords(objects=objects, behaviors=behaviors)


class SentenceExtractor:
    """Takes a text's sentences as its claims: the baseline of the paper's Table 3, without a model.

    A sentence ends at a full stop, question mark or exclamation mark before white space and a
    capital, a digit or a quotation mark, and at a line break; common abbreviations don't end one.
    """

    label = "sentences-1"
    _END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])|\n+|(?<=[。！？])")
    _ABBREVIATION = re.compile(
        r"(?:\b(?:Mr|Mrs|Ms|Dr|St|No|vs|etc|approx|e\.g|i\.e|a\.m|p\.m)|\b[A-Z])\.$"
    )

    def extract(self, text: str) -> list[tuple[Sentence, Span]]:
        """The sentences of one text with their places."""
        cuts = [0, *(match.end() for match in self._END.finditer(text) if self._ends(text, match))]
        found = []
        for start, end in zip(cuts, [*cuts[1:], len(text)], strict=True):
            sentence = text[start:end]
            left = start + len(sentence) - len(sentence.lstrip())
            if any(map(str.isalnum, sentence)):
                span = Span(left, left + len(sentence.strip()))
                found.append((Sentence(sentence.strip()), span))
        return found

    async def extract_many(self, texts: Sequence[str]) -> list[list[tuple[Sentence, Span]]]:
        """The sentences of each text, worked out in a thread."""
        return await asyncio.to_thread(lambda: [self.extract(text) for text in texts])

    def _ends(self, text: str, match: re.Match[str]) -> bool:
        before = text[max(0, match.start() - 12) : match.start()]
        return "\n" in match[0] or not self._ABBREVIATION.search(before)


@dataclass(slots=True)
class _Places:
    """Looks words up in a text, without regard to case and white space."""

    text: str
    _found: dict[str, Span] = field(default_factory=dict)

    def of(self, words: str, after: int = 0) -> Span:
        """Where words stand first, not before a character; ``(0, 0)``: nowhere."""
        pattern = r"\s+".join(map(re.escape, words.split()))
        bounded = rf"(?<!\w){pattern}(?!\w)"
        match = re.compile(bounded, re.IGNORECASE).search(self.text, after) if pattern else None
        return Span(*match.span()) if match else Span(0, 0)

    def extracted(self, claim: Triplet) -> ExtractedTriplet:
        """A claim with its places: the second object is looked for behind the first."""
        first = self.of(claim.object1)
        second = self.of(claim.object2, first.end)
        second = second if second.end else self.of(claim.object2)
        known = [span for span in (first, second) if span.end]
        return ExtractedTriplet(
            subject=claim.object1,
            relation=claim.relation,
            object=claim.object2,
            start=min((span.start for span in known), default=0),
            end=max((span.end for span in known), default=0),
            subject_span=first,
            object_span=second,
            negated=bool(re.search(r"\b(not|no|never|n't)\b", claim.relation, re.IGNORECASE)),
        )

    def keyword(self, word: str) -> Keyword:
        """A keyword with its place."""
        return Keyword(text=word, start=self.of(word).start, end=self.of(word).end)


def _only_key(value: object, key: str) -> list[object]:
    entries = _list(value, key)
    if isinstance(value, dict) and len(value) != 1:
        raise ValueError(f"keys beside {key!r}")
    return entries


def _list(value: object, key: str) -> list[object]:
    entries = value.get(key) if isinstance(value, dict) else None
    if not isinstance(entries, list):
        raise ValueError(f"no list {key!r}")  # noqa: TRY004  # of the answer, not of a caller
    return entries


def _claim(entry: object, number: int) -> Triplet:
    names = ("object1", "relation", "object2")
    if not isinstance(entry, dict) or set(entry) != set(names):
        raise ValueError(f"claim {number} hasn't the keys {', '.join(names)} alone")
    try:
        return triplet_of([entry[name] for name in names])
    except TripletError as err:
        raise ValueError(f"claim {number}: {err}") from err


def _word(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value.strip()) <= _MAX_KEYWORD_CHARS:
        raise ValueError(f"a keyword that is none: {str(value)[:_SHOWN_CHARS]!r}")
    return " ".join(value.lower().split())


def _is_syntax(err: Exception) -> bool:
    return isinstance(err, json.JSONDecodeError | RecursionError)
