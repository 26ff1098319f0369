"""``--variant both``: two runs, one table, and no call paid twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import scripted_llm as llm
from support.running import here
from support.tri_he_samples import FALSE, TRUE, answer, score

from hallujudge.sdk import write_example


@pytest.fixture
def model() -> Iterator[llm.ScriptedLlm]:
    server = llm.ScriptedLlm(llm.by_scene_graph)
    stop = server.in_thread()
    yield server
    stop()


def test_both_variants_are_printed_side_by_side(tmp_path: Path) -> None:
    write_example("chair", tmp_path)
    given = (tmp_path / "captions.jsonl", tmp_path / "objects.json")
    common = ("score", "chair", "-r", given[0], "-R", given[1])
    run = here(*common, "--variant", "both", "-o", tmp_path / "both")
    assert run.returncode == 0, run.stderr
    values = {}
    for variant in ("published", "corrected"):
        alone = here(*common, "--variant", variant, "-o", tmp_path / variant)
        assert alone.returncode == 0, alone.stderr
        for name in ("report.json", "items.jsonl"):
            assert (tmp_path / "both" / variant / name).read_bytes() == (
                tmp_path / variant / name
            ).read_bytes()
        report = json.loads((tmp_path / variant / "report.json").read_text())
        values[variant] = report["scores"]["chair_i"]["value"]
    (row,) = [line.split() for line in run.stdout.splitlines() if line.startswith("chair_i ")]
    difference = f"{values['corrected'] - values['published']:+.4f}"
    assert row == [
        "chair_i", f"{values['published']:.4f}", f"{values['corrected']:.4f}", difference
    ]  # fmt: skip
    assert all(len(line) <= 80 for line in run.stdout.splitlines()[:-1])


def test_a_judge_is_asked_once_for_both(tmp_path: Path, model: llm.ScriptedLlm) -> None:
    answers = [answer("1", TRUE, FALSE, question=f"{n}?") for n in range(3)]
    flags = ("--judge", "llm", "--llm-url", model.url, "--llm-model", "m")
    both = score(tmp_path, answers, *flags, "--variant", "both")
    assert both.returncode == 0, both.stderr
    for_both = model.chats
    (tmp_path / "out" / "verdicts.sqlite").unlink()
    once = score(tmp_path, answers, *flags)
    assert once.returncode == 0, once.stderr
    assert model.chats == 2 * for_both
