"""The description of a run."""

from __future__ import annotations

from pathlib import Path

from hallujudge.sdk import InputOptions, ScoreRun


def test_every_file_that_a_run_reads_is_known() -> None:
    """No output may take the place of one."""
    run = ScoreRun(
        "amber",
        responses="answers.json",
        references=["instances.json", Path("captions.json")],
        graph={"objects": "graph.json"},
        inputs=InputOptions(
            own={
                "nouns": "nouns.json",
                "questions": "questions.json",
                "associations": Path("relation.json"),
                "safe_words": "safe_words.txt",
            },
        ),
    )
    assert [str(path) for path in run.paths()] == [
        "answers.json",
        "instances.json",
        "captions.json",
        "graph.json",
        "questions.json",
        "nouns.json",
        "relation.json",
        "safe_words.txt",
    ]


def test_values_and_addresses_are_no_files() -> None:
    run = ScoreRun("chair", responses={"1": "A dog."}, references="https://example.com/a.json")
    assert run.paths() == ()
