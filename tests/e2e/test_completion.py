"""Shell completion, as a shell asks for it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.running import BIN
from support.sizes import further

OFFERED = "test_shells_complete_commands"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("hallujudge score chai", "chair"),
        further(OFFERED, "hallujudge sc", "score"),
        further(OFFERED, "hallujudge gr", "graph"),
    ],
)
def test_shells_complete_commands(typed: str, offered: str) -> None:
    completed = subprocess.run(
        [BIN / "hallujudge"],
        env={
            **os.environ,
            "_HALLUJUDGE_COMPLETE": "bash_complete",
            "COMP_WORDS": typed,
            "COMP_CWORD": str(len(typed.split()) - 1),
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert completed.stdout.split() == [f"plain,{offered}"], completed.stderr


def asked(home: Path, shell: str, option: str) -> str:
    done = subprocess.run(
        [BIN / "hallujudge", option],
        env={**os.environ, "HOME": str(home), "SHELL": shell},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == (0 if shell else 2), done.stderr
    return done.stdout + done.stderr


def test_bash_completes_once_it_is_installed_however_often(tmp_path: Path) -> None:
    start = tmp_path / ".bashrc"
    start.write_text("export MINE=1")
    for _ in range(2):
        assert "completion.bash" in asked(tmp_path, "/bin/bash", "--install-completion")
    assert start.read_text().count("completion.bash") == 1
    shown = subprocess.run(
        ["bash", "-c", f". {start}; echo $MINE; complete -p hallujudge"],
        capture_output=True,
        text=True,
        check=True,
    )
    mine, completed = shown.stdout.splitlines()
    assert mine == "1"
    assert completed.startswith("complete ")


@pytest.mark.parametrize(
    ("shell", "file", "start"),
    [
        ("/bin/zsh", ".config/hallujudge/completion.zsh", ".zshrc"),
        ("/usr/bin/fish", ".config/fish/completions/hallujudge.fish", None),
        (
            "/usr/bin/pwsh",
            ".config/hallujudge/completion.powershell",
            ".config/powershell/Microsoft.PowerShell_profile.ps1",
        ),
    ],
)
def test_other_shells_read_their_own_script(
    tmp_path: Path, shell: str, file: str, start: str | None
) -> None:
    script = asked(tmp_path, shell, "--show-completion")
    assert "_HALLUJUDGE_COMPLETE" in script
    asked(tmp_path, shell, "--install-completion")
    assert (tmp_path / file).read_text() == script
    assert start is None or str(tmp_path / file) in (tmp_path / start).read_text()


def test_an_unknown_shell_is_named(tmp_path: Path) -> None:
    assert "SHELL is not set; completion works in bash, zsh" in asked(
        tmp_path, "", "--install-completion"
    )


@pytest.mark.parametrize(("line", "word"), [("hallujudge score", ""), ("hallujudge sc", "sc")])
def test_powershell_asks_with_the_whole_line(line: str, word: str) -> None:
    completed = subprocess.run(
        [BIN / "hallujudge"],
        env={
            **os.environ,
            "_HALLUJUDGE_COMPLETE": "powershell_complete",
            "COMP_WORDS": line,
            "COMP_WORD": word,
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    offered = completed.stdout.split()
    assert ("chair" if not word else "score") in offered, completed.stderr
