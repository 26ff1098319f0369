"""Addresses of chat servers and the library that reaches them."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from support.messages import expected_message

from hallujudge.judge_service.errors import InvalidInputError, MissingExtraError
from hallujudge.judge_service.llm.chat_servers import OpenAISender
from hallujudge.judge_service.llm.http import Endpoint, HttpEndpoint, Sender


async def test_a_missing_client_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    # `ask` says it as well, whose model is no judge.
    said = expected_message("judge_service.errors:needs-the-extra-llm-pip-install")
    with pytest.raises(MissingExtraError, match=f"^calling a model at a web address {said}"):
        await HttpEndpoint(Endpoint(url="http://127.0.0.1:1/v1"), 1).get("models")


@pytest.mark.parametrize("kind", [lambda at: HttpEndpoint(at, 1), OpenAISender])
async def test_no_call_opens_a_connection_after_the_end(
    kind: Callable[[Endpoint], Sender],
) -> None:
    sender = kind(Endpoint(url="http://127.0.0.1:1/v1"))
    await sender.close()
    # The question of a server that was left behind by its run comes late.
    with pytest.raises(RuntimeError, match=r"the connections to http.* were closed"):
        await sender.get("models")


@pytest.mark.parametrize(
    "url",
    [
        *("", "localhost:8000", "ftp://x/v1", "http://user:pw@host/v1", "http:///v1"),
        *(
            "http://pw@host/v1",
            "http://host/v1?key=pw",
            "http://host/v1#pw",
            "user:pw@host/v1",
            "ftp://user:p/w@host",
        ),
    ],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Endpoint(url=url)
    assert "pw" not in str(caught.value)
    assert "p/w" not in str(caught.value)


@pytest.mark.parametrize("proxy", ["ana:pw@proxy:3128", "socks5://ana:pw@proxy"])
def test_proxies_that_are_none(proxy: str) -> None:
    with pytest.raises(InvalidInputError, match="the proxy") as caught:
        Endpoint(url="http://host/v1", proxy=proxy)
    assert "pw" not in str(caught.value)


def test_a_proxys_password_is_in_no_text() -> None:
    assert "pw" not in repr(Endpoint(url="http://host/v1", proxy="http://ana:pw@proxy:3128"))
