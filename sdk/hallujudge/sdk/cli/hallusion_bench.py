"""``hallujudge score hallusion-bench``."""

from __future__ import annotations

from typing import Annotated

from ..archives import InputOptions
from ..errors import InvalidInputError
from ..score_run import ScoreRun
from .app import ExitCode, score_app
from .declared import DeclaredBy, MetricOptions
from .groups import grouped
from .options import AllowMissing, References, Responses, RunOptions
from .panels import examples, input_option

__all__: list[str] = []


@score_app.command(
    "hallusion-bench",
    epilog=examples(
        "hallujudge score hallusion-bench -r answers.json -R questions.json -o results",
    ),
)
@grouped
def hallusion_bench(
    *,
    responses: Responses,
    references: References = None,
    correctness_key: Annotated[
        str | None,
        input_option(
            "--correctness-key",
            help="Key of given labels (1, 0 or 2), which are then scored.",
        ),
    ] = None,
    allow_missing: AllowMissing = False,
    metric: Annotated[MetricOptions, DeclaredBy("hallusion-bench")],
    run: RunOptions,
) -> ExitCode:
    """HallusionBench: yes/no questions about figures and edited figures."""
    correctness = metric.options.get("correctness", "")
    if correctness_key and correctness not in ("", "given"):
        raise InvalidInputError(
            f"--correctness-key {correctness_key} and --correctness {correctness} are both given; "
            "choose one"
        )
    given = {"correctness": "given"} if correctness_key else {}
    return run.of(
        ScoreRun(
            "hallusion-bench",
            responses=responses,
            references=references,
            variant=metric.variant,
            options={**metric.options, **given},
            inputs=InputOptions(allow_missing=allow_missing, correctness_key=correctness_key),
        )
    ).execute()
