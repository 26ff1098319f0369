"""Calibrations and judges' report cards as tables and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from hallujudge.metrics.calibration import Rate, ScoreEstimate
from hallujudge.metrics.calibration.calibrated_scores import CalibratedScore, Calibration, Cascade
from hallujudge.metrics.framework.report import JudgeShare
from hallujudge.metrics.framework.signature import judge_of
from hallujudge.sdk.report.report_text import ABSENT, interval_heading, show_number, show_range
from hallujudge.sdk.report.table_pages import Cell, Grid, Page, values_of

from .panel_card import PanelCard
from .report_card import JudgeCard, YesBias
from .run_calibration import LearntMargin

_ESTIMATES = ("raw", "corrected", "rogan_gladen", "labels_alone")
_KEYS = (
    "group_by",
    "group",
    "score",
    *(f"{name}{end}" for name in _ESTIMATES for end in ("", "_low", "_high")),
    "run_low",
    "run_high",
    "tuning",
    "raw_error",
    "corrected_error",
    "labels",
    "recommended",
)


def calibration_page(calibration: Calibration) -> Page:
    """Return a calibration as tables and sentences."""
    grids = [_score_grid("Scores, raw and corrected", calibration, calibration.scores.items())]
    grids.append(_judge_grid(calibration))
    if calibration.cascade is not None:
        grids.append(_cascade_grid(calibration.cascade))
    for key, values in calibration.groups.items():
        rows = [
            (f"{value or '(none)'}: {name}", score)
            for value, scores in values.items()
            for name, score in scores.items()
        ]
        grids.append(_score_grid(f"By {key}", calibration, rows, group_by=key))
    return Page(
        title=f"{calibration.metric} ({calibration.variant}): calibrated by "
        f"{calibration.labels:,} labels",
        grids=tuple(grids),
        sentences=tuple(_sentences(calibration)),
        notes=calibration.notes,
        sources={"signature": calibration.signature},
    )


def margin_page(learnt: LearntMargin) -> Page:
    """Return a margin that was learnt from a reference judge as tables and sentences."""
    calibration = learnt.calibration
    assert calibration.cascade is not None, "it was asked for"
    return Page(
        title=f"{calibration.metric} ({calibration.variant}): compared with "
        f"{calibration.labels:,} verdicts of {judge_of(learnt.reference).partition(',')[0]}",
        grids=(
            # No corrected scores: they would be those of the reference judge, and only people's
            # count.
            _judge_grid(calibration, "Judge against reference judge"),
            _cascade_grid(calibration.cascade, "the reference judge"),
        ),
        notes=calibration.notes,
        sources={"signature": calibration.run_signature, "reference": learnt.reference},
    )


def _score_grid(
    title: str,
    calibration: Calibration,
    rows: Iterable[tuple[str, CalibratedScore]],
    group_by: str = "",
) -> Grid:
    rows = list(rows)
    interval = interval_heading(calibration.confidence)
    return Grid(
        title=title,
        headings=(
            *("score", "raw", interval, "corrected", interval, "for this run"),
            *("Rogan–Gladen", "labels", "report"),
        ),
        rows=tuple(_score_row(name, score) for name, score in rows),
        keys=_KEYS,
        values=tuple(
            (group_by, name if group_by else "", score.name, *_score_values(score))
            for name, score in rows
        ),
    )


def _score_row(name: str, score: CalibratedScore) -> tuple[str, ...]:
    return (
        name,
        *_estimate_cells(score.raw),
        *_estimate_cells(score.corrected),
        show_range(score.run_low, score.run_high),
        " ".join(cell for cell in _estimate_cells(score.rogan_gladen) if cell != ABSENT) or ABSENT,
        f"{score.labels:,}",
        score.recommended,
    )


def _estimate_cells(estimate: ScoreEstimate | None) -> tuple[str, str]:
    if estimate is None:
        return ABSENT, ABSENT
    return show_number(estimate.value), show_range(estimate.ci_low, estimate.ci_high)


def _score_values(score: CalibratedScore) -> Iterator[float | str | None]:
    for name in _ESTIMATES:
        estimate: ScoreEstimate | None = getattr(score, name)
        if estimate is None:
            yield from (None, None, None)
        else:
            yield from (estimate.value, estimate.ci_low, estimate.ci_high)
    yield from (score.run_low, score.run_high, score.tuning)
    yield from (score.raw_error, score.corrected_error, score.labels, score.recommended)


def _judge_grid(calibration: Calibration, title: str = "Judge against labels") -> Grid:
    names = ("sensitivity", "specificity", "precision", "agreement")
    rows = _rate_rows(calibration, names)
    if calibration.alpha is not None:
        # Alpha has no interval, and is over claims with several labels, whose number is not kept.
        rows.append(("annotators: Krippendorff's alpha", calibration.alpha, None, None, 0))
    return _rate_grid(title, interval_heading(calibration.confidence), rows, no_number=ABSENT)


_RateRow: TypeAlias = tuple[str, float | None, float | None, float | None, int]


def _rate_rows(found: Calibration | JudgeCard, names: Iterable[str]) -> list[_RateRow]:
    """Return the named rates of a judge, and kappa after them."""
    rates: dict[str, Rate] = {name: getattr(found.accuracy, name) for name in names}
    rows = [(name, rate.value, rate.ci_low, rate.ci_high, rate.n) for name, rate in rates.items()]
    kappa = ("Cohen's kappa", found.kappa, found.kappa_low, found.kappa_high, found.labels)
    return [*rows, kappa]


def _rate_grid(title: str, interval: str, rows: Iterable[_RateRow], no_number: str = "0") -> Grid:
    values = tuple(rows)
    return Grid(
        title=title,
        headings=("rate", "value", interval, "n"),
        rows=tuple(
            (name, show_number(value), show_range(low, high), f"{n:,}" if n else no_number)
            for name, value, low, high, n in values
        ),
        keys=("rate", "value", "ci_low", "ci_high", "n"),
        values=values,
    )


def _cascade_grid(cascade: Cascade, truth: str = "labels") -> Grid:
    """Return which verdicts can be kept."""
    found = cascade.escalate_below is not None
    keys = ("escalate_below", "kept", "agreement", "at_least", "labels")
    return Grid(
        title=f"Verdicts that agree with {truth} in {cascade.target:.0%}, with a confidence of "
        f"{cascade.confidence:.0%}",
        headings=("margin at least", "share of claims", "agreement", "lower limit", "labels"),
        rows=(
            (
                *(show_number(getattr(cascade, key)) for key in keys[:-1]),
                f"{cascade.labels:,}" if found else "too few, or the judge is too weak",
            ),
        ),
        keys=keys,
        values=values_of((cascade,), keys),
    )


def _sentences(calibration: Calibration) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for name, score in calibration.scores.items():
        reasons.setdefault(f"{score.recommended}: {score.reason}", []).append(name)
    for reason, names in reasons.items():
        yield f"{', '.join(names)}: report {reason}"
    for name, score in calibration.scores.items():
        if width := _width(score):
            yield f"{name}: {width}"
    yield (
        "Sensitivity: hallucinated claims that the judge rejects. Specificity: other claims that "
        "it accepts. The interval for this run holds the score of labels on all of it; the other "
        "one also accounts for the choice of images."
    )


def _width(score: CalibratedScore) -> str:
    """Return how verdicts change the width of the interval of labels alone; empty if unknown."""
    # Against labels alone, which cost the same: it shows what the judge's verdicts add.
    one = score.corrected.width if score.corrected else None
    other = score.labels_alone.width if score.labels_alone else None
    if not one or not other:
        return ""
    percent = round(100 * (1 - one / other))
    if not percent:
        return "the interval is as wide as that of the labels alone."
    word = "narrower" if percent > 0 else "wider"
    return f"the interval is {abs(percent)}% {word} than that of the labels alone."


def card_page(card: JudgeCard) -> Page:
    """Return a card as tables and sentences."""
    biases = _grid("Yes-bias", ("claims", "judge", "truth", "difference"), _bias_rows(card))
    grids = [_rates(card), biases]
    if card.reliability.bins:
        grids.append(_margins(card))
    if card.costs:
        grids.append(_costs(card))
    if card.flips:
        grids.append(_flips(card))
    truth = "labels" if card.compared_with == "labels" else "the reference run"
    return Page(
        title=f"{card.metric}: {card.labels:,} of {card.claims:,} verdicts compared with {truth}",
        grids=tuple(grids),
        sentences=(
            "Yes-bias: supported by the judge minus supported in truth; above 0 it is too lenient.",
            "Flips: claims with opposite verdicts if they are judged in another way."
            if card.flips
            else "Flips on repetition, rewording and claim order need calls and were not measured.",
        ),
        notes=card.notes,
        sources={
            "judge": card.run_signature,
            "compared with": card.compared_with,
            "sha256": card.sha256,
        },
    )


def judging_page(shares: Sequence[JudgeShare], run: Path) -> Page:
    """Return what each judge of a run gave and took, as a table."""
    keys = (
        *("judge", "decided", "declined", "calls", "prompt_tokens", "completion_tokens", "cost"),
        "reused",
    )
    rows = (
        (
            *(share.judge, share.decided, sum(share.declined.values()), share.calls),
            *(share.prompt_tokens, share.completion_tokens, share.cost, share.reused),
        )
        for share in shares
    )
    return Page(
        title=f"{run}: who decided, and what it took",
        grids=(_grid("Judges", keys, rows),),
    )


def panel_page(card: PanelCard, run: Path) -> Page:
    """Return the judges of a panel, their agreement, and what their votes weigh, as tables."""
    members = (
        (
            *(of.judge, of.votes, of.dissents, _share(of.dissents, of.votes), of.labelled),
            *(_share(of.right, of.labelled), of.cost),
        )
        for of in card.members
    )
    pairs = ((of.one, of.other, of.claims, of.agreement, of.kappa) for of in card.pairs)
    weights = ((name, of["supported"], of["not_supported"]) for name, of in card.weights.items())
    shares = ("judge", "votes", "dissents", "dissent", "labels", "agreement_with_labels", "cost")
    return Page(
        title=f"{run}: the panel's judges",
        grids=(
            _grid("Judges", shares, members),
            _grid("Agreement", ("one", "other", "claims", "agreement", "kappa"), pairs),
            _grid(
                f"Weights, learnt from {card.learnt_from} (prior {card.prior:.4f})",
                ("judge", "vote_for", "vote_against"),
                weights,
            ),
        ),
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _grid(title: str, keys: tuple[str, ...], rows: Iterable[tuple[Cell, ...]]) -> Grid:
    """Return a table of values, which are shown as they are."""
    values = tuple(rows)
    return Grid(
        title=title,
        headings=tuple(key.replace("_", " ") for key in keys),
        rows=tuple(tuple(map(_shown, row)) for row in values),
        keys=keys,
        values=values,
    )


def _shown(value: Cell) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, int):
        return f"{value:,}"
    return show_number(value) if isinstance(value, float) else str(value)


def _rates(card: JudgeCard) -> Grid:
    names = ("agreement", "sensitivity", "specificity", "precision")
    return _rate_grid("Agreement", "interval", _rate_rows(card, names))


def _bias_rows(card: JudgeCard) -> Iterator[tuple[Cell, ...]]:
    def row(name: str, bias: YesBias) -> tuple[Cell, ...]:
        return name, bias.judge, bias.truth, bias.difference

    yield row("all", card.yes_bias)
    if (length := card.length_bias) is None:
        return
    if length.short is not None:
        yield row(f"of responses up to {length.median_words:g} words", length.short)
    if length.long is not None:
        yield row("of longer responses", length.long)
    # Under the differences, since it is neither of the judge alone nor of the truth alone.
    yield "rank correlation with length", None, None, length.correlation


def _margins(card: JudgeCard) -> Grid:
    found = card.reliability
    rows: list[tuple[Cell, ...]] = [
        (f"{bin.low:.4g} to {bin.high:.4g}", bin.n, bin.agreement, bin.stated) for bin in found.bins
    ]
    title = f"Agreement by margin ({card.margins})"
    if found.ece is not None:
        # Only margins that are probabilities have an expected calibration error.
        title += f": ECE {show_number(found.ece)}, Brier score {show_number(found.brier)}"
    return _grid(title, ("margin", "n", "agreement", "stated"), rows)


def _flips(card: JudgeCard) -> Grid:
    fields = ("change", "compared_with", "share", "ci_low", "ci_high", "flips")
    return Grid(
        title="Flips",
        headings=("change", "compared with", "share", "interval", "flips", "n", "unanswered"),
        rows=tuple(
            (
                *(flip.change, flip.compared_with, show_number(flip.share)),
                show_range(flip.ci_low, flip.ci_high),
                *(f"{count:,}" for count in (flip.flips, flip.claims, flip.unanswered)),
            )
            for flip in card.flips
        ),
        keys=(*fields, "n", "unanswered"),
        values=values_of(card.flips, (*fields, "claims", "unanswered")),
    )


def _costs(card: JudgeCard) -> Grid:
    keys = ("judge", "claims", "calls", "seconds_a_claim", "tokens_a_claim", "cost_a_claim")
    return _grid(
        "Costs of kept calls",
        keys,
        (
            (
                cost.judge,
                cost.claims,
                cost.calls,
                cost.latency_seconds,
                cost.prompt_tokens + cost.completion_tokens,
                cost.cost,
            )
            for cost in card.costs
        ),
    )
