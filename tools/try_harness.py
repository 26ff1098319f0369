"""Try the adapters of harnesses and trackers with the real packages; one section for each.

    python -m venv tool-env
    tool-env/bin/pip install . mlflow
    tool-env/bin/python tools/try_harness.py mlflow

Their pins differ from the suite's and from one another's, so each has an environment of its own. A
section fails if a number differs from what a report says. Then the examples of
docs/how-to/use-it-where-you-work.md that import the package are run.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hallujudge.sdk import Client, RunReport, Scorer
from hallujudge.sdk.harness_adapters import LMMS_TASKS, mlflow_scorer, torch_scores
from hallujudge.sdk.harness_scores import RunningScores

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "use-it-where-you-work.md"
CAPTIONS = ["A cat and a dog and a bus.", "A cat.", "A view.", "", "A dog on a sofa."]
OBJECTS = [["cat", "couch"]] * len(CAPTIONS)
ANSWERS = [("Yes, there is.", "yes"), ("No.", "yes"), ("no", "no"), ("Yes", "no"), ("Yes", "yes")]
EVALUATE_MODULE = str(find_spec("hallujudge.integrations.harness_adapters.evaluate_module").origin)  # type: ignore[union-attr]


@cache
def expected(metric: str = "chair") -> RunReport:
    """Return the report over the responses."""
    with Client.embedded() as client:
        if metric == "pope":
            rows = [
                {"id": at, "answer": answer, "label": label}
                for at, (answer, label) in enumerate(ANSWERS)
            ]
            return client.score("pope", responses=rows)
        ids = list(map(str, range(len(CAPTIONS))))
        return client.score(
            "chair",
            responses=dict(zip(ids, CAPTIONS, strict=True)),
            references=dict(zip(ids, OBJECTS, strict=True)),
        )


def same(found: float, score: str, metric: str = "chair") -> None:
    """Compare a number with the report's."""
    wanted = expected(metric).scores[score].value
    assert wanted is not None
    assert math.isclose(found, wanted, rel_tol=1e-12), (score, found, wanted)
    print(f"{metric} {score}: {found}, as in the report")


def mean_of_responses() -> float:
    """Return the mean of the scores of single captions."""
    found = Scorer("chair", scores=["chair_i"])(CAPTIONS, OBJECTS)
    values = [one.scores["chair_i"] for one in found]
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined)


def try_lmms_eval() -> None:
    """Evaluate the tasks that are shipped, over other data, with a model that says its lines."""
    from lmms_eval.api.model import lmms
    from lmms_eval.evaluator import simple_evaluate
    from lmms_eval.tasks import TaskManager

    lines = {"hallujudge_chair": CAPTIONS, "hallujudge_pope": [answer for answer, _ in ANSWERS]}
    rows = {
        "hallujudge_chair": [{"gt_object": OBJECTS[0], "question_id": n} for n in range(5)],
        "hallujudge_pope": [
            {"question": "?", "answer": label, "image_source": str(at)}
            for at, (_, label) in enumerate(ANSWERS)
        ],
    }

    class Scripted(lmms):  # type: ignore[misc]  # lmms-eval has no types
        def generate_until(self, requests: Any) -> list[str]:
            return [lines[one.args[4]][one.args[3]] for one in requests]

        loglikelihood = generate_until_multi_round = generate_until

    for task, docs in rows.items():
        Path(f"{task}.json").write_text(json.dumps(docs))
        Path(f"{task}.yaml").write_text(
            f"include: {LMMS_TASKS / task}.yaml\ndataset_path: json\n"
            f"dataset_kwargs:\n  data_files:\n    test: {Path(task).resolve()}.json\n"
            "test_split: test\n"
        )
    assert set(rows) <= set(TaskManager(include_path=str(LMMS_TASKS)).all_tasks)
    found = simple_evaluate(
        model=Scripted(),
        tasks=list(rows),
        task_manager=TaskManager(include_path=str(Path.cwd()), include_defaults=False),
        log_samples=True,
    )
    for task, metric in (("hallujudge_chair", "chair"), ("hallujudge_pope", "pope")):
        for name, value in found["results"][task].items():
            score = name.partition(",")[0]
            if score in expected(metric).scores:
                same(value, score, metric)
        record = found["samples"][task][0]
        print(
            next(value for value in record.values() if isinstance(value, dict) and "item" in value)
        )


