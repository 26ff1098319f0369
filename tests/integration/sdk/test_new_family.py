"""A family is a module of its own in each layer, found by its place.

The toy family ``shout`` counts responses that end in an exclamation mark. Its files are written to
a temporary folder that the packages' paths are extended by, so that nothing of it stays.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import hallujudge.judge_service.engine.families
import hallujudge.metrics
import hallujudge.sdk.archives
import hallujudge.sdk.cli
from hallujudge.metrics.families import FAMILIES, metric_names
from hallujudge.sdk import Client
from hallujudge.sdk.cli import command_tree, main
from hallujudge.sdk.cli.app import score_app

METRIC = '''
"""Responses that shout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hallujudge.metrics.answers.closed_questions import AnswersEvidence, AnswerVerdict
from hallujudge.metrics.framework.metric import Metric
from hallujudge.metrics.framework.metric import OptionDefinition, Paper, VariantDefinition
from hallujudge.metrics.framework.results import Item
from hallujudge.metrics.framework.columns_and_scores import Column, ScoreDefinition, ratio
from hallujudge.metrics.framework.results import ScoredItem


class ShoutItem(Item, frozen=True, kw_only=True):
    response: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShoutMetric(Metric):
    name: ClassVar[str] = "shout"
    summary: ClassVar[str] = "Responses that end in an exclamation mark."
    papers: ClassVar = (Paper(title="None", authors="Nobody", year=2026, where="nowhere"),)
    variants: ClassVar = (VariantDefinition(name="ours", meaning="The only one."),)
    options: ClassVar = (
        OptionDefinition(name="mark", default="!", choices=("!", "?"), meaning="Counted mark."),
    )
    unit: ClassVar[str] = "responses"
    columns: ClassVar = (Column(name="loud", meaning="responses that shout"),)
    score_definitions: ClassVar = (
        ScoreDefinition(
            name="loudness",
            meaning="responses that shout / responses",
            direction="lower",
            columns=("loud", "responses"),
            value=ratio("loud", "responses"),
        ),
    )
    ranked_by: ClassVar = ("loudness",)

    mark: str = ""

    def score_response(self, response):
        loud = response.endswith(self.mark)
        return ScoredItem(
            statistics=(int(loud),),
            scores={"loudness": float(loud)},
            evidence=AnswersEvidence(answers=(AnswerVerdict("", "loud", "", not loud, "mark"),)),
        )

    def extreme(self, observed, *, best):
        return {"loud": float(not best)}
'''

ENGINE = '''
"""The pipeline of the toy family."""

from hallujudge.judge_service.engine.registry import MetricEntry, Trial
from hallujudge.judge_service.engine.pipelines import TextPipeline
from hallujudge.judge_service.engine.responses import ResponseCheck
from hallujudge.metrics.shout import ShoutItem, ShoutMetric


class ShoutPipeline(TextPipeline):
    item_type = ShoutItem

    def score(self, item):
        return self.metric.score_response(item.response)


def _open(spec, resources):
    responses = ResponseCheck(spec.options)
    own = ENTRIES[0].own_options(spec)
    metric = ShoutMetric(variant=spec.variant, responses=responses.signature, **own)
    return ShoutPipeline(metric, responses)


ENTRIES = (
    MetricEntry(
        metric=ShoutMetric,
        item_type=ShoutItem,
        trial=Trial(
            item=ShoutItem(id="trial", response="A dog!"), score="loudness", value=1.0
        ),
        open=_open,
    ),
)
'''

ARCHIVE = '''
"""Reads the toy family's responses."""

from hallujudge.metrics.shout import ShoutItem
from hallujudge.sdk.archives.inputs import ItemSource
from hallujudge.sdk.archives.records import read_records


def read_shout(given):
    items = [
        ShoutItem(id=str(row.values["id"]), response=row.values["response"])
        for row in read_records(given.responses)
    ]
    return ItemSource(count=len(items), make=lambda: iter(items))


READERS = {"shout": read_shout}
'''

COMMAND = '''
"""The toy family's command."""

from typing import Annotated

from hallujudge.sdk.cli.app import score_app
from hallujudge.sdk.cli.declared_options import DeclaredBy, MetricOptions
from hallujudge.sdk.cli.run_options import ScoreCommand
from hallujudge.sdk.cli.run_options import Responses, RunOptions
from hallujudge.sdk.runs.score_run import ScoreRun


