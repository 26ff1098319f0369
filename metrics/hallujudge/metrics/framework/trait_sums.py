"""What a run's responses have in common: thoughts, tokens of templates, refusals, cut sentences.

An item's traits are numbers by name, which add up like statistics. A report names them in its
notes, with what they change, and its signature says what was left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .arrays import np
from .columns_and_scores import ScoreDefinition, score_at
from .metric import Metric
from .results import ItemResult, Outcome
from .signature import TEMPLATE, THOUGHTS

THOUGHT, UNFINISHED, WORDS, FORM = "thought", "unfinished", "thought_words", "form "
"""Responses with a thought; thoughts without an end; words of thoughts; before a form's name."""
TOKENS, PROMPT = "tokens", "prompt"
"""Responses of which tokens of a template, or a repeated prompt, were left out."""
REFUSAL, CUT, DROPPED = "refusal", "cut", "dropped"
"""Refusals; responses without an end of sentence; those whose last sentence was left out."""

LEFT_OUT, KEPT, SCORED = "leave-out", "keep", "score"
"""What happens to thoughts."""
_VERBS = {LEFT_OUT: "left-out", KEPT: "kept", SCORED: "scored"}
# Fewer cut sentences are no sign of a token limit.
_NOTED_SHARE = 0.01
# A note names so many scores.
_NAMED_SCORES = 4


