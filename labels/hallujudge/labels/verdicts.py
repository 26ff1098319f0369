"""Verdicts of a run, read from its items: what human labels agree with or not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hallujudge.metrics import Outcome
from hallujudge.metrics.event_hallusion import DESCRIPTION
from hallujudge.metrics.framework.claims import certainty, stated_probability
from hallujudge.metrics.framework.metric import SOFT, YES
from hallujudge.sdk.archives.records import Record
from hallujudge.sdk.archives.stored_files import stored_value
from hallujudge.sdk.errors import ArchiveError, UnsupportedError
from hallujudge.sdk.runs.manifest import ITEMS
from hallujudge.sdk.runs.result_files import records_of, result_of

if TYPE_CHECKING:
    from hallujudge.sdk.runs.stored_runs import StoredRun


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedClaim:
    """A claim and its verdict."""

    index: int
    """Place of the claim in the item's evidence, as the HTML page and labels count."""
    text: str
    """The claim in words, as the HTML page shows it."""
    hallucinated: bool | None
    """Whether the verdict is that it is hallucinated; None without a verdict."""
    margin: float | None = None
    """How sure the judge is; None if unknown. Below 0, a language model found another choice
    likelier than the one that it chose."""
    span: tuple[int, int] | None = None
    """Place of the claim in the response."""
    weight: float = 1.0
    """What the claim adds to its item's column if it is hallucinated."""
    probability: float | None = None
    """How likely it is hallucinated, in runs that count probabilities; None in other runs."""

    @property
    def counted(self) -> float:
        """Return for how much of a hallucinated claim the run counts it."""
        return float(self.hallucinated is True) if self.probability is None else self.probability


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedItem:
    """A scored item and the verdicts on its claims."""

    id: str
    """The item's id."""
    cluster: str
    """Its image or video."""
    statistics: Mapping[str, float]
    """Its statistics by column."""
    claims: tuple[DecidedClaim, ...]
    fields: Mapping[str, str]
    """Values that results may be grouped by."""
    response: str
    """What the model wrote; empty if the run does not keep it."""

    @property
    def hallucinated(self) -> bool | None:
        """Return whether a claim is hallucinated; None without any verdict."""
        verdicts = [claim.hallucinated for claim in self.claims]
        # A response that is scored and claims nothing hallucinates nothing.
        if not verdicts:
            return False
        return None if all(verdict is None for verdict in verdicts) else True in verdicts


# Statistics are sums of weights such as 1/3, which differ in the last digits.
_CLOSE = 1e-6


def read_verdicts(run: StoredRun) -> Iterator[DecidedItem]:
    """Yield the scored items of a run with their verdicts.

    Raises:
        UnsupportedError: The run's metric has no verdicts that labels could correct.
        ArchiveError: A line can't be read.
    """
    name = run.report.metric
    if name not in CLAIMS_OF:
        raise UnsupportedError(
            f"{run.folder}: scores of {name} do not depend on verdicts that labels could correct; "
            f"give a run of {', '.join(CLAIMS_OF)}"
        )
    claims_of = CLAIMS_OF[name]
    for record in records_of(run.folder / ITEMS, run.signature):
        result = result_of(record, run.metric.columns)
        # What counts in no score can't be corrected.
        if result.outcome is Outcome.SCORED and not result.left_out:
            names = (column.name for column in run.metric.columns)
            statistics = dict(zip(names, map(float, result.statistics), strict=True))
            with ArchiveError.of_content(
                f"{record.place}: the evidence has no verdicts", "score again"
            ):
                evidence = stored_value(record.values.get("evidence"), dict)
                claims = tuple(claims_of(evidence, run.report.settings))
            response = record.values.get("response")
            item = DecidedItem(
                id=result.id,
                cluster=result.group_id,
                statistics=statistics,
                claims=claims,
                fields=result.fields,
                # Runs without texts, and items with several answers, have no response to show.
                response=response if isinstance(response, str) else "",
            )
            _check(item, run, record)
            yield item


