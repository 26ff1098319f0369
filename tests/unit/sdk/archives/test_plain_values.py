"""Values of numpy, pandas, polars, pyarrow and torch at every door of the SDK."""

from __future__ import annotations

import datetime
import enum
from collections import deque
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallujudge.sdk import Client, InputOptions, Scorer, read_items
from hallujudge.sdk.archives.plain_values import is_plain, plain
from hallujudge.sdk.errors import ArchiveError
from hallujudge.sdk.harness_scores import RunningScores

ROWS: list[dict[str, Any]] = [
    {"image_id": 1, "caption": "A cat and a dog.", "objects": ["cat"]},
    {"image_id": 2, "caption": None, "objects": ["dog", "couch"]},
]
DAY = datetime.date(2026, 1, 1)


class Kind(enum.StrEnum):
    """A text that is a member of an enumeration."""

    CAT = "cat"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array(["cat", "dog"]), ["cat", "dog"]),
        (np.array([["a", "b"], ["c", "d"]], dtype=object), [["a", "b"], ["c", "d"]]),
        (np.array([np.array(["a"]), np.array(["b", "c"])], dtype=object), [["a"], ["b", "c"]]),
        (np.array(3), 3),
        (np.int64(3), 3),
        (np.float64(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("cat"), "cat"),
        (np.datetime64("NaT"), None),
        (pd.NA, None),
        (pd.NaT, None),
        (pd.Series(["cat", None], dtype="string"), ["cat", None]),
        (pd.array(["cat", pd.NA]), ["cat", None]),
        (pd.Index([1, 2]), [1, 2]),
        (pd.DataFrame({"a": [1]}), [{"a": 1}]),
        (pl.Series([["cat"], None]), [["cat"], None]),
        (pl.DataFrame({"a": [["x"]]}), [{"a": ["x"]}]),
        (pa.scalar(["cat"]), ["cat"]),
        (pa.array([{"a": 1}]), [{"a": 1}]),
        (pa.chunked_array([["cat"], ["dog"]]), ["cat", "dog"]),
        (("cat", ("dog",)), ["cat", ["dog"]]),
        ({"b", "a"}, ["a", "b"]),
        (frozenset([2, 1]), [1, 2]),
        (deque(["cat"]), ["cat"]),
        ({"cat": 1}.keys(), ["cat"]),
        ((word for word in ["cat"]), ["cat"]),
        (MappingProxyType({np.str_("a"): np.array([1])}), {"a": [1]}),
        ({np.int64(7): ("x",), (1, 2): 3}, {7: ["x"], (1, 2): 3}),
        (Kind.CAT, "cat"),
        (b"cat", b"cat"),
        (DAY, DAY),
    ],
)
def test_a_value_becomes_plain(value: object, expected: object) -> None:
    found = plain(value)
    assert (found, type(found)) == (expected, type(expected))


def test_a_tensor_becomes_plain() -> None:
    torch = pytest.importorskip("torch", reason="the matcher extra is not installed")
    assert plain(torch.tensor([1, 2])) == [1, 2]


SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)


@given(st.recursive(SCALARS, lambda part: st.lists(part) | st.dictionaries(st.text(), part)))
def test_what_is_plain_stays_as_it_is(value: object) -> None:
    assert plain(value) == value
    assert is_plain(value)
    assert not is_plain([value, DAY])


TABLES: dict[str, Callable[[], object]] = {
    "pandas": lambda: pd.DataFrame(ROWS),
    "pandas with pyarrow": lambda: pd.DataFrame(ROWS).convert_dtypes(dtype_backend="pyarrow"),
    "pandas with arrays": lambda: pd.DataFrame(
        [{**row, "objects": np.array(row["objects"])} for row in ROWS]
    ),
    "polars": lambda: pl.DataFrame(ROWS),
    "table of pyarrow": lambda: pa.Table.from_pylist(ROWS),
    "batch of pyarrow": lambda: pa.RecordBatch.from_pylist(ROWS),
    "reader of pyarrow": lambda: pa.Table.from_pylist(ROWS).to_reader(),
    "array of objects": lambda: np.array(ROWS, dtype=object),
    "rows with arrays": lambda: [{**row, "objects": np.array(row["objects"])} for row in ROWS],
}


@pytest.mark.parametrize("form", TABLES)
def test_a_table_scores_as_its_rows(form: str) -> None:
    table: Any = TABLES[form]
    names = {"1": ["cat"], "2": ["dog", "couch"]}
    items = list(read_items("chair", ROWS, names))
    assert list(read_items("chair", table(), names)) == items
    assert list(read_items("chair", ROWS, table())) == items
    assert list(read_items("chair", table(), None)) == list(read_items("chair", ROWS, None))


