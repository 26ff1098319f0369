"""Misleading captions of ``hallujudge build infact`` that a language model writes."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from hallujudge.judge_service.llm.estimate import Estimate, PlannedCall, estimate_calls
from hallujudge.judge_service.llm.prompt_templates import Message, Template, load_template
from hallujudge.sdk.cli.options import file_text, replies_of, say_failed
from hallujudge.sdk.cli.output import estimate_line
from hallujudge.sdk.errors import InvalidInputError

from ..asked_benchmarks import own_prompt
from ..inquiries import shown_options
from ..replies import NoReplyError
from ..text_calls import TextModel, text_model, written
from ..video.infact_questions import Question, by_stem, read_questions, stem_of
from ..vidhal_captions import read_sentence
from .infact import DegradeOptions

_T = TypeVar("_T")

_PROMPT = "infact_misleading"
# Room for a line that is too long, which is then refused with its length.
_MOST_TOKENS = 128
# Three lines at 360p, which hide a tenth of the picture.
MOST_CHARACTERS = 160
"""Characters of a caption at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLines:
    """What a model wrote."""

    lines: Mapping[str, Sequence[str]]
    """Video -> lines that mislead about its questions, in their order."""
    made_by: Mapping[str, Mapping[str, Any]]
    """Video -> how its lines were written, for its manifest."""
    failed: Mapping[str, Mapping[str, str]]
    """Video -> question -> why there is no line."""
    left_out: Mapping[str, str]
    """Video that can't be made now -> why: it has no line, or a call failed and is made again."""


def prompt_of(own: str | None) -> Template:
    """Return the prompt for a line.

    Args:
        own: The text that replaces ours; it may leave out the choices.

    Raises:
        InvalidInputError: It has other slots.
    """
    if own is None:
        return load_template(_PROMPT)
    # A question about no choices has none to show, so that a prompt may go without them.
    return own_prompt("--prompt", own, ("answer", "question", "options"), ("options",))


def questions_of(videos: Iterable[str], questions: Sequence[Question]) -> dict[str, list[Question]]:
    """Return the questions of each video, by the names of their files.

    Raises:
        InvalidInputError: No question names one of the videos.
    """
    named = by_stem(questions)
    found = {video: named.get(stem_of(video), []) for video in videos}
    if found and not any(found.values()):
        example = questions[0].video or questions[0].id
        raise InvalidInputError(
            f"the questions name none of the videos (found {example!r:.60}); name their files"
        )
    return found


def prompt_about(question: Question, prompt: Template) -> list[Message]:
    """Return the messages that ask for a line about a question.

    Raises:
        NoReplyError: The question lacks what the prompt has a slot for.
    """
    # A label is the letter of an option, or the answer itself.
    answer = question.options.get(question.label, question.label).strip()
    for name, value in (("question", question.asked.strip()), ("label", answer)):
        if not value:
            raise NoReplyError(f"{name.upper()}_MISSING", f"the record has no {name}")
    values = {"question": question.asked, "answer": answer}
    return prompt.messages({**values, "options": shown_options(question.options)})


def read_line(reply: str) -> str:
    """Return the caption of a reply.

    Raises:
        NoReplyError: The reply is empty, has several lines, or does not fit on a video.
    """
    line = read_sentence(reply)
    if len(line) > MOST_CHARACTERS:
        detail = f"{line[:40]!r}… has {len(line)} characters, more than {MOST_CHARACTERS}"
        raise NoReplyError("CAPTION_TOO_LONG", detail)
    return line


async def write_lines(
    asked: Mapping[str, Sequence[Question]],
    model: TextModel,
    prompt: Template,
    *,
    temperature: float,
) -> WrittenLines:
    """Return a misleading line about each question of each video.

    A video of which a call failed is left out, since the next run makes that call again and would
    then have other lines to draw from. A reply that gives no line stays what it is.
    """
    lines_of: dict[str, dict[str, str]] = defaultdict(dict)
    failed: dict[str, dict[str, NoReplyError]] = defaultdict(dict)

    async def work(job: tuple[str, Question]) -> bool:
        video, question = job
        try:
            messages = prompt_about(question, prompt)
            reply = await model.reply(messages, max_tokens=_MOST_TOKENS)
            lines_of[video][question.id] = read_line(reply)
        except NoReplyError as err:
            failed[video][question.id] = err
        return question.id not in failed[video]

    await model.run([*_jobs(asked)], work)
    # In the order of the questions, whichever reply came first.
    missed = {video: _in_order(failed[video], of) for video, of in asked.items()}
    left_out = {v: why for v in asked if (why := _why_not(missed[v], lines_of[v]))}
    lines = {v: _in_order(lines_of[v], of) for v, of in asked.items() if v not in left_out}
    how = {
        "model": model.name,
        "temperature": temperature,
        "prompt": prompt.label,
        "prompt_sha256": prompt.digest,
    }
    return WrittenLines(
        lines={video: [*found.values()] for video, found in lines.items()},
        made_by={
            video: {
                **how,
                "lines": found,
                "unwritten": {key: err.reason for key, err in sorted(missed[video].items())},
            }
            for video, found in lines.items()
        },
        failed={v: {key: str(err) for key, err in of.items()} for v, of in missed.items()},
        left_out=left_out,
    )


