"""Opening a session: models and graphs are loaded once, and not on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from support.messages import expected_message
from support.threads import Gate
from support.worker_tasks import RULE_METRICS

from hallujudge.judge_service.engine import Engine, resources
from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.judge_service.engine.session import ScoringSession
from hallujudge.judge_service.engine.spec import GraphSource, InlineGraph, ScoreSpec
from hallujudge.judge_service.errors import InvalidInputError, NotFoundError
from hallujudge.judge_service.matchers import MatcherSettings
from hallujudge.judge_service.matchers import matcher_models as opening
from hallujudge.judge_service.matchers.model_folders import ModelFolder
from hallujudge.judge_service.settings.judge_settings import JudgeSettings, LlmSettings
from hallujudge.metrics.framework.results import UnscoredReason
from hallujudge.synonym_graphs import SynonymGraph

SPEC = ScoreSpec(metric="tri-he", options={"extractor": "given"})


class GatedModels:
    """Opens encoders once the test lets it; the first of them may fail."""

    label = "none"
    size = 1

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.gate = Gate()

    @property
    def opened(self) -> int:
        return len(self.gate.threads)

    def open(self, _model: ModelFolder, _settings: MatcherSettings) -> GatedModels:
        self.gate.wait()
        if self.opened <= self.failures:
            raise NotFoundError("the model is not on this machine")
        return self


def find_nothing(name: str, *, allow_download: bool = False) -> ModelFolder:
    return ModelFolder(name=name, path=Path(), sha256="0" * 64, config={})


@pytest.fixture
def gated(monkeypatch: pytest.MonkeyPatch) -> Callable[..., GatedModels]:
    def make(failures: int = 0) -> GatedModels:
        models = GatedModels(failures)
        monkeypatch.setattr(opening, "find_model", find_nothing)
        monkeypatch.setattr(opening, "open_encoder", models.open)
        return models

    return make


async def test_others_go_on_while_a_matcher_loads(gated: Callable[..., GatedModels]) -> None:
    models = gated()
    engine = Engine()
    opening = asyncio.ensure_future(engine.open(SPEC))
    await models.gate.reached()
    # Another metric opens from start to end while the matcher waits at its gate.
    assert isinstance(await engine.open(ScoreSpec(metric="pope")), ScoringSession)
    assert not opening.done()
    models.gate.open()
    await opening
    assert models.opened == 1
    assert models.gate.loop_thread not in models.gate.threads


async def test_calls_that_come_at_once_load_once(gated: Callable[..., GatedModels]) -> None:
    models = gated()
    engine = Engine()
    opening = asyncio.gather(engine.open(SPEC), engine.open(SPEC), engine.open(SPEC))
    await models.gate.reached()
    models.gate.open()
    assert len({id(session) for session in await opening}) == 3
    assert models.opened == 1
    await engine.open(SPEC)
    assert models.opened == 1


async def test_a_failed_load_is_tried_again(gated: Callable[..., GatedModels]) -> None:
    models = gated(failures=1)
    models.gate.open()
    engine = Engine()
    with pytest.raises(
        NotFoundError, match=expected_message("integrations.ray_workers:not-on-this-machine")
    ):
        await engine.open(SPEC)
    assert isinstance(await engine.open(SPEC), ScoringSession)
    assert models.opened == 2


@pytest.mark.parametrize("source", [None, InlineGraph(name="own", text='{"dog": ["puppy"]}')])
async def test_others_go_on_while_a_graph_is_read(
    monkeypatch: pytest.MonkeyPatch, source: GraphSource | None
) -> None:
    gate, read = Gate(), resources.read_graph

    def gated_read(given: GraphSource) -> SynonymGraph:
        gate.wait()
        return read(given)

    monkeypatch.setattr(resources, "read_graph", gated_read)
    engine = Engine()
    graphs = {} if source is None else {"objects": source}
    opening = asyncio.ensure_future(engine.open(ScoreSpec(metric="chair", graphs=graphs)))
    await gate.reached()
    assert isinstance(await engine.open(ScoreSpec(metric="pope")), ScoringSession)
    assert not opening.done()
    gate.open()
    assert isinstance(await opening, ScoringSession)
    assert gate.loop_thread not in gate.threads


async def test_a_session_of_a_judge_is_refused_before_its_first_item(tmp_path: Path) -> None:
    settings = JudgeSettings(
        llm=LlmSettings(url="http://127.0.0.1:1/v1", model="m"),
        verdict_cache=str(tmp_path / "absent" / "cache"),
    )
    engine = Engine(Resources(lambda: JudgeFactory(settings)))
    spec = ScoreSpec(metric="tri-he", options={"extractor": "given", "judge": "llm"})
    with pytest.raises(InvalidInputError, match="folder exists"):
        await engine.open(spec)


@pytest.mark.parametrize("metric", RULE_METRICS)
async def test_an_item_that_is_not_scored_keeps_its_place_in_the_report(metric: str) -> None:
    item = metric_entry(metric).trial.item
    session = await Engine().open(ScoreSpec(metric=metric))
    [scored] = await session.evaluate([item])
    [dead] = session.unscored([item], "it died")
    assert (dead.reason, dead.detail) == (UnscoredReason.PROCESS_DIED, "it died")
    assert (dead.group_id, dict(dead.fields)) == (scored.group_id, dict(scored.fields))
    assert len(dead.statistics) in (0, len(session.statistic_names))
    session.add([dead])
    coverage = session.report().coverage
    assert (coverage.items, coverage.reasons) == (1, {"PROCESS_DIED": 1})
