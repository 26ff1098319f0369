"""Misleading captions of ``hallujudge build infact`` that a language model writes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from hallujudge.judge_service.llm.estimate import Estimate
from hallujudge.judge_service.llm.prompt_templates import Template
from hallujudge.sdk.cli.options import prompt_text, replies_of, say_failed
from hallujudge.sdk.cli.output import estimate_line
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.runs.progress_bar import shown_progress

from ..misleading_lines import (
    WrittenLines,
    estimate_lines,
    prompt_of,
    questions_of,
    write_lines,
)
from ..text_calls import text_model
from ..video.degrading import DegradeSettings
from ..video.infact_questions import Question, read_questions

OPERATOR = "caption_injection"
"""The operator that draws captions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Captioned:
    """What a model wrote for videos."""

    settings: DegradeSettings
    """Settings of operators, with the lines."""
    left_out: Mapping[str, str]
    """Video that has no misleading line -> why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionWriter:
    """Asks a language model for lines that mislead about questions."""

    references: Path | None
    """The questions; None if no model is asked."""
    prompt: Path | None
    """File of the user's own prompt."""
    model: Mapping[str, object]
    """The model's settings."""
    temperature: float

    def check(self, *, is_again: bool, kind: str, only_estimate: bool) -> None:
        """Check that options fit each other.

        Args:
            is_again: Whether a manifest describes the captions.
            kind: Which captions are drawn.
            only_estimate: Whether calls are counted only.

        Raises:
            InvalidInputError: They do not.
        """
        if self.references is None:
            if self.model or self.prompt or only_estimate:
                raise InvalidInputError(
                    "a language model writes misleading lines about questions, and there are none; "
                    "give --references FILE, or leave the model's options out"
                )
        elif is_again:
            raise InvalidInputError("--manifest has its captions; leave --references out")
        elif kind == "irrelevant":
            raise InvalidInputError(
                "--captions irrelevant draws no misleading lines; leave --references out"
            )

    def questions(
        self, videos: Sequence[str], operators: Sequence[str]
    ) -> Mapping[str, Sequence[Question]]:
        """Return the questions of each video.

        Raises:
            InvalidInputError: Captions are not drawn, or no question names a video.
        """
        assert self.references is not None
        if OPERATOR not in operators:
            raise InvalidInputError(f"--references is for {OPERATOR}; leave one of both out")
        return questions_of(videos, read_questions(self.references))

    def say_estimate(self, questions: Mapping[str, Sequence[Question]], out: Path) -> None:
        """Print the number of calls, tokens and the cost."""
        prompt = self._template()

        async def estimate() -> Estimate:
            given = (self.model, replies_of(out), self.temperature)
            async with text_model(*given, keeps=False) as model:
                return await estimate_lines(questions, model, prompt)

        click.echo(estimate_line(asyncio.run(estimate())))

    def write(
        self, questions: Mapping[str, Sequence[Question]], out: Path, settings: DegradeSettings
    ) -> Captioned:
        """Ask for lines that are not known yet, and say about which questions there is none."""
        prompt, replies = self._template(), replies_of(out)
        replies.parent.mkdir(parents=True, exist_ok=True)

        async def write() -> WrittenLines:
            async with text_model(self.model, replies, self.temperature) as model:
                return await write_lines(
                    questions, model, prompt, temperature=self.temperature, progress=progress
                )

        with shown_progress(sum(map(len, questions.values())), "written") as progress:
            found = asyncio.run(write())
        failed = {
            f"{video}, question {key}": why
            for video, reasons in found.failed.items()
            for key, why in reasons.items()
            if video not in found.left_out
        }
        say_failed(failed, len(found.lines))
        misleading = {**settings.misleading, **found.lines}
        return Captioned(
            settings=replace(settings, misleading=misleading, written=found.made_by),
            left_out=found.left_out,
        )

    def _template(self) -> Template:

        return prompt_of(None if self.prompt is None else prompt_text(str(self.prompt)))
