"""What is checked before the first call: request parameters, labels, and the model's server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import NoReturn

from msgspec.structs import replace

from hallujudge.judge_service.llm.call_policy import RetryPolicy
from hallujudge.metrics.framework.results import JsonValue
from hallujudge.sdk.archives.answer_records import UNLABELLED
from hallujudge.sdk.archives.inputs import InputOptions, declared_inputs
from hallujudge.sdk.archives.question_files import LABELS_INVALID
from hallujudge.sdk.archives.readers import read_items
from hallujudge.sdk.archives.record_values import KEY_MISSING, LABEL
from hallujudge.sdk.errors import ArchiveError, InvalidInputError, UnavailableError

from .asked_benchmarks import Benchmark
from .inquiries import Inquiries

_NAME = re.compile(r"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)*", re.ASCII)
# Texts that a signature can show, and that are not mistaken for values of JSON.
_PLAIN_TEXT = re.compile(r"(?!(?:true|false|null)$)[A-Za-z][\w.-]{0,31}", re.ASCII)
_OF_PYTHON = {"True": "true", "False": "false", "None": "null"}
_READ_WHOLE = "replies are read whole, and one for each question"
_RESERVED = {
    "model": "the model is named by AskRun(model=…)",
    "messages": "the messages are the prompts; replace those",
    "max_tokens": "use AskRun(max_tokens=…)",
    "max_completion_tokens": "use AskRun(max_tokens=…)",
    "temperature": "use AskRun(temperature=…)",
    "stream": _READ_WHOLE,
    "n": _READ_WHOLE,
}


def parsed_parameters(given: Sequence[str]) -> dict[str, JsonValue]:
    """Return parameters as they are sent, from ``NAME=VALUE``; dots in a name nest.

    Args:
        given: The values of the option. A value is JSON, or else a text.

    Raises:
        InvalidInputError: One has another form, a name is reserved, or it is given twice.
    """
    made: dict[str, JsonValue] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise InvalidInputError(f"--param {text!r}: give NAME=VALUE, such as seed=7")
        *folders, last = name.split(".")
        held = made
        for depth, folder in enumerate(folders, 1):
            inner = held.setdefault(folder, {})
            if not isinstance(inner, dict):
                before = ".".join(folders[:depth])
                _refuse(name, f"{before} is given as a value too; give one of them")
            held = inner
        if last in held:
            _refuse(name, "it is given twice; give one value")
        held[last] = _value_of(name, value)
    return checked_parameters(made)


def checked_parameters(parameters: Mapping[str, object]) -> dict[str, JsonValue]:
    """Return parameters as JSON values.

    Raises:
        InvalidInputError: A name is reserved, or a value can't be sent as JSON.
    """
    for name, value in parameters.items():
        if not isinstance(name, str) or name in _RESERVED:
            _refuse(str(name), _RESERVED.get(name, "a name is a text"))
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as err:
            _refuse(name, f"its value can't be sent as JSON: {err}; give another")
    # A copy, which the caller can't change any more.
    copied: dict[str, JsonValue] = json.loads(json.dumps(dict(parameters)))
    return copied


def shown_parameters(parameters: Mapping[str, JsonValue]) -> list[str]:
    """Return parameters as signatures state them, such as ``seed=7``, in the order of names.

    Values that are not numbers, words or truth values are stated by a hash.
    """
    return [f"{name}={_shown(value)}" for name, value in sorted(_leaves(parameters))]


def _leaves(
    parameters: Mapping[str, JsonValue], before: str = ""
) -> Iterator[tuple[str, JsonValue]]:
    for name, value in parameters.items():
        # An empty object is a leaf, or a signature would not show it.
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _shown(value: JsonValue) -> str:
    if isinstance(value, str) and _PLAIN_TEXT.fullmatch(value):
        return value
    text = json.dumps(value, sort_keys=True)
    if isinstance(value, (bool, int, float, type(None))):
        return text
    # 32 bits tell the few values of a parameter apart, and keep signatures short.
    return f"#{sha256(text.encode()).hexdigest()[:8]}"


def _value_of(name: str, text: str) -> JsonValue:
    """Return a value of JSON, or else the text as it is.

    Raises:
        InvalidInputError: It is a word of Python, which a server would read as a text.
    """
    # A server would take Python's word as a text, and most ignore what they don't know.
    if text in _OF_PYTHON:
        _refuse(name, f"{text!r} is a text; give {_OF_PYTHON[text]}, or '\"{text}\"' for the text")
    try:
        value: JsonValue = json.loads(text, parse_constant=_no_value)
    except (ValueError, RecursionError):
        return text
    return value


def _no_value(constant: str) -> NoReturn:
    """Refuse NaN and infinity, which JSON does not have."""
    raise ValueError(constant)


def _refuse(name: str, why: str) -> NoReturn:
    raise InvalidInputError(f"request parameter {name}: {why}")


# Labels and the server ----------------------------------------------------------------------------


def notes_on_archive(
    benchmark: Benchmark, inquiries: Inquiries, *, partly: bool
) -> tuple[str, ...]:
    """Read the archive as scoring will, so that all is checked before a call is paid for.

    Args:
        benchmark: What is asked.
        inquiries: The questions.
        partly: Whether only a part of the benchmark is asked, so that bundles may lack answers.

    Raises:
        ArchiveError: Scoring would refuse it.
    """
    if benchmark.declared is None:
        return ()
    filled = [each for each in inquiries.asked if each.response not in each.into]
    for each in filled:
        # Scoring refuses a record without the key; null is the response until the answer comes.
        each.into[each.response] = None
    lacking = partly and "allow_missing" in declared_inputs(benchmark.name).used
    try:
        read_items(
            benchmark.name, inquiries.records, None, options=InputOptions(allow_missing=lacking)
        )
    except (ArchiveError, InvalidInputError) as err:
        if err.reason == LABELS_INVALID:
            raise ArchiveError(
                f"{err.metadata['found']}. Correct these labels in the file of questions, or ask "
                "these questions too with AskRun(bad_labels=True) and leave them unscored later",
                reason=err.reason,
            ) from err
        found = err.metadata.get("found", "")
        is_missing = err.reason == KEY_MISSING
        if (is_missing and err.metadata.get("value") == LABEL) or found.startswith(UNLABELLED):
            return ("the questions have no labels; scoring needs them, in a file of references",)
        if is_missing and benchmark.declared.question_files:
            return (f"score will need what the questions lack, in a file of references: {err}",)
        # Other errors are about files that are given to scoring alone, or about some records, which
        # can be left unscored.
        if found or is_missing:
            raise ArchiveError(
                f"score would refuse the archive: {found or err}. Correct the file of questions, "
                "or ask its questions anyway with AskRun(bad_labels=True)",
                reason=err.reason,
            ) from err
    finally:
        for each in filled:
            del each.into[each.response]
    return ()


@contextmanager
def waits_if_asked() -> Iterator[None]:
    """Say how to wait for a server that can't be reached yet."""
    try:
        yield
    except UnavailableError as err:
        if err.reason != "JUDGE_UNREACHABLE":
            raise
        raise UnavailableError(
            f"{err}; AskRun(wait=…) waits for a server that is starting",
            reason=err.reason,
            metadata=err.metadata,
        ) from err


def waiting(retry: RetryPolicy, seconds: float) -> RetryPolicy:
    """Return a policy that waits so long, and no longer, for a server's first answer."""
    return replace(
        retry,
        start_seconds=seconds,
        outage_seconds=max(retry.outage_seconds, seconds),
        give_up_after=max(retry.give_up_after, seconds),
    )
