"""The outcomes of questions and of a run that asks them, and the files that it writes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hallujudge.judge_service.llm.failures import CallFailedError, FailureKind
from hallujudge.metrics.answers.answer_items import UNANSWERED
from hallujudge.metrics.framework.results import JsonValue
from hallujudge.sdk.errors import OutputError
from hallujudge.sdk.runs.folder_guards import completed

from .inquiries import Inquiry

THOUGHT_UNFINISHED = "THOUGHT_UNFINISHED"
"""The reason of a reply with a thought and no answer."""
CUT_OFF = frozenset({"REPLY_TRUNCATED", THOUGHT_UNFINISHED})
"""The reasons of replies that more tokens may make whole."""


def reason_of(failure: CallFailedError) -> str:
    """Return why a call failed; a thought that took too long is none that more tokens complete."""
    late = failure.kind is FailureKind.TRUNCATED
    return own_reason((FailureKind.TIMEOUT if late else failure.kind).value)


def own_reason(reason: str) -> str:
    """Return a reason in other words: here a model is asked, not a judge."""
    return reason.replace("JUDGE_", "MODEL_", 1)


class StepReply(NamedTuple):
    """The reply to a step before the answer."""

    name: str
    """The step."""
    text: str
    """The reply, or the words of a refusal."""
    thought: str = ""
    """The thought before it."""
    chosen: str | None = None
    """The letter that a reply about a pair chooses; None for one that chooses neither."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return it as the archive holds it."""
        more = {"thought": self.thought, "chosen": self.chosen}
        return {"step": self.name, "reply": self.text, **{n: t for n, t in more.items() if t}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The outcome of a question."""

    response: str | None = None
    """The response; None without one."""
    thought: str = ""
    """The thought before it, or the one in which the answer was cut off."""
    reason: str = ""
    """Why there is none, such as ``MEDIA_MISSING``."""
    detail: str = ""
    """The same in words."""
    steps: tuple[StepReply, ...] = ()
    """The replies to earlier steps."""
    confidence: float | None = None
    """The confidence that the reply states, in [0, 1]; None if none was asked for, or stated."""

    @property
    def unanswered(self) -> dict[str, JsonValue]:
        """The reason as the archive holds it."""
        return {"reason": self.reason, "detail": self.detail}


def put_outcome(inquiry: Inquiry, outcome: Answered) -> None:
    """Put an outcome into its record."""
    # The record was read from the questions: what it has besides stays.
    part = inquiry.into
    part[inquiry.response] = outcome.response
    if outcome.thought:
        part["thought"] = outcome.thought
    if outcome.steps:
        part["steps"] = [step.to_json() for step in outcome.steps]
    if outcome.confidence is not None:
        part["confidence"] = outcome.confidence
    if outcome.reason:
        part[UNANSWERED] = outcome.unanswered


@dataclass(frozen=True, slots=True, kw_only=True)
class AskResult:
    """What a run wrote."""

    archive: Path
    questions: int
    unanswered: Mapping[str, int]
    """Reason -> questions without an answer."""
    examples: Mapping[str, str]
    """Reason -> an example."""
    calls: int
    """Calls that this run made."""
    cost: float
    """What they cost, with calls that may have been charged for; 0 without prices."""
    reused: int
    """Replies that were known before."""
    max_tokens: int
    """Tokens of a reply at most."""

    @property
    def answered(self) -> int:
        """Questions with an answer."""
        return self.questions - sum(self.unanswered.values())

    @property
    def cut_off(self) -> int:
        """Questions whose answers were cut off, so that more tokens may give them."""
        return sum(count for reason, count in self.unanswered.items() if reason in CUT_OFF)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedFiles:
    """The files of a run, next to each other."""

    archive: Path
    shared: Path | None = None
    """File of replies of several runs; None without."""

    @property
    def _stem(self) -> str:
        return self.archive.name.removesuffix(".jsonl")

    @property
    def replies(self) -> Path:
        """The replies, by which a stopped run goes on."""
        return self.shared or self.archive.with_name(f"{self._stem}.replies.sqlite")

    @property
    def manifest(self) -> Path:
        """What was asked, and how."""
        return self.archive.with_name(f"{self._stem}.asked.json")

    @property
    def unanswered(self) -> Path:
        """The questions without an answer, with their reasons."""
        return self.archive.with_name(f"{self._stem}.unanswered.jsonl")

    def write(
        self,
        records: Iterable[Mapping[str, object]],
        reasons: Sequence[Mapping[str, object]],
        manifest: Mapping[str, object],
    ) -> None:
        """Write the archive, the reasons of questions without an answer, and the manifest.

        Raises:
            OutputError: A file can't be written.
        """
        # The archive is written last: a run that finds one finds its manifest and reasons too.
        if reasons:
            write_whole(self.unanswered, lines_of(reasons))
        else:
            # Reasons of an earlier run would be read as this one's.
            self.unanswered.unlink(missing_ok=True)
        write_whole(self.manifest, [json.dumps(manifest, ensure_ascii=False, indent=1) + "\n"])
        write_whole(self.archive, lines_of(records))


def lines_of(values: Iterable[Mapping[str, object]]) -> Iterable[str]:
    """Return values as lines of JSON."""
    return (json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def write_whole(path: Path, pieces: Iterable[str]) -> None:
    """Write a file as a whole: it is replaced once all of it is on the disk.

    Raises:
        OutputError: It can't be written.
    """
    try:
        # Replies may hold lone surrogates, which UTF-8 can't write.
        with completed(path) as part, part.open("w", encoding="utf-8", errors="replace") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
    except OSError as err:
        raise OutputError.of(path, err, "give another path") from err
