"""Archive readers that other packages register."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.archive_samples import write_lines
from support.messages import expected_message

from hallujudge.sdk.archives import inspect_archives, read_items
from hallujudge.sdk.archives.layouts import archive_readers
from hallujudge.sdk.errors import ArchiveError

MODULE = """
from hallujudge.sdk.archives import ArchiveReader, converting

reader = ArchiveReader(
    name="an answer file of my lab",
    keys=("case", "said", "truth"),
    metrics=("pope",),
    convert=converting(
        lambda values: {"id": values["case"], "response": values["said"], "label": values["truth"]}
    ),
)
readers = [reader]
careless = ArchiveReader(name="my lab's file", keys=(), matches=lambda values: values["kind"] == 1)
wrong = "no reader"
"""
ROWS = [{"case": n, "said": "Yes", "truth": "yes", "doc_id": n, "target": "no"} for n in range(3)]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package on the path whose entry point the test writes."""
    info = tmp_path / "my_lab-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-lab\nVersion: 1.0\n")
    (tmp_path / "my_lab_readers.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    archive_readers.cache_clear()
    yield info / "entry_points.txt"
    archive_readers.cache_clear()
    sys.modules.pop("my_lab_readers", None)


@pytest.mark.parametrize("name", ["reader", "readers"])
def test_a_registered_reader_comes_first(package: Path, tmp_path: Path, name: str) -> None:
    package.write_text(f"[hallujudge.archive_readers]\nmy-lab = my_lab_readers:{name}\n")
    path = write_lines(tmp_path / "answers.jsonl", ROWS)
    (summary,) = inspect_archives([path])
    assert summary.layout == expected_message(
        "sdk.archives.layouts.benchmarks:an-answer-file-of-my-lab"
    )
    items = read_items("pope", path, None)
    assert [(item.id, item.label) for item in items] == [  # type: ignore[attr-defined]  # pope
        ("0", "yes"),
        ("1", "yes"),
        ("2", "yes"),
    ]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("my_lab_readers:wrong", "the archive reader my-lab is str, not an ArchiveReader"),
        ("my_lab_readers:absent", "can't be loaded"),
        ("no_such_module:reader", "can't be loaded: No module named"),
    ],
)
def test_a_wrong_entry_point_is_named(package: Path, value: str, said: str) -> None:
    package.write_text(f"[hallujudge.archive_readers]\nmy-lab = {value}\n")
    with pytest.raises(ArchiveError, match=said):
        archive_readers()


def test_a_record_that_the_reader_can_not_convert_is_named(package: Path, tmp_path: Path) -> None:
    package.write_text("[hallujudge.archive_readers]\nmy-lab = my_lab_readers:reader\n")
    path = write_lines(tmp_path / "answers.jsonl", [*ROWS, {"case": 3, "truth": "yes"}])
    said = r"line 4: the archive reader of an answer file of my lab failed \(KeyError: 'said'\)"
    with pytest.raises(ArchiveError, match=said):
        read_items("pope", path, None)
    (summary,) = inspect_archives([path])
    assert expected_message("sdk.archives.layouts:line-the-archive-reader") in summary.problem


def test_a_reader_that_can_not_look_at_a_record_is_named(package: Path, tmp_path: Path) -> None:
    package.write_text("[hallujudge.archive_readers]\nmy-lab = my_lab_readers:careless\n")
    path = write_lines(tmp_path / "answers.jsonl", ROWS)
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.archives.layouts:reader-of-my-labs-file-failed-to"),
    ):
        read_items("pope", path, None)
