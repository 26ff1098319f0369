"""Benchmarks as tasks of harnesses that ask a model themselves: lmms-eval and VLMEvalKit.

The questions are those of ``hallujudge ask``, with its prompts, and answers become the archive that
it would write, so that a harness's numbers are those of a report.

    from hallujudge.asking.harnesses import HarnessTask, vlmeval_dataset, write_lmms_task

    task = HarnessTask(metric="pope", questions=("pope.jsonl",), images="images")
    write_lmms_task(task, "tasks")  # lmms_eval --include_path tasks --tasks hallujudge_pope …

    from vlmeval.dataset import DATASET_CLASSES

    DATASET_CLASSES.append(vlmeval_dataset(task))  # run.py --data hallujudge_pope …
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.engine.spec import metric_of
from hallujudge.sdk.archives.inputs import InputOptions
from hallujudge.sdk.client import Client
from hallujudge.sdk.errors import ArchiveError, MissingExtraError, OutputError, UnsupportedError
from hallujudge.sdk.media.media_files import MediaError, MediaFolder
from hallujudge.sdk.media.video_frames import FrameSettings, Sampling
from hallujudge.sdk.runs import RunReport

from .asked_benchmarks import Benchmark, benchmark_of, protocols_of
from .inquiries import Inquiries, Inquiry, read_inquiries
from .outcomes import Answered, lines_of, put_outcome, write_whole
from .shown_media import ShownMedia

__all__ = ["HarnessTask", "LmmsTask", "vlmeval_dataset", "write_lmms_task"]

# Files of a task of lmms-eval, beside its YAML: the task, its questions as lmms-eval reads them,
# and a file of Python whose functions the YAML names.
_TASK, _DOCS = "task.json", "questions.jsonl"
_CODE = '''"""Functions of the task in this folder, which {name}.yaml names."""

from pathlib import Path

from hallujudge.asking.harnesses import LmmsTask

task = LmmsTask.read(Path(__file__).parent)
doc_to_visual = task.doc_to_visual
doc_to_text = task.doc_to_text
process_results = task.process_results
{aggregations}
'''


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

    def _references(self) -> list[str] | None:
        """Return the files that answers are compared with; None where they carry their labels."""
        # Files of closed questions hold their labels.
        own = self.task.questions if self._benchmark.declared is None else ()
        return list(self.task.references or own) or None


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


# lmms-eval ----------------------------------------------------------------------------------------


def write_lmms_task(task: HarnessTask, folder: str | Path) -> Path:
    """Write the task of a benchmark, and return its YAML.

    Args:
        task: What is asked, and how answers are scored.
        folder: The folder for ``--include_path``; the task gets one of its own in it.

    Raises:
        HallujudgeError: See :class:`AskedQuestions`.
        OutputError: A file can't be written.
    """
    name = f"hallujudge_{task.metric}"
    target = Path(folder, name)
    # lmms-eval may be started in any folder.
    task = _absolute(task)
    asked = AskedQuestions(task)
    docs = [json.dumps(msgspec.to_builtins(one), ensure_ascii=False) for one in asked.questions()]
    aggregations = "\n".join(f'{_python(s)} = task.aggregation("{s}")' for s in task.scores)
    files = {
        _TASK: msgspec.json.format(msgspec.json.encode(task), indent=1).decode() + "\n",
        _DOCS: "\n".join(docs) + "\n",
        "scored.py": _CODE.format(name=name, aggregations=aggregations),
        f"{name}.yaml": _yaml(name, task, target.resolve() / _DOCS),
    }
    try:
        target.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (target / file).write_text(text, encoding="utf-8")
    except OSError as err:
        raise OutputError.of(target, err, "give another folder") from err
    return target / f"{name}.yaml"


def _absolute(task: HarnessTask) -> HarnessTask:
    """Return a task whose files are found from any folder."""
    return msgspec.structs.replace(
        task,
        questions=tuple(map(os.path.realpath, task.questions)),
        references=tuple(map(os.path.realpath, task.references)),
        images=os.path.realpath(task.images),
        own={name: os.path.realpath(path) for name, path in task.own.items()},
        shown_options=os.path.realpath(task.shown_options) if task.shown_options else "",
    )


def _python(score: str) -> str:
    """Return the name of a score's aggregation."""
    # Names of scores may have hyphens, names in Python may not.
    return f"score_{score.replace('-', '_')}"


