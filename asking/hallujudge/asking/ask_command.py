"""``hallujudge ask``: a benchmark's questions, asked of a model."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import click

# Its modules are imported when the command uses them: help pages wait for none of them.
from hallujudge import asking as room
from hallujudge.sdk import cli
from hallujudge.sdk.archives.json_files import amount
from hallujudge.sdk.cli.app import (
    ExitCode,
    app,
    budget_option,
    examples,
    input_option,
    metric_option,
    output_option,
    stopped_by,
)
from hallujudge.sdk.cli.commands import StrictCommand, example_of
from hallujudge.sdk.cli.options import Estimate, file_text
from hallujudge.sdk.cli.output import estimate_line
from hallujudge.sdk.cli.parameters import argument, option
from hallujudge.sdk.errors import InvalidInputError

model_option = partial(option, panel="Model")
# What the command and a run of one benchmark have alike.
_SAME = (
    *("protocol", "prompt_preset", "frames", "frame_format", "combine_frames", "limit"),
    *("temperature", "max_tokens", "replies", "bad_labels", "overwrite", "wait"),
)
# The most frequent reasons; the file of questions without an answer has all of them.
_SHOWN_REASONS = 8


class _AskCommand(StrictCommand):
    """A command whose help page also lists the benchmarks, which are looked up only for it."""

    def more_help(self) -> str:
        """Return the last paragraph of the help."""
        names = ", ".join(sorted(room.asked_metrics()))
        return f"Benchmarks: {names}, and those that --benchmark declares."

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help."""
        super().format_help_text(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(self.more_help())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asking:
    """What is asked of which model, and where the answers go."""

    benchmarks: Annotated[
        list[str], argument(metavar="BENCHMARK", help="Names of metrics, such as pope.")
    ]
    references: Annotated[
        list[str] | None,
        input_option(
            "--references",
            "-R",
            metavar="[METRIC=]FILE",
            help="File of questions, as in pope=FILE; repeatable.",
        ),
    ] = None
    images: Annotated[
        list[str] | None,
        input_option(metavar="[METRIC=]DIR", help="Folder of images or videos; repeatable."),
    ] = None
    options: Annotated[
        Path | None, input_option(metavar="FILE", help="Display order of VidHal's captions.")
    ] = None
    limit: Annotated[int | None, input_option(min=1, help="Only the first N records.")] = None
    bad_labels: Annotated[
        bool, input_option("--bad-labels", help="Questions that score refuses are asked too.")
    ] = False
    url: Annotated[
        list[str] | None,
        model_option("--url", "--llm-url", help="Base URL of the model's server; repeatable."),
    ] = None
    model: Annotated[
        str | None, model_option("--model", "--llm-model", help="Name of the model there.")
    ] = None
    wait: Annotated[
        float, model_option(min=0, max=1e6, help="Seconds to wait for a server that starts.")
    ] = 0.0
    dialect: Annotated[str | None, model_option(help="Server: vllm, openai or plain.")] = None
    batch_requests: Annotated[
        Path | None, model_option(metavar="FILE", help="File for requests, not sent.")
    ] = None
    batch_replies: Annotated[
        Path | None, model_option(metavar="FILE", help="Replies of a batch to them.")
    ] = None
    max_concurrency: Annotated[int | None, model_option(min=1, help="Calls at the same time.")] = (
        None
    )
    temperature: Annotated[float, model_option(min=0, max=10, help="Temperature.")] = 0.0
    max_tokens: Annotated[int | None, model_option(min=1, help="Tokens of a reply at most.")] = None
    param: Annotated[
        list[str] | None, model_option(metavar="NAME=VALUE", help="Request parameter; repeatable.")
    ] = None
    protocol: Annotated[
        str, metric_option(metavar="NAME", help="Way to ask; --show-prompts lists.")
    ] = ""
    prompt: Annotated[
        list[str] | None,
        metric_option(metavar="[STEP=]FILE", help="File that replaces a prompt; repeatable."),
    ] = None
    prompt_preset: Annotated[
        str, metric_option(metavar="NAME", help="Prompt that a paper prints.")
    ] = ""
    show_prompts: Annotated[
        bool, metric_option("--show-prompts", help="Protocols and their prompts; then exit.")
    ] = False
    frames: Annotated[
        str, metric_option(help="uniform:N, ends:N, every:N, fps:R, all; see docs.")
    ] = "uniform:16"
    combine_frames: Annotated[
        bool, metric_option("--combine-frames", help="All frames in one picture (c-input).")
    ] = False
    frame_format: Annotated[str, metric_option(help="Format of frames: jpeg or png.")] = "jpeg"
    condition: Annotated[
        list[str] | None, metric_option(metavar="NAME", help="INFACT's operator; repeatable.")
    ] = None
    out: Annotated[
        Path | None,
        output_option("--out", "-o", metavar="FILE", help="Archive, or folder for several."),
    ] = None
    replies: Annotated[
        Path | None, output_option(metavar="FILE", help="SQLite file of replies to share.")
    ] = None
    overwrite: Annotated[
        bool, output_option("--overwrite", help="Replacement of another archive in --out.")
    ] = False
    quiet: Annotated[bool, output_option("--quiet", "-q", help="No progress or notes.")] = False
    estimate: Estimate = False
    max_calls: Annotated[int | None, budget_option(help="Most calls, with retries.")] = None
    max_cost: Annotated[float | None, budget_option(help="Most that calls may cost.")] = None
    llm_price_prompt: Annotated[
        float | None, budget_option(min=0, help="Price of 1M prompt tokens.")
    ] = None
    llm_price_completion: Annotated[
        float | None, budget_option(min=0, help="Price of 1M completion tokens.")
    ] = None

    def check(self) -> None:
        """Refuse a command line without images or an output, or with a batch of several benchmarks.

        Raises:
            InvalidInputError: An option is missing, or is of one benchmark alone.
        """
        if not self.images or self.out is None:
            needed = "--out: a file" if self.images else "--images: the folder of images or videos"
            example = example_of(click.get_current_context().command)
            raise InvalidInputError(f"missing option {needed}, as in: {example}")
        if len(self.benchmarks) > 1 and (self.batch_requests or self.batch_replies):
            raise InvalidInputError("a batch file is of one benchmark; ask one at a time")

    def model_settings(self) -> dict[str, object]:
        """Return the settings of the model that were given, by their names."""
        settings = {
            "llm.url": ",".join(self.url) if self.url else None,
            "llm.model": self.model,
            "llm.dialect": self.dialect,
            "batch.requests": None if self.batch_requests is None else str(self.batch_requests),
            "batch.replies": None if self.batch_replies is None else str(self.batch_replies),
            "llm.max_concurrency": self.max_concurrency,
            "max_calls": self.max_calls,
            "max_cost": self.max_cost,
            "llm.price_prompt": self.llm_price_prompt,
            "llm.price_completion": self.llm_price_completion,
        }
        # Only what was given: the rest comes from the environment and the settings file.
        return {name: value for name, value in settings.items() if value is not None}

    def runs(self) -> list[room.AskRun]:
        """Return one run for each benchmark.

        Raises:
            InvalidInputError: A file can be that of several benchmarks, or a folder is missing.
        """
        assert self.out is not None, "it was checked"
        asked = room.AskRun(
            benchmark="",
            out=self.out,
            images="",
            prompts=_prompts(self.prompt or ()),
            conditions=self.condition or (),
            parameters=room.parsed_parameters(self.param or ()),
            model=self.model_settings(),
            **{name: getattr(self, name) for name in _SAME},
        )
        # A benchmark that is named twice would write its archive twice.
        return [self._run_of(name, asked) for name in dict.fromkeys(self.benchmarks)]

    def _run_of(self, name: str, asked: room.AskRun) -> room.AskRun:
        """Return the run of a benchmark, which is asked as all are.

        Raises:
            InvalidInputError: A file can be that of several benchmarks, or a folder is missing.
        """
        names, out = self.benchmarks, Path(asked.out)
        references, shared = _of(name, self.references or (), names)
        if shared and len(names) > 1:
            path = shared[0].rpartition("=")[2]
            raise InvalidInputError(
                f"--references {shared[0]}: several benchmarks are asked; name its own, such as "
                f"{name}={path if Path(path).exists() else shared[0]}"
            )
        images, all_images = _of(name, self.images or (), names)
        if len(images or all_images) != 1:
            raise InvalidInputError(
                f"--images of {name}: {len(images or all_images)} folders; give one, such as "
                f"--images {name}=DIR"
            )
        if len(names) > 1 and (out.suffix == ".jsonl" or out.is_file()):
            raise InvalidInputError(
                f"--out {out}: {len(names)} benchmarks are asked, and each gets an archive of "
                "its own; give a folder"
            )
        return replace(
            asked,
            benchmark=name,
            out=out / f"{name}.jsonl" if len(names) > 1 else out,
            images=Path((images or all_images)[0]),
            references=list(map(Path, (*references, *shared))),
            # Alone, a benchmark refuses a file that it does not use; among several, it is VidHal's.
            options=self.options if len(names) == 1 or name.startswith("vidhal-") else None,
        )


@app.command(
    cls=_AskCommand,
    epilog=examples(
        "hallujudge ask pope -R questions.jsonl --images val2014 \\",
        "    --url http://localhost:8000/v1 --model qwen-vl -o answers.jsonl",
    ),
)
def ask(context: click.Context, given: _Asking) -> ExitCode:
    """Ask a model a benchmark's questions, and write an archive.

    Images are sent as they are, videos as sampled frames. A stopped run goes on when the same
    command is started again. The API key is HALLUJUDGE_LLM_API_KEY.
    """
    # Prompts are shown without images and an output.
    if given.show_prompts:
        click.echo("".join(map(room.prompts_text, given.benchmarks)), nl=False)
        return ExitCode.OK
    given.check()
    runs = given.runs()
    if not given.estimate:
        return _all_asked(runs, context.obj, quiet=given.quiet)
    for run in runs:
        of = f"{run.benchmark}: " if len(runs) > 1 else ""
        click.echo(f"{of}{estimate_line(room.estimate_asking(run))}")
    return ExitCode.OK


def _of(
    name: str, given: Sequence[str], names: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the paths of a benchmark alone, and those that name no benchmark."""
    pairs = [path.partition("=") for path in given]
    own = [path for metric, equals, path in pairs if equals and metric == name]
    shared = [
        whole
        for whole, (metric, equals, _) in zip(given, pairs, strict=True)
        # The name of a folder may have an equals sign of its own.
        if not equals or metric not in names
    ]
    return own, shared


def _all_asked(runs: Sequence[room.AskRun], typed: Sequence[str], *, quiet: bool) -> ExitCode:
    """Ask all benchmarks, after the files of all were checked."""
    for run in runs:
        of = f"{run.benchmark}: " if len(runs) > 1 else ""
        notes = room.check_asking(run)
        # All files are checked before the first question of the first benchmark is paid for.
        for note in () if quiet else notes:
            click.echo(f"note: {of}{cli.in_flags(note, typed)}", err=True)
    codes, calls, cost = [], 0, 0.0
    for run in runs:
        # The budget is one for all benchmarks.
        code, result = _asked(run.within(calls, cost), typed, quiet=quiet)
        codes.append(code)
        # A run that the user stopped must not go on with the next benchmark.
        if result is None:
            return code
        calls, cost = calls + result.calls, cost + result.cost
    # One benchmark with unanswered questions is enough to say so.
    return max(codes)


def _words_note(run: room.AskRun) -> tuple[str, ...]:
    """Return that the words are not the paper's, where it prints its own; else nothing."""
    if run.prompts or run.prompt_preset or not (known := room.preset_names(run.benchmark)):
        return ()
    names = " or ".join(known)
    return (f"the prompt is ours, not the paper's; --prompt-preset {names} has the paper's words",)


def _asked(
    run: room.AskRun, typed: Sequence[str], *, quiet: bool
) -> tuple[ExitCode, room.AskResult | None]:
    """Ask a benchmark; return no result if the run was stopped."""
    before = _kept_replies(run)
    try:
        shown = nullcontext(cli.Progress(0)) if quiet else cli.shown_progress(0, "answered")
        with shown as progress:
            result = room.ask(run, progress)
    except KeyboardInterrupt as err:
        click.echo(": ".join(filter(None, (f"stopped by {stopped_by(err)}", _kept(run)))), err=True)
        return ExitCode.FAILED, None
    except BaseException as err:
        # After a mistake in the command line, the same command would fail again.
        is_mistake = isinstance(err, InvalidInputError) and _kept_replies(run) == before
        if not is_mistake and (kept := _kept(run)):
            click.echo(f"note: {kept}", err=True)
        raise
    for note in () if quiet else (*_words_note(run), *_notes(result)):
        click.echo(f"note: {cli.in_flags(note, typed)}", err=True)
    click.echo(f"{result.answered:,} of {result.questions:,} answers written to {result.archive}")
    return (ExitCode.UNSCORED if result.unanswered else ExitCode.OK), result


def _kept(run: room.AskRun) -> str:
    """Return how many replies the next run will find; empty if there are none."""
    if not (count := _kept_replies(run)):
        return ""
    return (
        f"{count:,} replies are kept in {run.files.replies}; start the same command again to go on"
    )


def _kept_replies(run: room.AskRun) -> int:
    return room.kept_replies(run.files.replies)


def _notes(result: room.AskResult) -> list[str]:
    reasons = sorted(result.unanswered.items(), key=lambda entry: -entry[1])
    notes = [
        f"{count:,} without an answer: {reason}. Example: {result.examples[reason]}"
        for reason, count in reasons[:_SHOWN_REASONS]
    ]
    if cut := result.cut_off:
        notes.append(
            f"{amount(cut, 'reply was', 'replies were')} cut off at --max-tokens "
            f"{result.max_tokens}; give more tokens, and only these questions are asked again"
        )
    if any(reason.startswith("MODEL_") for reason in result.unanswered):
        notes.append("start the same command again to ask those again that no reply came for")
    elif sum(result.unanswered.values()) > cut:
        notes.append("correct what the reasons name, then start the same command again")
    if result.reused:
        notes.append(f"{result.reused:,} replies were known and not asked again")
    return notes


def _prompts(given: Sequence[str]) -> dict[str, str]:
    """Return step -> text, from ``STEP=FILE`` and ``FILE``, which is of the last step.

    Raises:
        InvalidInputError: A file can't be read, or a step is given twice.
    """
    prompts: dict[str, str] = {}
    for value in given:
        step, equals, name = value.partition("=")
        # The name of a file may have an equals sign of its own.
        if not equals or Path(value).exists():
            step, name = "answer", value
        if step in prompts:
            raise InvalidInputError(f"--prompt: two files for the step {step}; give one")
        prompts[step] = file_text("--prompt", name)
    return prompts
