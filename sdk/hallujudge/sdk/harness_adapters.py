"""Adapters of evaluation harnesses: lmms-eval, lighteval, torchmetrics, MLflow GenAI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

# Names that are imported under their own name are public to type checkers.
if TYPE_CHECKING:
    from hallujudge.integrations.harness_adapters import LMMS_TASKS as LMMS_TASKS
    from hallujudge.integrations.harness_adapters import lighteval_metric as lighteval_metric
    from hallujudge.integrations.harness_adapters import lmms_results as lmms_results
    from hallujudge.integrations.harness_adapters import mlflow_scorer as mlflow_scorer
    from hallujudge.integrations.harness_adapters import torch_scores as torch_scores

__getattr__, __dir__ = names_on_use(__name__)
__all__ = __dir__()
