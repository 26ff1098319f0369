"""Metrics in a collection of the real torchmetrics, beside each metric alone."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hallujudge.sdk.harness_adapters import torch_scores

torch = pytest.importorskip("torch", reason="the matcher extra is not installed")
torchmetrics = pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")

# Both readings of the first answer are the same, and of the second they are not.
ANSWERS = (("Yes, there is.", "yes"), ("The image shows it.", "no"))
VARIANTS = ("published", "strict")


def metric(variant: str) -> Any:
    return torch_scores("pope", ["accuracy"], tensor=torch.tensor, variant=variant)


def updated(collection: Any) -> dict[str, float]:
    for answer, label in ANSWERS:
        collection.update([answer], [label])
    found = {variant: collection[variant].compute()["accuracy"] for variant in VARIANTS}
    return {variant: value.item() for variant, value in found.items()}


def test_metrics_of_a_collection_share_no_state() -> None:
    collection = torchmetrics.MetricCollection({variant: metric(variant) for variant in VARIANTS})
    assert updated(collection) == {"published": 0.5, "strict": 1.0}
    assert sorted(map(len, collection.compute_groups.values())) == [1, 1]
    collection["strict"].reset()
    assert collection["published"].compute()["accuracy"].item() == 0.5
    collection.reset()
    assert updated(collection) == {"published": 0.5, "strict": 1.0}


def test_a_collection_may_hold_a_copy_of_a_metric() -> None:
    first = metric("published")
    collection = torchmetrics.MetricCollection({"a": first, "b": copy.deepcopy(first)})
    collection.update(["Yes."], ["yes"])
    collection.update(["Yes."], ["no"])
    collection["a"].reset()
    assert collection["b"].compute()["accuracy"].item() == 0.5


def test_forward_and_clones_of_a_collection_have_the_same_numbers() -> None:
    collection = torchmetrics.MetricCollection({variant: metric(variant) for variant in VARIANTS})
    clone = collection.clone(prefix="val_")
    for answer, label in ANSWERS:
        collection([answer], [label])
        clone.update([answer], [label])
    expected = {"published_accuracy": 0.5, "strict_accuracy": 1.0}
    assert {name: value.item() for name, value in collection.compute().items()} == expected
    assert {name: value.item() for name, value in clone.compute().items()} == {
        f"val_{name}": value for name, value in expected.items()
    }
