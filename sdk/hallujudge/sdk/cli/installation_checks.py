"""What ``hallujudge doctor`` checks: judges, a server, graphs, metrics, extras, databases."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from hallujudge.judge_service import (
    EXTRA_MODULES,
    __version__,
    install_advice,
    missing_modules,
)
from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.engine.judge_options import configured_small_judges
from hallujudge.judge_service.engine.registry import MetricEntry, metric_entry
from hallujudge.judge_service.engine.spec import ScoreSpec
from hallujudge.judge_service.extractors.library_extractors import installed_pipelines
from hallujudge.judge_service.judges.judge_checks import check_endpoint, check_small
from hallujudge.judge_service.judges.single_checks import check_sight
from hallujudge.judge_service.llm.vllm_serving import ModelShape, local_gpus, local_verdict
from hallujudge.judge_service.settings.connection import Connection
from hallujudge.judge_service.settings.loading import ResolvedSettings, load_settings
from hallujudge.metrics import ItemResult
from hallujudge.metrics.families import broken_benchmarks, metric_names
from hallujudge.metrics.framework.report import JudgeShare
from hallujudge.synonym_graphs import load_graph, shipped_graphs, validate_graph

from ..backends import Timeouts
from ..client import Client
from ..errors import HallujudgeError, MissingExtraError

_Result = TypeVar("_Result")
# A check says what is wrong after seconds; a run would wait for a judge that comes back.
_SHORT_PATIENCE: Mapping[str, object] = {
    "llm.attempts": 2,
    "outage_seconds": 5.0,
    "give_up_after": 20.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check."""

    name: str
    """What was checked."""
    ok: bool
    """Whether it works."""
    text: str
    """What was found."""
    needed: bool = True
    """Whether the check fails without it; False for optional parts."""


def installation_findings(
    server: str | None, judges: Mapping[str, object], connection: Connection | None
) -> Iterator[Finding]:
    """Check the installation, its judges, and a server if one is named.

    Args:
        server: Host and port of the server.
        judges: Settings of the judges.
        connection: How to connect to the server.
    """
    judges = {**judges, **_SHORT_PATIENCE}
    yield Finding(
        name="release",
        ok=True,
        text=f"hallujudge {__version__} on Python {platform.python_version()}",
    )
    # What was named comes before the metrics and extras, which are fifty lines.
    yield from _judge_findings(judges)
    yield from _small_judges(judges)
    if server is not None:
        yield from _server_findings(server, connection)
    yield _finding_of("graphs", _graphs)
    for name, why in broken_benchmarks().items():
        yield Finding(name=f"benchmark {name}", ok=False, text=why)
    # One client for all: starting one for each metric would load the engine as often.
    with Client.embedded() as client:
        yield from _metric_findings(client, "here")
    yield from _extras()
    yield from _state()


def vllm_findings(shape: ModelShape) -> Iterator[Finding]:
    """Check whether GPUs of this machine hold a model."""
    settings = load_settings().judges
    each = shape.kv_bytes(1) / 1024
    yield Finding(
        name="model",
        ok=True,
        text=f"{shape.size} in {shape.precision}, "
        f"{each:,.0f} KiB of cache a token, prompts up to {shape.context:,} ({shape.source})",
    )
    gpus = local_gpus()
    if not gpus:
        yield Finding(name="GPUs", ok=False, text="none seen by nvidia-smi here", needed=False)
        return
    quantized = "FP8" if settings.vllm.quantization else shape.precision
    ok, text = local_verdict(shape, quantized, settings.vllm.tensor_parallel_size, gpus)
    yield Finding(name="GPUs", ok=ok, text=text)


def _extras() -> Iterator[Finding]:
    for extra in EXTRA_MODULES:
        missing = missing_modules(extra)
        text = f"{', '.join(missing)} missing: {install_advice(extra)}" if missing else "installed"
        if extra == "spacy" and not missing:
            text = f"installed; {_pipelines()}"
        yield Finding(name=f"extra {extra}", ok=not missing, text=text, needed=False)


def _state() -> Iterator[Finding]:
    """The databases of a server that was started here, compared with its last start."""
    if missing_modules("server"):
        return
    # The server's own libraries are needed from here on.
    from hallujudge.judge_service.server.known_databases import known_databases

    for one in known_databases(load_settings()):
        if one.id:
            text = f"{one.problem}: {one.contents} are lost" if one.is_lost else str(one.path)
            yield Finding(name="state", ok=not one.is_lost, text=text)


def _pipelines() -> str:
    names = ", ".join(installed_pipelines())
    return (
        f"pipelines: {names}" if names else "no pipeline: python -m spacy download en_core_web_sm"
    )


