"""Batches of a reward: gathered from single calls, guarded, and said to be without a reward.

Training code sees numbers alone, so whatever leaves responses without a reward for another cause
than the responses themselves is said, once of each kind. References that can't be read are a
mistake in the caller's data: a warning, and an error where a whole batch is so. Ids without a
reference and failures of judges are logged.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeAlias

from hallujudge.judge_service.threads import renew_after_fork
from hallujudge.metrics.framework.results import UnscoredReason

from .archives.plain_values import plain
from .errors import InvalidInputError
from .runs.response_scores import ResponseScore, check_call, response_of

_LOG = logging.getLogger(__name__)

# The measure is seq-rep-4 of Welleck et al., 2020, "Neural text generation with unlikelihood
# training".
_NGRAM = 4
_SHOWN_CHARS = 80
# What a model may cause by what it writes, which its reward must not fill the log with.
_OF_RESPONSES = frozenset(
    {
        UnscoredReason.RESPONSE_MISSING,
        UnscoredReason.RESPONSE_EMPTY,
        UnscoredReason.RESPONSE_FAILED,
        UnscoredReason.RESPONSE_TOO_LONG,
        UnscoredReason.LANGUAGE_UNSUPPORTED,
        UnscoredReason.ANSWER_UNPARSED,
        UnscoredReason.THOUGHT_UNFINISHED,
        UnscoredReason.NO_CLAIMS,
        UnscoredReason.KEYWORDS_MISSING,
        UnscoredReason.KEYWORD_TOO_LONG,
        UnscoredReason.TOO_MANY_KEYWORDS,
        UnscoredReason.TOO_MANY_HEADINGS,
        UnscoredReason.CLAIM_TOO_LONG,
    }
)
_OF_REFERENCES = frozenset(
    {
        UnscoredReason.REFERENCE_MISSING,
        UnscoredReason.REFERENCE_TOO_LONG,
        UnscoredReason.LABEL_INVALID,
        UnscoredReason.PLACE_INVALID,
        UnscoredReason.DISPLAY_MISSING,
        UnscoredReason.DISPLAY_INVALID,
    }
)
# The other reasons that a result may have; an error of the service is logged by the scorer.
_SAID = frozenset(UnscoredReason) - _OF_RESPONSES


class Column(list[Any]):
    """References, with what messages call the place that they come from.

    Args:
        values: The references.
        name: Such as ``the column 'objects'``.
    """

    def __init__(self, values: Sequence[object], name: str = "the references") -> None:
        super().__init__(map(plain, values))
        self.name = name


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardBatch:
    """The responses of one call."""

    ids: Sequence[object]
    """The id of each one's reference; empty if each has a reference of its own."""
    texts: Sequence[Any]
    """What the model wrote."""
    references: Column | None
    """The reference of each; None if ids name them."""

    @classmethod
    def of(cls, responses: Sequence[Any], references: Sequence[object] | None) -> RewardBatch:
        """Return a batch of what a reward is called with.

        Raises:
            InvalidInputError: The arguments don't fit together, or a response is not a text.
        """
        check_call(responses, references)
        if references is None:
            ids = [name for name, _ in responses]
            texts = [response_of(given, at) for at, (_, given) in enumerate(responses)]
            return cls(ids=ids, texts=texts, references=None)
        column = references if isinstance(references, Column) else Column(references)
        texts = [response_of(given, at) for at, given in enumerate(responses)]
        return cls(ids=(), texts=texts, references=column)

    def only(self, kept: Sequence[int], texts: Sequence[Any]) -> RewardBatch:
        """Return a part of the batch.

        Args:
            kept: The positions of its responses.
            texts: What is scored of each response of the whole batch.
        """
        column = self.references
        return RewardBatch(
            ids=[self.ids[at] for at in kept] if column is None else (),
            texts=[texts[at] for at in kept],
            references=None if column is None else Column([column[at] for at in kept], column.name),
        )

    @property
    def arguments(self) -> tuple[list[Any], Column | None]:
        """What a reward or a scorer is called with."""
        if self.references is None:
            return list(zip(self.ids, self.texts, strict=True)), None
        return list(self.texts), self.references


