"""Shared text of the renderers: numbers, intervals, coverage, signatures and corrected scores."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from hallujudge.judge_service.engine.spec import known_metric
from hallujudge.metrics import Bound, Metric, Report, Score, ScoreDefinition
from hallujudge.metrics.framework.papers import printed_names
from hallujudge.metrics.framework.report import JudgeShare
from hallujudge.metrics.framework.response_traits import definitions_with_thoughts

from ..errors import NotFoundError

if TYPE_CHECKING:
    from hallujudge.metrics.calibration import Rate
    from hallujudge.metrics.calibration.calibrated_scores import CalibratedScore, Calibration

GROUP_LIMIT = 100
"""Maximum number of groups of one key that are rendered; report.json has all of them."""

ABSENT = "–"
"""Shown for a value that is undefined."""

# Characters that control a terminal or a page: control codes, bidirectional
# overrides, line separators, and halves of surrogate pairs, which no file in UTF-8 can hold.
_UNREADABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)

# Names of scores and groups break after these characters, as a reader would break them.
_PARTS_OF_NAMES = re.compile(r"[^_/.-]*[_/.-]+|[^_/.-]+")
_CALIBRATION_METHODS = {"ppi++": "prediction-powered inference", "rogan-gladen": "Rogan and Gladen"}


def clean(text: str) -> str:
    """Return the text with every control character replaced, one for one.

    The length stays the same, so that the spans of marks stay right. Line feeds and tabs stay.
    """
    return _UNREADABLE.sub("\ufffd", text)


def escaped(json_text: str) -> str:
    """Return JSON text with every control character inside its strings escaped; its value stays."""
    return _UNREADABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", json_text)


def cut(text: str, limit: int) -> str:
    """Return the text, or its beginning and the number of omitted characters."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit:,} more characters)"


def broken(cell: str, chars: int) -> str:
    """Return a cell with line feeds in the words that are too long for its column."""
    return " ".join(
        word if len(word) <= chars else _broken_name(word, chars) for word in cell.split(" ")
    )


