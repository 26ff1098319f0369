"""Tables, gzip and DataFrames as archives, for every metric."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from openpyxl import Workbook
from support.messages import expected_message

from hallujudge.sdk import Client, InputOptions, read_items
from hallujudge.sdk.errors import ArchiveError, InvalidInputError

ROWS = [
    {"image_id": "1", "caption": "A dog on a couch, with a cat."},
    {"image_id": "2", "caption": "Two\nlines about a cat."},
]
OBJECTS = {"1": ["dog", "couch"], "2": ["cat"]}


def as_csv(path: Path, rows: list[dict[str, str]], separator: str = ",") -> None:
    pd.DataFrame(rows).to_csv(path, index=False, sep=separator)


def as_xlsx(path: Path, rows: list[dict[str, str]]) -> None:
    book = Workbook()
    assert book.active is not None
    book.active.append(list(rows[0]))
    for row in rows:
        book.active.append(list(row.values()))
    book.save(path)


def as_json_lines(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


WRITERS: dict[str, Callable[[Path, list[dict[str, str]]], None]] = {
    "rows.csv": as_csv,
    "rows.tsv": lambda path, rows: as_csv(path, rows, "\t"),
    "rows.xlsx": as_xlsx,
    "rows.jsonl": as_json_lines,
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", WRITERS)
def test_every_file_type_holds_the_same_items(tmp_path: Path, name: str, packed: bool) -> None:
    path = tmp_path / name
    WRITERS[name](path, ROWS)
    if packed:
        data = path.read_bytes()
        path = path.with_name(f"{name}.gz")
        path.write_bytes(gzip.compress(data))
    items = read_items("chair", path, OBJECTS)
    assert list(items) == list(read_items("chair", ROWS, OBJECTS))
    assert len(items) == 2


METRICS: dict[str, tuple[list[dict[str, str]], object]] = {
    "chair": ([{"image_id": "1", "caption": "A dog.", "objects": '["dog", "cat"]'}], None),
    "pope": ([{"question_id": "7", "answer": "Yes.", "label": "yes", "image": "a.jpg"}], None),
    "tri-he": (
        [{"image_id": "1", "question": "?", "response": "A dog.", "triplets": '[["a","b","c"]]'}],
        None,
    ),
    "mementos": ([{"image_name": "a", "description": "A dog."}], {"a": "A dog runs."}),
    "vidhal-mcqa": (
        [{"video": "v", "response": "A"}],
        [{"video": "v", "captions": '{"1": "x", "2": "y"}', "aspect": "order"}],
    ),
    "infact": (
        [
            {
                "question_id": "1",
                "operator": "base",
                "answer": "A",
                "label": "A",
                "options": '["x", "y"]',
                "confidence": "0.5",
                "dimension": "factuality",
            }
        ],
        None,
    ),
}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", ["rows.csv", "rows.xlsx"])
def test_every_metric_reads_tables(tmp_path: Path, metric: str, name: str) -> None:
    rows, references = METRICS[metric]
    path = tmp_path / name
    WRITERS[name](path, rows)
    options = InputOptions(
        own={"options": {"v": {"A": "1", "B": "2"}}} if "vidhal" in metric else {}
    )
    from_table = list(read_items(metric, path, references, options=options))  # type: ignore[arg-type]  # of several types
    plain = [
        {
            key: json.loads(value) if value[:1] in "[{" or key == "confidence" else value
            for key, value in row.items()
        }
        for row in rows
    ]
    assert from_table == list(read_items(metric, plain, references, options=options))  # type: ignore[arg-type]
    assert len(from_table) == 1


MAPPINGS: list[dict[str, object]] = [
    {"image_id": 1, "caption": ROWS[0]["caption"]},
    {"image_id": 2, "caption": None},
]


CONTAINERS: dict[str, Callable[[], Iterable[object]]] = {
    "DataFrame": lambda: pd.DataFrame([MAPPINGS[0], {"image_id": 2}]),
    "list": lambda: MAPPINGS,
    "tuple": lambda: tuple(MAPPINGS),
    "generator": lambda: (row for row in MAPPINGS),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_python_containers_are_archives(kind: str) -> None:
    items = list(read_items("chair", CONTAINERS[kind](), {"1": {"couch", "dog"}, "2": ["cat"]}))
    assert [(item.id, item.response) for item in items] == [  # type: ignore[attr-defined]
        ("1", ROWS[0]["caption"]),
        ("2", None),
    ]
    assert items[0].reference_objects == ("couch", "dog")  # type: ignore[attr-defined]


def test_a_set_of_objects_scores_like_a_list() -> None:
    with Client.embedded() as client:
        scores = [
            client.score("chair", responses={"1": "A dog and a cat."}, references={"1": objects})
            for objects in (["dog", "couch"], {"dog", "couch"}, (o for o in ("dog", "couch")))
        ]
    assert [report.chair_i for report in scores] == [0.5] * 3


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.csv", b"", "a.csv: the file is empty"),
        ("a.csv", b"id,id\n1,2\n", "must name every column once; found id, id"),
        ("a.csv", b"image_id,caption\n1,a,b\n", "a.csv line 2: 3 columns, but the header has 2"),
        ("a.csv", b"sep=;\nimage_id;caption\n1;a;b\n", "a.csv line 3: 3 columns, but the header"),
        ("a.csv", b'sep=;\nimage_id;caption\n1;"a"b\n', "a.csv line 3: not CSV"),
        ("a.xlsx", b"PK\x03\x04junk", "a.xlsx: not an XLSX workbook"),
        ("a.jsonl.gz", b"\x1f\x8b\x08\x00cut", "a.jsonl.gz: the gzip file is damaged or cut off"),
    ],
)
def test_broken_tables_are_refused_by_name(
    tmp_path: Path, name: str, data: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ArchiveError) as caught:
        read_items("chair", tmp_path / name, OBJECTS)
    assert said in str(caught.value)


@pytest.mark.parametrize("told", ["sep=;", '"sep=;"\r', "sep=;\r"])
def test_a_line_with_the_separator_may_stand_first(tmp_path: Path, told: str) -> None:
    (tmp_path / "a.csv").write_bytes(f"{told}\nimage_id;caption\n1;A dog, a cat\n".encode())
    items = read_items("chair", tmp_path / "a.csv", OBJECTS)
    assert [(item.id, item.response) for item in items] == [("1", "A dog, a cat")]  # type: ignore[attr-defined]


def test_a_table_of_a_header_alone_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("image_id,caption\n")
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.archives.readers:csv-no-records-the-file-has-nothing"),
    ):
        read_items("chair", tmp_path / "a.csv", OBJECTS)


def test_cells_that_excel_may_have_cut_are_noted(tmp_path: Path) -> None:
    as_xlsx(tmp_path / "a.xlsx", [{"image_id": "1", "caption": "x" * 32_767}])
    (note,) = read_items("chair", tmp_path / "a.xlsx", {"1": ["dog"]}).notes
    assert "row 2" in note
    assert "cuts texts off" in note


@pytest.fixture
def new_process() -> Iterator[None]:
    """Python's own limit of cells, which a reader raises for the whole process."""
    before = csv.field_size_limit(131_072)
    yield
    csv.field_size_limit(before)


