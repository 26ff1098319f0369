"""Scorers for Inspect AI, which finds them by the entry point group ``inspect_ai``.

    inspect score LOG --scorer hallujudge/chair -S reference=objects

scores the responses of a log again, and ``inspect eval`` uses them as ``hallujudge/chair`` too. A
sample's reference is in its metadata under ``reference``, or is its target. The evidence is in the
score's metadata. ``mean`` is the mean over samples; ``corpus`` is the score over all samples
together, as Hallujudge's report has it.

Importing this module needs the package ``inspect_ai``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from inspect_ai.scorer import Metric, Score, mean, metric, scorer, stderr

from .backends.base import metric_of
from .scorer import Scorer

METRICS = ("chair", "pope", "tri-he", "mementos")
"""Metrics whose items are single responses."""
_KEY = "hallujudge"


@metric(name="corpus")  # type: ignore[untyped-decorator]  # inspect_ai may be absent
def corpus() -> Metric:
    """Return the metric that computes a score from the statistics of all samples together."""

    def value(scores: list[Any]) -> float:
        rows = [one.score.metadata[_KEY] for one in scores if _KEY in (one.score.metadata or {})]
        if not rows:
            return float("nan")
        used = metric_of(rows[0]["metric"], rows[0]["variant"], {})
        definition = next(each for each in used.scores if each.name == rows[0]["score"])
        sums = np.sum([row["statistics"] for row in rows], axis=0)
        named = dict(zip([column.name for column in used.columns], sums, strict=True))
        named[used.unit] = len(rows)
        with np.errstate(all="ignore"):
            return float(definition.values(np.array([[named[c] for c in definition.columns]]))[0])

    return value


def _scorer_of(name: str) -> Callable[..., Any]:
    @scorer(metrics=[mean(), stderr(), corpus()], name=name)  # type: ignore[untyped-decorator]
    def made(
        score: str = "",
        reference: str = "",
        variant: str = "",
        server: str = "",
        options: Mapping[str, object] | None = None,
    ) -> Any:
        """Score responses.

        Args:
            score: The score's name; empty for the main score.
            reference: Key of the reference in the metadata of a sample; empty for the target.
            variant: The metric's variant.
            server: A server's host and port; empty to score in this process.
            options: The metric's options.
        """
        scored = Scorer(
            name,
            scores=[score] if score else (),
            variant=variant,
            server=server,
            options=options,
            on_failure="none",
        )

        async def of(state: Any, target: Any) -> Score:
            given = state.metadata.get(reference) if reference else target.text
            [found] = await scored.score([state.output.completion], [given])
            (wanted,) = scored.scores
            value = found.scores[wanted]
            if value is None or found.result is None:
                return Score.unscored(reason=f"{found.reason or 'UNDEFINED'}: {found.detail}")
            kept = {
                "metric": name,
                "variant": variant,
                "score": wanted,
                "statistics": [float(number) for number in found.result.statistics],
            }
            return Score(
                value=value,
                answer=state.output.completion,
                metadata={_KEY: kept, "evidence": found.evidence},
            )

        return of

    return made  # type: ignore[no-any-return]


chair, pope, tri_he, mementos = map(_scorer_of, METRICS)
