"""What commands print and write; names of Python arguments become flags of the command line."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, NamedTuple, TypeVar

import click

from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.framework.results import UnscoredReason
from hallujudge.sdk import cli

from .. import report as rendering
from ..errors import InvalidInputError, OutputError
from ..runs.manifest import MANIFEST, PAGE, REPORT, RUN_FILES
from .app import BENCHMARK, ExitCode, output_option
from .options import JudgeOptions
from .parameters import flag_of

if TYPE_CHECKING:
    from hallujudge.judge_service.llm.estimate import Estimate
    from hallujudge.metrics import Report

    from ..report.table_pages import Page, Shown
    from ..runs.parts import ReasonCounts, UnscoredCounts


_ReportT = TypeVar("_ReportT", bound="Report")
# Files and pipes have the same width everywhere, so that outputs can be compared.
_FILE_WIDTH = 80
# Longer rows are hard to follow.
_MAX_TERMINAL_WIDTH = 120


def is_terminal(stream: IO[str] | None) -> bool:
    """Return whether a stream is a terminal; it is None if the shell closed it."""
    return stream is not None and stream.isatty()


def output_width() -> int:
    """Return the columns that tables on standard output may take."""
    if not is_terminal(sys.stdout):
        return _FILE_WIDTH
    return min(shutil.get_terminal_size().columns, _MAX_TERMINAL_WIDTH)


def refuse_run_file(path: Path) -> None:
    """Refuse a file to write that is a part of a run.

    Commands that add a file to a run name it themselves. An option such as ``--items``, which names
    a new file, is easily taken for one that names a run's items.

    Raises:
        InvalidInputError: The file is a part of a run.
    """
    if path.name in RUN_FILES and (path.parent / MANIFEST).exists():
        raise InvalidInputError(f"{path} is a part of the run in its folder; give another file")


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file, and create its folder if it does not exist.

    Raises:
        InvalidInputError: The file is a part of a run.
        OutputError: The file can't be written.
    """
    refuse_run_file(path)
    data = content if isinstance(content, bytes) else content.encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as err:
        raise OutputError.of(path, err, "give another path") from err


class Written(NamedTuple):
    """When the files of a run that people read were written; None for one that is absent."""

    report: int | None
    """``report.json``, in nanoseconds."""
    page: int | None
    """``report.html``."""

    @classmethod
    def of(cls, folder: Path) -> Written:
        """Return the times of a folder's files."""
        return cls(_written_at(folder / REPORT), _written_at(folder / PAGE))


