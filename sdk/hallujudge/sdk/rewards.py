"""Rewards for reinforcement learning: a value for each response, where higher is better.

    from hallujudge.sdk.rewards import Reward, trl_reward

    reward = Reward("chair", "chair_i", min_words=20)
    trainer = GRPOTrainer(..., reward_funcs=[trl_reward(reward, references="objects")])

A reward is None where there is nothing to judge: an unscored response, an undefined score, a
reference that is missing. It is never NaN. The adapters return what each trainer calls; none of
them imports the trainer.
"""

from __future__ import annotations

import asyncio
import math
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hallujudge.judge_service.threads import renew_after_fork
from hallujudge.metrics.responses.keyed_thoughts import message_text
from hallujudge.metrics.responses.leftovers import response_in

from .errors import InvalidInputError
from .scorer import Scorer

if TYPE_CHECKING:
    from hallujudge.metrics.framework.columns_and_scores import ScoreDefinition

__all__ = [
    "Gathered",
    "Reward",
    "WeightedReward",
    "openrlhf_reward",
    "swift_reward",
    "trl_reward",
    "verl_reward",
]

Direction: TypeAlias = Literal["auto", "higher", "lower"]
"""Which end of the score is better; ``auto`` is what the metric declares."""
Rewarding: TypeAlias = "Callable[..., list[float | None]]"
"""A reward: called with responses and their references, or with pairs of an id and a response."""

_NGRAM = 4
# A batch ends after a pause of this part of its longest wait: who calls at once has called then.
_PAUSES = 10


class Reward:
    """A score of a metric as a reward.

    The score's own range becomes ``low`` to ``high``, turned round if lower scores are better. A
    response that a guard refuses gets ``low`` without being scored, so that a model does not learn
    to say nothing, or the same thing again and again, which hallucinates little.

    Args:
        metric: The metric's name.
        score: The score's name; empty for the metric's main score.
        direction: Which end of the score is better.
        limits: The score's range; None for the declared one. Scores outside of it count as its
            ends. A score without an upper limit, such as a length, needs them.
        low: The reward of the worst score.
        high: The reward of the best score.
        min_words: The fewest words of a response.
        max_repetition: The largest share of a response's sequences of four words that occurred
            before in it.
        pattern: A regular expression that the whole response must match, such as a format with
            tags; its group ``response``, if it has one, is what is scored.
        **arguments: Arguments of :class:`Scorer`, such as ``references`` and ``server``.

    Raises:
        HallujudgeError: An argument is wrong; see :class:`Scorer`.

    Example:
        >>> reward = Reward("chair", "chair_i")
        >>> reward(["A cat.", "A cat and a dog."], [["cat"], ["cat"]])
        [1.0, 0.5]
        >>> reward.scorer.close()
    """

    def __init__(
        self,
        metric: str,
        score: str = "",
        *,
        direction: Direction = "auto",
        limits: tuple[float, float] | None = None,
        low: float = 0.0,
        high: float = 1.0,
        min_words: int = 0,
        max_repetition: float = 1.0,
        pattern: str = "",
        **arguments: Any,
    ) -> None:
        if not -math.inf < low < high < math.inf:
            raise InvalidInputError(f"low={low!r} and high={high!r}; low must be below high")
        arguments = {"evidence": False, **arguments}
        self.scorer = Scorer(metric, scores=[score] if score else (), **arguments)
        """Scores the responses."""
        (self.score,) = self.scorer.scores
        """The score's name."""
        self.low, self.high = low, high
        self._guards = _Guards(min_words, max_repetition, _compiled(pattern))
        self._definition = self._ranged(direction, limits)

    def _ranged(self, direction: Direction, limits: tuple[float, float] | None) -> ScoreDefinition:
        """Return the score's definition, with the range and the better end that are meant."""
        declared = self.scorer.definition(self.score)
        found = declared.direction if direction == "auto" else direction
        if found not in ("higher", "lower"):
            raise InvalidInputError(
                f"{self.scorer.metric} does not say which end of {self.score} is better; give "
                "direction='higher' or 'lower'"
            )
        low, high = limits or (declared.low, declared.high)
        if not -math.inf < low < high < math.inf:
            raise InvalidInputError(
                f"{self.score} ranges from {low:g} to {high:g}; give limits=(lowest, highest)"
            )
        return replace(declared, low=low, high=high, direction=found)

    def __call__(
        self, responses: Sequence[Any], references: Sequence[object] | None = None
    ) -> list[float | None]:
        """Return the reward of each response, in order.

        Args:
            responses: Pairs of a reference's id and a response; with ``references``, the responses
                alone.
            references: The reference of each response; see :meth:`Scorer.__call__`.
        """
        if not self._guards.any:
            found = self.scorer(responses, references)
            return [self._reward(one.scores[self.score]) for one in found]
        pairs = list(responses) if references is None else [("", text) for text in responses]
        texts = [self._guards.admitted(text) for _, text in pairs]
        kept = [at for at, text in enumerate(texts) if text is not _REFUSED]
        rewards: list[float | None] = [self.low] * len(pairs)
        scored = (
            self.scorer([(pairs[at][0], texts[at]) for at in kept])
            if references is None
            else self.scorer([texts[at] for at in kept], [references[at] for at in kept])
        )
        for at, one in zip(kept, scored, strict=True):
            rewards[at] = self._reward(one.scores[self.score])
        return rewards

    def _reward(self, score: float | None) -> float | None:
        if score is None or not math.isfinite(score):
            return None
        return self.low + (self.high - self.low) * self._definition.share(score)


