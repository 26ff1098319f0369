"""A local web server that shows the runs of a folder: ``hallujudge view``.

Its pages are an overview of finished runs by metric and of runs under way, a page of each run, and
comparisons of two.
"""

from __future__ import annotations

import os
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import SplitResult, parse_qs, quote

from msgspec import structs

from hallujudge.judge_service.settings.connection import is_own_host, web_address
from hallujudge.metrics import Report
from hallujudge.metrics.framework.signature import ITEM_SET, OF_ITEMS, REFERENCES, parsed_signature
from hallujudge.sdk import cli

from ..errors import HallujudgeError, InvalidInputError
from ..report.page.document import (
    Images,
    document,
    first_section,
    page_links,
    policy_of,
    render_parts,
)
from ..report.page.page_parts import Content, Markup, element, joined, score_bar
from ..report.report_text import counted, cut, shown
from ..runs.folder_guards import is_locked
from ..runs.journal import read_kept
from ..runs.manifest import ITEMS, JOURNAL, MANIFEST, REPORT, Manifest, partial
from ..runs.stored_runs import RunUnderWay, read_run, read_under_way

_LOOPBACK = "127.0.0.1"
# How long a browser may take to send a request.
_SECONDS = 30
# Address of the page of all runs.
_OVERVIEW = "/"
_NAME_CHARS = 120
_RESUME = "To go on with a run that stopped, repeat its command with "
# The folder is searched at each request, and may be a home folder by mistake.
_MOST_RUNS = 2_000
_DEPTH = 6


class Viewer:
    """Serves the pages of a folder's runs on loopback, for reading only.

    Args:
        folder: The folder, which is searched again at each request.
        port: Port to listen on; 0 for a free one.

    Raises:
        InvalidInputError: The folder does not exist, or the port is taken.
    """

    def __init__(self, folder: Path, port: int = 0) -> None:
        self._folder = folder
        # A wrong folder is reported at once, not by the first page.
        find_runs(folder)
        viewer = self

        class Handler(_Handler):
            pages = viewer._page  # the handler's class is the server's own

        try:
            self._server = _Server((_LOOPBACK, port), Handler)
        except OSError as err:
            raise InvalidInputError(
                f"port {port}: {err.strerror or err}; give another --port, or 0 for a free one"
            ) from err

    @property
    def address(self) -> str:
        """The URL of the overview."""
        return f"http://{_LOOPBACK}:{self._server.server_address[1]}/"

    def serve(self) -> None:
        """Serve until :meth:`close` is called."""
        self._server.serve_forever()

    def close(self) -> None:
        """Stop serving, from another thread."""
        self._server.shutdown()
        self.stop()

    def stop(self) -> None:
        """Stop listening, once :meth:`serve` has ended."""
        self._server.server_close()

    def _page(self, path: str, query: Mapping[str, str]) -> tuple[HTTPStatus, str]:
        runs = find_runs(self._folder)
        if path == _OVERVIEW:
            return HTTPStatus.OK, _overview_page(runs)
        if path == "/run":
            return HTTPStatus.OK, _run_page(_named(runs, query, "name"))
        if path == "/compare":
            first, second = (_complete(runs, query, key).folder for key in ("a", "b"))
            return HTTPStatus.OK, cli.page_of_two(first, second, overview=_OVERVIEW)
        return HTTPStatus.NOT_FOUND, _message_page("Not found", "There is no such page.")


class _Server(ThreadingHTTPServer):
    # A page that is under way must not keep the process alive after Ctrl-C.
    daemon_threads = True
    address_family = socket.AF_INET

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a browser that closed its connection before the page was sent."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # both are passed on


