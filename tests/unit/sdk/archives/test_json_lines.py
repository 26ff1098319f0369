"""JSON lines are read as Python's decoder reads them, and from the middle."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.messages import expected_message
from support.sizes import examples

from hallujudge.sdk.archives.json_files import read_values
from hallujudge.sdk.archives.json_lines import FilePart, Mark, Marks, ObjectDecoder
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
    # A lone surrogate apart, which UTF-8 can't hold.
    texts = [text.replace(r"\ud83d", r"\ufffd") for text in LINES]
    expected = [(json.loads(text), line) for line, text in enumerate(texts, 1) if text]
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
    with pytest.raises(
        ArchiveError, match=expected_message("sdk.archives.joins:line-duplicate-keys-in-one-object")
    ):
        list(read_values(path))


TEXTS = st.text(st.sampled_from('a"\\{}[]:, \n\té\u2028'), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=3)


# Objects as they are in a file, with keys that may be duplicates.
PAIRS = st.lists(st.tuples(st.sampled_from("abc"), VALUES), max_size=3)


@settings(max_examples=examples(200), deadline=None)
@given(first=OBJECTS | PAIRS.map(dict), blocks=st.lists(st.lists(PAIRS, max_size=3), max_size=4))
@pytest.mark.parametrize("lines", [False, True])
def test_a_block_has_the_same_values_after_any_other_one(
    first: dict[str, object], blocks: list[list[list[tuple[str, object]]]], lines: bool
) -> None:
    before, after, between = ("", "\n", "\n") if lines else ("[", "]", ", ")
    decoder = ObjectDecoder()
    decoder(f"{before}{between.join([json.dumps(first)] * 2)}{after}".encode(), lines=lines)
    for block in blocks:
        held = [", ".join(f'"{key}": {json.dumps(value)}' for key, value in row) for row in block]
        objects = [f"{{{row}}}" for row in held]
        text = f"{before}{between.join(objects)}{after}".encode()
        assert repr(decoder(text, lines=lines)) == repr(ObjectDecoder()(text, lines=lines))


@settings(max_examples=examples(200), deadline=None)
@given(
    values=st.lists(OBJECTS | VALUES, min_size=1, max_size=20),
    ascii_only=st.booleans(),
    spaces=st.sampled_from(["", " "]),
    end=st.sampled_from(["\n", "\r\n", "\n\n"]),
    piece=st.sampled_from([16, 100, 1 << 20]),
)
def test_lines_are_read_alone_and_together(
    tmp_path_factory: pytest.TempPathFactory,
    values: list[object],
    ascii_only: bool,
    spaces: str,
    end: str,
    piece: int,
) -> None:
    lines = [
        json.dumps(value, ensure_ascii=ascii_only, separators=(f",{spaces}", f":{spaces}"))
        for value in values
    ]
    # A list in the first line would be one of records.
    lines = ['{"a": 1}', *lines]
    path = tmp_path_factory.mktemp("lines") / "f.jsonl"
    path.write_text("".join(f"{line}{end}" for line in lines), encoding="utf-8", newline="")
    marks = Marks()
    found = list(read_values(path, FilePart(marks=marks), chunk_chars=piece))
    step = end.count("\n")
    assert [(repr(value), line) for value, line in found] == [
        (repr(json.loads(line)), 1 + step * index) for index, line in enumerate(lines)
    ]
    for mark in marks.marks if marks.usable else ():
        assert list(read_values(path, FilePart(mark))) == found[mark.values :]


@pytest.mark.parametrize(
    "lines",
    [
        ['{"a": 1}{"b": 2}', "", '{"c": 3}'],
        ['{"a": 1}{"b": 2}', '{"c":', "3}"],
        ['{"a": 1}', '{"b": [{"x": 1},', '{"y": 2}]}', '{"c": 3}'],
        ['{"a": 1} {"b": 2}', '{"c": 3, "d":', '{"e": 4}}'],
    ],
)
def test_values_are_told_from_lines(tmp_path: Path, lines: list[str]) -> None:
    path = write(tmp_path / "f.jsonl", '{"n": 0}', *lines, "")
    decoder, text, expected = json.JSONDecoder(), path.read_text(), []
    at = 0
    while rest := text[at:].lstrip():
        start = len(text) - len(rest)
        value, at = decoder.raw_decode(text, start)
        expected.append((value, 1 + text.count("\n", 0, start)))
    assert [(value, line) for value, line in read_values(path)] == expected


@pytest.mark.parametrize(
    ("texts", "repeated"),
    [
        ([r"\\"], r'{"a": "x", "a": "y"}'),
        ([r"\\", r"\\"], r'{"a": "x", "a": "y"}'),
        ([r"\"", r"\\\"", r"\\\\"], r'{"a": "x\\", "b": 1, "a": 2}'),
        ([r"\u0022", r"\u005c"], r'{"b": 1, "a": "\u0022", "b": "\\"}'),
        ([r"\u0022", r"\u0022\u0022"], r'{"b": {"a": 1, "a": 2}}'),
    ],
)
def test_escapes_hide_no_duplicate_key(tmp_path: Path, texts: list[str], repeated: str) -> None:
    lines = [f'{{"a": "{text}"}}' for text in texts]
    whole = write(tmp_path / "whole.jsonl", *lines, "")
    assert [value for value, _ in read_values(whole)] == [json.loads(line) for line in lines]
    path = write(tmp_path / "f.jsonl", *lines, repeated, *lines, "")
    with pytest.raises(
        ArchiveError,
        match=expected_message(
            "sdk.archives.joins:line-duplicate-keys-in-one-object-2", len(lines) + 1
        ),
    ):
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
    whole = list(read_values(path, FilePart(marks=marks)))
    assert marks.usable
    assert [mark.values for mark in marks.marks] == [0, 512, 1024]
    assert Marks.of(marks.to_bytes()) == marks
    for mark in marks.marks:
        assert list(read_values(path, FilePart(mark), chunk_chars=100)) == whole[mark.values :]
    assert marks.before(1023) == marks.marks[1]


def test_long_lines_get_more_marks(tmp_path: Path) -> None:
    text = json.dumps({"t": "x" * 300_000})
    marks = Marks()
    list(read_values(write(tmp_path / "f.jsonl", *[text] * 10), FilePart(marks=marks)))
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
    assert [placed.value for placed in read_values(path, FilePart(marks=marks))] == values
    assert not marks.usable
