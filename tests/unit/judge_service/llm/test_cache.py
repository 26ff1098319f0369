"""The verdict cache as a file."""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest

from hallujudge.judge_service.errors import InvalidInputError, OutputError
from hallujudge.judge_service.llm.cache import CACHE_FORMAT, VerdictCache, cache_key

KEY = cache_key({"a": 1})


def test_what_is_put_is_got_by_others_too(tmp_path: Path) -> None:
    one, two = VerdictCache(tmp_path / "c"), VerdictCache(tmp_path / "c")
    one.put(
        KEY, "m", {"answers": {"0": {"choice": "supported", "margin": 0.1, "fallback_history": []}}}
    )
    assert two.get(KEY) == {
        "answers": {"0": {"choice": "supported", "margin": 0.1, "fallback_history": []}}
    }
    assert two.get(cache_key({"a": 2})) is None
    assert (len(two), two.hits, two.misses) == (1, 1, 1)
    one.close()
    two.close()


def test_a_file_that_many_make_at_once(tmp_path: Path) -> None:
    for number in range(10):
        gate = Barrier(8)

        def opened(path: Path, gate: Barrier = gate) -> int:
            gate.wait()
            with closing(VerdictCache(path)) as cache:
                return len(cache)

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(opened, [tmp_path / f"c{number}"] * 8)) == [0] * 8


def test_keys_do_not_depend_on_order_and_do_on_every_value() -> None:
    assert cache_key({"a": 1, "b": [1.0, "x"]}) == cache_key({"b": [1.0, "x"], "a": 1})
    assert len({cache_key({"a": value}) for value in (1, 1.5, "1", None, [1], "é", "e\u0301")}) == 7


def test_export_and_import(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "c")
    for number in range(5):
        cache.put(cache_key({"n": number}), "m", {"answers": {}, "n": number})
    assert cache.export(tmp_path / "out.jsonl") == 5
    other = VerdictCache(tmp_path / "d")
    other.put(cache_key({"n": 0}), "m", {"answers": {}, "n": "mine"})
    assert other.import_(tmp_path / "out.jsonl") == 4
    assert other.import_(tmp_path / "out.jsonl") == 0
    assert other.get(cache_key({"n": 0})) == {"answers": {}, "n": "mine"}
    again = VerdictCache(tmp_path / "e")
    again.import_(tmp_path / "out.jsonl")
    again.export(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()
    with pytest.raises(OutputError):
        again.export(tmp_path / "absent" / "x")
    for one in (cache, other, again):
        one.close()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}\n",
        "not json\n",
        '{"format":"other","version":1}\n',
        f'{{"format":"hallujudge-verdicts","version":{CACHE_FORMAT + 1}}}\n',
        '{"format":"hallujudge-verdicts","version":1}\n{"key":"00","judge":"m","record":{}}\n',
        '{"format":"hallujudge-verdicts","version":1}\n[1]\n',
        '{"format":"hallujudge-verdicts","version":1}\n'
        + json.dumps({"key": KEY, "judge": "m", "record": {}})
        + '\n{"key":"'
        + "zz" * 32
        + '","judge":"m","record":{}}\n',
    ],
)
def test_a_bad_export_is_refused_as_a_whole(tmp_path: Path, text: str) -> None:
    (tmp_path / "x").write_text(text)
    cache = VerdictCache(tmp_path / "c")
    with pytest.raises(InvalidInputError, match="is no export of a verdict cache") as caught:
        cache.import_(tmp_path / "x")
    assert caught.value.reason == "CACHE_INVALID"
    assert len(cache) == 0
    cache.close()


def refused(path: Path, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words) as caught:
        VerdictCache(path)
    assert str(path) in str(caught.value)


def test_files_that_are_no_cache(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello, I am a text file that is long enough to be read\n" * 50)
    refused(tmp_path / "text", "damaged.*start anew")
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE t (a)")
    other.close()
    refused(tmp_path / "other", "something else")
    refused(tmp_path / "absent" / "c", "folder exists")


def test_a_file_of_a_newer_release(tmp_path: Path) -> None:
    VerdictCache(tmp_path / "c").close()
    newer = sqlite3.connect(tmp_path / "c")
    newer.execute(f"PRAGMA user_version = {CACHE_FORMAT + 1}")
    newer.close()
    refused(tmp_path / "c", "upgrade hallujudge")


def test_a_damaged_file(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "c")
    for number in range(500):
        cache.put(cache_key({"n": number}), "m", {"answers": {}, "pad": "x" * 200})
    cache.close()
    data = bytearray((tmp_path / "c").read_bytes())
    for start in range(4096, len(data), 4096):
        data[start : start + 2048] = b"\xff" * 2048
    (tmp_path / "c").write_bytes(data)
    with pytest.raises(InvalidInputError, match="damaged"):
        _read_all(tmp_path / "c")


def _read_all(path: Path) -> None:
    with closing(VerdictCache(path)) as cache:
        for number in range(500):
            cache.get(cache_key({"n": number}))


def test_a_record_that_is_not_json(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "c")
    with closing(sqlite3.connect(tmp_path / "c")) as other, other:
        other.execute("INSERT INTO answers VALUES (?, 'm', 'oops')", (bytes.fromhex(KEY),))
    with pytest.raises(InvalidInputError, match="not JSON"):
        cache.get(KEY)
    cache.close()