class _Handler(BaseHTTPRequestHandler):
    """Answers GET with a page, and refuses other methods."""

    pages: Callable[[str, Mapping[str, str]], tuple[HTTPStatus, str]]
    # Without them, each response would name the release of Python.
    server_version = "hallujudge"
    sys_version = ""
    timeout = _SECONDS

    def do_GET(self) -> None:
        """Answer with a page."""
        # A target may be a whole URL, whose host then replaces the header's (RFC 9112, 3.2.2).
        parts = web_address(self.path) or SplitResult("", "", *self.path.partition("?")[::2], "")
        # The name of another site may resolve to loopback, and its pages must not read these.
        hosts = self.headers.get_all("Host", [])
        host = (parts.netloc or hosts[0]) if len(hosts) == 1 else ""
        if not is_own_host(host):
            self._send(HTTPStatus.FORBIDDEN, _message_page("Refused", "Unknown name of this host."))
            return
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        try:
            status, page = type(self).pages(parts.path, query)
        except HallujudgeError as err:
            status, page = HTTPStatus.BAD_REQUEST, _message_page("Not possible", str(err))
        self._send(status, page)

    def _send(self, status: HTTPStatus, page: str) -> None:
        data = page.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        # A browser must not take the text of a response for a script.
        self.send_header("X-Content-Type-Options", "nosniff")
        # The page's own policy, and what only a header can say.
        policy = f"{policy_of(page)}; frame-ancestors 'none'"
        self.send_header("Content-Security-Policy", policy)
        # Runs change between requests.
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Write no access log: the terminal belongs to the user."""


def _named(runs: list[FoundRun], query: Mapping[str, str], key: str) -> FoundRun:
    """Return the run that a request names; only runs that were found can be named."""
    name = query.get(key, "")
    for run in runs:
        if run.name == name:
            return run
    raise InvalidInputError(f"there is no run {name!r:.80} in the folder")


def _complete(runs: list[FoundRun], query: Mapping[str, str], key: str) -> FoundRun:
    """Return the complete run that a request names."""
    run = _named(runs, query, key)
    if run.report is None:
        raise InvalidInputError(f"the run {run.name!r:.80} is not complete; compare it when it is")
    return run


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRun:
    """A run below the folder that is viewed."""

    name: str
    """Its path below the folder; ``.`` for the folder itself."""
    folder: Path
    report: Report | None = None
    """Its report; None while the run is under way, or if it can't be read."""
    scored: int = 0
    """How many items a run under way has scored."""
    items: int = 0
    """How many items it has."""
    writing: bool | None = None
    """Whether a process is writing to it, or None if unknown."""
    date: str = ""
    """Day on which its report was written."""
    problem: str = ""
    """Why it can't be read; empty if it can."""

    @property
    def under_way(self) -> bool:
        """Whether the run is still being scored, or was stopped before its end."""
        return self.report is None and not self.problem

    @property
    def title(self) -> str:
        """Title of its page; empty for the folder itself."""
        return "" if self.name == "." else self.name

    @property
    def state(self) -> str:
        """The state of a run without a report."""
        if self.writing is None:
            return "Not complete"
        return "Under way" if self.writing else "Stopped"


def find_runs(folder: Path) -> list[FoundRun]:
    """Return the runs below a folder by name.

    Args:
        folder: The folder; runs are searched six levels deep, the first 2,000 are returned.

    Raises:
        InvalidInputError: The folder does not exist.
    """
    if not folder.is_dir():
        raise InvalidInputError(f"{folder}: not a folder; give a folder of runs")
    # Sorted before they are cut, so that each request shows the same ones.
    return [_read(found, folder) for found in sorted(_candidates(folder))[:_MOST_RUNS]]


