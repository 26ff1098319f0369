"""Scores over many responses that a harness hands over one by one or in batches.

A harness keeps something of each sample and computes its numbers in the end, perhaps in another
process: :func:`scored_records` returns plain values of one response, and :func:`report_of` the
report over them. A training loop keeps a :class:`RunningScores` in each process and merges their
states. Both give the numbers of a report over the same responses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Self

from msgspec import structs

from hallujudge.judge_service import __version__
from hallujudge.judge_service.engine.spec import RunHeader, metric_of
from hallujudge.metrics import IntervalSettings, ItemResult, Outcome, Report, Tally
from hallujudge.sdk.archives.plain_values import plain
from hallujudge.sdk.archives.records import Record
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.runs import RunItems, RunReport
from hallujudge.sdk.runs.response_scores import Response, ResponseScore
from hallujudge.sdk.runs.result_files import result_of
from hallujudge.sdk.scorer import Scorer

__all__ = [
    "RunningScores",
    "corpus_score",
    "explanation",
    "report_of",
    "scored_records",
    "scores_with_intervals",
]


def scored_records(
    scorer: Scorer, response: Response, reference: object, *, group: str = ""
) -> dict[str, dict[str, Any]]:
    """Score a response for a harness that keeps values of JSON.

    Args:
        scorer: Scores the response.
        response: What the model wrote.
        reference: The reference.
        group: The image or video, for intervals; empty if no other response shares it.

    Returns:
        A record of each score: ``name`` and, unless it is undefined, ``score``; ``item`` with
        outcome, reason, statistics and evidence, as a line of ``items.jsonl``; and the metric with
        its signature, unless the service failed.
    """
    # The group of a response depends on the values, whatever type they come in.
    response, reference = plain(response), plain(reference)
    [found] = scorer([response], [reference])
    result = _result(found, group or _content_key(response, reference))
    line: dict[str, Any] = {**result.to_json(), "reason": str(result.reason), "statistics": {}}
    record: dict[str, Any] = {"metric": scorer.metric, "item": line}
    if found.result is not None:
        header = scorer.header()
        names, settings = [column.name for column in header.metric.columns], header.settings
        options = [option.name for option in header.metric.options if option.name in settings]
        line["statistics"] = dict(zip(names, result.statistics, strict=False))
        record |= {
            "variant": header.metric.variant,
            "signature": header.signature,
            "options": {name: settings[name] for name in options},
        }
    return {
        name: {"name": name} | ({} if value is None else {"score": value}) | record
        for name, value in found.scores.items()
    }


def report_of(records: Iterable[Mapping[str, Any]], *, confidence: float = 0.95) -> RunReport:
    """Return the report over records, with intervals, coverage and signature.

    Args:
        records: What :func:`scored_records` returned; they may have been written as JSON since.
        confidence: Confidence level of the intervals.

    Raises:
        InvalidInputError: No response could be scored, or the records are of several runs.
    """
    kept = list(records)
    heads = {record["signature"]: record for record in kept if "signature" in record}
    # Statistics of other judges, variants or options can't be added up.
    if len(heads) != 1:
        raise InvalidInputError(
            f"the records are of {len(heads)} signatures, and a report is of one: "
            f"{', '.join(heads)[:200] or 'no response was scored'}"
        )
    [(signature, head)] = heads.items()
    metric = metric_of(head["metric"], head["variant"], head["options"])
    header = RunHeader(
        metric=metric, signature=signature, settings=head["options"], notes=(), release=__version__
    )
    results = (
        result_of(Record(record["item"], at, f"record {at + 1}"), metric.columns)
        for at, record in enumerate(kept)
    )
    return _report(header, Tally.of(metric, results), confidence)


def _report(header: RunHeader, tally: Tally, confidence: float = 0.95) -> RunReport:
    """Return a report without items, which can be logged to a tracker."""
    return RunReport.of(header.report(tally, IntervalSettings(confidence=confidence)), RunItems())


def corpus_score(records: Iterable[Mapping[str, Any]]) -> float:
    """Return the score that records name over all of them together; NaN if it is undefined."""
    kept = list(records)
    # Harnesses ask for a number of every group of samples, also where all failed.
    if not any("signature" in record for record in kept):
        return math.nan
    value = report_of(kept).scores[kept[0]["name"]].value
    return math.nan if value is None else value


def scores_with_intervals(report: Report, names: Iterable[str]) -> dict[str, float]:
    """Return scores of a report and the ends of their intervals, without undefined ones."""
    found = {
        key: value
        for name in names
        for score in [report.scores[name]]
        for key, value in (
            (name, score.value),
            (f"{name}_ci_low", score.ci_low),
            (f"{name}_ci_high", score.ci_high),
        )
    }
    return {key: value for key, value in found.items() if value is not None}


def _result(found: ResponseScore, group: str) -> ItemResult:
    """Return the result of a response, in the cluster of its group.

    Raises:
        InvalidInputError: It came without statistics.
    """
    if found.outcome is Outcome.SCORED and not (found.result and found.result.statistics):
        raise InvalidInputError(
            "scores over several responses need their statistics; leave out evidence=False"
        )
    if found.result is not None:
        return structs.replace(found.result, id=group, group_id=group)
    return ItemResult(
        id=group,
        group_id=group,
        outcome=Outcome.UNSCORED,
        reason=found.reason,
        detail=found.detail,
    )


def _content_key(*content: object) -> str:
    """Return a name of values, so that samples which a sampler repeats share a cluster."""
    return blake2b(repr(content).encode("utf-8", "replace"), digest_size=8).hexdigest()


class RunningScores:
    """Scores over all responses so far, in the manner of torchmetrics: update, compute, reset.

    The state is the statistics of the items, 16 bytes for each and a few for each statistic, and
    not their texts. States of several processes are merged in any order.

    Args:
        metric: The metric's name.
        scores: Names of the scores that are computed; empty for the metric's main score.
        **arguments: Arguments of :class:`Scorer`, such as ``references`` and ``server``.

    Raises:
        HallujudgeError: An argument is wrong; see :class:`Scorer`.

    Example:
        >>> running = RunningScores("chair", ["chair_i"])
        >>> for text in ("A cat.", "A cat and a dog."):
        ...     scored = running.update([text], [["cat"]])
        >>> other = RunningScores("chair", ["chair_i"])
        >>> other.merge(running.state())
        >>> other.compute()
        {'chair_i': 0.3333333333333333}
    """

    def __init__(self, metric: str, scores: Sequence[str] = (), **arguments: Any) -> None:
        self._begin(Scorer(metric, scores=scores, **arguments))

    @classmethod
    def of(cls, scorer: Scorer) -> Self:
        """Return running scores of a scorer that is already made."""
        made = cls.__new__(cls)
        made._begin(scorer)
        return made

    def _begin(self, scorer: Scorer) -> None:
        self.scorer = scorer
        """Scores the responses."""
        self._state = b""
        self._tally: Tally | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy in another process needs."""
        # The statistics travel as bytes, which are read when they are needed.
        return {"scorer": self.scorer, "_state": self.state(), "_tally": None}

    def update(
        self,
        responses: Sequence[tuple[str, Response]] | Sequence[Response],
        references: Sequence[object] | None = None,
        *,
        groups: Sequence[str] | None = None,
    ) -> list[ResponseScore]:
        """Score responses and add them.

        Args:
            responses: As for :meth:`Scorer.__call__`.
            references: The same.
            groups: The image or video of each response, for intervals. Without it, responses to
                the same reference id form a group, and all others are independent.

        Returns:
            The scores of each response.
        """
        if references is not None:
            responses, references = list(map(plain, responses)), list(map(plain, references))
        found = self.scorer(responses, references)
        if groups is None:
            groups = (
                [one.id for one in found]
                if references is None
                else list(map(_content_key, responses, references))
            )
        results = [_result(one, group) for one, group in zip(found, groups, strict=True)]
        self._current().add_all(results)
        return found

    def compute(self) -> dict[str, float | None]:
        """Return each score over all responses; None if it is undefined."""
        scores = self.report().scores
        return {name: scores[name].value for name in self.scorer.scores}

    def report(self, *, confidence: float = 0.95) -> RunReport:
        """Return the report over all responses, with intervals, coverage and signature."""
        return _report(self.scorer.header(), self._current(), confidence)

    def reset(self) -> None:
        """Forget all responses."""
        self._state, self._tally = b"", None

    def state(self) -> bytes:
        """Return the statistics so far, for :meth:`merge` in this or another process."""
        return self._tally.to_bytes() if self._tally is not None else self._state

    def merge(self, state: bytes) -> None:
        """Add all responses of another process, or of a part of the run.

        Raises:
            MergeError: The state is damaged, or of another metric.
        """
        if state:
            self._current().merge_bytes(state)

    def gather(self, all_gather: Callable[[bytes], Iterable[bytes]]) -> RunReport:
        """Return the report over all processes; each calls it and gets the same.

        Args:
            all_gather: Returns the states of all processes, given that of this one.
        """
        tally = Tally(self.scorer.header().metric)
        # A process that had no responses sends an empty state.
        for state in filter(None, all_gather(self.state())):
            tally.merge_bytes(state)
        return _report(self.scorer.header(), tally)

    def _current(self) -> Tally:
        if self._tally is None:
            self._tally = Tally(self.scorer.header().metric)
            if self._state:
                self._tally.merge_bytes(self._state)
        return self._tally


