"""``hallujudge build vidhal-best``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import click

# Its modules are imported when the command uses them: its help page waits for none of them.
from hallujudge import studies as room
from hallujudge.sdk.archives.record_values import id_under
from hallujudge.sdk.archives.records import read_records
from hallujudge.sdk.cli.app import (
    ExitCode,
    build_app,
    examples,
    input_option,
    metric_option,
    output_option,
)
from hallujudge.sdk.cli.options import checked_out
from hallujudge.sdk.cli.output import write_file


@build_app.command(
    "vidhal-best",
    epilog=examples(
        "hallujudge build vidhal-best -R annotations.json --votes gpt.jsonl \\",
        "    --votes llama.jsonl --count 1000 -o best.json",
    ),
)
def build_vidhal_best(
    *,
    references: Annotated[
        Path, input_option("--references", "-R", metavar="FILE", help="VidHal's annotations.")
    ],
    votes: Annotated[list[Path], input_option(metavar="FILE", help="Votes of judges; repeatable.")],
    # Section 7.2 keeps the 1,000 best videos.
    count: Annotated[int, metric_option(min=1, help="Videos to keep.")] = 1000,
    out: Annotated[Path, output_option("--out", "-o", help="Annotations to write, as JSON.")],
) -> ExitCode:
    """VidHal: the videos with the best captions by votes."""
    checked_out(out, references)
    found = room.quality_of(*votes)
    # Without votes on all three criteria a video has no total to be ranked by.
    known = [video for video, scores in found.items() if scores["total"] is not None]
    kept = set(known[:count])
    # The annotations keep their own order, so that the file is a part of theirs.
    records = [each for each in read_records(references) if id_under(each, "video") in kept]
    rows = [dict(each.values) for each in records]
    write_file(out, json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    click.echo(f"{len(rows):,} of {len(found):,} videos written to {out}")
    return ExitCode.OK
