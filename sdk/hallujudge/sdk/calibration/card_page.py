"""A judge's report card as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hallujudge.metrics.calibration.judge_accuracy import Rate

from ..report.report_text import ABSENT
from ..report.table_pages import Cell, Grid, Page, show_number, show_range
from .card import JudgeCard, YesBias

__all__ = ["card_page"]


def card_page(card: JudgeCard) -> Page:
    """Return a card as tables and sentences."""
    grids = [_rates(card), _biases(card)]
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
    rates: dict[str, Rate] = {name: getattr(card.accuracy, name) for name in names}
    rows = [(name, r.value, r.ci_low, r.ci_high, r.n) for name, r in rates.items()]
    rows.append(("Cohen's kappa", card.kappa, card.kappa_low, card.kappa_high, card.labels))
    return Grid(
        title="Agreement",
        headings=("rate", "value", "interval", "n"),
        rows=tuple(
            (name, show_number(value), show_range(low, high), f"{n:,}")
            for name, value, low, high, n in rows
        ),
        keys=("rate", "value", "ci_low", "ci_high", "n"),
        values=tuple(rows),
    )


def _biases(card: JudgeCard) -> Grid:
    return _grid("Yes-bias", ("claims", "judge", "truth", "difference"), _bias_rows(card))


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
    yield "rank correlation with length", None, None, length.correlation


def _margins(card: JudgeCard) -> Grid:
    found = card.reliability
    rows: list[tuple[Cell, ...]] = [
        (f"{bin.low:.4g} to {bin.high:.4g}", bin.n, bin.agreement, bin.stated) for bin in found.bins
    ]
    title = f"Agreement by margin ({card.margins})"
    if found.ece is not None:
        title += f": ECE {show_number(found.ece)}, Brier score {show_number(found.brier)}"
    return _grid(title, ("margin", "n", "agreement", "stated"), rows)


def _flips(card: JudgeCard) -> Grid:
    rows = [
        (f.change, f.compared_with, f.share, f.ci_low, f.ci_high, f.flips, f.claims, f.unanswered)
        for f in card.flips
    ]
    return Grid(
        title="Flips",
        headings=("change", "compared with", "share", "interval", "flips", "n", "unanswered"),
        rows=tuple(
            (
                flip.change,
                flip.compared_with,
                show_number(flip.share),
                show_range(flip.ci_low, flip.ci_high),
                f"{flip.flips:,}",
                f"{flip.claims:,}",
                f"{flip.unanswered:,}",
            )
            for flip in card.flips
        ),
        keys=(
            *("change", "compared_with", "share", "ci_low", "ci_high"),
            *("flips", "n", "unanswered"),
        ),
        values=tuple(rows),
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