def _written_at(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def where_written(folder: Path, before: Written) -> str:
    """Return where results are, and whether this command wrote them.

    Args:
        folder: The folder of the run.
        before: The times of its files before the command.
    """
    now = Written.of(folder)
    if before.report is None or now.report != before.report:
        return f"written to {folder}"
    what = "nothing" if now.page == before.page else f"only {PAGE}"
    return f"{folder} holds this run already; {what} was written (--overwrite replaces it)"


def write_lines(path: Path, values: Iterable[Mapping[str, object]]) -> int:
    """Write values as JSON lines, and return how many there are.

    Raises:
        OutputError: The file can't be written.
    """
    # All lines before the file is opened: an error while making them leaves the old file.
    lines = [json.dumps(value, ensure_ascii=False, allow_nan=False) for value in values]
    write_file(path, "".join(f"{line}\n" for line in lines))
    return len(lines)


AllRows = Annotated[
    bool, output_option("--all-rows", help="All scores of all groups, with intervals.")
]
NewFolder = Annotated[
    Path,
    output_option("--out", "-o", metavar="DIR", help="Folder for the results.", show_default=False),
]
Overwrite = Annotated[
    bool, output_option("--overwrite", help="Replacement of another run in --out.")
]


LISTING_FORMATS = ("table", "json")
"""The formats of lists and summaries."""


def check_formats(names: Iterable[str], known: Sequence[str]) -> None:
    """Refuse formats that a command does not print.

    Args:
        names: The formats that were asked for.
        known: Those of the command.

    Raises:
        InvalidInputError: One is unknown.
    """
    for name in names:
        if name not in known:
            raise InvalidInputError(f"--format {name!r:.80}: {choose_from(name, known)}")


def _checked_format(name: str) -> str:
    check_formats((name,), ("json", *cli.PAGE_FORMATS))
    return name


Format = Annotated[
    str,
    output_option(
        "--format",
        "-f",
        metavar="NAME",
        callback=_checked_format,
        help="table, json, markdown, csv, latex, html.",
    ),
]


def with_flags(report: _ReportT, arguments: Sequence[str] = ()) -> _ReportT:
    """Return a report whose notes name options of the command line."""
    return replace(report, notes=tuple(in_flags(note, arguments) for note in report.notes))


def show_new_run(report: Report, out: Path, before: Written) -> ExitCode:
    """Print the report of a run, and return the command's exit code.

    Args:
        report: The report.
        out: The folder of the run.
        before: The times of its files before the command.
    """
    click.echo(rendering.render_table(with_flags(report)), nl=False)
    click.echo(where_written(out, before))
    return ExitCode.UNSCORED if report.coverage.unscored else ExitCode.OK


def echo_json(text: str) -> None:
    """Print JSON text; on a terminal, escape characters that would control it."""
    click.echo(cli.escaped(text) if is_terminal(sys.stdout) else text, nl=False)


def show_result(result: Shown, name: str) -> None:
    """Print a result in a format."""
    show_as(name, result.to_text, result.page)


def show_as(name: str, to_text: Callable[[], str], to_page: Callable[[], Page]) -> None:
    """Print a result in a format: its JSON text, or its page in any other."""
    if name == "json":
        echo_json(to_text())
    else:
        show_page(to_page(), name)


def show_page(page: Page, name: str) -> None:
    """Print a page in a format other than JSON; a table is as wide as the terminal."""
    page = replace(page, notes=tuple(map(in_flags, page.notes)))
    if name == "table":
        text = cli.render_page(page, width=output_width())
    else:
        text = cli.PAGE_FORMATS[name](page)
    click.echo(text, nl=False)


# A run may have dozens of reasons; the rarest are in items.jsonl.
_SHOWN_REASONS = 5


def unscored_notes(counts: UnscoredCounts) -> tuple[str, ...]:
    """Return one sentence for each reason of a run, the most frequent first."""
    return (
        *_reason_lines(counts.items, "items", "unscored"),
        *_reason_lines(counts.claims, "claims", "without a verdict"),
    )


def _reason_lines(reasons: ReasonCounts, what: str, failed: str) -> list[str]:
    return [
        f"{count:,} {what if count > 1 else what[:-1]} {failed}: "
        f"{_reason_sentence(reason, *reasons.examples[reason])}"
        for reason, count in reasons.counts.most_common(_SHOWN_REASONS)
    ]


def _reason_sentence(reason: str, item_id: str, detail: str) -> str:
    """Return a reason's sentence, an example and the next step."""
    known = UnscoredReason.__members__.get(reason)
    example = f"Example: item {item_id}: {detail}".rstrip(": ").rstrip(".")
    if known is None:
        return f"{reason}. {example}."
    return f"{reason}. {known.sentence} {example}. Next step: {known.next_step}"


def estimate_line(estimate: Estimate) -> str:
    """Return one judge's or extractor's calls, tokens and cost as one line."""
    return (
        f"{estimate.judge}: {estimate.calls} calls ({estimate.cached} answered by the cache, "
        f"{estimate.repeated} repeated), {estimate.prompt_tokens} prompt tokens, at most "
        f"{estimate.most_completion_tokens} generated; {_cost_text(estimate)}; counted by "
        f"{estimate.counter}{_measuring_text(estimate.measuring)}"
    )


def _measuring_text(estimate: Estimate | None) -> str:
    """Return the calls that measure the share of the choices, if there may be any."""
    if estimate is None:
        return ""
    return (
        f"; choice_share: up to {estimate.calls} more calls for one token each "
        f"({estimate.prompt_tokens} prompt tokens; {_cost_text(estimate)})"
    )


def _cost_text(estimate: Estimate) -> str:
    """Return the cost; never a number where a part of it is not known."""
    if estimate.unknown_texts:
        return (
            f"cost not known: the claims of {estimate.unknown_texts} responses are not extracted "
            "yet, and their calls are not counted"
        )
    if estimate.cost_at_most is None:
        return "cost not known: no prices are set"
    if not estimate.calls:
        return "no cost: no calls"
    if not estimate.cost_at_most:
        return "no cost: the prices are set to 0"
    # Four decimals would show a small cost as 0.0000.
    cost = estimate.cost_at_most
    return f"cost at most {cost:.4f}" if cost >= 0.01 else f"cost at most {cost:.2g}"


# Names of Python arguments in messages of the SDK, which Python users read as well.
_ARGUMENT = re.compile(
    r"(?:InputOptions|CompareOptions|GateLimits|ScoreRun|AskRun|Timeouts|Connection|log_to)\((?P<own>own=dict\()?(?P<name>\w+)=(?P<value>[^()]*)\)(?(own)\))|\b(?P<bare>references|baseline|group_by)=…"
)
_OPTION = re.compile(
    r"\bthe option (?:(?P<metric>[a-z-]+)\.)?(?P<name>[a-z_]+)(?: = (?P<value>\w+))?"
)
# Settings of judges in this process; a server's have the same names, but are set elsewhere.
_SETTINGS = {
    flag_of(name): re.sub("^(llm|fallback|matcher)_", r"\1.", name)
    for name in (*(entry.name for entry in fields(JudgeOptions)), "matcher_download")
}
# Settings of a server that `hallujudge serve` has flags for.
_SERVE = {
    "--accept-new-state": "accept_new_state",
    "--allow-anonymous": "access.allow_anonymous",
    "--http-host": "http.host",
    "--http-port": "http.port",
    "--keys-file": "access.keys_file",
    "--tls-ca": "tls.ca",
    "--tls-cert": "tls.cert",
    "--tls-key": "tls.key",
    "--vllm": "vllm.model",
}
# All other options have the names of their fields.
_OTHER_FLAGS = {
    "failure_texts": "--failure-text",
    "key_map": "--map",
    "maximum": "--max",
    "minimum": "--min",
    "questions_per_image": "--questions",
}
# The short names of a model's settings; the long ones are those of a judge's.
_OF_MODEL = {"--url": "llm.url", "--model": "llm.model", "--dialect": "llm.dialect"}
_NAMES = {flag: name for name, flag in _OTHER_FLAGS.items()} | {
    "-n": "count",
    "--api-key-file": "HALLUJUDGE_API_KEY_FILE",
    **_OF_MODEL,
}


def in_flags(message: str, arguments: Sequence[str] = ()) -> str:
    """Replace names of Python arguments in a message by command-line options.

    ``InputOptions(id_key=…)`` becomes ``--id-key``, ``Timeouts(progress_timeout=…)``
    ``--progress-timeout``, ``references=…`` ``--references``, and ``the option unparsed = wrong``
    ``--unparsed wrong``. Names of flags that were typed become these flags: ``confidence is 2``
    becomes ``--confidence is 2``, and of several metrics ``the option amber.nouns = rules``
    ``--option amber.nouns=rules``. Settings of judges become flags unless a server is called, where
    they keep their names.

    Args:
        message: An error or a note.
        arguments: The command line as it was typed.
    """
    flags = _ARGUMENT.sub(_flag, message)
    flags = _OPTION.sub(_option_flag, flags)
    # A name such as ``confidence`` is also a word; only flags that were typed are certain names.
    typed = [part.partition("=")[0] for part in arguments[1:] if _is_flag(part)]
    known = _own_names(arguments) | _NAMES
    names = {flag: known.get(flag) or flag[2:].replace("-", "_") for flag in typed}
    names[BENCHMARK] = "add_benchmarks"
    if "ask" in arguments[:1]:
        names |= _OF_MODEL
    if "--server" not in typed and not message.startswith("settings file "):
        names |= _SETTINGS | _SERVE if "serve" in arguments[:1] else _SETTINGS
    for flag, name in names.items():
        # Each pattern that is made takes a part of a millisecond.
        if name in flags:
            flags = _bare(name).sub(flag, flags)
    # Ids and keys are as the file has them; a terminal would obey their control characters.
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in flags)


