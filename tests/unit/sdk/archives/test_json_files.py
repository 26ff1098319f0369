"""JSON archives: values read in pieces, nested records, duplicate keys, damaged files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.messages import expected_message

from hallujudge.metrics import ChairItem
from hallujudge.metrics.framework.json_values import well_formed
from hallujudge.sdk.archives import InputOptions, read_items
from hallujudge.sdk.archives.json_files import named, read_json, read_values
from hallujudge.sdk.archives.local_files import OpenPath
from hallujudge.sdk.archives.plain_values import plain
from hallujudge.sdk.errors import ArchiveError

REFERENCES = {"1": ["dog"], "2": ["cat"]}


def captions(
    tmp_path: Path, text: str, references: object = None, options: InputOptions | None = None
) -> dict[str, str | None]:
    """Id -> caption, as a file of this text is read."""
    path = tmp_path / "captions.jsonl"
    path.write_text(text, encoding="utf-8")
    known = REFERENCES if references is None else references
    items = read_items("chair", path, known, options=options)  # type: ignore[arg-type]  # of any shape
    return {item.id: item.response for item in items if isinstance(item, ChairItem)}


def objects(tmp_path: Path, text: str) -> dict[str, tuple[str, ...] | None]:
    """Id -> reference objects, as a file of this text is read."""
    path = tmp_path / "references.json"
    path.write_text(text, encoding="utf-8")
    items = read_items("chair", {"1": "a", "2": "b"}, path)
    return {item.id: item.reference_objects for item in items if isinstance(item, ChairItem)}


@pytest.mark.parametrize("more", ['"annotations": []', '"data": {}', '"sentences": ["A dog."]'])
def test_a_record_that_contains_a_list_is_a_record(tmp_path: Path, more: str) -> None:
    text = "".join(f'{{"image_id": {n}, "caption": "c{n}", {more}}}\n' for n in (1, 2))
    assert captions(tmp_path, text) == {"1": "c1", "2": "c2"}


def test_a_record_that_contains_records_is_a_record(tmp_path: Path) -> None:
    rows = [
        {"image_id": n, "caption": f"c{n}", "annotations": [{"image_id": 9, "caption": "gold"}]}
        for n in (1, 2)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    assert captions(tmp_path, text) == {"1": "c1", "2": "c2"}


@pytest.mark.parametrize(
    "text",
    [
        '{"imgToEval": {"1": {"caption": "a"}, "1": {"caption": "b"}}}',
        '{"1": "a", "1": "b"}',
        '{"image_id": 1, "image_id": 2, "caption": "a"}',
    ],
)
def test_a_duplicate_key_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.archives.joins:line-duplicate-keys-in-image-id-keep"),
    ):
        captions(tmp_path, text)


def test_keys_that_stand_twice_are_named_up_to_ten(tmp_path: Path) -> None:
    text = "{" + ", ".join(f'"{n}": ["dog"]' for n in [*range(30), *range(12)]) + "}"
    with pytest.raises(ArchiveError, match="0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"):
        objects(tmp_path, text)


def test_an_endless_number_is_an_error_without_traceback(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"line 2.*digits"):
        captions(
            tmp_path,
            '{"image_id": 1, "caption": "a"}\n{"image_id": ' + "9" * 5000 + ', "caption": "a"}',
        )


def test_a_long_text_as_a_place_in_the_id_map(tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text("[1, 2]")
    options = InputOptions(own={"id_map": tmp_path / "map.json"})
    row = {"question_id": "9" * 5000, "text": "a"}
    with pytest.raises(
        ArchiveError, match=expected_message("sdk.archives.chair:not-an-entry-of-the-id-map")
    ):
        captions(tmp_path, json.dumps(row), options=options)


def test_references_in_several_objects_are_all_read(tmp_path: Path) -> None:
    assert objects(tmp_path, '{"1": ["dog"]}\n{"2": ["cat"]}') == {"1": ("dog",), "2": ("cat",)}


def test_text_after_the_references_is_found(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="line 1"):
        objects(tmp_path, '{"1": ["dog"], "2": []} garbage')
    with pytest.raises(
        ArchiveError,
        match=expected_message(
            "sdk.archives.chair_references:duplicate-image-ids-in-the-references-2"
        ),
    ):
        objects(tmp_path, '{"1": ["dog"], "2": []}\n{"2": ["cat"]}')


def test_references_that_are_null_are_named(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"image '2'.*found null"):
        objects(tmp_path, '{"1": ["dog"], "2": null}')


def test_a_message_does_not_list_every_key(tmp_path: Path) -> None:
    row = {f"key{n}": 1 for n in range(1000)}
    with pytest.raises(ArchiveError, match="and 990 more") as caught:
        captions(tmp_path, json.dumps(row))
    assert len(str(caught.value)) < 500


def test_a_pipe_is_refused_before_half_of_it_is_lost(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    try:
        os.write(writer, b'{"image_id": 1, "caption": "a"}\n')
        os.close(writer)
        with pytest.raises(
            ArchiveError, match=expected_message("sdk.archives.local_files:pipe-save-it-to-file")
        ):
            read_items("chair", f"/dev/fd/{reader}", REFERENCES)
    finally:
        os.close(reader)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.lists(json_values, min_size=1, max_size=6),
    st.sampled_from(["list", "lines", "indented"]),
    st.integers(min_value=1, max_value=40),
)
def test_reading_in_pieces_equals_reading_whole(
    tmp_path_factory: pytest.TempPathFactory, values: list[object], layout: str, chunk: int
) -> None:
    path = tmp_path_factory.mktemp("json") / "f"
    indent = 2 if layout == "indented" else None
    texts = [json.dumps(value, indent=indent, ensure_ascii=False) for value in values]
    # A top-level list in a run of values would be taken for the archive's own list.
    if layout != "list":
        texts = [json.dumps({"v": value}, indent=indent) for value in values]
    whole = f"[{','.join(texts)}]" if layout == "list" else "\n".join(texts)
    path.write_text(whole, encoding="utf-8", errors="surrogatepass", newline="")
    found = [placed.value for placed in read_values(path, chunk_chars=chunk)]
    assert found == (values if layout == "list" else [{"v": value} for value in values])


rows = st.dictionaries(
    st.text(st.sampled_from('a}, {"\\\n'), max_size=5),
    st.text(st.sampled_from('b}, {[]"\\\n'), max_size=8) | json_values,
    max_size=3,
)


@given(
    st.lists(rows | json_values, min_size=1, max_size=12),
    st.lists(st.sampled_from([", ", ",", ",\n", " , "]), min_size=12, max_size=12),
    st.sampled_from([7, 300, 1 << 20]),
)
def test_values_of_a_list_are_read_alone_and_together(
    tmp_path_factory: pytest.TempPathFactory, values: list[object], gaps: list[str], chunk: int
) -> None:
    path = tmp_path_factory.mktemp("json") / "f"
    text, expected = "[", []
    for value, gap in zip(values, gaps, strict=False):
        expected.append((repr(value), 1 + text.count("\n")))
        text += json.dumps(value) + gap
    path.write_text(text.rstrip(", \n") + "]", encoding="utf-8", newline="")
    found = [(repr(value), line) for value, line in read_values(path, chunk_chars=chunk)]
    assert found == expected


@pytest.mark.parametrize("chunk", [24, 1 << 20])
@pytest.mark.parametrize(
    "fault", ['{"a": 3, "a": 4}', '{"a": "}, {", "b": "\\"", "a": 4}', '{"a": 3]', "{a}"]
)
def test_what_precedes_a_fault_in_a_list_is_read(tmp_path: Path, fault: str, chunk: int) -> None:
    path = tmp_path / "f.json"
    path.write_text(f'[\n{{"a": 1}}, {{"a": 2}}, {fault}, {{"a": 5}}, {{"a": 6}}]')
    found: list[object] = []
    with pytest.raises(ArchiveError, match="line 2"):
        found.extend(placed.value for placed in read_values(path, chunk_chars=chunk))
    assert found == [{"a": 1}, {"a": 2}]


@given(st.integers(min_value=1, max_value=60), st.integers(min_value=1, max_value=30))
def test_a_cut_archive_is_always_noticed(
    tmp_path_factory: pytest.TempPathFactory, cut: int, chunk: int
) -> None:
    path = tmp_path_factory.mktemp("json") / "f"
    whole = json.dumps([{"a": "xé", "b": [1, True, None]}, {"c": -2.5e3}, "end"])
    path.write_text(whole[: min(cut, len(whole) - 1)])
    with pytest.raises(ArchiveError, match="line 1"):
        list(read_values(path, chunk_chars=chunk))


def test_long_values_are_named_fewer_at_a_time() -> None:
    assert named(["a" * 100, "b" * 100, "c"]) == f"{'a' * 100} and 2 more"
    assert named(["a" * 500]) == "a" * 500
    assert named([]) == ""


@pytest.mark.parametrize(
    "text", ['\n{"a": [1, "}, {"], "b": {"c": "\\""}}\n', '{"a": 1}\n{"a": 2}']
)
@pytest.mark.parametrize("chunk", [3, 1 << 20])
def test_a_file_of_one_long_value_is_decoded_once(tmp_path: Path, text: str, chunk: int) -> None:
    path = tmp_path / "f.json"
    path.write_text(text)
    alone = [placed for _ in range(2) for placed in read_values(path, chunk_chars=chunk)]
    opened = OpenPath(path)
    found = [placed for _ in range(2) for placed in read_values(opened, chunk_chars=chunk)]
    assert found == alone
    is_long = chunk < len(text) and len(found) == 2
    assert (found[0].value is found[-1].value) == is_long
    path.write_text('{"other": 1}')
    assert [value for value, _ in read_values(path, chunk_chars=chunk)] == [{"other": 1}]


def test_a_long_value_with_duplicate_keys_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text('{"first": {"a": 1, "a": 2}, "second": "a long text"}')
    with pytest.raises(ArchiveError, match="a"):
        list(read_values(path, chunk_chars=8))


HALVES = st.text(st.sampled_from("aé\ud83d\ude00"), max_size=4)
WITH_HALVES = st.recursive(
    st.none() | st.integers() | HALVES,
    lambda values: st.lists(values, max_size=3) | st.fixed_dictionaries({"a": values, "b": values}),
    max_leaves=8,
)


@given(st.lists(WITH_HALVES, min_size=1, max_size=4), HALVES)
def test_half_characters_are_replaced_wherever_they_are(
    tmp_path_factory: pytest.TempPathFactory, values: list[object], key: str
) -> None:
    folder = tmp_path_factory.mktemp("halves")
    values = [{f"key {key}": value} for value in values]
    lines, whole = folder / "lines.jsonl", folder / "whole.json"
    lines.write_text("\n".join(map(json.dumps, values)))
    whole.write_text(json.dumps(values))
    expected = json.loads(well_formed(json.dumps(values, ensure_ascii=False)))
    for path in (lines, whole):
        assert [value for value, _ in read_values(path)] == expected
    assert read_json(whole) == expected
    assert plain(values) == expected


def test_keys_that_are_equal_once_half_characters_are_replaced_are_duplicates(
    tmp_path: Path,
) -> None:
    path = tmp_path / "references.json"
    path.write_text(r'{"1\ud800": ["dog"], "1\ud801": ["cat"]}')
    with pytest.raises(ArchiveError, match="duplicate keys in one object"):
        read_json(path)
