"""Files in UTF-16, as Windows PowerShell's ``>`` and Excel's "Unicode Text" write them."""

from __future__ import annotations

import csv
import gzip
import io
import json
from copy import copy
from pathlib import Path

import pytest
from support.messages import expected_message

from hallujudge.metrics import AnswersItem
from hallujudge.sdk import Client
from hallujudge.sdk.archives import inspect_archives, read_items
from hallujudge.sdk.archives.local_files import OpenPath, as_path, is_plain, open_binary, read_bytes
from hallujudge.sdk.errors import ArchiveError

# Enough for several pieces of the file; the characters take one, two, three and four bytes.
ROWS = [
    {
        "question_id": str(number),
        "response": f"Yes, {'é猫😀' * 40}\nno dog",
        "label": ("yes", "no")[number % 2],
    }
    for number in range(400)
]
MARKS = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}


def table(separator: str) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(ROWS[0]), delimiter=separator)
    writer.writeheader()
    writer.writerows(ROWS)
    return text.getvalue()


TEXTS = {
    "rows.json": json.dumps(ROWS, ensure_ascii=False, indent=1),
    "rows.jsonl": "".join(json.dumps(row, ensure_ascii=False) + "\r\n" for row in ROWS),
    "rows.csv": table(","),
    "rows.tsv": table("\t"),
    "Unicode Text.txt": table("\t"),
}


def items(path: Path) -> list[AnswersItem]:
    return [item for item in read_items("pope", path, None) if isinstance(item, AnswersItem)]


def in_utf16(text: str, encoding: str = "utf-16-le") -> bytes:
    return MARKS[encoding] + text.encode(encoding)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("encoding", MARKS)
@pytest.mark.parametrize("name", TEXTS)
def test_utf16_is_read_as_utf8_is(tmp_path: Path, name: str, encoding: str, packed: bool) -> None:
    plain = tmp_path / name
    plain.write_bytes(TEXTS[name].encode())
    wanted = items(plain)
    data = in_utf16(TEXTS[name], encoding)
    plain.write_bytes(gzip.compress(data) if packed else data)
    assert items(plain) == wanted
    assert [item.response for item in wanted] == [row["response"] for row in ROWS]


@pytest.mark.parametrize("kept", [-1, -3, 501])
def test_cut_utf16_is_refused(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(in_utf16('{"question_id": 1, "response": "yes 😀"}' * 20)[:kept])
    with pytest.raises(ArchiveError, match=r"rows\.jsonl.*(cut off|truncated)"):
        items(path)


def test_utf32_is_not_taken_for_utf16(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_bytes(json.dumps(ROWS).encode("utf-32"))
    with pytest.raises(
        ArchiveError, match=expected_message("sdk.archives.formats:utf-text-save-it-as-utf")
    ):
        items(path)


def test_inspection_reads_utf16(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_bytes(in_utf16(TEXTS["rows.tsv"]))
    (summary,) = inspect_archives([path])
    assert (summary.format, summary.records, summary.problem) == ("tsv", 400, "")


def test_an_open_path_has_readers_at_places_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"0123456789" * 50_000)
    opened = OpenPath(path)
    with open_binary(opened) as one, open_binary(opened) as other:
        assert is_plain(one)
        other.seek(200_001)
        assert (one.read(3), other.read(3), one.read(3)) == (b"012", b"123", b"345")
        assert one.read() == b"6789" + b"0123456789" * 49_999
    with open_binary(opened) as again:
        assert again.read(2) == b"01"


def test_an_open_path_stays_with_the_file_that_was_opened_first(tmp_path: Path) -> None:
    path, other = tmp_path / "f.jsonl", tmp_path / "other.jsonl"
    path.write_text("checked")
    other.write_text("another")
    opened = OpenPath(path)
    assert read_bytes(opened) == b"checked"
    other.replace(path)
    assert read_bytes(opened) == b"checked"
    assert read_bytes(as_path(opened)) == b"checked"
    sent = copy(opened)
    assert (sent, type(sent)) == (path, type(path)), "another process opens the file by itself"
    assert read_bytes(sent) == b"another"


def test_an_open_path_is_refused_as_others_are(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        refused = []
        for each in (path, OpenPath(path)):
            with pytest.raises(ArchiveError) as error:
                read_bytes(each)
            refused.append(str(error.value))
        assert refused[0] == refused[1]


def is_open(path: Path) -> bool:
    """Return whether this process has the file open."""
    found = Path("/proc/self/fd").iterdir()
    return path.resolve() in {each.resolve() for each in found}


def test_files_are_closed_while_their_report_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(TEXTS["rows.jsonl"])
    opened = OpenPath(path)
    with opened.open("rb") as file:
        assert is_open(path)
        del opened
        assert file.read(1) == b"{"
    del file
    assert not is_open(path)
    with Client.embedded() as client:
        report = client.score("pope", responses=path)
    assert not is_open(path)
    assert report.coverage.items == len(ROWS)
