"""INFACT: answers under every operator -> right or wrong -> kept or changed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hallujudge.metrics import Evidence, ItemResult
from hallujudge.metrics.answers.choices import read_choice
from hallujudge.metrics.framework.reasons import UnscoredReason
from hallujudge.metrics.framework.results import ScoredItem
from hallujudge.metrics.infact import (
    InfactEvidence,
    InfactItem,
    InfactMetric,
    InfactRun,
    RunVerdict,
)
from hallujudge.metrics.infact.operators import BASE, OPERATORS, level_of

from ..pipelines import TextPipeline
from ..registry import MetricEntry, Trial
from ..resources import Resources
from ..responses import Problem, ResponseCheck
from ..spec import ScoreSpec


class InfactPipeline(TextPipeline[InfactItem, InfactMetric]):
    """Parses a question's answers and compares each with the label."""

    item_type = InfactItem
    counts_unread = True

    def size(self, item: InfactItem) -> int:
        """Return the number of characters that scoring an item reads."""
        return sum(len(text) for text in self.texts(item) if text)

    def texts(self, item: InfactItem) -> Sequence[str | None]:
        """Return the answers under all operators."""
        return [run.response for run in item.runs.values()]

    def result(self, item: InfactItem) -> ItemResult:
        """Return the result of one question; runs whose call failed count as not run."""
        failed = self._failed(item)
        kept = {operator: run for operator, run in item.runs.items() if operator not in failed}
        result = super().result(replace(item, runs=kept) if failed else item)
        return replace(result, evidence=_with_failed(result.evidence, failed))

    def placed(self, item: InfactItem, result: ItemResult) -> ItemResult:
        """Return the result with the question's place in the taxonomy among its fields."""
        return replace(result, fields=_fields(item))

    def _failed(self, item: InfactItem) -> dict[str, UnscoredReason]:
        """Return the operators whose response is empty or a failure text, with the reason.

        The base condition is not among them, since it leaves the whole question unscored.
        """
        problems = {
            operator: self.responses.problem(run.response)
            for operator, run in item.runs.items()
            if operator != BASE
        }
        return {
            operator: problem[0]
            for operator, problem in problems.items()
            if problem is not None and problem[0] in _FAILED
        }

    def problem(self, item: InfactItem) -> Problem | None:
        """Return why a question can't be scored, or None if it can."""
        if problem := _runs_problem(item):
            return problem
        if problem := self.responses.problem(item.runs[BASE].response, "the base answer"):
            return problem
        if problem := _label_problem(item):
            return problem
        # Sorted, so that the reason does not depend on the order of a file.
        for operator, run in sorted(item.runs.items()):
            named = f"the answer under {operator}"
            if run.response is not None and (
                problem := self.responses.problem(run.response, named)
            ):
                return problem
            if run.confidence is not None and not _is_share(run.confidence):
                return (
                    UnscoredReason.CONFIDENCE_INVALID,
                    f"{operator}: the confidence is {run.confidence}; give a number from 0 to 1",
                )
        return None

    def score(self, item: InfactItem) -> ScoredItem[InfactEvidence]:
        """Return the statistics of a question."""
        return self.metric.score_question(item)

    def unread(self, item: InfactItem) -> Problem:
        """Return why a question whose base answer could not be parsed is unscored."""
        shown = (item.runs[BASE].response or "")[:80]
        return UnscoredReason.BASE_UNPARSED, f"the base answer {shown!r} can't be parsed"


_FAILED = (UnscoredReason.RESPONSE_EMPTY, UnscoredReason.RESPONSE_FAILED)


def _with_failed(
    evidence: Evidence | None, failed: Mapping[str, UnscoredReason]
) -> Evidence | None:
    """Return the evidence with a run for each failed call."""
    if not isinstance(evidence, InfactEvidence):
        return evidence
    runs = (RunVerdict(operator, None, None, reason) for operator, reason in failed.items())
    return replace(evidence, runs=(*evidence.runs, *runs)) if failed else evidence


def _fields(item: InfactItem) -> Mapping[str, str]:
    """The question's place in the taxonomy, to group by, and the item's own fields."""
    own = {
        "dimension": item.dimension,
        "level": level_of(item.category),
        "category": item.category,
        "order_sensitive": "true" if item.order_sensitive else "false",
    }
    return {name: value for name, value in own.items() if value} | dict(item.fields)


def _runs_problem(item: InfactItem) -> Problem | None:
    unknown = sorted(set(item.runs) - set(OPERATORS))
    if unknown:
        known = ", ".join(OPERATORS)
        named = ", ".join(map(repr, unknown))
        return UnscoredReason.OPERATOR_UNKNOWN, f"{named}; operators are {known}"
    if BASE not in item.runs:
        return UnscoredReason.BASE_MISSING, "there is no base run to compare other runs with"
    return None


def _label_problem(item: InfactItem) -> Problem | None:
    if not item.label.strip():
        return UnscoredReason.LABEL_INVALID, "the label is empty"
    if item.options and read_choice(item.label, item.options).choice is None:
        known = ", ".join(sorted(item.options))
        return (
            UnscoredReason.LABEL_INVALID,
            f"the label {item.label[:80]!r} is not one of the options {known}",
        )
    return None


def _is_share(number: float) -> bool:
    return math.isfinite(number) and 0 <= number <= 1


def _open(spec: ScoreSpec, resources: Resources) -> InfactPipeline:  # noqa: ARG001
    responses = ResponseCheck(spec.options)
    metric = InfactMetric(
        variant=spec.variant, responses=responses.signature, **ENTRY.own_options(spec)
    )
    return InfactPipeline(metric, responses)


ENTRY = MetricEntry(
    metric=InfactMetric,
    item_type=InfactItem,
    trial=Trial(
        item=InfactItem(id="1", label="A", runs={BASE: InfactRun(response="A")}),
        score="base_accuracy",
        value=1.0,
    ),
    group_by=("dimension", "level", "category"),
    open=_open,
)
ENTRIES = (ENTRY,)
