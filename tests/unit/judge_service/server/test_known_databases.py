"""What a server says of databases and folders that it can't go on with."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from hallujudge.judge_service.access.spending import Ledger
from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.server.known_databases import (
    known_databases,
    refuse_foreign_folders,
    refuse_lost_databases,
    remember_database,
)
from hallujudge.judge_service.settings.loading import ResolvedSettings, load_settings, names_of
from hallujudge.judge_service.state_files import database_id


def settings_of(folder: Path, **more: object) -> ResolvedSettings:
    given = {
        "data_folder": str(folder),
        "access.keys_file": str(folder / "keys.json"),
        **names_of(more),
    }
    return load_settings(given, environ={})


def test_the_folder_of_another_user_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_foreign_folders(settings_of(tmp_path))
    refuse_foreign_folders(settings_of(tmp_path / "new"))
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    with pytest.raises(InvalidInputError) as raised:
        refuse_foreign_folders(settings_of(tmp_path))
    assert raised.value.metadata == {"path": str(tmp_path)}
    assert f"can't use the folder {tmp_path}: it belongs to user {os.getuid()}" in str(raised.value)
    refuse_foreign_folders(settings_of(tmp_path, keys_file="", jobs_database="off"))


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for folder, problem in ((file, "it is a file"), (file / "x", "a part of its path is a file")):
        with pytest.raises(InvalidInputError) as raised:
            refuse_foreign_folders(settings_of(folder, keys_file=""))
        assert f"{folder}: {problem}. Set data_folder to a folder" in str(raised.value)


def test_a_first_start_finds_nothing_lost(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    refuse_lost_databases(settings)
    assert [one.is_lost for one in known_databases(settings)] == [False, False]


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("jobs.sqlite", "is missing"),
        ("spending.sqlite", "is empty"),
        ("spending.sqlite", "is another database"),
    ],
)
def test_a_lost_database_is_refused_until_that_is_accepted_once(
    tmp_path: Path, name: str, state: str
) -> None:
    settings = settings_of(tmp_path)
    for file in ("jobs.sqlite", "spending.sqlite"):
        # Both kinds have their id in a table of the same name.
        with closing(Ledger(tmp_path / file)) as made:
            remember_database(settings, tmp_path / file, made.database_id)
    refuse_lost_databases(settings)
    path = tmp_path / name
    path.unlink()
    if state == "is empty":
        path.touch()
    elif state != "is missing":
        Ledger(path).close()
    with pytest.raises(InvalidInputError, match=f"{path} {state}.*accept_new_state = 1"):
        refuse_lost_databases(settings)
    refuse_lost_databases(settings_of(tmp_path, accept_new_state=1))
    refuse_lost_databases(settings)


@pytest.mark.parametrize("content", ["", "[]", "{", "\x00"])
def test_a_damaged_list_of_databases_stops_no_start(tmp_path: Path, content: str) -> None:
    (tmp_path / "databases.json").write_text(content)
    refuse_lost_databases(settings_of(tmp_path))


def test_a_file_that_is_not_a_database_has_no_id(tmp_path: Path) -> None:
    other = tmp_path / "jobs.sqlite"
    other.write_bytes(b"not a database" * 100)
    assert database_id(other) is None
    assert database_id(tmp_path / "none") == ""
