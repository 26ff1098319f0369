"""The calibration of a run: scores raw and corrected, its judge's quality, which verdicts to keep.

A cascade keeps the verdicts whose margin is at least a threshold and leaves the others to a better
judge, or undecided. The threshold is learnt from a random sample of labels. Agreement on kept
claims shall be at least an asked-for level, with an asked-for confidence.

Thresholds are tested from large to small, each by the exact binomial test of the hypothesis that
agreement is below the level, until one is not rejected. Such a fixed sequence needs no correction
for the number of tests: for a false promise, the first true hypothesis of the sequence must be
rejected (Angelopoulos et al., Learn then Test: Calibrating Predictive Algorithms to Achieve Risk
Control, arXiv:2110.01052, section 3). Few claims have the largest margins, so that one error there
would end a sequence. There are two: one starts where a quarter of the claims is kept, the other
where all are, each with half of the error probability. Thresholds are quantiles of the margins and
do not depend on labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias, cast

from ..framework.arrays import FloatArray, np
from ..framework.json_values import file_text, schema_of
from ..framework.results import JsonValue
from . import JudgeAccuracy, JudgedClaims, ScoreEstimate, beta_quantile

_STEPS = 20
# Of the thresholds, from the smallest: where all claims are kept, and where a quarter is.
_STARTS = (0, 15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """A threshold of the margin, and what it promises."""

    escalate_below: float | None
    """Verdicts with a smaller margin are not kept; None if none can be."""
    target: float
    """The asked-for agreement of kept verdicts."""
    confidence: float
    """How often a threshold that is learnt like this keeps its promise."""
    kept: float
    """Share of the run's claims that are kept."""
    agreement: float | None
    """Agreement on labelled claims that are kept; None if none is."""
    at_least: float | None
    """Lower limit of that agreement at the confidence."""
    labels: int
    """Labelled claims that are kept."""


