"""The arguments of ``vllm serve``: those that a judge needs, and those that a user adds."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ..errors import InvalidInputError

AUTO_LENGTH = "auto"
"""The value of ``--max-model-len`` for the model's own limit, or what fits into memory."""
_STRUCTURED = "structured-outputs-config"
# The engine for structured output that enforces every rule of our schemas. With vLLM's own choice
# of engine, a model filled its reply with tabs until it was cut off.
_COMPACT_JSON: Mapping[str, object] = {"backend": "guidance", "disable_any_whitespace": True}
# At most so many alternatives are asked for at a token.
_MOST_LOGPROBS = 20
_SET_BY_US = "the judge's calls go to the address that is chosen for it; leave it out"
_WITHOUT_TLS = "the judge's calls to it stay on this machine and are not encrypted; leave it out"
# What would leave the judge without an answer, and why.
_REFUSED = {
    "model": "the setting vllm names the model; leave it out",
    "api-key": "it gets another key at each start; leave it out",
    "host": _SET_BY_US,
    "port": _SET_BY_US,
    "uds": _SET_BY_US,
    "root-path": _SET_BY_US,
    "headless": "it would start without an API; leave it out",
    "ssl-keyfile": _WITHOUT_TLS,
    "ssl-certfile": _WITHOUT_TLS,
}
# Arguments of which only some values give answers with margins.
_LIMITED: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "logprobs-mode": (
        lambda mode: mode.endswith("_logprobs"),
        "margins need log-probabilities; give raw_logprobs or leave it out",
    ),
    "max-logprobs": (
        lambda most: most == "-1" or (most.isdecimal() and int(most) >= _MOST_LOGPROBS),
        f"up to {_MOST_LOGPROBS} alternatives are asked for; give at least as many or leave it out",
    ),
    "runner": (
        lambda runner: runner in ("auto", "generate"),
        "a judge writes answers; give generate or leave it out",
    ),
}
# A letter is asked for, because values such as -1 begin with a dash too.
_OPTION = re.compile(r"-{1,2}[A-Za-z]")


def engine_arguments(
    *,
    tensor_parallel_size: str,
    max_model_len: str,
    quantization: str,
    structured_outputs: Mapping[str, object] | None = None,
) -> tuple[str, ...]:
    """Return the arguments of ``vllm serve`` that decide how a judge is served.

    ``serve --vllm``, Compose and Kubernetes all use them. Prefix caching is switched on by name,
    so that claims of an image share their prompt's beginning; the next option has the server say
    how much was shared. ``--generation-config vllm`` keeps the model folder's own sampling defaults
    out: everything is sent with each request. JSON has no white space in it: a model that pads it
    would be cut off in the middle, and tokens cost time. ``--logprobs-mode`` asks for
    log-probabilities and not logits; they are those after a constraint's mask (0.32.0 and 0.33.0).

    Args:
        tensor_parallel_size: GPUs that a layer is spread over, or the variable that names them.
        max_model_len: Longest prompt with its answer, or its variable.
        quantization: How weights are quantised while they are loaded; vLLM reads "" as not at all.
        structured_outputs: What is changed in, or added to, the configuration of structured output.
    """
    structured = json.dumps({**_COMPACT_JSON, **(structured_outputs or {})}, separators=(",", ":"))
    return (
        *("--tensor-parallel-size", tensor_parallel_size),
        *("--max-model-len", max_model_len),
        *("--quantization", quantization),
        *("--enable-prefix-caching", "--enable-prompt-tokens-details"),
        *("--generation-config", "vllm"),
        *("--logprobs-mode", "raw_logprobs"),
        *(f"--{_STRUCTURED}", structured),
    )


class AddedArguments(Struct, frozen=True, kw_only=True):
    """A user's arguments of ``vllm serve``."""

    others: tuple[str, ...] = ()
    """Those that are put last, as they are."""
    structured_outputs: Mapping[str, object] = {}
    """What they say of structured output: vLLM would replace our own JSON by it as a whole."""
    served_name: str = ""
    """The first name that the model is served under; empty for its own."""

    @classmethod
    def of(cls, text: str) -> AddedArguments:
        """Return the arguments of the setting ``vllm.arguments``.

        Raises:
            InvalidInputError: One of them would leave the judge without an answer.
        """
        others: list[str] = []
        structured: dict[str, Any] = {}
        served_name = ""
        for words in _options(_split(text)):
            name, path, values = _named(words)
            _check(name, values)
            if name == _STRUCTURED:
                _merge(structured, path, values)
                continue
            if name == "served-model-name":
                served_name = next(iter(values), "")
            others += words
        return cls(others=tuple(others), structured_outputs=structured, served_name=served_name)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as err:
        raise _unusable(
            f"{text!r:.200} cannot be split: {err}", "close its quotation marks"
        ) from err


def _options(words: Sequence[str]) -> list[list[str]]:
    """Return each option with its values; words before the first one stand alone."""
    options: list[list[str]] = []
    for word in words:
        if _OPTION.match(word) or not options:
            options.append([word])
        else:
            options[-1].append(word)
    return options


def _named(words: Sequence[str]) -> tuple[str, str, list[str]]:
    """Return an option's name as vLLM reads it, the path behind a dot, and its values."""
    option, equals, value = words[0].partition("=")
    if not option.startswith("--"):
        return option, "", list(words[1:])
    name, _, path = option.removeprefix("--").partition(".")
    return name.replace("_", "-"), path, [*([value] if equals else []), *words[1:]]


def _check(name: str, values: Sequence[str]) -> None:
    if name in _REFUSED:
        raise _unusable(f"it has --{name}", _REFUSED[name])
    is_usable, why = _LIMITED.get(name, (None, ""))
    if is_usable is not None and not is_usable(next(iter(values), "")):
        raise _unusable(f"it has --{name} {' '.join(values):.80}", why)


def _merge(into: dict[str, Any], path: str, values: Sequence[str]) -> None:
    """Add what an argument says of structured output, as JSON or by dotted names."""
    text = " ".join(values)
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if path:
        into[path.replace("-", "_")] = value
    elif isinstance(value, dict):
        into |= value
    else:
        raise _unusable(
            f"--{_STRUCTURED} is {text!r:.80}, which is not a JSON object", "correct it"
        )


def _unusable(problem: str, advice: str) -> InvalidInputError:
    return InvalidInputError(f"vllm.arguments can't be used: {problem}; {advice}")
