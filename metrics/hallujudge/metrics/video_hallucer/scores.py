"""Statistics and scores of VideoHallucer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..answers.yes_bias import yes_bias_scores
from ..framework.metric import Column, ScoreDefinition, ratio, share
from .items import PAPER_SETS

if TYPE_CHECKING:
    from ..framework.metric import FloatArray, Sums

__all__ = ["COLUMNS", "SCORES", "SET_COLUMNS", "set_columns"]

COLUMNS: tuple[Column, ...] = (
    Column(name="parsed", meaning="pairs whose answers count"),
    Column(name="basic_right", meaning="right answers to basic questions"),
    Column(name="hallucination_right", meaning="right answers to hallucinated questions"),
    Column(name="pair_right", meaning="pairs with two right answers"),
    Column(name="answers", meaning="answers of these pairs"),
    Column(name="yes_answers", meaning="of these, yes"),
    Column(name="yes_labels", meaning="of these, with the label yes"),
    Column(name="wrong", meaning="of these, wrong"),
    Column(name="wrong_yes", meaning="of these, wrong with the label no"),
    Column(name="unparsed", meaning="pairs with an answer that could not be parsed"),
    Column(name="answered", meaning="pairs with two answers"),
    Column(name="unscored", meaning="pairs that do not count"),
    Column(name="set", meaning="set, as a number", label=True),
)
"""The statistics of a pair, in order."""

_KINDS = ("basic", "hallucination", "pair")

SET_COLUMNS = tuple(
    name for part in PAPER_SETS for name in (part, *(f"{kind}_{part}" for kind in _KINDS))
)
"""Columns of single sets, made from a table of pairs."""


def set_columns(items: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return for each of the paper's sets its pairs and right answers."""
    out: dict[str, FloatArray] = {}
    for code, name in enumerate(PAPER_SETS, start=1):
        here = (items["set"] == code).astype(float)
        out[name] = items["parsed"] * here
        out |= {f"{kind}_{name}": items[f"{kind}_right"] * here for kind in _KINDS}
    return out


def _mean(kind: str) -> Callable[[Sums], FloatArray]:
    """Return the plain mean of five sets' accuracies; NaN if one has no pair."""
    parts = [ratio(f"{kind}_{name}", name) for name in PAPER_SETS]

    def value(sums: Sums) -> FloatArray:
        total = parts[0](sums)
        for part in parts[1:]:
            total = total + part(sums)
        return total / len(parts)

    return value


def _mean_score(kind: str) -> ScoreDefinition:
    return ScoreDefinition(
        name=f"mean_{kind}_accuracy",
        meaning=f"{kind}_accuracy, mean over the paper's five sets",
        direction="higher",
        columns=tuple(column for name in PAPER_SETS for column in (f"{kind}_{name}", name)),
        value=_mean(kind),
        count="parsed",
    )


SCORES: tuple[ScoreDefinition, ...] = (
    share("basic_accuracy", "right answers to basic questions / pairs", "basic_right", "parsed"),
    share(
        "hallucination_accuracy",
        "right answers to hallucinated questions / pairs",
        "hallucination_right",
        "parsed",
    ),
    share("pair_accuracy", "pairs with two right answers / pairs", "pair_right", "parsed"),
    *map(_mean_score, _KINDS),
    *yes_bias_scores("answers", "wrong"),
    share(
        "unparsed_rate",
        "pairs with an answer that could not be parsed / pairs",
        "unparsed",
        "answered",
        direction="lower",
        bounded=False,
    ),
)
"""The scores, in the order of the report."""
