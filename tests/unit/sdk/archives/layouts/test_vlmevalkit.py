"""Tables of VLMEvalKit."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.archive_samples import write_table

from hallujudge.sdk import Client
from hallujudge.sdk.archives import inspect_archives


@pytest.mark.parametrize("suffix", ["xlsx", "tsv"])
def test_a_blank_cell_of_vlmevalkit_counts_as_an_empty_answer(tmp_path: Path, suffix: str) -> None:
    """VLMEvalKit's table takes it for an answer that says neither yes nor no."""
    rows = [
        {"index": n, "question": "Is there a dog?", "answer": "Yes", "prediction": text}
        for n, text in enumerate(["Yes", "Yes", None])
    ]
    path = tmp_path / f"model_POPE.{suffix}"
    write_table(path, rows)
    with Client.embedded() as client:
        report = client.score("pope", responses=path, variant="vlmevalkit")
        counted = client.score(
            "pope", responses=path, variant="vlmevalkit", options={"count_empty": "true"}
        )
    assert dict(report.coverage.reasons) == {"RESPONSE_EMPTY": 1}
    assert counted.scores["accuracy"].value == 2 / 3


@pytest.mark.parametrize("more", [{}, {"extracted": "Yes", "score": 1}])
@pytest.mark.parametrize("kind", ["yes_no", "multiple_choice"])
def test_a_type_beside_a_category_of_amber_makes_no_naturalbench_of_it(
    tmp_path: Path, kind: str, more: dict[str, object]
) -> None:
    row = {"index": 1, "question": "Is it red?", "answer": "yes", "prediction": "Yes"}
    row |= {"category": "discriminative-attribute-state", "type": kind, **more}
    path = tmp_path / "model_AMBER.tsv"
    write_table(path, [row, {**row, "index": 2}])
    [summary] = inspect_archives([path])
    assert summary.metrics == ("amber",)
