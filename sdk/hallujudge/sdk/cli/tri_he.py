"""``hallujudge score tri-he``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ..archives import InputOptions
from ..errors import InvalidInputError
from ..score_run import ScoreRun
from .app import ExitCode, score_app
from .groups import grouped
from .judging import JudgeOptions, MatcherDownload
from .options import AllowDuplicates, Language, References, RunOptions
from .panels import budget_option, examples, input_option, judge_option, metric_option

__all__: list[str] = []

Claims = Annotated[
    Path | None,
    input_option("--claims", help="File of extracted claims, instead of responses."),
]
TextsOrNone = Annotated[
    Path | None,
    input_option("--responses", "-r", help="File of image_id, question, response."),
]


@score_app.command(
    "tri-he",
    epilog=examples("hallujudge score tri-he -r answers.jsonl -R scene_graphs.json -o results"),
)
@grouped
def tri_he(
    *,
    responses: TextsOrNone = None,
    claims: Claims = None,
    references: References = None,
    model_key: Annotated[
        str | None,
        input_option("--model-key", help="Key of the model's answers in Tri-HE's own file."),
    ] = None,
    human_key: Annotated[
        list[str] | None,
        input_option("--human-key", help="Key of human scores; repeatable, one per annotator."),
    ] = None,
    allow_duplicates: AllowDuplicates = False,
    language: Language = "en",
    variant: Annotated[str, metric_option("--variant", help="published, corrected, or both.")] = (
        "published"
    ),
    extractor: Annotated[
        str | None,
        metric_option("--extractor", help="rules, llm, sentences, or given (with --claims)."),
    ] = None,
    judge: Annotated[str, judge_option("--judge", help="matcher, llm or router.")] = "matcher",
    matcher_model: Annotated[
        str, judge_option("--matcher-model", help="minilm, mpnet, a model id or a folder.")
    ] = "minilm",
    protocol: Annotated[
        str, judge_option("--protocol", help="Matcher's comparison: published or nli.")
    ] = "published",
    nli_model: Annotated[
        str | None, judge_option("--nli-model", help="Entailment model of nli: an id or a folder.")
    ] = None,
    backend: Annotated[
        str | None, judge_option("--backend", help="Library that runs the matcher's encoder.")
    ] = None,
    keep_above: Annotated[
        float | None,
        judge_option("--keep-above", help="Cosine above which reference triplets are kept."),
    ] = None,
    support_above: Annotated[
        float | None,
        judge_option("--support-above", help="Cosine above which a claim is supported."),
    ] = None,
    entail_above: Annotated[
        float | None,
        judge_option("--entail-above", help="nli: probability above which a claim is supported."),
    ] = None,
    matcher_download: MatcherDownload = False,
    estimate: Annotated[
        bool,
        budget_option("--estimate", help="Number of judge calls, tokens and cost; then exit."),
    ] = False,
    judges: JudgeOptions,
    run: RunOptions,
) -> ExitCode:
    """Tri-HE: claims of answers, compared with scene graphs."""
    if (responses is None) == (claims is None):
        raise InvalidInputError("give either --responses or --claims")
    given = {
        "nli_model": nli_model,
        "backend": backend,
        "keep_above": keep_above,
        "support_above": support_above,
        "entail_above": entail_above,
    }
    scoring = ScoreRun(
        "tri-he",
        responses=responses or claims or Path(),
        references=references,
        variant=variant,
        options={
            "language": language,
            "extractor": extractor or ("given" if claims else "rules"),
            "judge": judge,
            "matcher_model": matcher_model,
            "protocol": protocol,
            **{name: str(value) for name, value in given.items() if value is not None},
        },
        inputs=InputOptions(
            allow_duplicates=allow_duplicates,
            model_key=model_key,
            claims_only=claims is not None,
            human_keys=tuple(human_key or ()),
        ),
    )
    more = {"matcher_download": 1} if matcher_download else {}
    command = run.of(scoring, judges.settings(run.server, **more))
    return command.estimate() if estimate else command.execute()
