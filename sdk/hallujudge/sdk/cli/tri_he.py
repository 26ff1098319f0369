"""``hallujudge score tri-he``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..archives import InputOptions
from ..errors import InvalidInputError
from ..score_run import ScoreRun
from .app import ExitCode, score_app
from .groups import grouped
from .judging import JudgeOptions, MatcherDownload
from .options import AllowDuplicates, References, RunOptions

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
@grouped
def tri_he(
    *,
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
    human_key: Annotated[
        list[str] | None,
        typer.Option(
            "--human-key",
            help="Key of people's scores of the answers, for agreement; repeat it for each "
            "annotator. Without it: human_score, where it is there.",
        ),
    ] = None,
    matcher_download: MatcherDownload = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what judges would be asked; ask nobody.")
    ] = False,
    allow_duplicates: AllowDuplicates = False,
    run: RunOptions,
    judges: JudgeOptions,
) -> ExitCode:
    """Tri-HE: claims of answers held against scene graphs."""
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