def captioned(path: Path, size: int) -> Path:
    path.write_text(f"image_id,caption\n1,{'x' * size}\n")
    return path


@pytest.mark.usefixtures("new_process")
def test_cells_of_csv_are_read_up_to_16_mib(tmp_path: Path) -> None:
    path = captioned(tmp_path / "a.csv", 1 << 24)
    (item,) = read_items("chair", path, {"1": ["dog"]})
    assert len(item.response) == 1 << 24  # type: ignore[attr-defined]  # chair
    with pytest.raises(ArchiveError, match=r"a\.csv line 2: not CSV: field larger than"):
        read_items("chair", captioned(path, (1 << 24) + 1), {"1": ["dog"]})


@pytest.mark.usefixtures("new_process")
def test_a_higher_limit_of_a_users_program_stays(tmp_path: Path) -> None:
    csv.field_size_limit(1 << 25)
    read_items("chair", captioned(tmp_path / "a.csv", 10), {"1": ["dog"]})
    assert csv.field_size_limit() == 1 << 25


LAYOUTS: list[tuple[str, Mapping[str, object], str]] = [
    (
        "chair",
        {"doc_id": 1, "target": "x", "filtered_resps": ["no"], "pope_accuracy": {"score": 1}},
        "is an lmms-eval sample file of task POPE; use `hallujudge score pope --responses ",
    ),
    (
        "chair",
        {"id": 1, "outcome": "scored", "scores": {}, "evidence": {}, "group_id": "1"},
        "is an items.jsonl that hallujudge score wrote",
    ),
    ("mementos", {"video": "v", "captions": {}, "aspect": "a"}, "is VidHal's annotations"),
    (
        "chair",
        {"id": 1, "nouns": ["dog"]},
        "is AMBER's nouns of descriptions: give it with InputOptions(own=dict(nouns=…)), beside "
        "answers",
    ),
    (
        "tri-he",
        {"question_id": "1", "operator": "base"},
        "is a file of INFACT's answers; use `hallujudge score infact --responses ",
    ),
]


@pytest.mark.parametrize(("metric", "row", "said"), LAYOUTS)
def test_a_wrong_layout_is_named(
    tmp_path: Path, metric: str, row: Mapping[str, object], said: str
) -> None:
    path = tmp_path / "given.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(ArchiveError) as caught:
        read_items(metric, path, {"1": ["dog"]})
    assert f"given.jsonl {said}" in str(caught.value)


def test_lmms_eval_samples_of_chair_bring_their_objects(tmp_path: Path) -> None:
    row = {
        "doc_id": 0,
        "target": "",
        "filtered_resps": ["A dog."],
        "coco_cap_chair_i": {"answer": ["dog", "cat"], "pred": ["dog"], "image_id": 42},
    }
    path = tmp_path / "samples.jsonl"
    path.write_text(json.dumps(row) + "\n")
    (item,) = read_items("chair", path, None)
    assert (item.id, item.response, item.reference_objects) == (  # type: ignore[attr-defined]
        "42",
        "A dog.",
        ("dog", "cat"),
    )