_REFUSED: Any = object()


@dataclass(frozen=True, slots=True)
class _Guards:
    """What a response must be like to be scored."""

    min_words: int
    max_repetition: float
    pattern: re.Pattern[str] | None

    @property
    def any(self) -> bool:
        """Return whether a response may be refused."""
        return self.min_words > 0 or self.max_repetition < 1 or self.pattern is not None

    def admitted(self, response: Any) -> Any:
        """Return what is scored of a response, or ``_REFUSED``."""
        if not isinstance(response, str):
            return response
        if self.pattern is not None:
            match = self.pattern.fullmatch(response)
            if match is None:
                return _REFUSED
            response = match.groupdict().get("response") or response
        words = response.lower().split() if self.min_words or self.max_repetition < 1 else []
        if len(words) < self.min_words or _repetition(words) > self.max_repetition:
            return _REFUSED
        return response


def _finite(rewards: Sequence[float | None]) -> list[float | None]:
    """Return rewards without NaN and infinity, which a function of a user's may return."""
    return [None if one is None or not math.isfinite(one) else one for one in rewards]


def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern, re.DOTALL) if pattern else None
    except re.error as err:
        raise InvalidInputError(f"pattern={pattern!r} is not a regular expression: {err}") from err


def _repetition(words: Sequence[str]) -> float:
    """Return the share of the sequences of four words that occurred before."""
    found = [tuple(words[at : at + _NGRAM]) for at in range(len(words) - _NGRAM + 1)]
    return 1 - len(set(found)) / len(found) if found else 0.0


