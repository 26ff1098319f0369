"""Archives behind URLs."""

from __future__ import annotations

import json
import sys

import fsspec
import pytest

from hallujudge.sdk.archives import read_items
from hallujudge.sdk.errors import ArchiveError, MissingExtraError

ROWS = b"".join(
    json.dumps({"question_id": n, "response": "Yes", "label": "yes"}).encode() + b"\n"
    for n in range(50)
)


def test_a_url_is_read(request: pytest.FixtureRequest) -> None:
    files = fsspec.filesystem("memory")
    files.pipe("/run/answers.jsonl", ROWS)
    request.addfinalizer(lambda: files.rm("/run", recursive=True))
    assert len(read_items("pope", "memory://run/answers.jsonl", None)) == 50
    files.pipe("/run/answers.jsonl", ROWS + b"{")
    with pytest.raises(ArchiveError, match=r"^memory://run/answers\.jsonl line 51: the file ends"):
        read_items("pope", "memory://run/answers.jsonl", None)


@pytest.mark.parametrize(
    "url", ["ftp://host/a.jsonl", "file:///etc/passwd", "zip://a::https://h/b.zip", "shell://ls"]
)
def test_other_protocols_are_refused(url: str) -> None:
    with pytest.raises(ArchiveError, match="are not read; use one of"):
        read_items("pope", url, None)


def test_without_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtraError, match="reading URLs needs the extra remote"):
        read_items("pope", "https://host/a.jsonl", None)
