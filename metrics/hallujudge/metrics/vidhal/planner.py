"""An order found by questions about pairs (papers/vidhal.txt, sections 4.1 and 9.2, Figure 34)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["PairAnswer", "PairQuestion", "RelativeOrdering"]


class PairQuestion(NamedTuple):
    """Two captions to choose between, in display order."""

    first: str
    """Letter of the first caption."""
    second: str
    """Letter of the second caption."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAnswer:
    """A model's answer to a question."""

    question: PairQuestion
    """The pair."""
    chosen: str
    """Letter of the chosen caption."""


class RelativeOrdering:
    """Finds an order with as few questions about pairs as possible.

    Each caption is first compared with its neighbour in display order, and placed on the side that
    the answer gives. It is then compared with the captions on that side, the nearest first, until
    it does not pass one. No pair is asked whose order is known, so that cycles cannot arise. For
    three captions this is the paper's decision tree: two questions, and a third if they leave two
    orders open.

    For an unparsed answer, the released inference looks at the annotation and assumes the wrong
    choice. Here :meth:`answer` accepts parsed answers only; the caller decides whether to stop or
    to assume the wrong choice.

    Args:
        letters: Letters of the captions, in display order.

    Raises:
        ValueError: There are fewer than two letters, or a duplicate.
    """

    def __init__(self, letters: Sequence[str]) -> None:
        if len(letters) < 2 or len(set(letters)) < len(letters):
            raise ValueError(f"give at least two different letters; got {list(letters)}")
        self._letters = tuple(letters)
        self._answers: list[PairAnswer] = []
        self._steps = self._ask()
        self._question: PairQuestion | None = next(self._steps)
        self._order: tuple[str, ...] | None = None

    @property
    def question(self) -> PairQuestion | None:
        """The next pair; None once the order is known."""
        return self._question

    @property
    def order(self) -> tuple[str, ...] | None:
        """The order, the most faithful caption first; None while a question is open."""
        return self._order

    @property
    def answers(self) -> tuple[PairAnswer, ...]:
        """The questions and answers so far."""
        return tuple(self._answers)

    def answer(self, chosen: str) -> None:
        """Add the answer to :attr:`question`.

        Args:
            chosen: Letter of the chosen caption.

        Raises:
            ValueError: No question is open, or the letter is not one of the pair.
        """
        question = self._question
        if question is None:
            raise ValueError("the order is known, so no question is open; read it from .order")
        if chosen not in question:
            raise ValueError(f"{chosen!r} is neither {question.first!r} nor {question.second!r}")
        self._answers.append(PairAnswer(question=question, chosen=chosen))
        try:
            self._question = self._steps.send(chosen)
        except StopIteration as stop:
            self._question, self._order = None, tuple(stop.value)

    def _ask(self) -> Generator[PairQuestion, str, list[str]]:
        order = [self._letters[0]]
        for neighbour, letter in zip(self._letters, self._letters[1:], strict=False):
            place = order.index(neighbour)
            before = (yield self._pair(neighbour, letter)) == letter
            if before:
                while place > 0 and (yield self._pair(order[place - 1], letter)) == letter:
                    place -= 1
            else:
                place += 1
                while place < len(order) and (yield self._pair(order[place], letter)) != letter:
                    place += 1
            order.insert(place, letter)
        return order

    def _pair(self, one: str, other: str) -> PairQuestion:
        first, second = sorted((one, other), key=self._letters.index)
        return PairQuestion(first, second)
