"""Rewards for reinforcement learning: a value for each response, where higher is better.

    from hallujudge.sdk.rewards import Reward, trl_reward

    reward = Reward("chair", "chair_i", min_words=20)
    trainer = GRPOTrainer(..., reward_funcs=[trl_reward(reward, references="objects")])

A reward is None where there is nothing to judge: an unscored response, an undefined score, a
reference that is missing. It is never NaN. A warning names references that can't be read, once of
each kind; a batch without one that can be read is an error. The adapters return what each trainer
calls; none of them imports the trainer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, TypeGuard

from hallujudge.metrics.framework.columns_and_scores import ScoreDefinition
from hallujudge.metrics.responses.leftovers import response_in

from .errors import InvalidInputError
from .reward_batches import (
    REFUSED,
    Gathered,
    Guards,
    Problems,
    RewardBatch,
    Rewarding,
    by_columns,
    checked_unscored,
    compiled,
    finite,
    means_of_prompts,
)
from .scorer import Scorer

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
        # NaN and infinity fail here too: they compare as false.
        if not -math.inf < low < high < math.inf:
            raise InvalidInputError(f"low={low!r} and high={high!r}; low must be below high")
        # A server sends the scores alone in a third of the time.
        arguments = {"evidence": False, **arguments}
        self.scorer = Scorer(metric, scores=[score] if score else (), **arguments)
        """Scores the responses."""
        # A reward is one number, so that there is one score.
        (self.score,) = self.scorer.scores
        """The score's name."""
        self.low, self.high = low, high
        self._guards = Guards(min_words, max_repetition, compiled(pattern))
        self._problems = Problems(metric)
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
                alone. A response is a text, or the messages of a conversation.
            references: The reference of each response; see :meth:`Scorer.__call__`.

        Raises:
            InvalidInputError: No reference of all can be used. Of fewer, a warning tells.
        """
        batch = RewardBatch.of(responses, references)
        texts = list(map(self._guards.admitted, batch.texts))
        kept = [at for at, text in enumerate(texts) if text is not REFUSED]
        # Refused responses keep this value.
        rewards: list[float | None] = [self.low] * len(texts)
        if not kept:
            return rewards
        scored = batch.only(kept, texts)
        found = self.scorer(*scored.arguments)
        self._problems.say(scored, found)
        for at, one in zip(kept, found, strict=True):
            rewards[at] = self._reward(one.scores[self.score])
        return rewards

    def refuses(self, response: Any) -> bool:
        """Return whether a guard gives a response the lowest reward without scoring it."""
        return self._guards.admitted(response) is REFUSED

    def _reward(self, score: float | None) -> float | None:
        # A trainer's mean of rewards would become NaN with the first one.
        if score is None or not math.isfinite(score):
            return None
        return self.low + (self.high - self.low) * self._definition.share(score)


class WeightedReward:
    """The weighted mean of several rewards; None where one of them is None.

    A response that the guard of one part refuses gets the lowest reward of all parts, and is not
    scored. Of a part that is a function of yours, whose range is not known, it has the value.

    Args:
        parts: Rewards with their weights, such as ``[(few_hallucinations, 0.7), (recall, 0.3)]``.

    Raises:
        InvalidInputError: A weight is not above 0.
    """

    def __init__(self, parts: Sequence[tuple[Rewarding, float]]) -> None:
        if not parts or not all(0 < weight < math.inf for _, weight in parts):
            raise InvalidInputError("give at least one reward, each with a weight above 0")
        # Weights are shares, so that the rewards of other weights stay comparable.
        total = sum(weight for _, weight in parts)
        self._parts = [(reward, weight / total) for reward, weight in parts]

    def __call__(
        self, responses: Sequence[Any], references: Sequence[object] | None = None
    ) -> list[float | None]:
        """Return the reward of each response, in order."""
        ranged = any(_has_range(reward) for reward, _ in self._parts)
        batch = RewardBatch.of(responses, references) if ranged else None
        texts = responses if batch is None else batch.texts
        refused = list(map(self.refuses, texts))
        columns = [
            _part(reward, batch, refused)
            if batch is not None and _has_range(reward)
            else finite(reward(responses, references))
            for reward, _ in self._parts
        ]
        rows = zip(*columns, strict=True)
        return [self._mean(row, refused=one) for row, one in zip(rows, refused, strict=True)]

    def refuses(self, response: Any) -> bool:
        """Return whether a guard of a part refuses a response."""
        return any(reward.refuses(response) for reward, _ in self._parts if _has_range(reward))

    @property
    def low(self) -> float:
        """The lowest reward, of the parts whose range is known."""
        return _mean_of([(w, reward.low) for reward, w in self._parts if _has_range(reward)])

    def _mean(self, row: Sequence[float | None], *, refused: bool) -> float | None:
        known = [(w, v) for (_, w), v in zip(self._parts, row, strict=True) if v is not None]
        if len(known) == len(row):
            return math.fsum(weight * value for weight, value in known)
        return _mean_of(known) if refused else None


def _mean_of(known: Sequence[tuple[float, float]]) -> float:
    """Return the mean of values with weights; 0 without any."""
    total = math.fsum(weight for weight, _ in known)
    return math.fsum(weight * value for weight, value in known) / total if known else 0.0


def _has_range(reward: Rewarding) -> TypeGuard[Reward | WeightedReward]:
    """Return whether a reward has guards and a lowest value; a function of a user's has none."""
    return isinstance(reward, Reward | WeightedReward)


