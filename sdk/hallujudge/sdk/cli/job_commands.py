"""``hallujudge submit``, ``jobs``, ``fetch`` and ``batch``: runs that are judged elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from hallujudge import sdk
from hallujudge.sdk import cli

from ..errors import InvalidInputError
from .app import ExitCode, app, batch_app, examples, jobs_app, output_option, server_option
from .options import ServerOptions
from .output import NewFolder, Overwrite, Written, refuse_run_file, show_new_run
from .parameters import argument

if TYPE_CHECKING:
    from ..client import Client
    from ..runs.server_jobs import JobInfo


# What follows the metric or file is a score command, which has its own options.
_SCORE_ARGUMENTS = {"ignore_unknown_options": True, "allow_interspersed_args": False}

Job = Annotated[str, argument(metavar="JOB", help="Id that hallujudge submit printed.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobServer(ServerOptions):
    """The server that keeps jobs."""

    server: Annotated[str, server_option(metavar="HOST:PORT", help="Server that keeps the jobs.")]
    """Host and port."""

    def client(self) -> Client:
        """Return a client of the server."""
        return sdk.Client(self.server, connection=self.connection())


@app.command(
    context_settings=_SCORE_ARGUMENTS,
    epilog=examples(
        "hallujudge submit tri-he -r answers.jsonl -R graphs.json --judge llm \\",
        "    --server localhost:50051",
    ),
)
def submit(
    command: Annotated[
        list[str], argument(metavar="METRIC", help="Metric and options of its score command.")
    ],
    request_id: Annotated[
        str, server_option(help="Id of the request; another one is another job.")
    ] = "",
) -> ExitCode:
    """A run that a server scores in the background."""
    _check_submitted(command)
    # Nothing is written: the folder is that of fetch.
    return cli.executed(["score", *command, "--out", "."], request_id=request_id)


def _check_submitted(command: Sequence[str]) -> None:
    if command[0] == "all":
        raise InvalidInputError("submit takes one metric at a time; submit each run by itself")
    options = {part.partition("=")[0] for part in command}
    # The score command knows these options and would take them without any effect.
    refused = options & {"-o", "--out", "--resume", "--overwrite", "--all-parsers"}
    if refused:
        raise InvalidInputError(
            f"{min(refused)} is an option of results; give it to hallujudge fetch, or to score"
        )


@jobs_app.command("list", epilog=examples("hallujudge jobs list --server localhost:50051"))
def list_command(
    *,
    at: JobServer,
    all_callers: Annotated[
        bool, server_option("--all", help="Jobs of all callers; needs the scope admin.")
    ] = False,
) -> None:
    """Your jobs, the newest first."""
    with at.client() as client:
        for info in client.jobs(all_callers=all_callers):
            owner = f"  {info.owner}" if all_callers else ""
            click.echo(f"{_job_line(info)}{owner}")


@jobs_app.command("show", epilog=examples("hallujudge jobs show JOB --server localhost:50051"))
def show_command(*, job: Job, at: JobServer) -> ExitCode:
    """A job, and what hinders it."""
    with at.client() as client:
        return _print_job(client.job(job))


@jobs_app.command("watch", epilog=examples("hallujudge jobs watch JOB --server localhost:50051"))
def watch_command(*, job: Job, at: JobServer) -> ExitCode:
    """Progress of a job until it ends."""
    with at.client() as client:
        return _print_job(_finished(client, job))


def _finished(client: Client, job: str) -> JobInfo:
    """Return a job when it is finished, and print what changes until then."""
    # Waiting outlives a restart of the server; an address at which none answers may be wrong.
    client.job(job)
    return client.wait_for_job(job, lambda info: click.echo(_job_line(info), err=True))


@jobs_app.command("cancel", epilog=examples("hallujudge jobs cancel JOB --server localhost:50051"))
def cancel_command(
    *,
    job: Job = "",
    at: JobServer,
    key: Annotated[
        str, server_option(metavar="ID", help="All jobs of this key; needs the scope admin.")
    ] = "",
) -> None:
    """End of a job; its results are kept."""
    if bool(job) == bool(key):
        raise InvalidInputError("give the id of one job, or --key with the id of a key")
    with at.client() as client:
        for job_id in [job] if job else _unfinished_of(client, key):
            click.echo(_job_line(client.cancel_job(job_id)))


def _unfinished_of(client: Client, key: str) -> list[str]:
    """Return the ids of a key's jobs that are not finished."""
    jobs = [info for info in client.jobs(all_callers=True) if info.owner == f"key:{key}"]
    if not jobs:
        raise InvalidInputError(
            f"the server keeps no job of the key {key!r:.80}; hallujudge jobs list --all shows "
            "whose jobs it keeps"
        )
    return [info.id for info in jobs if not info.is_finished]


