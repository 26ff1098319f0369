"""``hallujudge compare`` and ``gate``, and the options of all commands that compare runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import click

from hallujudge.sdk import cli

from .. import comparison
from ..archives.json_files import amount
from ..errors import HallujudgeError, InvalidInputError
from .app import ExitCode, app, examples, input_option, output_option, statistics_option
from .options import ModelNames, model_names
from .output import Format, show_result, write_lines
from .parameters import argument

if TYPE_CHECKING:
    from ..comparison.gates import Decision


Allow = Annotated[
    list[str] | None,
    input_option(metavar="FIELD", help="Signature fields that may differ; repeatable."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparingOptions:
    """The options that all commands share which compare runs."""

    name: Annotated[
        list[str] | None, input_option(help="Name of a run; one for each, in their order.")
    ] = None
    model_name: ModelNames = None
    allow: Allow = None
    confidence: Annotated[float, statistics_option(help="Confidence level of the intervals.")] = (
        0.95
    )
    replicates: Annotated[
        int, statistics_option(help="Replicates of bootstrap and permutation test.")
    ] = 10_000
    seed: Annotated[int, statistics_option(help="Seed of the random numbers.")] = 0

    def options(self, scores: Sequence[str] = ()) -> comparison.CompareOptions:
        """Return the options of a comparison of some scores, by default of all."""
        return comparison.CompareOptions(
            scores=tuple(scores),
            names=tuple(self.name or ()),
            model_names=model_names(self.model_name),
            # Refusals name several fields with commas.
            allow=tuple(filter(None, ",".join(self.allow or ()).split(","))),
            confidence=self.confidence,
            replicates=self.replicates,
            seed=self.seed,
        )


@app.command(epilog=examples("hallujudge compare runs/llava runs/minigpt"))
def compare(
    *,
    runs: Annotated[
        list[Path], argument(metavar="RUN", help="Folders of runs, the baseline first.")
    ],
    score: Annotated[
        list[str] | None, input_option(metavar="NAME", help="Score to compare; repeatable.")
    ] = None,
    comparing: ComparingOptions,
    output_format: Format = "table",
    items: Annotated[
        Path | None, output_option(metavar="FILE", help="JSON lines file of all changed items.")
    ] = None,
    show_differences: Annotated[
        bool, output_option(help="List items whose references differ; then exit.")
    ] = False,
) -> ExitCode:
    """Compare runs: differences with intervals and tests."""
    # A changed item has two sides; of three runs it would be one of three pairs.
    if items is not None and len(runs) != 2:
        raise InvalidInputError(f"--items needs two runs, and {len(runs)} are given; name two")
    options = comparing.options(score or ())
    # Before the comparison, which refuses runs whose references differ.
    if show_differences:
        if len(runs) != 2:
            given = f"--show-differences needs two runs, and {len(runs)} are given"
            raise InvalidInputError(f"{given}; name two")
        differing = cli.differing_references(runs[0], runs[1], options)
        click.echo("".join(f"{each}\n" for each in differing), nl=False)
        click.echo(f"{amount(len(differing), 'item has', 'items have')} other references", err=True)
        return ExitCode.OK
    result = comparison.compare(*runs, options=options)
    if items is not None:
        changes = comparison.changed_items(*runs, options=options)
        count = write_lines(items, (change.to_json() for change in changes))
        click.echo(f"{count:,} changed items written to {items}", err=True)
    show_result(result, output_format)
    return ExitCode.OK


@app.command(
    epilog=examples(
        "hallujudge gate runs/new --baseline runs/old \\", "  --max-regression chair_i=0.01"
    )
)
def gate(
    *,
    run: Annotated[Path, argument(help="Folder of the run that is checked.")],
    baseline: Annotated[
        Path | None, input_option(metavar="RUN", help="Folder of the run to compare with.")
    ] = None,
    max_regression: Annotated[
        list[str] | None,
        statistics_option(metavar="SCORE=X", help="Largest worsening; repeatable."),
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
        float | None, statistics_option(help="Largest share of items without a score.")
    ] = None,
    decide: Annotated[
        str, statistics_option(help="What fails a check: shown, observed or possible.")
    ] = "shown",
    comparing: ComparingOptions,
    output_format: Format = "table",
) -> ExitCode:
    """Limits on scores for CI: exit code 1 if one is exceeded."""
    limits = comparison.GateLimits(
        max_regression=_limits("--max-regression", max_regression),
        maximum=_limits("--max", maximum),
        minimum=_limits("--min", minimum),
        max_unscored=max_unscored,
        decide=cast("Decision", decide),
    )
    options = comparing.options()
    try:
        result = comparison.gate(run, baseline=baseline, limits=limits, options=options)
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
