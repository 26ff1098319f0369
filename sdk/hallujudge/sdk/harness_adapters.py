"""Adapters of evaluation harnesses: lmms-eval, lighteval, torchmetrics, MLflow GenAI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

if TYPE_CHECKING:
    from hallujudge.integrations.harness_adapters import (
        LMMS_TASKS,
        lighteval_metric,
        lmms_results,
        mlflow_scorer,
        torch_scores,
    )

__all__ = [
    "LMMS_TASKS",
    "lighteval_metric",
    "lmms_results",
    "mlflow_scorer",
    "torch_scores",
]

_NAMES = {
    "hallujudge.integrations.harness_adapters": (
        "LMMS_TASKS lighteval_metric lmms_results mlflow_scorer torch_scores"
    ),
}
"""Module -> the public names that it defines."""

__getattr__, __dir__ = names_on_use(__name__, _NAMES)
