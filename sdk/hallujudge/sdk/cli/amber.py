"""``hallujudge score amber``."""

from __future__ import annotations

from typing import Annotated

from ..archives import InputOptions
from ..errors import InvalidInputError
from ..score_run import ScoreRun
from .app import examples, score_app
from .declared_options import DeclaredBy, MetricOptions, grouped
from .run_options import InputsOf, References, Responses, RunOptions
from .score_command import ScoreCommand


@score_app.command(
    epilog=examples(
        "hallujudge score amber -r answers.json -R annotations.json \\",
        "    --questions query_all.json -o results",
    )
)
@grouped
def amber(
    *,
    responses: Responses,
    references: References = None,
    inputs: Annotated[InputOptions, InputsOf("amber")],
    metric: Annotated[MetricOptions, DeclaredBy("amber")],
    run: RunOptions,
) -> ScoreCommand:
    """AMBER: object words in descriptions, and yes/no questions."""
    if (nouns := inputs.own.get("nouns")) and metric.options.get("nouns", "given") != "given":
        raise InvalidInputError(
            f"--nouns-file {nouns} and --nouns {metric.options['nouns']} are both given; choose one"
        )
    return run.of(
        ScoreRun(
            "amber",
            responses=responses,
            references=references,
            variant=metric.variant,
            options=metric.options,
            inputs=inputs,
        )
    )