REFUSED: Any = object()
"""What is scored of a response that a guard refuses."""


@dataclass(frozen=True, slots=True)
class Guards:
    """What a response must be like to be scored."""

    min_words: int
    """The fewest words."""
    max_repetition: float
    """The largest share of its sequences of four words that occurred before in it."""
    pattern: re.Pattern[str] | None
    """What the whole response must match."""

    def admitted(self, response: Any) -> Any:
        """Return what is scored of a response, or ``REFUSED``."""
        # Several answers, or none, have no words or form that a guard could look at.
        if not isinstance(response, str):
            return response
        if self.pattern is not None:
            match = self.pattern.fullmatch(response)
            if match is None:
                return REFUSED
            response = match.groupdict().get("response") or response
        words = response.lower().split() if self.min_words or self.max_repetition < 1 else []
        if len(words) < self.min_words or _repetition(words) > self.max_repetition:
            return REFUSED
        return response


def compiled(pattern: str) -> re.Pattern[str] | None:
    """Return a regular expression; None if it is empty.

    Raises:
        InvalidInputError: It is not a regular expression.
    """
    try:
        # Responses have many lines, of which a dot otherwise matches one.
        return re.compile(pattern, re.DOTALL) if pattern else None
    except re.error as err:
        raise InvalidInputError(f"pattern={pattern!r} is not a regular expression: {err}") from err


def _repetition(words: Sequence[str]) -> float:
    """Return the share of the sequences of four words that occurred before."""
    found = [tuple(words[at : at + _NGRAM]) for at in range(len(words) - _NGRAM + 1)]
    return 1 - len(set(found)) / len(found) if found else 0.0


class Problems:
    """Says why responses have no reward: each kind once.

    Args:
        metric: The metric's name.
    """

    def __init__(self, metric: str) -> None:
        self._metric = metric
        self._said: set[tuple[str, str]] = set()

    def say(self, batch: RewardBatch, scores: Sequence[ResponseScore]) -> None:
        """Warn of kinds that were not said before, or log them.

        Args:
            batch: What was scored.
            scores: The score of each response.

        Raises:
            InvalidInputError: No reference of the batch can be used.
        """
        kinds: dict[tuple[str, str], list[int]] = {}
        for at, one in enumerate(scores):
            if one.reason in _SAID and not _is_absent(batch, at, one):
                kinds.setdefault(_kind_of(batch, at, one), []).append(at)
        wrong = [at for (_, type_name), places in kinds.items() if type_name for at in places]
        # A batch without one usable reference is a wrong column, and training would learn nothing.
        if wrong and len(wrong) == len(scores):
            text = self._sentence(batch, scores, wrong)
            raise InvalidInputError(f"{text}. Correct the references")
        for kind, places in kinds.items():
            if kind not in self._said:
                self._said.add(kind)
                text = self._sentence(batch, scores, places)
                text = f"{text}. They have no reward; more of this kind are not reported"
                if kind[1]:
                    # The line of the caller's that called the reward, which is what there is to
                    # correct.
                    warnings.warn(text, RuntimeWarning, stacklevel=3)
                else:
                    # As the scorer logs failures of the service.
                    _LOG.warning("%s", text)

    def _sentence(
        self, batch: RewardBatch, scores: Sequence[ResponseScore], places: Sequence[int]
    ) -> str:
        first = places[0]
        one = scores[first]
        # What can't be read has no result yet, and its detail says why.
        why = one.detail if one.result is None else f"{one.reason}: {one.detail}"
        if batch.references is None:
            what = f"the id {batch.ids[first]!r:.{_SHOWN_CHARS}}"
        else:
            value = f"{batch.references[first]!r:.{_SHOWN_CHARS}}"
            what = f"{value} in {batch.references.name}"
        return (
            f"{self._metric} can't score {len(places)} of {len(scores)} responses, such as number "
            f"{first} with {what}: {why.rstrip('.')}"
        )


