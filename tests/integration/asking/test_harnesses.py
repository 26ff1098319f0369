"""Tasks of lmms-eval for every benchmark; tools/try_asked_tasks.py runs them in the real one."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from support.asked_cases import CASES, HEARD, Case, written

from hallujudge.asking.harnesses import AskedQuestions, HarnessTask, write_lmms_task
from hallujudge.sdk.errors import ArchiveError, UnsupportedError

# Prompts of one call; those of other protocols and of degraded videos have tests of their own.
PLAIN = {n: case for n, case in CASES.items() if not case.more}


def task_of(case: Case, folder: Path) -> HarnessTask:
    files = written(case, folder)
    return HarnessTask(
        metric=case.metric,
        questions=(str(files["questions"]),),
        images=str(folder / "images"),
        references=(str(files["questions"]),) if case.again else (),
        own={name: str(path) for name, path in files.items() if name != "questions"},
        shown_options=str(files.get("options", "")),
    )


def functions_of(target: Path) -> ModuleType:
    """Import the file of functions as lmms-eval does, by its path."""
    spec = importlib.util.spec_from_file_location("scored", target.with_name("scored.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Functions(yaml.SafeLoader):
    """Reads ``!function scored.name`` as the name."""


_Functions.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))  # type: ignore[arg-type]


def scores_of(target: Path, case: Case) -> dict[str, float]:
    """Return the scores of a task, whose model gives the replies of a case."""
    declared = yaml.load(target.read_text(), _Functions)
    module = functions_of(target)
    docs = Path(declared["dataset_kwargs"]["data_files"]["test"]).read_text().splitlines()
    kept: dict[str, list[Any]] = {}
    for doc in map(json.loads, docs):
        prompt = module.doc_to_text(doc)
        reply = case.reply(prompt) if callable(case.reply) else case.reply
        for score, record in module.process_results(doc, [reply]).items():
            kept.setdefault(score, []).append(record)
    return {
        one["metric"]: getattr(module, one["aggregation"].removeprefix("scored."))(
            kept[one["metric"]]
        )
        for one in declared["metric_list"]
    }


@pytest.mark.parametrize("name", PLAIN)
def test_a_task_scores_what_asking_would(name: str, tmp_path: Path) -> None:
    case = PLAIN[name]
    target = write_lmms_task(task_of(case, tmp_path), tmp_path / "tasks")
    if not case.score:  # its references are another file
        return
    found = scores_of(target, case)
    wanted = {score: value for score, value in case.score.items() if score in found}
    assert {score: found[score] for score in wanted} == pytest.approx(wanted)
    declared = yaml.load(target.read_text(), _Functions)
    assert declared["task"] == f"hallujudge_{case.metric}"


def test_the_prompts_are_those_of_asking(tmp_path: Path) -> None:
    asked = AskedQuestions(task_of(CASES["pope"], tmp_path))
    [question] = asked.questions()
    assert question.prompt == "Is there a cat?\nAnswer with yes or no."
    assert question.media == (str((tmp_path / "images" / "a.png").resolve()),)


def test_questions_that_were_not_asked_do_not_count(tmp_path: Path) -> None:
    rows = [
        {"question_id": n, "image": "a.png", "text": f"Is there a {word}?", "label": "yes"}
        for n, word in enumerate(("cat", "dog", "bus"))
    ]
    asked = AskedQuestions(task_of(Case("pope", rows, ("a.png",), ()), tmp_path))
    report = asked.report({1: "Yes.", 2: "No."})
    assert (report.coverage.items, report.accuracy) == (2, 0.5)


@pytest.mark.parametrize("metric", [metric for metric, rows in HEARD.items() if rows])
def test_sounds_are_not_sent(metric: str, tmp_path: Path) -> None:
    task = task_of(Case(metric, HEARD[metric], ("a.png",), ()), tmp_path)
    with pytest.raises(UnsupportedError, match=f"hallujudge ask {metric}"):
        write_lmms_task(task, tmp_path / "tasks")


def test_a_missing_image_is_named(tmp_path: Path) -> None:
    rows = [{"question_id": 1, "image": "b.png", "text": "Is there a cat?", "label": "yes"}]
    with pytest.raises(ArchiveError, match=r"b\.png"):
        write_lmms_task(task_of(Case("pope", rows, ("a.png",), ()), tmp_path), tmp_path / "tasks")