def _part(
    reward: Reward | WeightedReward, batch: RewardBatch, refused: Sequence[bool]
) -> list[float | None]:
    """Return the rewards of one part; refused responses get its lowest one without being scored."""
    kept = [at for at, one in enumerate(refused) if not one]
    rewards: list[float | None] = [reward.low] * len(refused)
    found = finite(reward(*batch.only(kept, batch.texts).arguments))
    for at, one in zip(kept, found, strict=True):
        rewards[at] = one
    return rewards


def trl_reward(
    reward: Rewarding,
    *,
    references: str,
    asynchronous: bool = False,
    unscored: float | None = None,
) -> Callable[..., Any]:
    """Return a reward function for TRL's ``GRPOTrainer(reward_funcs=…)``.

    Args:
        reward: The reward.
        references: The column of the dataset that has each prompt's reference.
        asynchronous: Whether TRL awaits the function with the other asynchronous ones.
        unscored: What a response without a reward gets; with None, TRL leaves it out.
    """
    checked_unscored(unscored)

    def filled(found: Sequence[float | None], _: object) -> list[float | None]:
        return [unscored if one is None else one for one in found]

    return by_columns(reward, references, filled, asynchronous=asynchronous)


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
    checked_unscored(unscored)
    gathered = Gathered(reward, max_size=max_size, max_wait=max_wait, name="ground_truth")

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
    checked_unscored(unscored)
    gathered = Gathered(reward, max_size=max_size, max_wait=max_wait, name="the labels")

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
    reward: Rewarding,
    *,
    references: str,
    asynchronous: bool = False,
    unscored: float | None = None,
) -> Callable[..., Callable[..., Any]]:
    """Return what ms-swift's ``orms`` hold: called with its arguments, it gives the function.

    Args:
        reward: The reward.
        references: The column of the dataset that has each prompt's reference.
        asynchronous: Whether ms-swift awaits the function with the other asynchronous ones.
        unscored: What a response without a reward gets. With None, the mean of the others to its
            prompt, so that it is neither rewarded nor punished: ms-swift counts None as 0. It stays
            None where they have no reward either.
    """
    checked_unscored(unscored)

    def filled(found: Sequence[float | None], prompts: Any) -> list[float | None]:
        given = [unscored if one is None else one for one in found]
        return means_of_prompts(given, prompts or [""] * len(given))

    # ms-swift calls what it finds in orms with arguments of its own, and expects an instance.
    return lambda *_, **__: by_columns(reward, references, filled, asynchronous=asynchronous)
