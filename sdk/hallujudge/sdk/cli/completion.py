"""Completion by a shell: the script that asks for it, and where the shell reads the script."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import (
    ShellComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from ..errors import InvalidInputError, OutputError
from .commands import ASKED

_NAME = "hallujudge"
_SHELLS = ("bash", "zsh", "fish", "powershell")


@add_completion_class
class PowerShellComplete(ShellComplete):
    """Completion by PowerShell, which click has no script for."""

    name = "powershell"
    source_template = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($word, $line, $cursor)
    $env:%(complete_var)s = "powershell_complete"
    $env:COMP_WORDS = "$line"
    $env:COMP_WORD = $word
    %(prog_name)s
    Remove-Item Env:%(complete_var)s, Env:COMP_WORDS, Env:COMP_WORD -ErrorAction Ignore
}
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one that is completed, and that one."""
        words, word = split_arg_string(os.environ["COMP_WORDS"]), os.environ.get("COMP_WORD", "")
        return words[1 : -1 if word else None], word

    def format_completion(self, item: click.shell_completion.CompletionItem) -> str:
        """Return the text that the shell inserts."""
        return str(item.value)


def users_shell() -> str:
    """Return the user's shell.

    Raises:
        InvalidInputError: There is no completion for it.
    """
    name = Path(os.environ.get("SHELL", "powershell" if os.name == "nt" else "")).stem
    name = "powershell" if name == "pwsh" else name
    if name not in _SHELLS:
        named = f"SHELL is {name!r}" if name else "SHELL is not set"
        raise InvalidInputError(f"{named}; completion works in {', '.join(_SHELLS)}")
    return name


def completion_script(command: click.Command, name: str) -> str:
    """Return the script of a shell."""
    kind = get_completion_class(name)
    assert kind is not None, "click knows the others"
    return kind(command, {}, _NAME, ASKED).source()


def install_completion(command: click.Command, name: str) -> Path:
    """Write the script of a shell where the shell reads it, and return that file.

    Raises:
        OutputError: A file can't be written.
    """
    settings = Path.home() / ".config"
    if name == "fish":
        file, start = settings / f"fish/completions/{_NAME}.fish", None
    else:
        file, start = settings / f"{_NAME}/completion.{name}", _start_file(name)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(completion_script(command, name), encoding="utf-8")
        if start is not None:
            _add_line(start, _READ[name].format(file=file))
    except OSError as err:
        raise OutputError.of(file, err, "use --show-completion and save the script") from err
    return file


# Zsh completes nothing before compinit.
_READ = {
    "bash": ". '{file}'",
    "zsh": "autoload -Uz compinit && compinit; . '{file}'",
    "powershell": ". '{file}'",
}


def _start_file(name: str) -> Path:
    """Return the file that a shell reads at its start."""
    if name == "powershell":
        folder = "Documents/PowerShell" if os.name == "nt" else ".config/powershell"
        return Path.home() / folder / "Microsoft.PowerShell_profile.ps1"
    return Path.home() / f".{name}rc"


def _add_line(file: Path, line: str) -> None:
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    if line not in before.splitlines():
        file.parent.mkdir(parents=True, exist_ok=True)
        end = "" if before.endswith("\n") or not before else "\n"
        file.write_text(f"{before}{end}{line}\n", encoding="utf-8")