def _own_names(arguments: Sequence[str]) -> dict[str, str]:
    """Return the names of the options that only the scored metric's reader takes, by flag."""
    # Those of all metrics would be an import of every family, for each note of a run.
    metric = "".join(arguments[arguments.index("score") + 1 :][:1]) if "score" in arguments else ""
    own = cli.declared_inputs(metric).own if metric and cli.entry_of(metric) else ()
    return {option.flag: option.name for option in own}


def _is_flag(part: str) -> bool:
    return part.startswith("--") or part in _NAMES


def _bare(name: str) -> re.Pattern[str]:
    """Return what matches a name outside of paths and quotes; a word only where it is the subject.

    The name of a setting stays if the setting is from the environment or a file, and in a line of
    settings such as ``llm.dialect=vllm``.
    """
    given = r"(?: \(from argument\))?"
    if "_" in name or "." in name:
        return re.compile(
            rf"(?<![\w/.'\"-]){re.escape(name)}(?: = 1)?{given}(?![\w/'\"=]|\.\w| \(from )"
        )
    return re.compile(rf"^{name}{given}(?= is | are )")


def _flag_of(name: str) -> str:
    return _OTHER_FLAGS.get(name) or flag_of(name)


def _flag(match: re.Match[str]) -> str:
    if match["bare"]:
        return _flag_of(match["bare"])
    own = cli.own_inputs().get(match["name"]) if match["own"] else None
    flag = _flag_of(match["name"]) if own is None else own.flag
    return flag if match["value"] in ("…", "True") else f"{flag} {match['value']}".replace("'", "")


def _option_flag(match: re.Match[str]) -> str:
    flag = _flag_of(match["name"])
    if match["metric"]:
        value = match["value"] or _switched_on(match["metric"], match["name"])
        return f"--option {match['metric']}.{flag[2:]}{'=' if value else ''}{value}"
    return f"{flag} {match['value']}" if match["value"] else flag


_OFF_ON = (("no", "yes"), ("false", "true"))


def _switched_on(metric: str, name: str) -> str:
    """Return the value that turns an option of a metric on; empty if it is not a switch."""
    known = cli.entries()
    options = known[metric].options if metric in known else ()
    found = (option.choices for option in options if option.name == name)
    return next((choices[1] for choices in found if choices in _OFF_ON), "")