def _judge_findings(arguments: Mapping[str, object]) -> Iterator[Finding]:
    """The llm judge's server, where one is set up."""
    resolved = load_settings(arguments)
    if not resolved.judges.llm.url and not resolved.judges.llm.model:
        yield Finding(
            name="llm judge", ok=False, text="none is set up (--llm-url, --llm-model)", needed=False
        )
        return

    try:
        found = asyncio.run(_checked(resolved, lambda factory: check_endpoint(factory.llm())))
    except HallujudgeError as err:
        yield Finding(name="llm judge", ok=False, text=str(err))
        return
    for check in found:
        yield Finding(
            name=f"llm judge, {check.name}",
            ok=bool(check.ok),
            text=check.detail,
            needed=check.ok is not None,
        )
    answers = {check.name: check.ok for check in found}
    # Without a reply, a trial of each metric would fail for the same reason, one after the other.
    if answers.get("model") is not False and answers.get("answer"):
        yield from _judge_trials(arguments)
        sees = asyncio.run(_checked(resolved, lambda factory: check_sight(factory.llm().client)))
        # Most judges see no pictures, and most metrics show none.
        yield Finding(name="llm judge, pictures", ok=bool(sees.ok), text=sees.detail, needed=False)


def _small_judges(arguments: Mapping[str, object]) -> Iterator[Finding]:
    """Each small judge that the settings name, on a clear example."""
    resolved = load_settings(arguments)
    for name in configured_small_judges(resolved.judges):
        yield _finding_of(f"small judge {name}", partial(_small_verdict, resolved, name))


def _small_verdict(resolved: ResolvedSettings, name: str) -> str:
    check = asyncio.run(_checked(resolved, lambda factory: check_small(factory.judge(name))))
    if not check.ok:
        raise ValueError(check.detail)
    return check.detail


async def _checked(
    resolved: ResolvedSettings, check: Callable[[JudgeFactory], Awaitable[_Result]]
) -> _Result:
    """Return what a check of judges finds, and close them."""
    factory = JudgeFactory(resolved.judges, resolved.keys)
    try:
        return await check(factory)
    finally:
        await factory.close()


def _judge_trials(arguments: Mapping[str, object]) -> Iterator[Finding]:
    """Have the judge decide the clear example of each metric that has one."""
    with Client.embedded(arguments) as client:
        for name in metric_names():
            entry = metric_entry(name)
            if entry.judge_trial is not None:
                yield _finding_of(f"llm judge, {name}", partial(_judge_score, client, entry))


def _judge_score(client: Client, entry: MetricEntry) -> str:
    trial = entry.judge_trial
    assert trial is not None, "only metrics with a trial"
    # The variant that leaves what the judge does not decide unscored, if there is one.
    plain = "corrected" if "corrected" in entry.variants else ""
    spec = ScoreSpec(metric=entry.name, variant=plain, options={entry.judge_option: "llm"})
    found: list[ItemResult] = []
    report = client.score_items(
        spec, [trial.item], on_batch=lambda batch: found.extend(batch.results)
    )
    if reason := next((each.reason for each in found if each.reason), ""):
        raise ValueError(f"no verdict on a clear example: {reason}: {found[0].detail}")
    for share in report.judging:
        if share.declined and not share.decided:
            raise ValueError(f"no verdict on a clear example: {_declined(found[0], share)}")
    # Not an exact reply but the score counts, as models word their replies in many ways.
    if report[trial.score].value != trial.value:
        raise ValueError("the judge decides a clear example wrongly; choose a larger model")
    return "decides a clear example as it should"


def _declined(result: ItemResult, share: JudgeShare) -> str:
    """Return why a judge gave no verdict on an item, in words if its evidence has them."""
    entries = getattr(result.evidence, "judging", ())
    reasons = [each["declined"] for each in entries if each["judge"] == share.judge]
    known = {reason: about["detail"] for each in reasons for reason, about in each.items()}
    return "; ".join(f"{reason}: {known.get(reason, '')}" for reason in share.declined)


def _finding_of(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name=name, ok=True, text=check())
    except MissingExtraError as err:
        # A part that is not installed limits what can be scored; it is not a defect.
        return Finding(name=name, ok=False, text=str(err), needed=False)
    except (HallujudgeError, ValueError) as err:
        return Finding(name=name, ok=False, text=str(err))


def _graphs() -> str:
    labels = []
    for name in shipped_graphs():
        graph = load_graph(name)
        if problems := validate_graph(graph):
            raise ValueError(f"{graph.label}: {problems[0]}")
        labels.append(graph.label)
    return ", ".join(labels)


def _server_findings(target: str, connection: Connection | None) -> Iterator[Finding]:
    # A server that does not answer is a finding; the check waits only briefly.
    with Client(target, timeouts=Timeouts(call_timeout=10), connection=connection) as client:
        reached = _finding_of(f"server {target}", lambda: f"release {client.server_info().version}")
        yield reached
        # Otherwise each metric would fail once more for the server's reason.
        if reached.ok:
            yield from _metric_findings(client, f"at {target}")


def _metric_findings(client: Client, place: str) -> Iterator[Finding]:
    """Score each metric's own example with its defaults, models and weights included."""
    for name in metric_names():
        entry = metric_entry(name)
        yield _finding_of(f"metric {name} {place}", partial(_try_scoring, client, entry))


def _try_scoring(client: Client, entry: MetricEntry) -> str:
    trial = entry.trial
    report = client.score_items(ScoreSpec(metric=entry.name), [trial.item])
    value = report[trial.score].value
    if value != trial.value:
        raise ValueError(
            f"{trial.score} of a small example is {value}, not {trial.value:g}: "
            "this installation scores wrongly; install hallujudge again"
        )
    return f"{trial.score} of a small example is {trial.value:g}, as it should be"
