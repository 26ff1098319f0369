"""JSON lines are read as Python's decoder reads them, and from the middle."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from hallujudge.sdk.archives.json_files import Mark, Marks, read_values
from hallujudge.sdk.errors import ArchiveError

LINES = (
    '{"a": 1}',
    "",
    r'{"a": "she said \"no\"", "b": null}',
    '{"a": {"b": ["c", "d"]}, "e": [1, 2.5, {"f": "g"}]}',
    r'{"a": "\ud83d", "b": "\u00e9"}',
    '{"a": 1e400, "b": 123456789012345678901234567890}',
    '  {"a": "é"}  ',
    '"a text"',
    "-0.0",
)


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines), encoding="utf-8", newline="")
    return path


def test_lines_have_the_values_of_pythons_decoder(tmp_path: Path) -> None:
    found = list(read_values(write(tmp_path / "f.jsonl", *LINES)))
    expected = [(json.loads(text), line) for line, text in enumerate(LINES, 1) if text]
    assert repr(found) == repr([type(found[0])(*pair) for pair in expected])


@pytest.mark.parametrize(
    "line",
    [
        '{"a": 1, "a": 2}',
        '{"a": 1, "a" : 2}',
        '{"a": "b", "c": 2, "a": "b"}',
        '{"x": {"a": 1, "b": [{"a": 1, "a": 1}]}}',
    ],
)
def test_duplicate_keys_are_refused_with_their_line(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "f.jsonl", '{"a": 1}', '{"a": 2}', line, '{"a": 3}')
    with pytest.raises(ArchiveError, match=r"line 3: duplicate keys in one object: a"):
        list(read_values(path))


def test_what_is_not_a_line_of_its_own_is_read_from_there_on(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", '{"a": 1}', '{"a":', '2} {"a": 3}', '{"a": 4}')
    found = [(placed.value, placed.line) for placed in read_values(path)]
    assert found == [({"a": 1}, 1), ({"a": 2}, 2), ({"a": 3}, 3), ({"a": 4}, 4)]


@pytest.mark.parametrize("start", ["", "\ufeff", "\n\n"])
def test_reading_begins_at_every_mark(tmp_path: Path, start: str) -> None:
    count = 1200
    lines = [f'{{"n": {number}, "t": "é"}}' for number in range(count)]
    lines[0] = start + lines[0]
    path = write(tmp_path / "f.jsonl", *lines)
    marks = Marks()
    whole = list(read_values(path, marks=marks))
    assert marks.usable
    assert [mark.values for mark in marks.marks] == [0, 512, 1024]
    assert Marks.of(marks.to_bytes()) == marks
    for mark in marks.marks:
        assert list(read_values(path, start=mark, chunk_chars=100)) == whole[mark.values :]
    assert marks.before(1023) == marks.marks[1]


def test_long_lines_get_more_marks(tmp_path: Path) -> None:
    text = json.dumps({"t": "x" * 300_000})
    marks = Marks()
    list(read_values(write(tmp_path / "f.jsonl", *[text] * 10), marks=marks))
    assert [mark.values for mark in marks.marks] == [0, 4, 8]
    assert marks.marks[1] == Mark(4, 4 * (len(text) + 1), 5)


@pytest.mark.parametrize("layout", ["gzip", "list", "indented"])
def test_other_files_are_read_from_their_beginning_only(tmp_path: Path, layout: str) -> None:
    values = [{"a": number} for number in range(3)]
    path = tmp_path / "f.json"
    if layout == "gzip":
        path.write_bytes(gzip.compress(b"\n".join(json.dumps(v).encode() for v in values)))
    elif layout == "list":
        path.write_text(json.dumps(values))
    else:
        path.write_text("\n".join(json.dumps(v, indent=1) for v in values))
    marks = Marks()
    assert [placed.value for placed in read_values(path, marks=marks)] == values
    assert not marks.usable
