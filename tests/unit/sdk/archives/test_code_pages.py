"""Files in other codes than UTF-8 are refused with how each code reads them; none is guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message

from hallujudge.sdk.archives import InputOptions, read_items
from hallujudge.sdk.errors import ArchiveError, InvalidInputError

TEXTS = {
    "gb18030": "图中有一只猫。",
    "big5": "圖中有一隻貓。",
    "shift_jis": "猫がいます。",
    "euc_kr": "고양이가 있다.",
    "cp1251": "На фото кот.",
    "cp1252": "A café with a cat.",
}
OBJECTS = {"1": ["cat"], "2": ["cat"]}


def table(path: Path, text: str, encoding: str) -> Path:
    path.write_bytes(f"image_id,caption\n1,{text}\n2,A cat.\n".encode(encoding))
    return path


def responses(path: Path | str, encoding: str = "", references: Any = OBJECTS) -> list[Any]:
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
    assert expected_message("sdk.archives.code_pages:name-its-code") in said
    assert responses(path, encoding) == [text, "A cat."]


def first_other(text: str) -> str:
    return next(character for character in text if not character.isascii())


def test_json_is_refused_and_read_in_its_code(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    row = {"image_id": 1, "caption": TEXTS["gb18030"]}
    path.write_bytes(json.dumps(row, ensure_ascii=False).encode("gb18030"))
    with pytest.raises(ArchiveError) as caught:
        responses(path)
    assert expected_message("sdk.archives.code_pages:or-name-its-code") in str(caught.value)
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
    assert expected_message("sdk.archives.code_pages:is-not-this-code") in str(caught.value)
    path.write_bytes("image_id,caption\n1,图\n2\n".encode("gb18030"))
    with pytest.raises(ArchiveError, match=f"^{path} line 3: 1 column"):
        responses(path, "gb18030")
    with pytest.raises(InvalidInputError) as unknown:
        responses(path, "klingon")
    assert expected_message("sdk.archives.code_pages:is-no-code") in str(unknown.value)


def test_how_a_model_was_asked_is_found_in_another_code(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    told = '"{""prompts"": ""0a1b""}"'
    path.write_bytes(f"question_id,response,label,asked\n1,是,yes,{told}\n".encode("gb18030"))
    options = InputOptions(encoding="gb18030")
    assert read_items("pope", path, None, options=options).asked == {"prompts": "0a1b"}
