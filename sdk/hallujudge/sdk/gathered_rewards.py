"""How trainers call a reward: with columns, or one response at a time, gathered into batches."""

from __future__ import annotations

import asyncio
import math
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeAlias

from hallujudge.judge_service.threads import renew_after_fork

from .errors import InvalidInputError
from .reward_batches import Column

Rewarding: TypeAlias = "Callable[..., list[float | None]]"
"""A reward: called with responses and their references, or with pairs of an id and a response."""

# A batch ends after a pause of this part of its longest wait: who calls at once has called then.
_PAUSES = 10


def finite(rewards: Sequence[float | None]) -> list[float | None]:
    """Return rewards without NaN and infinity, which a function of a user's may return.

    A warning tells of them, since a trainer shows a mean that is a number all the same.

    Raises:
        InvalidInputError: One is no number.
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
