"""Open answers to questions, which a judge matches with accepted ones (POPE, appendix E)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .answer_text import folded


@dataclass(frozen=True, slots=True, kw_only=True)
class VqaMatch:
    """What a judge found."""

    answer: str | None
    """The right answer that the response matches; None if it matches none or is unparsed."""
    read: bool
    """Whether the judge's reply was parsed; if not, the response is unscored, never wrong."""


def offered_answers(answers: Sequence[str]) -> tuple[str, ...]:
    """Return each right answer once, the most frequent first; a judge names the first match."""
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for answer in answers:
        counts[folded(answer)] += 1
        first.setdefault(folded(answer), answer)
    return tuple(first[key] for key, _ in counts.most_common())


def match_of_number(verdict: str, offered: Sequence[str]) -> VqaMatch:
    """Return the right answer by a judge's number: 1 is the first one, 0 is none.

    A judge may only name numbers, so that no text of an answer can become a verdict.
    """
    said = verdict.strip().strip("\"'.")
    if said.isascii() and said.isdecimal() and int(said) <= len(offered):
        return VqaMatch(answer=offered[int(said) - 1] if int(said) else None, read=True)
    return VqaMatch(answer=None, read=False)


def vqa_score(answer: str | None, answers: Sequence[str]) -> float:
    """Return the VQA score (Antol et al. 2015) of a matched answer.

    Each person is left out in turn; the score is the mean of min(1, number of others with the same
    answer / 3).

    Args:
        answer: The matched right answer; None if there is none.
        answers: The answers of people, usually ten.
    """
    if answer is None or not answers:
        return 0.0
    same = [folded(other) == folded(answer) for other in answers]
    total = sum(same)
    return sum(min(1.0, (total - mine) / 3) for mine in same) / len(same)