def test_columns_zipped_into_a_mapping_are_references() -> None:
    frame = pd.DataFrame(ROWS)
    arrays = dict(zip(frame.image_id.to_numpy(), map(np.array, frame.objects), strict=True))
    series = dict(zip(pl.DataFrame(ROWS)["image_id"], pl.DataFrame(ROWS)["objects"], strict=True))
    for references in (arrays, series):
        [first, _] = read_items("chair", ROWS, references)
        assert first.reference_objects == ("cat",)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("responses", "said"),
    [
        (pl.DataFrame(ROWS).lazy(), r"responses: a value of type LazyFrame .*collect\(\)"),
        (pl.Series(["A cat."]), r"responses: texts without ids, .* Series; .*zip\(ids, texts\)"),
        (np.array(["A cat."]), "responses: texts without ids, in a value of type ndarray"),
        (5, "responses: a value of type int holds no records"),
    ],
)
def test_what_holds_no_records_is_named(responses: Any, said: str) -> None:
    with pytest.raises(ArchiveError, match=said):
        read_items("chair", responses, None)


CATS = [
    ["cat"],
    ("cat",),
    {"cat"},
    np.array(["cat"]),
    np.array(["cat"], dtype=object),
    pd.Series(["cat"]),
    pl.Series(["cat"]),
    pa.array(["cat"]),
    pa.scalar(["cat"]),
    {"objects": np.array(["cat"])},
]


@pytest.mark.parametrize("first", range(len(CATS)))
def test_a_score_does_not_depend_on_what_was_asked_before(first: int) -> None:
    order = [*CATS[first:], *CATS[:first]]
    with Scorer("chair", scores=["chair_i"]) as scorer:
        assert [scorer(["A cat and a dog."], [one])[0].scores["chair_i"] for one in order] == (
            [0.5] * len(order)
        )


@pytest.mark.parametrize("other", [DAY, b"2026-01-01", Kind])
def test_a_reference_of_another_type_is_not_taken_for_its_text(other: object) -> None:
    with Scorer("pope", scores=["accuracy"]) as scorer:
        refused = scorer(["Yes."], [{"label": "yes", "question": other}])
        assert scorer(["Yes."], [str(other)])[0].reason == "REFERENCE_MISSING"
        [one] = scorer(["Yes."], [{"label": "yes", "question": str(other)}])
    assert (one.scores["accuracy"], len(refused)) == (1.0, 1)


def test_long_arrays_of_one_beginning_are_groups_of_their_own() -> None:
    words = [f"w{number}" for number in range(2_000)]
    others = [*words[:1_000], "cat", *words[1_001:]]
    with_arrays = RunningScores("chair", ["chair_i"])
    with_lists = RunningScores("chair", ["chair_i"])
    texts = ["A cat and a dog."] * 2
    with_arrays.update(texts, [np.array(words), np.array(others)])
    with_lists.update(texts, [words, others])
    assert with_arrays.state() == with_lists.state()


def test_ids_responses_and_options_may_be_values_of_numpy() -> None:
    with Scorer("chair", references={1: ["cat"]}) as scorer:
        for pairs in ([(np.int64(1), np.str_("A cat."))], [(1.0, pa.scalar("A cat."))]):
            [one] = scorer(pairs)  # type: ignore[arg-type]  # values that stand for texts
            assert (one.id, one.scores["chair_i"]) == ("1", 0.0)
    with Client.embedded() as client:
        assert client.normalize(pa.array(["sofa"])) == {"sofa": ("couch",)}
        counted = {"count_empty": np.bool_(True)}
        report = client.score("chair", responses={"1": ""}, references={"1": []}, options=counted)
    assert report.coverage.scored == 1


def test_own_inputs_may_hold_arrays() -> None:
    rows = [{"video": "v", "captions": '{"1": "x", "2": "y"}', "aspect": "order"}]
    given = InputOptions(own={"options": {"v": {"A": np.int64(1), "B": np.int64(2)}}})
    plain_ones = InputOptions(own={"options": {"v": {"A": 1, "B": 2}}})
    answers = [{"video": "v", "response": "A"}]
    assert list(read_items("vidhal-mcqa", answers, rows, options=given)) == list(
        read_items("vidhal-mcqa", answers, rows, options=plain_ones)
    )
