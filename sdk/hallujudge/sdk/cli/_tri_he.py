"""``hallujudge score tri-he``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..archives import InputOptions
from ..errors import InvalidInputError
from ._commands import (
    AllowDuplicates,
    AllowUnknown,
    Confidence,
    Format,
    GroupBy,
    IdKey,
    Out,
    References,
    Replicates,
    Seed,
    Server,
    TextKey,
    score_app,
    split_formats,
)
from ._judging import (
    FallbackModel,
    JudgeFlags,
    LlmModel,
    LlmUrl,
    MatcherDownload,
    MaxCalls,
    MaxCost,
    VerdictCacheFile,
)
from ._main import ExitCode
from ._run import ScoreRun

__all__: list[str] = []

Claims = Annotated[
    Path | None,
    typer.Option("--claims", help="File of claims already extracted, instead of responses."),
]
TextsOrNone = Annotated[
    Path | None,
    typer.Option("--responses", help="File: image_id, question, response."),
]


@score_app.command("tri-he")
def tri_he(
    out: Out,
    responses: TextsOrNone = None,
    claims: Claims = None,
    references: References = None,
    variant: Annotated[
        str, typer.Option("--variant", help="published or corrected.")
    ] = "published",
    extractor: Annotated[
        str | None,
        typer.Option(
            "--extractor",
            help="Who takes claims: rules, llm or sentences; given: they come with the answers. "
            "Without it: rules, with --claims given.",
        ),
    ] = None,
    judge: Annotated[
        str, typer.Option("--judge", help="Who gives verdicts: matcher, llm or router.")
    ] = "matcher",
    matcher_model: Annotated[
        str, typer.Option("--matcher-model", help="minilm, mpnet, a model id or a folder.")
    ] = "minilm",
    protocol: Annotated[
        str, typer.Option("--protocol", help="How the matcher compares: published or nli.")
    ] = "published",
    nli_model: Annotated[
        str | None, typer.Option("--nli-model", help="Entailment model of nli: an id or a folder.")
    ] = None,
    backend: Annotated[
        str | None, typer.Option("--backend", help="What runs the matcher's encoder.")
    ] = None,
    keep_above: Annotated[
        float | None, typer.Option("--keep-above", help="Cosine above which triplets are kept.")
    ] = None,
    support_above: Annotated[
        float | None, typer.Option("--support-above", help="Cosine above which claims hold.")
    ] = None,
    entail_above: Annotated[
        float | None,
        typer.Option("--entail-above", help="For nli: probability above which claims hold."),
    ] = None,
    model_key: Annotated[
        str | None,
        typer.Option("--model-key", help="For Tri-HE's own file: key of the model's answers."),
    ] = None,
    llm_url: LlmUrl = None,
    llm_model: LlmModel = None,
    fallback_model: FallbackModel = None,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    verdict_cache: VerdictCacheFile = None,
    matcher_download: MatcherDownload = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what judges would be asked; ask nobody.")
    ] = False,
    id_key: IdKey = None,
    text_key: TextKey = None,
    allow_unknown: AllowUnknown = False,
    allow_duplicates: AllowDuplicates = False,
    group_by: GroupBy = None,
    seed: Seed = 0,
    replicates: Replicates = 1000,
    confidence: Confidence = 0.95,
    server: Server = None,
    format: Format = None,
) -> ExitCode:
    """Tri-HE: claims of answers held against scene graphs."""
    if (responses is None) == (claims is None):
        raise InvalidInputError("give either --responses or --claims")
    flags = JudgeFlags(
        llm_url=llm_url,
        llm_model=llm_model,
        fallback_model=fallback_model,
        max_calls=max_calls,
        max_cost=max_cost,
        verdict_cache=verdict_cache,
        matcher_download=1 if matcher_download else None,
    )
    given = {
        "nli_model": nli_model,
        "backend": backend,
        "keep_above": keep_above,
        "support_above": support_above,
        "entail_above": entail_above,
    }
    run = ScoreRun(
        metric="tri-he",
        responses=responses or claims or Path(),
        references=references,
        out=out,
        server=server,
        judges=flags.settings(server),
        variant=variant,
        options={
            "extractor": extractor or ("given" if claims else "rules"),
            "judge": judge,
            "matcher_model": matcher_model,
            "protocol": protocol,
            **{name: str(value) for name, value in given.items() if value is not None},
        },
        group_by=tuple(group_by or ()),
        seed=seed,
        replicates=replicates,
        confidence=confidence,
        inputs=InputOptions(
            id_key=id_key,
            text_key=text_key,
            allow_unknown=allow_unknown,
            allow_duplicates=allow_duplicates,
            model_key=model_key,
            claims_only=claims is not None,
        ),
        formats=split_formats(format),
    )
    return run.estimate() if estimate else run.execute()