def _candidates(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        here = Path(root)
        if len(here.relative_to(folder).parts) >= _DEPTH:
            folders.clear()
        # Hidden folders, such as .git, hold no runs and may be large.
        folders[:] = [name for name in folders if not name.startswith(".")]
        held = set(names)
        # Until a run is complete, its manifest has a temporary name.
        if {REPORT, MANIFEST} <= held or partial(here, MANIFEST).name in held:
            yield here


def _read(run: Path, folder: Path) -> FoundRun:
    name = run.relative_to(folder).as_posix()
    try:
        if partial(run, MANIFEST).exists():
            manifest = Manifest.read(partial(run, MANIFEST))
            kept = read_kept(partial(run, JOURNAL), partial(run, ITEMS), trust=True)
            return FoundRun(
                name=name,
                folder=run,
                scored=kept.items,
                items=manifest.items,
                writing=is_locked(run),
            )
        stored = read_run(run)
        items = stored.report.coverage.items
        return FoundRun(
            name=name, folder=run, report=stored.report, items=items, date=stored.date()
        )
    # One unreadable run must not hide the others.
    except (HallujudgeError, OSError) as err:
        return FoundRun(name=name, folder=run, problem=str(err))


def _overview_page(runs: Sequence[FoundRun]) -> str:
    """Return the page of all runs: one table for each metric, then runs that are under way."""
    complete: dict[str, list[FoundRun]] = {}
    for run in runs:
        if run.report is not None:
            complete.setdefault(run.report.metric, []).append(run)
    live = [run for run in runs if run.under_way]
    body = [
        element("h1", "Runs"),
        element("p", counted(sum(map(len, complete.values())), "complete run"), _class="muted"),
        *_live(live),
        *(_table(metric, of_metric) for metric, of_metric in complete.items()),
        *_problems([run for run in runs if run.problem]),
    ]
    return document(
        "Runs – Hallujudge",
        [first_section(*body, live=bool(live))],
        scripts=("live.js",) if live else (),
        forms="'self'",
    )


def _message_page(title: str, text: str) -> str:
    """Return a page of one sentence."""
    back = element("p", element("a", "All runs", href=_OVERVIEW))
    body = [element("h1", title), element("p", text), back]
    return document(f"{title} – Hallujudge", body, scripts=())


def _table(metric: str, runs: Sequence[FoundRun]) -> Markup:
    """Return the runs of a metric, with a form that compares two of them, and their notes."""
    reports = [run.report for run in runs if run.report is not None]
    names = list(dict.fromkeys(name for report in reports for name in report.scores))
    differing = _differing(reports)
    heads = [
        "model",
        *(["A", "B"] if len(runs) > 1 else []),
        *(["differs in"] if differing else []),
    ]
    heads += ["items", "unscored", *names]
    models = _models(metric, runs)
    rows = [
        _row(run, model, heads, names, differing, radios=len(runs) > 1)
        for run, model in zip(runs, models, strict=True)
    ]
    head = element("tr", *(element("th", text, scope="col") for text in heads))
    # On a narrow screen the class puts each cell below its heading.
    table = element("table", element("thead", head), element("tbody", *rows), _class="scores")
    scroll = element("div", table, _class="scroll", tabindex="0", role="region", aria_label=metric)
    button = element("button", "Compare A with B", type="submit")
    content: list[Markup] = [scroll, *([button] if len(runs) > 1 else [])]
    form = element("form", *content, action="/compare", method="get")
    complete = ((run.name, run.report.notes) for run in runs if run.report is not None)
    notes = [element("p", f"Note: {note}") for note in cli.notes_of_runs(complete)]
    return element("section", element("h2", metric), form, *notes, data_key=metric)


def _models(metric: str, runs: Sequence[FoundRun]) -> list[str]:
    """Return the model of each run, by its folder; its whole name where two would be alike.

    Runs lie in ``MODEL/METRIC``, as ``score all`` writes them, or in a folder of any name.
    """
    paths = [run.name if run.name != "." else run.folder.resolve().name for run in runs]
    models = [
        path.rpartition("/")[0] if path.rpartition("/")[2].startswith(metric) else path
        for path in paths
    ]
    models = [model or path for model, path in zip(models, paths, strict=True)]
    counts = Counter(models)
    return [m if counts[m] == 1 else path for m, path in zip(models, paths, strict=True)]


def _row(
    run: FoundRun,
    model: str,
    heads: Sequence[str],
    names: Iterable[str],
    differing: set[str],
    *,
    radios: bool,
) -> Markup:
    report = run.report
    assert report is not None, "only complete runs have rows"
    about = run.date if model == run.name else f"{cut(run.title, _NAME_CHARS)} {run.date}"
    named = joined([_link(run, model), element("small", about)])
    cells: list[Content] = [_radio(side, run.name) for side in ("a", "b")] if radios else []
    if differing:
        fields = parsed_signature(report.signature)
        cells.append(", ".join(f"{key}:{fields.get(key, 'none')}" for key in sorted(differing)))
    # Before the scores, which may not all fit on the screen.
    cells += [f"{report.coverage.items:,}", f"{report.coverage.unscored:,}"]
    cells += [_score(report, name) for name in names]
    labelled = zip(heads[1:], cells, strict=True)
    data = [element("td", cell, data_label=head) for head, cell in labelled]
    # With the key, the row keeps its selection when the page is updated.
    return element("tr", element("th", named, scope="row"), *data, data_key=run.name)


def _link(run: FoundRun, text: str = "") -> Markup:
    address = f"/run?name={quote(run.name, safe='')}"
    return element("a", cut(text or run.name, _NAME_CHARS), href=address)


def _score(report: Report, name: str) -> Content:
    score = report.scores.get(name)
    if score is None:
        return ""
    figures = shown(score)
    return element(
        "span", element("b", figures.value), score_bar(score), element("small", figures.interval)
    )


def _radio(side: str, name: str) -> Markup:
    label = f"{side.upper()}: {cut(name, _NAME_CHARS)}"
    return element("input", type="radio", name=side, value=name, required="", aria_label=label)


def _differing(reports: Sequence[Report]) -> set[str]:
    """Return the relevant fields in which the signatures differ."""
    fields = [parsed_signature(report.signature) for report in reports]
    keys = {key for of in fields for key in of} - OF_ITEMS
    found = {key for key in keys if len({of.get(key) for of in fields}) > 1}
    data = {(of.get(ITEM_SET), of.get(REFERENCES)) for of in fields}
    # Other items have other references; of the same items they matter.
    return found | {REFERENCES} if len(data) > len({items for items, _ in data}) else found


def _live(runs: Sequence[FoundRun]) -> Iterator[Markup]:
    if not runs:
        return
    rows = [
        element(
            "li",
            element("b", _link(run)),
            f" {run.scored:,} of {run.items:,} items – {run.state.lower()}",
            element(
                "progress",
                value=str(run.scored),
                max=str(max(run.items, 1)),
                aria_label=f"Progress of {cut(run.name, _NAME_CHARS)}",
            ),
            data_key=run.name,
        )
        for run in runs
    ]
    yield element(
        "section",
        element("h2", "Not complete"),
        element("p", _RESUME, element("code", "--resume"), "."),
        element("ul", *rows),
        id="under-way",
    )


def _problems(runs: Sequence[FoundRun]) -> Iterator[Markup]:
    if runs:
        rows = [element("li", element("b", run.name), f" {run.problem}") for run in runs]
        yield element("section", element("h2", "Can't be read"), element("ul", *rows))


def _run_page(run: FoundRun) -> str:
    if run.under_way:
        with suppress(FileNotFoundError):
            return _live_page(run)
        # The run was completed a moment ago.
    stored = read_run(run.folder)
    about = stored.about()
    title = run.title or about.title
    return stored.page(structs.replace(about, title=title, date=stored.date(), overview=_OVERVIEW))


def _live_page(run: FoundRun) -> str:
    """Return the page of a run under way, which updates itself.

    Raises:
        FileNotFoundError: The run has been completed in the meantime.
    """
    held = read_under_way(run.folder)
    about = structs.replace(held.about, title=run.title or held.about.title, overview=_OVERVIEW)
    progress = _progress(run, held)
    if held.report is None:
        body = [page_links(_OVERVIEW, items=False), progress, element("h1", about.title)]
        title = f"{about.title} – Hallujudge"
        return document(title, [first_section(*body, live=True)], scripts=("live.js",))
    return render_parts(held.parts, held.report, about, Images(), live=progress)


def _progress(run: FoundRun, held: RunUnderWay) -> Markup:
    total = held.manifest.items
    return element(
        "section",
        element("p", *_progress_text(run, held), id="live-state", role="status"),
        element("progress", value=str(held.items), max=str(max(total, 1)), aria_label="Progress"),
        _class="under-way",
        aria_label="Progress of the run",
    )


def _progress_text(run: FoundRun, held: RunUnderWay) -> Iterator[Content]:
    yield element("b", f"{run.state}: ")
    yield f"{held.items:,} of {counted(held.manifest.items, 'item')} scored; "
    yield f"last written {_ago(held)}. "
    yield "The scores are of these items. " if held.items else "Items are shown once scored. "
    if not run.writing:
        yield _RESUME
        yield element("code", "--resume")
        yield "."


def _ago(held: RunUnderWay) -> str:
    # Clocks of two machines that share a disk may differ by seconds.
    seconds = max(0, round((datetime.now(tz=UTC) - held.written).total_seconds()))
    if seconds < 120:
        return f"{counted(seconds, 'second')} ago"
    return f"{counted(seconds // 60, 'minute')} ago"