@score_app.command("shout")
def shout(
    *,
    responses: Responses,
    metric: Annotated[MetricOptions, DeclaredBy("shout")],
    run: RunOptions,
) -> ScoreCommand:
    """Responses that shout."""
    scoring = ScoreRun(
        "shout", responses=responses, variant=metric.variant, options=metric.options
    )
    return run.of(scoring)
'''

# Everything that the family is, beside a .proto, tests and pages.
FILES = {
    hallujudge.metrics: METRIC,
    hallujudge.judge_service.engine.families: ENGINE,
    hallujudge.sdk.archives: ARCHIVE,
    hallujudge.sdk.cli: COMMAND,
}


DECLARED = Path(__file__).resolve().parents[3] / "examples" / "my_benchmark.py"


@contextmanager
def added(folder: Path, name: str, files: Mapping[ModuleType, str]) -> Iterator[None]:
    """Add a family: modules of its name, and its place in the list of families."""
    with pytest.MonkeyPatch.context() as patched:
        for package, text in files.items():
            place = folder / package.__name__
            place.mkdir(parents=True)
            (place / f"{name}.py").write_text(text, encoding="utf-8")
            patched.setattr(package, "__path__", [*package.__path__, str(place)])
        FAMILIES.append(name)
        yield
        FAMILIES.remove(name)
        for command, made in list(score_app.commands.items()):
            if _module(made) == name:
                del score_app.commands[command]
        for package in files:
            sys.modules.pop(f"{package.__name__}.{name}", None)
            vars(package).pop(name, None)


def _module(command: Any) -> str:
    return str(command.callback.__module__).rpartition(".")[2]


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with added(tmp_path_factory.mktemp("code"), "shout", FILES):
        yield
    tree: Any = command_tree()
    assert "shout" not in tree.commands["score"].commands
    assert "shout" not in metric_names()


@pytest.fixture(scope="module")
def declared_family(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    text = DECLARED.read_text(encoding="utf-8")
    with added(tmp_path_factory.mktemp("code"), "my_sides", {hallujudge.metrics: text}):
        yield
    assert "my-sides" not in metric_names()


ROWS = [
    {"id": 1, "response": "A dog!"},
    {"id": 2, "response": "A cat."},
    {"id": 3, "response": ""},
    {"id": 4, "response": "Failed to obtain answer via API."},
]


@pytest.mark.usefixtures("family")
def test_python_scores_a_new_family() -> None:
    with Client.embedded() as client:
        report = client.score("shout", responses=ROWS)
    assert report.loudness == 0.5
    assert report.coverage.reasons == {"RESPONSE_EMPTY": 1, "RESPONSE_FAILED": 1}
    assert report.coverage.bounds["loudness"].worst == 0.75


@pytest.mark.usefixtures("family")
def test_the_command_line_scores_shows_and_renders_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    out = tmp_path / "out"
    arguments = ["score", "shout", "--responses", str(file), "--out", str(out)]
    assert main([*arguments, "--format", "table,html"]) == 3
    assert "loudness" in capsys.readouterr().out
    assert "responses that shout / responses; lower is better" in (out / "report.html").read_text(
        encoding="utf-8"
    )
    assert main([*arguments, "--overwrite", "--mark", "?"]) == 3
    assert "loudness" in (capsys.readouterr().out)
    assert json.loads((out / "report.json").read_text())["scores"]["loudness"]["value"] == 0
    assert main(["score", "shout", "--help"]) == 0
    assert "Counted mark: ! or ?." in capsys.readouterr().out
    assert main(["metrics", "show", "shout"]) == 0
    assert "responses that shout / responses; lower is better" in capsys.readouterr().out


@pytest.mark.usefixtures("declared_family")
def test_a_family_of_closed_questions_is_one_file_and_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "answers.jsonl", tmp_path / "out"
    rows = [
        {"id": 1, "image": "a.jpg", "answer": "Left.", "side": "left"},
        {"id": 2, "image": "b.jpg", "answer": "right", "side": "left"},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    arguments = ["score", "my-sides", "-r", str(file), "-o", str(out)]
    assert main([*arguments, "--format", "table,html"]) == 0
    assert "0.5000" in capsys.readouterr().out
    assert "right answers / answers" in (out / "report.html").read_text(encoding="utf-8")
    with Client.embedded() as client:
        assert client.score("my-sides", responses=str(file)).accuracy == 0.5
    assert main(["metrics", "show", "my-sides"]) == 0
    assert "left or right" in capsys.readouterr().out
