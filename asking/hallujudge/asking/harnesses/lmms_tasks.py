"""Tasks of lmms-eval for every benchmark whose questions can be asked.

    from hallujudge.asking.harnesses.lmms_tasks import HarnessTask, write_lmms_task

    task = HarnessTask(metric="pope", questions=("pope.jsonl",), images="images")
    write_lmms_task(task, "tasks")  # lmms_eval --include_path tasks --tasks hallujudge_pope …

A task is a folder with its YAML, its questions as lmms-eval reads them, and a file of Python whose
functions the YAML names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.sdk.backends.run_header import metric_of
from hallujudge.sdk.errors import OutputError

from ..asked_benchmarks import benchmark_of
from .asked_questions import AskedQuestions, HarnessTask

__all__ = ["HarnessTask", "LmmsTask", "write_lmms_task"]

_TASK, _DOCS = "task.json", "questions.jsonl"
_CODE = '''"""Functions of the task in this folder, which {name}.yaml names."""

from pathlib import Path

from hallujudge.asking.harnesses.lmms_tasks import LmmsTask

task = LmmsTask.read(Path(__file__).parent)
doc_to_visual = task.doc_to_visual
doc_to_text = task.doc_to_text
process_results = task.process_results
{aggregations}
'''


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
