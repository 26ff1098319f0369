"""Pickles of released graphs, and pickles that must not be unpickled."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from hallujudge.synonym_graphs import (
    GraphFormatError,
    load_graph,
    read_released_pickle,
)

WORDS = {"couch": {"": ["sofa"]}, "pick": {"": ["take"], "up": ["lift", "take"]}}


class Call:
    """Pickles as a call of a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._call = (function, arguments)

    def __reduce__(self) -> Any:
        return self._call


@pytest.mark.parametrize("protocol", range(6))
def test_a_hostile_pickle_is_refused_by_name_and_runs_nothing(
    tmp_path: Path, protocol: int
) -> None:
    witness = tmp_path / "ran"
    payload = Call(os.system, f"touch {witness}")
    for value in (payload, {"dog": {"": [payload]}}, [payload]):
        path = tmp_path / "graph.pkl"
        path.write_bytes(pickle.dumps(value, protocol=protocol))
        with pytest.raises(GraphFormatError, match=r"system|refused|opcode"):
            load_graph(path)
    assert not witness.exists()


@pytest.mark.parametrize("name", ["posix system", "builtins eval", "__main__ Other", "os popen"])
def test_names_are_refused_by_name(name: str) -> None:
    module, function = name.split()
    data = b"\x80\x02c" + f"{module}\n{function}\n".encode() + b"."
    with pytest.raises(GraphFormatError, match=f"{module}.{function}"):
        read_released_pickle(data, source="x.pkl")


def test_a_plain_dict_is_read_at_every_protocol() -> None:
    for protocol in range(6):
        assert read_released_pickle(pickle.dumps(WORDS, protocol=protocol), source="x") == WORDS


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\x80", b"\x80\x04", b"\x80\x04.", b"\x80\x04N.", b"\x80\x04}}s.", b"\x80\x04e.",
        b"\x80\x04h\x05.", pickle.dumps([1, 2]), pickle.dumps({"a": 1}), pickle.dumps({1: {}}),
        pickle.dumps({"a": {"": [1]}}), pickle.dumps({"a": {"": ["b"]}})[:-3], os.urandom(200),
    ],
)  # fmt: skip
def test_other_pickles_are_refused(data: bytes) -> None:
    with pytest.raises(GraphFormatError):
        read_released_pickle(data, source="x.pkl")


def test_a_pickle_that_blows_up_is_refused() -> None:
    roots = [f"r{i}" for i in range(1000)]
    ways = {str(i): roots for i in range(1000)}
    with pytest.raises(GraphFormatError, match="more than"):
        read_released_pickle(pickle.dumps({str(i): ways for i in range(1000)}), source="x.pkl")
