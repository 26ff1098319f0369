"""``hallujudge score amber``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ..archives import InputOptions
from ..errors import InvalidInputError
from ..score_run import ScoreRun
from .app import examples, input_option, score_app
from .declared_options import DeclaredBy, MetricOptions, grouped
from .run_options import AllowMissing, References, Responses, RunOptions
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
    questions: Annotated[
        Path | None,
        input_option("--questions", metavar="FILE", help="AMBER's query_all.json: id to image."),
    ] = None,
    nouns_file: Annotated[
        Path | None,
        input_option("--nouns-file", metavar="FILE", help="Nouns of the descriptions by id."),
    ] = None,
    associations: Annotated[
        Path | None,
        input_option("--associations", metavar="FILE", help="AMBER's relation.json."),
    ] = None,
    safe_words: Annotated[
        Path | None,
        input_option("--safe-words", metavar="FILE", help="AMBER's safe_words.txt."),
    ] = None,
    allow_missing: AllowMissing = False,
    metric: Annotated[MetricOptions, DeclaredBy("amber")],
    run: RunOptions,
) -> ScoreCommand:
    """AMBER: object words in descriptions, and yes/no questions."""
    if nouns_file is not None and (found := metric.options.get("nouns", "given")) != "given":
        raise InvalidInputError(
            f"--nouns-file {nouns_file} and --nouns {found} are both given; choose one"
        )
    inputs = InputOptions(
        allow_missing=allow_missing,
        questions=questions,
        nouns=nouns_file,
        associations=associations,
        safe_words=safe_words,
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