def _broken_name(name: str, chars: int) -> str:
    """Return a name with a line feed before each part that does not fit; rich folds longer ones."""
    lines = [""]
    for part in _PARTS_OF_NAMES.findall(name):
        if lines[-1] and len(lines[-1]) + len(part) > chars:
            lines.append(part)
        else:
            lines[-1] += part
    return "\n".join(lines)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 item``, ``2,000 items``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A score formatted as text."""

    value: str
    """The value; a dash if it is undefined."""
    interval: str
    """Both ends of the interval in brackets; empty without an interval."""
    n: str
    """How many items the score is based on."""
    bound: str
    """Bounds from unscored items; empty if everything is scored."""


def counts_among(groups: Iterable[Mapping[str, Score]]) -> frozenset[str]:
    """Return the scores that are above 1 in a group, and so are not fractions in any of them."""
    return frozenset(
        name
        for scores in groups
        for name, score in scores.items()
        if score.value is not None and abs(score.value) > 1
    )


def shown(score: Score, bound: Bound | None = None, *, is_count: bool = False) -> Shown:
    """Format a score: fractions with four decimals, lengths and counts with two.

    Args:
        score: The score.
        bound: Its best and worst case.
        is_count: Whether it is a length or a count, even if its own value is at most 1.
    """
    ends = (score.ci_low, score.ci_high)
    numbers = [number for number in (score.value, *ends) if number is not None]
    digits = 2 if is_count or any(abs(number) > 1 for number in numbers) else 4
    return Shown(
        value=show_number(score.value, digits=digits),
        interval=show_range(*ends, digits=digits) if None not in ends else "",
        n=f"{score.n:,}",
        bound=bounds_note(bound, digits) if bound else "",
    )


def show_number(number: float | None, *, signed: bool = False, digits: int = 4) -> str:
    """Format a number; a dash if it is undefined."""
    if number is None:
        return ABSENT
    return f"{number:+.{digits}f}" if signed else f"{number:.{digits}f}"


def show_range(
    low: float | None, high: float | None, *, signed: bool = False, digits: int = 4
) -> str:
    """Format the ends of an interval; a dash without one."""
    if low is None or high is None:
        return ABSENT
    ends = (show_number(end, signed=signed, digits=digits) for end in (low, high))
    return f"[{', '.join(ends)}]"


def bounds_note(bound: Bound, digits: int = 4) -> str:
    """Return bounds as text, ``0.1200 to 0.1400``, the smaller end first."""
    low, high = sorted((bound.best, bound.worst))
    return f"{low:.{digits}f} to {high:.{digits}f}"


def coverage_sentence(report: Report) -> str:
    """Return how much is scored, and the reasons of unscored items and claims."""
    coverage, claims = report.coverage, _open_claims(report)
    if coverage.items == 0:
        return "No items."
    if coverage.unscored:
        return (
            f"{coverage.scored:,} of {counted(coverage.items, 'item')} scored; "
            f"{coverage.unscored:,} unscored: {_by_reason(coverage.reasons)}{claims}."
        )
    if coverage.items == 1:
        return f"The one item is scored{claims}."
    return f"All {coverage.items:,} items are scored{claims}."


def _open_claims(report: Report) -> str:
    """Return how many claims of scored items have no verdict, and why the last judge gave none."""
    if not (count := int(report.totals.get("unscored_claims", 0))):
        return ""
    declined = report.judging[-1].declined if report.judging else {}
    # They are the reasons of all these claims only if their numbers agree.
    why = f": {_by_reason(declined)}" if sum(declined.values()) == count else ""
    return f"; {count:,} of their claims {'has' if count == 1 else 'have'} no verdict{why}"


def _by_reason(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{clean(why)} {count:,}" for why, count in counts.items())


def judging_sentences(shares: Sequence[JudgeShare]) -> Iterator[str]:
    """Yield what each judge gave, and what its replies took when they were made.

    A reply that several items share was paid for once.
    """
    claims = counted(max((share.asked for share in shares), default=0), "verdict")
    for share in shares:
        # Judges without a model take no tokens.
        part = share.cached_tokens / max(1, share.prompt_tokens)
        kept = (
            f", {share.cached_tokens:,} of them cached ({part:.0%})" if share.cached_tokens else ""
        )
        took = [f"{share.prompt_tokens:,} prompt tokens{kept}"] if share.prompt_tokens else []
        if share.completion_tokens:
            took.append(f"{share.completion_tokens:,} completion tokens")
        took += [] if share.cost is None else [f"cost {share.cost:.4f}"]
        more = f" ({', '.join(took)})" if took else ""
        parts = [f"{_replies(share.calls)}{more}"] if share.calls else []
        parts += [f"{_replies(share.reused)} used again"] if share.reused else []
        more = f" from {' and '.join(parts)}" if parts else ""
        free = share.choice_share
        sure = "" if free is None else f"; choice_share {free.mean:.3f} (n {free.n:,})"
        yield f"{clean(share.judge)} gave {share.decided:,} of {claims}{more}{sure}."


def _replies(count: int) -> str:
    return "1 reply" if count == 1 else f"{count:,} replies"


def interval_label(report: Report) -> str:
    """Return the heading ``95% interval``, with the confidence level of the signature."""
    stated = re.search(r"\|ci:[a-z-]*-(0?\.\d+)\b", report.signature)
    return interval_heading(float(stated[1])) if stated else "interval"


def interval_heading(confidence: float) -> str:
    """Return the heading of a column of intervals."""
    return f"{confidence * 100:g}% interval"


def meaning_of(report: Report, score: str) -> str:
    """Return what a score means, which end is better, and its name in the paper.

    It is empty if this release lacks the metric.
    """
    definition = definitions_of(report.metric).get(score)
    if definition is None:
        return ""
    printed = _printed(report.metric).get(score)
    return f"{definition.sentence} [{printed}]" if printed else definition.sentence


def highest_of(report: Report, score: str) -> float:
    """Return the highest value that a score may have; 1 if this release lacks the metric."""
    definition = definitions_of(report.metric).get(score)
    return 1.0 if definition is None else definition.high


def is_fraction(report: Report, score: str) -> bool:
    """Return whether a score is a fraction with a value, and not a length or a count."""
    value, definition = report.scores[score].value, definitions_of(report.metric).get(score)
    if value is None:
        return False
    # Of a metric that is not installed here, the value is all that is known.
    return abs(value) <= 1 if definition is None else definition.unit == "fraction"


def headline_of(report: Report) -> list[str]:
    """Return the scores that a short table shows, the ranking one first where all are shown."""
    metric = _metric_named(report.metric)
    short = [name for name in metric.headline if name in report.scores] if metric else []
    main = main_score_of(report)
    # Without a short list, a stable sort moves the ranking score alone to the front.
    return short or sorted(report.scores, key=lambda name: name != main)


def main_score_of(report: Report) -> str:
    """Return the score that ranks models, of those with a value; empty without scores.

    It is the first score if this release lacks the metric.
    """
    metric = _metric_named(report.metric)
    ranking = [name for name in metric.ranked_by if name in report.scores] if metric else []
    names = ranking or list(report.scores)
    known = (name for name in names if report.scores[name].value is not None)
    return next(known, names[0] if names else "")


def definitions_of(metric: str) -> Mapping[str, ScoreDefinition]:
    """Return the scores of a metric by name; empty if this release lacks it."""
    known = _metric_named(metric)
    return {score.name: score for score in definitions_with_thoughts(known)} if known else {}


@cache
def _printed(metric: str) -> Mapping[str, str]:
    known = _metric_named(metric)
    return printed_names(known) if known else {}


def _metric_named(name: str) -> type[Metric] | None:
    try:
        return known_metric(name)
    except NotFoundError:
        # A stored report may be of a benchmark from outside that is not installed here.
        return None


def signature_lines(signature: str, width: int) -> Iterator[str]:
    """Break the signature into lines of at most ``width``, after its bars where possible."""
    line = ""
    for part in re.findall(r"[^|]*\|?", clean(signature)):
        if line and len(line) + len(part) > width:
            yield line
            line = ""
        line += part
        while len(line) > width:
            yield line[:width]
            line = line[width:]
    if line:
        yield line


def score_rows(
    report: Report, calibration: Calibration | None = None, *, bounds: bool = True
) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of the scores, the name first.

    Args:
        report: The report.
        calibration: The scores corrected by human labels, which are shown next to the raw ones.
        bounds: Whether bounds are shown where items are unscored.
    """
    known = report.coverage.bounds if bounds else {}
    corrected = corrected_headings(calibration)
    headings = ["score", "value", interval_label(report), *corrected, "n", "unscored could make it"]
    rows = [
        [name, f.value, f.interval, *corrected_cells(calibration, name), f.n, f.bound]
        for name, score in report.scores.items()
        for f in [shown(score, known.get(name))]
    ]
    # Without bounds, the last column would be empty.
    columns = len(headings) - (not known)
    return headings[:columns], [row[:columns] for row in rows]


