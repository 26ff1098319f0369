"""``hallujudge doctor``: checks of this installation, and advice."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import typer

from ..client import Client
from ..errors import HallujudgeError, MissingExtraError
from .app import ExitCode

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.registry import MetricEntry
    from hallujudge.judge_service.judges import Check
    from hallujudge.judge_service.settings.connection import Connection
    from hallujudge.judge_service.settings.server_settings import ResolvedSettings
    from hallujudge.metrics import ItemResult

__all__ = ["examine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    name: str
    ok: bool
    text: str
    needed: bool = True


def examine(
    server: str | None, judges: Mapping[str, object], connection: Connection | None = None
) -> ExitCode:
    """Run every check and print the findings; a missing optional part is not a failure.

    Args:
        server: The address of a server to check too.
        judges: Settings of the judges.
        connection: Certificates and API key for the server.
    """
    findings = list(_findings(server, judges, connection))
    for finding in findings:
        mark = "ok" if finding.ok else ("FAILED" if finding.needed else "absent")
        typer.echo(f"{mark:>6}  {finding.name}: {finding.text}")
    failed = any(finding.needed and not finding.ok for finding in findings)
    return ExitCode.FAILED if failed else ExitCode.OK


def _findings(
    server: str | None, judges: Mapping[str, object], connection: Connection | None
) -> Iterator[_Finding]:
    from .. import __version__

    yield _Finding(
        name="release",
        ok=True,
        text=f"hallujudge {__version__} on Python {platform.python_version()}",
    )
    yield _try("graphs", _graphs)
    with Client.embedded() as client:
        yield from _metrics(client, "here")
    yield from _extras()
    yield from _judge(judges)
    yield from _small_judges(judges)
    if server is not None:
        yield from _server(server, connection)


def _extras() -> Iterator[_Finding]:
    from hallujudge.judge_service.installation import EXTRA_MODULES, install_advice, missing_modules

    for extra in EXTRA_MODULES:
        missing = missing_modules(extra)
        text = f"{', '.join(missing)} missing: {install_advice(extra)}" if missing else "installed"
        if extra == "spacy" and not missing:
            text = f"installed; {_pipelines()}"
        yield _Finding(name=f"extra {extra}", ok=not missing, text=text, needed=False)


def _pipelines() -> str:
    from hallujudge.judge_service.extractors.library_extractors import (
        installed_pipelines,
    )

    names = ", ".join(installed_pipelines())
    return (
        f"pipelines: {names}" if names else "no pipeline: python -m spacy download en_core_web_sm"
    )


def _judge(arguments: Mapping[str, object]) -> Iterator[_Finding]:
    """The llm judge's server, where one is set up."""
    from hallujudge.judge_service.engine.judge_factory import JudgeFactory
    from hallujudge.judge_service.judges import check_endpoint
    from hallujudge.judge_service.settings.server_settings import load_settings

    resolved = load_settings(arguments)
    if not resolved.judges.llm_url and not resolved.judges.llm_model:
        yield _Finding(
            name="llm judge", ok=False, text="none is set up (--llm-url, --llm-model)", needed=False
        )
        return

    async def checks() -> list[Check]:
        factory = JudgeFactory(resolved.judges, resolved.keys)
        try:
            return await check_endpoint(factory.llm())
        finally:
            await factory.close()

    try:
        found = asyncio.run(checks())
    except HallujudgeError as err:
        yield _Finding(name="llm judge", ok=False, text=str(err))
        return
    for check in found:
        yield _Finding(
            name=f"llm judge, {check.name}",
            ok=bool(check.ok),
            text=check.detail,
            needed=check.ok is not None,
        )
    answers = {check.name: check.ok for check in found}
    if answers.get("model") is not False and answers.get("answer"):
        yield from _judge_trials(arguments)


def _small_judges(arguments: Mapping[str, object]) -> Iterator[_Finding]:
    """Each small judge that the settings name, on a clear example."""
    from hallujudge.judge_service.engine.judge_options import configured_small_judges
    from hallujudge.judge_service.settings.server_settings import load_settings

    resolved = load_settings(arguments)
    for name in configured_small_judges(resolved.judges):
        yield _try(f"small judge {name}", partial(_small_verdict, resolved, name))


