"""Settings: argument > environment > file > default."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.messages import expected_message

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.settings.judge_settings import JUDGES
from hallujudge.judge_service.settings.loading import load_settings, settings_toml
from hallujudge.judge_service.settings.server_settings import SERVER

GUIDE = Path(__file__).resolve().parents[4] / "docs/how-to/run-a-server.md"
DEFAULTS = {each.name: each.field.default for each in (*SERVER, *JUDGES)}
UNITS = {"": 1, "s": 1, "MiB": 1 << 20, "GiB": 1 << 30}


def test_sources_in_order(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('[server]\nport = 1\n[limits]\nmax_batch_items = 2\n[log]\nlevel = "debug"\n')
    environ = {"HALLUJUDGE_PORT": "3", "HALLUJUDGE_MAX_BATCH_ITEMS": "4", "PORT": "9"}
    resolved = load_settings({"port": 5, "host": None}, file=str(file), environ=environ)
    server = resolved.server
    assert (server.port, server.limits.max_batch_items, server.log.level) == (5, 4, "debug")
    assert server.host == "127.0.0.1"
    sources = {setting.name: setting.source for setting in resolved.sources}
    assert sources["port"] == "argument"
    assert sources["limits.max_batch_items"] == expected_message(
        "sdk.cli.server_commands:environment-hallujudge-max-batch-items"
    )
    assert sources["log.level"] == f"file {file}"
    assert sources["host"] == "default"


def test_the_environment_can_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text("[server]\nport = 7\n")
    assert load_settings(environ={"HALLUJUDGE_CONFIG": str(file)}).server.port == 7


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"HALLUJUDGE_PORT": "many"}, "environment HALLUJUDGE_PORT.* is 'many'"),
        ({"HALLUJUDGE_PORT": "70000"}, "from 0 to 65535"),
        ({"HALLUJUDGE_DRAIN_SECONDS": "nan"}, "drain_seconds"),
        ({"HALLUJUDGE_LOG_LEVEL": "loud"}, "debug or info or warning or error"),
        ({"HALLUJUDGE_CONFIG": "/no/such/file"}, "No such file"),
    ],
)
def test_bad_values(environ: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        load_settings(environ=environ)


def test_defaults_are_those_of_the_guide() -> None:
    row = re.compile(r"^\| [^|]+ \| `([\w.]+)`[^|]* \| ([\d,]+) ?(\w*) \|", re.MULTILINE)
    rows = row.findall(GUIDE.read_text(encoding="utf-8"))
    assert {
        "limits.max_running_calls",
        "limits.first_message_seconds",
        "limits.max_memory_bytes",
    } <= {name for name, _, _ in rows}
    for name, number, unit in rows:
        said = int(number.replace(",", "")) * UNITS[unit]
        assert (name, DEFAULTS[name]) == (name, said)


@pytest.mark.parametrize(
    ("name", "too_low", "lowest", "highest", "too_high"),
    [
        ("max_running_calls", "0", "1", "100000", "100001"),
        ("first_message_seconds", "0.0009", "0.001", "86400", "86400.5"),
        ("idle_seconds", "0.0009", "0.001", "2097152", "2097152.5"),
        ("max_call_seconds", "0.0009", "0.001", "2097152", "2097152.5"),
    ],
)
def test_a_setting_may_be_at_its_limits_and_not_beyond(
    name: str, too_low: str, lowest: str, highest: str, too_high: str
) -> None:
    variable = f"HALLUJUDGE_{name.upper()}"
    for value in (lowest, highest):
        limits = load_settings(environ={variable: value}).server.limits
        assert getattr(limits, name) == float(value)
    for value in (too_low, too_high):
        with pytest.raises(InvalidInputError, match=f"{variable}.* is '{value}'"):
            load_settings(environ={variable: value})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[server", "not TOML"),
        ("colour = 1", "unknown colour; put settings into tables: choose from server, http, "),
        (
            "verdic_cache = 'v.sqlite'",
            r"unknown verdic_cache; did you mean .verdict_cache.\? Write \[judges\] verdict_cache",
        ),
        (
            "[llm]\nurll = 1",
            r"unknown urll in \[llm\]; did you mean 'url'\? Choose from url, model",
        ),
        ("[sever]\nport = 1", r"unknown sever; put .* tables: did you mean 'server'\? Choose"),
        ("[llm]\nlink = 1", r"unknown link in \[llm\]; choose from url, model, "),
        ("[server]\nprot = 1", "unknown prot"),
        ("[server]\nport = true", "port .* is True"),
        ("server = 3", r"a table \[server\]"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "s.toml"
    file.write_text(text)
    with pytest.raises(InvalidInputError, match=said):
        load_settings(file=str(file), environ={})


def test_no_address_shows_its_password(tmp_path: Path) -> None:
    urls = ["llm.url", "small.url", "fallback.url", "fallback.proxy", "trace.endpoint"]
    urls += ["llm.proxy", "jobs.database", "evaluation_endpoint"]
    resolved = load_settings({name: f"http://ana:secret@{name}:1" for name in urls}, environ={})
    assert resolved.judges.fallback.proxy == "http://ana:secret@fallback.proxy:1"
    shown = {one.name: one.value for one in resolved.sources if one.name in urls}
    assert shown == {name: f"http://***@{name}:1" for name in urls}
    texts = [
        repr(resolved),
        str(resolved.judges),
        str(resolved.server),
        settings_toml(resolved.sources),
    ]
    assert not any("secret" in text for text in texts)
    file = tmp_path / "settings.toml"
    file.write_text(texts[-1])
    with pytest.raises(InvalidInputError, match="masked"):
        load_settings(file=str(file), environ={})


@pytest.mark.parametrize("name", ["host", "log.level", "llm.api", "max_calls"])
def test_no_refused_value_shows_its_password(name: str) -> None:
    with pytest.raises(InvalidInputError, match=name) as refused:
        load_settings({name: "http://ana:secret@h:1?key=secret"}, environ={})
    assert "secret" not in str(refused.value)


def test_a_masked_key_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="masked"):
        load_settings(environ={"HALLUJUDGE_FALLBACK_PROXY": "http://h:1?key=***"})


def test_a_long_text_is_masked_in_linear_steps() -> None:
    environ = {"HALLUJUDGE_FALLBACK_PROXY": "?key" * 25_000 + ",a:b" * 2_000}
    assert len(repr(load_settings(environ=environ))) > 100_000


def test_settings_written_as_toml_are_read_back(tmp_path: Path) -> None:
    environ = {
        "HALLUJUDGE_PORT": "7",
        "HALLUJUDGE_DRAIN_SECONDS": "2.5",
        "HALLUJUDGE_LLM_MODEL": 'a "quoted" \\ näme',
        "HALLUJUDGE_LLM_API_KEY": "sk-secret",
    }
    resolved = load_settings(environ=environ)
    text = settings_toml(resolved.sources)
    assert "sk-secret" not in text
    file = tmp_path / "settings.toml"
    file.write_text(text, encoding="utf-8")
    again = load_settings(file=str(file), environ={})
    assert (again.server, again.judges) == (resolved.server, resolved.judges)


def test_variables_that_nothing_reads_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    environ = {
        "HALLUJUDGE_LLM_PROXXY": "http://ana:secret@proxy",
        "HALLUJUDGE_NOT_KNOWN": "1",
        "HALLUJUDGE_LLM_API_KEY": "k",
        "HALLUJUDGE_API_KEY_FILE": "k",
        "HALLUJUDGE_TLS_CA": "ca",
        "HALLUJUDGE_MAX_CALLS": "7",
        "HALLUJUDGE_SERVER_PORT_50051_TCP": "tcp://10.0.0.1:50051",
    }
    for _ in range(2):
        load_settings(environ=environ)
    one, other = caplog.messages
    assert one.startswith("the environment variable HALLUJUDGE_LLM_PROXXY is not a setting")
    assert "did you mean HALLUJUDGE_LLM_PROXY?" in one
    assert "did you mean" not in other
    assert "secret" not in caplog.text
