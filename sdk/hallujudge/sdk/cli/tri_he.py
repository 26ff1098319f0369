"""``hallujudge score tri-he``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from hallujudge.metrics.framework.metric import SEES

from ..archives import InputOptions
from ..errors import InvalidInputError
from .app import examples, input_option, score_app
from .declared_options import DeclaredBy, MetricOptions
from .options import Estimate, JudgeOptions, MatcherDownload, say_where_pictures_go
from .run_options import InputsOf, References, RunOptions
from .score_command import ScoreCommand

Claims = Annotated[
    Path | None, input_option(help="File of extracted claims, instead of responses.")
]
TextsOrNone = Annotated[
    Path | None,
    input_option("--responses", "-r", help="File of image_id, question, response."),
]


@score_app.command(
    "tri-he",
    epilog=examples("hallujudge score tri-he -r answers.jsonl -R scene_graphs.json -o results"),
)
def tri_he(
    *,
    responses: TextsOrNone = None,
    claims: Claims = None,
    references: References = None,
    inputs: Annotated[InputOptions, InputsOf("tri-he")],
    metric: Annotated[MetricOptions, DeclaredBy("tri-he")],
    matcher_download: MatcherDownload = False,
    estimate: Estimate = False,
    judges: JudgeOptions,
    run: RunOptions,
) -> ScoreCommand:
    """Tri-HE: claims of answers, compared with scene graphs."""
    if (responses is None) == (claims is None):
        raise InvalidInputError("give either --responses or --claims")
    # Without a chosen extractor, given claims need none.
    claimed = {"extractor": "given"} if claims else {}
    scoring = replace(metric, options={**claimed, **metric.options}).scoring(
        responses or claims or Path(),
        references,
        inputs=replace(inputs, own={**inputs.own, **({"claims_only": True} if claims else {})}),
    )
    more = {"matcher_download": 1} if matcher_download else {}
    settings = judges.settings(run.at.server, **more)
    if metric.options.get("judge") == SEES and not (run.quiet or estimate):
        say_where_pictures_go(run.at.server, metric.options, settings)
    return run.of(scoring, settings, only_estimate=estimate)
