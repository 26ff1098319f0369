"""Reading of the judge's replies: the choice, its margin, and the probabilities of the others.

Of a reply, only an offered choice is a verdict, and nothing is guessed. A reply is compared with
the choices as a whole. A choice inside a sentence does not count: "I would not call it supported"
contains one too.

Log-probabilities may be those before or after the mask of a constraint: vLLM applies the mask first
and lists what it rules out at -9999.0 (0.32.0, "raw" and "processed" alike), llama.cpp reports what
the model would have written. So margins and probabilities are *among the choices*: they do not say
whether the model would have chosen at all.

"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import NamedTuple

from ..llm.chat_replies import (
    TIED,
    ChatReply,
    ReplyProblem,
    Stated,
    TokenChoice,
    logits_problem,
    reply_problem,
    shown,
    without_thought,
)
from ..llm.failures import FailureKind
from .questions import VERDICT_KEY

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
    # The answer first: what it has in common with another choice counts as its own.
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


NO_VERDICT = "REPLY_OUT_OF_CHOICE"
"""The reason of a claim whose reply is not one of the offered choices."""

# Servers report zeros; what is less likely is noise of floating-point numbers.
_LEAST_PROBABILITY = 1e-9
WRAPPING = " \t\r\n\"'`*."
"""What is dropped around a choice, for servers that cannot constrain replies."""


class ReadAnswer(NamedTuple):
    """The part of a reply about one claim."""

    choice: str
    """The choice, or the text of a question without choices; empty if there is none."""
    margin: float | None = None
    """Its log-probability minus that of the best other choice, if reported. Both may be after the
    mask of a constraint, which rules out everything but the choices."""
    reason: str = ""
    """The reason if there is no choice."""
    detail: str = ""
    """The reason in words."""
    probabilities: tuple[float, ...] | None = None
    """Probability of each offered choice among all of them, in their order, if reported."""
    share: float | None = None
    """Probability of all choices together, if the protocol reports it."""
    is_listed: bool = False
    """Whether tokens are reported, with or without the choices among them."""


def has_tokens(answer: ReadAnswer | None) -> bool:
    """Return whether there is an answer whose server reports tokens, and so the choices' share."""
    return answer is not None and bool(answer.choice) and answer.is_listed


def read_choice(
    reply: ChatReply, choices: Sequence[str], envelope: tuple[str, str] = ("", "")
) -> ReadAnswer:
    """Return the choice that a whole reply consists of.

    White space, quotation marks, emphasis and a full stop around it are dropped and case is
    ignored, for servers that cannot constrain replies. A JSON string, and an object with
    ``verdict`` as its only key, are read as the text that they contain.

    Args:
        reply: The answer.
        choices: What was offered; empty if the text is the answer, as it is.
        envelope: The text before and after the choice, which is dropped.
    """
    reply = without_thought(reply)
    if problem := _problem_of(reply):
        return ReadAnswer("", None, *problem)
    text = reply.content.strip().removeprefix(envelope[0]).removesuffix(envelope[1])
    if not choices:
        return ReadAnswer(text) if text else ReadAnswer("", None, NO_VERDICT, "the reply is empty")
    inner = _only_string(text)
    answer = (text if inner is None else inner).strip(WRAPPING).casefold()
    if answer not in choices:
        return ReadAnswer("", None, NO_VERDICT, f"{shown(text)} is not one of {', '.join(choices)}")
    # Where the choice begins in the text, so that tokens can be followed from there.
    start = reply.content.casefold().rfind(answer)
    return _answer_at(reply, start, answer, choices)


def _problem_of(reply: ChatReply) -> ReplyProblem | None:
    """Return why no answer can be read from a reply; None if it can.

    Logits in place of log-probabilities would make margins and probabilities wrong without a word.
    """
    if reply.logit:
        return ReplyProblem(FailureKind.BAD_REPLY.value, logits_problem(reply.logit))
    return reply_problem(reply)


