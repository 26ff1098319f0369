"""A report as a figure of matplotlib: dots with their intervals."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hallujudge.metrics import Report, Score

from ..errors import InvalidInputError, MissingExtraError
from .report_text import clean, coverage_sentence, cut, interval_label, is_fraction, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAME_CHARS = 40
# More dots than these can't be told apart on a screen.
_MOST_DOTS = 40
_WIDTH_INCHES = 7.0
_DOT_INCHES = 0.32
# Room for the title and the axis of a panel.
_PANEL_INCHES = 1.1
# Of Okabe and Ito's palette, which readers with any colour vision can tell apart.
_BLUE = "#0072B2"


class _Panel(NamedTuple):
    """One chart of the figure."""

    title: str
    dots: Sequence[tuple[str, Score]]


def plot_report(report: Report) -> Figure:
    """Return the fractions of a report, and its first score by group, with their intervals.

    Args:
        report: The report.

    Raises:
        InvalidInputError: No score of the report is a fraction with a value.
        MissingExtraError: matplotlib is not installed.
    """
    figure_type = _figure_type()
    panels = [*_panels(report)]
    heights = [_DOT_INCHES * len(panel.dots) + _PANEL_INCHES for panel in panels]
    # Not by pyplot, which would keep the figure, and show it twice in a notebook.
    figure = figure_type(figsize=(_WIDTH_INCHES, sum(heights) + 0.5), layout="constrained")
    figure.suptitle(clean(f"{report.metric} ({report.variant})"), fontweight="bold")
    axes = figure.subplots(len(panels), squeeze=False, height_ratios=heights)[:, 0]
    for panel, each in zip(panels, axes, strict=True):
        _draw(each, panel)
    axes[-1].set_xlabel(f"{interval_label(report)}; {coverage_sentence(report)}", wrap=True)
    return figure


def _figure_type() -> type[Figure]:
    """Return the class of figures that a notebook shows without pyplot."""
    try:
        from matplotlib.figure import Figure
    except ImportError as err:
        raise MissingExtraError.of("plot()", "plots") from err

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            png = io.BytesIO()
            self.savefig(png, format="png")
            return png.getvalue()

    return ShownFigure


def _panels(report: Report) -> Iterable[_Panel]:
    scores = [(name, score) for name, score in report.scores.items() if is_fraction(report, name)]
    if not scores:
        raise InvalidInputError(
            f"no score of this {report.metric} report is a fraction with a value; print(report) "
            "shows why"
        )
    yield _Panel("scores", scores[:_MOST_DOTS])
    main = scores[0][0]
    for key, groups in report.groups.items():
        dots = [
            (value or "(none)", found[main])
            for value, found in groups.items()
            if main in found and found[main].value is not None
        ]
        more = f", the first {_MOST_DOTS} of {len(dots):,}" if len(dots) > _MOST_DOTS else ""
        if dots:
            yield _Panel(f"{main} by {key}{more}", dots[:_MOST_DOTS])


def _draw(axes: Axes, panel: _Panel) -> None:
    values = [score.value or 0.0 for _, score in panel.dots]
    reach = [_reach(score) for _, score in panel.dots]
    places = range(len(values))
    axes.errorbar(
        values,
        places,
        xerr=list(zip(*reach, strict=True)),
        fmt="o",
        color=_BLUE,
        capsize=3,
        clip_on=False,
    )
    for place, value, (_, score) in zip(places, values, panel.dots, strict=True):
        # As text, the figures can be read off; above the dot, they hide no interval.
        axes.annotate(
            shown(score).value, (value, place), (0, 4), textcoords="offset points",
            ha="center", fontsize="x-small",
        )  # fmt: skip
    # A name is no formula: matplotlib reads what is between dollar signs as one.
    names = [cut(clean(name), _NAME_CHARS).replace("$", r"\$") for name, _ in panel.dots]
    axes.set_yticks(places, names)
    axes.set_ylim(len(values) - 0.5, -0.7)
    low = min([0.0, *values])
    axes.set_xlim(low, max([1.0, *values]))
    axes.set_title(panel.title.replace("$", r"\$"), loc="left", fontsize="medium")
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _reach(score: Score) -> tuple[float, float]:
    """Return how far the interval reaches to the left and to the right of the score."""
    if score.value is None or score.ci_low is None or score.ci_high is None:
        return 0.0, 0.0
    # Rounding may put the score a last digit outside of its interval.
    return max(score.value - score.ci_low, 0.0), max(score.ci_high - score.value, 0.0)
