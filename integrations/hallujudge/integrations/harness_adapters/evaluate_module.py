"""A module of Hugging Face's ``evaluate``, which copies this file and imports the copy.

    import evaluate
    from importlib.util import find_spec

    module = find_spec("hallujudge.integrations.harness_adapters.evaluate_module").origin
    chair = evaluate.load(module, "chair")
    chair.compute(predictions=["A cat."], references=[["cat"]])

The second argument is the metric's name. Importing this module needs the package ``evaluate``.
"""

from collections.abc import Sequence
from typing import Any

import datasets
import evaluate

from hallujudge.integrations.harness_scores import RunningScores, scores_with_intervals


class Hallujudge(evaluate.Metric):  # type: ignore[misc]  # evaluate may be absent
    """Scores of a metric over predictions, with the ends of their intervals and the signature."""

    def _info(self) -> Any:
        text = datasets.Value("string")
        forms = (text, datasets.Sequence(text), datasets.Sequence(datasets.Sequence(text)))
        return evaluate.MetricInfo(
            description=str(__doc__),
            citation="",
            inputs_description="Responses, and for each a label, a list of objects or of triplets.",
            features=[
                datasets.Features({"predictions": text, "references": form}) for form in forms
            ],
        )

    def _compute(
        self,
        *,
        predictions: Sequence[str],
        references: Sequence[Any],
        scores: Sequence[str] = (),
        **arguments: Any,
    ) -> dict[str, Any]:
        running = RunningScores(self.config_name, scores, **arguments)
        running.update(predictions, references)
        report = running.report()
        return {
            **scores_with_intervals(report, running.scorer.scores),
            "unscored": report.coverage.unscored,
            "signature": report.signature,
        }
