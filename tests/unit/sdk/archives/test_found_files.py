"""Files that a pattern or a folder stands for."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallujudge.sdk.archives.found_files import found_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a link to itself, and links that lead nowhere and around in a circle."""
    path = tmp_path / "logs"
    path.mkdir()
    (path / "answers.jsonl").write_text("{}")
    (path / "again").symlink_to(path)
    (path / "nowhere.jsonl").symlink_to("missing.jsonl")
    (path / "circle.jsonl").symlink_to("circle.jsonl")
    return path


@pytest.mark.parametrize("pattern", ["", "*.jsonl", "**/*.jsonl", "again/again/*.jsonl"])
def test_a_file_is_found_once_whatever_links_lead_to_it(folder: Path, pattern: str) -> None:
    (found,) = found_files(folder / pattern)
    assert found.path.resolve() == folder / "answers.jsonl"
