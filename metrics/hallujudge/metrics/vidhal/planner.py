"""Asking for an order pair by pair (papers/vidhal.txt, sections 4.1 and 9.2, Figure 34)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["PairAnswer", "PairQuestion", "RelativeOrdering"]


class PairQuestion(NamedTuple):
    """Two captions to choose between, in the order in which they are shown."""

    first: str
    """The letter of the caption that is shown first."""
    second: str
    """The letter of the other one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAnswer:
    """What a model chose."""

    question: PairQuestion
    """The pair."""
    chosen: str
    """The letter of the caption that it chose."""


class RelativeOrdering:
    """Finds an order by questions about pairs, as few as settle it.

    Neighbours are asked about first. A caption is put beside its neighbour, on the side that the
    answer says; while there are captions on that side, it is compared with them one by one, the
    nearest first, until one is found that it does not pass. Cycles can't arise: what is already
    settled is never asked. With three captions this is the paper's decision tree: two questions,
    and the third pair only if they leave two orders open.

    The released inference needs the truth where an answer can't be read: it takes the wrong one.
    Here :meth:`answer` is only given what was read; whether to stop or to assume the worst is the
    caller's choice.

    Args:
        letters: The captions' letters, in the order in which they are shown.

    Raises:
        ValueError: There are fewer than two, or one comes twice.
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
        """The pair to ask about next; None once the order is settled."""
        return self._question

    @property
    def order(self) -> tuple[str, ...] | None:
        """The order, the most faithful caption first; None while questions are open."""
        return self._order

    @property
    def answers(self) -> tuple[PairAnswer, ...]:
        """What was asked and answered so far."""
        return tuple(self._answers)

    def answer(self, chosen: str) -> None:
        """Takes the answer to :attr:`question`.

        Args:
            chosen: The letter of the caption that the model chose.

        Raises:
            ValueError: Nothing is asked, or the letter is not one of the pair.
        """
        question = self._question
        if question is None:
            raise ValueError("the order is settled; nothing is asked any more")
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
