"""Mementos analyses: correlation of both kinds, recall against length, usual companions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from hallujudge.judge_service.engine.resources import read_graph
from hallujudge.metrics.mementos.sequence_analyses import (
    BehaviorPairs,
    ScoredSequence,
    companions,
    hallucination_correlation,
    recall_by_length,
    snowballing,
)
from hallujudge.sdk.archives.records import Record
from hallujudge.sdk.errors import ArchiveError
from hallujudge.sdk.report.analysis_tables import AnalysisTable, Spread
from hallujudge.sdk.report.charts import Chart
from hallujudge.sdk.runs.run_spec import graph_source
from hallujudge.sdk.runs.score_run import by_domain
from hallujudge.synonym_graphs import shipped_graphs

from ..analysis_options import OPTIONS
from .analyzed_run import AnalyzedRun, FamilyAnalyses, Tables, run_by_run

_GENERAL = "general"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sequence:
    scored: ScoredSequence
    reference_behaviors: tuple[str, ...]


class _Roots:
    """Maps behaviours to their roots in the graph of their domain.

    Args:
        chosen: Domain -> graph that maps behaviours to roots, a shipped name or a file; the empty
            domain is any other. Empty for the shipped graphs, as in scoring.
    """

    def __init__(self, chosen: Mapping[str, str]) -> None:
        self._chosen = chosen
        self._roots: dict[str, Callable[[str], str]] = {}

    def of(self, domain: str) -> Callable[[str], str]:
        """Return the function that maps a behaviour to its root in a domain."""
        if domain not in self._roots:
            graph = read_graph(graph_source(self._name(domain)))

            # Sequences repeat their words, and to look one up takes long.
            @cache
            def root(word: str) -> str:
                # A word with several roots is always mapped to the first one, so that both sides
                # agree.
                return next(iter(graph.roots_of(word)), word)

            self._roots[domain] = root
        return self._roots[domain]

    def _name(self, domain: str) -> str:
        if (chosen := self._chosen.get(domain, self._chosen.get(""))) is not None:
            return chosen
        own = f"{domain}_behaviors"
        return own if own in shipped_graphs() else f"{_GENERAL}_behaviors"


def _tables(run: AnalyzedRun, options: Mapping[str, Any]) -> Tables:
    """Return the analyses of a Mementos run.

    Raises:
        ArchiveError: A line of items.jsonl is not one that a Mementos run writes.
        NotFoundError: A graph is unknown.
        InvalidInputError: A graph can't be read.
    """
    roots = _Roots(by_domain(options["behavior_graph"], "behaviors"))
    sequences = [_sequence(record, roots) for record in run.scored()]
    scored = [sequence.scored for sequence in sequences]
    # Pairs come from the human descriptions: those of models would hold the very companions that
    # are made up.
    pairs = BehaviorPairs(sequence.reference_behaviors for sequence in sequences)
    return [
        AnalysisTable(
            # Table 3 does not name its coefficient; Pearson's is an assumption.
            name="correlation",
            source="Wang et al., Table 3: object with behaviour scores (Pearson), by domain",
            rows=tuple(asdict(row) for row in hallucination_correlation(scored)),
            spread=Spread(
                column="measure", values=("value", "n"), headings=("correlation", "n"), mark=""
            ),
        ),
        AnalysisTable(
            name="recall_by_length",
            source="Wang et al., Figure 7: mean recall against events in the sequence",
            rows=tuple(asdict(row) for row in recall_by_length(scored)),
            chart=Chart(
                kind="lines",
                x="episode_length",
                y=("object_recall", "behavior_recall"),
                by=("domain",),
            ),
        ),
        AnalysisTable(
            # Figure 7 draws the fall of recall without a test; slope and interval are ours.
            name="snowballing",
            source="ours, after Wang et al., section 3.2 and Figure 7: change of recall with each "
            "further event, 95 % interval",
            rows=tuple(asdict(row) for row in snowballing(scored)),
        ),
        AnalysisTable(
            name="companions",
            source="ours, after Wang et al., section 3.2: made-up behaviours that are among the "
            f"{options['companions']} usual companions of a true one; expected: by frequency alone",
            rows=tuple(asdict(row) for row in companions(scored, pairs, k=options["companions"])),
        ),
    ], []


def _sequence(record: Record, roots: _Roots) -> _Sequence:
    evidence, scores = record.values.get("evidence"), record.values.get("scores")
    behaviors = evidence.get("behaviors") if isinstance(evidence, Mapping) else None
    if not (
        isinstance(evidence, Mapping)
        and isinstance(behaviors, Mapping)
        and isinstance(scores, Mapping)
    ):
        raise ArchiveError(
            f"{record.place}: no behaviours in the evidence; give a run of the metric mementos"
        )
    domain = str(evidence.get("domain", ""))
    length = evidence.get("episode_length")
    root = roots.of(domain)
    with ArchiveError.of_content(
        f"{record.place}: not a line that a run of mementos writes", "score again"
    ):
        # The reference's word of each pair, since companions are counted among reference words.
        matched = [str(pair[1]) for pair in behaviors["matched"]]
        made_up = [str(word) for word in behaviors["hallucinated"]]
        reference = [str(word) for word in evidence["reference_behaviors"]]
        values = {name: _number(value) for name, value in scores.items()}
    scored = ScoredSequence(
        domain=domain,
        scores=values,
        # Without a length, a sequence is missing in the two tables over lengths only.
        episode_length=length if isinstance(length, int) else None,
        true_behaviors=tuple(map(root, matched)),
        hallucinated_behaviors=tuple(map(root, made_up)),
    )
    return _Sequence(scored=scored, reference_behaviors=tuple(map(root, reference)))


def _number(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value)
    raise TypeError(f"a score is {value!r:.40}")


ANALYSES = (
    FamilyAnalyses(
        metrics=("mementos",),
        make=run_by_run(_tables, "mementos"),
        options=OPTIONS["mementos"],
    ),
)