class TraitSums:
    """Sums of traits over items, in any order and any number of parts.

    Args:
        metric: The metric.
    """

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._counts: Counter[str] = Counter()
        # The first number is that of scored items, the column of the unit.
        size = 1 + len(metric.columns)
        # What the whole responses would add to the sums, and what refusals add to them.
        self._kept: list[float] = [0.0] * size
        self._refused: list[float] = [0.0] * size

    @property
    def counts(self) -> Mapping[str, float]:
        """The sums by trait, sorted by name; empty for a run without any."""
        return dict(sorted(self._counts.items()))

    def add(self, results: Iterable[ItemResult]) -> None:
        """Add items that have traits."""
        for result in results:
            self._counts.update(result.traits)
            own = _row(result)
            # The difference that keeping thoughts makes: the whole response in, the answer out.
            if result.kept:
                _add(self._kept, (1.0, *result.kept))
                _add(self._kept, [-number for number in own])
            if result.traits.get(REFUSAL):
                _add(self._refused, own)

    def merge(self, other: TraitSums) -> None:
        """Add the sums of another part."""
        self._counts.update(other._counts)
        _add(self._kept, other._kept)
        _add(self._refused, other._refused)

    def to_json(self) -> dict[str, Any]:
        """Return the sums for :meth:`of`; empty without any."""
        if not self._counts:
            return {}
        return {"counts": self._counts, "kept": self._kept, "refused": self._refused}

    @classmethod
    def of(cls, metric: Metric, values: Mapping[str, Any]) -> TraitSums:
        """Return the sums of what :meth:`to_json` returned.

        Raises:
            ValueError: They have another number of columns than the metric.
        """
        made = cls(metric)
        if values:
            made._counts = Counter(values["counts"])
            for mine, theirs in ((made._kept, values["kept"]), (made._refused, values["refused"])):
                if len(mine) != len(theirs):
                    raise ValueError(f"sums of {len(theirs)} columns, not {len(mine)}")
                _add(mine, theirs)
        return made

    def fields(self) -> tuple[tuple[str, str], ...]:
        """Return what the signature says was left out of the responses, or scored apart."""
        counts, mode = self._counts, self._metric.thoughts or LEFT_OUT
        marks = f",marks={self._metric.thought_marks}" if self._metric.thought_marks else ""
        thoughts = ((THOUGHTS, _VERBS[mode] + marks),) if counts[THOUGHT] else ()
        template = ((TEMPLATE, "left-out"),) if counts[TOKENS] or counts[PROMPT] else ()
        return (*thoughts, *template)

    def notes(self, totals: Mapping[str, float], items: int) -> Iterator[str]:
        """Yield a sentence about each trait.

        Args:
            totals: The sums that the scores are computed from.
            items: The number of items.
        """
        counts, unit = self._counts, self._metric.unit
        if counts[THOUGHT]:
            yield self._thought_note(totals)
        if counts[UNFINISHED]:
            yield (
                f"{_responses(counts[UNFINISHED], 'has', 'have')} a thought without an end, and no "
                "answer; ask again with a larger limit of tokens."
            )
        if counts[TOKENS] or counts[PROMPT]:
            yield self._template_note()
        if counts[REFUSAL]:
            without = self._scores(totals, self._refused, -1.0)
            effect = f"; without refusals {without}" if without else ""
            yield f"{_responses(counts[REFUSAL], 'is a refusal', 'are refusals')}{effect}."
        if counts[CUT] and counts[CUT] >= _NOTED_SHARE * items:
            then = "; the option drop_cut_sentence leaves the unfinished sentence out"
            if counts[DROPPED]:
                then = "; the unfinished sentences are left out"
            ends = "end" if counts[CUT] > 1 else "ends"
            yield (
                f"{counts[CUT]:,} of {items:,} {unit} {ends} without an end of sentence, as a "
                f"limit of tokens leaves them{then}."
            )

    def _thought_note(self, totals: Mapping[str, float]) -> str:
        counts, mode = self._counts, self._metric.thoughts or LEFT_OUT
        forms = ", ".join(
            f"{name.removeprefix(FORM)} {count:,}"
            for name, count in sorted(counts.items())
            if name.startswith(FORM)
        )
        mean = counts[WORDS] / counts[THOUGHT]
        what = {
            LEFT_OUT: "left out",
            KEPT: "kept, and scored with the answer",
            SCORED: "left out, and scored apart",
        }[mode]
        kept = self._scores(totals, self._kept, 1.0)
        effect = f"; with the option thoughts = keep {kept}" if kept else ""
        thoughts = "the thought is" if counts[THOUGHT] == 1 else "thoughts are"
        return (
            f"{_responses(counts[THOUGHT], 'has', 'have')} a thought ({forms}; {mean:,.0f} words "
            f"on average); {thoughts} {what}{effect}."
        )

    def _template_note(self) -> str:
        counts = self._counts
        parts = []
        if counts[TOKENS]:
            parts.append(f"tokens of a chat template in {_responses(counts[TOKENS])}")
        if counts[PROMPT]:
            parts.append(f"a repeated prompt in {_responses(counts[PROMPT])}")
        return f"Left out: {' and '.join(parts)} (the option template_tokens = keep scores them)."

    def _scores(self, totals: Mapping[str, float], change: Sequence[float], sign: float) -> str:
        """Return the scores that a change of the sums changes; empty if none can be computed."""
        metric = self._metric
        # Such metrics make columns from whole tables, which sums alone do not give.
        plain = not (metric.overrides("derive") or metric.overrides("expand"))
        if not plain or metric.repeated_by or not any(change):
            return ""
        names = (metric.unit, *(column.name for column in metric.columns))
        then = {
            name: totals.get(name, 0.0) + sign * number
            for name, number in zip(names, change, strict=True)
        }
        shown = metric.headline or tuple(score.name for score in metric.scores)
        parts: list[str] = []
        for score in metric.scores:
            if score.name in shown and all(name in then for name in score.columns):
                now, other = _value(score, {**totals, **_labels(totals, then)}), _value(score, then)
                if (text := _compared(now, other)) and len(parts) < _NAMED_SCORES:
                    parts.append(f"{score.name} is {text}")
        return ", ".join(parts)


def _labels(totals: Mapping[str, float], then: Mapping[str, float]) -> dict[str, float]:
    """Return columns that totals lack, since the sum of labels has no meaning."""
    return {name: 0.0 for name in then if name not in totals}


def _value(score: ScoreDefinition, numbers: Mapping[str, float]) -> float:
    # A score of nothing is undefined, and "undefined" is what the note says.
    with np.errstate(all="ignore"):
        return score_at(score, numbers)


def _compared(now: float, other: float) -> str:
    texts = ["undefined" if math.isnan(number) else f"{number:.4f}" for number in (other, now)]
    return f"{texts[0]}, not {texts[1]}" if texts[0] != texts[1] else ""


def _responses(count: float, one: str = "", more: str = "") -> str:
    noun, verb = ("response", one) if count == 1 else ("responses", more)
    return f"{count:,} {noun} {verb}".rstrip()


def _row(result: ItemResult) -> tuple[float, ...]:
    """Return what an item adds to the sums: its count, and its statistics."""
    if not result.statistics:
        return ()
    return (float(result.outcome is Outcome.SCORED), *result.statistics)


def _add(sums: list[float], numbers: Iterable[float]) -> None:
    for at, number in enumerate(numbers):
        sums[at] += number
