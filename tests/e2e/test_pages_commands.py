"""Commands of README and docs/ run as they are printed, on the examples that ``new`` writes."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from support import documentation
from support.documentation import PAGES, ROOT
from support.running import assert_refused, here

from hallujudge.sdk.archives.example_files import example_archives, write_example

# Words of commands that need more than the files of an example. Their own tests run such commands.
ELSEWHERE = {
    "a server": {"serve", "submit", "jobs", "fetch", "--server", "view", "doctor", "ray"},
    "a language model": {
        "ask",
        "batch",
        "--llm-url",
        "--url",
        "--judge",
        "--estimate",
        "--encoder",
    },
    "what was asked before": {"qwen.jsonl", "mcqa.jsonl"},
    "videos and pictures": {
        "videos",
        "pictures",
        "--manifest",
        "infact-audit",
        "infact-questions",
        "--audit",
    },
    "people": {"label", "calibrate", "judge", "--sheet"},
    "files of other tools": {"archive", "audit", "all", "--parser", "scores"},
    "released files": {
        *("coco_pope_adversarial.json", "coco_repope_adversarial.json", "label_scores"),
        *("changed_labels", "instances_val2014.json", "dash_benchmark_neg.json", "val2014"),
    },
    "files of one's own": {"build", "graph", "keys", "--benchmark", "--object-graph", "FILE"},
    "several different runs": {"subaspect", "runs/vqa", "shard-1"},
    "a tracker": {"--to"},
    "a shell": {"--install-completion", "$protocol.jsonl"},
}


def commands(text: str) -> Iterator[list[str]]:
    for words in documentation.commands(text):
        # What follows is for a shell.
        ends = [words.index(mark) for mark in (">", "&", "|", ";") if mark in words]
        yield words[1 : min(ends, default=None)]


def runnable(words: Sequence[str]) -> bool:
    return not any(ELSEWHERE[reason] & {*words} for reason in ELSEWHERE)


# Names of runs on the pages, and their metrics where a page has several.
RUNS = {
    **dict.fromkeys(re.findall(r"\bruns/[\w-]+", "".join(page.read_text() for page in PAGES)), ""),
    **dict.fromkeys(("results", "run"), ""),
    **dict.fromkeys(("pope-run", "pope-1", "pope-2"), "pope"),
    "chair-run": "chair",
}

COMMANDS = sorted(
    {
        (page.relative_to(ROOT).as_posix(), tuple(words))
        for page in PAGES
        for words in commands(page.read_text(encoding="utf-8"))
        if runnable(words)
    }
)


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that returns a finished run of a metric's example."""
    found: dict[str, Path] = {}

    def run(metric: str) -> Path:
        if metric not in found:
            folder = tmp_path_factory.mktemp(metric)
            words = shlex.split(write_example(metric, folder).command)[1:]
            done = here(*words, cwd=folder)
            assert done.returncode in (0, 3), done.stderr
            found[metric] = folder / "results"
        return found[metric]

    return run


@pytest.mark.parametrize("metric", example_archives())
def test_an_example_scores(metric: str, scored: Callable[[str], Path]) -> None:
    assert json.loads((scored(metric) / "report.json").read_text())["coverage"]["scored"]


def test_a_file_of_the_users_own_is_kept(tmp_path: Path) -> None:
    (tmp_path / "answers.json").write_text("[]")
    refused = here("new", "amber", "-o", tmp_path)
    assert refused.returncode == 1
    assert "answers.json exists already, with other content" in refused.stderr
    assert (tmp_path / "answers.json").read_text() == "[]"
    assert_refused(here("new", "no-metric"), "no example for metric 'no-metric'")


def test_the_demo_writes_a_report_to_open(tmp_path: Path) -> None:
    for _ in range(2):
        done = here("demo", "-o", tmp_path / "demo")
        assert done.returncode == 0, done.stderr
        [page] = re.findall(r"file://(\S+)", done.stdout)
        assert "</html>" in Path(page).read_text()
        assert "chair_i      0.2099" in done.stdout


def metric_of(page: str, words: Sequence[str]) -> str:
    if words[0] == "score":
        return words[1]
    text = (ROOT / page).read_text(encoding="utf-8")
    named = (each[1] for each in commands(text) if each[0] == "score" and each[1] != "all")
    # Tables by sampling are POPE's.
    return "pope" if "category,score" in words else next(named, "chair")


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=str)
def test_the_command_runs(
    page: str, words: tuple[str, ...], tmp_path: Path, scored: Callable[[str], Path]
) -> None:
    metric = metric_of(page, words)
    if words[0] != "new":
        write_example(metric, tmp_path)
    if words[0] != "score":
        for word in {*words} & {*RUNS}:
            shutil.copytree(scored(RUNS[word] or metric), tmp_path / word)
    done = here(*words, cwd=tmp_path)
    assert done.returncode in (0, 3), done.stderr