def read_keyed(reply: ChatReply, count: int, choices: Sequence[str]) -> list[ReadAnswer]:
    """Return the choices of a reply that is an object with keys ``1`` to ``count``.

    A claim whose entry is missing, duplicate or outside the choices has no verdict. Keys that were
    not asked for leave all claims without a verdict, because the numbering is then unclear.

    Args:
        reply: The answer.
        count: How many claims were asked about.
        choices: What was offered for each.
    """
    reply = without_thought(reply)
    if problem := _problem_of(reply):
        return [ReadAnswer("", None, *problem)] * count
    try:
        pairs = json.loads(reply.content, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as err:
        return [ReadAnswer("", None, "REPLY_NOT_JSON", f"{shown(reply.content)}: {err}")] * count
    if not isinstance(pairs, _Pairs):
        detail = f"{shown(reply.content)} is not a JSON object"
        return [ReadAnswer("", None, "REPLY_WRONG_SCHEMA", detail)] * count
    keys = [str(number) for number in range(1, count + 1)]
    if unknown := [key for key, _ in pairs if key not in keys]:
        detail = f"keys that were not asked for: {shown(', '.join(unknown))}"
        return [ReadAnswer("", None, "REPLY_WRONG_SCHEMA", detail)] * count
    return [_keyed_answer(reply, pairs, key, choices) for key in keys]


def read_stated(stated: Stated, choices: Sequence[str]) -> ReadAnswer:
    """Return a choice that was reported as probabilities.

    Args:
        stated: The answer.
        choices: What was offered.
    """
    if not stated.choice:
        return ReadAnswer("", None, stated.reason, stated.detail, share=stated.share)
    if not stated.probabilities:
        return ReadAnswer(stated.choice)
    chosen = choices.index(stated.choice)
    floored = [max(probability, _LEAST_PROBABILITY) for probability in stated.probabilities]
    rival = max(each for place, each in enumerate(floored) if place != chosen)
    total = math.fsum(floored)
    return ReadAnswer(
        stated.choice,
        math.log(floored[chosen]) - math.log(rival),
        probabilities=tuple(each / total for each in floored),
        share=stated.share,
    )


class _Pairs(list[tuple[str, object]]):
    """An object's entries, duplicates included: a claim that is answered twice has no verdict."""


def _keyed_answer(reply: ChatReply, pairs: _Pairs, key: str, choices: Sequence[str]) -> ReadAnswer:
    values = [value for name, value in pairs if name == key]
    if len(values) != 1:
        problem = "answered twice" if values else "not answered"
        return ReadAnswer("", None, "REPLY_WRONG_SCHEMA", f"claim {key} is {problem}")
    answer = values[0]
    if not isinstance(answer, str) or answer not in choices:
        found = shown(answer if isinstance(answer, str) else type(answer).__name__)
        return ReadAnswer(
            "", None, NO_VERDICT, f"claim {key}: {found} is not one of {', '.join(choices)}"
        )
    return _answer_at(reply, _value_start(reply.content, key), answer, choices)


def _answer_at(reply: ChatReply, start: int, answer: str, choices: Sequence[str]) -> ReadAnswer:
    found = followed(reply, start, answer, choices)
    if found is None:
        return ReadAnswer(answer)
    margin, probabilities = found.margin, found.probabilities
    if found.equals:
        detail = f"{answer} and {found.equals} are equally likely"
        return ReadAnswer("", margin, TIED, detail, probabilities)
    return ReadAnswer(answer, margin, probabilities=probabilities, is_listed=True)


def _value_start(text: str, key: str) -> int:
    """Return where the value of a key begins, after its quotation mark, which no key contains."""
    at = text.find(f'"{key}"')
    colon = text.find(":", at)
    return text.find('"', colon) + 1 if at >= 0 and colon >= 0 else -1


def _only_string(text: str) -> str | None:
    if text.strip()[:1] not in ('"', "{"):
        return None
    try:
        value = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, _Pairs) and [key for key, _ in value] == [VERDICT_KEY]:
        value = value[0][1]
    return value if isinstance(value, str) else None
