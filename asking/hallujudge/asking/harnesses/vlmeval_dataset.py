"""A dataset class of VLMEvalKit for every benchmark whose questions can be asked.

    from vlmeval.dataset import DATASET_CLASSES
    from hallujudge.asking.harnesses.vlmeval_dataset import HarnessTask, vlmeval_dataset

    task = HarnessTask(metric="pope", questions=("pope.jsonl",), images="images")
    DATASET_CLASSES.append(vlmeval_dataset(task))  # run.py --data hallujudge_pope …

VLMEvalKit has no hook for data sets from outside, but a list of its classes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hallujudge.sdk.errors import MissingExtraError

from .asked_questions import AskedQuestions, HarnessTask

__all__ = ["HarnessTask", "vlmeval_dataset"]


def vlmeval_dataset(task: HarnessTask) -> Any:
    """Return the class of a benchmark's questions, whose ``evaluate`` returns a table of scores.

    A run's folder is written next to VLMEvalKit's file of predictions.

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
