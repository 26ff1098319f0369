"""A benchmark's questions for harnesses that ask a model themselves, and the scores of its answers.

The questions are those of ``hallujudge ask``, with its prompts, and answers become the archive that
it would write, so that a harness's numbers are those of a report.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct

from hallujudge.sdk.archives.inputs import InputOptions
from hallujudge.sdk.backends.run_header import metric_of
from hallujudge.sdk.client import Client
from hallujudge.sdk.errors import ArchiveError, UnsupportedError
from hallujudge.sdk.media.media_files import MediaError, MediaFolder
from hallujudge.sdk.media.video_frames import FrameSettings, Sampling
from hallujudge.sdk.runs import RunReport

from ..asked_benchmarks import Benchmark, benchmark_of, protocols_of
from ..asked_files import lines_of, put_outcome, write_whole
from ..inquiries import Inquiries, Inquiry, read_inquiries
from ..replies import Answered
from ..shown_media import ShownMedia


class HarnessTask(Struct, frozen=True, kw_only=True):
    """What a harness asks and how its answers are scored; it can be kept as JSON."""

    metric: str
    """The metric's name, such as ``pope``."""
    questions: tuple[str, ...] = ()
    """Files of questions; none for a benchmark that asks the same of every image."""
    images: str
    """Folder of the images and videos."""
    references: tuple[str, ...] = ()
    """Files that answers are compared with, for benchmarks whose questions have no labels; empty
    for the files of questions."""
    variant: str = ""
    """The metric's variant; empty for its default."""
    options: Mapping[str, str] = {}
    """The metric's own options."""
    own: Mapping[str, str] = {}
    """Further files of the metric, such as ``{"associations": "relation.json"}`` for AMBER."""
    shown_options: str = ""
    """File of the display orders of captions, for VidHal."""
    limit: int | None = None
    """Records of the files to ask about at most."""

    @property
    def scores(self) -> tuple[str, ...]:
        """The scores of a short table, or all if the metric has few; the ranking one first."""
        metric = metric_of(self.metric, self.variant, self.options)
        shown = metric.headline or tuple(each.name for each in metric.scores)
        return tuple(dict.fromkeys((*metric.ranked_by[:1], *shown)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question as a harness puts it to a model."""

    index: int
    """Its place among all questions, from 0."""
    prompt: str
    """The text of the prompt."""
    media: tuple[str, ...]
    """Files of the images, or the video; empty if the model is shown nothing."""
    is_video: bool = False
    """Whether it is a video."""


class AskedQuestions:
    """The questions of a task.

    Args:
        task: The task.

    Raises:
        ArchiveError: A file can't be read, or an image is missing.
        InvalidInputError: Files are missing, or not used by the benchmark.
        UnsupportedError: The benchmark needs several calls for a question.
    """

    def __init__(self, task: HarnessTask) -> None:
        self.task = task
        self._benchmark = _of_one_call(task.metric)
        self._folder = MediaFolder(Path(task.images))
        self._inquiries = self._read()

    def _read(self) -> Inquiries:
        shown = self.task.shown_options
        return read_inquiries(
            self._benchmark,
            list(map(Path, self.task.questions)),
            self._folder,
            options=Path(shown) if shown else None,
            limit=self.task.limit,
        )

    def __len__(self) -> int:
        return len(self._inquiries.asked)

    def questions(self) -> list[Question]:
        """Return the questions.

        Raises:
            ArchiveError: An image or video is missing.
            UnsupportedError: A question has a sound, which harnesses do not send.
        """
        inquiries = self._inquiries
        # Unused: the harness takes the frames, and only files are looked up here.
        frames = FrameSettings(sampling=Sampling("uniform:16"))
        shown = ShownMedia(self._benchmark, self._folder, frames, inquiries.shared_ends)
        return [self._question(index, one, shown) for index, one in enumerate(inquiries.asked)]

    def _question(self, index: int, inquiry: Inquiry, shown: ShownMedia) -> Question:
        if inquiry.sound:
            raise UnsupportedError(
                f"{inquiry.key} has a sound, which harnesses do not send; use hallujudge ask "
                f"{self.task.metric}"
            )
        step = self._benchmark.protocol.steps[-1].name
        messages = self._benchmark.templates[step].messages(inquiry.slots)
        # Harnesses take one text, without roles.
        prompt = "\n".join(message["content"] for message in messages)
        try:
            media = shown.found(inquiry)
        except MediaError as err:
            raise ArchiveError(
                f"{inquiry.key}: {err.detail}; correct the folder of images, {self._folder.root}"
            ) from err
        files = () if media is None else tuple(map(str, media.files))
        is_video = media is not None and media.is_video
        return Question(index=index, prompt=prompt, media=files, is_video=is_video)

    def report(self, responses: Mapping[int, str]) -> RunReport:
        """Return the report over the answers of some questions.

        Records none of whose questions was answered are left out: a harness may ask a part.

        Args:
            responses: Index of a question -> the model's answer.

        Raises:
            ArchiveError: The answers can't be scored, such as a benchmark without references.
        """
        # Read again, since answers are put into the records.
        inquiries = self._read()
        # The parts of records that got an answer; several questions may share a record.
        touched: set[int] = set()
        for index, inquiry in enumerate(inquiries.asked):
            if index in responses:
                put_outcome(inquiry, Answered(response=responses[index]))
                touched.add(id(inquiry.into))
        kept = [record for record in inquiries.records if _holds(record, touched)]
        task = self.task
        own = InputOptions(own=dict(task.own)) if task.own else None
        with tempfile.TemporaryDirectory(prefix="hallujudge-") as folder:
            archive = Path(folder, f"{task.metric}.jsonl")
            write_whole(archive, lines_of(kept))
            # Answers are parsed here: a harness's own run of a model has no server of ours.
            with Client.embedded() as client:
                return client.score(
                    task.metric,
                    responses=archive,
                    references=self._references(),
                    variant=task.variant,
                    options=dict(task.options),
                    inputs=own,
                )

    def _references(self) -> Any:
        """Return the files that answers are compared with; None where they carry their labels."""
        if self.task.references:
            return _path_or_list(self.task.references)
        # Files of closed questions hold their labels.
        if self._benchmark.declared is not None or not self.task.questions:
            return None
        return _path_or_list(self.task.questions)


def _path_or_list(files: Sequence[str]) -> str | list[str]:
    return files[0] if len(files) == 1 else list(files)


def _holds(value: object, parts: set[int]) -> bool:
    """Return whether a record is, or holds, one of some parts."""
    if id(value) in parts:
        return True
    inner = list(value.values()) if isinstance(value, dict) else value
    return isinstance(inner, list) and any(_holds(each, parts) for each in inner)


def _of_one_call(metric: str) -> Benchmark:
    """Return a benchmark with the first of its protocols that has one call for a question.

    Raises:
        UnsupportedError: There is none.
    """
    for protocol in protocols_of(metric):
        if len(protocol.steps) == 1 and not protocol.pairs:
            return benchmark_of(metric, protocol.name)
    raise UnsupportedError(
        f"{metric} needs several calls for a question, which a harness does not make; use "
        f"hallujudge ask {metric}"
    )