def _in_order(found: Mapping[str, _T], questions: Sequence[Question]) -> dict[str, _T]:
    return {each.id: found[each.id] for each in questions if each.id in found}


def _why_not(failed: Mapping[str, NoReplyError], written: Mapping[str, str]) -> str:
    """Return why a video can't be made; empty if it can."""
    # Failed calls come first: a reason that the next run may not have.
    for key, err in sorted(failed.items(), key=lambda entry: entry[1].is_kept):
        if not err.is_kept or not written:
            return f"no misleading line about question {key!r:.60}: {err}"
    return "" if written else "QUESTION_MISSING: no question names it"


def _jobs(asked: Mapping[str, Sequence[Question]]) -> Iterator[tuple[str, Question]]:
    return ((video, question) for video, questions in asked.items() for question in questions)


# The command's part -------------------------------------------------------------------------------


OPERATOR = "caption_injection"
"""The operator that draws captions."""


def check_writer(given: DegradeOptions) -> None:
    """Check that options of the model that writes lines fit the others.

    Raises:
        InvalidInputError: They do not.
    """
    if given.references is None:
        if given.writer.settings() or given.prompt or given.estimate:
            raise InvalidInputError(
                "a language model writes misleading lines about questions, and there are none; "
                "give --references FILE, or leave the model's options out"
            )
    elif given.manifest:
        raise InvalidInputError("--manifest has its captions; leave --references out")
    elif given.captions == "irrelevant":
        raise InvalidInputError(
            "--captions irrelevant draws no misleading lines; leave --references out"
        )


def asked_questions(
    references: Path, videos: Sequence[str], operators: Sequence[str]
) -> Mapping[str, Sequence[Question]]:
    """Return the questions of each video.

    Raises:
        InvalidInputError: Captions are not drawn, or no question names a video.
    """
    if OPERATOR not in operators:
        raise InvalidInputError(f"--references is for {OPERATOR}; leave one of both out")
    return questions_of(videos, read_questions(references))


def say_estimate(given: DegradeOptions, questions: Mapping[str, Sequence[Question]]) -> None:
    """Print the number of calls and tokens, and the cost, without calling the model."""
    prompt = _template(given)

    async def calls(model: TextModel) -> AsyncIterator[PlannedCall]:
        for _, question in _jobs(questions):
            try:
                messages = prompt_about(question, prompt)
            except NoReplyError:
                # Such a question is never asked: the run gives its reason.
                continue
            yield await model.plan(messages, max_tokens=_MOST_TOKENS)

    async def estimate() -> Estimate:
        settings = given.writer.settings(), replies_of(given.out), given.temperature
        async with text_model(*settings, keeps=False) as model:
            return await estimate_calls(model.name, model.client, calls(model))

    click.echo(estimate_line(asyncio.run(estimate())))


def written_lines(
    given: DegradeOptions, questions: Mapping[str, Sequence[Question]]
) -> WrittenLines:
    """Ask for lines that are not known yet, and say about which questions there is none."""
    prompt, temperature = _template(given), given.temperature
    # SQLite makes the file of replies, but not its folder.
    replies_of(given.out).parent.mkdir(parents=True, exist_ok=True)
    found = written(
        lambda model: write_lines(questions, model, prompt, temperature=temperature),
        sum(map(len, questions.values())),
        "written",
        given.writer.settings(),
        given.out,
        temperature,
    )
    # Videos that are left out are said with those that could not be made.
    failed = {
        f"{video}, question {key}": why
        for video, reasons in found.failed.items()
        for key, why in reasons.items()
        if video not in found.left_out
    }
    say_failed(failed, len(found.lines))
    return found


def _template(given: DegradeOptions) -> Template:
    return prompt_of(None if given.prompt is None else file_text("--prompt", given.prompt))
