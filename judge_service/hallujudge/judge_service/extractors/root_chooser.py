"""A language model chooses the root of a synonym graph that an unknown keyword belongs to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InvalidInputError, UnavailableError
from .llm_extractor_base import SHOWN_CHARS, Extraction, LlmExtractor, object_schema, with_keys

if TYPE_CHECKING:
    from ..llm.budget import VerdictStore
    from ..llm.client import ChatClient


NO_ROOT = "none of these"
"""The reply for a word that belongs to none of the offered roots."""

# One bad entry invalidates a whole reply, so calls are kept small.
_WORDS_PER_CALL = 10
_KINDS = {"objects": "things and beings", "behaviors": "actions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RootQuestion:
    """A word and the roots that it may belong to."""

    word: str
    """The word."""
    roots: tuple[str, ...]
    """The roots, the nearest first."""

    def choices(self) -> dict[str, str]:
        """Return roots as the prompt shows them -> the roots themselves."""
        from ..llm.prompt_templates import defused

        shown: dict[str, str] = {}
        for root in self.roots:
            if (text := defused(root)) and text != NO_ROOT:
                shown.setdefault(text, root)
        return shown


class LlmRootChooser(LlmExtractor[tuple[RootQuestion, ...], dict[str, str]]):
    """Chooses roots for several words with one call.

    Only a root that was offered for a word counts. One entry outside the offered roots invalidates
    the whole reply.

    Args:
        client: Calls the model.
        kind: ``objects`` or ``behaviors``.
        cache: Keeps replies between runs.
        revision: The weights' revision, where known.
    """

    template_name = "choose_roots"

    def __init__(
        self,
        client: ChatClient,
        kind: str,
        *,
        cache: VerdictStore | None = None,
        revision: str = "",
    ) -> None:
        super().__init__(client, cache=cache, revision=revision, max_tokens=1024)
        self._kind = kind

    def _slots(self, source: tuple[RootQuestion, ...]) -> Mapping[str, str]:
        from ..llm.prompt_templates import as_line, fenced

        lines = (
            as_line([str(number), question.word, *question.choices()])
            for number, question in enumerate(source, 1)
        )
        return {"kind": _KINDS[self._kind], "words": fenced("WORDS", lines)}

    def _schema(self, source: tuple[RootQuestion, ...]) -> Mapping[str, object]:
        keys = {
            str(number): {"type": "string", "enum": [*question.choices(), NO_ROOT]}
            for number, question in enumerate(source, 1)
        }
        return object_schema(keys)

    def _checked(
        self, value: object, source: tuple[RootQuestion, ...]
    ) -> Extraction[dict[str, str]]:
        questions = {str(number): question for number, question in enumerate(source, 1)}
        answers = with_keys(value, list(questions))
        chosen = {question.word: _root(question, answers[n]) for n, question in questions.items()}
        return Extraction(found={word: root for word, root in chosen.items() if root is not None})


def _root(question: RootQuestion, answer: object) -> str | None:
    """The root that a reply names; None if it is not one of those offered."""
    if answer == NO_ROOT:
        return None
    root = question.choices().get(answer) if isinstance(answer, str) else None
    if root is None:
        shown = str(answer)[:SHOWN_CHARS]
        raise ValueError(f"{shown!r} was not offered for {question.word[:SHOWN_CHARS]!r}")
    return root


def root_chooser(
    chooser: LlmRootChooser, report: Callable[[str], None], close: Callable[[], Awaitable[None]]
) -> Callable[[Mapping[str, Sequence[str]]], dict[str, str]]:
    """Return a function that chooses a root for each word with a language model.

    Words that the model could not answer are reported and left out.

    Args:
        chooser: The extractor to ask.
        report: Receives one line for each failed call.
        close: Closes the model's connections; called once the words are answered.
    """

    async def ask(calls: list[tuple[RootQuestion, ...]]) -> dict[str, str]:
        try:
            results = await chooser.try_many(calls)
        except (InvalidInputError, UnavailableError) as err:
            report(str(err))
            return {}
        finally:
            await close()
        return _merged(calls, results, report)

    def choose(choices: Mapping[str, Sequence[str]]) -> dict[str, str]:
        questions = [RootQuestion(word=w, roots=tuple(roots)) for w, roots in choices.items()]
        calls = [
            tuple(questions[start : start + _WORDS_PER_CALL])
            for start in range(0, len(questions), _WORDS_PER_CALL)
        ]
        return asyncio.run(ask(calls))

    return choose


def _merged(
    calls: Sequence[tuple[RootQuestion, ...]],
    results: Sequence[Extraction[dict[str, str]]],
    report: Callable[[str], None],
) -> dict[str, str]:
    """The answers of all calls that could be read; the others are reported."""
    found: dict[str, str] = {}
    for questions, result in zip(calls, results, strict=True):
        if result.found is None:
            words = ", ".join(question.word for question in questions)
            report(f"no roots for {words[:200]}: {result.reason}: {result.detail}")
        else:
            found |= result.found
    return found
