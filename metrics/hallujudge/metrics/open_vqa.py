"""Open answers matched against right ones by a judge (papers/pope.txt, section 5.4, appendix E)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .answers._text import folded

__all__ = ["NO_MATCH", "VqaMatch", "match_question", "match_reply", "vqa_score"]

NO_MATCH = "NO MATCH"
"""What a judge says where a reply matches none of the right answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VqaMatch:
    """What a judge found."""

    answer: str | None
    """The right answer that the reply matches; None where it matches none, or is unread."""
    read: bool
    """Whether the judge's reply could be read; where not, the reply is unscored, never wrong."""


def choices_of(answers: Sequence[str]) -> tuple[str, ...]:
    """What a judge may say: each right answer once, the commonest first, and ``NO MATCH``."""
    common = Counter(answers).most_common()
    return (*(answer for answer, _ in common), NO_MATCH)


def match_question(question: str, answers: Sequence[str]) -> str:
    """What to ask a judge, before the fenced reply; in our words, after appendix E.

    The judge is offered the right answers, the commonest first, so that it takes the commonest
    where several match.
    """
    offered = "\n".join(f"- {answer}" for answer in choices_of(answers))
    return (
        "A model was asked a question about an image. Decide which of the accepted answers its "
        "reply agrees with. Where it agrees with several, take the first of them.\n"
        f"Question: {question}\nReply with one of these lines, and nothing else:\n{offered}"
    )


def match_reply(reply: str, answers: Sequence[str]) -> VqaMatch:
    """The right answer that a judge named: one that was offered, or nothing."""
    said = folded(reply)
    if said == folded(NO_MATCH):
        return VqaMatch(answer=None, read=True)
    for answer in choices_of(answers)[:-1]:
        if folded(answer) == said:
            return VqaMatch(answer=answer, read=True)
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
