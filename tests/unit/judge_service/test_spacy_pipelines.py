"""Which spaCy pipelines are installed, and which runs need one."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from hallujudge.judge_service.engine import ScoreSpec
from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.extractors import (
    library_extractors as spacy_pipelines,
)


def test_installed_pipelines_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(*, group: str) -> list[EntryPoint]:
        assert group == "spacy_models"
        return [EntryPoint(name, name, group) for name in ("en_core_web_trf", "en_core_web_sm")]

    monkeypatch.setattr(spacy_pipelines, "entry_points", installed)
    assert spacy_pipelines.installed_pipelines() == ("en_core_web_sm", "en_core_web_trf")


@pytest.mark.parametrize(
    ("extractor", "needed"),
    [("rules", False), ("sentences", False), ("spacy", True), ("llm", True)],
)
def test_extraction_with_a_model_stays_out_of_worker_processes(
    extractor: str, needed: bool
) -> None:
    spec = ScoreSpec(metric="tri-he", options={"extractor": extractor})
    assert metric_entry("tri-he").extracts_with_models(spec) is needed
