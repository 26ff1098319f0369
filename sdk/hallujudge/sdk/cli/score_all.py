"""``hallujudge score all``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInputError
from .app import ExitCode, score_app
from .connection import ApiKeyFile, Server, TlsCa, TlsCert, TlsKey, connection_of
from .options import Workers
from .panels import examples, input_option, output_option
from .signals import stop_on_sigterm
from .wording import in_flags

if TYPE_CHECKING:
    from ..overview import LeftOut, Overview, ScoredRun

__all__: list[str] = []


@score_app.command("all", epilog=examples("hallujudge score all logs -o scores"))
def score_all(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="Folder or URL with archives of models.")
    ],
    *,
    references: Annotated[
        list[str] | None,
        input_option(
            "--references",
            "-R",
            metavar="METRIC=FILE",
            help="References of a metric, as in chair=FILE; repeatable.",
        ),
    ] = None,
    out: Annotated[
        Path,
        output_option(
            "--out", "-o", metavar="DIR", help="Folder for the results.", show_default=False
        ),
    ],
    output_format: Annotated[
        str,
        output_option(
            "--format", "-f", metavar="NAME", help="table, json, markdown, csv, latex, html."
        ),
    ] = "table",
    workers: Workers = 0,
    server: Server = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    api_key_file: ApiKeyFile = None,
) -> ExitCode:
    """Every archive of a folder, by every metric that applies, with one overview."""
    from ..client import Client
    from ..overview import score_all as score_folder
    from .compare import check_format, show_page, show_result

    check_format(output_format)
    known = _by_metric(references or [])
    if server is not None and workers > 1:
        raise InvalidInputError(
            f"--workers {workers}: the server scores, with its own processes; leave one of them out"
        )
    connection = connection_of(server, tls_ca, tls_cert, tls_key, api_key_file)
    client = Client.embedded() if server is None else Client(server, connection=connection)
    with stop_on_sigterm(), client:
        overview = score_folder(
            folder, out, client=client, references=known, workers=workers, on_run=_tell
        )
    if output_format == "table":
        show_page(overview.narrow_page(), output_format)
    else:
        show_result(overview, output_format)
    typer.echo(f"written to {out}", err=True)
    return _code(overview)


def _by_metric(given: list[str]) -> dict[str, list[str]]:
    """Return metric -> files of its references."""
    from hallujudge.judge_service.engine.registry import metric_names

    found: dict[str, list[str]] = {}
    for pair in given:
        metric, _, path = pair.partition("=")
        if metric not in metric_names() or not path:
            raise InvalidInputError(
                f"--references {pair}: write a metric, an equals sign and a file, such as "
                "chair=objects.json"
            )
        found.setdefault(metric, []).append(path)
    return found


def _tell(done: ScoredRun | LeftOut) -> None:
    """Print one line on standard error for each archive."""
    from ..archives.json_files import named
    from ..overview import ScoredRun

    if isinstance(done, ScoredRun):
        items = done.report.coverage.items
        what = named([f"{done.model}, {done.name}"])
        typer.echo(f"scored {what}: {items:,} items", err=True)
    else:
        typer.echo(f"not scored {named([done.archive])}: {in_flags(done.reason)}", err=True)


def _code(overview: Overview) -> ExitCode:
    if not overview.runs:
        return ExitCode.FAILED
    return ExitCode.OK if overview.complete else ExitCode.UNSCORED
