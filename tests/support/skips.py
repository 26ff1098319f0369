"""Lists skipped tests at the end of a run, and fails on unknown skips in CI.

With `--skips RUN`, every skip must have an entry in known_skips.toml that allows it in that run;
otherwise the run fails. Without the option nothing fails: a newcomer's machine lacks a few tools.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

KNOWN_SKIPS = Path(__file__).resolve().parents[1] / "known_skips.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSkip:
    """A reason for which tests may be skipped."""

    pattern: re.Pattern[str]
    why: str
    get: str
    allowed: frozenset[str]


def read_known(path: Path = KNOWN_SKIPS) -> tuple[KnownSkip, ...]:
    """Read the list of reasons."""
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["skip"]
    return tuple(
        KnownSkip(
            pattern=re.compile(row["pattern"]),
            why=row["why"],
            get=row["get"],
            allowed=frozenset(row["allowed"]),
        )
        for row in rows
    )


def find_known(reason: str, known: Iterable[KnownSkip]) -> KnownSkip | None:
    """Return the known reason that covers a skip, or None."""
    return next((entry for entry in known if entry.pattern.search(reason)), None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that makes unknown skips fail."""
    parser.addoption(
        "--skips", metavar="RUN", help="fail on skips that known_skips.toml does not allow in RUN"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the reporter in the process that prints, not in xdist's workers."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipReporter(config.getoption("--skips"), read_known()))


class SkipReporter:
    """Collects every skip of a run, and checks them at its end."""

    def __init__(self, run: str | None, known: tuple[KnownSkip, ...]) -> None:
        self.run = run
        self.known = known
        self.skips: dict[str, set[str]] = {}
        """Names of the skipped tests and modules under each reason."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a skipped test."""
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a skipped module."""
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            self.skips.setdefault(str(reason).removeprefix("Skipped: "), set()).add(report.nodeid)

    def refused(self) -> list[str]:
        """Return the reasons that are not known."""
        if self.run is None:
            return []
        entries = {reason: find_known(reason, self.known) for reason in self.skips}
        return [
            reason for reason, entry in entries.items()
            if entry is None or self.run not in entry.allowed
        ]  # fmt: skip

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail an otherwise successful run with unknown skips."""
        if session.exitstatus == pytest.ExitCode.OK and self.refused():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the skipped tests, the reasons, and how to run them."""
        if self.skips:
            terminalreporter.section("skipped: why, and what to do")
        for line in self.summary():
            terminalreporter.write_line(line)
        for reason in self.refused():
            tests = sorted(self.skips[reason])
            terminalreporter.write_line(
                f"ERROR: skip not allowed in the run '{self.run}': {reason} ({len(tests)}, first "
                f"{tests[0]}). Install what is missing, or allow it in {KNOWN_SKIPS.name}.",
                red=True,
            )

    def summary(self) -> list[str]:
        """Return one line for each known reason, then the unknown ones as they are."""
        counts: dict[str, int] = {}
        for reason, tests in self.skips.items():
            entry = find_known(reason, self.known)
            text = f"{entry.why} To run: {entry.get}" if entry else reason
            counts[text] = counts.get(text, 0) + len(tests)
        return [f"{counts[text]:4}  {text}" for text in sorted(counts, key=lambda t: -counts[t])]