def _check(item: DecidedItem, run: StoredRun, record: Record) -> None:
    """Refuse a line whose verdicts do not add up to its statistics."""
    for column in run.metric.judged:
        if column.of == "claim":
            found = math.fsum(
                claim.weight * (1.0 - claim.counted if column.supported else claim.counted)
                for claim in item.claims
                if claim.hallucinated is not None
            )
            stored = item.statistics[column.column] * divisor(item.statistics, column.divided_by)
            if not math.isclose(found, stored, abs_tol=_CLOSE, rel_tol=_CLOSE):
                raise ArchiveError(
                    f"{record.place}: {column.column} is {stored:g}, but the verdicts give "
                    f"{found:g}; the line was changed: score again"
                )


def divisor(statistics: Mapping[str, float], column: str) -> float:
    """Return what an item's number of hallucinated claims is divided by."""
    return statistics[column] if column else 1.0


def caption_mentions(
    evidence: Mapping[str, Any], settings: Mapping[str, str]
) -> Iterator[DecidedClaim]:
    """Yield the mentions of a caption.

    Args:
        evidence: The item's evidence.
        settings: Settings of the run; with ``count: objects``, mentions of one object share its
            weight.
    """
    wrong = {tuple(span) for span in evidence["hallucinated_spans"]}
    pairs = evidence["mentioned"]
    times = Counter(name for _, name in pairs)
    # One object counts once then, so that its mentions share what it adds.
    once = settings.get("count") == "objects"
    spans = evidence["mentioned_spans"]
    for index, ((word, name), span) in enumerate(zip(pairs, spans, strict=True)):
        start, end = span
        yield DecidedClaim(
            index=index,
            text=word if word == name else f"{word} → {name}",
            hallucinated=(start, end) in wrong,
            span=(int(start), int(end)),
            weight=1 / times[name] if once else 1.0,
        )


def judged_description(
    evidence: Mapping[str, Any],
    settings: Mapping[str, str],
) -> Iterator[DecidedClaim]:
    """Yield the description of a video, which the HTML page shows after its questions."""
    # Evidence may have no answers, and then has no description either.
    [*others, last] = evidence["answers"] or [{"name": "", "correct": None}]
    # The benchmark has labels of its questions; only descriptions have a judge's verdict.
    if last["name"] == DESCRIPTION and last["correct"] is not None:
        margin = evidence.get("margin")
        right = evidence.get("probability") if settings.get(SOFT) == YES else None
        yield DecidedClaim(
            index=len(others),
            text=DESCRIPTION,
            hallucinated=not last["correct"],
            probability=None if right is None else 1.0 - float(right),
            margin=None if margin is None else float(margin),
        )


VERDICTS: Mapping[str, bool | None] = {"supported": False, "not_supported": True, "unscored": None}
"""Verdict of a claim -> whether it is hallucinated; None if it is open."""


def answer_claims(
    evidence: Mapping[str, Any],
    settings: Mapping[str, str],
) -> Iterator[DecidedClaim]:
    """Yield the claims of an answer."""
    soft = settings.get(SOFT) == YES
    for index, claim in enumerate(evidence["claims"]):
        span, margin = claim.get("span"), claim.get("margin")
        verdict = VERDICTS[claim["verdict"]]
        supported = stated_probability(claim["judge"], claim["score"]) if soft else None
        yield DecidedClaim(
            index=index,
            text=" · ".join(claim["triplet"]),
            hallucinated=verdict,
            probability=None if supported is None or verdict is None else 1.0 - supported,
            margin=None if margin is None else certainty(float(margin), claim["judge"]),
            span=(int(span[0]), int(span[1])) if span else None,
        )


CLAIMS_OF: Mapping[str, Callable[[Any, Mapping[str, str]], Iterator[DecidedClaim]]] = {
    "chair": caption_mentions,
    "tri-he": answer_claims,
    "seen-claims": answer_claims,
    "event-hallusion": judged_description,
}
"""Metric whose verdicts labels can correct -> reads them from the evidence and the settings."""
