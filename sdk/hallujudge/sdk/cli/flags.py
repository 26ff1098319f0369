"""Errors and notes in terms of options: names of Python arguments as flags of the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields

from hallujudge.judge_service.engine.registry import entries, entry_of

from ..archives.inputs import declared_inputs, own_inputs
from .app import BENCHMARK
from .options import JudgeOptions

# Names of Python arguments in messages of the SDK, which Python users read as well.
_ARGUMENT = re.compile(
    r"(?:InputOptions|CompareOptions|GateLimits|ScoreRun|AskRun|Timeouts|Connection|log_to)\((?P<own>own=dict\()?(?P<name>\w+)=(?P<value>[^()]*)\)(?(own)\))|\b(?P<bare>references|baseline|group_by)=…"
)
_OPTION = re.compile(
    r"\bthe option (?:(?P<metric>[a-z-]+)\.)?(?P<name>[a-z_]+)(?: = (?P<value>\w+))?"
)
# Settings of judges in this process; a server's have the same names, but are set elsewhere.
_SETTINGS = {
    f"--{name.replace('_', '-')}": re.sub("^(llm|fallback|matcher)_", r"\1.", name)
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
_FIELD_FLAGS = {
    "key_map": "--map",
    "maximum": "--max",
    "minimum": "--min",
}
_OPTION_FLAGS = {"failure_texts": "--failure-text", "questions_per_image": "--questions"}
# The short names of a model's settings; the long ones are those of a judge's.
_OF_MODEL = {"--url": "llm.url", "--model": "llm.model", "--dialect": "llm.dialect"}
_NAMES = {flag: name for name, flag in (_FIELD_FLAGS | _OPTION_FLAGS).items()} | {
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
    own = declared_inputs(metric).own if metric and entry_of(metric) else ()
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
    return _FIELD_FLAGS.get(name) or _OPTION_FLAGS.get(name) or f"--{name.replace('_', '-')}"


def _flag(match: re.Match[str]) -> str:
    if match["bare"]:
        return _flag_of(match["bare"])
    own = own_inputs().get(match["name"]) if match["own"] else None
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
    options = entries()[metric].options if metric in entries() else ()
    found = (option.choices for option in options if option.name == name)
    return next((choices[1] for choices in found if choices in _OFF_ON), "")
