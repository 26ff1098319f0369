"""Settings of the judges, and their keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.settings.judge_settings import JUDGES, load_judge_keys
from hallujudge.judge_service.settings.loading import load_settings

LLM: dict[str, Any] = {"llm.url": "http://127.0.0.1:1/v1", "llm.model": "m"}


def test_keys_come_from_the_environment_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-file\n")
    keys = load_judge_keys(
        {"HALLUJUDGE_LLM_API_KEY": "sk-env", "HALLUJUDGE_FALLBACK_API_KEY_FILE": str(file)}
    )
    assert (keys.llm.reveal(), keys.fallback.reveal()) == ("sk-env", "sk-file")
    assert "sk-" not in repr(keys)
    assert not load_judge_keys({}).llm


def test_openais_variables_are_read_for_the_addresses_that_they_belong_to() -> None:
    environ = {
        "OPENAI_API_KEY": "sk-openai",
        "AZURE_OPENAI_API_KEY": "sk-azure",
        "OPENAI_API_VERSION": "2024-10-21",
        "HALLUJUDGE_LLM_URL": "https://lab.openai.azure.com",
    }
    found = load_settings(environ=environ)
    assert found.judges.fallback.url == "https://api.openai.com/v1"
    assert found.judges.azure.api_version == "2024-10-21"
    assert (found.keys.llm.reveal(), found.keys.fallback.reveal()) == ("sk-azure", "sk-openai")
    gateway = environ | {"OPENAI_BASE_URL": "http://gateway/v1", "HALLUJUDGE_LLM_URL": "http://h/1"}
    found = load_settings(environ=gateway)
    assert found.judges.fallback.url == "http://gateway/v1"
    assert (found.keys.llm.reveal(), found.keys.fallback.reveal()) == ("", "sk-openai")
    sources = {setting.name: setting.source for setting in found.sources}
    assert sources["fallback.url"] == "environment OPENAI_BASE_URL"
    own = gateway | {
        "HALLUJUDGE_FALLBACK_URL": "http://own/v1",
        "HALLUJUDGE_LLM_URL": "https://api.openai.com/v1",
        "HALLUJUDGE_LLM_API_KEY": "sk-own",
    }
    found = load_settings(environ=own)
    assert found.judges.fallback.url == "http://own/v1"
    assert (found.keys.llm.reveal(), found.keys.fallback.reveal()) == ("sk-own", "")


@pytest.mark.parametrize("content", [b"", b"sk-a\nsk-b", b"\xff\xfesk-secret", b"x" * 20_000])
def test_key_files_that_hold_no_key(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(InvalidInputError, match="HALLUJUDGE_LLM_API_KEY_FILE") as caught:
        load_judge_keys({"HALLUJUDGE_LLM_API_KEY_FILE": str(file)})
    assert "secret" not in repr(caught.value.__cause__)
    with pytest.raises(
        InvalidInputError,
        match=expected_message("synonym_graphs.files:cannot-be-read-no-such-file"),
    ):
        load_judge_keys({"HALLUJUDGE_LLM_API_KEY_FILE": str(tmp_path / "absent")})
    both = {"HALLUJUDGE_LLM_API_KEY_FILE": "x", "HALLUJUDGE_LLM_API_KEY": "sk-y"}
    with pytest.raises(InvalidInputError, match="unset one"):
        load_judge_keys(both)


def test_no_setting_holds_a_key_and_every_one_has_bounds_and_help() -> None:
    for each in JUDGES:
        found = each.field.metadata
        assert "key" not in each.name
        assert found["help"]
        assert isinstance(each.field.default, int | float | str)
        assert not found["choices"] or each.field.default in found["choices"]
    limited = {each.name for each in JUDGES if each.field.metadata["choices"]}
    assert {"llm.dialect", "small.api"} <= limited