def try_lighteval() -> None:
    """Evaluate a task of a file, with a model that says its lines."""
    from datasets import Dataset
    from lighteval.logging.evaluation_tracker import EvaluationTracker
    from lighteval.models.dummy.dummy_model import DummyModel, DummyModelConfig
    from lighteval.models.model_output import ModelResponse
    from lighteval.pipeline import ParallelismManager, Pipeline, PipelineParameters
    from lighteval.tasks.registry import Registry

    # Some of its own tasks need a network when they are imported.
    Registry._load_from_files = Registry._load_from_subdirs = staticmethod(lambda *_: {})
    Path("captions").mkdir()
    rows = [{"objects": OBJECTS[0], "number": number} for number in range(len(CAPTIONS))]
    Dataset.from_list(rows).to_parquet("captions/test.parquet")
    Path("captions_task.py").write_text(LIGHTEVAL_TASK)

    class Scripted(DummyModel):  # type: ignore[misc]  # lighteval has no types
        def greedy_until(self, docs: Any) -> Any:
            return [ModelResponse(text=[CAPTIONS[doc.specific["number"]]]) for doc in docs]

    pipeline = Pipeline(
        tasks="captions|0",
        pipeline_parameters=PipelineParameters(
            launcher_type=ParallelismManager.NONE, custom_tasks_directory="captions_task.py"
        ),
        evaluation_tracker=EvaluationTracker(output_dir="out", save_details=True),
        model=Scripted(DummyModelConfig(seed=0)),
    )
    pipeline.evaluate()
    pipeline.save_and_push_results()
    print(pipeline.get_results()["results"])
    found = pipeline.get_results()["results"]["captions:0"]
    print(found)
    same(found["chair_i"], "chair_i")
    same(found["recall"], "recall")
    assert found["chair_i_ci_high"] == expected().scores["chair_i"].ci_high
    assert found["chair_i_mean"] == mean_of_responses()


LIGHTEVAL_TASK = """
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc

from hallujudge.sdk.harness_adapters import lighteval_metric


def prompt(line, task_name):
    return Doc(query="Describe.", choices=[""], gold_index=0, task_name=task_name, specific=line)


TASKS_TABLE = [
    LightevalTaskConfig(
        name="captions",
        prompt_function=prompt,
        hf_repo="captions",
        hf_subset="default",
        hf_avail_splits=["test"],
        evaluation_splits=["test"],
        generation_size=64,
        metrics=[
            lighteval_metric("chair", ["chair_i", "recall"], reference="objects"),
            lighteval_metric("chair", ["chair_i"], reference="objects", level="sample"),
        ],
    )
]
"""


def try_torchmetrics() -> None:
    """Merge the states of two processes, one of which has no response."""
    import copy
    import pickle

    import torch

    one = torch_scores("chair", ["chair_i", "recall"], tensor=torch.tensor)
    print(one(CAPTIONS[:2], OBJECTS[:2]), "of the first batch")
    one.update(CAPTIONS[2:], OBJECTS[2:])
    copied = pickle.loads(pickle.dumps(one))  # noqa: S301 - our own
    for metric in (one, copied, copy.deepcopy(one)):
        same(float(metric.compute()["chair_i"]), "chair_i")
    one.reset()
    for parts in ((2, 5), (5, 5)):
        torch.multiprocessing.spawn(_rank, (parts,), nprocs=2)
        print(f"rank 0 has {parts[0]} responses, rank 1 {parts[1] - parts[0]}")


def _rank(rank: int, parts: tuple[int, int]) -> None:
    """Score a part of the captions, and compute over all ranks."""
    import torch
    from torch import distributed

    distributed.init_process_group(
        "gloo", init_method=f"file://{Path.cwd()}/ranks-{parts[0]}", rank=rank, world_size=2
    )
    begin, end = (0, parts[0]) if rank == 0 else parts
    metric = torch_scores("chair", ["chair_i"], tensor=torch.tensor)
    if begin < end:
        metric.update(CAPTIONS[begin:end], OBJECTS[begin:end])
    same(float(metric.compute()["chair_i"]), "chair_i")
    running = RunningScores("chair", ["chair_i"])
    if begin < end:
        running.update(CAPTIONS[begin:end], OBJECTS[begin:end])

    def all_gather(state: bytes) -> list[Any]:
        states: list[Any] = [None, None]
        distributed.all_gather_object(states, state)
        return states

    assert running.gather(all_gather).scores == expected().scores
    distributed.destroy_process_group()


def try_evaluate() -> None:
    """Load the module, and compute over batches."""
    import evaluate

    chair = evaluate.load(EVALUATE_MODULE, "chair")
    for caption, objects in zip(CAPTIONS, OBJECTS, strict=True):
        chair.add(prediction=caption, reference=objects)
    found = chair.compute(scores=["chair_i", "recall"])
    print(found)
    same(found["chair_i"], "chair_i")
    assert found["chair_i_ci_low"] == expected().scores["chair_i"].ci_low
    pope = evaluate.load(EVALUATE_MODULE, "pope")
    answers, labels = zip(*ANSWERS, strict=True)
    same(pope.compute(predictions=answers, references=labels, scores=["f1"])["f1"], "f1", "pope")


