"""Mementos' analyses: correlation of hallucinations, recall by length, co-occurring behaviours.

The functions work on scored items; see section 3.2 of the paper.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import permutations
from typing import Any

from hallujudge.judge_service.engine.resources import read_graph
from hallujudge.metrics.framework.agreement import pearson
from hallujudge.metrics.framework.arrays import np
from hallujudge.metrics.framework.columns_and_scores import mean_of_known
from hallujudge.sdk.archives.records import Record
from hallujudge.sdk.errors import ArchiveError
from hallujudge.sdk.report.analysis_tables import AnalysisTable, Spread
from hallujudge.sdk.report.charts import Chart
from hallujudge.sdk.runs.score_run import by_domain, graph_source
from hallujudge.synonym_graphs import shipped_graphs

from ..analysis_options import OPTIONS
from .analyzed_run import AnalyzedRun, FamilyAnalyses, Tables, reading, run_by_run

# The columns of Table 3, in its order.
_MEASURES = ("recall", "precision", "f1")
# Half the width of a normal 95 % interval, in standard errors.
_NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredSequence:
    """A scored item, reduced to what the analyses need."""

    domain: str
    """Domain of the sequence."""
    scores: Mapping[str, float | None]
    """Scores of the item, ``object_recall`` to ``behavior_f1``."""
    episode_length: int | None = None
    """Number of events in the sequence."""
    true_behaviors: tuple[str, ...] = ()
    """Reference behaviours that the description names."""
    hallucinated_behaviors: tuple[str, ...] = ()
    """Hallucinated behaviours."""
    reference_behaviors: tuple[str, ...] = ()
    """All behaviours of the reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """Correlation of object and behaviour scores of one domain (Table 3)."""

    domain: str
    measure: str
    """``recall``, ``precision`` or ``f1``."""
    value: float | None
    """Pearson's coefficient; None for fewer than two sequences, or if either is constant."""
    n: int
    """Number of sequences for which both scores are defined."""


