"""`hallujudge top` on a real server, driven by keys."""

from __future__ import annotations

import asyncio
from functools import partial

from support.messages import expected_message
from support.running import assert_refused, cli, here
from support.threads import PATIENCE
from textual.widgets import DataTable, Static

from hallujudge.judge_service.server.server import start
from hallujudge.judge_service.settings.server_settings import ServerSettings
from hallujudge.sdk import AsyncClient
from hallujudge.sdk.cli.top import TopApp, fetch, metrics_url


def rows(app: TopApp, name: str) -> list[list[str]]:
    table = app.query_one(f"#{name}", DataTable)
    return [[str(cell) for cell in table.get_row_at(index)] for index in range(table.row_count)]


async def test_a_port_that_speaks_something_else_is_one_line() -> None:
    """The port for gRPC is easily taken for that of the metrics."""
    server = await start(ServerSettings(port=0))
    try:
        shown = await asyncio.to_thread(here, "top", server.address)
    finally:
        await server.stop(0)
    said = expected_message("sdk.cli.top:start-the-server-with-metrics-port")
    assert (shown.returncode, said in shown.stderr) == (1, True), shown.stderr
    assert expected_message("sdk.cli.top:what-it-sends-is-not-http") in shown.stderr
    assert shown.stderr.count("\n") == 1


async def test_a_server_at_work_is_shown_until_it_ends() -> None:
    server = await start(ServerSettings(port=0, metrics_port=0))
    read = partial(fetch, metrics_url(server.metrics_address))
    app = TopApp(read, server.metrics_address, 3600)
    async with app.run_test(size=(120, 40)) as pilot:
        assert rows(app, "clients") == []
        async with AsyncClient(server.address) as client:
            await client.score(
                "chair", responses={"1": "A dog.", "2": None}, references={"1": ["dog"], "2": []}
            )
        await pilot.press("r")
        await pilot.pause()
        [[client_name, *_]] = rows(app, "clients")
        [[metric, _, scored, unscored, reason]] = rows(app, "metrics")
        assert client_name == "anonymous"
        assert (metric, scored, unscored, reason) == ("chair", "1", "1", "RESPONSE_MISSING")
        state = str(app.query_one("#state", Static).content)
        assert "ready" in state
        assert "running 0 of 64" in state
        await server.stop(0)
        await pilot.press("r")
        await pilot.pause()
        assert "does not answer" in str(app.query_one("#problem", Static).content)
        assert rows(app, "metrics"), "the last reading stays"
        await pilot.press("q")


def test_a_wrong_address_is_an_error_of_the_command() -> None:
    done = here("top", "127.0.0.1:1")
    assert done.returncode == 1
    assert (
        expected_message("sdk.cli.top:metrics-does-not-answer-connection-refused-start")
        in done.stderr
    )
    assert here("top", "file:///etc/passwd").returncode == 2


async def test_without_a_terminal_it_is_an_error() -> None:
    server = await start(ServerSettings(port=0, metrics_port=0))
    try:
        done = await asyncio.to_thread(cli, "top", server.metrics_address, timeout=PATIENCE)
    finally:
        await server.stop(0)
    assert_refused(done, "hallujudge top needs a terminal")
