"""``hallujudge score vidhal-mcqa`` and ``hallujudge score vidhal-ordering``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ..archives import InputOptions
from ..score_run import ScoreRun
from .app import examples, input_option, score_app
from .declared_options import DeclaredBy, MetricOptions, grouped
from .run_options import AllowDuplicates, AllowMissing, References, Responses, RunOptions
from .score_command import ScoreCommand


@dataclass(frozen=True, slots=True, kw_only=True)
class VidhalOptions:
    """Options of both VidHal tasks."""

    responses: Responses
    """File of answers."""
    references: References = None
    """File of captions."""
    options: Annotated[
        Path | None,
        input_option("--options", help="File of the display order: video -> letter -> rank."),
    ] = None
    """File of the display order."""
    allow_missing: AllowMissing = False
    """Whether references without an answer become unscored instead of stopping the run."""
    allow_duplicates: AllowDuplicates = False
    """Whether every answer of a duplicate id is scored."""


def _vidhal(
    name: str, given: VidhalOptions, metric: MetricOptions, run: RunOptions
) -> ScoreCommand:
    inputs = InputOptions(
        allow_missing=given.allow_missing,
        allow_duplicates=given.allow_duplicates,
        display=given.options,
    )
    return run.of(
        ScoreRun(
            name,
            responses=given.responses,
            references=given.references,
            variant=metric.variant,
            inputs=inputs,
        )
    )


@score_app.command(
    "vidhal-mcqa",
    epilog=examples(
        "hallujudge score vidhal-mcqa -r answers.json -R annotations.json \\",
        "    --options options.json -o results",
    ),
)
@grouped
def vidhal_mcqa(
    *,
    given: VidhalOptions,
    metric: Annotated[MetricOptions, DeclaredBy("vidhal-mcqa")],
    run: RunOptions,
) -> ScoreCommand:
    """VidHal: which caption fits a video best."""
    return _vidhal("vidhal-mcqa", given, metric, run)


@score_app.command(
    "vidhal-ordering",
    epilog=examples(
        "hallujudge score vidhal-ordering -r orders.json -R annotations.json \\",
        "    --options options.json -o results",
    ),
)
@grouped
def vidhal_ordering(
    *,
    given: VidhalOptions,
    metric: Annotated[MetricOptions, DeclaredBy("vidhal-ordering")],
    run: RunOptions,
) -> ScoreCommand:
    """VidHal: captions in the order of how well they fit a video."""
    return _vidhal("vidhal-ordering", given, metric, run)
