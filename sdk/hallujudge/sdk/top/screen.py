"""The screen of `hallujudge top`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import ClassVar

from rich.text import Text

from ..errors import MissingExtraError, UnavailableError
from .reading import Reading
from .summary import Client, Judge, MetricRow, Summary, summarize

try:
    from textual.app import App, ComposeResult
    from textual.binding import Binding, BindingType
    from textual.widgets import DataTable, Footer, Static
except ModuleNotFoundError as err:
    raise MissingExtraError.of("hallujudge top", "top") from err

__all__ = ["TopApp"]

_CLIENTS = ("client", "waiting", "calls/s", "items/s", "errors/s", "judge calls", "cost")
_JUDGES = (
    "judge", "state", "running", "waiting", "limit", "calls/s", "failures/s", "seconds", "tokens/s",
    "cost",
)  # fmt: skip
_METRICS = ("metric", "items/s", "scored", "unscored", "most frequent reason")


class TopApp(App[None]):
    """Shows a server's clients, queue, judges, rates and cost, again and again.

    Args:
        read: Reads the server's metrics; may block.
        address: The server's address, for the title.
        interval: Seconds between readings.
    """

    CSS = """
    #state { height: auto; padding: 0 1; }
    #problem { height: auto; padding: 0 1; color: $error; }
    DataTable { height: auto; max-height: 40%; margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("r", "read", "Read now"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, read: Callable[[], Reading], address: str, interval: float) -> None:
        super().__init__()
        self._read = read
        self._address = address
        self._interval = interval
        self._before: Reading | None = None

    def compose(self) -> ComposeResult:
        """Yield the parts of the screen."""
        yield Static(id="state")
        yield Static(id="problem")
        for name, columns in (("clients", _CLIENTS), ("judges", _JUDGES), ("metrics", _METRICS)):
            table: DataTable[Text] = DataTable(
                id=name, cursor_type="none", zebra_stripes=True, show_cursor=False
            )
            table.add_columns(*columns)
            yield table
        yield Footer()

    async def on_mount(self) -> None:
        """Read for the first time, then again and again."""
        await self.action_read()
        self.set_interval(self._interval, self.action_read)

    async def action_read(self) -> None:
        """Read the metrics and show them."""
        problem = self.query_one("#problem", Static)
        try:
            now = await asyncio.to_thread(self._read)
        except UnavailableError as err:
            problem.update(Text(str(err)))
            return
        problem.update("")
        self.show(summarize(self._before or now, now))
        self._before = now

    def show(self, summary: Summary) -> None:
        """Show a summary."""
        self.query_one("#state", Static).update(_state(self._address, summary))
        self._fill("clients", (_client(one) for one in summary.clients))
        self._fill("judges", (_judge(one) for one in summary.judges))
        self._fill("metrics", (_metric(one) for one in summary.metrics))

    def _fill(self, name: str, rows: Iterable[tuple[str, ...]]) -> None:
        table: DataTable[Text] = self.query_one(f"#{name}", DataTable)
        table.clear()
        for first, *rest in rows:
            # Text, not a plain string: names are not markup.
            table.add_row(Text(first), *(_cell(value) for value in rest))


def _cell(value: str) -> Text:
    """Return a cell; numbers stand to the right."""
    return Text(value, justify="right" if value[:1].isdigit() else "left")


def _state(address: str, summary: Summary) -> Text:
    text = Text.assemble(
        (f"hallujudge {summary.version} at {address}  ", "bold"),
        ("ready", "green") if summary.ready else ("NOT READY", "bold red"),
    )
    waited = "–" if summary.wait_seconds is None else f"{summary.wait_seconds:.3f} s"
    hits = "–" if summary.cache_hits is None else f"{summary.cache_hits:.0%}"
    text.append(
        f"\ncalls    {summary.calls:.1f}/s   "
        f"running {summary.running} of {summary.running_limit}   "
        f"waiting {summary.waiting} of {summary.waiting_limit}   mean wait {waited}"
        f"\nitems    {summary.items:.1f}/s   memory budget {summary.memory:.0%}   "
        f"replies found again {hits}   fallbacks {summary.fallbacks}"
        f"\ncost     {summary.cost:.4f}   {summary.cost_per_hour:.4f} an hour"
    )
    return text


def _client(one: Client) -> tuple[str, ...]:
    return (
        one.key,
        str(one.waiting),
        f"{one.calls:.1f}",
        f"{one.items:.1f}",
        f"{one.errors:.1f}",
        str(one.judge_calls),
        f"{one.cost:.4f}",
    )


def _judge(one: Judge) -> tuple[str, ...]:
    return (
        one.model,
        one.state,
        str(one.running),
        str(one.waiting),
        str(one.limit),
        f"{one.calls:.1f}",
        f"{one.failures:.1f}",
        "–" if one.seconds is None else f"{one.seconds:.2f}",
        f"{one.tokens:.0f}",
        f"{one.cost:.4f}",
    )


def _metric(one: MetricRow) -> tuple[str, ...]:
    return (one.metric, f"{one.items:.1f}", str(one.scored), str(one.unscored), one.reason)
