"""Sets of HallusionBench: files' records, the oracle's rows, and items."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hallujudge.metrics import Answer, AnswersItem

__all__ = ["item_of", "items_of", "record", "row_of"]


def record(place: str, correctness: int | None = 1, **more: Any) -> dict[str, Any]:
    """Return a record of a file; the place is ``VD_illusion_0_1_0``."""
    category, subcategory, set_id, figure_id, question_id = place.split("_")
    unseen = category == "VS" and figure_id == "0"
    return {
        "category": category,
        "subcategory": subcategory,
        "set_id": set_id,
        "figure_id": figure_id,
        "question_id": question_id,
        "visual_input": "0" if unseen else "1" if figure_id == "0" else "2",
        "question": "Is it so?",
        "gt_answer": "1",
        "model_prediction": "Yes.",
        "correctness": correctness,
        "same": "0",
    } | more


def row_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the oracle's row of a record."""
    return {
        **given,
        "visual_input": int(given["visual_input"]),
        "correctness": int(given["correctness"]),
        "gt": int(given["gt_answer"]),
        "same": int(given["same"]),
    }


def item_of(given: dict[str, Any]) -> AnswersItem:
    """Return the item of a record."""
    place = ("category", "subcategory", "set_id", "figure_id", "question_id")
    words = {1: "right", 0: "wrong", 2: "unclear", None: ""}
    answer = Answer(
        response=given["model_prediction"],
        label="yes" if given["gt_answer"] == "1" else "no",
        fields={
            **{key: given[key] for key in (*place, "visual_input", "same")},
            "correctness": words[given["correctness"]],
        },
    )
    return AnswersItem(id="_".join(given[key] for key in place), answers=(answer,))


def items_of(records: Iterable[dict[str, Any]]) -> list[AnswersItem]:
    """Return the items of records."""
    return [item_of(each) for each in records]
