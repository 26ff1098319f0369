"""Addresses, and secrets that no text shows."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.llm.chat_settings import ChatSettings
from hallujudge.judge_service.llm.http import Endpoint
from hallujudge.judge_service.settings.connection import (
    Secret,
    environment_proxy,
    is_host,
    is_own_host,
    masked,
    web_address,
    with_port,
)
from hallujudge.judge_service.settings.loading import load_settings


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1:5"),
        ("localhost", "localhost:5"),
        ("::1", "[::1]:5"),
        ("[::1]", "[::1]:5"),
        ("::", "[::]:5"),
        ("fe80::1%eth0", "[fe80::1%eth0]:5"),
    ],
)
def test_an_address_of_ipv6_has_brackets_beside_a_port(host: str, address: str) -> None:
    assert with_port(host, 5) == address


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "0.0.0.0",
        "::",
        "[::1]",
        "fe80::1%eth0",
        "localhost",
        "lab_server",
        "a-b.c1.org.",
    ],
)
def test_addresses_and_names_are_hosts(host: str) -> None:
    assert is_host(host)


@pytest.mark.parametrize(
    "host",
    ["", "unix:evil", "unix:/run/h", "dns:a", "ipv4:1.2.3.4", "a:1", "1.2.3.4:5", "a/b", "a b",
     "-a", "a..b", "a\n", "http://a", "unix-abstract:a", "é.org"],
)  # fmt: skip
def test_other_texts_are_not(host: str) -> None:
    assert not is_host(host)
    with pytest.raises(InvalidInputError, match="host"):
        load_settings({"host": host}, environ={})


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("http://127.0.0.1:8000/v1", "127.0.0.1", 8000),
        ("https://[::1]/v1", "::1", None),
        ("HTTP://h", "h", None),
    ],
)
def test_the_parts_of_a_web_address(text: str, host: str, port: int | None) -> None:
    parts = web_address(text)
    assert parts is not None
    assert (parts.hostname, parts.port) == (host, port)


@pytest.mark.parametrize(
    "text", ["", "h:80", "ftp://h", "http://", "http://[::1", "http://h:0", "http://h:65536"]
)
def test_other_texts_are_no_web_addresses(text: str) -> None:
    assert web_address(text) is None


@pytest.mark.parametrize(
    ("header", "own"),
    [
        ("localhost", True),
        ("LocalHost.:80", True),
        ("127.0.0.1", True),
        ("10.1.2.3.:9464", True),
        ("[::1]:80", True),
        ("[fe80::1%25eth0]", True),
        ("Judge.Lab:80", True),
        ("evil.example", False),
        ("evil.example:80", False),
        ("localhost.evil.example", False),
        ("judge.lab.evil.example", False),
        ("127.0.0.1@evil.example", False),
        ("evil.example@127.0.0.1", False),
        ("127.0.0.1, evil.example", False),
        ("127.0.0.1/evil.example", False),
        ("evil.example#127.0.0.1", False),
        ("localhost\\.evil.example", False),
        ("unix:evil", False),
        ("unix:/run/evil", False),
        ("[::1", False),
        ("[evil.example]", False),
        (":80", False),
        (" ", False),
        ("", False),
    ],
)
def test_a_host_is_an_address_or_a_listed_name(header: str, own: bool) -> None:
    assert is_own_host(header, ("judge.lab",)) is own


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://proxy:3128", "http://proxy:3128"),
        ("http://ana:pw@proxy:3128", "http://***@proxy:3128"),
        ("http://sk-token@h/v1", "http://***@h/v1"),
        ("http://ana:p@w/d@h:1/v1", "http://***@h:1/v1"),
        ("http://a/v1,http://ana:pw@b/v1", "http://a/v1,http://***@b/v1"),
        ("postgresql://h/db?user=ana&password=pw", "postgresql://h/db?user=ana&password=***"),
        ("https://h/v1?api-key=pw#x", "https://h/v1?api-key=***#x"),
        ("ana:pw@proxy:3128", "***@proxy:3128"),
        ("ana:pw@[::1]:3128", "***@[::1]:3128"),
        ("http:/ana:pw@proxy", "http:/***@proxy"),
        ("//ana:pw@proxy/x", "//***@proxy/x"),
        ("http://ana:p,w@proxy:3128", "http://***@proxy:3128"),
        ("http://ana:p'w@proxy:3128", "http://***@proxy:3128"),
        ('ana:p,w"x@proxy:3128', "***@proxy:3128"),
        ("https://h/v1#access_token=pw", "https://h/v1#access_token=***"),
        ("https://h/v1?auth=pw&a=b", "https://h/v1?auth=***&a=b"),
        ("https://h/v1?pass=p,w&jwt=pw", "https://h/v1?pass=***&jwt=***"),
        ("https://h/v1?a=b;X-Amz-Credential=p'w", "https://h/v1?a=b;X-Amz-Credential=***"),
        ("https://h/v1?encode=b&code=pw", "https://h/v1?encode=b&code=***"),
        ("https://a?sas=pw,https://h?pw=pw", "https://a?sas=***,https://h?pw=***"),
        ("http://ana:p", "http://***"),
        ("http://h:80:x, http://h:8000", "http://h:80:x, http://h:8000"),
        (
            "--api-key pw --max-num-batched-tokens 8192",
            "--api-key *** --max-num-batched-tokens 8192",
        ),
        ("docker run -e HF_TOKEN=pw vllm", "docker run -e HF_TOKEN=*** vllm"),
        ("'https://h?key=pw', not qwen@7b", "'https://h?key=***', not qwen@7b"),
        ("llama3:latest@sha256:0af3", "llama3:latest@sha256:0af3"),
        ("qwen@7b1c", "qwen@7b1c"),
    ],
)
def test_secrets_in_addresses_are_masked(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_a_secret_is_never_shown() -> None:
    endpoint = Endpoint(url="http://h/v1", key=Secret(" sk-abc\n"))
    settings = ChatSettings(endpoint=endpoint, model="m")
    shown = [repr(endpoint), str(settings), f"{endpoint.key}", f"{endpoint.key!s:>20}"]
    assert not any("sk-abc" in text for text in shown)
    assert endpoint.key.reveal() == "sk-abc"
    assert endpoint.key == Secret("sk-abc")
    assert not Secret("")
    with pytest.raises(TypeError, match="pickled"):
        __import__("pickle").dumps(endpoint.key)


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("https://judge.example/v1", {"HTTPS_PROXY": "http://p:3128"}, "http://p:3128"),
        ("https://judge.example/v1", {"https_proxy": "p:3128"}, "http://p:3128"),
        ("https://judge.example/v1", {"https_proxy": "", "HTTPS_PROXY": "http://p"}, ""),
        ("http://judge.example/v1", {"HTTPS_PROXY": "http://p:3128"}, ""),
        ("http://judge.example/v1", {"HTTP_PROXY": "http://p:3128"}, "http://p:3128"),
        ("http://judge.example/v1", {"HTTP_PROXY": "http://p", "NO_PROXY": ".example"}, ""),
        ("http://judge.example/v1", {"HTTP_PROXY": "http://p", "no_proxy": "x, judge.example"}, ""),
        ("http://judge.example:80/v1", {"HTTP_PROXY": "http://p", "NO_PROXY": "*"}, ""),
        ("http://judge.example/v1", {"HTTP_PROXY": "http://p", "NO_PROXY": "example2"}, "http://p"),
        ("http://127.0.0.1:8000/v1", {"HTTP_PROXY": "http://p"}, ""),
        ("http://[::1]:8000/v1", {"HTTP_PROXY": "http://p"}, ""),
        ("http://localhost:8000/v1", {"HTTP_PROXY": "http://p"}, ""),
        ("", {"HTTP_PROXY": "http://p", "_proxy": "http://p"}, ""),
        ("https://judge.example/v1", {}, ""),
    ],
)
def test_the_environments_proxy(url: str, environ: dict[str, str], proxy: str) -> None:
    assert environment_proxy(url, environ) == proxy