def corrected_headings(calibration: Calibration | None) -> list[str]:
    """Return the headings of corrected scores; none without a calibration."""
    if calibration is None:
        return []
    return ["corrected", interval_heading(calibration.confidence)]


def corrected_cells(calibration: Calibration | None, name: str) -> list[str]:
    """Return the cells of a corrected score, as many as there are headings."""
    if calibration is None:
        return []
    return _corrected(name, calibration.scores.get(name))


def group_headings(calibration: Calibration | None, key: str) -> list[str]:
    """Return the headings of a key's corrected scores; none if no group has enough labels."""
    if calibration is None or key not in calibration.groups:
        return []
    return ["corrected", "interval"]


def group_cells(calibration: Calibration | None, key: str, value: str, name: str) -> list[str]:
    """Return the cells of a group's corrected score, as many as there are headings."""
    if calibration is None or key not in calibration.groups:
        return []
    return _corrected(name, calibration.groups[key].get(value, {}).get(name))


def group_text(calibration: Calibration | None, key: str, value: str, name: str) -> str:
    """Return a group's corrected score as one text; nothing if it is not corrected."""
    cells = group_cells(calibration, key, value, name)
    return " ".join(["corrected", *cells]) if cells and cells[0] != ABSENT else ""


def _corrected(name: str, found: CalibratedScore | None) -> list[str]:
    if found is None or found.recommended == "raw" or (best := found.best) is None:
        return [ABSENT, ""]
    score = Score(
        name=name, value=best.value, ci_low=best.ci_low, ci_high=best.ci_high, n=found.labels
    )
    figures: Shown = shown(score)
    return [figures.value, figures.interval]


def calibration_sentences(calibration: Calibration) -> Iterator[str]:
    """Yield how scores were corrected, the accuracy of the judge, and the warnings."""
    methods = {score.recommended for score in calibration.scores.values()} - {"raw"}
    by = " and ".join(_CALIBRATION_METHODS[method] for method in sorted(methods))
    how = f"Corrected by {by}" if by else "Not corrected"
    accuracy = calibration.accuracy
    yield (
        f"{how}, from {counted(calibration.labels, 'human label')}. The judge's sensitivity is "
        f"{_rate_text(accuracy.sensitivity)}, its specificity {_rate_text(accuracy.specificity)}."
    )
    for name, score in calibration.scores.items():
        if score.recommended == "raw":
            yield f"{name} is not corrected: {score.reason}"
    if nearer := [name for name, score in calibration.scores.items() if score.raw_is_nearer]:
        yield (
            f"By these labels the raw score is expected to be nearer than the corrected one: "
            f"{', '.join(nearer)}."
        )
    yield from calibration.notes


def _rate_text(rate: Rate) -> str:
    if rate.value is None or rate.ci_low is None or rate.ci_high is None:
        return "unknown"
    return f"{rate.value:.2f} [{rate.ci_low:.2f}, {rate.ci_high:.2f}]"