@jobs_app.command("delete", epilog=examples("hallujudge jobs delete JOB --server localhost:50051"))
def delete_command(*, job: Job, at: JobServer) -> None:
    """Deletion of a finished job with its results."""
    with at.client() as client:
        client.delete_job(job)
    click.echo(f"deleted {job}")


@app.command(epilog=examples("hallujudge fetch JOB --server localhost:50051 --out results"))
def fetch(
    *,
    job: Job,
    at: JobServer,
    out: NewFolder,
    wait: Annotated[bool, server_option("--wait", help="Wait until the job is finished.")] = False,
    resume: Annotated[
        bool, output_option("--resume", help="Continuation of a fetch that stopped in --out.")
    ] = False,
    overwrite: Overwrite = False,
    html: Annotated[bool, output_option("--html", help="Also report.html.")] = False,
) -> ExitCode:
    """Results of a job, as score would have written them."""
    before = Written.of(out)
    with at.client() as client:
        if wait:
            _finished(client, job)
        with sdk.RunFolder(out, overwrite=overwrite) as folder:
            report = client.fetch_job(job, folder, resume=resume, html=html)
    return show_new_run(report, out, before)


def _job_line(info: JobInfo) -> str:
    created = datetime.fromtimestamp(info.created_at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    answered = info.scored + info.unscored
    line = f"{info.id}  {created}  {info.state:9}  {answered:,} of {info.items:,} items"
    if info.unscored:
        line += f", {info.unscored:,} unscored"
    if info.verdicts:
        line += f", {cli.verdicts_text(info.verdicts)}"
    return f"{line}  {info.problem}" if info.problem else line


def _print_job(info: JobInfo) -> ExitCode:
    """Print a job; return 1 if it can't be fetched any more, 3 if items are unscored."""
    click.echo(_job_line(info))
    if info.problem_detail:
        click.echo(f"note: {info.problem_detail}", err=True)
    if info.state in ("failed", "cancelled"):
        return ExitCode.FAILED
    return ExitCode.UNSCORED if info.state == "done" and info.unscored else ExitCode.OK


_SCORED = "    score tri-he -r answers.jsonl -R graphs.json --judge llm -o run"
Score = Annotated[list[str], argument(metavar="SCORE", help="Command: score and its options.")]


@batch_app.command(
    "export",
    context_settings=_SCORE_ARGUMENTS,
    epilog=examples("hallujudge batch export requests.jsonl \\", _SCORED),
)
def export_command(
    requests: Annotated[Path, argument(metavar="FILE", help="File of requests to write.")],
    score: Score,
) -> ExitCode:
    """Requests to language models that a score command would send, as a batch file."""
    refuse_run_file(requests)
    return _in_batch(score, requests=requests)


@batch_app.command(
    "import",
    context_settings=_SCORE_ARGUMENTS,
    epilog=examples("hallujudge batch import replies.jsonl \\", _SCORED),
)
def import_command(
    replies: Annotated[Path, argument(metavar="FILE", help="File of replies to read.")],
    score: Score,
) -> ExitCode:
    """Scores with a batch's replies, which go into the verdict cache of the run."""
    return _in_batch(score, replies=replies)


def _in_batch(
    command: list[str], requests: Path | None = None, replies: Path | None = None
) -> ExitCode:
    """Execute a score command with files of requests or replies."""
    if command[:1] != ["score"]:
        raise InvalidInputError(
            f"{command[0]!r} is not a score command; write score and its options after the file"
        )
    return cli.executed(command, batch_requests=requests, batch_replies=replies)
