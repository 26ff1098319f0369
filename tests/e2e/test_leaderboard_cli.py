"""``hallujudge leaderboard``: every format, and errors in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.comparison_runs import chair_run, pope_run
from support.running import assert_refused, here

from hallujudge.sdk.cli import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name, wrong in (("a", 0.9), ("b", 0.2), ("c", 0.5)):
        chair_run(folder / name, wrong, seed=len(name))
    pope_run(folder / "pope", 0.9)
    return folder


def ranked(*words: str) -> int:
    return main(["leaderboard", *words, "--replicates", "300"])


def test_every_format(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs)
    shown = {}
    for name in ("table", "json", "markdown", "csv", "latex", "html"):
        assert ranked("a", "b", "c", "-f", name) == 0
        shown[name] = capsys.readouterr().out
    assert [row["run"] for row in json.loads(shown["json"])["rows"]] == ["b", "c", "a"]
    assert shown["table"].splitlines()[5].startswith("1      b ")
    assert shown["csv"].splitlines()[1].startswith("1,b,")
    assert "\n| 1 | b | " in shown["markdown"]
    assert r"\toprule" in shown["latex"]
    assert shown["html"].startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a",), "at least 2"),
        (("none",), "none: no such folder; give the folder of a run"),
        (("a", "none"), "no such folder"),
        (("a", "pope"), "the metrics are chair and pope"),
        (("a", "b", "--score", "mean_words"), "no better end"),
        (("a", "b", "--score", "f1"), "chair has no score 'f1'"),
        (("a", "b", "--name", "x"), "1 name for 2 runs"),
        (("a", "b", "--confidence", "2"), "error: --confidence is 2.0"),
    ],
)
def test_errors(runs: Path, words: tuple[str, ...], said: str) -> None:
    assert_refused(here("leaderboard", *words, "--replicates", "300", cwd=runs), said)


def test_the_folder_of_score_all_is_ranked_by_every_metric(tmp_path: Path) -> None:
    for model, others in (("llava", ("yes", "no")), ("minigpt", ("no", "yes"))):
        rows = [
            {
                "question_id": n,
                "question": f"Is there a {['dog', 'cat', 'cup'][n % 3]} in the image?",
                "label": ("yes", "no")[n % 2],
                "answer": (others if n % 4 else ("yes", "no"))[n % 2],
                # One of the logs knows no images.
                **({"image": f"COCO_val2014_{n // 3:012}.jpg"} if model == "llava" else {}),
            }
            for n in range(60)
        ]
        (tmp_path / "logs" / model).mkdir(parents=True)
        log = tmp_path / "logs" / model / "answers.jsonl"
        log.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    scored = here("score", "all", "logs", "--out", "scores", cwd=tmp_path)
    assert scored.returncode == 0, scored.stderr
    told = here("leaderboard", "scores", "--replicates", "300", "-f", "json", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    board = json.loads(told.stdout)["boards"]["pope"]
    assert [row["run"] for row in board["rows"]] == ["llava", "minigpt"]
    # What POPE's paper ranks by, and not the first score.
    assert board["score"] == "f1"
    assert board["items"] == 60
