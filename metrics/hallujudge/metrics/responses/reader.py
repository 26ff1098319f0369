"""The reader of responses: what of a response is scored, and what a report says of the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from ..framework.metric import OptionDefinition
from ..framework.trait_sums import (
    CUT,
    DROPPED,
    FORM,
    KEPT,
    LEFT_OUT,
    PROMPT,
    REFUSAL,
    SCORED,
    THOUGHT,
    TOKENS,
    UNFINISHED,
    WORDS,
)
from .forms import Form, own_forms
from .leftovers import BARE_END, REFUSALS_BEGIN, cleaned, is_cut, is_refusal, without_cut_sentence
from .thoughts import Division, Said, divided, without_keyed_thought

THOUGHTS, MARKS = "thoughts", "thought_marks"
READER_OPTIONS = (
    OptionDefinition(
        name=THOUGHTS,
        choices=(LEFT_OUT, KEPT, SCORED),
        meaning="Thoughts of models that reason.",
        details="keep scores them with the answer; score scores them apart.",
        purpose="input",
    ),
    OptionDefinition(
        name=MARKS,
        meaning="More marks of thoughts.",
        details="An opening and a closing one a line.",
        purpose="input",
    ),
    OptionDefinition(
        name="template_tokens",
        choices=(LEFT_OUT, KEPT),
        meaning="Template tokens, and repeated prompts.",
        purpose="input",
    ),
    OptionDefinition(
        name="drop_cut_sentence",
        choices=("false", "true"),
        meaning="Leave out unfinished last sentences.",
        details="Published numbers at 64 tokens need it.",
        purpose="input",
    ),
)
"""Options that say how every metric reads responses."""


class Reading(NamedTuple):
    """A response as it is scored."""

    answer: str | None
    """The text that is scored; None without a response, and for a thought without an end."""
    thought: str = ""
    """The thought, which is not part of the answer; empty without one."""
    finished: bool = True
    """Whether there is an answer after the thought."""
    traits: Mapping[str, int] = {}
    """What was found: trait -> 1, or a number of words."""
    whole: str | None = None
    """The text with the thought that it has; None without one."""


_PLAIN: Mapping[str, int] = {}
# What tokenizers that skip special tokens leave of templates and empty thoughts.
_BEGINNINGS = ("system\n", "user\n", "thought\n", "analysis", "assistantanalysis")


def is_plain(text: str | None) -> bool:
    """Return whether a response is an answer as it is, as nearly all are.

    It has no marks of thoughts, answers or templates, ends a sentence, and is not a refusal.
    """
    # Searches in C, which take less time than one pattern or than a function for each question.
    return (
        text is not None
        and text[-1:] == "."
        and text[:4].lower() not in REFUSALS_BEGIN
        and _has_no_marks(text)
    )


def _has_no_marks(text: str) -> bool:
    # Forms of thoughts and templates have one of these characters, or are among the beginnings. The
    # two words are what is left between a thought and an answer of gpt-oss and of Kimi-K3.
    return not (
        "<" in text
        or ":" in text
        or "]" in text
        or "◁" in text
        or "\\" in text
        or "assistantfinal" in text
        or "thinkresponse" in text
        or "...done thinking." in text
        or text.lstrip().startswith(_BEGINNINGS)
    )


class ResponseReader(Struct, frozen=True, kw_only=True):
    """Divides responses into thoughts and answers, and leaves out what is not the model's."""

    keeps: bool = False
    """Whether thoughts are kept, and scored with the answer."""
    own: tuple[Form, ...] = ()
    """Further marks of thoughts."""
    keeps_tokens: bool = False
    """Whether tokens of templates and repeated prompts stay."""
    drops_cut: bool = False
    """Whether unfinished last sentences are left out."""
    division: Division | None = None
    """The rule of a variant whose tool knows marks of its own."""
    is_open: bool = False
    """Whether responses are texts with sentences, such as captions."""

    @classmethod
    def of(cls, options: Mapping[str, str], *, is_open: bool = False) -> ResponseReader:
        """Return the reader of a spec's options.

        Raises:
            ValueError: A mark of the user is not a pair.
        """
        return cls(
            keeps=options.get(THOUGHTS) == KEPT,
            own=own_forms(options.get(MARKS, "")),
            keeps_tokens=options.get("template_tokens") == KEPT,
            drops_cut=options.get("drop_cut_sentence") == "true",
            is_open=is_open,
        )

    def read(self, text: str | None) -> Reading:
        """Return a response as it is scored."""
        if text is None:
            return Reading(None)
        if _has_no_marks(text) and not self.own and not text.endswith(BARE_END):
            traits = dict[str, int]()
            return Reading(self._checked(text, traits), traits=traits or _PLAIN)
        return self._read(text)

    def _read(self, text: str) -> Reading:
        traits = dict[str, int]()
        whole = text if self.keeps_tokens else self._cleaned(text, traits)
        said = self._said(whole)
        if not said.form:
            return Reading(self._checked(said.answer, traits), traits=traits or _PLAIN)
        traits |= {THOUGHT: 1, WORDS: len(said.thought.split()), FORM + said.form: 1}
        # What the model server gave as content: the thought under its key was never a part of it.
        written = without_keyed_thought(whole)
        if self.keeps and written is not None:
            return Reading(self._checked(written, traits), said.thought, True, traits, written)
        if not said.finished:
            return Reading(None, said.thought, False, {**traits, UNFINISHED: 1}, written)
        answer = said.answer if self.keeps_tokens else self._cleaned(said.answer, traits)
        return Reading(self._checked(answer, traits), said.thought, True, traits, written)

    def _said(self, text: str) -> Said:
        return divided(text, self.own) if self.division is None else self.division(text)

    def _cleaned(self, text: str, traits: dict[str, int]) -> str:
        found = cleaned(text)
        if found.tokens:
            traits[TOKENS] = 1
        if found.prompt:
            traits[PROMPT] = 1
        return found.text

    def _checked(self, answer: str, traits: dict[str, int]) -> str:
        """Return the answer after a look at refusals and cut sentences."""
        if is_refusal(answer):
            traits[REFUSAL] = 1
        # Answers to closed questions often end without a full stop: "Yes. It is red".
        if (self.is_open or self.drops_cut) and is_cut(answer):
            traits[CUT] = 1
            if self.drops_cut:
                traits[DROPPED] = 1
                return without_cut_sentence(answer)
        return answer


PLAIN_READER = ResponseReader()
"""The reader without options, for checks of archives before anything is scored."""


def answer_of(text: str | None) -> str:
    """Return the answer of a response by the default rules; empty without one."""
    if text is None or (_has_no_marks(text) and not text.endswith(BARE_END)):
        return text or ""
    return PLAIN_READER.read(text).answer or ""
