"""``hallujudge score argus``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from hallujudge.metrics.framework.metric import LLM_JUDGES

from ..archives import InputOptions
from .app import examples, input_option, score_app
from .declared_options import DeclaredBy, MetricOptions
from .options import Estimate, JudgeOptions
from .run_options import InputsOf, RunOptions
from .score_command import ScoreCommand


@score_app.command(epilog=examples("hallujudge score argus -r evals/judge_model_gpt-4o -o results"))
def argus(
    *,
    responses: Annotated[
        str,
        input_option(
            "--responses", "-r", help="Folder of judged clips, or a file.", show_default=False
        ),
    ],
    inputs: Annotated[InputOptions, InputsOf("argus")],
    metric: Annotated[MetricOptions, DeclaredBy("argus")],
    estimate: Estimate = False,
    judges: JudgeOptions,
    run: RunOptions,
) -> ScoreCommand:
    """ARGUS: hallucinated and omitted lines of video captions."""
    # Verdicts that are asked for need no given ones: the folder may hold captions alone.
    judged = metric.options.get("verdicts") in LLM_JUDGES
    own = {**inputs.own, **({"captions_only": True} if judged else {})}
    scoring = metric.scoring(responses, inputs=replace(inputs, own=own))
    return run.of(scoring, judges.settings(run.at.server), only_estimate=estimate)
