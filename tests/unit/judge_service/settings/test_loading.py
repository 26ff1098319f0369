"""Every setting by its names: option, environment variable, table of a file."""

from __future__ import annotations

import tomllib
from functools import reduce
from pathlib import Path

import pytest

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.settings import Definition
from hallujudge.judge_service.settings.judge_settings import JUDGES
from hallujudge.judge_service.settings.loading import chosen_judges, load_settings, names_of
from hallujudge.judge_service.settings.server_settings import SERVER

DATA = Path(__file__).resolve().parents[3] / "data"
OPTIONS: dict[str, str] = tomllib.loads((DATA / "settings.toml").read_text(encoding="utf-8"))
ALL = {each.name: each for each in (*SERVER, *JUDGES)}
RENAMED = sorted(option for option, name in OPTIONS.items() if option != name)


def another(each: Definition) -> str | float:
    """Return a value that the setting may have and does not have by default."""
    limits, default = each.field.metadata, each.field.default
    if isinstance(default, str):
        others: tuple[str, ...] = limits["choices"] or ("localhost", "other")
        return next(value for value in others if value != default)
    highest: float = limits["high"]
    return highest if default != highest else limits["low"]


def chosen(environ: dict[str, str], file: Path | None = None) -> dict[str, object]:
    """Return the settings that are not from the defaults."""
    found = load_settings(file=str(file) if file else None, environ=environ)
    values = {one.name: one.value for one in found.sources if one.source != "default"}
    for name, value in values.items():
        held = found.server if ALL[name] in SERVER else found.judges
        assert reduce(getattr, name.split("."), held) == value
    return values


def test_no_setting_is_missing_here() -> None:
    assert {each.option: each.name for each in ALL.values()} == OPTIONS


@pytest.mark.parametrize("option", OPTIONS)
def test_an_environment_variable_sets_the_setting_of_its_name_alone(option: str) -> None:
    each = ALL[OPTIONS[option]]
    value = another(each)
    assert chosen({f"HALLUJUDGE_{option.upper()}": str(value)}) == {each.name: value}


@pytest.mark.parametrize("option", OPTIONS)
def test_a_file_has_a_setting_in_the_table_of_its_group(option: str, tmp_path: Path) -> None:
    each = ALL[OPTIONS[option]]
    value = another(each)
    group, _, key = each.name.rpartition(".")
    file = tmp_path / "settings.toml"
    file.write_text(f"[{group or each.table}]\n{key} = {value!r}\n")
    assert chosen({}, file) == {each.name: value}


@pytest.mark.parametrize("option", RENAMED)
def test_a_file_with_the_name_of_an_option_is_told_the_table(option: str, tmp_path: Path) -> None:
    name = OPTIONS[option]
    group, _, key = name.rpartition(".")
    file = tmp_path / "settings.toml"
    for table in ("judges", "server"):
        file.write_text(f"[{table}]\n{option} = 1\n")
        with pytest.raises(InvalidInputError) as refused:
            load_settings(file=str(file), environ={})
        assert str(refused.value) == (
            f"settings file {str(file)!r}: {option} is {name} now; write [{group}] {key} = …"
        )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("port = 50051", "settings are in tables; write [server] port = …"),
        ('[llm]\njudge_order = "llm"', "settings are in tables; write [judges] judge_order = …"),
        ('[server]\nllm.url = "x"', "[llm] is a table of its own, outside [server]"),
        ("[server.http]\nport = 1", "[http] is a table of its own, outside [server]"),
        ('[llm]\napi_key = "x"', "keys are not settings; set HALLUJUDGE_LLM_API_KEY and the like"),
        (
            'fallback_api_key = "x"',
            "keys are not settings; set HALLUJUDGE_LLM_API_KEY and the like",
        ),
    ],
)
def test_a_name_outside_its_table_is_told_the_table(
    text: str, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    with pytest.raises(InvalidInputError) as refused:
        load_settings(file=str(file), environ={})
    assert str(refused.value) == f"settings file {str(file)!r}: {problem}"


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[server]\nport = 1\n", encoding="utf-8-sig")
    assert load_settings(file=str(file), environ={}).server.port == 1


def test_a_fraction_is_refused_where_a_whole_number_is_meant() -> None:
    name = "limits.max_batch_items"
    with pytest.raises(InvalidInputError, match=r"is 1\.5; give a whole number"):
        load_settings({name: 1.5}, environ={})
    assert load_settings({name: 2.0}, environ={}).server.limits.max_batch_items == 2


def test_an_argument_for_a_key_is_told_the_variable() -> None:
    with pytest.raises(InvalidInputError) as refused:
        load_settings({"llm_api_key": "x"}, environ={})
    problem = "keys are not settings; set HALLUJUDGE_LLM_API_KEY and the like"
    assert str(refused.value) == f"llm_api_key: {problem}"


@pytest.mark.parametrize(("table", "name"), [("server", "port"), ("judges", "judge_order")])
def test_an_argument_has_no_table_where_its_group_has_no_name(table: str, name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"did you mean '{name}'"):
        load_settings({f"{table}.{name}": 1}, environ={})


@pytest.mark.parametrize("option", RENAMED)
def test_an_argument_with_the_name_of_an_option_is_told_the_name(option: str) -> None:
    name = OPTIONS[option]
    with pytest.raises(InvalidInputError) as refused:
        load_settings({option: "1"}, environ={})
    assert str(refused.value) == f"{option} is {name} now; write {{{name!r}: …}}"
    assert names_of({option: "1"}) == {name: "1"}


def test_other_arguments_are_refused_with_what_is_meant() -> None:
    with pytest.raises(InvalidInputError) as refused:
        load_settings({"llm.ulr": "http://h/v1"}, environ={})
    assert str(refused.value) == "'llm.ulr' is not a setting; did you mean 'llm.url'?"


def test_a_setting_may_be_named_without_a_table(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('llm.url = "http://h/v1"\n')
    assert chosen({}, file) == {"llm.url": "http://h/v1"}
    file.write_text('llm.url = "http://h/v1"\nllm_model = "m"\n')
    with pytest.raises(InvalidInputError, match=r"llm_model is llm\.model now; write \[llm\] mod"):
        load_settings(file=str(file), environ={})


def test_chosen_judges_are_named_as_in_manifests() -> None:
    given = {"llm.url": "http://h/v1", "max_calls": 3, "fallback.dialect": "openai"}
    found = chosen_judges(load_settings(given, environ={}).judges)
    assert found == {"llm_url": "http://h/v1", "max_calls": 3}
    assert names_of(found) == {"llm.url": "http://h/v1", "max_calls": 3}