def try_mlflow() -> None:
    """Log a report, and evaluate with the scorer."""
    import mlflow

    mlflow.set_tracking_uri("sqlite:///tracking.db")
    expected().log_to("mlflow:captions", step=2)
    [run] = mlflow.search_runs(experiment_names=["captions"], output_format="list")
    same(run.data.metrics["chair/chair_i"], "chair_i")
    print(run.data.metrics)
    assert run.data.tags["hallujudge.signature"] == expected().signature
    files = mlflow.MlflowClient().list_artifacts(run.info.run_id, "chair/2")
    assert [Path(one.path).name for one in files] == ["report.html", "report.json"], files
    rows = [
        {"inputs": {"image": n}, "outputs": caption, "expectations": {"objects": objects}}
        for n, (caption, objects) in enumerate(zip(CAPTIONS, OBJECTS, strict=True))
    ]
    scorer = mlflow_scorer("chair", "chair_i", reference="objects")
    judged = mlflow.genai.evaluate(data=rows, scorers=[scorer])
    print(judged.metrics)
    assert math.isclose(judged.metrics["chair_i/mean"], mean_of_responses())


def try_wandb() -> None:
    """Log a report without a network."""
    os.environ |= {"WANDB_MODE": "offline", "WANDB_DIR": str(Path.cwd()), "WANDB_SILENT": "true"}
    import wandb

    with wandb.init(project="captions") as run:
        expected().log_to("wandb")
        same(run.summary["chair/chair_i"], "chair_i")
        assert run.config["hallujudge.signature"] == expected().signature
    expected().log_to("wandb:captions", step=1)
    logs = sorted(Path.cwd().glob("wandb/offline-run-*/run-*.wandb"))
    assert len(logs) == 2, logs
    assert b"report.html" in logs[1].read_bytes()


def try_tensorboard() -> None:
    """Log a report, and read the events."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    expected().log_to("tensorboard:runs/1", step=3)
    events = EventAccumulator("runs/1").Reload()
    [tensor] = events.Tensors("chair/chair_i")
    print(events.Tags()["tensors"], tensor.step)
    wanted = expected().scores["chair_i"].value
    # It keeps four bytes of a number.
    assert math.isclose(make_ndarray(tensor.tensor_proto), wanted or 0.0, rel_tol=1e-6)
    assert Path("runs/1/chair/3/report.html").exists()


def try_every_eval_ever() -> None:
    """Check the files of runs with the validator of the collection, as a pull request does."""
    from every_eval_ever.validator import validation_core as core

    with Client.embedded() as client:
        missing = client.score(
            "chair", responses={"1": "A dog.", "2": None}, references={"1": ["cat"], "2": ["cat"]}
        )
    for report in (expected(), expected("pope"), missing):
        report.log_to("every-eval-ever", model="llava-hf/llava-1.5-7b-hf", dataset="org/data")
    files = [path.as_posix() for path in Path("data").rglob("*") if path.is_file()]
    assert len(files) == 6, files
    for name in files:
        check = core.validate_aggregate if name.endswith(".json") else core.validate_instance_file
        found = check(
            Path(name),
            repo_path=name,
            available_files=set(files),
            read_repo_file=lambda other: Path(other).read_text(),
            run_semantic_checks=True,
        )
        assert (found.valid, found.errors, found.warnings) == (True, [], []), found
        print(f"{name}: valid by schema {core.get_schema_version()}, no warning")


SECTIONS: dict[str, Callable[[], None]] = {
    "every-eval-ever": try_every_eval_ever,
    "lmms-eval": try_lmms_eval,
    "lighteval": try_lighteval,
    "torchmetrics": try_torchmetrics,
    "evaluate": try_evaluate,
    "mlflow": try_mlflow,
    "wandb": try_wandb,
    "tensorboard": try_tensorboard,
}


def run_examples(package: str) -> None:
    """Run the page's examples that import a package."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    imported = re.compile(rf"^(?:import|from) {package}\b", re.MULTILINE)
    for block in filter(imported.search, blocks):
        exec(compile(block, PAGE.name, "exec"), {"__name__": "example"})  # noqa: S102
        print("the page's example ran")


def main() -> None:
    """Run a section and the page's examples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", choices=SECTIONS)
    tool = parser.parse_args().tool
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        SECTIONS[tool]()
        run_examples(tool.replace("-", "_"))
    print(f"{tool} {version(tool)}: passed")


if __name__ == "__main__":
    main()
