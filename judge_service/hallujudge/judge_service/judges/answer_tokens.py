"""The tokens of an answer, and what else a server reports in their places.

Log-probabilities may be those before or after the mask of a constraint: vLLM applies the mask first
and lists what it rules out at -9999.0 (0.32.0, "raw" and "processed" alike), llama.cpp reports what
the model would have written. So margins and probabilities are *among the choices*: they do not say
whether the model would have chosen at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ..llm.chat_replies import ChatReply, TokenChoice

# Probabilities of a list are rounded, so that one more token of this size is never ruled out.
_ROUNDING = 1e-6


class Branch(NamedTuple):
    """A token that was reported in place of one of an answer's."""

    choice: str
    """The choice that the answer would be or begin with; empty if it would be none."""
    logprob: float
    """Log-probability of the answer up to and with this token."""
    gap: float
    """How much more likely the answer's own token is."""


class Followed(NamedTuple):
    """The tokens of an answer, from its first character on."""

    answer: str
    choices: Sequence[str]
    """What was offered."""
    logprob: float
    """Log-probability of the answer."""
    branches: list[Branch]
    """What else was reported on the way."""
    hides_choices: bool
    """Whether a choice that is not reported may be as likely as the answer: servers that list the
    tokens before the mask of a constraint may list none of the choices."""

    @property
    def _rivals(self) -> list[Branch]:
        return [branch for branch in self.branches if branch.choice not in ("", self.answer)]

    @property
    def equals(self) -> str:
        """A choice that the model could have begun as well; empty if there is none."""
        return next((rival.choice for rival in self._rivals if not rival.gap), "")

    @property
    def margin(self) -> float | None:
        """The difference in log-probability between the answer and the best other choice.

        A rival leaves the answer's path at the first token where it differs; its log-probability is
        that of the path so far and of the token that it would have had there (what it would need
        after that is left out, so that the margin is never too large). Where no rival is among the
        reported tokens, the least likely reported one is used instead: the true margin is larger.
        None if another choice may be as likely, and is not reported.
        """
        if self.hides_choices:
            return None
        rivals = [rival.logprob for rival in self._rivals]
        least = min((branch.logprob for branch in self.branches), default=0.0)
        return self.logprob - max(rivals, default=min(0.0, least, self.logprob))

    @property
    def probabilities(self) -> tuple[float, ...] | None:
        """The probability of each choice, among all that were offered.

        Every reported token that begins a choice adds its probability to that choice; what is not
        reported has none. It is None if only tokens of the answer were reported, or another choice
        may be as likely, and is not reported.
        """
        if self.hides_choices or not self.branches:
            return None
        begun = [(self.answer, self.logprob)]
        begun += [(branch.choice, branch.logprob) for branch in self.branches if branch.choice]
        # Subtracted, because the probability of a long answer may be too small for a float.
        most = max(logprob for _, logprob in begun)
        shares = [(choice, math.exp(logprob - most)) for choice, logprob in begun]
        total = math.fsum(share for _, share in shares)
        return tuple(
            math.fsum(share for each, share in shares if each == choice) / total
            for choice in self.choices
        )


def followed(reply: ChatReply, start: int, answer: str, choices: Sequence[str]) -> Followed | None:
    """Follow an answer's tokens; None if they are not reported, or not those of the answer.

    Args:
        reply: The reply.
        start: Where the answer begins in its text.
        answer: The answer.
        choices: What was offered.
    """
    path = _path(reply, start)
    if not any(token.top for _, token in path):
        return None
    # The token after an answer that is the beginning of another choice decides between them.
    open_end = any(each != answer and each.startswith(answer) for each in choices)
    written, so_far, branches, hides = "", 0.0, [], False
    for skipped, token in path:
        if len(written) >= len(answer):
            if len(written) > len(answer) or not open_end:
                break
            open_end = False
        here = [
            Branch(
                choice_begun_by((written + text).casefold(), answer, choices),
                so_far + logprob,
                token.logprob - logprob,
            )
            for text, logprob in _alternatives(token, skipped)
        ]
        may_differ = any(each != answer and each.startswith(written) for each in choices)
        if may_differ and not any(branch.choice not in ("", answer) for branch in here):
            hides = hides or _hides_likelier(token)
        branches += here
        written += token.text[skipped:].casefold()
        so_far += token.logprob
    if not written.startswith(answer) or (open_end and len(written) == len(answer)):
        return None
    return Followed(answer, choices, so_far, branches, hides)


def _hides_likelier(token: TokenChoice) -> bool:
    """Return whether a token that is not reported may be as likely as the one that was written.

    It is at most as likely as the least likely one of the list, and as what the list leaves over.
    """
    others = [logprob for text, logprob in token.top if text != token.text]
    left = 1.0 - math.fsum(map(math.exp, (token.logprob, *others)))
    return token.logprob <= min(math.log(max(left, _ROUNDING)), min(others, default=0.0))


def _alternatives(token: TokenChoice, skipped: int) -> list[tuple[str, float]]:
    """Return what each other reported token adds in place of this one."""
    before = token.text[:skipped]
    return [
        (text[skipped:], logprob)
        for text, logprob in token.top
        if text.startswith(before) and len(text) > skipped and text != token.text
    ]


def choice_begun_by(written: str, answer: str, choices: Sequence[str]) -> str:
    """Return the choice that a text may become, or is with other text after it; or empty."""
    order = (answer, *(choice for choice in choices if choice != answer))
    begun = [choice for choice in order if choice.startswith(written)]
    whole = [
        choice
        for choice in order
        if written.startswith(choice) and not written[len(choice) :][:1].isalnum()
    ]
    return next(iter(begun), max(whole, key=len, default=""))


def _path(reply: ChatReply, start: int) -> list[tuple[int, TokenChoice]]:
    """Return tokens from a character of the text on, with how many characters of each precede it.

    Servers take white space and thoughts off the text and leave them among the tokens, which may
    also have the token that ends the reply. So the text is looked for in them, from the end on.
    """
    at = "".join(token.text for token in reply.tokens).rfind(reply.content)
    if at < 0 or start < 0:
        return []
    path, offset = [], 0
    for token in reply.tokens:
        end = offset + len(token.text)
        if end > at + start:
            path.append((max(0, at + start - offset), token))
        offset = end
    return path
