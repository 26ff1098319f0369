"""``hallujudge gate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ..errors import HallujudgeError, InvalidInputError
from .app import ExitCode, app
from .compare import (
    Allow,
    Confidence,
    Format,
    Names,
    Replicates,
    Seed,
    check_format,
    compare_options,
    show_result,
)
from .panels import examples, input_option, statistics_option

if TYPE_CHECKING:
    from ..comparison.gate_result import Decision

__all__: list[str] = []


@app.command(
    epilog=examples(
        "hallujudge gate runs/new --baseline runs/old \\", "  --max-regression chair_i=0.01"
    )
)
def gate(
    run: Annotated[Path, typer.Argument(help="Folder of the run that is checked.")],
    baseline: Annotated[
        Path | None,
        input_option("--baseline", metavar="RUN", help="Folder of the run to compare with."),
    ] = None,
    max_regression: Annotated[
        list[str] | None,
        statistics_option(
            "--max-regression", metavar="SCORE=X", help="Largest worsening; repeatable."
        ),
    ] = None,
    maximum: Annotated[
        list[str] | None,
        statistics_option("--max", metavar="SCORE=X", help="Largest value; repeatable."),
    ] = None,
    minimum: Annotated[
        list[str] | None,
        statistics_option("--min", metavar="SCORE=X", help="Smallest value; repeatable."),
    ] = None,
    max_unscored: Annotated[
        float | None,
        statistics_option("--max-unscored", help="Largest share of items without a score."),
    ] = None,
    decide: Annotated[
        str,
        statistics_option("--decide", help="What fails a check: shown, observed or possible."),
    ] = "shown",
    name: Names = None,
    allow: Allow = None,
    confidence: Confidence = 0.95,
    replicates: Replicates = 10_000,
    seed: Seed = 0,
    output_format: Format = "table",
) -> ExitCode:
    """Limits on regressions and scores, for CI: exit code 1 if one is exceeded."""
    from ..comparison import GateLimits
    from ..comparison import gate as gate_folders

    check_format(output_format)
    limits = GateLimits(
        max_regression=_limits("--max-regression", max_regression),
        maximum=_limits("--max", maximum),
        minimum=_limits("--min", minimum),
        max_unscored=max_unscored,
        decide=cast("Decision", decide),
    )
    options = compare_options(name, allow, confidence, replicates, seed)
    try:
        result = gate_folders(run, baseline=baseline, limits=limits, options=options)
    except InvalidInputError:
        raise
    except (HallujudgeError, OSError) as err:
        # Exit code 1 means that a limit is exceeded, and nothing else.
        raise InvalidInputError(str(err)) from err
    show_result(result, output_format)
    return ExitCode.OK if result.passed else ExitCode.FAILED


def _limits(option: str, given: list[str] | None) -> dict[str, float]:
    """Return score -> limit, from ``SCORE=X``.

    Raises:
        InvalidInputError: A value has another form, or a score has two limits.
    """
    limits: dict[str, float] = {}
    for text in given or ():
        score, equals, number = text.partition("=")
        try:
            limit = float(number)
        except ValueError:
            equals = ""
        if not equals or not score:
            raise InvalidInputError(
                f"{option} {text!r:.80}: give a score and a number, such as f1=0.02"
            )
        if score in limits:
            raise InvalidInputError(f"{option} gives {score!r:.80} two limits; give one")
        limits[score] = limit
    return limits
