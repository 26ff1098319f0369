"""Tables of VLMEvalKit: predictions, and the companions that it writes with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from .archive_reader import ArchiveReader, converting, yes_or_no

Matches: TypeAlias = "Callable[[Mapping[str, object]], bool]"
Common: TypeAlias = "Callable[[Mapping[str, object]], Mapping[str, object]]"
_AMBER_CATEGORIES = frozenset(
    [
        "discriminative-attribute-state",
        "discriminative-attribute-number",
        "discriminative-attribute-action",
        "discriminative-hallucination",
        "discriminative-relation",
        "relation",
    ]
)
# The parts of an index such as VD_chart_x_1_0_2 that follow the first three.
_PLACE = slice(3, 6)


def common_values(values: Mapping[str, object]) -> dict[str, object]:
    """Return the common keys of a prediction."""
    return {
        "id": values.get("index"),
        "response": _as_text(values.get("prediction")),
        "label": values.get("answer"),
        "image": values.get("image_path"),
    }


def _as_text(prediction: object) -> object:
    """Return a prediction that a spreadsheet took for a number, or for no value, as its text."""
    if prediction is None:
        return ""
    number = isinstance(prediction, (int, float)) and not math.isnan(prediction)
    return str(prediction) if number else prediction


def _amber(values: Mapping[str, object]) -> Mapping[str, object]:
    return {**common_values(values), "type": values.get("category"), "truth": values.get("answer")}


def _hallusion_bench(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return a question with its place in the benchmark, which its index and categories hold.

    The table does not distinguish edited figures from original ones; the benchmark's own file does,
    under the key that is looked up first.
    """
    parts = str(values.get("index")).split("_")[_PLACE]
    places = dict(zip(("set_id", "figure_id", "question_id"), parts, strict=False))
    return {
        **common_values(values),
        **places,
        "subcategory": values.get("l2-category"),
        "visual_input_in_table": "unknown",
        "gt_answer": values.get("answer"),
    }


def _is_hallusion_bench(values: Mapping[str, object]) -> bool:
    return len(str(values.get("index")).split("_")) >= _PLACE.stop


def _is_amber(values: Mapping[str, object]) -> bool:
    return str(values.get("category")) in _AMBER_CATEGORIES


def _is_yes_no(values: Mapping[str, object]) -> bool:
    return yes_or_no(values.get("answer"))


KEYS = ("index", "question", "prediction")
"""The keys of every table of predictions."""
_NAMES = (
    (
        "of HallusionBench",
        ("index", "prediction", "l2-category"),
        _is_hallusion_bench,
        "hallusion-bench",
        _hallusion_bench,
    ),
    ("of AMBER", (*KEYS, "answer", "category"), _is_amber, "amber", _amber),
)


# Of HallusionBench, VLMEvalKit leaves out the questions without an image.
_SETTINGS: dict[str, dict[str, Any]] = {
    "hallusion-bench": {"variant": "image-only", "allow_missing": True},
    "pope": {"only_labels": True},
}


def predictions(
    name: str, keys: tuple[str, ...], matches: Matches, metric: str, convert: Common
) -> tuple[ArchiveReader, ArchiveReader]:
    """Return the readers of a benchmark's predictions, with the tool's own judgements and without.

    Args:
        name: Which predictions they are, after ``VLMEvalKit's table of predictions``.
        keys: Keys that every record has.
        matches: Test of the first record's values.
        metric: The metric that scores them.
        convert: Returns the common keys of a record.
    """
    table = ArchiveReader(
        name=f"VLMEvalKit's table of predictions {name}",
        keys=keys,
        matches=matches,
        metrics=(metric,),
        convert=converting(convert),
        **_SETTINGS.get(metric, {}),
    )
    judged = replace(
        table,
        name=f"{table.name}, with its own judgements",
        keys=(*keys, "extracted", "score"),
        role="companion",
    )
    return judged, table


def _summary(keys: str) -> ArchiveReader:
    return ArchiveReader(
        name="VLMEvalKit's table of scores, which has no responses",
        keys=tuple(keys.split()),
        matches=lambda values: "prediction" not in values,
        role="companion",
        remedy="give the table of predictions, MODEL_DATASET.xlsx",
    )


READERS = tuple(reader for each in _NAMES for reader in predictions(*each))
OTHER_READERS = (
    *predictions("with yes/no labels", (*KEYS, "answer"), _is_yes_no, "pope", common_values),
    _summary("split Overall acc precision recall"),
    _summary("split aAcc fAcc qAcc"),
    ArchiveReader(
        name="VLMEvalKit's table of predictions of another benchmark",
        keys=KEYS,
        any_metric=True,
        convert=converting(common_values),
        remedy="name a metric that scores its answers, and give its references with references=…",
    ),
)