def test_lists_as_pandas_prints_them_are_read(tmp_path: Path) -> None:
    path = tmp_path / "captions.csv"
    rows = [{"image_id": 1, "caption": "A dog.", "objects": ["dining table", "chef's knife"]}]
    pd.DataFrame(rows).to_csv(path, index=False)
    (item,) = read_items("chair", path, None)
    assert item.reference_objects == ("dining table", "chef's knife")  # type: ignore[attr-defined]


@pytest.mark.parametrize("cell", ["['dog' 'cat']", "['dog', cat]", "[__import__('os')]", "[" * 999])
def test_what_is_not_a_list_as_python_prints_it_is_refused(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "captions.csv"
    pd.DataFrame([{"image_id": 1, "caption": "A dog.", "objects": cell}]).to_csv(path, index=False)
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.archives.chair_references:expected-list-of-object-names-found"),
    ):
        read_items("chair", path, None)


@pytest.mark.filterwarnings("always")
def test_backslashes_in_a_cell_warn_nobody(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    path = tmp_path / "captions.csv"
    cell = r"['a\dog']"
    pd.DataFrame([{"image_id": 1, "caption": "A dog.", "objects": cell}]).to_csv(path, index=False)
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.archives.chair_references:expected-list-of-object-names-found"),
    ):
        read_items("chair", path, None)
    assert not [one for one in recwarn if "escape" in str(one.message)]


TEXTS = {
    "gb18030": "图中有一只猫。",
    "big5": "圖中有一隻貓。",
    "shift_jis": "猫がいます。",
    "euc_kr": "고양이가 있다.",
    "cp1251": "На фото кот.",
    "cp1252": "A café with a cat.",
}
CATS = {"1": ["cat"], "2": ["cat"]}


def table(path: Path, text: str, encoding: str) -> Path:
    path.write_bytes(f"image_id,caption\n1,{text}\n2,A cat.\n".encode(encoding))
    return path


def responses(path: Path | str, encoding: str = "", references: Any = CATS) -> list[Any]:
    options = InputOptions(encoding=encoding)
    return [
        getattr(i, "response", "") for i in read_items("chair", path, references, options=options)
    ]


@pytest.mark.parametrize("encoding", TEXTS)
def test_a_table_is_refused_with_the_codes_that_fit_it(tmp_path: Path, encoding: str) -> None:
    text = TEXTS[encoding]
    path = table(tmp_path / "a.csv", text, encoding)
    with pytest.raises(ArchiveError) as caught:
        responses(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: line 2 is not UTF-8: ")
    assert f"{encoding} reads '{text[text.index(first_other(text)) :][:4]}" in said
    assert expected_message("sdk.archives.table_files:name-its-code") in said
    assert responses(path, encoding) == [text, "A cat."]


def first_other(text: str) -> str:
    return next(character for character in text if not character.isascii())


def test_json_is_refused_and_read_in_its_code(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    row = {"image_id": 1, "caption": TEXTS["gb18030"]}
    path.write_bytes(json.dumps(row, ensure_ascii=False).encode("gb18030"))
    with pytest.raises(ArchiveError) as caught:
        responses(path)
    assert expected_message("sdk.archives.table_files:or-name-its-code") in str(caught.value)
    assert responses(path, "gb18030") == [TEXTS["gb18030"]]


def test_references_and_folders_are_read_in_their_code(tmp_path: Path) -> None:
    """Files that are UTF-8 stay as they are, and a model keeps the name of its folder."""
    folder = tmp_path / "runs" / "model"
    folder.mkdir(parents=True)
    table(folder / "a.csv", TEXTS["cp1252"], "cp1252")
    references = tmp_path / "objects.csv"
    references.write_text('image_id,objects\n1,"[""café""]"\n2,"[""cat""]"\n', encoding="utf-8")
    found = responses(tmp_path / "runs", "cp1252", references)
    assert found == [TEXTS["cp1252"], "A cat."]


def test_errors_name_the_file_that_was_given(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", TEXTS["gb18030"], "gb18030")
    with pytest.raises(ArchiveError) as caught:
        responses(path, "ascii")
    assert expected_message("sdk.archives.table_files:is-not-this-code") in str(caught.value)
    path.write_bytes("image_id,caption\n1,图\n2\n".encode("gb18030"))
    with pytest.raises(ArchiveError, match=f"^{path} line 3: 1 column"):
        responses(path, "gb18030")
    with pytest.raises(InvalidInputError) as unknown:
        responses(path, "klingon")
    assert expected_message("sdk.archives.table_files:is-no-code") in str(unknown.value)


def test_how_a_model_was_asked_is_found_in_another_code(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    told = '"{""prompts"": ""0a1b""}"'
    path.write_bytes(f"question_id,response,label,asked\n1,是,yes,{told}\n".encode("gb18030"))
    options = InputOptions(encoding="gb18030")
    assert read_items("pope", path, None, options=options).asked == {"prompts": "0a1b"}
