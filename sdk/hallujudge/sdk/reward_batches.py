"""Batches of a reward: what is scored of them, what guards refuse, and what can't be scored.

Training code sees numbers alone, so whatever leaves responses without a reward for another cause
than the responses themselves is said, once of each kind. References that can't be read are a
mistake in the caller's data: a warning, and an error where a whole batch is so. Ids without a
reference and failures of judges are logged.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hallujudge.metrics.framework.results import UnscoredReason

from .archives.plain_values import plain
from .errors import InvalidInputError
from .runs.response_scores import ResponseScore, response_of

_LOG = logging.getLogger(__name__)

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
            InvalidInputError: The arguments differ in number, or a response is not a text.
        """
        if references is None:
            ids = [name for name, _ in responses]
            texts = [response_of(given, at) for at, (_, given) in enumerate(responses)]
            return cls(ids=ids, texts=texts, references=None)
        if len(references) != len(responses):
            raise InvalidInputError(
                f"{len(responses)} responses, but {len(references)} references; give one for each"
            )
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
        if wrong and len(wrong) == len(scores):
            text = self._sentence(batch, scores, wrong)
            raise InvalidInputError(f"{text}. Correct the references")
        for kind, places in kinds.items():
            if kind not in self._said:
                self._said.add(kind)
                text = self._sentence(batch, scores, places)
                text = f"{text}. They have no reward; more of this kind are not reported"
                if kind[1]:
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