def _yaml(name: str, task: HarnessTask, docs: Path) -> str:
    scores = metric_of(task.metric, task.variant, task.options).scores
    definitions = {one.name: one for one in scores}
    asking, tokens = json.dumps(str(docs)), benchmark_of(task.metric).asking.max_tokens
    lines = [
        f"# {metric_entry(task.metric).metric.summary}",
        f"task: {name}",
        "dataset_path: json",
        f"dataset_kwargs:\n  data_files:\n    test: {asking}",
        "test_split: test",
        "output_type: generate_until",
        "doc_to_visual: !function scored.doc_to_visual",
        "doc_to_text: !function scored.doc_to_text",
        # The metric has the labels, so that lmms-eval needs none.
        'doc_to_target: ""',
        f"generation_kwargs:\n  max_new_tokens: {tokens}\n  temperature: 0\n"
        "  do_sample: false\n  until: []",
        "process_results: !function scored.process_results",
        "metric_list:",
    ]
    for score in task.scores:
        better = definitions[score].direction != "lower"
        lines += [
            f"  - metric: {score}",
            f"    aggregation: !function scored.{_python(score)}",
            f"    higher_is_better: {str(better).lower()}",
        ]
    return "\n".join([*lines, "metadata:", "  - version: 1"]) + "\n"


class LmmsTask:
    """The functions of a task.

    Args:
        task: The task.
    """

    def __init__(self, task: HarnessTask) -> None:
        self.task = task
        self._last: tuple[tuple[tuple[int, str], ...], Any] | None = None

    @classmethod
    def read(cls, folder: Path) -> LmmsTask:
        """Return the task of a folder that :func:`write_lmms_task` wrote."""
        return cls(msgspec.json.decode((folder / _TASK).read_bytes(), type=HarnessTask))

    @cached_property
    def _asked(self) -> AskedQuestions:
        return AskedQuestions(self.task)

    def doc_to_visual(self, doc: Mapping[str, Any]) -> list[Any]:
        """Return what a model is shown: pictures, or the path of a video."""
        if doc["is_video"]:
            return list(doc["media"])
        from PIL import Image

        return [Image.open(path).convert("RGB") for path in doc["media"]]

    def doc_to_text(self, doc: Mapping[str, Any], *_: object) -> str:
        """Return the prompt."""
        return str(doc["prompt"])

    def process_results(self, doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
        """Return the answer under each score, for :meth:`aggregation`."""
        answer = {"index": doc["index"], "response": str(results[0])}
        # A report needs all answers at once, so that each score gets them whole.
        return dict.fromkeys(self.task.scores, answer)

    def aggregation(self, score: str) -> Callable[[Sequence[Mapping[str, Any]]], float]:
        """Return the function from all answers to a score; NaN if it is undefined."""

        def value(answers: Sequence[Mapping[str, Any]]) -> float:
            found = self.report(answers).scores[score].value
            return float("nan") if found is None else found

        return value

    def report(self, answers: Sequence[Mapping[str, Any]]) -> Any:
        """Return the report over answers; that of the same answers is made once."""
        given = tuple(sorted((int(one["index"]), str(one["response"])) for one in answers))
        # lmms-eval aggregates the same answers once for each score.
        if self._last is None or self._last[0] != given:
            self._last = given, self._asked.report(dict(given))
        return self._last[1]


# VLMEvalKit ---------------------------------------------------------------------------------------


def vlmeval_dataset(task: HarnessTask) -> Any:
    """Return the class of a benchmark's questions, whose ``evaluate`` returns a table of scores.

    VLMEvalKit has no hook for data sets from outside, but a list of its classes. A run's folder is
    written next to VLMEvalKit's file of predictions.

    Args:
        task: What is asked, and how answers are scored.

    Raises:
        HallujudgeError: See :class:`AskedQuestions`.
        MissingExtraError: VLMEvalKit is not installed.
    """
    with MissingExtraError.unless_package("vlmeval"):
        from pandas import DataFrame
        from vlmeval.dataset.image_base import ImageBaseDataset
        from vlmeval.smp import load
    asked, name = AskedQuestions(task), f"hallujudge_{task.metric}"

    class AskedDataset(ImageBaseDataset):  # type: ignore[misc]  # VLMEvalKit may be absent
        TYPE = "VQA"

        @classmethod
        def supported_datasets(cls) -> list[str]:
            return [name]

        def load_data(self, dataset: str) -> Any:  # noqa: ARG002
            return DataFrame(
                {"index": one.index, "question": one.prompt, "image_path": list(one.media)}
                for one in asked.questions()
            )

        def build_prompt(self, line: Any) -> list[dict[str, str]]:
            """Return the images, and then the prompt; ImageBaseDataset needs at least one image."""
            row = self.data.iloc[line] if isinstance(line, int) else line
            # VLMEvalKit turns a list of one path into the path.
            media = row["image_path"]
            files = [media] if isinstance(media, str) else list(media)
            shown = [{"type": "image", "value": path} for path in files]
            return [*shown, {"type": "text", "value": row["question"]}]

        def evaluate(self, eval_file: str, **_: Any) -> Any:
            rows = load(eval_file)
            given = zip(rows["index"], rows["prediction"], strict=True)
            report = asked.report({int(index): str(answer) for index, answer in given})
            file = Path(eval_file)
            report.save(file.with_name(f"{file.stem}_report"), html=True, overwrite=True)
            return report.to_pandas()

    return AskedDataset
