"""Options that the score commands share, and the value that score commands return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from hallujudge.metrics.framework.response_traits import LEFT_OUT

from ..archives import InputOptions
from ..backends import Timeouts
from ..errors import InvalidInputError
from ..runs.score_run import ScoreRun
from .app import input_option, output_option, server_option, statistics_option
from .declared_options import response_option
from .options import ServerOptions
from .output import AllRows, Overwrite, in_flags

if TYPE_CHECKING:
    from hallujudge.judge_service.settings.connection import Connection

FORMATS = ("table", "json", "markdown", "csv", "latex", "html")
"""The forms that a score command prints, or writes a page in."""
_TIMEOUTS = Timeouts()

# Texts, not paths: a path drops one of the slashes of a URL.
Responses = Annotated[
    str,
    input_option(
        "--responses",
        "-r",
        metavar="FILE",
        help="File, folder, pattern or URL of responses; - for stdin.",
        show_default=False,
    ),
]
Workers = Annotated[
    int,
    server_option(min=0, metavar="N", help="Processes that score; 0: one per core in large runs."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCommand:
    """A scoring run of the command line: its inputs, backend and outputs.

    Score commands return it unexecuted, so that ``hallujudge submit`` and ``hallujudge batch`` can
    change what is done with the run.
    """

    run: ScoreRun
    """What is scored and how, with the folder for results."""
    server: str | None = None
    """Host and port of the server; None scores in this process."""
    connection: Connection | None = None
    """Certificates and API key for the server; None takes those of the environment."""
    connection_flags: tuple[str, ...] = ()
    """The options behind ``connection``, for the command that fetches a submitted run."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    """How long the server may take."""
    judges: Mapping[str, object] = field(default_factory=dict)
    """Settings of the judges, for scoring in this process."""
    formats: tuple[str, ...] = ("table",)
    """What to print and which pages to write."""
    quiet: bool = False
    """Whether only scores are printed."""
    verbose: bool = False
    """Whether unscored items are listed."""
    all_rows: bool = False
    """Whether all scores of all groups are printed."""
    only_estimate: bool = False
    """Whether the cost is estimated instead of scoring."""
    request_id: str | None = None
    """Id of the request that submits the run as a job; empty for a hash; None scores the run."""
    batch_requests: Path | None = None
    """File to write the judges' requests to instead of scoring."""
    batch_replies: Path | None = None
    """File of replies to such requests, which are scored."""
    typed: tuple[str, ...] = ()
    """The command line, for notes in terms of its options."""
    then: tuple[Callable[[ScoreCommand], None], ...] = ()
    """What follows a run that was scored."""

    @property
    def out(self) -> Path:
        """The folder for results."""
        assert self.run.folder is not None, "score commands require --out"
        return Path(self.run.folder)

    @property
    def prints_table(self) -> bool:
        """Whether tables are printed."""
        return "table" in self.formats and not self.quiet

    def note(self, *notes: str) -> None:
        """Print notes on standard error, unless only scores are wanted."""
        for note in () if self.quiet else notes:
            click.echo(f"note: {in_flags(note, self.typed)}", err=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of every score command. Fields of :class:`ScoreRun` have the same names here."""

    id_key: Annotated[str | None, input_option(help="Key of the id.")] = None
    text_key: Annotated[str | None, input_option(help="Key of the response's text.")] = None
    map: Annotated[
        list[str] | None,
        input_option(
            metavar="NAME=KEY", help="Key of a value, as in label=doc.answer; repeatable."
        ),
    ] = None
    allow_unknown: Annotated[
        bool, input_option("--allow-unknown", help="Responses without a reference become unscored.")
    ] = False
    encoding: Annotated[
        str, input_option(metavar="CODE", help="Code of files that are not UTF-8.")
    ] = ""
    skip_bad: Annotated[
        bool, input_option("--skip-bad", help="Records that can't be read become unscored.")
    ] = False
    drop_equal_duplicates: Annotated[
        bool, input_option("--drop-equal-duplicates", help="Copies of a record are left out.")
    ] = False
    group_by: Annotated[
        list[str] | None,
        statistics_option(
            "--group-by", "-g", metavar="KEY", help="Key to report groups by; repeatable."
        ),
    ] = None
    confidence: Annotated[float, statistics_option(help="Confidence level of the intervals.")] = (
        0.95
    )
    count_empty: Annotated[bool, response_option("count_empty", "--count-empty")] = False
    failure_text: Annotated[
        list[str] | None,
        response_option("failure_texts", "--failure-text", note="; or a file; repeatable"),
    ] = None
    thoughts: Annotated[str, response_option("thoughts", "--thoughts")] = "leave-out"
    thought_marks: Annotated[
        list[str] | None,
        response_option(
            "thought_marks", "--thought-marks", note="; repeatable", metavar="OPEN CLOSE"
        ),
    ] = None
    template_tokens: Annotated[str, response_option("template_tokens", "--template-tokens")] = (
        "leave-out"
    )
    drop_cut_sentence: Annotated[
        bool, response_option("drop_cut_sentence", "--drop-cut-sentence")
    ] = False
    out: Annotated[
        Path,
        output_option(
            "--out", "-o", metavar="DIR", help="Folder for the results.", show_default=False
        ),
    ]
    format: Annotated[
        list[str] | None,
        output_option("--format", "-f", metavar="NAME", help=f"{', '.join(FORMATS)}; repeatable."),
    ] = None
    resume: Annotated[
        bool, output_option("--resume", help="Continuation of the run that stopped in --out.")
    ] = False
    overwrite: Overwrite = False
    workers: Workers = 0
    engine: Annotated[
        str, server_option(help="Where processes run: local, or ray (extra ray).")
    ] = "local"
    ray_address: Annotated[
        str, server_option(metavar="ADDRESS", help="Running Ray cluster; none starts one here.")
    ] = ""
    no_text: Annotated[
        bool, output_option("--no-text", help="Hashes of responses in items.jsonl, not their text.")
    ] = False
    quiet: Annotated[bool, output_option("--quiet", "-q", help="Scores only.")] = False
    verbose: Annotated[
        bool, output_option("--verbose", "-v", help="Also each unscored item and its reason.")
    ] = False
    all_rows: AllRows = False
    at: ServerOptions
    """The server."""
    progress_timeout: Annotated[
        float, server_option(help="Seconds without progress of the server that end a run.")
    ] = _TIMEOUTS.progress_timeout
    reconnect_timeout: Annotated[
        float, server_option(min=0, help="Seconds for which a lost server is tried again.")
    ] = _TIMEOUTS.reconnect_timeout

    def of(
        self,
        run: ScoreRun,
        judges: Mapping[str, object] | None = None,
        *,
        only_estimate: bool = False,
    ) -> ScoreCommand:
        """Return the command that scores a run with these options.

        Args:
            run: The run with the metric's own options.
            judges: Settings of judges in this process.
            only_estimate: Whether the cost is estimated instead of scoring.

        Raises:
            InvalidInputError: Both --quiet and --verbose are given.
        """
        if self.quiet and self.verbose:
            raise InvalidInputError("--quiet and --verbose are both given; choose one")
        formats = _split(self.format)
        inputs = replace(
            run.inputs or InputOptions(),
            key_map=_key_map(self.map or ()),
            **self._shared_with(InputOptions),
        )
        return ScoreCommand(
            run=replace(
                run,
                **self._shared_with(ScoreRun),
                inputs=inputs,
                options={**(run.options or {}), **self._response_options()},
                folder=self.out,
                keep_text=not self.no_text,
                html="html" in formats,
            ),
            server=self.at.server,
            connection=self.at.connection(),
            connection_flags=self.at.connection_flags,
            timeouts=Timeouts(**self._shared_with(Timeouts)),
            judges=judges or {},
            formats=formats,
            only_estimate=only_estimate,
            **self._shared_with(ScoreCommand),
        )

    def _response_options(self) -> dict[str, str]:
        """Return how missing responses are recognised, where that is not the default."""
        # Options are texts, of which a server receives one each: lines separate what is repeated.
        given = {
            "count_empty": "true" if self.count_empty else "",
            "failure_texts": "\n".join(map(_text_or_file, self.failure_text or ())),
            "thoughts": self.thoughts,
            "thought_marks": "\n".join(self.thought_marks or ()),
            "template_tokens": self.template_tokens,
            "drop_cut_sentence": "true" if self.drop_cut_sentence else "",
        }
        usual = {"thoughts": LEFT_OUT, "template_tokens": LEFT_OUT}
        return {name: text for name, text in given.items() if text != usual.get(name, "")}

    def _shared_with(self, other: type) -> dict[str, Any]:
        """Return the options that another value has fields for, by name."""
        names = {entry.name for entry in fields(self)}
        return {
            entry.name: value
            for entry in fields(other)
            # None is an option that was not given, whose default is the other value's own.
            if entry.name in names and (value := getattr(self, entry.name)) is not None
        }


def _key_map(given: Iterable[str]) -> dict[str, str]:
    """Return common key -> key of the archive, from ``NAME=KEY``.

    Raises:
        InvalidInputError: A pair has no equals sign, or a name is given twice.
    """
    keys: dict[str, str] = {}
    for pair in given:
        name, equals, key = (part.strip() for part in pair.partition("="))
        if not (name and equals and key):
            raise InvalidInputError(
                f"--map {pair}: write the name, an equals sign and the archive's key, such as "
                "--map label=doc.answer"
            )
        if name in keys:
            raise InvalidInputError(f"--map {name} is given twice: {keys[name]} and {key}")
        keys[name] = key
    return keys


def _text_or_file(given: str) -> str:
    """Return the content of a file of texts, or the text itself.

    Raises:
        InvalidInputError: The file is not UTF-8 text.
    """
    try:
        path = Path(given)
        return path.read_text(encoding="utf-8-sig") if path.is_file() else given
    except UnicodeDecodeError as err:
        raise InvalidInputError(
            f"--failure-text {given}: not UTF-8 text; save it as UTF-8"
        ) from err
    except OSError:
        # A text may be longer than the longest allowed file name.
        return given


def _split(given: list[str] | None) -> tuple[str, ...]:
    """Return the formats, given repeatedly, with commas, or both; ``table`` if none is given."""
    names = [name.strip() for part in given or [] for name in part.split(",")]
    return tuple(name for name in names if name) or ("table",)
