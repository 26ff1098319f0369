"""Score a log of Inspect AI again with Hallujudge's scorers, by its command and in an evaluation.

    python -m venv inspect-env
    inspect-env/bin/pip install . inspect_ai
    inspect-env/bin/python tools/try_inspect.py

Its dependencies are many, so it has an environment of its own. The script fails if a score differs
from what a report says.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from contextlib import chdir
from importlib.metadata import version
from pathlib import Path

import no_options  # noqa: F401 - answers --help
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from try_harness import run_examples

from hallujudge.integrations.harness_adapters.inspect_scorers import chair, inspect_judge
from hallujudge.sdk import Client, Scorer

CAPTIONS = ["A cat and a dog and a bus.", "A cat.", "A view.", "A dog on a sofa."]
OBJECTS = ["cat", "couch"]


def main() -> None:
    """Evaluate, score again, and compare."""
    # With a usage, no tokens are counted, which would download a tokenizer.
    usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    outputs = [
        ModelOutput.from_content("mockllm/model", text).model_copy(update={"usage": usage})
        for text in CAPTIONS
    ]
    samples = [
        Sample(id=n, input="Describe.", target="-", metadata={"objects": OBJECTS}) for n in range(4)
    ]
    with Client.embedded() as client:
        report = client.score(
            "chair",
            responses=dict(enumerate(CAPTIONS)),
            references=dict.fromkeys(range(4), OBJECTS),
        )
    expected = report.scores["chair_i"].value
    with tempfile.TemporaryDirectory() as folder:
        model = get_model("mockllm/model", custom_outputs=outputs)
        for name, scored in (("included", includes()), ("own", own_scorer())):
            task = Task(dataset=samples, scorer=scored, name=name)
            (log,) = eval(task, model=model, log_dir=folder, display="none", max_samples=1)
            assert log.status == "success", log.error and log.error.message
            model = get_model("mockllm/model", custom_outputs=outputs)
        check(log.location, expected)
        first = next(path for path in Path(folder).iterdir() if "included" in path.name)
        command = [str(Path(sys.executable).parent / "inspect"), "score", str(first)]
        wanted = ["--scorer", "hallujudge/chair", "-S", "score=chair_i", "-S", "reference=objects"]
        subprocess.run([*command, *wanted, "--action", "append", "--overwrite"], check=True)
        check(str(first), expected)
    check_judge(usage)
    # The page's example writes its log where it runs.
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        run_examples("inspect_ai")
    print(f"inspect_ai {version('inspect_ai')}: corpus {expected}, as in the report")


def own_scorer() -> object:
    """Return the scorer of an evaluation."""
    return chair(score="chair_i", reference="objects")


def check_judge(usage: ModelUsage) -> None:
    """Let a model of Inspect AI judge the claims of an evaluation of another one."""

    def judged(input: list[ChatMessage], *_: object) -> ModelOutput:
        verdict = "object1" if "dog" in input[-1].text.partition("<<<CLAIM")[2] else "supported"
        output = ModelOutput.from_content("mockllm/model", verdict)
        return output.model_copy(update={"usage": usage})

    settings = inspect_judge(get_model("mockllm/model", custom_outputs=judged))
    graph = [["cat", "on", "sofa"]]
    answers = ["The cat is on the sofa.", "The dog is on the sofa."]
    with Scorer("tri-he", settings=settings, options={"judge": "llm"}) as scorer:
        found = scorer(answers, [graph, graph])
        print(scorer.header().signature)
    assert [one.scores["hallu_q"] for one in found] == [0.0, 1.0], found
    print("judged by a model of Inspect AI:", [one.evidence["judging"] for one in found])


def check(path: str, expected: float | None) -> None:
    """Compare a log's metric with a report's score."""
    log = read_eval_log(path)
    assert log.results is not None, path
    (found,) = [score for score in log.results.scores if score.scorer.endswith("chair")]
    values = {name: metric.value for name, metric in found.metrics.items()}
    print(values, found.unscored_samples)
    first = next(
        score for name, score in (log.samples or [])[0].scores.items() if name.endswith("chair")
    )
    assert first.metadata["evidence"]["hallucinated"], first
    print(first.metadata["evidence"])
    corpus = next(value for name, value in values.items() if name.endswith("corpus"))
    assert math.isclose(corpus, expected or 0.0, rel_tol=1e-12), (values, expected)


if __name__ == "__main__":
    main()
