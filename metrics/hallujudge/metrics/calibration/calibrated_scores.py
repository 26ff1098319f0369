"""The calibration of a run: its scores raw and corrected, and how well its judge does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias, cast

from ..framework.file_schemas import schema_of
from ..framework.results import JsonValue
from .cascade import Cascade
from .judge_accuracy import JudgeAccuracy

Choice: TypeAlias = Literal["ppi++", "rogan-gladen", "raw"]
"""An estimate of a score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreEstimate:
    """A score with its interval."""

    value: float
    """The score."""
    ci_low: float | None
    """Lower end of the interval over images; None without an interval."""
    ci_high: float | None
    """Upper end of the interval over images."""

    @property
    def width(self) -> float | None:
        """Return the width of the interval."""
        if self.ci_low is None or self.ci_high is None:
            return None
        return self.ci_high - self.ci_low


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
    """The variant."""
    run_signature: str
    """Signature of the run."""
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
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
