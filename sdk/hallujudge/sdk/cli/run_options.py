"""Options that the score commands share."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, cast

from hallujudge.metrics.framework.metric import InputOption
from hallujudge.metrics.framework.trait_sums import LEFT_OUT

from ..archives import InputOptions
from ..archives.inputs import declared_inputs
from ..backends import Timeouts
from ..errors import InvalidInputError
from ..runs.score_run import ScoreRun
from .app import input_option, metric_option, output_option, server_option, statistics_option
from .declared_options import response_option
from .options import ServerOptions
from .output import AllRows
from .parameters import Declared, parameter_of
from .score_command import FORMATS, ScoreCommand

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
References = Annotated[
    str | None,
    input_option(
        "--references", "-R", metavar="FILE", help="File of references, unless responses hold them."
    ),
]
ObjectFiles = Annotated[
    list[str] | None,
    input_option(
        "--references", "-R", metavar="FILE", help="File of objects, or COCO's own; repeatable."
    ),
]
ObjectGraph = Annotated[str | None, metric_option(help="Synonym graph: a shipped name, or a file.")]
AllowDuplicates = Annotated[
    bool, input_option("--allow-duplicates", help="Score of every response of a duplicate id.")
]
AllowMissing = Annotated[
    bool, input_option("--allow-missing", help="References without a response become unscored.")
]


class InputsOf(Declared):
    """Makes the options of a command that only some readers take, from a metric's declaration.

    A parameter of a command is annotated ``Annotated[InputOptions, InputsOf("chair")]``.

    Args:
        metric: The metric's name.
    """

    def __init__(self, metric: str) -> None:
        self._declared = declared_inputs(metric)
        # What only a command knows to be true has no flag of its own here.
        self._own = [option for option in self._declared.own if option.kind != "set"]

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield a parameter for each option of the metric's reader that not every command has."""
        for option in self._own:
            metavar = {"file": "FILE", "folder": "DIR"}.get(option.kind)
            flag = input_option(option.flag, metavar=metavar, help=option.meaning)
            kind: Any = list[str] | None if option.kind == "texts" else str | None
            yield parameter_of(_name_of(option), Annotated[kind, flag], None)
        for name in filter(self._declared.used.__contains__, _SOME):
            yield parameter_of(name, *_SOME[name])

    def build(self, given: Mapping[str, object]) -> InputOptions:
        """Return the options that were given.

        Args:
            given: Parameter name -> value.
        """
        values = {option.name: given[_name_of(option)] for option in self._own}
        own = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
            if value is not None
        }
        shared = {name: value for name, value in given.items() if name in _SOME}
        return InputOptions(own=own, **cast("dict[str, Any]", shared))


def _name_of(option: InputOption) -> str:
    """Return the name of an option's parameter: its flag, as the metric may use its name."""
    return option.flag.lstrip("-").replace("-", "_")


# Options that only some readers use.
_SOME: Mapping[str, tuple[object, object]] = {
    "join": (
        Annotated[
            str,
            input_option("--join", help="Join by auto, id, text (image and question) or order."),
        ],
        "auto",
    ),
    "allow_missing": (AllowMissing, False),
    "allow_duplicates": (AllowDuplicates, False),
}


Workers = Annotated[
    int,
    server_option(min=0, metavar="N", help="Processes that score; 0: one per core in large runs."),
]


Overwrite = Annotated[
    bool, output_option("--overwrite", help="Replacement of another run in --out.")
]


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