def hallucination_correlation(sequences: Iterable[ScoredSequence]) -> list[Correlation]:
    """Return the correlation of object and behaviour scores over each domain's sequences.

    Table 3 has coefficients for recall, precision and F1 in each domain, but does not name their
    kind. This function computes Pearson's.
    """
    points: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for sequence in sequences:
        for measure in _MEASURES:
            pair = tuple(
                sequence.scores.get(f"{kind}_{measure}") for kind in ("object", "behavior")
            )
            if pair[0] is not None and pair[1] is not None:
                points[sequence.domain, measure].append((pair[0], pair[1]))
    return [
        Correlation(
            domain=domain, measure=measure, value=pearson(*zip(*pairs, strict=True)), n=len(pairs)
        )
        for (domain, measure), pairs in sorted(
            points.items(), key=lambda entry: (entry[0][0], _MEASURES.index(entry[0][1]))
        )
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthPoint:
    """Recall of the sequences of one episode length (Figure 7)."""

    domain: str
    episode_length: int
    """Number of events in the sequence."""
    object_recall: float | None
    """Mean object recall."""
    behavior_recall: float | None
    """Mean behaviour recall."""
    n: int
    """Number of sequences of that length."""


def recall_by_length(sequences: Iterable[ScoredSequence]) -> list[LengthPoint]:
    """Return the mean recall by episode length, which falls if errors accumulate."""
    groups: dict[tuple[str, int], list[ScoredSequence]] = defaultdict(list)
    for sequence in sequences:
        if sequence.episode_length is not None:
            groups[sequence.domain, sequence.episode_length].append(sequence)
    return [
        LengthPoint(
            domain=domain,
            episode_length=length,
            object_recall=mean_of_known(s.scores.get("object_recall") for s in members),
            behavior_recall=mean_of_known(s.scores.get("behavior_recall") for s in members),
            n=len(members),
        )
        for (domain, length), members in sorted(groups.items())
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snowballing:
    """How recall changes with each further event of a sequence (section 3.2, Figure 7)."""

    domain: str
    measure: str
    """``object_recall`` or ``behavior_recall``."""
    slope: float | None
    """Change of recall for one more event, by least squares; None if all lengths are equal."""
    ci_low: float | None
    """Lower end of the 95 % interval."""
    ci_high: float | None
    """Upper end of the interval. Below 0, errors accumulate."""
    n: int
    """Number of sequences."""


def snowballing(sequences: Iterable[ScoredSequence]) -> list[Snowballing]:
    """Return the trend of recall over episode lengths, for each domain.

    The paper draws the curve and names no test. The interval is normal, with a standard error that
    holds for unequal variances (HC1; MacKinnon and White 1985), because recall of long sequences
    varies less than that of short ones.
    """
    points: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for sequence in sequences:
        for measure in ("object_recall", "behavior_recall"):
            recall = sequence.scores.get(measure)
            if sequence.episode_length is not None and recall is not None:
                points[sequence.domain, measure].append((sequence.episode_length, recall))
    return [_trend(*key, found) for key, found in sorted(points.items())]


def _trend(domain: str, measure: str, points: Sequence[tuple[float, float]]) -> Snowballing:
    lengths, recall = np.array(points, dtype=float).T
    around = lengths - lengths.mean()
    spread, count = float(around @ around), len(points)
    slope = float(around @ recall) / spread if spread > 0 else None
    low = high = None
    # A line through two points has no residuals, from which an error could be estimated.
    if slope is not None and count > 2:
        moved = around * (recall - recall.mean() - slope * around)
        # HC1 enlarges the variance by n / (n - 2): a line has two parameters.
        error = math.sqrt(float(moved @ moved) * count / (count - 2)) / spread
        low, high = slope - _NORMAL_95 * error, slope + _NORMAL_95 * error
    return Snowballing(
        domain=domain, measure=measure, slope=slope, ci_low=low, ci_high=high, n=count
    )


class BehaviorPairs:
    """Counts of behaviours that occur in the same sequence, by the human descriptions.

    Args:
        episodes: The behaviours of each sequence.
    """

    def __init__(self, episodes: Iterable[Iterable[str]]) -> None:
        self._alone: Counter[str] = Counter()
        self._with: dict[str, Counter[str]] = defaultdict(Counter)
        self.episodes = 0
        for behaviors in episodes:
            # A description may name a behaviour twice, and shares are of sequences.
            different = set(behaviors)
            self.episodes += 1
            self._alone.update(different)
            for one, other in permutations(different, 2):
                self._with[one][other] += 1

    def share(self, companion: str, behavior: str) -> float:
        """Return the share of a behaviour's sequences that also have the companion."""
        alone = self._alone[behavior]
        return self._with[behavior][companion] / alone if alone else 0.0

    def frequency(self, behaviors: Iterable[str]) -> float:
        """Return the share of all behaviours, with repetitions, that are among these."""
        total = self._alone.total()
        return sum(self._alone[behavior] for behavior in behaviors) / total if total else 0.0

    def companions(self, behavior: str, k: int) -> tuple[str, ...]:
        """Return the k behaviours that occur most often with one; ties by name."""
        found = self._with.get(behavior, Counter())
        return tuple(sorted(found, key=lambda name: (-found[name], name))[:k])


@dataclass(frozen=True, slots=True, kw_only=True)
class Companionship:
    """Share of hallucinated behaviours that are usual companions of a true one."""

    domain: str
    value: float | None
    """Share of hallucinated behaviours; None if there are none."""
    expected: float | None
    """The same share for behaviours drawn at random by their frequency."""
    n: int
    """Number of hallucinated behaviours."""


def companions(
    sequences: Iterable[ScoredSequence], pairs: BehaviorPairs, *, k: int = 5
) -> list[Companionship]:
    """Return the share of hallucinated behaviours that are usual companions, by domain.

    The paper describes the effect without a formula; this definition is Hallujudge's.

    Args:
        sequences: Scored sequences; behaviours should be roots of one graph on both sides.
        pairs: Counts of behaviours in the same sequence.
        k: Number of usual companions of a behaviour.
    """
    usual: dict[str, frozenset[str]] = {}
    counts: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for sequence in sequences:
        near: set[str] = set()
        true = set(sequence.true_behaviors)
        for behavior in true:
            if behavior not in usual:
                usual[behavior] = frozenset(pairs.companions(behavior, k))
            near |= usual[behavior]
        # A behaviour that the reference names can't be made up, however usual it is.
        near -= true
        # A second word for a reference behaviour is not hallucinated.
        made_up = set(sequence.hallucinated_behaviors) - true
        row = counts[sequence.domain]
        row[0] += len(made_up & near)
        row[1] += len(made_up)
        # As many would be companions if each were drawn by how often people describe it.
        row[2] += len(made_up) * pairs.frequency(near)
    return [
        Companionship(
            domain=domain,
            value=hits / n if n else None,
            expected=chance / n if n else None,
            n=int(n),
        )
        for domain, (hits, n, chance) in sorted(counts.items())
    ]


# Behaviours of other domains lead to roots of this graph, as in scoring.
_GENERAL = "general"


def _roots(chosen: Mapping[str, str]) -> Callable[[str], Callable[[str], str]]:
    """Return domain -> the function that maps a behaviour to its root in that domain's graph.

    Args:
        chosen: Domain -> graph that maps behaviours to roots, a shipped name or a file; the empty
            domain is any other. Empty for the shipped graphs, as in scoring.
    """

    @cache
    def of(domain: str) -> Callable[[str], str]:
        graph = read_graph(graph_source(_graph_name(domain, chosen)))

        # Sequences repeat their words, and to look one up takes long.
        @cache
        def root(word: str) -> str:
            # A word with several roots is always mapped to the first one, so that both sides agree.
            return next(iter(graph.roots_of(word)), word)

        return root

    return of


def _graph_name(domain: str, chosen: Mapping[str, str]) -> str:
    if (named := chosen.get(domain, chosen.get(""))) is not None:
        return named
    own = f"{domain}_behaviors"
    return own if own in shipped_graphs() else f"{_GENERAL}_behaviors"


def _tables(run: AnalyzedRun, options: Mapping[str, Any]) -> Tables:
    """Return the analyses of a Mementos run.

    Raises:
        ArchiveError: A line of items.jsonl is not one that a Mementos run writes.
        NotFoundError: A graph is unknown.
        InvalidInputError: A graph can't be read.
    """
    roots = _roots(by_domain(options["behavior_graph"], "behaviors"))
    scored = [_sequence(record, roots) for record in run.scored()]
    # Pairs come from the human descriptions: those of models would hold the very companions that
    # are made up.
    pairs = BehaviorPairs(sequence.reference_behaviors for sequence in scored)
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


def _sequence(record: Record, roots: Callable[[str], Callable[[str], str]]) -> ScoredSequence:
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
    root = roots(domain)
    with reading(record, "mementos"):
        # The reference's word of each pair, since companions are counted among reference words.
        matched = [str(pair[1]) for pair in behaviors["matched"]]
        made_up = [str(word) for word in behaviors["hallucinated"]]
        reference = [str(word) for word in evidence["reference_behaviors"]]
        values = {name: _number(value) for name, value in scores.items()}
    return ScoredSequence(
        domain=domain,
        scores=values,
        # Without a length, a sequence is missing in the two tables over lengths only.
        episode_length=length if isinstance(length, int) else None,
        true_behaviors=tuple(map(root, matched)),
        hallucinated_behaviors=tuple(map(root, made_up)),
        reference_behaviors=tuple(map(root, reference)),
    )


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