def _is_absent(batch: RewardBatch, at: int, one: ResponseScore) -> bool:
    """Return whether a response has no reference on purpose, as rows of other tasks have none."""
    missing = one.reason == UnscoredReason.REFERENCE_MISSING
    return missing and batch.references is not None and batch.references[at] is None


def _kind_of(batch: RewardBatch, at: int, one: ResponseScore) -> tuple[str, str]:
    """Return a kind of problems: the reason, and the type of a reference that can't be used."""
    if batch.references is None or one.reason not in _OF_REFERENCES:
        return one.reason, ""
    return one.reason, type(batch.references[at]).__name__


Rewarding: TypeAlias = "Callable[..., list[float | None]]"
"""A reward: called with responses and their references, or with pairs of an id and a response."""

# A batch ends after a pause of this part of its longest wait: who calls at once has called then.
_PAUSES = 10


def finite(rewards: Sequence[float | None]) -> list[float | None]:
    """Return rewards without NaN and infinity, which a function of a user's may return.

    A warning reports them, since a trainer's mean of the other rewards does not show them.

    Raises:
        InvalidInputError: One is not a number.
    """
    try:
        found = [None if one is None or not math.isfinite(one) else one for one in rewards]
    except (TypeError, ValueError) as err:
        raise InvalidInputError(
            f"the reward function returned {rewards!r:.80}; return a list with a number for each "
            "response, or None where there is no reward"
        ) from err
    odd = (one for one in rewards if one is not None and not math.isfinite(one))
    if (first := next(odd, None)) is not None:
        # Without numbers of responses, so that Python shows it once.
        warnings.warn(
            f"the reward function returned {first} for responses, which have no reward; return "
            "None where there is none, or correct the function",
            RuntimeWarning,
            stacklevel=3,
        )
    return found


def checked_unscored(unscored: float | None) -> None:
    """Refuse NaN and infinity as what a response without a reward gets.

    Raises:
        InvalidInputError: It is one of them.
    """
    if unscored is not None and not math.isfinite(unscored):
        raise InvalidInputError(f"unscored={unscored!r}; give a number, or None to leave it out")


def by_columns(
    reward: Rewarding,
    references: str,
    filled: Callable[[Sequence[float | None], Any], list[float | None]],
    *,
    asynchronous: bool,
) -> Callable[..., Any]:
    """Return a reward function that a trainer calls with the columns of its dataset.

    Args:
        reward: The reward.
        references: The column that has the references.
        filled: What gives the rewards, from those found and the column `prompt_id`, if any.
        asynchronous: Whether the function is awaited.
    """

    def rewarded(completions: Sequence[object], **columns: Any) -> list[float | None]:
        if references not in columns:
            known = ", ".join(sorted(columns))
            raise InvalidInputError(
                f"the dataset has no column {references!r}; the trainer passes on: {known}"
            )
        column = Column(columns[references], f"the column {references!r}")
        return filled(finite(reward(list(completions), column)), columns.get("prompt_id"))

    async def awaited(completions: Sequence[object], **columns: Any) -> list[float | None]:
        # Scoring blocks, and TRL awaits its asynchronous rewards together.
        return await asyncio.to_thread(rewarded, completions, **columns)

    chosen: Callable[..., Any] = awaited if asynchronous else rewarded
    # TRL logs rewards under the function's name.
    chosen.__name__ = chosen.__qualname__ = getattr(reward, "score", "hallujudge")
    return chosen


def means_of_prompts(rewards: Sequence[float | None], prompts: Sequence[str]) -> list[float | None]:
    """Return rewards in which the mean of the same prompt's others stands for None.

    Args:
        rewards: The rewards.
        prompts: The name of each one's prompt; None stays None where that is empty.
    """
    groups: dict[str, list[float]] = {}
    for one, prompt in zip(rewards, prompts, strict=True):
        # Rows without a prompt have no group, whose mean could stand for their reward.
        if one is not None and prompt:
            groups.setdefault(prompt, []).append(one)
    means = {prompt: math.fsum(known) / len(known) for prompt, known in groups.items()}
    return [
        means.get(prompt) if one is None else one
        for one, prompt in zip(rewards, prompts, strict=True)
    ]