# Explanations -------------------------------------------------------------------------------------


def explanation(name: str, score: float, evidence: Mapping[str, Any]) -> str:
    """Return what a response's score rests on.

    Args:
        name: The score's name.
        score: Its value.
        evidence: The evidence, as ``items.jsonl`` has it.
    """
    # Of a recall, what is missing explains the score, and not what is wrong.
    if name.endswith("recall") and (missed := _missed(name, evidence)) is not None:
        return (
            f"{name} {score:.4g}: {'missed: ' + ', '.join(missed) if missed else 'nothing missed'}"
        )
    claims = [claim for claim in evidence.get("claims") or () if isinstance(claim, Mapping)]
    wrong = [" ".join(c.get("triplet", ())) for c in claims if c.get("verdict") == "not_supported"]
    answers = [
        f"answered {each.get('answer') or 'nothing that can be read'}, label {each.get('label')}"
        for each in evidence.get("answers") or ()
    ]
    found = {
        "hallucinated": _words(evidence.get("hallucinated")),
        "hallucinated objects": _words(_part(evidence, "objects").get("hallucinated")),
        "hallucinated behaviors": _words(_part(evidence, "behaviors").get("hallucinated")),
        "not supported": wrong,
    }
    shown = [f"{what}: {', '.join(words)}" for what, words in found.items() if words]
    why = "; ".join([*answers, *shown]) or "nothing hallucinated"
    return f"{name} {score:.4g}: {why}"


def _missed(name: str, evidence: Mapping[str, Any]) -> list[str] | None:
    """Return the references that a response does not mention; None if its metric lists none."""
    kind = {"object_recall": "objects", "behavior_recall": "behaviors"}.get(name)
    found = _part(evidence, kind) if kind else evidence
    return _words(found["missed"]) if "missed" in found else None


def _part(evidence: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a part of the evidence; a list of the same name is another metric's."""
    found = evidence.get(name)
    return found if isinstance(found, Mapping) else {}


def _words(found: Sequence[Any] | None) -> list[str]:
    """Return words, of which evidence may hold pairs with what they were mapped to."""
    return [str(one if isinstance(one, str) else one[0]) for one in found or ()]
