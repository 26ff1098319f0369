"""The databases that a data folder's server has used, to notice at the next start what was lost.

SQLite makes a new file where one was deleted or emptied. Budgets would then be spent again, and
jobs would be gone, without a word. ``databases.json`` in the data folder therefore has the id of
each database, and a start compares it with what is there.
"""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import InvalidInputError
from ..settings.loading import ResolvedSettings, spending_path, state_folder
from ..state_files import create_folder, database_id, locked, replace_private
from .jobs_servicer import jobs_address, with_verdict_cache

_LOG = logging.getLogger(__name__)
_FILE = "databases.json"
_CONTENTS = {"spending": "the calls and costs of keys", "jobs": "jobs with their results"}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDatabase:
    """A database that a server has used."""

    path: Path
    """Its file."""
    contents: str
    """What it keeps."""
    id: str
    """Its id when a server last used it; empty if none has."""
    found: str | None
    """Its id now; empty if it is missing or has no tables, None if it can't be read now."""

    @property
    def is_lost(self) -> bool:
        """Whether it is not the database that a server used."""
        # One that can't be read now, such as a locked one, is not lost.
        return bool(self.id) and self.found is not None and self.found != self.id

    @property
    def problem(self) -> str:
        """What is wrong with a lost database."""
        if self.found:
            return f"{self.path} is another database than at the last start"
        state = "is empty" if self.path.exists() else "is missing"
        return f"{self.path} {state}; at the last start it was not"


def known_databases(resolved: ResolvedSettings) -> tuple[KnownDatabase, ...]:
    """Return the databases that a server with these settings uses, and what is there now."""
    known = _read(state_folder(resolved.judges) / _FILE)
    return tuple(
        KnownDatabase(
            path=path,
            contents=_CONTENTS[name],
            id=known.get(str(path.absolute()), ""),
            found=database_id(path),
        )
        for name, path in _paths(resolved).items()
    )


def refuse_foreign_folders(resolved: ResolvedSettings) -> None:
    """Refuse folders of databases that belong to another user, before a judge is started.

    Raises:
        InvalidInputError: This process may not use one.
    """
    for folder in {path.absolute().parent: None for path in _paths(resolved).values()}:
        try:
            known = folder.stat()
        except FileNotFoundError:  # it will be created
            continue
        except NotADirectoryError as err:
            raise _unusable(folder, "a part of its path is a file", _ANOTHER) from err
        except OSError as err:
            raise _unusable(folder, err.strerror or str(err)) from err
        if not stat.S_ISDIR(known.st_mode):
            raise _unusable(folder, "it is a file", _ANOTHER)
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise _unusable(
                folder, f"it belongs to user {known.st_uid}, and may not be read and written"
            )


_ANOTHER = "Set data_folder to a folder"


def _unusable(
    folder: Path,
    problem: str,
    step: str = "Change its owner, or set data_folder to one of the server's user",
) -> InvalidInputError:
    user = f"user {os.getuid()}" if hasattr(os, "getuid") else "this user"
    return InvalidInputError(
        f"the server runs as {user} and can't use the folder {folder}: {problem}. {step}",
        metadata={"path": str(folder)},
    )


def refuse_lost_databases(resolved: ResolvedSettings) -> None:
    """Log what was lost since the last start.

    Raises:
        InvalidInputError: A database was lost while others still have content, and the settings do
            not accept that.
    """
    databases = known_databases(resolved)
    lost = [one for one in databases if one.is_lost]
    if not lost:
        return
    for one in lost:
        _LOG.warning("%s: %s are lost", one.problem, one.contents)
    kept = [one.path for one in databases if one.found and not one.is_lost]
    cache = with_verdict_cache(resolved).verdict_cache
    with suppress(OSError):
        if cache and Path(cache).stat().st_size:
            kept.append(Path(cache))
    if kept and not resolved.server.accept_new_state:
        problems = "; ".join(f"{one.problem} ({one.contents})" for one in lost)
        raise InvalidInputError(
            f"{problems}, but {kept[0]} has content. Put it back, or set "
            "accept_new_state = 1 for one start (HALLUJUDGE_ACCEPT_NEW_STATE=1) to begin a new one"
        )
    _change(resolved, {str(one.path.absolute()): "" for one in lost})


def remember_database(resolved: ResolvedSettings, path: Path, id: str) -> None:
    """Write down that a server uses a database, for its next start.

    Args:
        resolved: The settings of the server.
        path: Its file.
        id: Its id. The file is open, and reading it again would hold a descriptor.
    """
    _change(resolved, {str(path.absolute()): id})


def _change(resolved: ResolvedSettings, ids: Mapping[str, str]) -> None:
    """Write down the ids of databases; an empty one is forgotten."""
    file = state_folder(resolved.judges) / _FILE
    try:
        if all(_read(file).get(path, "") == id for path, id in ids.items()):
            return
        create_folder(file.parent)
        # Several servers may share the folder.
        with locked(file):
            known = {path: id for path, id in {**_read(file), **ids}.items() if id}
            replace_private(file, json.dumps(known, indent=1) + "\n")
    except OSError as err:
        _LOG.warning(
            "%s can't be written (%s); a database that is lost is not noticed at the next start",
            file,
            err.strerror or err,
        )


def _paths(resolved: ResolvedSettings) -> dict[str, Path]:
    jobs = jobs_address(resolved)
    return {
        **({"spending": spending_path(resolved)} if resolved.server.access.keys_file else {}),
        **({"jobs": Path(jobs)} if jobs and "://" not in jobs else {}),
    }


def _read(file: Path) -> dict[str, str]:
    try:
        content = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as err:
        _LOG.warning("%s can't be read (%s); lost databases are not noticed", file, err)
        return {}
    if not isinstance(content, dict):
        return {}
    return {path: found for path, found in content.items() if isinstance(found, str)}
