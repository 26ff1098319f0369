"""Tables of VLMEvalKit: predictions, and the companions that it writes with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .archive_reader import ArchiveReader, converting, yes_or_no

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


def _common(values: Mapping[str, object]) -> dict[str, object]:
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
    return {**_common(values), "type": values.get("category"), "truth": values.get("answer")}


def _hallusion_bench(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return a question with its place in the benchmark, which its index and categories hold.

    The table does not distinguish edited figures from original ones; the benchmark's own file does,
    under the key that is looked up first.
    """
    parts = str(values.get("index")).split("_")[_PLACE]
    places = dict(zip(("set_id", "figure_id", "question_id"), parts, strict=False))
    return {
        **_common(values),
        **places,
        "subcategory": values.get("l2-category"),
        "visual_input_in_table": "unknown",
        "gt_answer": values.get("answer"),
    }


def _naturalbench(values: Mapping[str, object]) -> Mapping[str, object]:
    # The index numbers the answers of all groups, four to each.
    return {**_common(values), "Question_Type": values.get("type")}


def _crpe(values: Mapping[str, object]) -> Mapping[str, object]:
    # The answer may be the option with its text, of which the letter is the label.
    return {**_common(values), "correct_option": str(values.get("answer")).strip("( ")[:1]}


def _is_naturalbench(values: Mapping[str, object]) -> bool:
    return values.get("type") in ("yes_no", "multiple_choice")


def _is_crpe(values: Mapping[str, object]) -> bool:
    return values.get("category") in ("exist", "subject", "predicate", "object")


def _is_hallusion_bench(values: Mapping[str, object]) -> bool:
    return len(str(values.get("index")).split("_")) >= _PLACE.stop


def _is_amber(values: Mapping[str, object]) -> bool:
    return str(values.get("category")) in _AMBER_CATEGORIES


def _is_yes_no(values: Mapping[str, object]) -> bool:
    return yes_or_no(values.get("answer"))


_KEYS = ("index", "question", "prediction")
_NAMES = (
    (
        "of HallusionBench",
        ("index", "prediction", "l2-category"),
        _is_hallusion_bench,
        "hallusion-bench",
        _hallusion_bench,
    ),
    ("of AMBER", (*_KEYS, "answer", "category"), _is_amber, "amber", _amber),
    (
        "of NaturalBench",
        (*_KEYS, "answer", "type"),
        _is_naturalbench,
        "naturalbench",
        _naturalbench,
    ),
    ("of CRPE", (*_KEYS, "answer", "category"), _is_crpe, "crpe", _crpe),
    ("with yes/no labels", (*_KEYS, "answer"), _is_yes_no, "pope", _common),
)


# Of HallusionBench, VLMEvalKit leaves out the questions without an image.
_SETTINGS: dict[str, dict[str, Any]] = {
    "hallusion-bench": {"variant": "image-only", "allow_missing": True},
    "pope": {"only_labels": True},
}


def _tables(*, judged: bool) -> tuple[ArchiveReader, ...]:
    """Return the readers of predictions, with the tool's own judgements or without."""
    more: dict[str, Any] = {"role": "companion"} if judged else {}
    return tuple(
        ArchiveReader(
            name=f"VLMEvalKit's table of predictions {name}"
            f"{', with its own judgements' if judged else ''}",
            keys=(*keys, "extracted", "score") if judged else keys,
            matches=matches,
            metrics=(metric,),
            convert=converting(convert),
            **_SETTINGS.get(metric, {}),
            **more,
        )
        for name, keys, matches, metric, convert in _NAMES
    )


def _summary(keys: str) -> ArchiveReader:
    return ArchiveReader(
        name="VLMEvalKit's table of scores, which has no responses",
        keys=tuple(keys.split()),
        matches=lambda values: "prediction" not in values,
        role="companion",
        remedy="give the table of predictions, MODEL_DATASET.xlsx",
    )


READERS = (
    *_tables(judged=True),
    *_tables(judged=False),
    _summary("split Overall acc precision recall"),
    _summary("split aAcc fAcc qAcc"),
    ArchiveReader(
        name="VLMEvalKit's table of predictions of another benchmark",
        keys=_KEYS,
        any_metric=True,
        convert=converting(_common),
        remedy="name a metric that scores its answers, and give its references with references=…",
    ),
)
