"""Open answers matched against right ones by a judge (papers/pope.txt, section 5.4, appendix E)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..answers.text import folded

__all__ = ["VqaMatch", "match_of_number", "offered_answers", "vqa_score"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VqaMatch:
    """What a judge found."""

    answer: str | None
    """The right answer that the reply matches; None where it matches none, or is unread."""
    read: bool
    """Whether the judge's verdict could be read; where not, the reply is unscored, never wrong."""


def offered_answers(answers: Sequence[str]) -> tuple[str, ...]:
    """Each right answer once, the commonest first, so that a judge takes it where several match."""
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for answer in answers:
        counts[folded(answer)] += 1
        first.setdefault(folded(answer), answer)
    return tuple(first[key] for key, _ in counts.most_common())


def match_of_number(verdict: str, offered: Sequence[str]) -> VqaMatch:
    """The right answer of a judge's number: 1 is the first offered, 0 is none.

    Numbers are what a judge may say, so that nothing in an answer can become a verdict.
    """
    said = verdict.strip().strip("\"'.")
    if said.isascii() and said.isdecimal() and int(said) <= len(offered):
        return VqaMatch(answer=offered[int(said) - 1] if int(said) else None, read=True)
    return VqaMatch(answer=None, read=False)


def vqa_score(answer: str | None, answers: Sequence[str]) -> float:
    """The VQA score (Antol et al. 2015) of a matched answer.

    The mean, over each person left out in turn, of min(1, others who said the same / 3).

    Args:
        answer: The right answer that was matched; None: none was.
        answers: What people answered, usually ten of them.
    """
    if answer is None or not answers:
        return 0.0
    same = [folded(other) == folded(answer) for other in answers]
    total = sum(same)
    return sum(min(1.0, (total - mine) / 3) for mine in same) / len(same)
