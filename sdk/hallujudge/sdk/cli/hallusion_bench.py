"""``hallujudge score hallusion-bench``."""

from __future__ import annotations

from typing import Annotated

from hallujudge.metrics.hallusion_bench import JUDGES

from ..archives import InputOptions
from ..errors import InvalidInputError
from ..score_run import ScoreRun
from .app import examples, input_option, score_app
from .declared_options import DeclaredBy, MetricOptions, grouped
from .options import Estimate, JudgeOptions
from .run_options import AllowMissing, References, Responses, RunOptions
from .score_command import ScoreCommand


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
            help="Key of labels (1, 0, 2) to score, or to compare with.",
        ),
    ] = None,
    allow_missing: AllowMissing = False,
    metric: Annotated[MetricOptions, DeclaredBy("hallusion-bench")],
    estimate: Estimate = False,
    judges: JudgeOptions,
    run: RunOptions,
) -> ScoreCommand:
    """HallusionBench: yes/no questions about figures and edited figures."""
    correctness = metric.options.get("correctness", "")
    if correctness_key and correctness not in ("", "given", *JUDGES):
        raise InvalidInputError(
            f"--correctness-key {correctness_key} and --correctness {correctness} are both given; "
            "choose one"
        )
    # A judge's verdicts are compared with given labels, and do not come from them.
    given = {"correctness": "given"} if correctness_key and not correctness else {}
    scoring = ScoreRun(
        "hallusion-bench",
        responses=responses,
        references=references,
        variant=metric.variant,
        options={**metric.options, **given},
        inputs=InputOptions(allow_missing=allow_missing, correctness_key=correctness_key),
    )
    return run.of(scoring, judges.settings(run.at.server), only_estimate=estimate)