class WeightedReward:
    """The weighted mean of several rewards; None where one of them is None.

    Args:
        parts: Rewards with their weights, such as ``[(few_hallucinations, 0.7), (recall, 0.3)]``.

    Raises:
        InvalidInputError: A weight is not above 0.
    """

    def __init__(self, parts: Sequence[tuple[Rewarding, float]]) -> None:
        if not parts or not all(0 < weight < math.inf for _, weight in parts):
            raise InvalidInputError("give at least one reward, each with a weight above 0")
        total = sum(weight for _, weight in parts)
        self._parts = [(reward, weight / total) for reward, weight in parts]

    def __call__(
        self, responses: Sequence[Any], references: Sequence[object] | None = None
    ) -> list[float | None]:
        """Return the reward of each response, in order."""
        columns = [_finite(reward(responses, references)) for reward, _ in self._parts]
        weights = [weight for _, weight in self._parts]
        return [
            None if None in row else math.fsum(w * v for w, v in zip(weights, row, strict=True))
            for row in zip(*columns, strict=True)
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
    """

    def __init__(self, reward: Rewarding, *, max_size: int = 256, max_wait: float = 0.005) -> None:
        if max_size < 1 or not 0 <= max_wait < math.inf:
            raise InvalidInputError(
                f"max_size={max_size!r} must be at least 1 and max_wait={max_wait!r} at least 0"
            )
        self._reward = reward
        self._max_size = max_size
        self._max_wait = max_wait
        self._begin()
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
        return {"reward": self._reward, "size": self._max_size, "wait": self._max_wait}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Gather in this process."""
        self.__init__(state["reward"], max_size=state["size"], max_wait=state["wait"])  # type: ignore[misc]

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
                found = self._reward([one[0] for one in batch], [one[1] for one in batch])
                rewards = _finite(found)
            except BaseException as err:
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


def _text_of(completion: object) -> object:
    """Return the text of a completion: a text, or the messages of a conversation."""
    if not isinstance(completion, (list, tuple)):
        return completion
    messages = [message for message in completion if isinstance(message, Mapping)]
    return message_text(messages[-1]) if messages else None


def trl_reward(
    reward: Rewarding, *, references: str, asynchronous: bool = False
) -> Callable[..., Any]:
    """Return a reward function for TRL's ``GRPOTrainer(reward_funcs=…)``.

    Args:
        reward: The reward.
        references: The column of the dataset that has each prompt's reference.
        asynchronous: Whether TRL awaits the function with the other asynchronous ones.
    """

    def rewarded(completions: Sequence[object], **columns: Any) -> list[float | None]:
        if references not in columns:
            known = ", ".join(sorted(columns))
            raise InvalidInputError(
                f"the dataset has no column {references!r}; trl passes on: {known}"
            )
        return _finite(reward(list(map(_text_of, completions)), list(columns[references])))

    async def awaited(completions: Sequence[object], **columns: Any) -> list[float | None]:
        return await asyncio.to_thread(rewarded, completions, **columns)

    chosen: Callable[..., Any] = awaited if asynchronous else rewarded
    # TRL logs rewards under the function's name.
    chosen.__name__ = chosen.__qualname__ = getattr(reward, "score", "hallujudge")
    return chosen


def verl_reward(
    reward: Rewarding, *, unscored: float = 0.0, max_size: int = 256, max_wait: float = 0.005
) -> Callable[..., Any]:
    """Return ``compute_score`` for verl's ``reward.custom_reward_function``.

    verl calls it for one response at a time, from several tasks: calls are gathered into batches.

    Args:
        reward: The reward; verl's ``ground_truth`` is the reference.
        unscored: What a response without a reward gets, since verl needs a number.
        max_size: The most responses of a batch.
        max_wait: Seconds that a batch waits for further calls.
    """
    gathered = Gathered(reward, max_size=max_size, max_wait=max_wait)

    async def compute_score(
        data_source: object,  # noqa: ARG001 - verl's signature
        solution_str: str,
        ground_truth: object,
        extra_info: object = None,  # noqa: ARG001
        **_: object,
    ) -> float:
        found = await gathered.reward(solution_str, ground_truth)
        return unscored if found is None else found

    return compute_score


def openrlhf_reward(
    reward: Rewarding,
    *,
    tensor: Callable[[list[float]], Any],
    unscored: float = 0.0,
    max_size: int = 256,
    max_wait: float = 0.005,
) -> Callable[..., dict[str, Any]]:
    """Return ``reward_func(queries, prompts, labels)`` for OpenRLHF's ``--reward.remote_url``.

    OpenRLHF calls it for one response at a time, from several threads: calls are gathered.

    Args:
        reward: The reward; OpenRLHF's labels are the references.
        tensor: What makes OpenRLHF's tensors: ``torch.tensor``.
        unscored: What a response without a reward gets, since OpenRLHF needs numbers.
        max_size: The most responses of a batch.
        max_wait: Seconds that a batch waits for further calls.
    """
    gathered = Gathered(reward, max_size=max_size, max_wait=max_wait)

    def reward_func(
        queries: Sequence[str], prompts: Sequence[str], labels: Sequence[object], **_: object
    ) -> dict[str, Any]:
        # A query is the prompt with the response behind it.
        found = gathered.many(list(map(response_in, queries, prompts)), labels)
        rewards = tensor([unscored if one is None else one for one in found])
        missing = tensor([float(one is None) for one in found])
        return {"rewards": rewards, "scores": rewards, "extra_logs": {"unscored": missing}}

    return reward_func


def swift_reward(
    reward: Rewarding, *, references: str, asynchronous: bool = False
) -> Callable[..., Callable[..., Any]]:
    """Return what ms-swift's ``orms`` hold: called with its arguments, it gives the function.

    Args:
        reward: The reward.
        references: The column of the dataset that has each prompt's reference.
        asynchronous: Whether ms-swift awaits the function with the other asynchronous ones.
    """
    return lambda *_, **__: trl_reward(reward, references=references, asynchronous=asynchronous)
