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
import math
import os
import re
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from hallujudge.sdk import Client, RunReport

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "use-it-where-you-work.md"
CAPTIONS = ["A cat and a dog and a bus.", "A cat.", "A view.", "", "A dog on a sofa."]
OBJECTS = [["cat", "couch"]] * len(CAPTIONS)


def expected() -> RunReport:
    """Return the report over the captions."""
    ids = list(map(str, range(len(CAPTIONS))))
    with Client.embedded() as client:
        return client.score(
            "chair",
            responses=dict(zip(ids, CAPTIONS, strict=True)),
            references=dict(zip(ids, OBJECTS, strict=True)),
        )


def same(found: float, score: str) -> None:
    """Compare a number with the report's."""
    wanted = expected().scores[score].value
    assert wanted is not None
    assert math.isclose(found, wanted, rel_tol=1e-12), (score, found, wanted)
    print(f"{score}: {found}, as in the report")


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


SECTIONS: dict[str, Callable[[], None]] = {
    "mlflow": try_mlflow,
    "wandb": try_wandb,
    "tensorboard": try_tensorboard,
}


def examples(package: str) -> list[str]:
    """Return the page's examples that import a package."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    imported = re.compile(rf"^\s*(?:import|from) {package}\b", re.MULTILINE)
    return [block for block in blocks if imported.search(block)]


def main() -> None:
    """Run a section and the page's examples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", choices=SECTIONS)
    tool = parser.parse_args().tool
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        SECTIONS[tool]()
        for block in examples(tool.replace("-", "_")):
            exec(compile(block, PAGE.name, "exec"), {"__name__": "example"})  # noqa: S102
            print("the page's example ran")
    print(f"{tool} {version(tool)}: passed")


if __name__ == "__main__":
    main()