class Gathered:
    """Gathers single calls of many threads and tasks into batches of a reward.

    A batch begins with the first call. It is scored when it is full, when it has as many calls as
    the last one, when no call came for a tenth of ``max_wait``, or when ``max_wait`` has passed.
    While one batch is scored, the next one is gathered.

    Args:
        reward: The reward.
        max_size: The most responses of a batch.
        max_wait: The most seconds that a batch waits for further calls.
        name: What messages call the references.
    """

    def __init__(
        self,
        reward: Rewarding,
        *,
        max_size: int = 256,
        max_wait: float = 0.005,
        name: str = "the references",
    ) -> None:
        if max_size < 1 or not 0 <= max_wait < math.inf:
            raise InvalidInputError(
                f"max_size={max_size!r} must be at least 1 and max_wait={max_wait!r} at least 0"
            )
        self._reward = reward
        self._max_size = max_size
        self._max_wait = max_wait
        self._name = name
        self._begin()
        # A forked process has no copy of the thread, and callers there would wait for ever.
        renew_after_fork(self._begin)

    def _begin(self) -> None:
        self._waiting: list[tuple[Any, object, Future[float | None]]] = []
        self._changed = threading.Condition(threading.Lock())
        self._thread: threading.Thread | None = None
        # Callers come back after a batch, so that it is complete with as many as the last had.
        self._enough = self._max_size
        self._closed = False

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy in another process needs."""
        sizes = {"max_size": self._max_size, "max_wait": self._max_wait}
        return {"reward": self._reward, "name": self._name, **sizes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Gather in this process."""
        self.__init__(**state)  # type: ignore[misc]

    def __call__(self, response: Any, reference: object) -> float | None:
        """Return the reward of one response."""
        return self._submit(response, reference).result()

    def many(self, responses: Sequence[Any], references: Sequence[object]) -> list[float | None]:
        """Return the reward of each response; those of other threads may share their batches."""
        futures = list(map(self._submit, responses, references))
        return [future.result() for future in futures]

    async def reward(self, response: Any, reference: object) -> float | None:
        """Return the reward of one response without blocking the event loop."""
        return await asyncio.wrap_future(self._submit(response, reference))

    def close(self) -> None:
        """Score what waits, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        self._begin()

    def _submit(self, response: Any, reference: object) -> Future[float | None]:
        future: Future[float | None] = Future()
        with self._changed:
            self._waiting.append((response, reference, future))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name="hallujudge-rewards", daemon=True
                )
                self._thread.start()
            # Waking a thread at every call takes longer than the rest of this method.
            if len(self._waiting) in (1, self._enough):
                self._changed.notify()
        return future

    def _serve(self) -> None:
        while taken := self._next():
            # A caller that was cancelled waits no longer.
            batch = [one for one in taken if one[2].set_running_or_notify_cancel()]
            try:
                references = Column([one[1] for one in batch], self._name)
                found = self._reward([one[0] for one in batch], references)
                rewards = finite(found)
            except BaseException as err:
                # The callers wait in other threads for whatever it is; the next batch may succeed.
                for *_, future in batch:
                    future.set_exception(err)
                continue
            for (*_, future), reward in zip(batch, rewards, strict=True):
                future.set_result(reward)

    def _next(self) -> list[tuple[Any, object, Future[float | None]]]:
        """Return the next batch; an empty one when there will be no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            self._gather()
            batch = self._waiting[: self._max_size]
            del self._waiting[: self._max_size]
            self._enough = len(batch)
            return batch

    def _gather(self) -> None:
        """Wait for further calls, until the batch is full or no call came for a while."""
        end = time.monotonic() + self._max_wait
        count = 0
        while count < len(self._waiting) < self._enough and time.monotonic() < end:
            count = len(self._waiting)
            self._changed.wait_for(
                lambda: len(self._waiting) >= self._enough or self._closed,
                self._max_wait / _PAUSES,
            )