def learn_cascade(
    claims: JudgedClaims, margins: FloatArray, *, target: float, confidence: float = 0.95
) -> Cascade:
    """Return the smallest threshold that keeps the promise.

    Labels of a stratified sample count for the claims they represent, and the test is that of their
    effective number (Kish), which is then an approximation.

    Args:
        claims: The claims, of which some have labels.
        margins: How sure the judge is of each claim; NaN if unknown, which is never kept. At least
            one is known.
        target: Least agreement on claims that are kept.
        confidence: How often the promise is kept.
    """
    known = np.sort(margins[~np.isnan(margins)])
    thresholds = known[len(known) * np.arange(_STEPS) // _STEPS]
    tested = _Tested(claims, margins, claims.weights())
    # Either sequence may make the false promise, so that they share the error probability.
    level = 1 - (1 - confidence) / len(_STARTS)
    reached = [_smallest(tested, thresholds[: start + 1], target, level) for start in _STARTS]
    steps = [step for step in reached if step is not None]
    if not steps:
        return Cascade(
            escalate_below=None,
            target=target,
            confidence=confidence,
            kept=0.0,
            agreement=None,
            at_least=None,
            labels=0,
        )
    # Both keep the promise, and the smaller one keeps more verdicts.
    threshold = float(thresholds[min(steps)])
    agreement, low, labels = tested.at(threshold, confidence)
    return Cascade(
        escalate_below=threshold,
        target=target,
        confidence=confidence,
        kept=float((margins >= threshold).mean()),
        # Sums of weights differ in their last bits between machines.
        agreement=round(agreement, 12),
        at_least=round(low, 12),
        labels=labels,
    )


def _smallest(
    tested: _Tested, thresholds: Sequence[float] | FloatArray, target: float, confidence: float
) -> int | None:
    """Return the step of the last threshold, from the largest, at which agreement is shown."""
    reached = None
    # From the largest on: after the first one that fails, none may be tested any more.
    for step in range(len(thresholds) - 1, -1, -1):
        if tested.at(float(thresholds[step]), confidence)[1] < target:
            break
        reached = step
    return reached


@dataclass(frozen=True, slots=True)
class _Tested:
    """Labelled claims, to be tested above any threshold."""

    claims: JudgedClaims
    margins: FloatArray
    weights: FloatArray

    def at(self, threshold: float, confidence: float) -> tuple[float, float, int]:
        """Return agreement above a threshold, its lower limit, and the number of labels."""
        here = self.claims.labelled & (self.margins >= threshold)
        weights = self.weights[here]
        if not len(weights):
            return 0.0, 0.0, 0
        right = (self.claims.labels[here] == 1) == self.claims.verdicts[here]
        agreement = float(weights @ right) / float(weights.sum())
        size = float(weights.sum()) ** 2 / float(weights @ weights)
        hits = agreement * size
        # Clopper and Pearson's one-sided limit.
        # Without hits it is 0, where the beta distribution has no quantile.
        low = beta_quantile(1 - confidence, hits, size - hits + 1) if hits > 0 else 0.0
        return agreement, low, len(weights)


Choice: TypeAlias = Literal["ppi++", "rogan-gladen", "raw"]
"""An estimate of a score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedScore:
    """A score before and after correction."""

    name: str
    """The score's name."""
    raw: ScoreEstimate | None
    """The score of the run's verdicts; None if it is undefined."""
    corrected: ScoreEstimate | None = None
    """The score by prediction-powered inference; None if labels do not suffice."""
    run_low: float | None = None
    """Lower end of the interval for this run, were all of it labelled."""
    run_high: float | None = None
    """Upper end of that interval."""
    tuning: float | None = None
    """How much verdicts count in the corrected score, from 0 to 1."""
    rogan_gladen: ScoreEstimate | None = None
    """The score by Rogan and Gladen's estimator; None if it can't be computed."""
    labels_alone: ScoreEstimate | None = None
    """The score by the labels alone; None if they are a stratified sample."""
    labels: int = 0
    """Number of labelled claims or items behind the correction."""
    recommended: Choice = "raw"
    """The estimate to report."""
    reason: str = ""
    """Why, in a few sentences."""
    raw_error: float | None = None
    """Estimated error of the raw score against labels on all of the run."""
    corrected_error: float | None = None
    """The same of the corrected score: its standard error."""
    influence: Mapping[str, float] = field(default_factory=dict)
    """Image or video -> its part of the corrected score's error, which comparisons of two runs
    need. Empty for groups."""

    @property
    def raw_is_nearer(self) -> bool:
        """Return whether the raw score's estimated error is below that of the corrected one."""
        if self.raw_error is None or self.corrected_error is None:
            return False
        return self.raw_error < self.corrected_error

    @property
    def best(self) -> ScoreEstimate | None:
        """Return the recommended estimate."""
        by_name = {"ppi++": self.corrected, "rogan-gladen": self.rogan_gladen, "raw": self.raw}
        return by_name[self.recommended]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The scores of a run, corrected by human labels."""

    metric: str
    """The metric's name."""
    variant: str
    """The named version of the metric that the run was scored by."""
    run_signature: str
    """How the scores were made that are corrected."""
    labels: int
    """Number of labelled claims and items."""
    labels_sha256: str
    """Hash of the labels."""
    sampled_by: Literal["claim", "item"]
    """What was drawn for labelling."""
    planned: bool
    """Whether a plan drew it at random."""
    confidence: float
    """Confidence level of the intervals."""
    accuracy: JudgeAccuracy
    """Agreement of the judge with the labels."""
    kappa: float | None
    """Cohen's kappa of verdicts and labels; None if one side has one value only."""
    kappa_low: float | None
    """Lower end of kappa's interval; None without one."""
    kappa_high: float | None
    """Upper end of kappa's interval."""
    annotators: tuple[str, ...]
    """Names of the annotators."""
    alpha: float | None
    """Krippendorff's alpha over the annotators; None if nothing has two labels."""
    scores: Mapping[str, CalibratedScore]
    """The scores by name, in the order of the report."""
    groups: Mapping[str, Mapping[str, Mapping[str, CalibratedScore]]] = field(default_factory=dict)
    """The same by field and value, for groups with enough labels."""
    cascade: Cascade | None = None
    """Which verdicts can be kept; None if that was not asked for."""
    notes: tuple[str, ...] = ()
    """Warnings, one sentence each."""

    def __getitem__(self, name: str) -> CalibratedScore:
        return self.scores[name]

    @property
    def method(self) -> str:
        """Return the method for the signature."""
        used = {score.recommended for score in self.scores.values()} - {"raw"}
        method = "+".join(sorted(used)) or "raw"
        return f"{method}/n={self.labels}"

    @property
    def signature(self) -> str:
        """Return the signature of corrected scores."""
        labels = f"labels:{self.labels_sha256[:8]}"
        return f"{self.run_signature}|{labels}|calibrated:{self.method}"

    def to_json(self) -> dict[str, JsonValue]:
        """Return the content of ``calibration.json``."""
        line = cast("dict[str, JsonValue]", asdict(self))
        return {"schema": schema_of("calibration"), "signature": self.signature, **line}

    def to_text(self) -> str:
        """Return the text of ``calibration.json``, which is deterministic."""
        return file_text("calibration", self.to_json())
