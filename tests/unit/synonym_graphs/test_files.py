"""Graphs from files, names and hostile text, pickles that must not be unpickled among them."""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message

from hallujudge.synonym_graphs import (
    GraphError,
    GraphFormatError,
    GraphInvalidError,
    GraphNotFoundError,
    load_graph,
    parse_graph,
    read_released_pickle,
    shipped_graphs,
    table_notes,
    validate_graph,
)

SMALL = {
    "format": "hallujudge-synonyms/1",
    "name": "small",
    "version": "3",
    "categories": [
        {"root": "cat", "forms": ["kitten", "big cat"]},
        {"root": "dog", "forms": ["puppy", "pet"]},
    ],
    "blocked": ["hot dog"],
    "reads_as": {"cat puppy": "kitten"},
}


def small(**changes: object) -> str:
    return json.dumps(SMALL | changes)


def test_shipped_graph_is_sound() -> None:
    assert "coco" in shipped_graphs()
    graph = load_graph("coco")
    assert validate_graph(graph) == ()
    assert len(graph.roots) == 80
    assert graph.label == f"coco-{graph.version}@{graph.digest[:8]}"
    assert load_graph("coco") is graph


def test_canonical_json_comes_back_the_same() -> None:
    for graph in (load_graph("coco"), parse_graph("cat,  kit\ndog", layout="table", name="t")):
        again = parse_graph(graph.to_json(), layout="json", name="again")
        assert again.to_json() == graph.to_json()
        assert again == graph
        assert hash(again) == hash(graph)


def test_digest_follows_the_content() -> None:
    one = parse_graph(small(), name="x")
    two = parse_graph(small(blocked=[]), name="x")
    assert one.digest != two.digest
    assert one != two


def test_roots_and_forms() -> None:
    graph = load_graph("coco")
    assert graph.root_of("  Hot   DOG ") == "hot dog"
    assert graph.root_of("wine glasses") == "wine glass"
    assert graph.root_of("kittens") == "cat"
    assert graph.root_of("unicorn") is None
    assert graph.root_of("") is None
    assert ("kitten", ("cat",)) in [(form, tuple(roots)) for form, roots in graph.edges]


def test_networkx_edges_lead_to_roots() -> None:
    links = parse_graph(small(), name="x").to_networkx()
    assert list(links.successors("kitten")) == ["cat"]
    assert links.edges["big cat", "cat"]["words"] == 2
    assert links.nodes["cat"]["root"] is True
    assert links.nodes["hot dog"]["blocked"] is True


def test_without_networkx_one_sentence_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(GraphError, match=r"^to_networkx\(\) needs networkx: pip install networkx$"):
        parse_graph(small(), name="x").to_networkx()


def test_ambiguous_forms_must_be_declared() -> None:
    both = [{"root": "cat", "forms": ["pet"]}, {"root": "dog", "forms": ["pet"]}]
    wrong = parse_graph(small(categories=both, reads_as={}), name="x")
    assert any("'pet'" in problem for problem in validate_graph(wrong))
    right = parse_graph(small(categories=both, reads_as={}, ambiguous=["pet"]), name="x")
    assert validate_graph(right) == ()
    assert right.roots_of("pets") == ("cat", "dog")


def test_cycle_is_named() -> None:
    ring = [{"root": "cat", "forms": ["dog"]}, {"root": "dog", "forms": ["cat"]}]
    graph = parse_graph(small(categories=ring, reads_as={}, ambiguous=["cat", "dog"]), name="x")
    assert any(p.startswith("a cycle") and "cat" in p for p in validate_graph(graph))


def test_table_keeps_raw_rows_and_the_last_row_wins() -> None:
    graph = parse_graph("cat,  kit, pet\ndog, pet\n\n", layout="auto", name="t")
    assert graph.rows == (("cat", " kit", "pet"), ("dog", "pet"))
    assert graph.root_of("pet") == "dog"
    assert validate_graph(graph) == ()
    assert "'pet'" in table_notes(graph)[0]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{", "line 1"),
        ("[" * 100_000, ""),
        ("[]", "$"),
        (small(format="other"), "$.format"),
        (small(categories=3), "$.categories"),
        (small(categories=[{"root": "cat", "forms": ["", "x"]}]), "$.categories[0].forms[0]"),
        (small(categories=[{"forms": []}]), "$.categories[0].root"),
        (small(blocked=[1]), "$.blocked[0]"),
        (small(extra=1), "$"),
        ('{"format": NaN}', ""),
        (small(name="a\x00b"), "$.name"),
        ("cat\n, kit", "line 2"),
        ("cat, \x00", "line 1"),
        ("", ""),
    ],
)
def test_hostile_text_is_refused_with_its_place(text: str, place: str) -> None:
    with pytest.raises(GraphFormatError) as caught:
        parse_graph(text, name="bad")
    assert caught.value.source == "bad"
    assert caught.value.place.startswith(place)


def test_size_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "big.txt"
    path.write_bytes(b"cat, " * (4 * 1024 * 1024))
    with pytest.raises(GraphFormatError, match="more than"):
        load_graph(path)
    with pytest.raises(GraphFormatError, match="exceed the limit"):
        parse_graph("x" * (16 * 1024 * 1024 + 1), name="big")


def test_missing_names_list_the_shipped_ones() -> None:
    for name in ("cocoo", "no/such/file.json", "x\x00y", "a" * 5000):
        with pytest.raises(GraphError, match=r"[Gg]raph"):
            load_graph(name)
    with pytest.raises(
        GraphNotFoundError, match=expected_message("metrics.framework.results:no-synonym-graph-")
    ):
        load_graph("")
    with pytest.raises(GraphNotFoundError) as caught:
        load_graph("cocoo")
    assert caught.value.value == "cocoo"
    assert "coco" in caught.value.shipped


def test_bad_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(GraphFormatError, match="directory"):
        load_graph(tmp_path)
    latin = tmp_path / "latin.txt"
    latin.write_bytes(b"cat\ncaf\xe9")
    with pytest.raises(GraphFormatError, match=r"line 2.*UTF-8"):
        load_graph(latin)
    invalid = tmp_path / "invalid.json"
    invalid.write_text(small(suppress=[{"form": "unicorn", "beside": "cat"}]), "utf-8")
    with pytest.raises(GraphInvalidError) as caught:
        load_graph(invalid)
    assert "unicorn" in caught.value.problems[0]


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