def _small_verdict(resolved: ResolvedSettings, name: str) -> str:
    from hallujudge.judge_service.engine.judge_factory import JudgeFactory
    from hallujudge.judge_service.judges import check_small

    async def checked() -> Check:
        factory = JudgeFactory(resolved.judges, resolved.keys)
        try:
            return await check_small(factory.judge(name))
        finally:
            await factory.close()

    check = asyncio.run(checked())
    if not check.ok:
        raise ValueError(check.detail)
    return check.detail


def _judge_trials(arguments: Mapping[str, object]) -> Iterator[_Finding]:
    """Have the judge decide the clear example of each metric that has one."""
    from hallujudge.judge_service.engine.registry import metric_entry, metric_names

    with Client.embedded(arguments) as client:
        for name in metric_names():
            entry = metric_entry(name)
            if entry.judge_trial is not None:
                yield _try(f"llm judge, {name}", partial(_judge_score, client, entry))


def _judge_score(client: Client, entry: MetricEntry) -> str:
    from hallujudge.judge_service.engine.spec import ScoreSpec

    trial = entry.judge_trial
    assert trial is not None, "only metrics with a trial"
    spec = ScoreSpec(metric=entry.name, variant=_plain(entry), options={entry.judge_option: "llm"})
    found: list[ItemResult] = []
    report = client.score_items(
        spec, [trial.item], on_batch=lambda batch: found.extend(batch.results)
    )
    if reason := next((each.reason for each in found if each.reason), ""):
        raise ValueError(f"no verdict on a clear example: {reason}: {found[0].detail}")
    if report[trial.score].value != trial.value:
        raise ValueError("the judge decides a clear example wrongly; choose a larger model")
    return "decides a clear example as it should"


def _plain(entry: MetricEntry) -> str:
    """Return the variant that leaves what the judge does not decide unscored, if there is one."""
    return "corrected" if "corrected" in entry.variants else ""


def _try(name: str, check: Callable[[], str]) -> _Finding:
    try:
        return _Finding(name=name, ok=True, text=check())
    except MissingExtraError as err:
        # A part that is not installed limits what can be scored; it is no defect.
        return _Finding(name=name, ok=False, text=str(err), needed=False)
    except (HallujudgeError, ValueError) as err:
        return _Finding(name=name, ok=False, text=str(err))


def _graphs() -> str:
    from hallujudge.synonym_graphs import load_graph, shipped_graphs, validate_graph

    labels = []
    for name in shipped_graphs():
        graph = load_graph(name)
        if problems := validate_graph(graph):
            raise ValueError(f"{graph.label}: {problems[0]}")
        labels.append(graph.label)
    return ", ".join(labels)


def _server(target: str, connection: Connection | None) -> Iterator[_Finding]:
    with Client(target, timeout=10, connection=connection) as client:
        reached = _try(f"server {target}", lambda: f"release {client.server_info().version}")
        yield reached
        if reached.ok:
            yield from _metrics(client, f"at {target}")


def _metrics(client: Client, place: str) -> Iterator[_Finding]:
    """Score each metric's own example with its defaults, models and weights included."""
    from hallujudge.judge_service.engine.registry import metric_entry, metric_names

    for name in metric_names():
        entry = metric_entry(name)
        yield _try(f"metric {name} {place}", partial(_score, client, entry))


def _score(client: Client, entry: MetricEntry) -> str:
    from hallujudge.judge_service.engine.spec import ScoreSpec

    trial = entry.trial
    report = client.score_items(ScoreSpec(metric=entry.name), [trial.item])
    value = report[trial.score].value
    if value != trial.value:
        raise ValueError(
            f"{trial.score} of a small example is {value}, not {trial.value:g}: "
            "this installation scores wrongly; install hallujudge again"
        )
    return f"{trial.score} of a small example is {trial.value:g}, as it should be"
